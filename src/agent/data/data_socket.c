/* SPDX-License-Identifier: Apache-2.0 */
/* data_socket.c - proxies of this machine: a packet with a ticket, and a packet with a descriptor
 *
 * A connection is one question and its answer. What is handed over is the proxy's alone: an agent
 * that is killed, replaced or busy does not matter to it any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/data/data_internal.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/defer.h"

#define BACKLOG 256
#define PACKET_MAX (TICKET_MAX + 512) /* of a question, with its JSON */
#define TURN_ACCEPTS 32

struct data_socket {
    struct data_path *path;
    char *folder, *name;
    int fd;
    uv_poll_t *poll;
    uid_t user;         /* (uid_t)-1 = none */
    struct list guests; /* struct data_guest, the oldest first */
    size_t guest_count;
};

struct data_guest {
    struct list link;
    struct data_socket *of;
    int fd;
    uv_poll_t *poll;
    struct defer *timeout;
    struct app_socket *app; /* once it has shown its ticket */
};

static void data_socket_on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

static uv_poll_t *data_socket_watch(uv_loop_t *loop, int fd, uv_poll_cb fn, void *data)
{
    uv_poll_t *poll = aq_alloc(sizeof(*poll));

    (void)uv_poll_init(loop, poll, fd);
    poll->data = data;
    (void)uv_poll_start(poll, UV_READABLE | UV_DISCONNECT, fn);
    return poll;
}

static void data_socket_unwatch(uv_poll_t **poll)
{
    if (*poll)
        uv_close((uv_handle_t *)AQ_TAKE(*poll), data_socket_on_poll_closed);
}

/* ---- one that asks ---- */

static void data_guest_free(struct data_guest *g)
{
    list_remove(&g->link);
    g->of->guest_count--;
    data_socket_unwatch(&g->poll);
    defer_cancel(g->timeout);
    app_socket_cancel(g->app);
    aq_closep(&g->fd);
    free(g);
}

static void data_guest_on_timeout(void *data)
{
    struct data_guest *g = data;

    g->timeout = NULL;
    data_guest_free(g);
}

/* The packet, with 'fd' unless that is -1. An empty socket buffer takes it at once. */
static bool data_guest_send(const struct data_guest *g, const struct message *msg, int fd)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = { .room = { 0 } };
    struct iovec part;
    struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

    if (message_encode(msg, &text, NULL) < 0)
        return false;
    part = (struct iovec){ .iov_base = text.data, .iov_len = text.len };
    if (fd >= 0) {
        struct cmsghdr *head = &control.head;

        packet.msg_control = control.room;
        packet.msg_controllen = sizeof(control.room);
        *head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                  .cmsg_type = SCM_RIGHTS,
                                  .cmsg_len = CMSG_LEN(sizeof(fd)) };
        memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    }
    return sendmsg(g->fd, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static void data_guest_refuse(struct data_guest *g, const struct aq_error *err)
{
    const struct message no = data_refusal(err);

    g->of->path->counts.refused++;
    log_debug("data: a proxy is refused: %s", err->text);
    (void)data_guest_send(g, &no, -1);
    data_guest_free(g);
}

static void data_guest_on_connected(void *data, int fd, const struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int app = fd;
    const struct message yes = { .type = MSG_DATA_OPENED };
    struct data_guest *g = data;

    g->app = NULL;
    if (err) {
        data_guest_refuse(g, err);
        return;
    }
    AQ_FAULT("agent.data.connected");
    if (data_guest_send(g, &yes, app))
        g->of->path->counts.handed_over++;
    data_guest_free(g);
}

static void data_guest_take(struct data_guest *g, const char *text, size_t len)
{
    struct aq_error err = { 0 };
    struct message msg;
    int r = message_decode(text, len, &msg, &err);

    if (r == 0) {
        r = msg.type == MSG_DATA_OPEN
                ? data_connect(g->of->path, msg.data_open.ticket, NULL, data_guest_on_connected, g,
                               &g->app, &err)
                : aq_fail_kind(&err, EPROTO, "bad-ticket", "a connection begins with data.open");
        message_done(&msg);
    }
    if (r < 0)
        data_guest_refuse(g, &err);
}

static void data_guest_on_poll(uv_poll_t *poll, int status, int events)
{
    struct data_guest *g = poll->data;
    char text[PACKET_MAX + 1];
    ssize_t len = recv(g->fd, text, sizeof(text), MSG_DONTWAIT);

    (void)status;
    (void)events;
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    /* a second packet is none of the protocol, and without a reader there is no answer */
    if (len <= 0 || len > PACKET_MAX || g->app)
        data_guest_free(g);
    else
        data_guest_take(g, text, (size_t)len);
}

/* ---- the listening socket ---- */

static bool data_socket_admits(const struct data_socket *s, int fd)
{
    struct ucred who;
    socklen_t len = sizeof(who);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0
           && (who.uid == 0 || who.uid == geteuid()
               || (s->user != (uid_t)-1 && who.uid == s->user));
}

static void data_socket_on_poll(uv_poll_t *poll, int status, int events)
{
    struct data_socket *s = poll->data;

    (void)status;
    (void)events;
    for (int i = 0; i < TURN_ACCEPTS; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct data_guest *g;

        if (fd < 0)
            return;
        if (!data_socket_admits(s, fd)) {
            log_limited(&s->path->log, LOG_LEVEL_WARNING,
                        "data: a user other than a proxy's connects to '%s'", s->name);
            aq_closep(&fd);
            continue;
        }
        if (s->guest_count >= DATA_GUESTS_MAX)
            data_guest_free(LIST_ENTRY(s->guests.next, struct data_guest, link));
        g = aq_alloc(sizeof(*g));
        *g = (struct data_guest){ .of = s, .fd = fd };
        list_add(&s->guests, &g->link);
        s->guest_count++;
        g->poll = data_socket_watch(s->path->loop, fd, data_guest_on_poll, g);
        g->timeout = defer_call(s->path->loop, DATA_GUEST_MSEC, data_guest_on_timeout, g);
    }
}

/* Of an agent that was killed. One that is listened on is another agent's of the same name. */
static int data_socket_clear(const struct sockaddr_un *addr, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                          0);

    if (fd < 0)
        return aq_fail_errno(err, "make a socket");
    if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN)
        return aq_fail(err, EADDRINUSE, "another agent listens on '%s'", addr->sun_path);
    if (errno == ECONNREFUSED && unlink(addr->sun_path) < 0)
        return aq_fail_errno(err, "remove '%s'", addr->sun_path);
    return 0;
}

static int data_socket_bind(struct data_socket *s, struct aq_error *err)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    AQ_CLEANUP(aq_closep) int fd = -1;
    int r;

    if (strlen(s->name) >= sizeof(addr.sun_path))
        return aq_fail(err, ENAMETOOLONG,
                       "'%s' is longer than the %zu bytes of a socket's name; "
                       "set a shorter folder in [runtime]",
                       s->name, sizeof(addr.sun_path) - 1);
    memcpy(addr.sun_path, s->name, strlen(s->name) + 1);
    r = data_socket_clear(&addr, err);
    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* anybody may connect, so that the proxy's user can; data_socket_admits() says who is heard */
    if (fd < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0
        || chmod(s->name, 0666) < 0 || listen(fd, BACKLOG) < 0)
        return aq_fail_errno(err, "listen on '%s'", s->name);
    s->fd = AQ_TAKE_FD(fd);
    return 0;
}

int data_socket_new(struct data_path *path, const struct data_conf *conf, struct data_socket **ret,
                    struct aq_error *err)
{
    const struct passwd *user = conf->user ? getpwnam(conf->user) : NULL;
    struct data_socket *s = aq_alloc(sizeof(*s));
    char name[TICKET_SOCKET_NAME_MAX];
    int r;

    *s = (struct data_socket){ .path = path,
                               .folder = aq_format("%s/" DATA_FOLDER, conf->run),
                               .fd = -1,
                               .user = user ? user->pw_uid : (uid_t)-1 };
    s->name = aq_format("%s/%s", s->folder, ticket_socket_name(conf->ca, conf->agent_id, name));
    list_init(&s->guests);
    r = fs_mkdirs(s->folder, 0755, err);
    if (r == 0)
        r = data_socket_bind(s, err);
    if (r < 0) {
        data_socket_free(s);
        return r;
    }
    s->poll = data_socket_watch(path->loop, s->fd, data_socket_on_poll, s);
    *ret = s;
    return 0;
}

void data_socket_free(struct data_socket *s)
{
    if (!s)
        return;
    while (!list_is_empty(&s->guests))
        data_guest_free(LIST_ENTRY(s->guests.next, struct data_guest, link));
    data_socket_unwatch(&s->poll);
    if (s->fd >= 0)
        (void)unlink(s->name);
    (void)rmdir(s->folder); /* unless another agent has its socket there */
    aq_closep(&s->fd);
    free(s->folder);
    free(s->name);
    free(s);
}
