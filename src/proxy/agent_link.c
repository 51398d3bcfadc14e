/* SPDX-License-Identifier: Apache-2.0 */
/* agent_link.c - see agent_link.h */
#include "proxy/agent_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "http/defer.h"
#include "http/url.h"
#include "link/channel.h"
#include "link/connection_reuse.h"
#include "link/idle_pool.h"
#include "link/link_stream.h"
#include "link/ticket.h"

#define DATA_FOLDER "data" /* as in agent/data/data.h */
#define ANSWER_MAX 4096
#define SOCKET_MSEC 6000 /* longer than an agent tries to connect */
#define REACH_MSEC 3000  /* for TCP and TLS; then the manager is the way */

struct agent_links {
    uv_loop_t *loop;
    char *ca, *run;
    struct tls_context *tls;
    struct map agents; /* id -> struct agent_link */
};

/* Connections by TLS to one agent that wait for their next stream. */
struct agent_link {
    struct idle_pool idle;
    struct connection_reuse *reuse;
};

struct agent_ask {
    struct agent_links *links;
    struct agent_link *of;
    char *agent_id, *address, *ticket;
    int fd;              /* the socket to the agent */
    uv_poll_t *poll;     /* likewise */
    struct channel *tls; /* by TLS */
    bool is_kept;        /* it has had a stream, and may end at any time */
    struct defer *later, *timeout;
    agent_opened_fn *fn;
    void *data;
};

struct agent_opened {
    struct agent_ask *ask;
    int fd;                    /* by the socket; else -1 */
    struct stream *connection; /* by TLS */
    struct strbuf rest;
};

/* ---- an ask ---- */

static void agent_ask_on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

static void agent_ask_leave_socket(struct agent_ask *ask)
{
    if (ask->poll)
        uv_close((uv_handle_t *)AQ_TAKE(ask->poll), agent_ask_on_poll_closed);
    aq_closep(&ask->fd);
}

void agent_ask_cancel(struct agent_ask *ask)
{
    if (!ask)
        return;
    agent_ask_leave_socket(ask);
    channel_close(ask->tls);
    defer_cancel(ask->later);
    defer_cancel(ask->timeout);
    free(ask->agent_id);
    free(ask->address);
    free(ask->ticket);
    free(ask);
}

static void agent_ask_fail(struct agent_ask *ask, const struct aq_error *err)
{
    agent_opened_fn *fn = ask->fn;
    void *data = ask->data;

    agent_ask_cancel(ask);
    fn(data, NULL, err);
}

static void agent_ask_refused(struct agent_ask *ask, const struct msg_data_refused *refused)
{
    bool is_down = refused->kind && strcmp(refused->kind, "connect-failed") == 0;
    struct aq_error err = { 0 };

    (void)aq_fail_kind(&err, is_down ? ECONNREFUSED : EACCES,
                       is_down ? "connect-failed" : "refused", "%s",
                       refused->text ? refused->text : "no reason");
    agent_ask_fail(ask, &err);
}

static void agent_ask_done(struct agent_ask *ask, int fd, struct stream *connection)
{
    struct agent_opened opened = { .ask = ask, .fd = fd, .connection = connection };

    strbuf_init(&opened.rest);
    ask->fn(ask->data, &opened, NULL);
    aq_closep(&opened.fd);
    stream_close(opened.connection);
    strbuf_done(&opened.rest);
    agent_ask_cancel(ask);
}

bool agent_opened_by_socket(const struct agent_opened *opened)
{
    return opened->fd >= 0;
}

static void agent_opened_on_nothing(void *data, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    (void)len;
}

static void agent_opened_on_end(void *data, const struct aq_error *err)
{
    (void)data;
    (void)err;
}

/* A descriptor of another kind would end the loop, or be read without an end. */
static int agent_check_connection(const struct agent_ask *ask, int fd, struct aq_error *err)
{
    struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof(peer), type_len = sizeof(int);
    int type = 0;

    if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0 && errno == ENOTCONN)
        return aq_fail(err, ECONNRESET, "the connection ended before its first byte");
    if ((peer.ss_family == AF_INET || peer.ss_family == AF_INET6)
        && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 && type == SOCK_STREAM)
        return 0;
    return aq_fail(err, EPROTO, "agent '%s' handed over a descriptor that is not a TCP connection",
                   ask->agent_id);
}

int agent_opened_attach(struct agent_opened *opened, const struct link_stream_ops *ops, void *data,
                        struct link_stream **ret, struct aq_error *err)
{
    static const struct stream_ops unknown = { .on_read = agent_opened_on_nothing,
                                               .on_end = agent_opened_on_end };
    const struct agent_ask *ask = opened->ask;
    struct uuid id = uuid_random();
    struct stream *connection = AQ_TAKE(opened->connection);

    if (opened->fd >= 0) {
        int r = agent_check_connection(ask, opened->fd, err);

        if (r == 0)
            r = stream_adopt(ask->links->loop, opened->fd, &unknown, NULL, &connection, err);
        if (r < 0)
            return r;
        (void)AQ_TAKE_FD(opened->fd);
    }
    *ret = link_stream_new(ask->links->loop, &id, ops, data);
    link_stream_attach(*ret, connection, &opened->rest, ask->of ? ask->of->reuse : NULL);
    return 0;
}

/* ---- by TLS ---- */

static void agent_ask_start_tls(struct agent_ask *ask);

static void agent_tls_on_open(void *data)
{
    struct agent_ask *ask = data;
    const struct message msg = { .type = MSG_DATA_OPEN, .data_open = { .ticket = ask->ticket } };
    struct aq_error err = { 0 };
    struct tls_peer peer;

    if (!channel_get_peer(ask->tls, &peer) || strcmp(peer.common_name, ask->agent_id) != 0)
        (void)aq_fail(&err, EACCES, "%s is not agent '%s' by its certificate", ask->address,
                      ask->agent_id);
    if (err.code || channel_send(ask->tls, &msg, &err) < 0)
        agent_ask_fail(ask, &err);
}

static void agent_tls_on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct agent_ask *ask = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;
    struct stream *connection;
    struct aq_error err = { 0 };

    (void)seq;
    if (msg->type == MSG_DATA_REFUSED) {
        agent_ask_refused(ask, &msg->data_refused);
    } else if (msg->type != MSG_DATA_OPENED) {
        (void)aq_fail(&err, EPROTO, "agent '%s' answers '%s'", ask->agent_id,
                      message_type_name(msg->type));
        agent_ask_fail(ask, &err);
    } else {
        connection = channel_release(AQ_TAKE(ask->tls), &rest);
        stream_push_back(connection, rest.data, rest.len);
        agent_ask_done(ask, -1, connection);
    }
}

static void agent_tls_on_end(void *data, const char *why)
{
    struct agent_ask *ask = data;
    struct aq_error err = { 0 };

    if (ask->is_kept) { /* the agent has just closed it: a new one */
        channel_close(AQ_TAKE(ask->tls));
        ask->is_kept = false;
        agent_ask_start_tls(ask);
        return;
    }
    (void)aq_fail(&err, ENOTCONN, "%s: %s", ask->address, why);
    agent_ask_fail(ask, &err);
}

static const struct channel_ops agent_tls_ops = { .on_open = agent_tls_on_open,
                                                  .on_message = agent_tls_on_message,
                                                  .on_end = agent_tls_on_end };

static void agent_ask_on_timeout(void *data)
{
    struct agent_ask *ask = data;
    struct aq_error err = { 0 };

    ask->timeout = NULL;
    (void)aq_fail(&err, ETIMEDOUT, "agent '%s' did not answer in time%s%s", ask->agent_id,
                  ask->tls ? " at " : "", ask->tls ? ask->address : "");
    agent_ask_fail(ask, &err);
}

static void agent_ask_time(struct agent_ask *ask, unsigned msec)
{
    defer_cancel(ask->timeout);
    ask->timeout = defer_call(ask->links->loop, msec, agent_ask_on_timeout, ask);
}

static void agent_ask_on_later(void *data)
{
    struct agent_ask *ask = data;
    struct aq_error err = { 0 };

    ask->later = NULL;
    if (ask->tls)
        agent_tls_on_open(ask);
    else {
        (void)aq_fail(&err, ENOTCONN,
                      "agent '%s' offers no address to proxies of other machines; "
                      "set listen in [data] of its agent.toml",
                      ask->agent_id);
        agent_ask_fail(ask, &err);
    }
}

static void agent_link_on_reusable(void *owner, struct stream *connection)
{
    struct agent_link *link = owner;

    idle_pool_add(&link->idle, connection);
}

static struct agent_link *agent_link_of(struct agent_links *links, const char *agent_id)
{
    struct agent_link *link = map_gets(&links->agents, agent_id);

    if (link)
        return link;
    link = aq_alloc(sizeof(*link));
    idle_pool_init(&link->idle, links->loop);
    link->reuse = connection_reuse_new(agent_link_on_reusable, link);
    (void)map_sets(&links->agents, agent_id, link);
    return link;
}

static void agent_ask_start_tls(struct agent_ask *ask)
{
    struct agent_links *links = ask->links;
    const struct channel_target to = { .address = ask->address,
                                       .tls = links->tls,
                                       .connect_usec = CHANNEL_GREETING_USEC };
    struct aq_error err = { 0 };
    struct stream *kept;

    ask->of = agent_link_of(links, ask->agent_id);
    kept = idle_pool_take(&ask->of->idle);
    agent_ask_time(ask, kept ? SOCKET_MSEC : REACH_MSEC + SOCKET_MSEC);
    if (kept) {
        ask->is_kept = true;
        ask->tls = channel_new(links->loop, kept, &agent_tls_ops, ask);
        ask->later = defer_call(links->loop, 0, agent_ask_on_later, ask);
        return;
    }
    agent_ask_time(ask, REACH_MSEC);
    if (strcmp(ask->address, "-") == 0
        || channel_connect(links->loop, &to, &agent_tls_ops, ask, &ask->tls, &err) < 0)
        ask->later = defer_call(links->loop, 0, agent_ask_on_later, ask);
}

/* ---- by the socket ---- */

static void agent_socket_take(struct agent_ask *ask, const char *text, size_t len, int fd)
{
    AQ_CLEANUP(aq_closep) int app = fd;
    struct message msg;
    bool is_opened;

    if (message_decode(text, len, &msg, NULL) < 0) {
        agent_ask_leave_socket(ask);
        agent_ask_start_tls(ask);
        return;
    }
    is_opened = msg.type == MSG_DATA_OPENED && app >= 0;
    if (is_opened) {
        agent_ask_done(ask, AQ_TAKE_FD(app), NULL);
    } else if (msg.type == MSG_DATA_REFUSED) {
        agent_ask_refused(ask, &msg.data_refused);
    } else {
        agent_ask_leave_socket(ask);
        agent_ask_start_tls(ask);
    }
    message_done(&msg);
}

/* The system closes descriptors beyond the one that there is room for. */
static void agent_socket_on_poll(uv_poll_t *poll, int status, int events)
{
    struct agent_ask *ask = poll->data;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char text[ANSWER_MAX];
    struct iovec part = { .iov_base = text, .iov_len = sizeof(text) };
    struct msghdr packet = { .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = CMSG_LEN(sizeof(int)) };
    ssize_t len = recvmsg(ask->fd, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = len > 0 ? CMSG_FIRSTHDR(&packet) : NULL;
    int fd = -1;

    (void)status;
    (void)events;
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS
        && head->cmsg_len == CMSG_LEN(sizeof(fd)))
        memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    if (len > 0) {
        agent_socket_take(ask, text, (size_t)len, fd);
        return;
    }
    agent_ask_leave_socket(ask); /* the agent has ended: it may be there by TLS, or come back */
    agent_ask_start_tls(ask);
}

/* False if the agent has no socket here. */
static bool agent_ask_start_socket(struct agent_ask *ask)
{
    const struct message msg = { .type = MSG_DATA_OPEN, .data_open = { .ticket = ask->ticket } };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    char name[TICKET_SOCKET_NAME_MAX];
    int len = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/" DATA_FOLDER "/%s",
                       ask->links->run, ticket_socket_name(ask->links->ca, ask->agent_id, name));

    if (len < 0 || (size_t)len >= sizeof(addr.sun_path) || message_encode(&msg, &text, NULL) < 0)
        return false;
    ask->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (ask->fd < 0 || connect(ask->fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0
        || send(ask->fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        aq_closep(&ask->fd);
        return false;
    }
    ask->poll = aq_alloc(sizeof(*ask->poll));
    (void)uv_poll_init(ask->links->loop, ask->poll, ask->fd);
    ask->poll->data = ask;
    (void)uv_poll_start(ask->poll, UV_READABLE | UV_DISCONNECT, agent_socket_on_poll);
    agent_ask_time(ask, SOCKET_MSEC);
    return true;
}

void agent_link_open(struct agent_links *links, const struct agent_target *target,
                     agent_opened_fn *fn, void *data, struct agent_ask **ret)
{
    struct agent_ask *ask = aq_alloc(sizeof(*ask));

    *ask = (struct agent_ask){ .links = links,
                               .agent_id = aq_strdup(target->agent_id),
                               .address = aq_strdup(target->address),
                               .ticket = aq_strdup(target->ticket),
                               .fd = -1,
                               .fn = fn,
                               .data = data };
    if (!agent_ask_start_socket(ask))
        agent_ask_start_tls(ask);
    *ret = ask;
}

/* ---- life ---- */

int agent_links_new(uv_loop_t *loop, const struct link_identity *identity, const char *run,
                    struct agent_links **ret, struct aq_error *err)
{
    const struct tls_options options = {
        .cert_pem = identity->cert,
        .key_pem = identity->key,
        .ca_pem = identity->ca,
        .any_name = true, /* agent_tls_on_open() checks who it is */
        .any_use = true,
        .tls13_only = true
    };
    struct agent_links *links = aq_alloc(sizeof(*links));
    int r;

    *links = (struct agent_links){ .loop = loop,
                                   .ca = aq_strdup(identity->ca),
                                   .run = aq_strdup(run) };
    r = tls_context_new(&options, &links->tls, err);
    if (r < 0) {
        agent_links_free(links);
        return r;
    }
    *ret = links;
    return 0;
}

void agent_links_free(struct agent_links *links)
{
    if (!links)
        return;
    for (size_t i = 0; i < links->agents.count; i++) {
        struct agent_link *link = links->agents.entries[i].value;

        idle_pool_clear(&link->idle);
        connection_reuse_end(link->reuse);
        free(link);
    }
    map_done(&links->agents);
    tls_context_free(links->tls);
    free(links->ca);
    free(links->run);
    free(links);
}
