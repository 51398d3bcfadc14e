/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - rows of pipelines, their runs and the tasks of these
 *
 * For functions given to store_read() and store_write(). Texts that were read are of the arena or
 * the page.
 */
#ifndef AQ_STORE_PIPELINE_H
#define AQ_STORE_PIPELINE_H

#include "model/folder.h"
#include "store/query.h"

#define PIPELINE_VERSIONS_MAX 1000 /* of a user */
#define PIPELINE_RUNS_MAX 1000     /* of a user; older ones that have ended go */
#define PIPELINE_RUNS_LIVE_MAX 100 /* per user, not ended */
/* Of those: what the manager keeps in memory of them, give or take one run. */
#define PIPELINE_TASKS_LIVE_MAX 50000
#define PIPELINE_BYTES_LIVE_MAX (8 << 20) /* files and parameters */
#define PIPELINE_HASH_MAX 65              /* hex digits of a SHA-256, NUL */

/* A version. */
struct pipeline_row {
    struct uuid id, user_id;
    const char *name, *hash, *text;
    int64_t version, saved_usec;
    /* As read. */
    const char *user_email;
    int64_t last_run;           /* number of the latest run of the name; 0 = none yet */
    const char *last_run_state; /* of the latest that is kept; NULL = none is */
    int64_t next_usec;          /* when a trigger is due; 0 = none is */
};

/* Keep the text under its name: *inout gets id and version, those of then if the same was kept
 * before. -E2BIG.
 */
int pipeline_save(struct store_tx *tx, struct pipeline_row *inout, struct aq_error *err);

/* A version of a user's pipeline; 0 = what its name means. -ENOENT. */
int pipeline_find(struct store_tx *tx, const struct uuid *user_id, const char *name,
                  int64_t version, struct arena *arena, struct pipeline_row *ret,
                  struct aq_error *err);

/* Whose rows a viewer sees: the condition for 'extra', with 'column' as the owner. As for one run,
 * administrators of a domain do not see those of superadmins.
 */
#define PIPELINE_EXTRA(who, all, user, also, column)                                          \
    {                                                                                         \
        .where = (all) && (who)->is_superadmin ? also                                         \
                 : (all) && (who)->admin_of    ? also " AND (" column " = ? OR (u.domain = ?" \
                                                      " AND u.role <> 'superadmin'))"         \
                                               : also " AND " column " = ?",                     \
        .params = { uuid_format(&(who)->user_id, user), (who)->admin_of },                    \
        .param_count = (all) && (who)->is_superadmin ? 0                                      \
                       : (all) && (who)->admin_of    ? 2                                      \
                                                     : 1,                                        \
    }

/* The latest version of each name, without texts; with 'all' also what an administrator may see: of
 * superadmins nothing, unless he is one.
 */
int store_list_pipelines(struct store_tx *tx, const struct folder_viewer *who, bool all,
                         const struct store_query *query, struct store_page **ret,
                         struct aq_error *err);

/* All versions of a name of the viewer's own, without texts. */
int store_list_pipeline_versions(struct store_tx *tx, const struct folder_viewer *who,
                                 const char *name, const struct store_query *query,
                                 struct store_page **ret, struct aq_error *err);

struct pipeline_run_row {
    struct uuid id, pipeline_id, user_id;
    const char *access_key, *name, *state;
    int64_t number;
    bool is_cancelled;
    const char *parameters, *options; /* JSON */
    int64_t created_usec, ended_usec; /* the latter 0 = it runs */
    const char *started_by;           /* the trigger; NULL = a request */
    int64_t due_usec;                 /* of a schedule; 0 = none */
    int64_t depth;                    /* how many runs led to it, each by its end */
    const char *text;                 /* of the version, as read; not in lists */
    const char *user_email, *domain;  /* of the user, as read */
    enum user_role role;              /* likewise */
    int64_t version, task_count, succeeded, failed, running; /* as read */
};

/* -E2BIG if the runs of the user that have not ended are as many, or as large, as is allowed. */
int pipeline_run_check_live(struct store_tx *tx, const struct uuid *user_id, struct aq_error *err);

/* A new one: sets its number. Oldest ones that have ended go if there are too many. -E2BIG. */
int pipeline_run_insert(struct store_tx *tx, struct pipeline_run_row *inout, struct aq_error *err);

/* By id, or by NAME.NUMBER of the viewer's own. -ENOENT. */
int pipeline_run_find(struct store_tx *tx, const struct folder_viewer *who, const char *text,
                      struct arena *arena, struct pipeline_run_row *ret, struct aq_error *err);

int store_list_pipeline_runs(struct store_tx *tx, const struct folder_viewer *who, bool all,
                             const struct store_query *query, struct store_page **ret,
                             struct aq_error *err);

/* Ids of those that have not ended. */
int pipeline_run_list_live(struct store_tx *tx, struct arena *arena, struct uuid_list *ret,
                           struct aq_error *err);

/* State, whether it is cancelled, version, parameters and end. */
int pipeline_run_update(struct store_tx *tx, const struct pipeline_run_row *row,
                        struct aq_error *err);

enum pipeline_state {
    PIPELINE_WAITING,
    PIPELINE_RUNNING, /* it has a session */
    PIPELINE_SUCCEEDED,
    PIPELINE_FAILED,
    PIPELINE_SKIPPED,
    PIPELINE_CANCELLED,
};
const char *pipeline_state_name(enum pipeline_state state);

struct pipeline_task_row {
    int64_t place;
    const char *name;
    enum pipeline_state state;
    int64_t attempt, attempt_max;
    struct uuid session_id; /* nil = none yet */
    const char *reason;     /* NULL = none */
    const char *identity;
    const char *inputs;  /* SHA-256 of the values of other tasks that it was given; NULL = none */
    const char *outputs; /* JSON {"NAME": "VALUE"} that it has handed on; NULL = none */
    int64_t started_usec, ended_usec;
    bool is_changed; /* the caller's */

    /* Of its session, as read. */
    bool has_session, session_ended;
    enum session_status session_status;
    enum session_result session_result;
    const char *session_reason;
    const char *session_data; /* JSON: what else is known of a session with bad outputs, or NULL */
    const char *session_outputs; /* while it is running: as 'outputs' */
    int64_t exit_code;           /* -1 = none */
};

/* All of a run, by place. */
int pipeline_tasks_read(struct store_tx *tx, const struct uuid *run_id, struct arena *arena,
                        struct pipeline_task_row **ret, size_t *ret_count, struct aq_error *err);

/* Find the latest succeeded task with this identity and these inputs in the user's runs. 1 = found,
 * 0 = none.
 */
int pipeline_task_find_same(struct store_tx *tx, const struct uuid *user_id, const char *identity,
                            const char *inputs, struct arena *arena, struct pipeline_task_row *ret,
                            struct aq_error *err);

/* Insert, or replace all that is not read from its session. */
int pipeline_task_write(struct store_tx *tx, const struct uuid *run_id,
                        const struct pipeline_task_row *row, struct aq_error *err);

int pipeline_tasks_remove(struct store_tx *tx, const struct uuid *run_id, struct aq_error *err);

/* The attempt has a session, which is made in this transaction and is given 'inputs'. -ESTALE unless
 * the task waits for this attempt in a run that goes on.
 */
int pipeline_task_start(struct store_tx *tx, const struct uuid *run_id, int64_t place,
                        int64_t attempt, const struct uuid *session_id, const char *inputs,
                        int64_t at_usec, struct aq_error *err);

#endif
