/* SPDX-License-Identifier: Apache-2.0 */
/* One request that is passed on: its body, the answer, and the loss of its leader.
 *
 * The body is read once the connection to the leader is open, so that a request that did not reach
 * the leader can be repeated. A client that expects "100 Continue" gets the leader's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/memory.h"
#include "http/websocket.h"
#include "manager/forward/forward_internal.h"

#define TRIES_MAX 3 /* with one leader, which closes connections without an answer */
#define RETRY_SEC 5

static void forwarded_drop_kept(struct forwarded *fw)
{
    fw->forward->kept_bytes -= fw->kept.len;
    strbuf_done(&fw->kept);
    fw->is_kept = false;
}

static void forwarded_free(struct forwarded *fw)
{
    forward_leave(fw);
    list_remove(&fw->link);
    exchange_cancel(fw->exchange);
    pump_done(&fw->pump);
    forwarded_drop_kept(fw);
    free(fw);
}

void forwarded_cut(struct forwarded *fw)
{
    struct request *req = fw->req;

    if (fw->tunnel) {
        websocket_tunnel_cut(fw->tunnel); /* frees it */
        return;
    }
    forwarded_free(fw);
    request_abort(req);
}

static void forwarded_fail(struct forwarded *fw, const struct aq_error *err)
{
    struct request *req = fw->req;

    request_set_gone(req, NULL, NULL);
    forwarded_free(fw);
    request_fail(req, err);
}

static void forwarded_on_gone(struct request *req, void *data)
{
    (void)req;
    forwarded_cut(data);
}

/* ---- a leader that is lost ---- */

/* True if the request changes nothing at the leader, so that it can be repeated at any time. */
static bool forwarded_only_reads(const struct forwarded *fw)
{
    enum method method = request_get_method(fw->req);

    return (method == METHOD_GET || method == METHOD_HEAD) && !fw->has_body
           && !request_get_head(fw->req)->is_upgrade;
}

/* True if another leader may get the request after one that did not answer. */
static bool forwarded_is_repeatable(const struct forwarded *fw)
{
    if (fw->has_body && !fw->has_read)
        return true;
    return forwarded_only_reads(fw) || (fw->is_once && fw->is_kept)
           || (request_get_method(fw->req) == METHOD_OPTIONS && !fw->has_body);
}

static void forwarded_fail_lost(struct forwarded *fw)
{
    struct aq_error err;

    (void)aq_fail_kind(&err, EAGAIN, "bad-gateway",
                       "the leading manager was lost before it answered; the request may have been "
                       "processed: check before you repeat it");
    forwarded_fail(fw, &err);
}

void forwarded_refuse(struct forwarded *fw)
{
    struct aq_error err;

    if (fw->was_sent && !forwarded_only_reads(fw) && (!fw->has_body || fw->has_read)) {
        forwarded_fail_lost(fw);
        return;
    }
    request_add_header_int(fw->req, "Retry-After", RETRY_SEC);
    (void)aq_fail_kind(&err, EAGAIN, "service-unavailable",
                       "no manager of this cluster leads at the moment; repeat the request");
    forwarded_fail(fw, &err);
}

void forwarded_reroute(struct forwarded *fw)
{
    struct request *req = fw->req;
    struct strbuf body = fw->kept;
    bool is_reading = fw->is_reading;
    int r;

    fw->forward->kept_bytes -= body.len;
    strbuf_init(&fw->kept);
    forwarded_free(fw);
    r = is_reading ? request_reroute_read(req, body.data, body.len) : request_reroute(req);
    if (r < 0)
        request_abort(req);
    strbuf_done(&body);
}

bool forwarded_may_be_sent(const struct forwarded *fw)
{
    const struct forward *f = fw->forward;

    /* A request that another manager passed on is not passed on again, as two managers that take
     * each other for the leader would loop. It waits for this manager to lead.
     */
    if (!f->has_leader || request_is_passed_on(fw->req))
        return false;
    return !fw->tries || fw->turn != f->turn || (forwarded_only_reads(fw) && fw->tries < TRIES_MAX);
}

/* Repeat an unanswered request, hold it, or fail it. 'is_sent': a leader may have processed it. */
static void forwarded_go_on(struct forwarded *fw, bool is_sent)
{
    fw->is_giving = false;
    fw->head = NULL;
    if (is_sent && !forwarded_is_repeatable(fw)) {
        forwarded_fail_lost(fw);
        return;
    }
    fw->tries += is_sent;
    fw->was_sent = fw->was_sent || is_sent;
    fw->deadline = is_sent ? 0 : fw->deadline;
    if (fw->forward->is_released) {
        forwarded_reroute(fw);
        return;
    }
    if (fw->is_reading && !fw->has_ended)
        request_pause_body(fw->req);
    forward_hold(fw);
}

/* An event stream does not end by itself, and a former leader has no further events. */
void forwarded_leave_leader(struct forwarded *fw)
{
    struct request *req = fw->req;

    if (fw->tunnel)
        websocket_tunnel_close(fw->tunnel, WEBSOCKET_RESTART,
                               "the leading manager is changing; connect again");
    else if (!fw->is_begun) {
        struct exchange *exchange = AQ_TAKE(fw->exchange);
        bool is_sent = exchange_is_sent(exchange);

        exchange_cancel(exchange);
        forwarded_go_on(fw, is_sent);
    } else if (fw->is_events) {
        forwarded_free(fw);
        request_end(req);
    }
}

/* ---- the answer ---- */

static void forwarded_on_tunnel_end(void *data)
{
    forwarded_free(data);
}

static void forwarded_begin_tunnel(struct forwarded *fw, const struct message_head *head)
{
    static const struct websocket_tunnel_ops ops = {
        .gone_code = WEBSOCKET_RESTART,
        .gone_reason = "the leading manager was lost; connect again",
        .on_end = forwarded_on_tunnel_end,
    };

    forwarded_add_upgrade_headers(fw->req, head);
    fw->tunnel = websocket_tunnel_begin(fw->req, AQ_TAKE(fw->exchange), &ops, fw);
    if (!fw->tunnel)
        forwarded_cut(fw);
}

static void forwarded_on_client_drain(struct request *req, void *data)
{
    struct forwarded *fw = data;

    (void)req;
    pump_drained(&fw->pump, PUMP_CLIENT);
}

static void forwarded_begin_answer(struct forwarded *fw, const struct message_head *head,
                                   const char *bytes, size_t len)
{
    fw->head = NULL;
    fw->is_begun = true;
    forwarded_drop_kept(fw);
    request_begin_as(fw->req, head, bytes, len, forwarded_on_client_drain, fw);
    (void)pump_open(&fw->pump, PUMP_CLIENT);
}

static void forwarded_on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct forwarded *fw = data;
    const char *type = message_get_header(head, "Content-Type");

    (void)ex;
    fw->forward->is_reached = true;
    fw->is_events = type && strncasecmp(type, "text/event-stream", 17) == 0;
    if (head->status == 101) {
        fw->is_begun = true;
        if (forwarded_is_websocket(fw->req))
            forwarded_begin_tunnel(fw, head);
    } else if (head->content_length && request_get_method(fw->req) != METHOD_HEAD) {
        fw->head = head; /* the body follows: one write for both */
    } else {
        forwarded_begin_answer(fw, head, NULL, 0);
    }
}

static void forwarded_on_answer(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct forwarded *fw = data;

    (void)ex;
    if (fw->head)
        forwarded_begin_answer(fw, fw->head, bytes, len);
    else if (pump_give(&fw->pump, PUMP_KERNEL, bytes, len) < 0)
        forwarded_cut(fw);
}

static void forwarded_on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct forwarded *fw = data;
    struct request *req = fw->req;
    bool is_events = fw->is_events, is_sent = exchange_is_sent(ex);

    fw->exchange = NULL;
    pump_part(&fw->pump, PUMP_KERNEL);
    if (fw->head && !err->code) /* such as 304, which has a Content-Length and no body */
        forwarded_begin_answer(fw, fw->head, NULL, 0);
    if (!fw->is_begun) {
        log_limited(&fw->forward->log, LOG_LEVEL_WARNING, "no answer from the leader at %s: %s",
                    fw->forward->leader, err->text);
        forward_note_failure(fw->forward, is_sent);
        forwarded_go_on(fw, is_sent);
        return;
    }
    request_set_gone(req, NULL, NULL);
    forwarded_free(fw);
    if (err->code && !is_events)
        request_abort(req);
    else
        request_end(req);
}

/* ---- the body ---- */

/* Keep the body while the request may be sent to another leader. */
static void forwarded_keep(struct forwarded *fw, const char *bytes, size_t len)
{
    struct forward *f = fw->forward;

    if (!fw->is_kept)
        return;
    if (fw->kept.len + len > FORWARD_KEPT_MAX || f->kept_bytes + len > FORWARD_KEPT_ALL_MAX) {
        forwarded_drop_kept(fw);
        return;
    }
    strbuf_add(&fw->kept, bytes, len);
    f->kept_bytes += len;
}

/* The client's body is malformed or too slow: answer that, unless the client has gone. */
static void forwarded_break_off(struct forwarded *fw, int status)
{
    struct aq_error err;

    if (request_is_gone(fw->req) || fw->is_begun) {
        forwarded_cut(fw);
        return;
    }
    if (status == -ETIMEDOUT)
        (void)aq_fail_kind(&err, ETIMEDOUT, "request-timeout",
                           "The request's body came too slowly");
    else
        (void)aq_fail_kind(&err, EBADMSG, "generic-bad-request",
                           "malformed HTTP: the body cannot be read");
    forwarded_fail(fw, &err);
}

static void forwarded_on_body(struct request *req, const char *bytes, size_t len, int status,
                              void *data)
{
    struct forwarded *fw = data;

    if (status < 0) {
        forwarded_break_off(fw, status);
    } else if (len) {
        fw->has_read = true;
        forwarded_keep(fw, bytes, len);
        (void)pump_give(&fw->pump, PUMP_CLIENT, bytes, len); /* on_end has the error */
    } else {
        fw->has_read = fw->has_ended = true;
        request_set_gone(req, forwarded_on_gone, fw);
        pump_finish(&fw->pump, PUMP_CLIENT);
    }
}

/* Give the exchange the kept part of the body first. */
static void forwarded_give_body(struct forwarded *fw)
{
    fw->is_giving = true;
    (void)pump_open(&fw->pump, PUMP_KERNEL);
    (void)exchange_write(fw->exchange, fw->kept.data, fw->kept.len);
    if (fw->has_ended)
        pump_finish(&fw->pump, PUMP_CLIENT);
    else if (fw->is_reading)
        request_resume_body(fw->req);
    else
        request_read_body(fw->req, forwarded_on_body, fw);
    fw->is_reading = true;
}

static bool forwarded_expects_continue(const struct forwarded *fw)
{
    return fw->has_body && request_get_head(fw->req)->expect_continue && !fw->is_reading;
}

static void forwarded_on_continue(struct exchange *ex, void *data)
{
    struct forwarded *fw = data;

    (void)ex;
    if (fw->has_body && !fw->is_giving && !fw->is_begun)
        forwarded_give_body(fw);
}

static void forwarded_on_written(struct exchange *ex, void *data)
{
    struct forwarded *fw = data;

    (void)ex;
    if (fw->is_giving)
        pump_drained(&fw->pump, PUMP_KERNEL);
    else if (!forwarded_expects_continue(fw) && !fw->is_begun)
        forwarded_give_body(fw);
}

/* ---- the request ---- */

static const struct exchange_ops forwarded_ops = {
    .on_head = forwarded_on_head,
    .on_body = forwarded_on_answer,
    .on_continue = forwarded_on_continue,
    .on_end = forwarded_on_end,
    .on_drain = forwarded_on_written,
};

void forwarded_send(struct forwarded *fw)
{
    struct forward *f = fw->forward;
    const struct message_head *head = request_get_head(fw->req);
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT, url = STRBUF_INIT;
    struct client_request want = { .method = request_get_method(fw->req),
                                   .verb = head->method_text,
                                   .target = head->target,
                                   .host = message_get_header(head, "Host"),
                                   .stream_body = fw->has_body,
                                   .is_sized = !head->is_chunked,
                                   .body_length = head->content_length,
                                   .body_max = UINT64_MAX,
                                   .is_sent_once = !forwarded_only_reads(fw) };
    struct aq_error err = { .code = 0 };
    char owner[CLIENT_ADDRESS_MAX];

    forward_name_client(f, fw->req, owner);
    want.owner = owner;
    forward_leave(fw);
    list_remove(&fw->link);
    list_add(&f->sent, &fw->link);
    fw->tries = fw->turn == f->turn ? fw->tries : 0;
    fw->turn = f->turn;
    fw->place = f->place;
    strbuf_addf(&url, "http%s://%s", f->options.tls ? "s" : "", f->leader);
    forwarded_write_headers(fw, forwarded_expects_continue(fw), &headers);
    want.url = url.data;
    want.headers = headers.data;
    if (client_send(f->client, &want, &forwarded_ops, fw, &fw->exchange, &err) < 0) {
        log_limited(&f->log, LOG_LEVEL_ERR, "cannot connect to the leader at %s: %s", f->leader,
                    err.text);
        f->is_reached = false;
        forwarded_go_on(fw, false);
        return;
    }
    pump_done(&fw->pump);
    pump_init(&fw->pump);
    pump_join(&fw->pump, PUMP_CLIENT, &request_pump, fw->req);
    pump_join(&fw->pump, PUMP_KERNEL, &exchange_pump, fw->exchange);
    if (fw->has_body && exchange_is_sent(fw->exchange) && !forwarded_expects_continue(fw))
        forwarded_give_body(fw);
}

/* True if the manager keeps the answer, so that a repeated request gets the same one. */
static bool forwarded_is_answered_once(const struct forward *f, struct request *req)
{
    const char *path = request_get_path(req);
    struct route_match match = { 0 };

    if (request_get_header(req, "Idempotency-Key"))
        return true;
    return f->options.answered_once
           && router_match(f->options.answered_once, request_get_method(req), path, strlen(path),
                           request_get_arena(req), &match, NULL)
                  == 0;
}

void forwarded_start(struct request *req, void *data)
{
    const struct message_head *head = request_get_head(req);
    struct forward *f = data;
    struct forwarded *fw = aq_alloc(sizeof(*fw));

    fw->forward = f;
    fw->req = req;
    fw->has_body = head->is_chunked || head->content_length;
    fw->is_once = forwarded_is_answered_once(f, req);
    fw->is_kept = fw->is_once && head->content_length <= FORWARD_KEPT_MAX;
    strbuf_init(&fw->kept);
    list_init(&fw->link);
    pump_init(&fw->pump);
    request_set_gone(req, forwarded_on_gone, fw);
    if (forwarded_may_be_sent(fw))
        forwarded_send(fw);
    else
        forwarded_go_on(fw, false);
}
