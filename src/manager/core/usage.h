/* usage.h - fair share: what was used of a resource group lately, by whom
 *
 * A group that schedules by fair share has a struct usage. What kernels held
 * is in the ledger of the store for good; it is read once, up to the time at
 * which the struct was made, and from then on kept up to date when a kernel
 * gives back what it held. What runs is added when it is asked for. So nothing
 * is written for it, and a restart or an audit comes to the same sums.
 */
#ifndef AQ_MANAGER_CORE_USAGE_H
#define AQ_MANAGER_CORE_USAGE_H

#include "manager/core/parts.h"

struct usage;

void usage_free(struct usage *u);
/* A pass may be made: the group does not schedule by fair share, or what was used of it is known.
 * Otherwise that is being read, and a pass follows.
 */
bool usage_is_ready(struct core *core, struct rgroup *g);
/* A kernel of 'l' gave back what it held since 'from_usec' (wall clock). */
void usage_add(struct live *l, size_t rank, int64_t from_usec, int64_t until_usec);
/* Tell the group's scheduler the factors of its owners, if it was told long ago. */
int usage_tell(struct core *core, struct rgroup *g);
/* Whom an owner's number of the group's scheduler stands for. 0 or -ENOMEM. */
int usage_name_owner(struct rgroup *g, uint32_t number, const struct live *l);

/* ---- audit ---- */

struct usage_check;

/* On a thread of the store: sums of the ledger up to 'until_usec'. */
int usage_check_read(struct store_tx *tx, int64_t until_usec, struct usage_check **ret,
                     struct aq_error *err);
/* Each difference between memory and the ledger, as a line. */
void usage_check_compare(struct core *core, struct usage_check *check,
                         void (*find)(void *data, const char *text), void *data);
void usage_check_free(struct usage_check *check);

#endif
