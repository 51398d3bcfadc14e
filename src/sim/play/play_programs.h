/* SPDX-License-Identifier: Apache-2.0 */
/* play_programs.h - what programs of kernels did, as play_runtime.h tells
 *
 * A kernel has one program at a time ("once"), and programs hold no more than their agent has
 * ("ledger"): both are checked when one starts.
 */
#ifndef AQ_SIM_PLAY_PLAY_PROGRAMS_H
#define AQ_SIM_PLAY_PLAY_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/grant.h"
#include "base/list.h"
#include "base/map.h"
#include "base/uuid.h"

struct play;

/* The program of a kernel, over all its attempts. */
struct play_ran {
    struct list running_link;
    struct uuid kernel_id;
    const char *agent_id; /* where it runs, or ran last */
    int running, starts;  /* now; ever */
    const char *reason;   /* of its last end; NULL = none, or with its machine */
    int code;
    struct alloc_grant holds; /* while it runs */
    int64_t doubtful_usec; /* since when it and its kernel contradict each other; 0 = they agree */
};

struct play_programs {
    struct map by_kernel; /* id of a kernel -> struct play_ran */
    struct list running;  /* play_ran.running_link */
    struct map held;      /* "agent slot", "agent slot device" -> int64_t: what programs hold now */
};

void play_programs_begin(struct play *play);

/* Of a kernel that has none yet, too. Lives as long as the run. */
struct play_ran *play_programs_of(struct play *play, const struct uuid *kernel_id);

/* Its last program has ended on its own, with this status. */
bool play_ran_exited(const struct play_ran *p, int code);

#endif
