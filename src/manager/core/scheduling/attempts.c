/* SPDX-License-Identifier: Apache-2.0 */
/* attempts.c - what passes made of a session, kept with it
 *
 * Passes are counted in memory and written when the answer changes, when the
 * session is placed, and while it waits in intervals that double: a session
 * that waits for a week costs a dozen writes. What a killed manager had
 * counted since its last write is lost.
 */
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/attempts.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define KEEP_USEC (60 * USEC_PER_SEC)
#define TURN_USEC (USEC_PER_SEC / 1000)
#define TURNS_AT_ONCE 1000
#define PRUNE_USEC (600 * USEC_PER_SEC)

/* 'count' more with this answer, the first of them at 'since' (monotonic). */
static void attempts_add(struct core *core, struct session_entry *l, const char *kind,
                         uint32_t count, int64_t since_usec, const char *detail)
{
    struct event *e = proposal_add(core, &l->durable, EVENT_SESSION_ATTEMPT);

    e->attempt.row = l->s.row;
    e->attempt.kind = kind;
    e->attempt.count = count;
    e->attempt.is_first = !l->attempts.has_rows;
    l->attempts.has_rows = true;
    e->attempt.first_usec = e->at_usec - AQ_MAX(clock_monotonic_usec() - since_usec, 0);
    e->attempt.detail = aq_strdup(detail);
}

static uint32_t attempts_uncounted(const struct session_entry *l)
{
    uint32_t tries = sched_sync_tries(l);

    return l->queue.explained != SCHED_BEHIND && tries > l->attempts.tries_written
               ? tries - l->attempts.tries_written
               : 0;
}

static void attempts_mark_kept(struct session_entry *l)
{
    l->attempts.tries_written = sched_sync_tries(l);
    l->attempts.written_usec = clock_monotonic_usec();
}

void attempts_explained(struct core *core, struct session_entry *l, const char *detail)
{
    uint32_t more = attempts_uncounted(l);

    if (more > 1)
        attempts_add(core, l, sched_verdict_name(l->queue.explained), more - 1,
                     l->attempts.written_usec, NULL);
    attempts_add(core, l, sched_verdict_name(l->queue.verdict), 1, l->queue.verdict_usec, detail);
    attempts_mark_kept(l);
}

void attempts_placed(struct core *core, struct session_entry *l, const char *choices)
{
    uint32_t more = attempts_uncounted(l);

    if (more > 0)
        attempts_add(core, l, sched_verdict_name(l->queue.explained), more,
                     l->attempts.written_usec, NULL);
    attempts_add(core, l, sched_verdict_name(SCHED_PLACED), 1, clock_monotonic_usec(), choices);
    attempts_mark_kept(l);
}

void attempts_failed(struct core *core, struct session_entry *l, const struct retry_record *record,
                     enum retry_result result, const char *error)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf detail = STRBUF_INIT;
    struct jsonw w = jsonw_make(&detail);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "step", retry_step_name(record->step));
    jsonw_member_int(&w, "attempts", record->attempts);
    jsonw_member_int(&w, "max_retry_count",
                     l->resource_group->scheduling.retry[record->step].max_retry_count);
    jsonw_object_end(&w);
    if (error) { /* {"error": ...}: its member beside these */
        strbuf_truncate(&detail, detail.len - 1);
        strbuf_addf(&detail, ",%s", error + 1);
    }
    attempts_add(core, l, retry_result_name(result), 1, clock_monotonic_usec(), detail.data);
}

bool attempts_have_turn(struct core *core, struct session_entry *l, int64_t now)
{
    if (!l->attempts.turn_usec) {
        core->attempts_turn_usec = AQ_MAX(core->attempts_turn_usec, now - TURNS_AT_ONCE * TURN_USEC)
                                   + TURN_USEC;
        l->attempts.turn_usec = core->attempts_turn_usec;
    }
    if (now < l->attempts.turn_usec) {
        durable_wake_at(core, &l->durable, l->attempts.turn_usec);
        return false;
    }
    l->attempts.turn_usec = 0;
    return true;
}

void attempts_keep(struct core *core, struct session_entry *l, int64_t now)
{
    int64_t due = l->attempts.written_usec
                  + AQ_MAX(l->attempts.written_usec - l->queue.verdict_usec, KEEP_USEC);
    uint32_t more = attempts_uncounted(l);

    if (l->queue.explained == SCHED_BEHIND)
        return;
    if (now < due) {
        durable_wake_at(core, &l->durable, due);
        return;
    }
    if (more > 0 && !attempts_have_turn(core, l, now))
        return;
    if (more > 0)
        attempts_add(core, l, sched_verdict_name(l->queue.explained), more,
                     l->attempts.written_usec, NULL);
    attempts_mark_kept(l);
}

void attempts_tick(struct core *core, int64_t now)
{
    struct event_batch *batch;
    struct event *e;

    if (now < core->pruned_usec + PRUNE_USEC)
        return;
    core->pruned_usec = now;
    batch = event_batch_new();
    e = event_batch_add(batch, EVENT_ATTEMPTS_PRUNED, clock_realtime_usec());
    e->prune.before_usec = e->at_usec - core->conf.attempts_age_usec;
    e->prune.keep = core->conf.attempts_sessions;
    proposal_commit_command(core, batch, NULL, NULL); /* if it fails, the next time will do */
}
