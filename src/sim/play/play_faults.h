/* SPDX-License-Identifier: Apache-2.0 */
/* play_faults.h - what goes wrong in a run: crashes, networks, disks, clocks */
#ifndef AQ_SIM_PLAY_PLAY_FAULTS_H
#define AQ_SIM_PLAY_PLAY_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct fault;
struct play;

enum play_fault {
    PLAY_FAULT_CRASH,     /* of the manager, of an agent, of a machine with its programs */
    PLAY_FAULT_PARTITION, /* between the manager and an agent, one or both ways */
    PLAY_FAULT_STALL,     /* a slow network that loses segments and connections */
    PLAY_FAULT_DISK,      /* slow syncs; of the manager also errors, no room */
    PLAY_FAULT_CLOCK,     /* a wall clock jumps */
    PLAY_FAULT_COUNT
};

struct play_faults {
    bool is_over;
    int64_t begun_usec;       /* simulated time */
    int active;               /* that have begun and not ended */
    struct fault *armed;      /* a crash of the manager that waits for a request; NULL = none */
    struct fault *armed_node; /* and of an agent, for something to happen to a kernel */
};

extern const char *const play_fault_names[PLAY_FAULT_COUNT];

/* "none", "some", "many", or names with commas between them: -EINVAL. */
int play_faults_parse(const char *text, unsigned *ret_faults, double *ret_scale,
                      struct aq_error *err);

void play_faults_begin(struct play *play);

/* A request has been sent: its answer may be lost. */
void play_faults_on_request(struct play *play);

/* The manager or an agent has just changed a kernel of this agent. Also from code of hosts. */
void play_faults_on_kernel(struct play *play, const char *agent_id);

/* No other fault begins; what is broken is mended within ten minutes. */
void play_faults_stop(struct play *play);

#endif
