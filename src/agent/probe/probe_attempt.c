/* SPDX-License-Identifier: Apache-2.0 */
/* probe_attempt.c - see probe_attempt.h */
#include "agent/probe/probe_attempt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/data/app_socket.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "http/defer.h"
#include "http/message.h"
#include "http/stream.h"

#define HEAD_MAX (16u << 10) /* bytes of heads, interim answers included */
#define HEADERS_MAX 100
#define OPEN_MSEC 20     /* that a connection without a path must last */
#define BODY_MSEC 100    /* for the body, so that small ones are not cut */
#define LOCATION_MAX 100 /* bytes that are shown */

struct probe_attempt {
    uv_loop_t *loop;
    const struct probe_target *target;
    struct app_socket *connecting;
    struct stream *stream;
    struct message_parser *parser; /* NULL without a path */
    struct defer *timer;           /* NULL once it has come */
    size_t received;               /* bytes */
    bool has_answer; /* 'outcome' is known; the body is read, or the connection lasts */
    enum probe_outcome outcome;
    struct strbuf text;
    probe_attempt_fn *fn;
    void *data;
};

static void probe_attempt_free(struct probe_attempt *a)
{
    app_socket_cancel(a->connecting);
    stream_close(a->stream);
    message_parser_free(a->parser);
    defer_cancel(a->timer);
    strbuf_done(&a->text);
    free(a);
}

void probe_attempt_cancel(struct probe_attempt *a)
{
    if (a)
        probe_attempt_free(a);
}

static void probe_attempt_end(struct probe_attempt *a)
{
    struct strbuf text = a->text;
    enum probe_outcome outcome = a->outcome;
    probe_attempt_fn *fn = a->fn;
    void *data = a->data;

    strbuf_init(&a->text);
    probe_attempt_free(a);
    if (text.len)
        utf8_make_printable(text.data); /* parts of it are the program's */
    fn(data, outcome, text.len ? text.data : NULL);
    strbuf_done(&text);
}

static void probe_attempt_begin_text(struct probe_attempt *a)
{
    if (a->target->path)
        strbuf_addf(&a->text, "GET %s: ", a->target->path);
    else
        strbuf_addf(&a->text, "port %u: ", (unsigned)a->target->port);
}

static void probe_attempt_fail(struct probe_attempt *a, enum probe_outcome outcome,
                               const char *text)
{
    probe_attempt_begin_text(a);
    strbuf_adds(&a->text, text);
    a->outcome = outcome;
    probe_attempt_end(a);
}

static void probe_attempt_on_timer(void *data)
{
    struct probe_attempt *a = data;

    a->timer = NULL;
    if (a->has_answer) {
        probe_attempt_end(a);
        return;
    }
    probe_attempt_begin_text(a);
    strbuf_addf(&a->text, "no %s within %.3g s",
                a->received       ? "complete answer"
                : a->target->path ? "answer"
                                  : "connection",
                (double)a->target->timeout_usec / USEC_PER_SEC);
    a->outcome = PROBE_LATE;
    probe_attempt_end(a);
}

/* The outcome is known; the connection goes on for a moment. */
static void probe_attempt_settle(struct probe_attempt *a, enum probe_outcome outcome, unsigned msec)
{
    a->has_answer = true;
    a->outcome = outcome;
    defer_cancel(a->timer);
    a->timer = defer_call(a->loop, msec, probe_attempt_on_timer, a);
}

/* ---- the answer ---- */

static void probe_attempt_take_head(struct probe_attempt *a, const struct message_head *head)
{
    const char *location = head->status / 100 == 3 ? message_get_header(head, "Location") : NULL;

    probe_attempt_settle(a, head->status == a->target->status ? PROBE_GOOD : PROBE_WRONG,
                         BODY_MSEC);
    if (a->outcome == PROBE_GOOD)
        return;
    probe_attempt_begin_text(a);
    strbuf_addf(&a->text, "%d instead of %d", head->status, a->target->status);
    if (location)
        strbuf_addf(&a->text, ", a redirect to '%.*s%s'", LOCATION_MAX, location,
                    strlen(location) > LOCATION_MAX ? "..." : "");
}

/* True once the connection is of no more use. */
static bool probe_attempt_feed(struct probe_attempt *a, const char *bytes, size_t len)
{
    struct message_piece piece;

    do { /* also without bytes left: the end of the message may follow its last piece */
        struct aq_error err = { 0 };
        ssize_t used = message_feed(a->parser, bytes, len, &piece, &err);

        if (used < 0) {
            if (a->has_answer)
                return true; /* of the body, which does not count */
            probe_attempt_begin_text(a);
            strbuf_addf(&a->text, "cannot read the answer: %s", err.text);
            a->outcome = PROBE_WRONG;
            return true;
        }
        bytes += used;
        len -= (size_t)used;
        if (piece.event == MESSAGE_HEAD) {
            const struct message_head *head = message_get_head(a->parser);

            if (head->status >= 200 || head->status == 101)
                probe_attempt_take_head(a, head);
        } else if (piece.event == MESSAGE_END) {
            if (a->has_answer)
                return true;
            message_reset(a->parser); /* of an interim answer, such as 103 */
        }
    } while (piece.event != MESSAGE_MORE);
    return false;
}

static void probe_attempt_on_read(void *data, const char *bytes, size_t len)
{
    struct probe_attempt *a = data;

    a->received += len;
    if (!a->parser || probe_attempt_feed(a, bytes, len)
        || (a->has_answer && a->received > HEAD_MAX)) {
        probe_attempt_end(a); /* without a path a greeting is an answer */
        return;
    }
    if (!a->has_answer && a->received > HEAD_MAX)
        probe_attempt_fail(a, PROBE_WRONG, "the head of the answer is longer than 16 KiB");
}

static void probe_attempt_on_end(void *data, const struct aq_error *err)
{
    struct probe_attempt *a = data;

    if (a->parser && a->has_answer)
        probe_attempt_end(a);
    else if (err->code)
        probe_attempt_fail(a, PROBE_REFUSED, "the connection was reset");
    else if (a->received)
        probe_attempt_fail(a, PROBE_WRONG, "the connection was closed within the answer");
    else
        probe_attempt_fail(a, PROBE_REFUSED,
                           a->parser ? "the connection was closed without an answer"
                                     : "the connection was closed at once");
}

/* ---- the connection ---- */

static void probe_attempt_ask(struct probe_attempt *a)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf request = STRBUF_INIT;

    strbuf_addf(&request,
                "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: aliquot-agent\r\n"
                "Accept: */*\r\nConnection: close\r\n\r\n",
                a->target->path, (unsigned)a->target->port);
    (void)stream_write(a->stream, request.data, request.len); /* on_end() tells of failures */
}

static void probe_attempt_on_connected(void *data, int fd, const struct aq_error *err)
{
    static const struct stream_ops ops = { .on_read = probe_attempt_on_read,
                                           .on_end = probe_attempt_on_end,
                                           .hears_out = true };
    struct probe_attempt *a = data;
    struct aq_error why = { 0 };

    a->connecting = NULL;
    if (err) {
        strbuf_adds(&a->text, err->text);
        a->outcome = err->code == ECONNREFUSED || err->code == ECONNRESET ? PROBE_REFUSED
                     : err->code == ETIMEDOUT                             ? PROBE_LATE
                                                                          : PROBE_WRONG;
        probe_attempt_end(a);
        return;
    }
    if (stream_adopt(a->loop, fd, &ops, a, &a->stream, &why) < 0) {
        aq_closep(&fd);
        probe_attempt_fail(a, PROBE_UNKNOWN, why.text);
        return;
    }
    if (a->target->path)
        probe_attempt_ask(a);
    else
        probe_attempt_settle(a, PROBE_GOOD, OPEN_MSEC);
}

int probe_attempt_start(uv_loop_t *loop, int ns, const struct probe_target *target,
                        probe_attempt_fn *fn, void *data, struct probe_attempt **ret,
                        struct aq_error *err)
{
    static const struct message_limits limits = { .line_max = HEAD_MAX,
                                                  .head_max = HEAD_MAX,
                                                  .headers_max = HEADERS_MAX,
                                                  .body_max = UINT64_MAX };
    struct probe_attempt *a = aq_alloc(sizeof(*a));
    int r;

    *a = (struct probe_attempt){ .loop = loop, .target = target, .fn = fn, .data = data };
    strbuf_init(&a->text);
    r = target->path ? message_parser_new(false, &limits, &a->parser, err) : 0;
    if (r == 0)
        r = app_socket_connect(loop, ns, target->port, probe_attempt_on_connected, a,
                               &a->connecting, err);
    if (r < 0) {
        probe_attempt_free(a);
        return r;
    }
    a->timer = defer_call(loop, (unsigned)(target->timeout_usec / USEC_PER_MSEC),
                          probe_attempt_on_timer, a);
    *ret = a;
    return 0;
}
