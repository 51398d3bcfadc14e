/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - the resource groups whose nodes a user sees on the map
 *
 * Those that may be used in any of the user's projects. On the loop's thread.
 */
#ifndef AQ_MANAGER_LIVE_LIVE_H
#define AQ_MANAGER_LIVE_LIVE_H

#include "manager/call/api.h"

struct live_groups;

/* 'groups' as in struct live_scope, the callee's; NULL if r < 0. */
typedef void (*live_groups_fn)(void *data, int r, char *groups, const struct aq_error *err);

/* 'fn' is called once, later, unless it is cancelled before. */
struct live_groups *live_groups_read(struct core *core, const struct user *user,
                                     const char *access_key, live_groups_fn fn, void *data);
void live_groups_cancel(struct live_groups *groups); /* NULL is fine */

/* Another number when it has to be read again; 'user' may be NULL. */
uint64_t live_groups_version(const struct core *core, const struct user *user);

#endif
