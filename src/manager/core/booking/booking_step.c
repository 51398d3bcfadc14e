/* SPDX-License-Identifier: Apache-2.0 */
/* booking_step.c - the end and the release of bookings, and places of lost agents
 *
 * Each step follows from the row, the time and the sessions alone, so a manager that starts again
 * takes it again. The sessions of a booking are ended before its row says that it has finished.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/booking/booking_member.h"
#include "manager/core/booking/booking_step.h"
#include "manager/core/bookings.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/booking_sync.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* The wall clock can be set, and room for places appears without notice: look now and then. */
#define CHECK_USEC (5 * USEC_PER_SEC)

static struct booking_entry *booking_of(struct durable *d)
{
    return AQ_CONTAINER_OF(d, struct booking_entry, durable);
}

static bool booking_waits(const struct session_entry *l)
{
    return l->s.status == SESSION_PENDING || l->s.status == SESSION_DEPRIORITIZING;
}

static void booking_end_session(struct core *core, struct session_entry *l, const char *reason)
{
    if (l->commands.end_reason)
        return;
    l->commands.end_reason = reason;
    durable_touch(core, &l->durable);
}

/* ---- changes of the row ---- */

static struct booking *booking_propose(struct core *core, struct booking_entry *entry)
{
    struct event *e = proposal_add(core, &entry->durable, EVENT_BOOKING_CHANGED);

    e->booking.row = aq_alloc(sizeof(*e->booking.row));
    booking_copy(e->booking.row, &entry->b);
    e->booking.row->version++;
    return e->booking.row;
}

static void booking_propose_finish(struct core *core, struct booking_entry *entry,
                                   enum booking_state outcome)
{
    struct booking *b = booking_propose(core, entry);

    b->outcome = outcome;
    b->finished_usec = clock_realtime_usec();
    AQ_FAULT("core.booking.finish.proposed");
}

/* ---- its end ---- */

/* A session with a 'signal' gets it so long before the end of the booking, by being ended then, with
 * that time as its notice. The agent is not given the end of the booking, which may be changed.
 * Returns when the next such session is to be ended; INT64_MAX = there is none.
 */
static int64_t booking_step_signals(struct core *core, const struct booking_entry *entry,
                                    int64_t now)
{
    int64_t next = INT64_MAX;

    LIST_FOREACH(link, &entry->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, booking_link);
        bool is_running = l->s.status == SESSION_RUNNING || l->s.status == SESSION_RUNNING_DEGRADED;
        int64_t notice = is_running ? booking_notice_usec(l) : 0;

        if (notice == 0)
            continue;
        if (now >= entry->b.ends_usec - notice)
            booking_end_session(core, l, REASON_BOOKING_ENDED);
        else
            next = AQ_MIN(next, entry->b.ends_usec - notice);
    }
    return next;
}

static void booking_step_end(struct core *core, struct booking_entry *entry)
{
    bool all = true;

    LIST_FOREACH(link, &entry->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, booking_link);

        if (l->s.status == SESSION_TERMINATING)
            continue;
        all = false;
        booking_end_session(core, l, REASON_BOOKING_ENDED);
    }
    if (all)
        booking_propose_finish(core, entry, BOOKING_ENDED);
}

/* ---- its release ---- */

/* Is a session of it running, on its way, or about to start? */
static bool booking_is_used(const struct booking_entry *entry)
{
    LIST_FOREACH(link, &entry->sessions) {
        const struct session_entry *l = LIST_ENTRY(link, struct session_entry, booking_link);

        if (!booking_waits(l)
            || !(l->queue.is_parked || l->commands.end_reason || l->queue.verdict == SCHED_CUT))
            return true;
    }
    return false;
}

/* When it is to be released unless it is used until then; 0 = never. */
static int64_t booking_release_due(const struct booking_entry *entry)
{
    if (!entry->b.release_unused_usec || booking_is_used(entry))
        return 0;
    return AQ_MAX(entry->b.starts_usec, entry->used_usec) + entry->b.release_unused_usec;
}

static void booking_step_release(struct core *core, struct booking_entry *entry)
{
    LIST_FOREACH(link, &entry->sessions)
        booking_end_session(core, LIST_ENTRY(link, struct session_entry, booking_link),
                            REASON_BOOKING_RELEASED);
    if (list_is_empty(&entry->sessions))
        booking_propose_finish(core, entry, BOOKING_RELEASED);
}

/* ---- places of agents that are lost or drained, before its start ---- */

/* A booking of the places that are missing, on agents other than those of the others. */
static void booking_describe_missing(struct core *core, const struct booking *b,
                                     struct booking *ret)
{
    const struct agent *a;

    booking_copy(ret, b);
    booking_set_places(ret, NULL, 0);
    booking_set_agents_of_places(ret, NULL);
    ret->nodes = 0;
    for (size_t i = 0; i < b->place_count; i++)
        ret->nodes += core_booking_place_lack(core, b, i) != NULL;
    for (size_t i = 0; (a = core_get_agent(core, i)); i++) {
        long place = booking_find_place(b, a->id);
        bool is_of_group = a->resource_group && strcmp(a->resource_group, b->resource_group) == 0;

        if (is_of_group && place < 0 && (!b->agents.count || booking_names_agent(b, a->id)))
            booking_add_agent(ret, a->id);
    }
}

static void booking_step_replace(struct core *core, struct booking_entry *entry)
{
    AQ_CLEANUP(booking_donep) struct booking missing = { .name = "" };
    const struct booking *b = &entry->b;
    struct booking_place *places;
    struct booking *changed;
    size_t next = 0;
    struct aq_error err;

    while (next < b->place_count && !core_booking_place_lack(core, b, next))
        next++;
    if (next == b->place_count)
        return;
    booking_describe_missing(core, b, &missing);
    if (missing.nodes > (int64_t)missing.agents.count
        || booking_sync_place(core, &missing, NULL, &err) < 0)
        return;
    next = 0;
    places = aq_alloc_array(b->place_count, sizeof(*places));
    for (size_t i = 0; i < b->place_count; i++) {
        bool is_missing = core_booking_place_lack(core, b, i) != NULL;

        places[i] = is_missing ? missing.places[next++] : b->places[i];
        if (is_missing)
            log_info("reservation '%s': agent %s replaces agent %s", b->name, places[i].agent_id,
                     b->places[i].agent_id);
    }
    changed = booking_propose(core, entry);
    booking_set_places(changed, places, b->place_count);
    entry->draft = booking_sync_open_draft(core, changed);
    free(places);
    AQ_FAULT("core.booking.replace.proposed");
}

/* ---- the step ---- */

static void booking_step(struct core *core, struct durable *d)
{
    struct booking_entry *entry = booking_of(d);
    int64_t now = clock_realtime_usec(), due, release;

    if (core->is_stopping)
        return;
    if (now >= entry->b.ends_usec) {
        booking_step_end(core, entry);
        return;
    }
    release = booking_release_due(entry);
    if (release && now >= release && now >= entry->b.starts_usec) {
        booking_step_release(core, entry);
        return;
    }
    if (now < entry->b.starts_usec)
        booking_step_replace(core, entry);
    due = AQ_MIN(entry->b.ends_usec, booking_step_signals(core, entry, now));
    if (release)
        due = AQ_MIN(due, release);
    durable_wake_at(core, d, clock_monotonic_usec() + AQ_MIN(due - now, CHECK_USEC));
}

static void booking_returned(struct core *core, struct durable *d, int result,
                             const struct aq_error *err)
{
    struct booking_entry *draft = AQ_TAKE(booking_of(d)->draft);

    (void)err;
    if (draft)
        booking_sync_close_draft(core, draft, result == 0);
}

static void booking_free(struct durable *d)
{
    booking_entry_free(booking_of(d));
}

const struct durable_ops booking_durable_ops = {
    .step = booking_step,
    .returned = booking_returned,
    .free = booking_free,
};

/* ---- what is durable ---- */

static void booking_apply_change(struct core *core, struct booking *b)
{
    struct booking_entry *entry = booking_entry_find(core, &b->id);

    if (!entry)
        return;
    booking_entry_replace(entry, b);
    if (!booking_is_finished(&entry->b)) {
        booking_sync_set(core, entry);
        durable_cancel_wake(core, &entry->durable);
        durable_touch(core, &entry->durable);
        return;
    }
    LIST_FOREACH(link, &entry->sessions) /* session/pending.c cancels those that wait */
        durable_touch(core, &LIST_ENTRY(link, struct session_entry, booking_link)->durable);
    booking_entry_retire(core, entry);
    booking_sync_remove(core, entry);
}

void booking_apply(struct core *core, struct event *e)
{
    struct booking_entry *entry;

    if (e->kind == EVENT_BOOKING_CHANGED) {
        booking_apply_change(core, e->booking.row);
        return;
    }
    entry = booking_entry_add(core, e->booking.row, e->booking.used_usec);
    booking_sync_set(core, entry);
    durable_touch(core, &entry->durable);
}

void booking_note_status(struct core *core, const struct session_entry *l)
{
    struct booking_entry *entry = l->booking;

    if (!entry)
        return;
    if (session_is_terminal(l->s.status) && l->s.running_usec)
        entry->used_usec = AQ_MAX(entry->used_usec, l->s.status_changed_usec);
    durable_touch(core, &entry->durable);
}

void booking_note_agents(struct core *core)
{
    LIST_FOREACH(link, &core->bookings)
        durable_touch(core, &LIST_ENTRY(link, struct booking_entry, all_link)->durable);
}
