/* SPDX-License-Identifier: Apache-2.0 */
/* oom_world.h - the world of the core's unit tests for scenarios of oom.h
 *
 * Each step may fail, but only for want of memory; what it says of itself must be true.
 */
#ifndef AQ_TESTS_UNIT_OOM_OOM_WORLD_H
#define AQ_TESTS_UNIT_OOM_OOM_WORLD_H

#include "../manager/ended_session.h"

#include "oom.h"

#define GPU_NODE                                                      \
    "{\"cpu\":[\"count\",\"4\"],\"mem\":[\"bytes\",\"17179869184\"]," \
    "\"cuda.shares\":[\"count\",\"2\"]}"
#define GPU_DEVICES                                                  \
    "[{\"id\":\"GPU-1\",\"slot\":\"cuda.shares\",\"amount\":\"1\"}," \
    "{\"id\":\"GPU-2\",\"slot\":\"cuda.shares\",\"amount\":\"1\"}]"

/* ---- a run ---- */

/* The core in this directory, with the test's clock; and its end, without looking for leaks. */
void oom_world_open(const char *dir);
void oom_world_close(void);
/* For struct oom_scenario: a database. */
void oom_world_prepare(const char *dir);
/* The same: after the manager ended by itself, what it finds is right, and it goes on. */
void oom_world_recover(const char *dir);
/* A scenario's run: the manager starts on what was prepared; an agent with GPUs, i-001, comes. */
void oom_world_start(const char *dir);
/* All is well in what this process remembers and in what the next one will; the end of a run. */
void oom_world_pass(void) __attribute__((noreturn));

/* ---- steps ---- */

/* The answer came, and is no other error than that of memory. */
void oom_says(const char *what, const struct answer *a);
/* The same of a command that the store may have refused: then it is tried again with all the
 * memory there is, and comes late. Time passes.
 */
void oom_says_late(const char *what, struct answer *a);
/* An agent greets, once more if that fails, and reports no kernels. */
void oom_comes(const char *id, const char *slots);
bool oom_is_connected(const char *id);
/* A request for a session that runs a command at once. */
struct session_request oom_job(const char *name);
struct answer oom_create(const struct session_request *req);
/* A report of every kernel that was ordered and is known; 'alloc' and 'ports' may be NULL. */
void oom_all_report(enum msg_kernel_state state, const char *alloc, const char *ports);
/* What a session asks for; it does not count. */
void oom_set_slot(struct slots *slots, const char *name, int64_t amount);
/* Of a live session. */
void oom_terminate(const struct uuid *id, bool forced);
/* Why it waits, if it does. */
void oom_explain(const struct uuid *id);

#endif
