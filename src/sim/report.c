/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - the figures of a simulation as a table, as JSON and as drawings */
#include "sim/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/jsonw.h"
#include "sim/svg_chart.h"

static void report_member_double(struct jsonw *w, const char *key, double value)
{
    jsonw_key(w, key);
    jsonw_double(w, round(value * 1e4) / 1e4);
}

/* ---- arrival ---- */

static void report_write_row(const struct sim_options *o, const struct arrival_row *row,
                             struct jsonw *w)
{
    jsonw_object_begin(w);
    report_member_double(w, "gpu_allocation_pct", row->mean);
    jsonw_key(w, "per_seed");
    jsonw_array_begin(w);
    for (size_t i = 0; i < o->seed_count; i++)
        jsonw_double(w, round(row->per_seed[i] * 1e4) / 1e4);
    jsonw_array_end(w);
    jsonw_member_str(w, "policy", row->policy);
    report_member_double(w, "seconds", row->seconds);
    jsonw_object_end(w);
}

void report_arrival_json(const struct sim_options *o, const struct arrival_row *rows, size_t count,
                         double seconds, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    if (count == 1) {
        report_write_row(o, &rows[0], &w);
    } else {
        jsonw_object_begin(&w);
        jsonw_key(&w, "policies");
        jsonw_array_begin(&w);
        for (size_t i = 0; i < count; i++)
            report_write_row(o, &rows[i], &w);
        jsonw_array_end(&w);
        report_member_double(&w, "seconds", seconds);
        jsonw_object_end(&w);
    }
    strbuf_addc(out, '\n');
}

void report_arrival_table(const struct sim_options *o, const struct arrival_row *rows, size_t count,
                          struct strbuf *out)
{
    strbuf_addf(out, "%-18s %12s %12s %12s %10s\n", "POLICY", "ALLOCATED %", "LEAST", "MOST",
                "SECONDS");
    for (size_t i = 0; i < count; i++) {
        double least = rows[i].per_seed[0], most = least;

        for (size_t s = 1; s < o->seed_count; s++) {
            least = fmin(least, rows[i].per_seed[s]);
            most = fmax(most, rows[i].per_seed[s]);
        }
        strbuf_addf(out, "%-18s %12.2f %12.2f %12.2f %10.2f\n", rows[i].policy, rows[i].mean, least,
                    most, rows[i].seconds);
    }
}

void report_arrival_svg(const struct arrival_row *rows, size_t count, struct strbuf *out)
{
    struct svg_chart chart = { .title = "GPU allocation against arrival",
                               .x_name = "GPU demand arrived (% of the cluster)",
                               .y_name = "GPU allocated (%)" };
    double x[ARRIVAL_EXPERIMENT_POINTS];

    for (size_t i = 0; i < ARRIVAL_EXPERIMENT_POINTS; i++)
        x[i] = (double)i;
    for (size_t i = 0; i < count && i < SVG_CHART_SERIES_MAX; i++)
        chart.series[chart.series_count++] = (struct svg_chart_series){ rows[i].policy, x,
                                                                        rows[i].curve,
                                                                        rows[i].points };
    svg_chart_write(&chart, 1, out);
}

/* ---- in time ---- */

void report_time_json(const struct time_row *rows, size_t count, double seconds, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "runs");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < count; i++) {
        const struct replay_result *r = &rows[i].result;

        jsonw_object_begin(&w);
        jsonw_member_str(&w, "order", rows[i].order);
        jsonw_member_str(&w, "policy", rows[i].policy);
        jsonw_member_int(&w, "sessions", (int64_t)r->arrived);
        jsonw_member_int(&w, "left_out", (int64_t)r->left_out);
        jsonw_member_int(&w, "nodes", (int64_t)r->nodes);
        report_member_double(&w, "load", r->load);
        report_member_double(&w, "waiting_mean_s", r->waiting_mean_sec);
        report_member_double(&w, "waiting_p95_s", r->waiting_p95_sec);
        report_member_double(&w, "waiting_max_s", r->waiting_max_sec);
        report_member_double(&w, "idle_gpus_while_waiting", r->idle_gpus);
        report_member_double(&w, "gpu_allocation_pct", r->allocation_pct);
        report_member_double(&w, "queue_mean", r->queue_mean);
        report_member_double(&w, "makespan_s", r->end_sec);
        report_member_double(&w, "seconds", rows[i].seconds);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    report_member_double(&w, "seconds", seconds);
    jsonw_object_end(&w);
    strbuf_addc(out, '\n');
}

void report_time_table(const struct time_row *rows, size_t count, struct strbuf *out)
{
    strbuf_addf(out, "%-20s %-16s %12s %12s %12s %10s %12s %10s %9s\n", "ORDER", "POLICY",
                "WAIT MEAN", "WAIT 95 %", "WAIT MAX", "IDLE GPUS", "ALLOCATED %", "QUEUE",
                "SECONDS");
    for (size_t i = 0; i < count; i++) {
        const struct replay_result *r = &rows[i].result;

        strbuf_addf(out, "%-20s %-16s %10.0f s %10.0f s %10.0f s %10.1f %12.2f %10.1f %9.2f\n",
                    rows[i].order, rows[i].policy, r->waiting_mean_sec, r->waiting_p95_sec,
                    r->waiting_max_sec, r->idle_gpus, r->allocation_pct, r->queue_mean,
                    rows[i].seconds);
    }
}

void report_time_svg(const struct time_row *rows, size_t count, struct strbuf *out)
{
    static double x[SVG_CHART_SERIES_MAX][REPLAY_POINTS],
        queue[SVG_CHART_SERIES_MAX][REPLAY_POINTS], allocation[SVG_CHART_SERIES_MAX][REPLAY_POINTS];
    static char names[SVG_CHART_SERIES_MAX][64];
    struct svg_chart charts[2] = {
        { .title = "Sessions that wait", .x_name = "days", .y_name = "sessions" },
        { .title = "GPU allocation over time", .x_name = "days", .y_name = "% of all GPUs" }
    };

    for (size_t i = 0; i < count && i < SVG_CHART_SERIES_MAX; i++) {
        const struct replay_result *r = &rows[i].result;

        for (size_t p = 0; p < r->point_count; p++) {
            x[i][p] = r->points[p].at_sec / 86400;
            queue[i][p] = r->points[p].queue;
            allocation[i][p] = r->points[p].allocation_pct;
        }
        (void)snprintf(names[i], sizeof(names[i]), "%s, %s", rows[i].order, rows[i].policy);
        charts[0].series[charts[0].series_count++] = (struct svg_chart_series){ names[i], x[i],
                                                                                queue[i],
                                                                                r->point_count };
        charts[1].series[charts[1].series_count++] = (struct svg_chart_series){ names[i], x[i],
                                                                                allocation[i],
                                                                                r->point_count };
    }
    svg_chart_write(charts, 2, out);
}

/* ---- requests to a service ---- */

static void report_write_decisions(const struct serving_result *result, struct jsonw *w)
{
    jsonw_key(w, "decisions");
    jsonw_array_begin(w);
    for (size_t i = 0; i < result->decision_count; i++) {
        const struct serving_decision *d = &result->decisions[i];

        jsonw_object_begin(w);
        report_member_double(w, "time", (double)d->usec / 1e6);
        jsonw_member_int(w, "replicas", d->replicas);
        if (d->share_micro)
            report_member_double(w, "share", (double)d->share_micro / 1e6);
        jsonw_member_str(w, "reason", d->reason);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    jsonw_member_int(w, "decisions_in_all", (int64_t)result->decisions_in_all);
}

void report_serving_json(const struct serving_row *rows, size_t count, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "requests", (int64_t)rows[0].result.requests);
    jsonw_key(&w, "policies");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < count; i++) {
        const struct serving_result *result = &rows[i].result;

        jsonw_object_begin(&w);
        jsonw_member_str(&w, "policy", rows[i].policy);
        jsonw_member_int(&w, "waited", (int64_t)result->waited);
        report_member_double(&w, "wait_mean_sec", result->wait_mean_sec);
        report_member_double(&w, "wait_p99_sec", result->wait_p99_sec);
        report_member_double(&w, "wait_max_sec", result->wait_max_sec);
        report_member_double(&w, "replica_seconds", result->replica_seconds);
        jsonw_member_int(&w, "replicas_max", result->replicas_max);
        report_write_decisions(result, &w);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    strbuf_addc(out, '\n');
}

void report_serving_table(const struct serving_row *rows, size_t count, struct strbuf *out)
{
    strbuf_addf(out, "%-10s %9s %10s %9s %9s %12s %9s %10s\n", "POLICY", "REQUESTS", "WAITED >1S",
                "P99 S", "MAX S", "REPLICA-S", "REPLICAS", "DECISIONS");
    for (size_t i = 0; i < count; i++) {
        const struct serving_result *r = &rows[i].result;

        strbuf_addf(out, "%-10s %9zu %10zu %9.2f %9.2f %12.0f %9" PRId64 " %10zu\n", rows[i].policy,
                    r->requests, r->waited, r->wait_p99_sec, r->wait_max_sec, r->replica_seconds,
                    r->replicas_max, r->decisions_in_all);
    }
}
