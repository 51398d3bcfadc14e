/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h - a snapshot under construction and one pass over it, for the tests of sched.h
 *
 * Slots are written "cpu=4 mem=4096 cuda.shares=0.5"; mem in bytes.
 */
#ifndef AQ_TESTS_UNIT_SCHED_PASS_H
#define AQ_TESTS_UNIT_SCHED_PASS_H

#include "testing.h"

#include "sched/sched.h"

#define AGENTS_MAX 8
#define SESSIONS_MAX 8

struct bench {
    struct arena arena;
    struct slot_types *types;
    struct sched_snapshot snap;
    struct sched_agent agents[AGENTS_MAX];
    struct sched_session sessions[SESSIONS_MAX];
    struct sched_account accounts[4];
    struct slots owned[64];
    size_t owned_count;
    const struct slots *kernels[64];
    size_t kernel_count;
    struct sched_result result;
};

extern struct bench bench;

/* Until end(). */
const struct slots *own(const char *text);

void begin(const struct selector_ops *selector);
void end(void);

struct sched_agent *agent(const char *id, const char *free);
struct sched_session *session(const char *request);
/* One more kernel of the session added last. */
void kernel(const char *request);

void run(void);
/* Where the n-th session's first kernel went; "" = it was not placed. */
const char *place_of(size_t n);
enum sched_verdict verdict_of(size_t n);

#endif
