/* SPDX-License-Identifier: Apache-2.0 */
/* admission.h - whether a new session may wait: limits and the shape of its request */
#ifndef AQ_MANAGER_CORE_SESSION_ADMISSION_H
#define AQ_MANAGER_CORE_SESSION_ADMISSION_H

#include <stdint.h>

#include "model/accounts.h"
#include "model/resource_opts.h"
#include "model/session.h"

struct aq_error;
struct core;

/* What waits of one owner, counted when it is first needed; .access_key "" at first. */
struct admission_queue {
    char access_key[ACCESS_KEY_MAX];
    int64_t count;
    struct slots slots;
};

/* The contents of 'queue'. */
void admission_done(struct admission_queue *queue);

/* What is asked for beside what is in the session. */
struct admission_request {
    const char *resource_group; /* NULL = any */
    const char *architecture;   /* NULL = any */
    int64_t shmem_bytes;        /* 0 = nothing is said */
    enum splitting splitting;   /* the same */
    const char *const *agents;  /* ids: one of these only; NULL = any */
    size_t agent_count;
    bool waits_for_capacity; /* more than any agent has is fine */
};

/* Whether 's' may wait, by sched_admit(): then its resource group is set, that of
 * that name or the first that takes it if NULL, and it counts as waiting for those
 * of the same request that come after it. Errors of sched_admit(), with all that is
 * wrong in the text.
 */
int admission_check(struct core *core, struct session *s, const struct admission_request *asked,
                    struct admission_queue *queue, struct aq_error *err);

#endif
