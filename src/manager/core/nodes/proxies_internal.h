/* SPDX-License-Identifier: Apache-2.0 */
/* proxies_internal.h - the link's callbacks for those that are proxies */
#ifndef AQ_MANAGER_CORE_NODES_PROXIES_INTERNAL_H
#define AQ_MANAGER_CORE_NODES_PROXIES_INTERNAL_H

#include "link/link.h"

struct core;

/* Is this the id of a proxy, whether it is a good one or not? No agent's is. */
bool proxies_is_one(const char *id);
/* -EINVAL */
int proxies_check_id(const char *id, struct aq_error *err);

int proxies_take_hello(struct core *core, const struct msg_hello *hello, struct aq_error *err);
void proxies_take_message(struct core *core, const char *id, const struct message *msg);
void proxies_lost(struct core *core, const char *id, const struct uuid *incarnation,
                  const char *why);
/* Its certificate was revoked. */
void proxies_forget(struct core *core, const char *id);
void proxies_free(struct core *core);

#endif
