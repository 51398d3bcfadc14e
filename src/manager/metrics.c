/* SPDX-License-Identifier: Apache-2.0 */
/* The manager's own state in Prometheus' text format. */
#include "manager/metrics.h"

#include "http/exposition.h"

static void metrics_put_sessions(const struct core_counts *counts, struct strbuf *out)
{
    const struct {
        const char *state;
        size_t count;
    } states[] = {
        { "pending", counts->pending },
        { "starting", counts->starting },
        { "running", counts->running },
        { "terminating", counts->terminating },
    };

    exposition_family(out, "aliquot_sessions", "gauge", "Sessions that have not ended, by state");
    for (size_t i = 0; i < AQ_COUNT(states); i++) {
        exposition_begin(out, "aliquot_sessions");
        exposition_label(out, "state", states[i].state);
        exposition_value(out, (double)states[i].count);
    }
}

static void metrics_put_core(const struct core_counts *counts, struct strbuf *out)
{
    metrics_put_sessions(counts, out);
    exposition_single(out, "aliquot_agents", "gauge", "Agents that are known",
                      (double)counts->agents);
    exposition_single(out, "aliquot_agents_alive", "gauge", "Agents that are heard",
                      (double)counts->agents_alive);
    exposition_single(out, "aliquot_store_commits_total", "counter",
                      "Batches of events that became durable", (double)counts->commits);
    exposition_single(out, "aliquot_store_stale_total", "counter",
                      "Batches of events that came too late and were decided again",
                      (double)counts->stale);
    exposition_single(out, "aliquot_scheduled_total", "counter", "Sessions that were placed",
                      (double)counts->scheduled);
}

static void metrics_put_server(const struct server *server, struct strbuf *out)
{
    struct server_stats stats;

    server_get_stats(server, &stats);
    exposition_single(out, "aliquot_http_requests_total", "counter", "Requests to the API",
                      (double)stats.requests);
    exposition_single(out, "aliquot_http_connections_total", "counter", "Connections to the API",
                      (double)stats.connections_total);
    exposition_single(out, "aliquot_http_refused_total", "counter",
                      "Connections for which there was no room", (double)stats.refused);
    exposition_single(out, "aliquot_http_connections", "gauge", "Connections to the API now",
                      (double)stats.connections);
}

bool metrics_write(const struct core *core, const struct server *server, double turn_sec,
                   struct strbuf *out)
{
    const struct core_counts counts = core_get_counts(core);

    metrics_put_core(&counts, out);
    metrics_put_server(server, out);
    exposition_single(out, "aliquot_turn_cpu_seconds_max", "gauge",
                      "Processor time of the longest turn of the loop since the last scrape",
                      turn_sec);
    return strbuf_ok(out);
}
