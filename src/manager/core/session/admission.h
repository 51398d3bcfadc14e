/* SPDX-License-Identifier: Apache-2.0 */
/* admission.h - whether a new session may wait: limits and the shape of its request */
#ifndef AQ_MANAGER_CORE_SESSION_ADMISSION_H
#define AQ_MANAGER_CORE_SESSION_ADMISSION_H

#include <stdint.h>

#include "model/accounts.h"
#include "model/session.h"

struct account;
struct aq_error;
struct core;

/* What one owner's waiting sessions ask for, summed when it is first needed; .access_key "" at
 * first. */
struct admission_queue {
    char access_key[ACCESS_KEY_MAX];
    struct slots slots;
};

/* The contents of 'queue'. */
void admission_done(struct admission_queue *queue);

/* What a session that was admitted takes of its owner's limits before it is in memory; zeroed =
 * nothing. */
struct admission_hold {
    struct account *keypair, *user;
    int64_t bytes;
    bool is_system;
};

/* It is in memory, or will not be made. */
void admission_release(struct core *core, struct admission_hold *hold);

/* Whether 's' may wait, by sched_admit() and session_bytes_check(): then its resource
 * group is set, that of that name or the first that takes it if NULL, and it counts as
 * waiting from now on, until *ret_hold is released. Errors of those, with all that is
 * wrong in the text.
 */
int admission_check(struct core *core, struct session *s, const char *resource_group,
                    struct admission_queue *queue, struct admission_hold *ret_hold,
                    struct aq_error *err);

#endif
