/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what services do, for the manager and for /metrics
 *
 * Sums go on while the manager is away, and it gets them when it is back. Figures that were sent and
 * lost with the connection are lost.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/defer.h"
#include "http/exposition.h"
#include "proxy/serving/service.h"

#define REPORT_MSEC 100
#define SERVICES_MAX 64 /* of one message: it fits in a frame with all their replicas */

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

static void report_replicas(const struct served *service, struct msg_serving_service_use *use)
{
    size_t count = 0;

    LIST_FOREACH(it, &service->replicas)
        count++;
    use->replicas = aq_alloc_array(count + 1, sizeof(*use->replicas));
    LIST_FOREACH(it, &service->replicas) {
        const struct replica *replica = LIST_ENTRY(it, struct replica, link);

        if (use->replica_count < MSG_REPLICAS_MAX)
            use->replicas[use->replica_count++] = (struct msg_serving_replica_use){
                .session_id = replica->session_id,
                .in_flight = (int64_t)replica->in_flight,
                .requests = replica->requests,
                .failures = replica->failures,
                .is_ejected = replica->ejected_until_usec != 0,
            };
    }
}

static bool token_has_news(const struct token *token)
{
    return token->requests || token->prompt_tokens || token->completion_tokens;
}

static void report_tokens(const struct served *service, struct msg_serving_service_use *use)
{
    size_t count = 0;

    LIST_FOREACH(it, &service->tokens)
        count += token_has_news(LIST_ENTRY(it, struct token, link));
    use->tokens = aq_alloc_array(count + 1, sizeof(*use->tokens));
    LIST_FOREACH(it, &service->tokens) {
        const struct token *token = LIST_ENTRY(it, struct token, link);

        if (token_has_news(token) && use->token_count < MSG_SERVING_TOKENS_MAX)
            use->tokens[use->token_count++] = (struct msg_serving_token_use){
                .id = token->id,
                .requests = token->requests,
                .prompt_tokens = token->prompt_tokens,
                .completion_tokens = token->completion_tokens,
            };
    }
}

static void report_write(const struct served *service, struct msg_serving_service_use *use)
{
    *use = service->use;
    use->id = service->id;
    use->in_flight = (int64_t)service->in_flight;
    use->queued = (int64_t)service->waiting_count;
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

        replica->requests = replica->failures = 0;
    }
    LIST_FOREACH(it, &service->tokens) {
        struct token *token = LIST_ENTRY(it, struct token, link);

        token->requests = token->prompt_tokens = token->completion_tokens = 0;
    }
}

/* Up to SERVICES_MAX of those that have news; false if there is none, or the manager is away. */
static bool report_send_some(struct serving *serving)
{
    struct msg_serving_service_use uses[SERVICES_MAX] = { { .in_flight = 0 } };
    struct served *services[SERVICES_MAX];
    struct message msg = { .type = MSG_SERVING_USE,
                           .serving_use = { .version = serving->version, .services = uses } };
    size_t count = 0;
    int r = -1;

    for (size_t i = 0; i < serving->services.count && count < SERVICES_MAX; i++) {
        struct served *service = serving->services.entries[i].value;

        if (service->is_dirty) {
            report_write(service, &uses[count]);
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

static void report_family(const struct serving *serving, struct strbuf *out, const char *name,
                          const char *type, const char *help,
                          double (*value)(const struct served *service))
{
    exposition_family(out, name, type, help);
    for (size_t i = 0; i < serving->services.count; i++) {
        const struct served *service = serving->services.entries[i].value;

        if (!service->is_listed || service->msg->is_gone)
            continue;
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

static double report_requests(const struct served *service)
{
    return (double)service->totals.requests;
}

static double report_refused(const struct served *service)
{
    return (double)service->totals.refused;
}

static double report_broken(const struct served *service)
{
    return (double)service->totals.broken;
}

static double report_server_errors(const struct served *service)
{
    return (double)service->totals.server_errors;
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
    report_family(serving, out, "aliquot_proxy_service_requests_total", "counter",
                  "Requests that were let in.", report_requests);
    report_family(serving, out, "aliquot_proxy_service_refused_total", "counter",
                  "Requests that were answered 429 or 503.", report_refused);
    report_family(serving, out, "aliquot_proxy_service_server_errors_total", "counter",
                  "Answers of replicas with a status of 500 or more.", report_server_errors);
    report_family(serving, out, "aliquot_proxy_service_broken_total", "counter",
                  "Requests whose client left or whose answer broke off.", report_broken);
}
