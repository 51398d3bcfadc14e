/* SPDX-License-Identifier: Apache-2.0 */
/* idle_entry.h - how much a session is used, in memory
 *
 * Times are monotonic. What a session's row says of earlier lives of the manager is translated
 * when it is applied (clock_adjustment.h), so that a clock that jumps ends nothing.
 */
#ifndef AQ_MANAGER_CORE_STATE_IDLE_ENTRY_H
#define AQ_MANAGER_CORE_STATE_IDLE_ENTRY_H

#include "manager/core/idle.h"

struct core;
struct kernel_entry;
struct session_entry;

#define IDLE_REQUESTS 64

/* The latest requests to its apps that were different. */
struct idle_requests {
    uint64_t hashes[IDLE_REQUESTS];
    unsigned next;
};

struct idle_entry {
    struct session_idle saved;      /* as its row has it */
    struct idle_limits limits;      /* as they were at its last examination */
    int64_t began_usec;             /* to run; 0 = not known yet */
    int64_t active_usec;            /* it was in use, or computed; 0 = not since it began */
    int64_t extended_usec;          /* is kept until then; 0 = nobody asked */
    int64_t exempt_usec;            /* CORE_IDLE_FOREVER; 0 = is not */
    int64_t traffic_usec;           /* when 'traffic' began */
    int64_t traffic;                /* bytes into its apps in a minute */
    struct idle_requests *requests; /* NULL = none was made */
    unsigned commands;              /* that run while somebody waits */
    struct idle_window *window;     /* NULL = utilization is not looked at */
    int64_t low_usec;               /* since then it is too low; 0 = it is not */
    unsigned warned;                /* how many warnings were given of this end */
    int64_t noticed_usec;           /* when the first was; 0 = none was */
};

/* Made if there is none yet. */
struct idle_entry *idle_entry_get(struct session_entry *l);
/* NULL is fine. */
void idle_entry_free(struct idle_entry *idle);

/* Its row has these parts now. */
void idle_entry_apply(struct core *core, struct session_entry *l, const struct session_idle *to,
                      unsigned what);

/* It waits again: what comes after begins from the start. */
void idle_entry_begin_again(struct session_entry *l);

/* A sample of this kernel was taken. */
void idle_entry_measure(struct core *core, struct session_entry *l, struct kernel_entry *k);

/* Is not known whether it computes: a kernel was not measured lately. */
bool idle_entry_is_unmeasured(const struct core *core, const struct session_entry *l, int64_t now);

/* Settings or policies have changed: all that run are examined within a second. */
void idle_entry_tick(struct core *core);

#endif
