/* admit.h - what can be said against a session before it waits
 *
 * Everything that no waiting would cure: refused when it is created, and by
 * the same code when somebody only asks whether it would be. All that is wrong
 * is said, a line each, in the order of the fields below. Fields of errors are
 * named as in a request. Pure.
 */
#ifndef AQ_SCHED_ADMIT_H
#define AQ_SCHED_ADMIT_H

#include "sched/sched.h"

/* A resource group that the owner may use. */
struct admit_group {
    const char *name;
    unsigned types;            /* it accepts: 1u << enum session_type */
    /* Whether any of its agents has the slot (an interned name); also true while
     * it has no agents. */
    bool (*serves)(const void *data, const char *slot);
    const void *data;          /* for serves() */
};

/* What an image wants of a kernel that runs it. */
struct admit_kernel {
    const struct slots *min, *max; /* NULL = nothing; in max a missing slot is unlimited */
    int64_t shmem_bytes;       /* comes on top of the image's least memory */
};

#define ADMIT_UNLIMITED INT64_MAX

struct admission {
    const struct sched_session *session;
    const struct slot_types *types;
    const struct admit_kernel *kernels; /* by rank; NULL = no image wants anything */
    const char *resource_group; /* asked for; NULL = any that will do */
    const struct admit_group *groups;
    size_t group_count;
    /* Of the policy; ADMIT_UNLIMITED = no limit. */
    int64_t containers_max, pending_max;
    const struct slots *pending_slots_max; /* a missing slot is unlimited; NULL = none */
    int priority_max;          /* 0..100 */
    /* What the owner has waiting already. */
    int64_t pending;
    const struct slots *pending_slots;
};

/* 0: it may wait; *ret_group is the first of the groups that take it. -EINVAL,
 * -ENOENT (no such group for them) or -EDQUOT (too much waits) with the first
 * thing that is wrong in 'err' (its field named) and all of them in 'text',
 * which may be NULL. -ENOMEM.
 */
int sched_admit(const struct admission *a, const struct admit_group **ret_group,
                struct strbuf *text, struct aq_error *err);

#endif
