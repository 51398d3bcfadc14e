/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_fire.c - due times and ends of runs become runs */
#include "manager/pipeline/pipeline_fire.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/pipeline/pipeline_trigger.h"

#define FIRE_LATE_USEC (60 * USEC_PER_SEC) /* so much later a due time was missed */
#define FIRE_HOUR_MAX 500                  /* runs of a user that triggers start in an hour */
#define FIRE_HOUR_USEC (3600 * USEC_PER_SEC)

/* ---- 1: the earliest due time or end ---- */

int pipeline_fire_find(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct folder_viewer any = { .is_superadmin = true };
    struct pipeline_fire *fire = data;
    struct uuid ended;
    char id[UUID_TEXT_MAX];
    int r = pipeline_run_find_ended(tx, &ended, err);

    if (r < 0)
        return r;
    if (r == 0) {
        struct pipeline_trigger_row due;

        r = pipeline_trigger_find_due(tx, fire->now_usec, &fire->arena, &due, err);
        if (r > 0)
            (void)arena_append(&fire->arena, &fire->triggers.items, &fire->triggers.count, &due,
                               sizeof(due));
        fire->is_found = r > 0;
        return r < 0 ? r : pipeline_triggers_next(tx, &fire->next_usec, err);
    }
    fire->is_found = fire->is_end = true;
    r = pipeline_run_find(tx, &any, uuid_format(&ended, id), &fire->arena, &fire->ended, err);
    return r < 0 ? r
                 : pipeline_triggers_read_after(tx, &fire->ended.user_id, fire->ended.name,
                                                &fire->arena, &fire->triggers, err);
}

/* ---- 2: rights of the owner ---- */

void pipeline_fire_check(struct pipeline_fire *fire)
{
    fire->refusals = arena_array(&fire->arena, fire->triggers.count + 1, sizeof(*fire->refusals));
    for (size_t i = 0; i < fire->triggers.count; i++) {
        const struct pipeline_trigger_row *row = &fire->triggers.items[i];
        const struct user *user = core_find_user(fire->api->core, &row->user_id);
        json_auto_t *options = json_load_string(row->options, 0);
        struct aq_error err = { 0 };
        struct session_request request = {
            .access_key = row->access_key,
            .domain = user ? user->domain : NULL,
            .group = json_string_value(json_object_get(options, "group")),
        };

        if (core_check_owner(fire->api->core, &request, &err) < 0)
            fire->refusals[i] = arena_strdup(&fire->arena, err.text);
    }
}

/* ---- 3: runs ---- */

static void fire_note(struct pipeline_fire *fire, struct pipeline_trigger_row *row,
                      const char *result)
{
    row->last_usec = fire->now_usec;
    row->last_result = arena_strdup(&fire->arena, result);
}

/* The run is new, or is to end: it is examined once this is committed. */
static void fire_add_run(struct pipeline_fire *fire, const struct pipeline_run_row *run)
{
    (void)arena_append(&fire->arena, &fire->runs, &fire->run_count, run, sizeof(*run));
}

/* The latest due time is handled, and those before it with it. 1 = a run is to start, 0 = none.
 * Errors as of pipeline_trigger_read().
 */
static int fire_take_due(struct pipeline_fire *fire, struct pipeline_trigger_row *row,
                         struct pipeline_run_row *run, struct aq_error *err)
{
    AQ_CLEANUP(time_zone_freep) struct time_zone *zone = NULL;
    AQ_CLEANUP(aq_freep) char *text = NULL;
    char iso[CLOCK_ISO_MAX];
    struct cron cron;
    int64_t due;
    int r;

    if ((r = pipeline_trigger_read(row, &cron, &zone, err)) < 0)
        return r;
    due = cron_last(&cron, zone, row->checked_usec / USEC_PER_SEC, fire->now_usec / USEC_PER_SEC);
    if (due == CRON_NEVER) /* tzdata has changed */
        return 0;
    row->checked_usec = run->due_usec = due * USEC_PER_SEC;
    text = aq_format("%s %s", row->cron, row->zone);
    run->started_by = arena_strdup(&fire->arena, text);
    if (strcmp(row->missed, "skip") == 0 && fire->now_usec - run->due_usec > FIRE_LATE_USEC) {
        AQ_CLEANUP(aq_freep) char *why = aq_format(
            "skipped: due at %s, noticed more than a minute later",
            clock_format_iso(run->due_usec, iso));

        fire_note(fire, row, why);
        return 0;
    }
    return 1;
}

/* 1 = the other run's end is one that starts a run, 0 = it is not. */
static int fire_take_end(struct pipeline_fire *fire, const struct pipeline_trigger_row *row,
                         struct pipeline_run_row *run)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format("end of %s.%lld", fire->ended.name,
                                                (long long)fire->ended.number);
    const char *wanted = strcmp(row->ends, "success") == 0 ? "succeeded" : "failed";

    run->started_by = arena_strdup(&fire->arena, text);
    run->depth = fire->ended.depth + 1;
    if (!fire->ended.ended_usec) /* it was resumed, and will end again */
        return 0;
    return strcmp(row->ends, "any") == 0 || strcmp(fire->ended.state, wanted) == 0;
}

/* Runs of the pipeline that have not ended: -EALREADY if one stands in the way. */
static int fire_clear_way(struct store_tx *tx, struct pipeline_fire *fire,
                          const struct pipeline_trigger_row *row, struct aq_error *err)
{
    const struct folder_viewer any = { .is_superadmin = true };
    struct uuid_list live;
    int r;

    if (strcmp(row->overlap, "allow") == 0)
        return 0;
    r = pipeline_runs_read_live(tx, &row->user_id, row->name, &fire->arena, &live, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < live.count; i++) {
        struct pipeline_run_row run;
        char id[UUID_TEXT_MAX];

        r = pipeline_run_find(tx, &any, uuid_format(&live.items[i], id), &fire->arena, &run, err);
        if (r < 0)
            return r;
        if (strcmp(row->overlap, "skip") == 0)
            return aq_fail(err, EALREADY, "run %s.%lld has not ended", run.name,
                           (long long)run.number);
        run.is_cancelled = true;
        if ((r = pipeline_run_update(tx, &run, err)) < 0)
            return r;
        fire_add_run(fire, &run);
    }
    return 0;
}

/* Limits of the user that make a due time pass without a run: -E2BIG. */
static int fire_check_limits(struct store_tx *tx, const struct pipeline_fire *fire,
                             const struct pipeline_trigger_row *row, int64_t depth,
                             struct aq_error *err)
{
    int64_t count;
    int r;

    if (depth >= PIPELINE_CHAIN_MAX)
        return aq_fail(err, E2BIG, "at most %d pipelines may start each other in a chain",
                       PIPELINE_CHAIN_MAX);
    if ((r = pipeline_runs_count_triggered(tx, &row->user_id, fire->now_usec - FIRE_HOUR_USEC,
                                           &count, err))
        < 0)
        return r;
    if (count >= FIRE_HOUR_MAX)
        return aq_fail(err, E2BIG, "triggers have started %d runs of yours in the last hour",
                       FIRE_HOUR_MAX);
    return pipeline_run_check_live(tx, &row->user_id, err);
}

/* Start a run of the latest version. */
static int fire_begin(struct store_tx *tx, struct pipeline_fire *fire,
                      const struct pipeline_trigger_row *row, const struct pipeline_run_row *run,
                      struct aq_error *err)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    struct pipeline_call call = { .api = fire->api,
                                  .arena = &fire->arena,
                                  .who.user_id = row->user_id,
                                  .access_key = row->access_key,
                                  .options = row->options,
                                  .run = *run };
    int r;

    if ((r = pipeline_find(tx, &row->user_id, row->name, 0, &fire->arena, &call.pipeline, err)) < 0
        || (r = pipeline_call_parse(call.pipeline.text, &p, err)) < 0)
        return r;
    if ((size_t)row->place >= p->trigger_count)
        return aq_fail(err, EINVAL, "the latest version has no such trigger");
    if ((r = fire_check_limits(tx, fire, row, run->depth, err)) < 0
        || (r = fire_clear_way(tx, fire, row, err)) < 0
        || (r = pipeline_call_begin(tx, &call, p, p->triggers[row->place].parameters, err)) < 0)
        return r;
    fire_add_run(fire, &call.run);
    return 0;
}

/* One trigger: a run, or why there is none. */
static int fire_handle(struct store_tx *tx, struct pipeline_fire *fire, size_t i,
                       struct aq_error *err)
{
    struct pipeline_run_row run = { .started_by = NULL };
    AQ_CLEANUP(aq_freep) char *result = NULL;
    struct aq_error why = { 0 };
    struct pipeline_trigger_row row;
    bool is_wanted;
    int r = pipeline_trigger_find(tx, &fire->triggers.items[i].id, &fire->arena, &row, err);

    if (r < 0)
        return r;
    if (r == 0 || !row.is_enabled
        || (row.cron && (!row.next_usec || row.next_usec > fire->now_usec)))
        return 0; /* changed since it was found */
    if (fire->refusals[i])
        return pipeline_triggers_give_up(tx, &row, fire->refusals[i], fire->now_usec, &fire->arena,
                                         err);
    r = row.cron ? fire_take_due(fire, &row, &run, &why) : fire_take_end(fire, &row, &run);
    if (r == 0 && !row.cron)
        return 0;
    is_wanted = r > 0;
    if (is_wanted)
        r = fire_begin(tx, fire, &row, &run, &why);
    if (is_wanted && (r == 0 || r == -E2BIG || r == -EALREADY)) {
        result = r < 0 ? aq_format("skipped: %s", why.text)
                       : aq_format("started %s.%lld", fire->runs[fire->run_count - 1].name,
                                   (long long)fire->runs[fire->run_count - 1].number);
        fire_note(fire, &row, result);
        r = 0;
    }
    if (r == 0)
        r = pipeline_trigger_plan(&row, &why);
    if (r == -ENOENT || r == -EINVAL)
        return pipeline_triggers_give_up(tx, &row, why.text, fire->now_usec, &fire->arena, err);
    if (r < 0) {
        *err = why;
        return r;
    }
    return pipeline_trigger_update(tx, &row, err);
}

/* The triggers of an end are handled together, so all have to be those that were found: a new
 * version of a pipeline may have replaced some since then.
 */
static int fire_is_current(struct store_tx *tx, struct pipeline_fire *fire, bool *ret,
                           struct aq_error *err)
{
    struct pipeline_trigger_list now;
    int r = pipeline_triggers_read_after(tx, &fire->ended.user_id, fire->ended.name, &fire->arena,
                                         &now, err);

    *ret = r == 0 && now.count == fire->triggers.count;
    for (size_t i = 0; *ret && i < now.count; i++)
        *ret = uuid_equals(&now.items[i].id, &fire->triggers.items[i].id);
    return r;
}

int pipeline_fire_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct pipeline_fire *fire = data;
    bool is_current = true;
    int r = fire->is_end ? fire_is_current(tx, fire, &is_current, err) : 0;

    fire->runs = NULL;
    fire->run_count = 0;
    for (size_t i = 0; i < fire->triggers.count && is_current && r == 0; i++)
        r = fire_handle(tx, fire, i, err);
    if (r == 0 && fire->is_end && is_current)
        r = pipeline_run_clear_end(tx, &fire->ended.id, err);
    return r < 0 ? r : pipeline_triggers_next(tx, &fire->next_usec, err);
}
