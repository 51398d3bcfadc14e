/* SPDX-License-Identifier: Apache-2.0 */
/* The manager's own state in Prometheus' text format. */
#include "manager/metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "http/exposition.h"
#include "manager/etcd/etcd.h"
#include "manager/redis/redis.h"
#include "manager/serving/serving.h"
#include "store/store.h"

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

static void metrics_put_removed(const struct core_counts *counts, struct strbuf *out)
{
    exposition_family(out, "aliquot_retention_removed_total", "counter",
                      "Old sessions, and old rows of other entities, that were removed");
    for (enum retention_entity e = RETENTION_SESSIONS; e < RETENTION_ENTITY_COUNT; e++) {
        exposition_begin(out, "aliquot_retention_removed_total");
        exposition_label(out, "entity", retention_entity_name(e));
        exposition_value(out, (double)counts->removed[e]);
    }
}

/* One family: an app a series. */
static void metrics_put_app_family(const struct app_uses *apps, const char *name, const char *type,
                                   const char *help, size_t at, const char *direction,
                                   struct strbuf *out)
{
    if (help)
        exposition_family(out, name, type, help);
    for (size_t i = 0; i < apps->count; i++) {
        const char *app = (const char *)&apps->items[i];

        exposition_begin(out, name);
        exposition_label(out, "app", apps->items[i].name);
        if (direction)
            exposition_label(out, "direction", direction);
        exposition_value(out, (double)*(const int64_t *)(const void *)(app + at));
    }
}

static void metrics_put_apps(const struct app_uses *apps, struct strbuf *out)
{
    metrics_put_app_family(apps, "aliquot_app_connections", "gauge",
                           "Connections to apps of sessions now",
                           offsetof(struct app_use, connections), NULL, out);
    metrics_put_app_family(apps, "aliquot_app_requests_total", "counter",
                           "Connections to apps of sessions", offsetof(struct app_use, requests),
                           NULL, out);
    metrics_put_app_family(apps, "aliquot_app_bytes_total", "counter",
                           "Bytes that apps of sessions received (in) and sent (out)",
                           offsetof(struct app_use, bytes_in), "in", out);
    metrics_put_app_family(apps, "aliquot_app_bytes_total", "counter", NULL,
                           offsetof(struct app_use, bytes_out), "out", out);
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

/* What it is, without why. */
static void metrics_put_risks(const char *risks, struct strbuf *out)
{
    char risk[64];

    exposition_family(out, "aliquot_database_risk", "gauge",
                      "Settings of the database's server by which what was acknowledged may get "
                      "lost, as of the manager's start");
    for (const char *line = risks; *line;) {
        size_t len = strcspn(line, "\n");

        (void)snprintf(risk, sizeof(risk), "%.*s", (int)AQ_MIN(len, strcspn(line, ":")), line);
        exposition_begin(out, "aliquot_database_risk");
        exposition_label(out, "risk", risk);
        exposition_value(out, 1);
        line += len + (line[len] == '\n');
    }
}

static void metrics_put_away(const struct store *store, struct strbuf *out)
{
    int64_t since = store_get_away_usec(store);

    exposition_single(out, "aliquot_database_away_seconds", "gauge",
                      "How long the database's server cannot be reached; 0 = it can, or there is "
                      "none",
                      since ? AQ_MAX((double)(clock_realtime_usec() - since) / USEC_PER_SEC, 0.001)
                            : 0);
}

static void metrics_put_older_database(const struct core *core, struct strbuf *out)
{
    struct core_lost_commits lost;
    const char *agent_id;

    (void)core_get_lost_commits(core, &lost);
    exposition_single(out, "aliquot_database_lost_commits", "gauge",
                      "Commits of a former leader that agents have seen and the database lacks",
                      (double)(lost.seen - lost.had));
    exposition_single(out, "aliquot_database_epoch_ahead", "gauge",
                      "Epoch of refused agents that follow a later one than the leader's; 0 = none",
                      (double)core_get_epoch_ahead(core, &agent_id));
}

void metrics_write_process(const struct server *server, double turn_sec, struct strbuf *out)
{
    metrics_put_server(server, out);
    exposition_single(out, "aliquot_turn_cpu_seconds_max", "gauge",
                      "Processor time of the longest turn of the loop since the last scrape",
                      turn_sec);
}

void metrics_write(const struct api *api, const struct server *server, double turn_sec,
                   struct strbuf *out)
{
    struct core *core = api->core;
    const struct core_counts counts = core_get_counts(core);

    metrics_put_core(&counts, out);
    metrics_put_removed(&counts, out);
    metrics_put_apps(core_app_totals(core), out);
    serving_write_metrics(api, out);
    metrics_put_risks(store_get_risks(core_store(core)), out);
    metrics_put_older_database(api->core, out);
    metrics_put_away(core_store(core), out);
    redis_write_metrics(api, out);
    etcd_write_metrics(api, out);
    metrics_write_process(server, turn_sec, out);
}
