/* pass.h - the working state of one scheduling pass, inside src/sched
 *
 * Amounts are kept in tables of int64_t with a column per known slot type, so
 * that trying an agent is a few comparisons and no lookups.
 */
#ifndef AQ_SCHED_PASS_H
#define AQ_SCHED_PASS_H

#include "sched/sched.h"

struct pass {
    const struct sched_snapshot *snap;
    struct arena *arena;
    size_t columns;
    const char **names;     /* of the columns, sorted */
    int64_t *free;          /* agents x columns; less what this pass placed */
    uint32_t *kernels;      /* per agent */
    int64_t *used;          /* accounts x columns; with what this pass placed */
    int64_t *sessions;      /* per account */
};

/* What must go to one agent as a whole. */
struct requirement {
    int64_t *amounts;       /* per column */
    bool *named;            /* per column: the request names it, be it 0 */
    uint32_t kernels;
    const char *unknown;    /* a slot wanted that no agent ever had, or NULL */
};

int pass_init(struct pass *pass, const struct sched_snapshot *snap, struct arena *arena);

/* The requirements of a session: one for a single-node session, else one per
 * kernel. 0 or -ENOMEM.
 */
int pass_require(const struct pass *pass, const struct sched_session *s, struct requirement **ret,
                 size_t *ret_count);

/* The best agent for 'req', UINT32_MAX if none has room; *ret_seen gets how
 * many agents there are of the session's architecture. -ENOMEM.
 */
int pass_select(const struct pass *pass, const struct sched_session *s,
                const struct requirement *req, uint32_t *ret_agent, size_t *ret_seen);

/* Take (sign 1) or give back (-1) what 'req' holds on an agent. */
void pass_hold(struct pass *pass, uint32_t agent, const struct requirement *req, int sign);
/* Count a session that was placed on its accounts. */
void pass_charge(struct pass *pass, const struct sched_session *s, const struct requirement *reqs,
                 size_t count);

bool agent_matches(const struct sched_agent *agent, const struct sched_session *s);

/* SCHED_PLACED if nothing speaks against it; *ret_account as in the outcome. */
enum sched_verdict pass_validate(const struct pass *pass, const struct sched_session *s,
                                 const struct requirement *reqs, size_t count,
                                 uint32_t *ret_account);

/* What an account may use of a column. */
int64_t account_limit(const struct pass *pass, uint32_t account, size_t column);

#endif
