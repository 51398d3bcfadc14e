/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - the figures of a simulation as a table, as JSON and as drawings */
#ifndef AQ_SIM_REPORT_H
#define AQ_SIM_REPORT_H

#include "base/strbuf.h"
#include "sim/arrival_experiment.h"
#include "sim/options.h"
#include "sim/serving_replay.h"
#include "sim/replay.h"

/* The arrival experiment of one policy. */
struct arrival_row {
    const char *policy;
    double mean, per_seed[SIM_SEEDS_MAX];
    double curve[ARRIVAL_EXPERIMENT_POINTS]; /* mean over the seeds */
    size_t points;
    double seconds;
};

/* One policy: {"gpu_allocation_pct", "per_seed", "policy", "seconds"}; of
 * several: {"policies": [these], "seconds"}.
 */
void report_arrival_json(const struct sim_options *o, const struct arrival_row *rows, size_t count,
                         double seconds, struct strbuf *out);
void report_arrival_table(const struct sim_options *o, const struct arrival_row *rows, size_t count,
                          struct strbuf *out);
void report_arrival_svg(const struct arrival_row *rows, size_t count, struct strbuf *out);

/* A replay in time, averaged over the seeds. */
struct time_row {
    const char *order, *policy;
    struct replay_result result;
    double seconds;
};

void report_time_json(const struct time_row *rows, size_t count, double seconds,
                      struct strbuf *out);
void report_time_table(const struct time_row *rows, size_t count, struct strbuf *out);
void report_time_svg(const struct time_row *rows, size_t count, struct strbuf *out);

/* A replay of requests under one policy. */
struct serving_row {
    const char *policy;
    struct serving_result result;
};

/* {"requests", "policies": [{"policy", "waited", "wait_mean_sec", "wait_p99_sec", "wait_max_sec",
 * "replica_seconds", "replicas_max", "decisions": [{"time", "replicas", "share", "reason"}],
 * "decisions_in_all"}]}
 */
void report_serving_json(const struct serving_row *rows, size_t count, struct strbuf *out);
void report_serving_table(const struct serving_row *rows, size_t count, struct strbuf *out);

#endif
