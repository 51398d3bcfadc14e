/* SPDX-License-Identifier: Apache-2.0 */
/* scene.h - a simulated manager and three simulated agents, for the tests of src/sim/play */
#ifndef AQ_TESTS_SIM_PLAY_SCENE_H
#define AQ_TESTS_SIM_PLAY_SCENE_H

#include "testing.h"

#include "base/clock.h"
#include "manager/core/core.h"
#include "manager/core/lookup.h"
#include "sim/play/play_agent.h"
#include "sim/play/play_manager.h"
#include "sim/play/play_runtime.h"

#define AGENTS 3
#define MINUTE (60 * USEC_PER_SEC)

extern struct play_manager *manager;
extern struct play_agent *agents[AGENTS]; /* "node-1" has a card in shares, "node-2" a whole one */
extern simuv_host manager_host;

/* Of a group of tests: the machines boot, and are removed. */
int scene_begin(void **state);
int scene_end(void **state);

void run_for(int64_t usec);

/* A batch session with this command line; 'slot' is NULL, or what it wants besides the usual. Fails
 * the test unless it is acknowledged.
 */
struct uuid submit_with(const char *command, const char *slot, int64_t amount);
struct uuid submit(const char *command);
/* The same if it may fail: false without an acknowledgement within a second. */
bool try_to_submit(const char *command, const char *slot, int64_t amount, struct uuid *ret);

void terminate(const struct uuid *id);

/* The manager is up, and has it in memory in a status that is not the last. */
bool lives(const struct uuid *id);
bool runs(const struct uuid *id);

/* As the manager's database has it; fails the test if there is none. */
struct outcome {
    enum session_status status;
    char reason[64];
    bool has_exit;
    int exit_code; /* of its first kernel */
};
struct outcome read_outcome(const struct uuid *id);

struct count {
    int programs, running, most_starts;
};
struct count count_programs(void);

#endif
