/* SPDX-License-Identifier: Apache-2.0 */
/* app_socket.c - see app_socket.h */
#include "agent/data/app_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/net/netns.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "http/defer.h"

#define CONNECT_MSEC 5000
#define CGROUP_TEXT_MAX 8192 /* of /proc/PID/cgroup */

struct app_socket {
    uv_poll_t *poll;       /* while it connects */
    struct defer *timeout; /* NULL once it has come */
    struct defer *told;    /* connected at once, or failed: told from the loop */
    int fd, error;
    uint16_t port;
    app_socket_fn *fn;
    void *data;
};

static void app_socket_on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void app_socket_free(struct app_socket *s)
{
    if (s->poll)
        uv_close((uv_handle_t *)s->poll, app_socket_on_closed);
    defer_cancel(s->timeout);
    defer_cancel(s->told);
    aq_closep(&s->fd);
    free(s);
}

void app_socket_cancel(struct app_socket *s)
{
    if (s)
        app_socket_free(s);
}

/* ---- the container's network ---- */

/* A pid may have become another process's: the directory of /proc, once open, is of one process
 * alone, whose cgroup is named after the kernel.
 */
static int app_socket_check_process(int proc, const struct uuid *kernel_id, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = openat(proc, "cgroup", O_RDONLY | O_CLOEXEC);
    char text[CGROUP_TEXT_MAX], id[UUID_TEXT_MAX];
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (len < 0)
        return aq_fail_kind(err, ESRCH, "not-found", "the container has ended");
    text[len] = '\0';
    return strstr(text, uuid_format(kernel_id, id))
               ? 0
               : aq_fail_kind(err, ESRCH, "not-found",
                              "the process is in no cgroup of the container");
}

/* 'keeper' may be the OCI runtime, outside: its child is inside, as are those of all inside. */
static pid_t app_socket_find_inside(pid_t keeper)
{
    char path[64], text[32];
    ssize_t len;
    long pid = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)keeper, (int)keeper);
    {
        AQ_CLEANUP(aq_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

        len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    }
    if (len > 0) {
        text[len] = '\0';
        pid = strtol(text, NULL, 10);
    }
    return pid > 0 ? (pid_t)pid : keeper;
}

int app_socket_open_network(pid_t keeper, const struct uuid *kernel_id, int *ret,
                            struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int proc = -1;
    AQ_CLEANUP(aq_closep) int ns = -1;
    char path[32];
    int r;

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)app_socket_find_inside(keeper));
    proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return aq_fail_kind(err, ESRCH, "not-found", "the container has ended");
    r = app_socket_check_process(proc, kernel_id, err);
    if (r < 0)
        return r;
    ns = openat(proc, "ns/net", O_RDONLY | O_CLOEXEC);
    if (ns < 0 && (errno == ENOENT || errno == ESRCH)) /* it ended after the check */
        return aq_fail_kind(err, ESRCH, "not-found", "the container has ended");
    if (ns < 0)
        return aq_fail_kind(err, ESRCH, "not-found", "cannot open the container's network: %s",
                            strerror(errno));
    *ret = AQ_TAKE_FD(ns);
    return 0;
}

/* netns_run(): 'data' is where the descriptor goes. */
static int app_socket_make(const void *data, struct aq_error *err)
{
    int *ret = *(int *const *)data;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return aq_fail_errno(err, "make a socket in the container's network");
    *ret = fd;
    return 0;
}

/* ---- connecting ---- */

static void app_socket_tell(struct app_socket *s)
{
    struct aq_error err = { 0 };
    int fd = s->error ? -1 : AQ_TAKE_FD(s->fd);
    struct app_socket done = *s;

    if (done.error == ECONNREFUSED)
        (void)aq_fail_kind(&err, ECONNREFUSED, "not-listening", "nobody listens on port %u",
                           (unsigned)done.port);
    else if (done.error)
        (void)aq_fail_kind(&err, done.error, "connect-failed", "cannot connect to port %u: %s",
                           (unsigned)done.port, strerror(done.error));
    app_socket_free(s);
    done.fn(done.data, fd, done.error ? &err : NULL);
}

static void app_socket_on_poll(uv_poll_t *poll, int status, int events)
{
    struct app_socket *s = poll->data;
    socklen_t len = sizeof(s->error);

    (void)events;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &s->error, &len) < 0)
        s->error = errno;
    else if (status < 0 && !s->error)
        s->error = ECONNABORTED;
    app_socket_tell(s);
}

static void app_socket_on_timeout(void *data)
{
    struct app_socket *s = data;

    s->timeout = NULL;
    s->error = ETIMEDOUT;
    app_socket_tell(s);
}

static void app_socket_on_told(void *data)
{
    struct app_socket *s = data;

    s->told = NULL;
    app_socket_tell(s);
}

static void app_socket_start(struct app_socket *s, uv_loop_t *loop)
{
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_port = htons(s->port),
                                    .sin_addr = { htonl(INADDR_LOOPBACK) } };

    if (connect(s->fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
        s->error = errno;
    if (s->error != EINPROGRESS) {
        s->told = defer_call(loop, 0, app_socket_on_told, s);
        return;
    }
    s->error = 0;
    s->poll = aq_alloc(sizeof(*s->poll));
    (void)uv_poll_init(loop, s->poll, s->fd);
    s->poll->data = s;
    (void)uv_poll_start(s->poll, UV_WRITABLE, app_socket_on_poll);
    s->timeout = defer_call(loop, CONNECT_MSEC, app_socket_on_timeout, s);
}

int app_socket_connect(uv_loop_t *loop, int ns, uint16_t port, app_socket_fn *fn, void *data,
                       struct app_socket **ret, struct aq_error *err)
{
    int fd = -1, *place = &fd;
    struct app_socket *s;
    int r = ns < 0 ? app_socket_make(&place, err) : netns_run(ns, app_socket_make, &place, err);

    if (r < 0)
        return r;
    s = aq_alloc(sizeof(*s));
    *s = (struct app_socket){ .fd = fd, .port = port, .fn = fn, .data = data };
    app_socket_start(s, loop);
    *ret = s;
    return 0;
}
