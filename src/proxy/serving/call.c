/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - a request to a model service: from its head to the replica that it is sent to
 *
 * The head waits in the browser's pump, together with as much of the body as has come, until there is a
 * connection; so both go out by one write, and a connection that could not be made costs nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "proxy/head.h"
#include "proxy/serving/service.h"
#include "serving/prompt_scan.h"

#define TRIES_MAX 3 /* replicas that are tried for a request */
#define RETRY_SEC 1
#define SLOW_USEC (15 * USEC_PER_SEC) /* a body may be slow for so long */
#define SLOW_BYTES_PER_SEC 1024
#define RESEND_MAX (64u << 10) /* bytes of a body that are kept for a second connection */

/* ---- the end ---- */

void call_end(struct call *call)
{
    struct served *service = call->service;
    struct browser *b = call->browser;

    if (call->state == CALL_WAITS)
        queue_remove(call);
    if (call->conn)
        conn_close(call->conn);
    if (call->replica)
        replica_count(call->replica, -1);
    list_remove(&call->link);
    call->token->calls--;
    b->call = NULL;
    app_part(b);
    strbuf_done(&call->again);
    strbuf_done(&call->chunks);
    strbuf_done(&call->scan);
    usage_scan_done(&call->usage);
    free(call);
    served_serve_queue(service);
}

/* A client that leaves an answer before its end has had what was said of its tokens so far. */
static void call_count_broken(struct call *call)
{
    call->service->use.broken++;
    call->service->totals.broken++;
    if (!call->replica)
        return;
    call->replica->use.broken++;
    call_count_tokens(call);
}

/* The client has gone, or is cut, in the middle of it; a connection that was upgraded has done its work. */
void call_drop(struct browser *b)
{
    struct call *call = b->call;

    if (!call)
        return;
    if (b->is_upgraded)
        call_count_answer(call);
    else
        call_count_broken(call);
    call_end(call);
}

void call_refuse(struct call *call, int status, const char *code, unsigned retry_sec,
                 const char *text)
{
    struct browser *b = call->browser;

    call_end(call);
    b->turn.is_passed = false;
    serving_refuse(b, status, code, retry_sec, text);
    browser_go_on(b);
}

/* ---- to a replica ---- */

static size_t call_choose(const struct call *call)
{
    struct served *service = call->service;

    return call->has_key ? balance_choose_by_key(service->entries, service->entry_count, call->key)
                         : balance_choose(service->entries, service->entry_count, service->turn);
}

static void call_connect(struct call *call, struct replica *replica)
{
    struct aq_error err = { 0 };
    int r;

    call->service->turn = replica->at + 1;
    call->state = CALL_CONNECTS;
    call->replica = replica;
    replica->use.requests += !call->is_fresh; /* sent again, it is the same request */
    replica_count(replica, 1);
    r = conn_take(replica, call, &err);
    call->was_used = r == 1;
    if (r < 0)
        call_on_unconnected(call, &err);
    else if (r == 1)
        call_on_connected(call);
}

/* To the best replica, or to the end of the queue. */
static void call_send(struct call *call)
{
    struct served *service = call->service;
    size_t at = service->waiting_count ? BALANCE_NONE : call_choose(call);

    if (at == BALANCE_NONE)
        (void)queue_add(call);
    else
        call_connect(call, service->entry_replicas[at]);
}

void call_on_connected(struct call *call)
{
    struct browser *b = call->browser;

    call->state = CALL_SENT;
    call->sent_usec = call->moved_usec = call->awaited_usec = clock_monotonic_usec();
    app_expect_answer(b);
    pump_join(&b->pump, PUMP_KERNEL, &app_link_pump, conn_link(call->conn));
    (void)pump_open(&b->pump, PUMP_KERNEL); /* conn_on_close() tells of a failure */
    browser_go_on(b);
}

/* Is there a replica that has not just failed? */
static bool served_has_other(const struct served *service)
{
    for (size_t i = 0; i < service->entry_count; i++)
        if (service->entries[i].rank < BALANCE_EJECTED)
            return true;
    return false;
}

/* The replica leaves the call, which has not reached it. */
static void call_leave_replica(struct call *call)
{
    replica_count(AQ_TAKE(call->replica), -1);
    call->tries++;
}

void call_on_unconnected(struct call *call, const struct aq_error *err)
{
    struct served *service = call->service;
    struct replica *replica = call->replica;
    char text[480];

    replica_failed(replica);
    call_leave_replica(call);
    if (call->tries < TRIES_MAX && service->entry_count > 1 && served_has_other(service)) {
        call_send(call);
        return;
    }
    served_count_refused(service, call->token);
    (void)snprintf(text, sizeof(text), "The replica of the model service cannot be reached: %s",
                   err->text);
    call_refuse(call, 503, "replica_unreachable", RETRY_SEC, text);
}

/* A request may have met the end of a connection that was used before. One that may be begun twice
 * (RFC 9110, 9.2.2) goes to a new connection; any other may have been begun.
 */
void call_on_unanswered(struct call *call)
{
    struct browser *b = call->browser;
    bool is_closed = !call->conn;

    if (is_closed && call->was_used && call->is_resendable && call->tries < TRIES_MAX
        && !message_has_begun(b->answer)) {
        app_part(b);
        (void)pump_give(&b->pump, PUMP_CLIENT, call->again.data, call->again.len);
        call_leave_replica(call);
        call->is_fresh = true;
        call_send(call);
        return;
    }
    if (is_closed && !call->was_used)
        replica_failed(call->replica);
    else
        call->replica->use.failures++;
    call_count_broken(call);
    call_refuse(call, 502, "bad_gateway", 0,
                is_closed
                    ? "The replica of the model service closed the connection without an answer."
                    : "The answer of the model service's replica is not HTTP.");
}

void served_serve_queue(struct served *service)
{
    struct call *call;
    size_t at;

    if (service->is_serving)
        return; /* the loop below goes on */
    service->is_serving = true;
    while ((call = queue_next(service)) && (at = call_choose(call)) != BALANCE_NONE) {
        int64_t now = clock_monotonic_usec(), waited = now - call->queued_usec;
        int64_t open = service->open_usec ? service->open_usec : now;

        call->start_usec += AQ_MIN(AQ_MAX(open - call->queued_usec, 0), waited);
        call->queue_usec += waited - AQ_MIN(AQ_MAX(open - call->queued_usec, 0), waited);
        queue_take(call);
        call_connect(call, service->entry_replicas[at]);
    }
    service->is_serving = false;
}

/* ---- from the client ---- */

/* The beginning of the body as far as it is there; false: more is needed for the key. */
static bool call_find_key(struct call *call, const struct message_piece *piece)
{
    bool is_last = piece->event == MESSAGE_END;
    enum prompt_found found;

    if (call->service->affinity != AFFINITY_PROMPT)
        return true;
    if (piece->event == MESSAGE_BODY)
        strbuf_add(&call->scan, piece->bytes, AQ_MIN(piece->len, PROMPT_SCAN_MAX - call->scan.len));
    if (!is_last && call->scan.len < call->scan_next)
        return false; /* a body that comes byte by byte is not read again for each */
    call->scan_next = AQ_MIN(2 * call->scan.len, (size_t)PROMPT_SCAN_MAX);
    found = prompt_scan(call->scan.data, call->scan.len, is_last, &call->key);
    call->has_key = found == PROMPT_KEY;
    return found != PROMPT_MORE;
}

/* To the replica, or to wait for it. conn_on_close() tells of the connection's end, after its last words. */
static int call_pass(struct call *call, const char *bytes, size_t len)
{
    struct pump *pump = &call->browser->pump;
    const struct strbuf *waiting = &pump->ends[PUMP_KERNEL].early;
    size_t had = waiting->len;
    int r = len ? pump_give(pump, PUMP_CLIENT, bytes, len) : 0;

    if (call->state == CALL_WAITS)
        queue_grow(call, waiting->len - had);
    return r == -EPIPE ? 0 : r;
}

/* Chunks are framed again, without their extensions and trailers: the connection to a replica is shared
 * by clients, and a server that does not read trailers would take one for the next request.
 */
static void call_add_chunk(struct call *call, const struct message_piece *piece)
{
    if (piece->event == MESSAGE_BODY && piece->len) {
        strbuf_addf(&call->chunks, "%zx\r\n", piece->len);
        strbuf_add(&call->chunks, piece->bytes, piece->len);
        strbuf_adds(&call->chunks, "\r\n");
    } else if (piece->event == MESSAGE_END) {
        strbuf_adds(&call->chunks, "0\r\n\r\n");
    }
}

int call_flush(struct call *call)
{
    int r = call_pass(call, call->chunks.data, call->chunks.len);

    strbuf_done(&call->chunks);
    return r;
}

int call_give(struct call *call, const char *bytes, size_t len, const struct message_piece *piece)
{
    struct browser *b = call->browser;
    bool is_chunked = message_get_head(b->request)->is_chunked;
    int r = is_chunked ? 0 : call_pass(call, bytes, len);

    b->proxy->counts.bytes_in += len;
    call->moved_usec = clock_monotonic_usec();
    call->sent_bytes += (int64_t)len;
    if (is_chunked)
        call_add_chunk(call, piece);
    else if (call->is_resendable && !call->status)
        strbuf_add(&call->again, bytes, len);
    if (call->state == CALL_READS && (len || piece->event == MESSAGE_END)
        && call_find_key(call, piece)) {
        defer_cancel(AQ_TAKE(b->timer));
        call_send(call);
    }
    return r;
}

static struct call *call_new(struct browser *b, struct served *service, struct token *token,
                             const struct message_head *head)
{
    struct call *call = aq_alloc(sizeof(*call));

    *call = (struct call){ .browser = b,
                           .service = service,
                           .token = token,
                           .begun_usec = clock_monotonic_usec(),
                           .again = STRBUF_INIT,
                           .chunks = STRBUF_INIT,
                           .scan = STRBUF_INIT };
    call->is_resendable = head->method != METHOD_POST && head->method != METHOD_PATCH
                          && !head->is_chunked && head->content_length <= RESEND_MAX
                          && !head->is_upgrade && !head->expect_continue;
    strbuf_init(&call->usage.held);
    list_init(&call->waiting_link);
    list_add(&service->calls, &call->link);
    token->calls++;
    token->use.requests++;
    service->use.arrived++;
    service->totals.requests++;
    b->call = call;
    b->has_right = true;
    b->turn.is_passed = true;
    b->proxy->counts.requests++;
    return call;
}

static void call_start(struct call *call, const struct message_head *head)
{
    struct browser *b = call->browser;
    const struct served *service = call->service;
    const struct head_origin origin = { .address = stream_get_address(b->stream),
                                        .is_tls = stream_is_tls(b->stream),
                                        .is_plain = call->token->budget > 0 };
    const char *value = service->affinity == AFFINITY_HEADER
                            ? message_get_header(head, service->affinity_header)
                            : NULL;
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

    head_write_request(head, &b->place, &origin, &call->again);
    (void)pump_give(&b->pump, PUMP_CLIENT, call->again.data, call->again.len);
    if (!call->is_resendable)
        strbuf_done(&call->again);
    if (value) {
        call->has_key = true;
        call->key = balance_hash(0, value, strlen(value));
    }
    if (!head->expect_continue)
        return;
    if (service->affinity == AFFINITY_PROMPT) {
        (void)pump_give(&b->pump, PUMP_KERNEL, go_on, sizeof(go_on) - 1);
    } else {
        defer_cancel(AQ_TAKE(b->timer));
        call_send(call); /* the replica says whether the body is wanted */
    }
}

static void call_add_slash(struct browser *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf header = STRBUF_INIT;

    strbuf_addf(&header, "Location: /serve/%s/\r\n", b->place.service);
    browser_reply(b, 308, header.data, NULL, "");
}

/* A browser asks beforehand whether a page of another origin may send a request, and cannot send the
 * token with that. The replica decides who may read its answers.
 */
static bool call_is_preflight(const struct served *service, const struct message_head *head)
{
    return head->method == METHOD_OPTIONS && !service->msg->is_public
           && message_get_header(head, "Origin")
           && message_get_header(head, "Access-Control-Request-Method")
           && !message_get_header(head, "Authorization");
}

static void call_allow_preflight(struct browser *b, const struct message_head *head)
{
    const char *names = message_get_header(head, "Access-Control-Request-Headers");
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;

    strbuf_addf(&headers,
                "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Methods: %s\r\n"
                "Access-Control-Max-Age: 600\r\n",
                message_get_header(head, "Access-Control-Request-Method"));
    if (names)
        strbuf_addf(&headers, "Access-Control-Allow-Headers: %s\r\n", names);
    browser_reply(b, 204, headers.data, NULL, "");
}

void call_begin(struct browser *b, const struct message_head *head)
{
    struct served *service = serving_find(b->proxy->serving, b->place.service);
    struct token *token;
    char text[200];

    if (b->app)
        app_drop(b); /* this connection has asked an app before */
    if (!service) {
        (void)snprintf(text, sizeof(text), "Model service '%s' does not exist.", b->place.service);
        serving_refuse(b, 404, "service_not_found", 0, text);
    } else if (service->msg->is_gone) {
        (void)snprintf(text, sizeof(text), "Model service '%s' has ended.", service->msg->name);
        serving_refuse(b, 410, "service_ended", 0, text);
    } else if (!b->place.rest) {
        call_add_slash(b);
    } else if (call_is_preflight(service, head)) {
        call_allow_preflight(b, head);
    } else if ((token = token_admit(b, service, head))) {
        call_start(call_new(b, service, token, head), head);
    }
}

/* ---- deadlines ---- */

static void call_refuse_waiting(struct call *call)
{
    const struct msg_serving_service *msg = call->service->msg;
    char text[600];

    served_count_refused(call->service, call->token);
    if (!call->service->open_usec)
        (void)snprintf(text, sizeof(text), "Model service '%s' has no ready replica%s%.400s",
                       msg->name, msg->problem ? ": " : ".", msg->problem ? msg->problem : "");
    else
        (void)snprintf(
            text, sizeof(text),
            "All replicas of model service '%s' are busy; the request waited for %lld s.",
            msg->name, (long long)(served_queue_usec(call->service) / USEC_PER_SEC));
    call_refuse(call, 503, "service_unavailable", RETRY_SEC, text);
}

/* No byte came or went for too long. A client that does not take its answer is the browser's matter. */
static bool call_is_stuck(const struct call *call, int64_t now)
{
    const struct browser *b = call->browser;
    int64_t limit = call->service->msg->request_usec;

    return call->state == CALL_SENT && limit > 0 && !b->is_upgraded
           && now - call->moved_usec > limit && !b->pump.ends[PUMP_CLIENT].is_full;
}

/* A slow client has a place in a replica that others wait for. One that sends its body this slowly gives
 * it up, as any number of bytes keeps call_is_stuck() from ending it.
 */
static bool call_is_slow(struct call *call, int64_t now)
{
    const struct browser *b = call->browser;
    int64_t usec;

    if (call->state != CALL_SENT || b->is_upgraded || b->turn.is_read)
        return false;
    if (b->pump.ends[PUMP_KERNEL].is_full
        || (message_get_head(b->request)->expect_continue && !call->sent_bytes)) {
        call->awaited_usec = now; /* it is the replica that is awaited */
        call->sent_bytes = 0;
        return false;
    }
    usec = now - call->awaited_usec;
    return call->service->waiting_count && usec > SLOW_USEC
           && call->sent_bytes < SLOW_BYTES_PER_SEC * usec / USEC_PER_SEC;
}

static bool call_has_lost_token(const struct call *call)
{
    const struct msg_serving_token *said = call->token->said;

    return call->token != &call->service->anyone
           && (!said || (said->expires_usec && said->expires_usec <= clock_realtime_usec()));
}

static void call_cut(struct call *call, int status, const char *code, const char *text)
{
    struct browser *b = call->browser;

    if (b->turn.is_answered) {
        browser_free(b); /* counts it as broken */
        return;
    }
    call_count_broken(call);
    call_refuse(call, status, code, 0, text);
}

static void call_check(struct call *call, int64_t now)
{
    const struct served *service = call->service;

    if (!call->browser->is_upgraded && stream_has_left(call->browser->stream)) {
        browser_free(call->browser); /* its client sent more than is read now, and left */
    } else if (call_has_lost_token(call)) {
        call_cut(call, 401, "invalid_api_key", "The token was revoked, or has expired.");
    } else if (call->state == CALL_WAITS && (service->msg->is_gone || !service->is_listed)) {
        call_refuse(call, 410, "service_ended", 0, "The model service has ended.");
    } else if (call->state == CALL_WAITS && now - call->queued_usec > served_queue_usec(service)) {
        call_refuse_waiting(call);
    } else if (call_is_stuck(call, now)) {
        call->replica->use.failures++;
        call_cut(call, 504, "request_timeout",
                 "The replica of the model service did not answer in time.");
    } else if (call_is_slow(call, now)) {
        call_cut(call, 408, "request_too_slow",
                 "The request's body comes at less than 1 KiB/s while others wait for the model "
                 "service.");
    }
}

void served_check_calls(struct served *service, int64_t now)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *link;

    list_cursor_begin(&cursor, &service->calls);
    while ((link = list_cursor_next(&cursor)))
        call_check(LIST_ENTRY(link, struct call, link), now);
}
