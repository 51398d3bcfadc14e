/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - a snapshot under construction, for the tests of this directory
 *
 * Slots are written "cpu=4 mem=4096 cuda.shares=0.5"; mem in bytes. Times are
 * in seconds.
 */
#ifndef AQ_TESTS_UNIT_SCHED_WORLD_H
#define AQ_TESTS_UNIT_SCHED_WORLD_H

#include "testing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "sched/scheduler.h"

#define AGENTS_MAX 32
#define SESSIONS_MAX 64
#define RUNNING_MAX 64

struct world {
    struct arena arena;
    struct slot_types *types;
    struct sched_snapshot snap;
    struct sched_agent agents[AGENTS_MAX];
    struct sched_device devices[AGENTS_MAX][8];
    struct sched_session sessions[SESSIONS_MAX];
    struct sched_account accounts[8];
    struct sched_owner owners[8];
    struct sched_running running[RUNNING_MAX];
    struct sched_session running_sessions[RUNNING_MAX];
    struct sched_place places[RUNNING_MAX][4];
    struct slots owned[512];
    size_t owned_count;
    const struct slots *kernels[512];
    size_t kernel_count;
    struct sched_result result;
    char ids[AGENTS_MAX][16];
};

extern struct world world;

/* The caller's; own() keeps them in the world. */
struct slots parse(const char *text);
const struct slots *own(const char *text);

/* Start an empty snapshot; end() frees it. */
void begin(const struct sequencer_ops *sequencer, const struct selector_ops *selector);
void end(void);
struct sched_agent *agent(const char *id, const char *free);

/* Devices of cuda.shares for the agent added last: what each has free of one. */
void devices(const char *model, size_t count, const double *free);
#define DEVICES(model, ...) \
    devices(model, sizeof((double[]){ __VA_ARGS__ }) / sizeof(double), (double[]){ __VA_ARGS__ })

struct sched_session make_session(int64_t row, const char *request);
struct sched_session *session(const char *request);

/* One more kernel of the session added last. */
void kernel(const char *request);

/* A session that runs on an agent since 'started' seconds; lifetime 0 = not known. */
struct sched_session *runs(const char *agent_id, const char *request, int64_t started,
                           int64_t lifetime);

/* One more kernel of the session that runs, added last: a cluster over several agents. */
void runs_also(const char *agent_id, const char *request);

/* One pass over the snapshot. */
void run(void);
void run_at(int64_t now_sec);
const struct sched_outcome *outcome_of(size_t n);

/* Where the n-th session's first kernel went; "" = it was not placed. */
const char *place_of(size_t n);
enum sched_verdict verdict_of(size_t n);

/* "1 2 3": the sessions in the order in which they were placed, from 1. */
const char *placed_in_order(void);

/* "i-1 i-2 -": where the sessions went, by number. */
const char *places(void);

#endif
