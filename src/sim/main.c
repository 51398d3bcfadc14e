/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-sim: replays a trace through the scheduler. `aliquot sim` runs it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"
#include "serving/autoscale.h"
#include "sim/request_trace.h"
#include "sim/report.h"

struct sim {
    struct sim_options options;
    struct arena arena;
    struct trace_nodes nodes;
    struct trace_tasks tasks;
    struct strbuf out, svg;
};

static double main_seconds_since(int64_t usec)
{
    return (double)(clock_monotonic_usec() - usec) / USEC_PER_SEC;
}

/* ---- arrival ---- */

static int main_run_policy(const struct sim *sim, size_t policy, struct arrival_row *row,
                           struct aq_error *err)
{
    const struct sim_options *o = &sim->options;
    struct arrival_experiment e = { &sim->nodes, &sim->tasks, o->arrival, o->policies[policy] };
    struct arrival_experiment_result result;
    int64_t start = clock_monotonic_usec();

    *row = (struct arrival_row){ .policy = o->policies[policy]->name, .points = SIZE_MAX };
    for (size_t i = 0; i < o->seed_count; i++) {
        int r = arrival_experiment_run(&e, o->seeds[i], &result, err);

        if (r < 0)
            return r;
        row->per_seed[i] = result.gpu_allocation_pct;
        row->mean += result.gpu_allocation_pct / (double)o->seed_count;
        row->points = AQ_MIN(row->points, result.points);
        for (size_t p = 0; p < result.points; p++)
            row->curve[p] += result.curve[p] / (double)o->seed_count;
    }
    row->seconds = main_seconds_since(start);
    return 0;
}

static int main_run_arrival(struct sim *sim, struct aq_error *err)
{
    const struct sim_options *o = &sim->options;
    struct arrival_row rows[SIM_POLICIES_MAX];
    int64_t start = clock_monotonic_usec();

    for (size_t i = 0; i < o->policy_count; i++) {
        int r = main_run_policy(sim, i, &rows[i], err);

        if (r < 0)
            return r;
    }
    if (o->json)
        report_arrival_json(o, rows, o->policy_count, main_seconds_since(start), &sim->out);
    else
        report_arrival_table(o, rows, o->policy_count, &sim->out);
    if (o->svg)
        report_arrival_svg(rows, o->policy_count, &sim->svg);
    return 0;
}

/* ---- in time ---- */

/* The figures of one draw more; what is drawn is the first. */
static void main_add_result(struct replay_result *sum, const struct replay_result *r, double part)
{
    if (sum->arrived == 0) {
        *sum = *r;
        sum->waiting_mean_sec = sum->waiting_p95_sec = sum->waiting_max_sec = 0;
        sum->idle_gpus = 0;
        sum->allocation_pct = sum->queue_mean = sum->end_sec = 0;
    }
    sum->waiting_mean_sec += part * r->waiting_mean_sec;
    sum->waiting_p95_sec += part * r->waiting_p95_sec;
    sum->waiting_max_sec = AQ_MAX(sum->waiting_max_sec, r->waiting_max_sec);
    sum->idle_gpus += part * r->idle_gpus;
    sum->allocation_pct += part * r->allocation_pct;
    sum->queue_mean += part * r->queue_mean;
    sum->end_sec += part * r->end_sec;
}

static int main_run_order(const struct sim *sim, const struct sim_order *order,
                          const struct selector_ops *policy, struct time_row *row,
                          struct aq_error *err)
{
    const struct sim_options *o = &sim->options;
    size_t draws = o->load.draw ? o->seed_count : 1;
    struct replay replay = { .nodes = &sim->nodes,
                             .tasks = &sim->tasks,
                             .load = o->load,
                             .policy = policy,
                             .order = order->sequencer,
                             .backfill = order->backfill,
                             .retries_to_skip = order->retries_to_skip,
                             .unlimited_pct = o->unlimited_pct,
                             .max_wait_sec = o->max_wait_sec,
                             .booking = o->booking };
    struct replay_result result;
    int64_t begin = clock_monotonic_usec();
    int r = 0;

    row->order = order->name;
    row->policy = policy->name;
    for (size_t i = 0; i < draws && r == 0; i++)
        if ((r = replay_run(&replay, o->seeds[i], &result, err)) == 0)
            main_add_result(&row->result, &result, 1.0 / (double)draws);
    row->seconds = main_seconds_since(begin);
    return r;
}

static int main_run_time(struct sim *sim, struct aq_error *err)
{
    const struct sim_options *o = &sim->options;
    size_t count = 0;
    struct time_row *rows = aq_alloc_array(o->order_count * o->policy_count, sizeof(*rows));
    int64_t start = clock_monotonic_usec();
    int r = 0;

    for (size_t i = 0; i < o->order_count && r == 0; i++)
        for (size_t p = 0; p < o->policy_count && r == 0; p++)
            r = main_run_order(sim, &o->orders[i], o->policies[p], &rows[count++], err);
    if (r == 0 && o->json)
        report_time_json(rows, count, main_seconds_since(start), &sim->out);
    else if (r == 0)
        report_time_table(rows, count, &sim->out);
    if (r == 0 && o->svg)
        report_time_svg(rows, count, &sim->svg);
    free(rows);
    return r;
}

/* ---- requests to a service ---- */

/* The rules of the file, or one that plans for the slots. */
static int main_load_rules(struct sim *sim, struct autoscale *ret, struct aq_error *err)
{
    const struct sim_options *o = &sim->options;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = 0;

    if (o->rules)
        r = fs_read(AT_FDCWD, o->rules, AUTOSCALE_BYTES_MAX, &text, err);
    else
        strbuf_addf(&text, "{\"rules\": [{\"signal\": \"in_flight\", \"target\": %" PRId64 "}]}",
                    o->model.slots);
    if (r < 0)
        return r;
    if ((r = autoscale_parse(text.data, text.len, &sim->arena, ret, err)) < 0)
        return o->rules ? aq_error_wrap(err, "%s", o->rules) : r;
    for (size_t i = 0; i < ret->rule_count; i++)
        if (ret->rules[i].signal == AUTOSCALE_METRIC
            || ret->rules[i].signal == AUTOSCALE_PROMETHEUS)
            return aq_fail_field(err, EINVAL, "--rules",
                                 "%s: scaling.rules[%zu].signal: a replay has no metrics; expected "
                                 "in_flight, rate, latency or use",
                                 o->rules, i);
    return 0;
}

static int main_run_serving(struct sim *sim, struct aq_error *err)
{
    const struct sim_options *o = &sim->options;
    struct serving_row rows[SERVING_POLICIES_MAX];
    struct request_trace arrivals;
    struct autoscale scaling;
    int r = request_trace_load(o->serving, &sim->arena, &arrivals, err);

    if (r < 0 || (r = main_load_rules(sim, &scaling, err)) < 0)
        return r;
    for (size_t i = 0; i < o->serving_policy_count; i++) {
        rows[i].policy = o->serving_policies[i]->name;
        serving_replay(&arrivals, &o->model, &scaling, o->serving_policies[i], &rows[i].result);
    }
    if (o->json)
        report_serving_json(rows, o->serving_policy_count, &sim->out);
    else
        report_serving_table(rows, o->serving_policy_count, &sim->out);
    for (size_t i = 0; i < o->serving_policy_count; i++)
        serving_result_done(&rows[i].result);
    return 0;
}

/* ---- the whole ---- */

static int main_run_sessions(struct sim *sim, struct aq_error *err)
{
    const struct sim_options *o = &sim->options;
    int r = trace_load_nodes(o->nodes, &sim->arena, &sim->nodes, err);

    if (r == 0)
        r = trace_load_tasks(o->tasks, &sim->arena, &sim->tasks, err);
    if (r == 0)
        r = o->in_time ? main_run_time(sim, err) : main_run_arrival(sim, err);
    if (r == 0 && o->svg)
        r = fs_write_quick(AT_FDCWD, o->svg, sim->svg.data, sim->svg.len, 0644, err);
    return r;
}

static int sim_run(struct sim *sim, struct aq_error *err)
{
    int r = sim->options.serving ? main_run_serving(sim, err) : main_run_sessions(sim, err);

    if (r == 0 && (fputs(sim->out.data, stdout) < 0 || fflush(stdout) < 0))
        r = aq_fail_errno(err, "write the figures");
    return r;
}

int main(int argc, char **argv)
{
    struct sim sim = { .out = STRBUF_INIT, .svg = STRBUF_INIT };
    struct aq_error err = { 0 };
    int r = sim_options_parse(argc, argv, &sim.options, &err), status = 0;

    if (r < 0) {
        (void)fprintf(stderr, "aliquot sim: %s; see aliquot sim --help\n", err.text);
        return 2;
    }
    if (sim.options.help || sim.options.version)
        return fputs(sim.options.help ? sim_usage : "aliquot-sim " ALIQUOT_VERSION "\n", stdout)
               < 0;
    if ((r = sim_run(&sim, &err)) < 0) {
        (void)fprintf(stderr, "aliquot sim: %s\n", err.text);
        status = r == -EINVAL || r == -ENOENT ? 2 : 1;
    }
    arena_done(&sim.arena);
    strbuf_done(&sim.out);
    strbuf_done(&sim.svg);
    return status;
}
