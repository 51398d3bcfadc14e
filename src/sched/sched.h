/* sched.h - who goes where, and why not
 *
 * One pass: a snapshot of agents, accounts and waiting sessions in, an outcome
 * per session that was looked at out. Pure: same snapshot, same outcomes; it
 * reads no clock, keeps no state and every order ends in a unique tie-break.
 *
 * Sessions are taken band by band (higher priority first), within a band as
 * the sequencer says. Validators look at each first; a session that one
 * refuses does not hold up others. One that finds no room does: what is
 * behind it is not looked at, unless the sequencer lets others pass.
 * All kernels of a session are placed, or none.
 */
#ifndef AQ_SCHED_SCHED_H
#define AQ_SCHED_SCHED_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "model/session.h"
#include "model/slot.h"

struct sched_agent {
    const char *id;            /* unique */
    const char *architecture;
    const struct slots *free;  /* offered less what kernels hold */
    uint32_t kernels, kernels_max; /* kernels_max 0 = no limit */
};

enum sched_account_kind { SCHED_KEYPAIR, SCHED_GROUP, SCHED_DOMAIN, SCHED_ACCOUNT_KINDS };

/* A ceiling that the sessions of one keypair, project or domain share. */
struct sched_account {
    enum sched_account_kind kind;
    const char *name;
    const struct slots *limits;
    bool missing_is_zero;      /* a slot that limits do not name may not be used at all */
    int64_t max_sessions;      /* <= 0 = no limit */
    const struct slots *used;
    int64_t sessions;          /* that hold something */
};

#define SCHED_NO_ACCOUNT UINT32_MAX

struct sched_session {
    struct uuid id;
    int64_t row;               /* creation order, unique */
    enum session_type type;
    int priority;
    int64_t starts_usec;       /* 0 = at once */
    const char *architecture;  /* NULL = any */
    bool single_node;          /* all kernels to one agent */
    const struct slots *const *kernels; /* what each requests, by rank */
    size_t kernel_count;
    const struct session_dependency *dependencies;
    size_t dependency_count;
    uint32_t accounts[SCHED_ACCOUNT_KINDS]; /* indexes, or SCHED_NO_ACCOUNT */
    const char *failed_agent;  /* where it could not be started last time: only if
                                  no other has room; NULL = none */
};

struct sequencer_ops;
struct selector_ops;

struct sched_snapshot {
    int64_t now_usec;          /* wall clock, for starts_usec */
    const struct slot_types *types; /* all known ones: no agent has any other */
    const struct sequencer_ops *sequencer;
    const struct selector_ops *selector;
    const char *const *slot_priority; /* device names, e.g. "cuda", "cpu": compared first */
    size_t slot_priority_count;
    const struct sched_agent *agents;
    size_t agent_count;
    const struct sched_account *accounts;
    size_t account_count;
    const struct sched_session *sessions; /* by priority (highest first), then row */
    size_t session_count;
};

enum sched_verdict {
    SCHED_PLACED,
    SCHED_NO_ROOM,      /* fits on no agent now; holds up what is behind it */
    SCHED_NO_AGENT,     /* there is no agent (of its architecture) */
    SCHED_TOO_EARLY,    /* before starts_usec */
    SCHED_DEPENDENCY,   /* waits for another session's success */
    SCHED_DOOMED,       /* a dependency failed: it will never run */
    SCHED_CONCURRENCY,  /* too many sessions of the account */
    SCHED_QUOTA,        /* the account's slots are used up */
    SCHED_BEHIND,       /* never an outcome: held up by another (explanations only) */
};
/* "no-room" ...: a stable word for programs. */
const char *sched_verdict_name(enum sched_verdict verdict);

struct sched_outcome {
    uint32_t session;          /* index in the snapshot */
    enum sched_verdict verdict;
    uint32_t account;          /* that refused, or SCHED_NO_ACCOUNT */
    const uint32_t *agents;    /* PLACED: index of the agent per kernel */
};

struct sched_result {
    struct sched_outcome *outcomes; /* in the order of looking */
    size_t count;
    bool is_blocked;           /* the last outcome holds up the rest */
};

/* One pass; the result lives in 'arena'. 0 or -ENOMEM. */
int sched_run(const struct sched_snapshot *snap, struct arena *arena, struct sched_result *ret,
              struct aq_error *err);

/* Say why session 'index', looked at by itself, does not start: a sentence or
 * list for people into 'text', and an object {"kind", "text", "requirements":
 * [{"slots", "agents", "nearest", "missing"}], "account", "dependencies",
 * "starts_at"} into 'json'; either may be NULL. Returns the verdict (PLACED: it
 * could start now), or -ENOMEM.
 */
int sched_explain(const struct sched_snapshot *snap, uint32_t index, struct arena *arena,
                  struct strbuf *text, struct strbuf *json, struct aq_error *err);

/* ---- plug points ---- */

struct sequencer_ops {
    const char *name;
    /* Put 'count' indexes, all of one band and by row, into the order to look. */
    void (*order)(const struct sched_snapshot *snap, uint32_t *indexes, size_t count);
    /* May others pass a session that found no room? */
    bool (*may_pass)(const struct sched_snapshot *snap, uint32_t index);
};
extern const struct sequencer_ops sched_fifo;

/* Amounts of one agent in the columns to compare, most important first. */
struct sched_candidate {
    const char *agent_id;
    int unutilized;            /* slots it has free that the request does not want */
    const int64_t *free;       /* per column; SCHED_ABSENT = the agent has no such slot */
    size_t count;
};
#define SCHED_ABSENT INT64_MIN

struct selector_ops {
    const char *name;
    /* Is 'a' better than 'b'? Ties are broken by agent id afterwards. */
    int (*compare)(const struct sched_candidate *a, const struct sched_candidate *b); /* < 0: a */
};
extern const struct selector_ops sched_concentrated, sched_dispersed;

/* NULL for a name that is not known. */
const struct sequencer_ops *sched_find_sequencer(const char *name);
const struct selector_ops *sched_find_selector(const char *name);

#endif
