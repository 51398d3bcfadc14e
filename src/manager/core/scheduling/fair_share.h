/* SPDX-License-Identifier: Apache-2.0 */
/* fair_share.h - fair share: what was used of a resource group lately, by whom
 *
 * A group that schedules by fair share has a struct fair_share. What kernels held
 * is in the ledger of the store for good; it is read once, up to the time at
 * which the struct was made, and from then on kept up to date when a kernel
 * gives back what it held. What runs is added when it is asked for. So nothing
 * is written for it, and a restart or an audit comes to the same sums.
 */
#ifndef AQ_MANAGER_CORE_FAIR_SHARE_H
#define AQ_MANAGER_CORE_FAIR_SHARE_H

#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"

struct fair_share;
struct store_tx;

void fair_share_free(struct fair_share *u);
/* A pass may be made: the group does not schedule by fair share, or what was used of it is known.
 * Otherwise that is being read, and a pass follows.
 */
bool fair_share_is_ready(struct core *core, struct resource_group_entry *g);
/* A kernel of 'l' gave back what it held since 'from_usec' (wall clock). */
void fair_share_add(struct session_entry *l, size_t rank, int64_t from_usec, int64_t until_usec);
/* A domain is renamed. Its owners are named again when the scheduler is rebuilt. */
void fair_share_rename_domain(struct resource_group_entry *g, const char *from, const char *to);
/* Tell the group's scheduler the factors of its owners, if it was told long ago. */
int fair_share_push(struct core *core, struct resource_group_entry *g);
/* Whom an owner's number of the group's scheduler stands for. */
void fair_share_name_owner(struct resource_group_entry *g, uint32_t number,
                           const struct session_entry *l);

/* ---- audit ---- */

struct fair_share_check;

/* On a thread of the store: sums of the ledger up to 'until_usec'. */
int fair_share_check_read(struct store_tx *tx, int64_t until_usec, struct fair_share_check **ret,
                          struct aq_error *err);
/* Each difference between memory and the ledger, as a line. */
void fair_share_check_compare(struct core *core, struct fair_share_check *check,
                              void (*find)(void *data, const char *text), void *data);
void fair_share_check_free(struct fair_share_check *check);

#endif
