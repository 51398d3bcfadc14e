/* SPDX-License-Identifier: Apache-2.0 */
/* query.h - typed queries, for functions given to store_read() (or store_write())
 *
 * Lists, history and whatever is dead are read here and not from memory. A
 * page owns everything its rows point to, in one arena: rows are read-only,
 * session_done() and the like must not be called on them. Order is always
 * total: every ORDER BY ends in a unique column.
 */
#ifndef AQ_STORE_QUERY_H
#define AQ_STORE_QUERY_H

#include "base/arena.h"
#include "model/agent.h"
#include "model/accounts.h"
#include "model/event.h"
#include "model/session.h"
#include "store/password.h"
#include "store/store.h"

/* A row of the ledger and whose it is; texts are borrowed. */
struct store_usage {
    const char *resource_group, *domain; /* NULL = none */
    struct uuid project, user;
    const char *slot; /* interned */
    int64_t amount;
    int64_t from_usec, until_usec; /* until 0 = it is still held */
};
/* Returns 0, or -errno to stop. */
typedef int (*store_usage_fn)(void *data, const struct store_usage *row);

/* What sessions held that were alive at 'since_usec' or later, removed ones too, in no order. */
int store_read_usage(struct store_tx *tx, int64_t since_usec, store_usage_fn visit, void *data,
                     struct aq_error *err);

/* How much of a session is read. */
enum store_session_detail {
    STORE_SESSION_WHOLE,
    STORE_SESSION_SHORT, /* what has no bounded size is NULL: spec and status_data; of kernels there
                            is rank, status, agent_id, requested and the exit */
    STORE_SESSION_BARE,  /* user_email and project_name are NULL, too */
    STORE_SESSION_BRIEF, /* there is row, name, type, status, result, priority, reason, created and
                            status_changed, no more */
};

/* A part of a list between two of its rows: the same whatever is added before them meanwhile. */
struct store_range {
    const char *after, *before; /* ids of rows, names where a table has none; NULL = no bound */
    int64_t limit, offset;      /* how many at most, and how many are left out before these */
    bool is_from_end;           /* counted back from 'before', or the end; the order stays */
};

/* What to list. Zero-initialise; every member that is set narrows the result,
 * members that a table has no column for are ignored.
 */
struct store_query {
    uint32_t statuses; /* bits 1u << SESSION_x, AGENT_x, USER_x; 0 = any */
    const char *domain;
    const struct uuid *project_id;
    const struct uuid *user_id;
    const char *access_key; /* of the owner */
    const char *resource_group;
    const char *agent;                /* sessions: with a kernel on it, or that had one */
    const struct uuid *array_id;      /* sessions: elements of this array */
    bool no_elements;                 /* sessions: of no array */
    const char *name;                 /* exact name, e-mail of a user, id of an agent */
    const struct uuid *ids;           /* sessions, users, groups: these */
    size_t id_count;                  /* 0 = any; at most STORE_IDS_MAX */
    int is_active;                    /* 0 = any, 1 = active, -1 = inactive */
    const char *action;               /* entries of the audit log */
    const char *object;               /* the same: the kind, id or name of what was changed */
    int64_t since_usec;               /* the same, from then on; 0 = all */
    int64_t until_usec;               /* the same, before then; 0 = all */
    const char *filter, *order;       /* mini language, filter.h; NULL = all, default order */
    int64_t limit, offset;            /* limit 0 = no limit */
    const struct store_range *range;  /* in place of both; NULL = not */
    size_t bytes_max;                 /* of the page in memory; beyond it -EMSGSIZE. 0 = no limit */
    enum store_session_detail detail; /* sessions */
    bool with_kernels;                /* sessions: fill their kernels (one further query) */
    bool with_scheduled;              /* sessions: fill scheduled_usec (likewise) */
    bool with_runs;                   /* sessions: fill their runs (likewise) */
    bool with_dependencies;           /* sessions: fill their dependencies (likewise) */
    bool with_outputs;                /* sessions: fill their outputs (likewise) */
};
#define STORE_IDS_MAX 1000

struct kernel_row {
    struct kernel kernel; /* .session is NULL */
    struct uuid session_id;
    const char *reason;      /* NULL = none */
    int64_t terminated_usec; /* 0 = not yet */
    const char *last_stat;   /* JSON of what it used; NULL = not known, or not yet */
};

/* An attempt of a session after which it went back to the queue. */
struct run_row {
    uint32_t number;                  /* 1 = the first */
    int64_t started_usec, ended_usec; /* started 0 = its program did not start */
    const char *reason;               /* NULL = none, as the other texts */
    bool has_exit;
    int exit_code;
    uint32_t rank; /* of the kernel whose end it was */
    const char *agent_id;
    uint32_t kernel_attempt;
    const char *text;
    const char *usage; /* JSON of what it used */
};

/* What a session waits for, or waited for. */
struct dependency_row {
    struct session_dependency dependency;
    const char *name; /* of the other session or array; NULL = its row is gone, as number 0 */
    int64_t number;   /* job_id of the session, number of the array */
};

struct session_row {
    struct session session; /* .kernels is NULL: see below */
    const char *user_email, *project_name, *cluster_mode;
    int64_t terminated_usec;    /* 0 = not yet */
    int64_t dismissed_usec;     /* in ERROR: removed, or seen by its owner; 0 = not yet */
    int64_t accessed_usec;      /* somebody worked in it last; 0 = never, or not asked for */
    int64_t scheduled_usec;     /* last time; 0 = never, or not asked for */
    struct kernel_row *kernels; /* by rank; NULL unless asked for */
    size_t kernel_count;        /* always set */
    struct run_row *runs;       /* by number; NULL = none, or not asked for */
    size_t run_count;
    struct dependency_row *dependencies; /* NULL = none, or not asked for */
    size_t dependency_count;
    const char *outputs; /* JSON of the values of its main kernel; NULL = none, or not asked for */
};

struct agent_row {
    struct agent agent;
    struct slots occupied; /* sum of live ledger rows */
};

struct user_row {
    struct user user;
    int64_t created_usec;
};

struct keypair_row {
    struct keypair keypair; /* secret_key is empty: nobody lists secrets */
    const char *user_email;
    int64_t created_usec;
    int64_t used_usec; /* last time, a minute late at most; 0 = never */
};

/* The four below begin with what is in memory, too. */
struct domain_row {
    struct domain domain;
    int64_t created_usec;
};

struct project_row {
    struct project project;
    int64_t created_usec;
};

struct policy_row {
    struct keypair_policy policy;
    int64_t created_usec;
};

struct resource_group_row {
    struct resource_group resource_group;
    int64_t created_usec;
};

struct history_row {
    int64_t at_usec;
    bool is_kernel; /* else the session itself */
    uint32_t kernel_rank;
    uint32_t version;   /* after the change */
    const char *status; /* name of session_status or kernel_status */
    const char *reason; /* NULL = none */
};

/* Attempts of the scheduler in a row that had the same answer. */
struct attempt_row {
    const char *kind;
    int64_t first_usec, last_usec, count;
    const char *detail; /* JSON; NULL = none */
};

/* A step of a session's scheduling: a change of its status, or attempts in a row that failed alike.
 * Texts are NULL where there is none.
 */
struct scheduling_row {
    struct uuid session_id;
    bool is_attempt;
    int64_t number; /* of the session's changes or attempts */
    const char *phase, *from_status, *to_status, *result, *error_code;
    const char *message; /* of attempts JSON */
    int64_t attempts, first_usec, last_usec;
};

struct audit_row; /* audit_log.h */

struct store_page {
    struct arena arena;
    void (*done)(
        struct store_page *page); /* releases what rows have from the heap; NULL = nothing */
    size_t count;
    int64_t total; /* rows without limit and offset */
    int64_t first; /* how many of these come before the page's */
    union {
        void *rows;
        struct session_row *sessions;
        struct agent_row *agents;
        struct user_row *users;
        struct keypair_row *keypairs;
        struct domain_row *domains;
        struct project_row *projects;
        struct policy_row *policies;
        struct resource_group_row *resource_groups;
        struct history_row *history;
        struct attempt_row *attempts;
        struct scheduling_row *scheduling;
        struct audit_row *audit_log;
    };
};

void store_page_free(struct store_page *page);
AQ_DEFINE_CLEANUP(struct store_page, store_page_free)

/* Where the rows of a range begin in a list of 'total' rows, of which 'after' come up to the row
 * of that name (0 = all are beyond) and 'before' before the other (total = no bound).
 */
int64_t store_range_place(const struct store_range *range, int64_t after, int64_t before,
                          int64_t *ret_count);

/* Each gives a page, empty if nothing matches. A filter or order that cannot
 * be read is -EINVAL with field "filter" or "order" and the text
 * "Query filter parsing error: ...". -EINVAL with field "after" or "before": that row is not in
 * the list.
 *
 * Sessions: default order most recently changed first. What clients list by
 * default, states that live and ERROR of those that have ended, is without
 * those in ERROR that were dismissed or ended more than a day ago.
 */
int store_list_sessions(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                        struct aq_error *err);
/* With 'user_id' only agents of the resource groups that are allowed to 'domain', a project of the
 * user, or 'access_key'.
 */
int store_list_agents(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                      struct aq_error *err);
int store_list_users(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                     struct aq_error *err);
int store_list_keypairs(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                        struct aq_error *err);
/* For rows that name a domain without a foreign key. -EBUSY, field "domain": there is none, as one
 * that was renamed or purged after the caller looked it up.
 */
int store_check_domain(struct store_tx *tx, const char *name, struct aq_error *err);
int store_list_domains(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                       struct aq_error *err);
int store_list_projects(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                        struct aq_error *err);
int store_list_policies(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                        struct aq_error *err);
/* With 'domain', 'user_id' or 'access_key' only those that are allowed to that domain, a project
 * of the user, or the key.
 */
int store_list_resource_groups(struct store_tx *tx, const struct store_query *q,
                               struct store_page **ret, struct aq_error *err);

/* Sessions that 'text' may mean, among those q selects (filter, order, limit
 * unused): the first of these that has any: id, name, prefix of an id, of a
 * name, of a kernel's id. A prefix of an id has at least
 * SESSION_ID_PREFIX_MIN characters. At most 11 rows, so that "more than 10"
 * shows.
 */
int store_find_sessions(struct store_tx *tx, const struct store_query *q, const char *text,
                        struct store_page **ret, struct aq_error *err);

/* What the scheduler made of a session, oldest first. */
int store_list_attempts(struct store_tx *tx, const struct uuid *session_id, struct store_page **ret,
                        struct aq_error *err);
/* Status changes of a session and its kernels, oldest first. */
int store_list_history(struct store_tx *tx, const struct uuid *session_id, struct store_page **ret,
                       struct aq_error *err);

/* The same of all sessions, without kernels and creations, the latest first. Narrowed by filter. */
int store_list_scheduling(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                          struct aq_error *err);

struct store_login {
    struct uuid user_id;
    char hash[PASSWORD_HASH_MAX];
    int64_t changed_usec; /* when the password was set */
};

/* The user with this e-mail, active or before verification, for a login: always
 * 0 when the database answers; the hash is "" if there is none (give it to
 * password_verify() all the same, so that both answers take as long).
 */
int store_find_login(struct store_tx *tx, const char *domain, const char *email,
                     struct store_login *ret, struct aq_error *err);

/* Give the user another hash of the same password, unless it is no longer 'old'. */
int user_replace_hash(struct store_tx *tx, const struct uuid *id, const char *old, const char *hash,
                      struct aq_error *err);

/* What a purge takes along, and what of the past keeps its name. */
struct purge_plan {
    int64_t keypairs, memberships, projects;
    int64_t grants;         /* leaves to use a resource group */
    int64_t ended_sessions; /* they stay */
};
int store_plan_purge(struct store_tx *tx, const struct event_purge *purge, struct purge_plan *ret,
                     struct aq_error *err);

/* Resource groups that a domain, project or keypair may use: the union of
 * what each of the given (NULL = skip) was allowed; active ones, by name.
 */
int store_list_allowed_resource_groups(struct store_tx *tx, const char *domain,
                                       const struct uuid *project_id, const char *access_key,
                                       struct store_page **ret, struct aq_error *err);

#endif
