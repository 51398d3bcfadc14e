/* kept.h - the scheduler that is kept for each resource group, from the inside
 *
 * kept.c has what happens to it (parts.h); the other kept_*.c tell it of what is
 * marked. All return 0 or -ENOMEM, after which the scheduler is built anew.
 */
#ifndef AQ_MANAGER_CORE_KEPT_H
#define AQ_MANAGER_CORE_KEPT_H

#include "manager/core/parts.h"

/* Into the list, unless it is in one. */
void kept_mark(struct list *to, struct list *link);

/* Does the group's own scheduler know what the session holds? */
static inline bool kept_is_held(const struct rgroup *g, const struct live *l)
{
    return l->rgroup == g && !l->is_outside;
}

int kept_tell_agent(struct core *core, struct rgroup *g, struct agent_live *a, bool is_new);
int kept_tell_agents(struct core *core, struct rgroup *g);
int kept_tell_accounts(struct core *core, struct rgroup *g);
int kept_tell_sessions(struct core *core, struct rgroup *g);
int kept_tell_places(struct core *core, struct rgroup *g);

/* The account as the group sees it, made if need be; NULL = no memory. */
struct group_account *kept_find_account(struct rgroup *g, struct account *account);

/* Whose the session is, by the group's rules. */
int kept_number_owner(struct rgroup *g, const struct live *l, uint32_t *ret);

/* A session as the scheduler is told of it: live_describe(), and whose it is. */
int kept_describe(struct core *core, struct rgroup *g, struct live *l, bool holding,
                  struct sched_session *ret);

#endif
