/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - what is noted of a replica's answer while it passes, and at its end */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proxy/head.h"
#include "proxy/serving/service.h"

#define KEEP_USEC 1500000 /* an idle connection: servers give up after 2 s or more */

/* A server that says how long it keeps a connection is left a second before. */
static int64_t answer_keep_usec(const struct message_head *head)
{
    int64_t said = head_keep_usec(head);

    return said < 0 ? KEEP_USEC : said - USEC_PER_SEC;
}

/* Milliseconds that it waited; most requests did not. */
static void answer_write_timing(const struct call *call, struct strbuf *out)
{
    if (call->queue_usec || call->start_usec)
        strbuf_addf(out, "Server-Timing: queue;dur=%.1f, start;dur=%.1f",
                    (double)call->queue_usec / 1000, (double)call->start_usec / 1000);
    else
        strbuf_adds(out, "Server-Timing: queue;dur=0, start;dur=0");
    strbuf_adds(out, ", replica;desc=\"");
    strbuf_adds(out, call->replica->short_id);
    strbuf_adds(out, "\"\r\n\r\n");
}

void call_on_head(struct call *call, const struct message_head *head, struct strbuf *out)
{
    call->status = head->status;
    call->first_usec = clock_monotonic_usec();
    call->has_body = false;
    if (head->status == 200 && !message_get_header(head, "Content-Encoding"))
        usage_scan_begin(&call->usage, message_get_header(head, "Content-Type"));
    replica_answered(call->replica, head->status);
    if (call->was_used)
        conn_note_kept(call->conn);
    strbuf_truncate(out, out->len - 2); /* the empty line */
    if (call->browser->turn.is_shared && !message_get_header(head, "Access-Control-Allow-Origin"))
        strbuf_adds(out, "Access-Control-Allow-Origin: *\r\n");
    answer_write_timing(call, out);
}

/* Servers of streams send the head before they have computed anything. */
void call_on_body(struct call *call, const char *bytes, size_t len)
{
    if (!call->has_body) {
        call->has_body = true;
        call->first_usec = clock_monotonic_usec();
    }
    usage_scan_take(&call->usage, bytes, len);
}

void call_count_tokens(struct call *call)
{
    const struct usage_scan *usage = &call->usage;
    struct msg_serving_service_use *use = &call->service->use;
    struct service_totals *totals = &call->service->totals;
    struct msg_serving_replica_use *of_replica = &call->replica->use;
    struct msg_serving_token_use *of_token = &call->token->use;

    usage_scan_finish(&call->usage);
    if (!usage->prompt_tokens && !usage->completion_tokens)
        return;
    use->prompt_tokens += usage->prompt_tokens;
    use->completion_tokens += usage->completion_tokens;
    use->cached_tokens += usage->cached_tokens;
    totals->prompt_tokens += (uint64_t)usage->prompt_tokens;
    totals->completion_tokens += (uint64_t)usage->completion_tokens;
    totals->cached_tokens += (uint64_t)usage->cached_tokens;
    of_replica->prompt_tokens += usage->prompt_tokens;
    of_replica->completion_tokens += usage->completion_tokens;
    of_replica->cached_tokens += usage->cached_tokens;
    of_token->prompt_tokens += usage->prompt_tokens;
    of_token->completion_tokens += usage->completion_tokens;
    of_token->cached_tokens += usage->cached_tokens;
    call->token->spent += usage->prompt_tokens + usage->completion_tokens;
}

void call_count_answer(struct call *call)
{
    struct msg_serving_service_use *use = &call->service->use;
    struct service_totals *totals = &call->service->totals;

    if (call->status < 400) {
        use->ok++;
        totals->ok++;
        call->replica->use.ok++;
        call->token->use.ok++;
    } else if (call->status < 500) {
        use->client_errors++;
        totals->client_errors++;
        call->replica->use.client_errors++;
        call->token->use.client_errors++;
    } else {
        use->server_errors++;
        totals->server_errors++;
        call->replica->use.server_errors++;
        call->token->use.server_errors++;
    }
}

static void answer_count_times(struct call *call)
{
    struct msg_serving_service_use *use = &call->service->use;
    int64_t duration = clock_monotonic_usec() - call->sent_usec;
    int64_t first_byte = call->first_usec - call->sent_usec;
    int64_t waited = call->queue_usec + call->start_usec;
    size_t whole = latency_bucket(duration), first = latency_bucket(first_byte);
    struct service_latency *latencies[] = { &call->service->totals.latency,
                                            &call->replica->latency };

    for (size_t i = 0; i < AQ_COUNT(latencies); i++) {
        latencies[i]->duration_usec += duration;
        latencies[i]->first_byte_usec += first_byte;
        latencies[i]->durations[whole]++;
        latencies[i]->first_bytes[first]++;
    }
    use->duration_usec += duration;
    use->first_byte_usec += first_byte;
    use->queue_usec += waited;
    use->waited += waited > 0;
}

void call_on_answered(struct call *call, bool is_lasting)
{
    const struct message_head *head = message_get_head(call->browser->answer);
    struct conn *conn = AQ_TAKE(call->conn);

    call_count_tokens(call);
    call_count_answer(call);
    answer_count_times(call);
    if (conn && is_lasting)
        conn_give_back(conn, head, answer_keep_usec(head));
    else if (conn)
        conn_close(conn);
    call_end(call);
}

/* browser_free() counts it. */
void call_on_broken(struct call *call)
{
    call->replica->use.failures++;
}
