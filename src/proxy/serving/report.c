/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what services do, for the manager and for /metrics
 *
 * Sums go on while the manager is away, and it gets them when it is back. Figures that were sent and
 * lost with the connection are lost.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/defer.h"
#include "http/exposition.h"
#include "proxy/serving/service.h"

#define REPORT_MSEC 100
#define SERVICES_MAX 64 /* of one message */
/* A message with the last service that is added to it stays below LINK_FRAME_MAX. */
#define REPORT_BYTES_MAX ((size_t)2 << 20)
#define SERVICE_BYTES 1024
#define REPLICA_BYTES 1024
#define TOKEN_BYTES 512

void served_report(struct served *service, bool at_once)
{
    struct serving *serving = service->of;
    int64_t since = (clock_monotonic_usec() - serving->reported_usec) / USEC_PER_MSEC;

    service->is_dirty = true;
    if (at_once)
        serving_send_use(serving);
    else
        defer_start(serving->report, since >= REPORT_MSEC ? 0 : (unsigned)(REPORT_MSEC - since));
}

/* ---- writing ---- */

bool replica_has_news(const struct replica *replica)
{
    const struct msg_serving_replica_use *use = &replica->use;

    return use->requests || use->failures || use->broken || use->ok || use->client_errors
           || use->server_errors;
}

/* Without the buckets at the end that are 0. */
static struct int_list report_buckets(int64_t *counts)
{
    size_t count = LATENCY_BUCKETS;

    while (count && !counts[count - 1])
        count--;
    return (struct int_list){ counts, count };
}

static void report_replicas(struct served *service, struct msg_serving_service_use *use)
{
    size_t count = 0;

    LIST_FOREACH(it, &service->replicas)
        count++;
    use->replicas = aq_alloc_array(count + 1, sizeof(*use->replicas));
    LIST_FOREACH(it, &service->replicas) {
        struct replica *replica = LIST_ENTRY(it, struct replica, link);
        struct msg_serving_replica_use *of = &use->replicas[use->replica_count];

        if (use->replica_count == MSG_REPLICAS_MAX
            || (!replica->in_flight && !replica->ejected_until_usec && !replica_has_news(replica)))
            continue;
        *of = replica->use;
        of->session_id = replica->session_id;
        of->revision = replica->revision;
        of->in_flight = (int64_t)replica->in_flight;
        of->is_ejected = replica->ejected_until_usec != 0;
        of->duration_usec = replica->latency.duration_usec;
        of->first_byte_usec = replica->latency.first_byte_usec;
        of->duration_buckets = report_buckets(replica->latency.durations);
        of->first_byte_buckets = report_buckets(replica->latency.first_bytes);
        use->replica_count++;
    }
}

/* Whatever was counted of it began with a request, or was a refusal. An answer, or the tokens of one that
 * its client left, may be reported after the request.
 */
static bool token_has_news(const struct token *token)
{
    const struct msg_serving_token_use *use = &token->use;

    return use->requests || use->refused || use->ok || use->client_errors || use->server_errors
           || use->prompt_tokens || use->completion_tokens;
}

static void report_tokens(const struct served *service, struct msg_serving_service_use *use)
{
    size_t count = 0;

    LIST_FOREACH(it, &service->tokens)
        count += token_has_news(LIST_ENTRY(it, struct token, link));
    use->tokens = aq_alloc_array(count + 1, sizeof(*use->tokens));
    LIST_FOREACH(it, &service->tokens) {
        const struct token *token = LIST_ENTRY(it, struct token, link);

        if (token_has_news(token) && use->token_count < MSG_SERVING_TOKENS_MAX) {
            use->tokens[use->token_count] = token->use;
            use->tokens[use->token_count++].id = token->id;
        }
    }
}

static int64_t report_oldest(const struct served *service)
{
    int64_t now = clock_monotonic_usec(), oldest = 0;

    LIST_FOREACH(it, &service->turns) {
        const struct token *token = LIST_ENTRY(it, struct token, turn_link);
        const struct call *first = LIST_ENTRY(token->waiting.next, struct call, waiting_link);

        oldest = AQ_MAX(oldest, now - first->queued_usec);
    }
    return oldest;
}

static void report_write(struct served *service, struct msg_serving_service_use *use)
{
    *use = service->use;
    use->id = service->id;
    use->in_flight = (int64_t)service->in_flight;
    use->queued = (int64_t)service->waiting_count;
    use->oldest_usec = report_oldest(service);
    report_replicas(service, use);
    report_tokens(service, use);
}

/* The manager has it. */
static void report_clear(struct served *service)
{
    service->use = (struct msg_serving_service_use){ .in_flight = 0 };
    service->is_dirty = false;
    LIST_FOREACH(it, &service->replicas) {
        struct replica *replica = LIST_ENTRY(it, struct replica, link);

        replica->use = (struct msg_serving_replica_use){ .in_flight = 0 };
        replica->latency = (struct service_latency){ .duration_usec = 0 };
    }
    LIST_FOREACH(it, &service->tokens)
        LIST_ENTRY(it, struct token, link)->use = (struct msg_serving_token_use){ .requests = 0 };
}

/* Bytes of the message that it has at most. */
static size_t report_size(const struct msg_serving_service_use *use)
{
    return SERVICE_BYTES + use->replica_count * REPLICA_BYTES + use->token_count * TOKEN_BYTES;
}

/* As many of those that have news as a message holds; false if there is none, or the manager is
 * away.
 */
static bool report_send_some(struct serving *serving)
{
    struct msg_serving_service_use uses[SERVICES_MAX] = { { .in_flight = 0 } };
    struct served *services[SERVICES_MAX];
    struct message msg = { .type = MSG_SERVING_USE,
                           .serving_use = { .version = serving->version, .services = uses } };
    size_t count = 0, size = 0;
    int r = -1;

    for (size_t i = 0;
         i < serving->services.count && count < SERVICES_MAX && size < REPORT_BYTES_MAX; i++) {
        struct served *service = serving->services.entries[i].value;

        if (service->is_dirty) {
            report_write(service, &uses[count]);
            size += report_size(&uses[count]);
            services[count++] = service;
        }
    }
    msg.serving_use.service_count = count;
    if (count)
        r = front_send(serving->proxy->front, &msg, NULL);
    for (size_t i = 0; i < count; i++) {
        free(uses[i].replicas);
        free(uses[i].tokens);
        if (r == 0)
            report_clear(services[i]);
    }
    return r == 0;
}

void serving_send_use(struct serving *serving)
{
    serving->reported_usec = clock_monotonic_usec();
    while (front_is_connected(serving->proxy->front) && report_send_some(serving))
        continue;
}

/* ---- metrics ---- */

/* The next that is listed and has not ended; *at begins with 0. NULL is the end. */
static const struct served *report_next(const struct serving *serving, size_t *at)
{
    while (*at < serving->services.count) {
        const struct served *service = serving->services.entries[(*at)++].value;

        if (service->is_listed && !service->msg->is_gone)
            return service;
    }
    return NULL;
}

static void report_family(const struct serving *serving, struct strbuf *out, const char *name,
                          const char *type, const char *help,
                          double (*value)(const struct served *service))
{
    const struct served *service;

    exposition_family(out, name, type, help);
    for (size_t at = 0; (service = report_next(serving, &at));) {
        exposition_begin(out, name);
        exposition_label(out, "service", service->msg->name);
        exposition_value(out, value(service));
    }
}

static double report_in_flight(const struct served *service)
{
    return (double)service->in_flight;
}

static double report_queued(const struct served *service)
{
    return (double)service->waiting_count;
}

static double report_open(const struct served *service)
{
    size_t open = 0;

    for (size_t i = 0; i < service->entry_count; i++)
        open += service->entries[i].rank < BALANCE_EJECTED;
    return (double)open;
}

/* Families of service_totals: one series for each service, or with 'label' one for each row of the
 * same name.
 */
static const struct report_total {
    const char *name, *label, *value, *help;
    size_t at;
} report_totals[] = {
#define TOTAL(member) offsetof(struct service_totals, member)
    { "requests_total", NULL, NULL, "Requests that were let in.", TOTAL(requests) },
    { "refused_total", NULL, NULL, "Requests that were answered 429 or 503.", TOTAL(refused) },
    { "client_errors_total", NULL, NULL, "Answers of replicas with a status from 400 to 499.",
      TOTAL(client_errors) },
    { "server_errors_total", NULL, NULL, "Answers of replicas with a status of 500 or more.",
      TOTAL(server_errors) },
    { "broken_total", NULL, NULL, "Requests whose client left or whose answer broke off.",
      TOTAL(broken) },
    { "tokens_total", "kind", "prompt", "Tokens of language models, as the usage of answers says.",
      TOTAL(prompt_tokens) },
    { "tokens_total", "kind", "completion", NULL, TOTAL(completion_tokens) },
    { "tokens_total", "kind", "cached", NULL, TOTAL(cached_tokens) },
#undef TOTAL
};

static void report_write_totals(const struct serving *serving, struct strbuf *out)
{
    for (size_t i = 0; i < AQ_COUNT(report_totals); i++) {
        const struct report_total *total = &report_totals[i];
        const struct served *service;
        char name[64];

        (void)snprintf(name, sizeof(name), "aliquot_proxy_service_%s", total->name);
        if (total->help)
            exposition_family(out, name, "counter", total->help);
        for (size_t at = 0; (service = report_next(serving, &at));) {
            const char *totals = (const char *)&service->totals;

            exposition_begin(out, name);
            exposition_label(out, "service", service->msg->name);
            if (total->label)
                exposition_label(out, total->label, total->value);
            exposition_value(out, (double)*(const uint64_t *)(const void *)(totals + total->at));
        }
    }
}

static void report_write_latency(const struct serving *serving, struct strbuf *out)
{
    static const char duration[] = "aliquot_proxy_service_duration_seconds";
    static const char first_byte[] = "aliquot_proxy_service_first_byte_seconds";
    const struct served *service;

    exposition_family(out, duration, "histogram",
                      "Time from a request's way to a replica until the end of the answer.");
    for (size_t at = 0; (service = report_next(serving, &at));)
        exposition_histogram(out, duration, (const char *[]){ "service", service->msg->name, NULL },
                             latency_bounds, LATENCY_BUCKETS - 1, service->totals.latency.durations,
                             (double)service->totals.latency.duration_usec / USEC_PER_SEC);
    exposition_family(out, first_byte, "histogram",
                      "Time from a request's way to a replica until the first byte of the answer.");
    for (size_t at = 0; (service = report_next(serving, &at));)
        exposition_histogram(
            out, first_byte, (const char *[]){ "service", service->msg->name, NULL },
            latency_bounds, LATENCY_BUCKETS - 1, service->totals.latency.first_bytes,
            (double)service->totals.latency.first_byte_usec / USEC_PER_SEC);
}

void serving_write_metrics(const struct serving *serving, struct strbuf *out)
{
    if (!serving)
        return;
    report_family(serving, out, "aliquot_proxy_service_in_flight", "gauge",
                  "Requests to a model service that its replicas have now.", report_in_flight);
    report_family(serving, out, "aliquot_proxy_service_queued", "gauge",
                  "Requests that wait for a replica now.", report_queued);
    report_family(serving, out, "aliquot_proxy_service_replicas", "gauge",
                  "Replicas that take new requests now.", report_open);
    report_write_totals(serving, out);
    report_write_latency(serving, out);
}
