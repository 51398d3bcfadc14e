/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot/scheduler.h - what a plug-in of Aliquot's scheduler provides
 *
 * A plug-in is a shared object that exports one constant,
 *
 *     AQ_SCHEDULER_EXPORT const struct aq_scheduler aq_scheduler = {
 *         .abi = AQ_SCHEDULER_ABI, .size = sizeof(aq_scheduler), .name = "shortest", ...
 *     };
 *
 * It says in which order sessions are looked at, or on which agent one goes,
 * or both; what it does not say is done by the built-in scheduler, and so is
 * whatever it gets wrong. Limits, dependencies and fit are checked by Aliquot
 * alone: a plug-in cannot put more on an agent than there is.
 *
 * It runs inside the manager, in its one thread, and must be quick, pure and
 * never fail by itself: no I/O, no threads, no memory kept beyond a call but
 * its own. The same input must give the same answer. Everything that pointers
 * lead to is borrowed for the duration of the call.
 *
 * Amounts are exact: units of 10^-6 for counts, bytes for bytes.
 *
 * This ABI is frozen: structs keep their layout as long as AQ_SCHEDULER_ABI is
 * the same. Reserved members are 0.
 */
#ifndef ALIQUOT_SCHEDULER_H
#define ALIQUOT_SCHEDULER_H

#include <assert.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AQ_SCHEDULER_ABI 1u
#define AQ_SCHEDULER_SYMBOL "aq_scheduler"
#define AQ_SCHEDULER_EXPORT __attribute__((visibility("default")))

/* What the agent does not have at all. */
#define AQ_SCHEDULER_ABSENT INT64_MIN

/* A session that waits. */
struct aq_scheduler_session {
    int64_t row;            /* creation order; unique */
    int64_t lifetime_usec;  /* its time limit; 0 = none */
    const int64_t *amounts; /* that it asks for in all, by slot */
    uint32_t owner;         /* equal for sessions of one owner */
    uint32_t retries;       /* passes that found no start for it */
    int32_t job_priority;
    uint32_t reserved;
};

/* An agent where it fits. */
struct aq_scheduler_agent {
    const char *id;
    const int64_t *free; /* by slot */
    const int64_t *capacity;
};

struct aq_scheduler_slots {
    const char *const *names; /* "cpu", "cuda.shares", "mem", ...; sorted */
    uint32_t count;
    uint32_t reserved;
};

struct aq_scheduler {
    uint32_t abi;     /* AQ_SCHEDULER_ABI */
    uint32_t size;    /* of this struct */
    const char *name; /* for users */

    /* Put the indexes of all 'count' sessions, each once, into 'ret' in the
     * order in which they are to be looked at. They have one priority and come
     * by row. Returns 0; anything else: by row. NULL = by row.
     */
    int32_t (*order)(const struct aq_scheduler_slots *slots,
                     const struct aq_scheduler_session *sessions, uint32_t count, uint32_t *ret);

    /* The index of the agent that gets what 'amounts' (by slot) asks for as a
     * whole; the agents come by id: all where it fits, or what the session's
     * constraints leave of them. Anything below 0: the built-in choice.
     * NULL = that always.
     */
    int32_t (*choose)(const struct aq_scheduler_slots *slots, const int64_t *amounts,
                      const struct aq_scheduler_agent *agents, uint32_t count);

    void *reserved[4];
};

#ifdef __LP64__
static_assert(sizeof(struct aq_scheduler_session) == 40, "frozen");
static_assert(sizeof(struct aq_scheduler_agent) == 24, "frozen");
static_assert(sizeof(struct aq_scheduler_slots) == 16, "frozen");
static_assert(sizeof(struct aq_scheduler) == 64, "frozen");
#endif

#ifdef __cplusplus
}
#endif

#endif
