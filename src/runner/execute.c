/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a container's executor, which is started by the first who wants it. */
#include "runner/execute.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json_load.h"
#include "runner/execution.h"
#include "runner/executor.h"

#define WAITING_MAX 64
#define ANSWER_MSEC 630000 /* more than any app has to start */

/* ---- where it is ---- */

/* A folder that is the user's own and nobody else's; 'lock' keeps others from starting one. */
static int execute_open_folder(char *ret, size_t size, int *ret_lock, struct aq_error *err)
{
    const char *const places[] = { "/tmp", "/dev/shm", getenv("HOME") };

    for (size_t i = 0; i < AQ_COUNT(places); i++) {
        AQ_CLEANUP(aq_closep) int folder = -1;
        struct stat st;

        if (!places[i] || snprintf(ret, size, "%s/.aliquot-execute-%u", places[i], geteuid()) < 0
            || (mkdir(ret, 0700) < 0 && errno != EEXIST))
            continue;
        folder = open(ret, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0 || fstat(folder, &st) < 0 || st.st_uid != geteuid()
            || (st.st_mode & 0077) != 0)
            continue;
        *ret_lock = openat(folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (*ret_lock >= 0 && flock(*ret_lock, LOCK_EX) == 0)
            return 0;
        aq_closep(ret_lock);
    }
    return aq_fail(err, EACCES, "no folder of the container can be written: /tmp, /dev/shm, $HOME");
}

static int execute_socket(const char *folder, struct sockaddr_un *ret, struct aq_error *err)
{
    int fd;

    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/socket", folder)
        >= (int)sizeof(ret->sun_path))
        return aq_fail(err, ENAMETOOLONG, "'%s' is too long a path", folder);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? aq_fail_errno(err, "a socket") : fd;
}

/* ---- the executor's process ---- */

/* Of init, in a session of its own, with nothing of the command that started it. */
static void execute_become_executor(int listener, const char *folder)
{
    int null = open("/dev/null", O_RDWR);
    struct aq_error err = { 0 };

    (void)setsid();
    if (null < 0 || fork() != 0)
        _exit(0);
    for (int i = 0; i < 3; i++)
        (void)dup2(null, i);
    if (listener > 3)
        (void)dup3(listener, 3, O_CLOEXEC);
    (void)close_range(4, ~0u, 0); /* the lock, above all */
    (void)executor_serve(3, folder, &err);
    _exit(1);
}

static int execute_start(const char *folder, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int listener = -1;
    struct sockaddr_un address;
    pid_t pid;

    listener = execute_socket(folder, &address, err);
    if (listener < 0)
        return listener;
    (void)unlink(address.sun_path);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0
        || listen(listener, WAITING_MAX) < 0)
        return aq_fail_errno(err, "'%s'", address.sun_path);
    pid = fork();
    if (pid < 0)
        return aq_fail_errno(err, "fork");
    if (pid == 0)
        execute_become_executor(listener, folder);
    return 0;
}

static int execute_connect(struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int lock = -1;
    char folder[PATH_MAX];
    struct sockaddr_un address;
    int r = execute_open_folder(folder, sizeof(folder), &lock, err), fd;

    if (r < 0 || (fd = r = execute_socket(folder, &address, err)) < 0)
        return r;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0
        && ((r = execute_start(folder, err)) < 0
            || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)) {
        aq_closep(&fd);
        return r < 0 ? r : aq_fail_errno(err, "the executor cannot be reached");
    }
    return fd;
}

/* ---- bytes ---- */

struct execute_way {
    int from, to;
    bool is_ended; /* nothing more comes from there ... */
    bool is_told;  /* ... which the other end knows */
    size_t at, len;
    char bytes[65536];
};

/* Neither way may hold up the other: who sends may wait for us to read. */
static void execute_way_want(const struct execute_way *w, struct pollfd ret[2])
{
    ret[0] = (struct pollfd){ w->len || w->is_ended ? -1 : w->from, POLLIN, 0 };
    ret[1] = (struct pollfd){ w->is_told ? -1 : w->to, w->len ? POLLOUT : 0, 0 };
}

/* False if the other end takes nothing any more. */
static bool execute_way_pass(struct execute_way *w)
{
    ssize_t n;

    if (!w->len && !w->is_ended) {
        n = read(w->from, w->bytes, sizeof(w->bytes));
        w->is_ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
        w->at = 0;
        w->len = n > 0 ? (size_t)n : 0;
    }
    if (w->len) {
        n = write(w->to, w->bytes + w->at, w->len);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        w->at += n > 0 ? (size_t)n : 0;
        w->len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool execute_way_is_done(const struct execute_way *w)
{
    return w->is_ended && !w->len;
}

static void execute_way_drop(struct execute_way *w)
{
    w->is_ended = true;
    w->len = 0;
}

static void execute_unblock(int fd)
{
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Until nothing more comes from 'fd', or with 'half_close' from neither side. */
static int execute_pass_all(int fd, bool half_close)
{
    static struct execute_way in, out;
    struct pollfd ready[4];

    in = (struct execute_way){ .from = STDIN_FILENO, .to = fd };
    out = (struct execute_way){ .from = fd, .to = STDOUT_FILENO };
    (void)signal(SIGPIPE, SIG_IGN);
    execute_unblock(fd);
    execute_unblock(STDIN_FILENO);
    execute_unblock(STDOUT_FILENO);
    while (!execute_way_is_done(&out) || (half_close && !execute_way_is_done(&in))) {
        execute_way_want(&in, ready);
        execute_way_want(&out, ready + 2);
        if (poll(ready, 4, -1) < 0 && errno != EINTR)
            break;
        if (!execute_way_pass(&out) || ready[3].revents & POLLERR)
            break; /* nobody reads */
        if (!execute_way_pass(&in) || ready[1].revents & (POLLERR | POLLHUP))
            execute_way_drop(&in);
        if (execute_way_is_done(&in) && !in.is_told) {
            (void)shutdown(fd, SHUT_WR); /* answers may follow */
            in.is_told = true;
        }
        if (execute_way_is_done(&out) && !out.is_told) {
            (void)close(STDOUT_FILENO);
            out.is_told = true;
        }
    }
    return 0;
}

int execute_pass_bytes(struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = execute_connect(err);

    return fd < 0 ? fd : execute_pass_all(fd, false);
}

int execute_pass_to_port(uint16_t port, bool half_close, struct aq_error *err)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    AQ_CLEANUP(aq_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;

    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return aq_fail_errno(err, "port %u", port);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return execute_pass_all(fd, half_close);
}

/* ---- to an app ---- */

/* What has come from there to here; 0 = it has ended. */
static int execute_pass(int from, int to)
{
    char bytes[65536];
    ssize_t got = read(from, bytes, sizeof(bytes));

    if (got < 0 && errno == EINTR)
        return 1;
    if (got <= 0)
        return (int)got;
    return fs_write_all(to, bytes, (size_t)got) < 0 ? -1 : 1;
}

/* The line of the answer; the question may still be on its way. -errno if there is none. */
static int execute_ask(int fd, struct strbuf *line, struct aq_error *err)
{
    struct pollfd ready[] = { { STDIN_FILENO, POLLIN, 0 }, { fd, POLLIN, 0 } };
    char byte;
    int n;

    while (!line->len || line->data[line->len - 1] != '\n') {
        if ((n = poll(ready, 2, ANSWER_MSEC)) < 0 && errno != EINTR)
            return aq_fail_errno(err, "poll");
        if (n == 0)
            return aq_fail(err, ETIMEDOUT, "the executor does not answer");
        if (ready[0].revents && execute_pass(STDIN_FILENO, fd) <= 0)
            ready[0].fd = -1;
        if (!ready[1].revents)
            continue;
        if (read(fd, &byte, 1) != 1 || line->len >= EXECUTION_LINE_MAX)
            return aq_fail(err, EPIPE, "the executor has not answered");
        strbuf_addc(line, byte);
        if (!strbuf_ok(line))
            return aq_fail_oom(err);
    }
    return fs_write_all(STDOUT_FILENO, line->data, line->len) < 0 ? aq_fail_errno(err, "write") : 0;
}

int execute_pass_to_app(bool half_close, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    json_auto_t *answer = NULL;
    int fd = execute_connect(err);
    json_int_t port;
    int r = fd < 0 ? fd : execute_ask(fd, &line, err);

    aq_closep(&fd);
    if (r < 0)
        return r;
    answer = json_load_text(line.data, line.len, 0, NULL);
    port = json_integer_value(json_object_get(answer, "port"));
    return port > 0 && port <= UINT16_MAX ? execute_pass_to_port((uint16_t)port, half_close, err)
                                          : 0;
}
