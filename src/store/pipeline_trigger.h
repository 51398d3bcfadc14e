/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_trigger.h - rows of triggers of pipelines
 *
 * A trigger is one entry of the latest version of a pipeline's file, and remembers how far it has
 * been handled. A switch belongs to the name of a pipeline and says whether its triggers are
 * enabled. For functions given to store_read() and store_write(). Texts that were read are of the
 * arena or the page.
 */
#ifndef AQ_STORE_PIPELINE_TRIGGER_H
#define AQ_STORE_PIPELINE_TRIGGER_H

#include "store/pipeline.h"

#define PIPELINE_TRIGGERS_ENABLED_MAX 100 /* of a user */

struct pipeline_switch_row {
    struct uuid user_id;
    const char *name;
    bool is_enabled;
    const char *reason; /* why the manager disabled it; NULL = it did not */
    const char *access_key, *options;
    int64_t changed_usec;
};

/* 1 = read; 0 = the pipeline was never enabled. */
int pipeline_switch_read(struct store_tx *tx, const struct uuid *user_id, const char *name,
                         struct arena *arena, struct pipeline_switch_row *ret,
                         struct aq_error *err);
int pipeline_switch_write(struct store_tx *tx, const struct pipeline_switch_row *row,
                          struct aq_error *err);

struct pipeline_trigger_row {
    struct uuid id, user_id;
    const char *name;
    int64_t place;
    const char *cron, *zone;  /* NULL = not a schedule */
    const char *after, *ends; /* NULL = a schedule */
    const char *overlap, *missed;
    int64_t checked_usec; /* due times until then have been handled */
    int64_t next_usec;    /* 0 = disabled, or not a schedule */
    int64_t last_usec;    /* when it was handled last; 0 = never */
    const char *last_result;

    /* Of the switch and the user, as read. */
    bool is_enabled;
    const char *reason, *access_key, *options, *user_email;
};

struct pipeline_trigger_list {
    struct pipeline_trigger_row *items;
    size_t count;
};

/* Those of a pipeline, by place. */
int pipeline_triggers_read(struct store_tx *tx, const struct uuid *user_id, const char *name,
                           struct arena *arena, struct pipeline_trigger_list *ret,
                           struct aq_error *err);

/* Enabled ones that wait for the end of a pipeline of this name. */
int pipeline_triggers_read_after(struct store_tx *tx, const struct uuid *user_id, const char *after,
                                 struct arena *arena, struct pipeline_trigger_list *ret,
                                 struct aq_error *err);

/* Enabled schedules of all users. */
int pipeline_triggers_read_schedules(struct store_tx *tx, struct arena *arena,
                                     struct pipeline_trigger_list *ret, struct aq_error *err);

/* The schedule that is due at 'now' for longest. 1 = found, 0 = none is due. */
int pipeline_trigger_find_due(struct store_tx *tx, int64_t now_usec, struct arena *arena,
                              struct pipeline_trigger_row *ret, struct aq_error *err);

/* By id. 1 = found, 0 = there is none. */
int pipeline_trigger_find(struct store_tx *tx, const struct uuid *id, struct arena *arena,
                          struct pipeline_trigger_row *ret, struct aq_error *err);

int pipeline_triggers_remove(struct store_tx *tx, const struct uuid *user_id, const char *name,
                             struct aq_error *err);
int pipeline_trigger_insert(struct store_tx *tx, const struct pipeline_trigger_row *row,
                            struct aq_error *err);

/* checked_usec, next_usec, last_usec and last_result. */
int pipeline_trigger_update(struct store_tx *tx, const struct pipeline_trigger_row *row,
                            struct aq_error *err);

/* Enabled triggers of a user. */
int pipeline_triggers_count(struct store_tx *tx, const struct uuid *user_id, int64_t *ret,
                            struct aq_error *err);

/* When there is something to do: the earliest due time, 1 if the end of a run waits, 0 = never. */
int pipeline_triggers_next(struct store_tx *tx, int64_t *ret_usec, struct aq_error *err);

int store_list_pipeline_triggers(struct store_tx *tx, const struct folder_viewer *who, bool all,
                                 const struct store_query *query, struct store_page **ret,
                                 struct aq_error *err);

/* ---- runs ---- */

/* The run has ended: enabled triggers that wait for this follow, if there are any. */
int pipeline_run_note_end(struct store_tx *tx, const struct pipeline_run_row *run,
                          struct aq_error *err);

/* The run whose end waits for longest. 1 = found, 0 = none. */
int pipeline_run_find_ended(struct store_tx *tx, struct uuid *ret, struct aq_error *err);

/* The triggers of its end have been handled. */
int pipeline_run_clear_end(struct store_tx *tx, const struct uuid *run_id, struct aq_error *err);

/* Runs of a pipeline that have not ended. */
int pipeline_runs_read_live(struct store_tx *tx, const struct uuid *user_id, const char *name,
                            struct arena *arena, struct uuid_list *ret, struct aq_error *err);

/* How many runs of a user triggers have started since then. */
int pipeline_runs_count_triggered(struct store_tx *tx, const struct uuid *user_id,
                                  int64_t since_usec, int64_t *ret, struct aq_error *err);

#endif
