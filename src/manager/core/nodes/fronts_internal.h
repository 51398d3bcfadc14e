/* SPDX-License-Identifier: Apache-2.0 */
/* fronts_internal.h - the link's callbacks for those that are front daemons */
#ifndef AQ_MANAGER_CORE_NODES_FRONTS_INTERNAL_H
#define AQ_MANAGER_CORE_NODES_FRONTS_INTERNAL_H

#include "link/link.h"

struct core;

/* -EINVAL */
int fronts_check_id(const char *id, struct aq_error *err);
/* Such a name is given by an administrator alone: what to say to who has no token for it. -EACCES.
 */
int fronts_fail_token(const char *id, struct aq_error *err);

int fronts_take_hello(struct core *core, const struct msg_hello *hello, struct aq_error *err);
void fronts_take_message(struct core *core, const char *id, const struct message *msg);
void fronts_lost(struct core *core, const char *id, const struct uuid *incarnation,
                 const char *why);
/* Is it connected? *ret_heard_usec is when bytes came last from it, wall clock; 0 = never. */
bool fronts_find(const struct core *core, const char *id, int64_t *ret_heard_usec);
/* Its certificate was revoked. */
void fronts_forget(struct core *core, const char *id);
void fronts_free(struct core *core);

#endif
