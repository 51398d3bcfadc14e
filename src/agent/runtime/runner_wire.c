/* SPDX-License-Identifier: Apache-2.0 */
/* runner_wire.c - one connection to aliquot-runner, or a monitor: whole packets, none lost */
#include "agent/runtime/runner_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/runtime/packets.h"
#include "agent/runtime/runner_client.h"
#include "base/fs.h"
#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sender.h"

#define QUEUE_MAX ((size_t)1 << 20) /* bytes; who sends more has not waited for on_drain() */

struct runner_wire_queued {
    struct list link;
    size_t len;
    char packet[];
};

struct runner_wire {
    uv_poll_t poll;
    int fd;
    size_t piece_max;
    const struct runner_wire_ops *ops;
    void *data;
    pid_t keeper; /* who has to be the sender's parent; 0 = that is known, or need not be */
    struct list queue;
    size_t queued; /* bytes of it */
    bool is_paused, is_closed;
};

static void runner_wire_on_ready(uv_poll_t *poll, int status, int events);

static void runner_wire_watch(struct runner_wire *w)
{
    int events = (w->is_paused ? 0 : UV_READABLE) | (list_is_empty(&w->queue) ? 0 : UV_WRITABLE);

    if (events && !w->is_closed)
        (void)uv_poll_start(&w->poll, events, runner_wire_on_ready);
    else
        (void)uv_poll_stop(&w->poll);
}

/* 0 = sent, -EAGAIN = not now, -EPIPE. */
static int runner_wire_send_now(struct runner_wire *w, const void *packet, size_t len)
{
    ssize_t put;

    do
        put = send(w->fd, packet, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (put < 0 && errno == EINTR);
    return put >= 0 ? 0 : errno == EAGAIN ? -EAGAIN : -EPIPE;
}

static void runner_wire_flush(struct runner_wire *w)
{
    LIST_FOREACH(it, &w->queue) {
        struct runner_wire_queued *q = LIST_ENTRY(it, struct runner_wire_queued, link);

        if (runner_wire_send_now(w, q->packet, q->len) == -EAGAIN)
            return;
        list_remove(&q->link);
        w->queued -= q->len;
        free(q);
    }
    runner_wire_watch(w);
    w->ops->on_drain(w->data);
}

static pid_t runner_wire_find_parent(pid_t pid)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *at;
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fs_read(AT_FDCWD, path, 4096, &text, NULL) < 0 || !(at = strrchr(text.data, ')')))
        return 0;
    return strlen(at) > 4 ? (pid_t)strtol(at + 4, NULL, 10) : 0; /* ") S PARENT" */
}

/* The first packet comes from process 1 itself, which the monitor has looked at, and not from
 * another one that was left the socket. More of the same connection need not be asked.
 */
static bool runner_wire_is_trusted(struct runner_wire *w, pid_t sender)
{
    pid_t parent = w->keeper ? runner_wire_find_parent(sender) : 0;
    bool is_child = parent == w->keeper;

    if (!is_child && parent) /* else it has ended meanwhile */
        log_warning("process %d answers in place of the runner", (int)sender);
    if (is_child)
        w->keeper = 0;
    return is_child;
}

static void runner_wire_on_ready(uv_poll_t *poll, int status, int events)
{
    struct runner_wire *w = poll->data;
    char packet[1 + RUNNER_OUTPUT_MAX];
    pid_t sender = 0;
    ssize_t got;

    if ((events & UV_WRITABLE) && status == 0 && !list_is_empty(&w->queue)) {
        runner_wire_flush(w);
        if (w->is_closed)
            return;
    }
    if (!(events & UV_READABLE) && status == 0)
        return;
    got = status < 0 ? 0 : sender_receive(w->fd, packet, sizeof(packet), &sender);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0 && !runner_wire_is_trusted(w, sender))
        got = 0;
    if (got <= 0)
        (void)uv_poll_stop(poll);
    w->ops->on_packet(w->data, packet, got < 0 ? 0 : (size_t)got);
}

int runner_wire_open(uv_loop_t *loop, const char *directory, const char *socket, pid_t keeper,
                     size_t piece_max, const struct runner_wire_ops *ops, void *data,
                     struct runner_wire **ret, struct aq_error *err)
{
    struct runner_wire *w = aq_alloc(sizeof(*w));
    int fd = packets_connect_to(directory, socket, err);
    int r = fd < 0 ? fd : uv_poll_init(loop, &w->poll, fd);

    if (r < 0) {
        free(w);
        if (fd >= 0) {
            aq_closep(&fd);
            return aq_fail(err, -r, "watch a runner's socket: %s", uv_strerror(r));
        }
        if (r != -ECONNREFUSED && r != -ENOENT)
            return r;
        return aq_fail(err, ENOTCONN,
                       "nothing takes commands there: it has ended, or an agent of an earlier "
                       "release has started it");
    }
    w->poll.data = w;
    w->fd = fd;
    w->keeper = keeper;
    w->piece_max = piece_max;
    w->ops = ops;
    w->data = data;
    list_init(&w->queue);
    runner_wire_watch(w);
    *ret = w;
    return 0;
}

int runner_wire_send(struct runner_wire *w, const void *packet, size_t len)
{
    int r = list_is_empty(&w->queue) ? runner_wire_send_now(w, packet, len) : -EAGAIN;
    struct runner_wire_queued *q;

    if (r != -EAGAIN)
        return r;
    if (w->queued > QUEUE_MAX)
        return -ENOBUFS;
    q = aq_alloc(sizeof(*q) + len);
    q->len = len;
    memcpy(q->packet, packet, len);
    list_add(&w->queue, &q->link);
    w->queued += len;
    runner_wire_watch(w);
    return 1;
}

int runner_wire_send_bytes(struct runner_wire *w, char type, const char *bytes, size_t len)
{
    char packet[1 + RUNNER_OUTPUT_MAX] = { type };
    int r = 0;

    do {
        size_t part = AQ_MIN(len, w->piece_max);

        if (part)
            memcpy(packet + 1, bytes, part);
        r = runner_wire_send(w, packet, part + 1);
        bytes += part;
        len -= part;
    } while (len && r >= 0);
    return r;
}

void runner_wire_pause(struct runner_wire *w, bool paused)
{
    w->is_paused = paused;
    runner_wire_watch(w);
}

static void runner_wire_on_closed(uv_handle_t *handle)
{
    struct runner_wire *w = handle->data;

    aq_closep(&w->fd);
    LIST_FOREACH(it, &w->queue)
        free(LIST_ENTRY(it, struct runner_wire_queued, link));
    free(w);
}

void runner_wire_close(struct runner_wire *w)
{
    if (!w)
        return;
    w->is_closed = true;
    (void)uv_poll_stop(&w->poll);
    uv_close((uv_handle_t *)&w->poll, runner_wire_on_closed);
}
