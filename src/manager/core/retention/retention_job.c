/* SPDX-License-Identifier: Apache-2.0 */
/* retention_job.c - old rows go, a piece after the other
 *
 * One piece at a time is with the store, as a transaction of its own or one
 * that it shares with commits; then there is a pause of twice as long, so
 * that at most a third of the writer's time is ours. Nothing about a run is
 * needed to go on with it: a manager that was killed begins again, and finds
 * what is left.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/retention/retention_job.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/state.h"

#define RUN_FIRST_USEC (600 * USEC_PER_SEC) /* after the start: who has changed settings may look */
#define RUN_USEC (3600 * USEC_PER_SEC)
#define PAUSE_MIN_USEC (20 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC USEC_PER_SEC
#define PAUSE_FACTOR 2

static void retention_go_on(struct core *core);

/* Is there a limit? Of the audit log and of events there is one of number, too. */
static bool retention_has_limit(const struct core *core, enum retention_entity entity)
{
    return core->conf.retention_usec[entity] || entity == RETENTION_AUDIT_LOG
           || entity == RETENTION_EVENTS;
}

/* store_tx_fn */
static int retention_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct core *core = data;
    int r = retention_remove(tx, &core->retention.piece, err);

    AQ_FAULT("core.retention.written");
    return r;
}

static void retention_on_pause(uv_timer_t *timer)
{
    retention_go_on(timer->data);
}

/* The entity is gone through, or cannot be now. */
static void retention_end_entity(struct core *core, const char *error)
{
    struct retention *job = &core->retention;
    const char *name = retention_entity_name(job->piece.entity);

    job->is_running = false;
    job->wanted &= ~(1u << job->piece.entity);
    if (job->piece.entity == RETENTION_HISTORY && !error)
        job->history = job->piece.place;
    if (error)
        log_warning("old rows of '%s' were not removed: %s", name, error);
}

/* store_done_fn */
static void retention_on_written(void *data, int r, const struct aq_error *err)
{
    struct core *core = data;
    struct retention *job = &core->retention;
    int64_t took = clock_monotonic_usec() - job->began_usec;
    int64_t pause = AQ_MIN(AQ_MAX(PAUSE_FACTOR * took, PAUSE_MIN_USEC), PAUSE_MAX_USEC);

    AQ_FAULT("core.retention.removed");
    job->is_writing = false;
    if (r == 0)
        core->counts.removed[job->piece.entity] += (uint64_t)job->piece.removed;
    if (r < 0 || job->piece.is_last)
        retention_end_entity(core, r < 0 ? err->text : NULL);
    if (job->wanted && !core->is_stopping)
        (void)uv_timer_start(&job->pause, retention_on_pause, (uint64_t)(pause / USEC_PER_MSEC), 0);
}

static void retention_begin_entity(struct core *core)
{
    struct retention *job = &core->retention;
    enum retention_entity entity = RETENTION_SESSIONS;

    while (!(job->wanted & 1u << entity))
        entity++;
    job->is_running = true;
    job->piece = (struct retention_piece){
        .entity = entity,
        .before_usec = core_get_retention(core, entity).before_usec,
        .started_usec = clock_realtime_usec(),
    };
    if (entity == RETENTION_HISTORY)
        job->piece.place = job->history;
}

static void retention_go_on(struct core *core)
{
    struct retention *job = &core->retention;

    if (!job->wanted || job->is_writing || core->is_stopping
        || uv_is_active((const uv_handle_t *)&job->pause))
        return;
    if (!job->is_running)
        retention_begin_entity(core);
    job->is_writing = true;
    job->began_usec = clock_monotonic_usec();
    job->piece.now_usec = clock_realtime_usec();
    store_write(core->store, retention_write, retention_on_written, core);
}

void retention_tick(struct core *core, int64_t now)
{
    struct retention *job = &core->retention;

    if (!job->due_usec)
        job->due_usec = now + RUN_FIRST_USEC;
    if (now >= job->due_usec && !core->orphans.restored_usec) {
        job->due_usec = now + RUN_USEC;
        for (enum retention_entity e = RETENTION_SESSIONS; e < RETENTION_ENTITY_COUNT; e++)
            job->wanted |= retention_has_limit(core, e) ? 1u << e : 0;
    }
    retention_go_on(core);
}

struct core_retention core_get_retention(const struct core *core, enum retention_entity entity)
{
    int64_t keep = core->conf.retention_usec[entity];

    return (struct core_retention){
        .keep_usec = keep,
        .before_usec = keep ? AQ_MAX(clock_realtime_usec() - keep, 1) : 0,
        .is_running = core->retention.wanted & 1u << entity,
    };
}

/* A run that was asked for, until its entry is durable. */
struct retention_run {
    struct core *core;
    unsigned entities;
    store_done_fn done;
    void *data;
};

static void retention_on_noted(void *data, int r, const struct aq_error *err)
{
    struct retention_run *run = data;
    struct core *core = run->core;

    if (r == 0 && run->entities & 1u << RETENTION_HISTORY)
        core->retention.history = (struct retention_place){ 0 };
    for (enum retention_entity e = RETENTION_SESSIONS; r == 0 && e < RETENTION_ENTITY_COUNT; e++)
        core->retention.wanted |= retention_has_limit(core, e) ? run->entities & 1u << e : 0;
    if (r == 0)
        retention_go_on(core);
    run->done(run->data, r, err);
    free(run);
}

static void retention_write_names(unsigned entities, struct strbuf *out)
{
    const char *comma = "";

    strbuf_adds(out, "{\"entities\":[");
    for (enum retention_entity e = RETENTION_SESSIONS; e < RETENTION_ENTITY_COUNT; e++)
        if (entities & 1u << e) {
            strbuf_addf(out, "%s\"%s\"", comma, retention_entity_name(e));
            comma = ",";
        }
    strbuf_adds(out, "]}");
}

void core_run_retention(struct core *core, unsigned entities, const struct audit_who *by,
                        store_done_fn done, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf names = STRBUF_INIT;
    struct audit_change change = { .action = "run-retention", .object_kind = "retention" };
    struct retention_run *run;
    struct aq_error err = { 0 };

    if (core->orphans.restored_usec) {
        core_defer(core, done, data,
                   aq_fail(&err, EBUSY,
                           "the cluster is being restored: 'aliquot admin orphan finish' comes "
                           "first"),
                   &err);
        return;
    }
    retention_write_names(entities, &names);
    run = aq_alloc(sizeof(*run));
    *run = (struct retention_run){ core, entities, done, data };
    change.after = names.data;
    core_note_change(core, &change, by, retention_on_noted, run);
}
