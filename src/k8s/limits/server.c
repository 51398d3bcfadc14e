/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the socket on which processes of containers ask for their limits
 *
 * A peer is known by its process before it has said anything. What it asks waits until it is known
 * which container that is and what the kubelet gave it, or for as long as it would wait itself.
 * Peers are bounded in all and for each pod, in which the oldest gives way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "k8s/limits/limits_internal.h"

#define PEERS_MAX 1024
#define PEERS_OF_POD_MAX 64
#define SILENT_USEC (5 * USEC_PER_SEC)  /* without a word */
#define WAITING_USEC (4 * USEC_PER_SEC) /* the library waits a second longer */
#define LOOK_MSEC 250
#define REFUSED_MAX 1024 /* containers of which it is known that it was told */

struct peer {
    struct list link;
    struct limits_server *server;
    int fd;
    uv_poll_t poll;          /* its closing frees this */
    struct cgroup_name name; /* pod "" = of no pod */
    int64_t since_usec;
    char request[GPU_REQUEST_MAX + 1];
    size_t len; /* 0 = nothing was said */
};

struct limits_server {
    struct limits *limits;
    int listener;
    uv_poll_t accepting;
    uv_timer_t timer;
    int open_handles;  /* the last that is closed frees all this */
    struct list peers; /* the oldest first */
    size_t peer_count;
    struct devices_request *asking;
    bool must_ask;      /* somebody came after the kubelet was asked */
    struct map refused; /* "POD/ID" */
    char *path;
};

/* ---- peers ---- */

static void server_on_connection(uv_poll_t *poll, int status, int events);

static void server_on_peer_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;

    aq_closep(&peer->fd);
    free(peer);
}

static void server_close_peer(struct peer *peer)
{
    struct limits_server *server = peer->server;

    list_remove(&peer->link);
    if (server->peer_count-- == PEERS_MAX)
        (void)uv_poll_start(&server->accepting, UV_READABLE, server_on_connection);
    (void)uv_poll_stop(&peer->poll);
    uv_close((uv_handle_t *)&peer->poll, server_on_peer_closed);
}

static void server_refuse(struct peer *peer, const char *why)
{
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/%s", peer->name.pod, peer->name.container);
    struct limits_server *server = peer->server;

    if (server->refused.count >= REFUSED_MAX)
        map_done(&server->refused);
    if (!map_gets(&server->refused, key)) {
        map_sets(&server->refused, key, server);
        log_warning("a process gets no GPU pod=%s container=%s: %s",
                    peer->name.pod[0] ? peer->name.pod : "-",
                    peer->name.pod[0] ? peer->name.container : "-", why);
    }
    (void)gpu_region_refuse(peer->fd, peer->len, EPERM);
    server_close_peer(peer);
}

static void server_answer(struct peer *peer, struct container *container)
{
    size_t before = gpu_region_host_count(container->slice.region);

    container_note(container, &peer->name);
    (void)gpu_region_host_answer(container->slice.region, peer->fd, peer->request, peer->len);
    if (gpu_region_host_count(container->slice.region) > before)
        slices_wake(container->limits->slices);
    server_close_peer(peer);
}

/* ---- deciding ---- */

static void server_ask(struct limits_server *server);

/* Its container has no slice yet. 'list' NULL: the kubelet has to be asked first. */
static void server_make(struct peer *peer, const struct node_pod *pod,
                        const struct node_container *of, const struct device_list *list)
{
    struct container *container = NULL;
    struct aq_error err = { 0 };
    const struct device_holder *holder;

    if (!list) {
        peer->server->must_ask = true;
        return;
    }
    holder = device_list_find(list, pod->uid, pod->namespace, pod->name, of->name);
    if (!holder)
        server_refuse(peer, "the kubelet has given its container nothing of a card");
    else if (container_make(peer->server->limits, pod, of->name, holder, &container, &err) < 0)
        server_refuse(peer, err.text);
    else
        server_answer(peer, container);
}

static void server_decide(struct peer *peer, const struct device_list *list)
{
    struct limits *limits = peer->server->limits;
    bool is_late = clock_monotonic_usec() - peer->since_usec > WAITING_USEC;
    struct container *container = container_find_by_id(limits, &peer->name);
    const struct node_pod *pod = pods_find(limits->pods, peer->name.pod);
    const struct node_container *of = pod ? identity_container(pod, &peer->name) : NULL;

    if (!container && of)
        container = container_find(limits, pod->uid, of->name);
    if (!peer->name.pod[0])
        server_refuse(peer, "it is in no container of a pod that can be seen from here");
    else if (container)
        server_answer(peer, container);
    else if (of && !of->memory)
        server_refuse(peer, "its container asks for no part of a card");
    else if (is_late)
        server_refuse(peer, !pod  ? "the API server has not said of its pod"
                            : !of ? "the API server has not said which container of its pod it is"
                                  : "the kubelet does not say what its container has");
    else if (of)
        server_make(peer, pod, of, list);
}

static void server_decide_all(struct limits_server *server, const struct device_list *list)
{
    LIST_FOREACH(link, &server->peers) {
        struct peer *peer = LIST_ENTRY(link, struct peer, link);

        if (peer->len)
            server_decide(peer, list);
        else if (clock_monotonic_usec() - peer->since_usec > SILENT_USEC)
            server_close_peer(peer);
    }
    server_ask(server);
}

/* Slices that nobody kept, once it is known whose they are. */
static void server_make_lost(struct limits *limits, const struct device_list *list)
{
    for (size_t i = 0; i < limits->lost_count; i++) {
        const struct cgroup_name *name = &limits->lost[i].name;
        const struct node_pod *pod = pods_find(limits->pods, name->pod);
        const struct node_container *of = pod ? identity_container(pod, name) : NULL;
        const struct device_holder *holder = of ? device_list_find(list, pod->uid, pod->namespace,
                                                                   pod->name, of->name)
                                                : NULL;
        struct container *container = NULL;
        struct aq_error err = { 0 };

        if (!holder || container_find(limits, pod->uid, of->name))
            continue;
        if (container_make(limits, pod, of->name, holder, &container, &err) < 0)
            log_error("pod %s/%s: %s", pod->namespace, pod->name, err.text);
        else
            container_note(container, name);
    }
    limits->lost_count = 0;
}

static void server_on_devices(void *data, const struct device_list *list,
                              const struct aq_error *err)
{
    struct limits_server *server = data;

    server->asking = NULL;
    server->must_ask = false;
    if (list) {
        if (pods_are_known(server->limits->pods))
            server_make_lost(server->limits, list);
        server_decide_all(server, list);
    } else {
        log_warning("the kubelet does not say what containers have: %s", err->text);
    }
}

static void server_ask(struct limits_server *server)
{
    const struct limits_conf *conf = &server->limits->conf;
    struct aq_error err = { 0 };

    if (!server->must_ask || server->asking)
        return;
    if (devices_ask(conf->loop, conf->settings, server_on_devices, server, &server->asking, &err)
        < 0)
        log_error("%s", err.text);
}

static void server_on_timer(uv_timer_t *timer)
{
    struct limits_server *server = timer->data;

    server_decide_all(server, NULL);
    if (list_is_empty(&server->peers))
        (void)uv_timer_stop(timer);
}

void limits_server_again(struct limits_server *server)
{
    if (!server)
        return;
    server->must_ask |= server->limits->lost_count > 0 && pods_are_known(server->limits->pods);
    server_decide_all(server, NULL);
}

/* ---- what comes ---- */

static void server_on_request(uv_poll_t *poll, int status, int events)
{
    struct peer *peer = poll->data;
    struct limits_server *server = peer->server;
    ssize_t got = status < 0 ? 0
                             : recv(peer->fd, peer->request, sizeof(peer->request), MSG_DONTWAIT);

    (void)events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0 || peer->len) { /* it has gone, or says more than one thing */
        server_close_peer(peer);
        return;
    }
    peer->len = (size_t)got;
    server_decide(peer, NULL);
    server_ask(server);
}

static void server_make_room(struct limits_server *server, const char *pod)
{
    struct peer *oldest = NULL;
    size_t count = 0;

    LIST_FOREACH(link, &server->peers) {
        struct peer *peer = LIST_ENTRY(link, struct peer, link);

        if (strcmp(peer->name.pod, pod) != 0)
            continue;
        count++;
        if (!oldest)
            oldest = peer;
    }
    if (count >= PEERS_OF_POD_MAX)
        server_close_peer(oldest);
}

static void server_on_connection(uv_poll_t *poll, int status, int events)
{
    struct limits_server *server = poll->data;
    AQ_CLEANUP(aq_closep) int fd = accept4(server->listener, NULL, NULL,
                                           SOCK_CLOEXEC | SOCK_NONBLOCK);
    AQ_CLEANUP(aq_freep) struct peer *peer = fd < 0 ? NULL : aq_alloc(sizeof(*peer));

    (void)status;
    (void)events;
    if (!peer || uv_poll_init(server->limits->conf.loop, &peer->poll, fd) < 0)
        return;
    if (!identity_of_peer(server->limits, fd, &peer->name))
        peer->name = (struct cgroup_name){ .pod = "" };
    server_make_room(server, peer->name.pod);
    peer->server = server;
    peer->fd = AQ_TAKE_FD(fd);
    peer->poll.data = peer;
    peer->since_usec = clock_monotonic_usec();
    (void)uv_poll_start(&peer->poll, UV_READABLE, server_on_request);
    list_add(&server->peers, &peer->link);
    peer = NULL;
    if (++server->peer_count == PEERS_MAX)
        (void)uv_poll_stop(&server->accepting);
    if (!uv_is_active((uv_handle_t *)&server->timer))
        (void)uv_timer_start(&server->timer, server_on_timer, LOOK_MSEC, LOOK_MSEC);
}

/* ---- life ---- */

static void server_on_closed(uv_handle_t *handle)
{
    struct limits_server *server = handle->data;

    if (--server->open_handles > 0)
        return;
    aq_closep(&server->listener);
    free(server->path);
    free(server);
}

/* The socket's file stays: without it a program could name another one to the library. */
void limits_server_free(struct limits_server *server)
{
    if (!server)
        return;
    devices_cancel(server->asking);
    LIST_FOREACH(link, &server->peers)
        server_close_peer(LIST_ENTRY(link, struct peer, link));
    map_done(&server->refused);
    server->open_handles = 2;
    uv_close((uv_handle_t *)&server->accepting, server_on_closed);
    uv_close((uv_handle_t *)&server->timer, server_on_closed);
}

static int server_listen(struct limits_server *server, struct aq_error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    server->path = aq_format("%s/gpu.sock", server->limits->conf.folder);
    if (strlen(server->path) >= sizeof(address.sun_path))
        return aq_fail_field(err, ENAMETOOLONG, "plugin.run",
                             "the path '%s' is too long for a socket", server->path);
    memcpy(address.sun_path, server->path, strlen(server->path));
    server->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(server->path);
    if (server->listener < 0
        || bind(server->listener, (const struct sockaddr *)&address, sizeof(address)) < 0
        || chmod(server->path, 0666) < 0 /* any user of a container */
        || listen(server->listener, PEERS_MAX) < 0)
        return aq_fail_errno(err, "listen on '%s'", server->path);
    return 0;
}

int limits_server_new(struct limits *limits, struct limits_server **ret, struct aq_error *err)
{
    struct limits_server *server = aq_alloc(sizeof(*server));
    int r;

    server->limits = limits;
    server->listener = -1;
    list_init(&server->peers);
    r = server_listen(server, err);
    if (r == 0 && uv_poll_init(limits->conf.loop, &server->accepting, server->listener) < 0)
        r = aq_fail(err, EIO, "the socket '%s' cannot be waited for", server->path);
    if (r < 0) {
        aq_closep(&server->listener);
        free(server->path);
        free(server);
        return r;
    }
    (void)uv_timer_init(limits->conf.loop, &server->timer);
    server->accepting.data = server->timer.data = server;
    (void)uv_poll_start(&server->accepting, UV_READABLE, server_on_connection);
    *ret = server;
    return 0;
}
