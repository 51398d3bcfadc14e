/* SPDX-License-Identifier: Apache-2.0 */
/* admit.h - admission checks: what is wrong with a session before it is queued
 *
 * Everything that no waiting would cure: refused when it is created, and by
 * the same code when somebody only asks whether it would be. All that is wrong
 * is said, a line each, in the order of the fields below. Fields of errors are
 * named as in a request. Pure.
 */
#ifndef AQ_SCHED_ADMIT_H
#define AQ_SCHED_ADMIT_H

#include "sched/capacity.h"

/* Networks that a session may ask for, as bits. */
#define ADMIT_NETWORK_PRIVATE 1u
#define ADMIT_NETWORK_HOST 2u
#define ADMIT_NETWORK_FORBIDDEN "host-network-forbidden" /* kind of the error */

/* A resource group that the owner may use. */
struct admit_resource_group {
    const char *name;
    unsigned types; /* it accepts: 1u << enum session_type */
    /* All agents that it is known to have, also those that take no sessions now. What none of
     * them could hold is refused; without any nothing is, if it is asked for by name or no group
     * has agents. */
    capacity_next_fn next_agent;
    const void *data;  /* for next_agent() */
    bool may_split;    /* as sched_session has it, there */
    unsigned networks; /* it allows: ADMIT_NETWORK_*; 0 = private */
};

/* What an image wants of a kernel that runs it. */
struct admit_kernel {
    const struct slots *min, *max; /* NULL = nothing; in max a missing slot is unlimited */
    int64_t shmem_bytes;           /* comes on top of the image's least memory */
};

#define ADMIT_UNLIMITED INT64_MAX

struct admission {
    const struct sched_session *session;
    size_t containers; /* of the session with those beyond its minimum; 0 = those of 'session' */
    const struct slot_types *types;
    const struct admit_kernel *kernels; /* by rank; NULL = no image wants anything */
    const char *const *roles;           /* of kernels, by rank; NULL = no roles */
    const char *resource_group;         /* asked for; NULL = any that will do */
    const struct admit_resource_group *groups;
    size_t group_count;
    bool waits_for_capacity; /* it may ask for more than any agent has */
    unsigned networks;       /* ADMIT_NETWORK_*: all of them are asked for; 0 = private */
    const char *policy;      /* name of the owner's keypair policy; NULL = none */
    bool may_use_host;       /* it allows the host network */
    /* Of the policy; ADMIT_UNLIMITED = no limit. */
    int64_t containers_max, pending_max, systems_max;
    const struct slots *pending_slots_max; /* a missing slot is unlimited; NULL = none */
    int priority_max;                      /* 0..100 */
    int64_t systems; /* that the owner has already, of a session of that type */
    /* What the owner has waiting already. */
    int64_t pending;
    const struct slots *pending_slots;
};

/* 0: it may wait; *ret_group is the first of the groups that take it. -EINVAL,
 * -ENOENT (no such group for them), -EPERM of the kind ADMIT_NETWORK_FORBIDDEN, or -EDQUOT (a limit
 * of the policy) with the first
 * thing that is wrong in 'err' (its field named) and all of them in 'text',
 * which may be NULL. 'arena' is for what is needed meanwhile.
 */
int sched_admit(const struct admission *a, const struct admit_resource_group **ret_group,
                struct arena *arena, struct strbuf *text, struct aq_error *err);

#endif
