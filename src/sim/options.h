/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - what aliquot-sim was asked to do */
#ifndef AQ_SIM_OPTIONS_H
#define AQ_SIM_OPTIONS_H

#include "base/error.h"
#include "sched/sched.h"
#include "sim/replay.h"
#include "sim/serving_replay.h"
#include "sim/workload.h"

#define SIM_POLICIES_MAX 12
#define SIM_ORDERS_MAX 12
#define SIM_SEEDS_MAX 64

/* "fifo", "drf+backfill", "fifo+skip" */
struct sim_order {
    const char *name;
    const struct sequencer_ops *sequencer;
    bool backfill;
    uint32_t retries_to_skip;
};

struct sim_options {
    const char *nodes, *tasks, *svg;
    const struct selector_ops *policies[SIM_POLICIES_MAX];
    size_t policy_count;
    struct sim_order orders[SIM_ORDERS_MAX];
    size_t order_count;
    uint64_t seeds[SIM_SEEDS_MAX];
    size_t seed_count;
    double arrival;
    struct workload_spec load;
    uint32_t unlimited_pct;
    int64_t max_wait_sec;
    struct replay_booking booking;
    const char *serving, *rules; /* files; NULL = sessions are replayed, no file */
    struct serving_model model;
    const struct serving_policy_ops *serving_policies[SERVING_POLICIES_MAX];
    size_t serving_policy_count;
    char *policy_names; /* as given; NULL = the default */
    bool json, in_time, help, version;
};

extern const char sim_usage[];

/* -EINVAL says which option and what it may be. 'argv' is cut into pieces. */
int sim_options_parse(int argc, char **argv, struct sim_options *ret, struct aq_error *err);

#endif
