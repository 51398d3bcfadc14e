/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - one scheduling pass: try to start the sessions that wait, in order
 *
 * First those whose victims have ended, then those with a reservation, then the
 * queue: kernels that running sessions lack, sessions, kernels beyond a minimum. A session that
 * does not fit may take the place of such kernels, migrate or preempt others, or be given a time
 * (backfill).
 */
#include <assert.h>
#include <string.h>

#include "sched/scheduler_internal.h"

static const char *const verdict_names[] = {
    [SCHED_PLACED] = "placed",
    [SCHED_NO_ROOM] = "no-room",
    [SCHED_NO_AGENT] = "no-agent",
    [SCHED_NO_CAPACITY] = "no-capacity",
    [SCHED_TOO_EARLY] = "too-early",
    [SCHED_DEPENDENCY] = "dependency",
    [SCHED_DOOMED] = "dependency-failed",
    [SCHED_CONCURRENCY] = "concurrency",
    [SCHED_QUOTA] = "quota",
    [SCHED_PREEMPTING] = "preempting",
    [SCHED_BOOKED] = "booked",
    [SCHED_CUT] = "reservation-too-short",
    [SCHED_BEHIND] = "behind",
};

const char *sched_verdict_name(enum sched_verdict verdict)
{
    return verdict_names[verdict];
}

struct pass_run {
    struct sched *s;
    int64_t now_usec;
    struct arena *arena;
    struct sched_result result;
    size_t cap;
    struct forecast *forecast;  /* once a session did not fit, with backfill, or may run into a
                                  booking */
    struct forecast *unplanned; /* without the starts of those that wait, see pass_has_prospect() */
    bool is_planning;           /* a session did not fit, with backfill */
    uint32_t reservations;
    uint32_t searches; /* for sessions to migrate */
    size_t prospect;   /* place in the queue of one for which there was room */
    bool has_placed;
    bool is_over; /* for all that wait there is no room */
};

#define MIGRATE_SEARCHES_MAX 32 /* of one pass: the first that did not fit */

/* ---- outcomes ---- */

static struct sched_outcome *pass_add_outcome(struct pass_run *p)
{
    if (p->result.count == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 16;
        struct sched_outcome *grown = arena_array(p->arena, cap, sizeof(*grown));

        if (p->result.count)
            memcpy(grown, p->result.outcomes, p->result.count * sizeof(*grown));
        p->result.outcomes = grown;
        p->cap = cap;
    }
    return &p->result.outcomes[p->result.count++];
}

static void pass_report(struct pass_run *p, uint32_t handle, const struct sched_outcome *out)
{
    struct sched_entry *e = &p->s->entries[handle];
    bool is_placed = out->verdict == SCHED_PLACED || out->verdict == SCHED_PREEMPTING;
    struct sched_outcome *to;

    if (!is_placed && e->is_reported && e->verdict == out->verdict
        && e->reported_start_usec == out->starts_usec)
        return;
    e->is_reported = true;
    e->verdict = out->verdict;
    e->reported_start_usec = out->starts_usec;
    to = pass_add_outcome(p);
    *to = *out;
    to->session = handle;
    if (out->verdict == SCHED_PLACED && p->s->choices.len)
        to->choices = arena_strdup(p->arena, p->s->choices.data);
    if (is_placed)
        entry_list_places(p->s, e, p->arena, to);
}

static void pass_commit_entry(struct pass_run *p, struct sched_entry *e, enum entry_status status)
{
    const struct selector *selector = &p->s->options.selector;

    assert(e->status == ENTRY_WAITING);
    for (uint32_t q = 0; q < e->req_count; q++)
        assert(e->holds[q].node != CLUSTER_NONE); /* all or nothing */
    e->status = status;
    p->s->preempting += status == ENTRY_PREEMPTING;
    claim_free(AQ_TAKE(e->claim));
    e->started_usec = p->now_usec;
    e->placed_in_pass = p->s->pass_count;
    entry_charge(p->s, e, 1);
    p->has_placed = true;
    for (uint32_t i = 0; selector->ops->on_placement && i < e->req_count; i++)
        selector->ops->on_placement(selector->data, &p->s->cluster, e->holds[i].node);
}

/* ---- looking ---- */

static void pass_need_forecast(struct pass_run *p)
{
    if (!p->forecast)
        p->forecast = forecast_new(p->s, p->now_usec, false, p->arena);
}

/* No room, or others have a time: is there one for it, or, with 'only_now', does it start now
 * without delaying any?
 */
static enum sched_verdict pass_find_start(struct pass_run *p, struct sched_entry *e, bool only_now,
                                          int64_t *ret_usec)
{
    uint32_t max = p->s->options.reservations_max;
    bool is_last = max && p->reservations >= max;
    int64_t at;

    pass_need_forecast(p);
    p->is_planning |= p->s->options.backfill;
    at = forecast_schedule(p->forecast, e, only_now || is_last);
    if (at <= p->now_usec)
        return SCHED_PLACED;
    if (only_now || is_last)
        return SCHED_NO_ROOM;
    if (at != INT64_MAX) {
        *ret_usec = at;
        p->reservations++;
    } else if (claim_is_due(p->s, e, p->now_usec)) {
        (void)claim_keep(p->forecast, e, true);
    }
    return SCHED_NO_ROOM;
}

/* Is all that it holds really free for it: have its victims ended? */
static bool pass_has_real_room(const struct sched *s, const struct sched_entry *e)
{
    for (uint32_t i = 0; i < e->req_count; i++) {
        const struct cluster_node *n = &s->cluster.nodes[e->holds[i].node];

        for (size_t c = 0; c < s->cluster.width; c++)
            if (e->reqs[i]->amounts[c] > 0 && n->free[c] < 0)
                return false;
        for (uint32_t p = 0; p < e->holds[i].part_count; p++)
            if (n->devices[e->holds[i].parts[p].device].free < 0)
                return false;
    }
    return true;
}

/* The verdict on what preempt_for() or migrate_for() has found. */
static enum sched_verdict pass_hold_verdict(const struct pass_run *p, const struct sched_entry *e,
                                            const struct sched_outcome *out)
{
    return out->victim_count == 0 && pass_has_real_room(p->s, e) ? SCHED_PLACED : SCHED_PREEMPTING;
}

/* So that the times of others take it into account. */
static void pass_tell_forecast(struct pass_run *p, const struct sched_entry *e,
                               const struct sched_outcome *out)
{
    if (!p->forecast)
        return;
    forecast_change_holds(p->forecast, e, e->holds, -1);
    for (size_t i = 0; i < out->victim_count; i++) {
        forecast_assume_gone(p->forecast, &p->s->entries[out->victims[i]], 1);
        forecast_mark_terminating(p->forecast, &p->s->entries[out->victims[i]]);
    }
}

static enum sched_verdict pass_preempt(struct pass_run *p, struct sched_entry *e,
                                       bool only_optional, struct sched_outcome *out)
{
    struct forecast *forecast = NULL;
    bool is_found;

    if (booked_is_near(p->s, e, p->now_usec)) {
        pass_need_forecast(p);
        forecast = p->forecast;
    }
    is_found = only_optional ? preempt_optional_for(p->s, e, p->now_usec, forecast, p->arena,
                                                    &out->victims, &out->victim_count)
                             : preempt_for(p->s, e, p->now_usec, forecast, p->arena, &out->victims,
                                           &out->victim_count);
    if (!is_found)
        return SCHED_NO_ROOM;
    pass_tell_forecast(p, e, out);
    return pass_hold_verdict(p, e, out);
}

static enum sched_verdict pass_migrate(struct pass_run *p, struct sched_entry *e,
                                       struct sched_outcome *out)
{
    if (p->searches >= MIGRATE_SEARCHES_MAX)
        return SCHED_NO_ROOM;
    p->searches++;
    if (p->s->options.backfill || p->s->next_booking_usec != INT64_MAX)
        pass_need_forecast(p);
    p->is_planning |= p->s->options.backfill;
    if (!migrate_for(p->s, e, p->now_usec, p->forecast, p->arena, out))
        return SCHED_NO_ROOM;
    return pass_hold_verdict(p, e, out);
}

/* ---- the end of what can start ---- */

/* Has an agent room for each part of it, seen by itself? */
static bool pass_has_room(struct pass_run *p, const struct sched_entry *e)
{
    struct cluster *c = &p->s->cluster;

    for (uint32_t i = 0; i < e->req_count; i++) {
        struct slot_request *req = e->reqs[i];
        bool has_room = false;

        if (i > 0 && req == e->reqs[i - 1])
            continue;
        if (req->no_room_version == c->free_version)
            return false;
        for (uint32_t state = 0; state < c->state_count && !has_room; state++)
            has_room = c->states[state].member_count > 0
                       && cluster_fit_bound(c, req, state, &p->s->options.selector)->has_room;
        if (!has_room) {
            req->no_room_version = c->free_version;
            return false;
        }
    }
    return true;
}

static int64_t pass_stay(const struct sched_entry *e)
{
    return e->lifetime_usec > 0 ? e->lifetime_usec : INT64_MAX;
}

/* Was found that 'e' runs into a booking wherever there is room? That stays so until something
 * becomes free: as time passes bookings only come nearer.
 */
static bool pass_is_known_booked(const struct pass_run *p, const struct sched_entry *e)
{
    const struct slot_request *req = e->reqs[0];

    return req->booked_version == p->s->cluster.free_version
           && pass_stay(e) >= req->booked_stay_usec;
}

static void pass_note_booked(const struct pass_run *p, const struct sched_entry *e)
{
    struct slot_request *req = e->reqs[0];

    if (e->req_count > 1 || e->more)
        return; /* that was not the agents' fault alone */
    req->booked_version = p->s->cluster.free_version;
    req->booked_stay_usec = pass_stay(e);
}

/* The same if it may not run into a booking. */
static bool pass_has_lasting_room(struct pass_run *p, const struct sched_entry *e)
{
    if (!pass_has_room(p, e))
        return false;
    if (!booked_is_near(p->s, e, p->now_usec))
        return true;
    if (pass_is_known_booked(p, e))
        return false;
    if (!p->unplanned)
        p->unplanned = forecast_new(p->s, p->now_usec, false, p->arena);
    if (forecast_has_room(p->unplanned, e))
        return true;
    pass_note_booked(p, e);
    return false;
}

/* Is there room for any that has not had its turn? While nothing becomes free, those for which a
 * search found none need no further one.
 */
static bool pass_has_prospect(struct pass_run *p)
{
    struct sched *s = p->s;
    struct room_search left = { .version = s->cluster.free_version };
    bool is_known = s->search.version == left.version;
    size_t count = is_known ? s->search.count : s->queue_count;

    for (size_t n = 0; n < count; n++) {
        size_t at = p->prospect + n < count ? p->prospect + n : p->prospect + n - count;
        uint32_t handle = is_known ? s->search.handles[n] : s->queue[at].handle;
        const struct sched_entry *e = &s->entries[handle];

        if (e->status != ENTRY_WAITING)
            continue;
        if (e->tried_in_pass == s->pass_count) {
            room_search_add(&left, handle);
        } else if (pass_has_lasting_room(p, e)) {
            p->prospect = is_known ? p->prospect : at;
            return true;
        }
    }
    s->search = left;
    return false;
}

/* Times for those that wait would help nobody to start now: they start where they are planned
 * when there is room.
 */
static void pass_put_off(struct pass_run *p)
{
    p->is_over = true;
    p->s->put_off_in_pass = p->s->pass_count;
}

/* With backfill, of one that does not start by itself: when does it start? */
static enum sched_verdict pass_plan(struct pass_run *p, struct sched_entry *e,
                                    struct sched_outcome *out)
{
    const struct sched_preemption *preemption = &p->s->options.preemption;

    if (!p->s->options.plans_to_start || preemption->enabled || preemption->moves
        || pass_has_prospect(p))
        return pass_find_start(p, e, false, &out->starts_usec);
    pass_put_off(p);
    out->starts_usec = e->reported_start_usec;
    return SCHED_NO_ROOM;
}

/* An optional kernel starts beside the times that others have. */
static enum sched_verdict pass_grow(struct pass_run *p, struct sched_entry *e)
{
    if (booked_is_near(p->s, e, p->now_usec))
        pass_need_forecast(p);
    return p->forecast ? pass_find_start(p, e, true, NULL) : place_entry(p->s, e, p->arena);
}

/* Wherever there is room, but not into a booking: SCHED_BOOKED if there is only such room. */
static enum sched_verdict pass_place(struct pass_run *p, struct sched_entry *e)
{
    enum sched_verdict verdict;

    if (!booked_is_near(p->s, e, p->now_usec)) {
        verdict = place_entry(p->s, e, p->arena);
        if (verdict == SCHED_PLACED && p->forecast)
            forecast_change_holds(p->forecast, e, e->holds, -1);
        return verdict;
    }
    verdict = place_find_obstacle(p->s, e, p->arena);
    if (verdict != SCHED_NO_ROOM || !pass_has_room(p, e))
        return verdict;
    if (pass_is_known_booked(p, e))
        return SCHED_BOOKED;
    pass_need_forecast(p);
    if (forecast_schedule(p->forecast, e, true) <= p->now_usec)
        return SCHED_PLACED;
    pass_note_booked(p, e);
    return SCHED_BOOKED;
}

static enum sched_verdict pass_find_place(struct pass_run *p, struct sched_entry *e,
                                          struct sched_outcome *out)
{
    const struct sched_options *o = &p->s->options;
    /* one that was told a time starts where it was planned: the times of others depend on it */
    bool is_planned = e->unit == SCHED_SESSION
                      && (p->is_planning
                          || (o->backfill
                              && (e->reported_start_usec || entry_is_put_off(p->s, e))));
    enum sched_verdict verdict = SCHED_NO_ROOM;
    bool is_booked;

    if (e->unit == SCHED_OPTIONAL_KERNEL)
        return pass_grow(p, e);
    if (!is_planned)
        verdict = pass_place(p, e);
    else if ((verdict = place_find_obstacle(p->s, e, p->arena)) != SCHED_NO_ROOM)
        return verdict;
    else if (o->preemption.moves || o->preemption.enabled || p->s->optional)
        verdict = pass_find_start(p, e, true, NULL);
    is_booked = verdict == SCHED_BOOKED;
    verdict = is_booked ? SCHED_NO_ROOM : verdict;
    if (verdict == SCHED_NO_ROOM && p->s->optional)
        verdict = pass_preempt(p, e, true, out);
    if (e->unit != SCHED_SESSION)
        return verdict;
    if (verdict == SCHED_NO_ROOM && o->preemption.moves)
        verdict = pass_migrate(p, e, out);
    if (verdict == SCHED_NO_ROOM && o->preemption.enabled)
        verdict = pass_preempt(p, e, false, out);
    if (verdict == SCHED_NO_ROOM && o->backfill)
        verdict = pass_plan(p, e, out);
    return is_booked && verdict == SCHED_NO_ROOM && !o->backfill ? SCHED_BOOKED : verdict;
}

static void pass_try_entry(struct pass_run *p, uint32_t handle, struct sched_outcome *out)
{
    struct sched_entry *e = &p->s->entries[handle];

    *out = (struct sched_outcome){ .session = handle };
    strbuf_clear(&p->s->choices);
    out->verdict = validate_entry(p->s, e, p->now_usec, &out->account);
    if (out->verdict != SCHED_PLACED)
        return;
    if (e->eligible_usec == 0)
        e->eligible_usec = p->now_usec;
    booked_limit_lifetime(p->s, e, p->now_usec);
    out->verdict = pass_find_place(p, e, out);
    if (out->verdict == SCHED_PLACED)
        pass_commit_entry(p, e, ENTRY_PLACED);
    else if (out->verdict == SCHED_PREEMPTING)
        pass_commit_entry(p, e, ENTRY_PREEMPTING);
}

/* Does 'out' hold up those behind? */
static bool pass_is_blocking(const struct pass_run *p, const struct sched_entry *e,
                             const struct sched_outcome *out)
{
    const struct sched_options *o = &p->s->options;

    if (out->verdict != SCHED_NO_ROOM || e->unit != SCHED_SESSION)
        return false;
    if (o->sequencer->may_pass && o->sequencer->may_pass(p->s, e))
        return false;
    return !o->backfill;
}

static void pass_look_at_band(struct pass_run *p, size_t from, size_t to)
{
    const struct sequencer_ops *ops = p->s->options.sequencer;
    struct queue_order seq = { .s = p->s, .items = &p->s->queue[from], .count = to - from };
    struct sched_outcome out;
    uint32_t handle;

    if (ops->begin)
        ops->begin(&seq, p->arena);
    while (!p->result.is_blocked && !p->is_over && (handle = ops->next(&seq)) != NO_HANDLE) {
        struct sched_entry *e = &p->s->entries[handle];

        pass_try_entry(p, handle, &out);
        pass_report(p, handle, &out);
        p->result.is_blocked = pass_is_blocking(p, e, &out);
        p->result.blocker = handle;
        if (out.verdict != SCHED_PLACED && e->retries < UINT32_MAX) {
            e->retries++;
            e->tried_in_pass = p->s->pass_count; /* the sequencer goes by what it was before */
        }
    }
}

/* ---- the pass ---- */

/* It starts later than when its places were found. Does it still end before bookings begin there?
 */
static bool pass_may_stay(struct pass_run *p, const struct sched_entry *e)
{
    if (p->s->booking_count == 0)
        return true;
    if (!p->unplanned)
        p->unplanned = forecast_new(p->s, p->now_usec, false, p->arena);
    return forecast_may_stay(p->unplanned, e);
}

/* An agent where it has its place takes nothing any more. */
static bool pass_has_lost_agent(const struct sched *s, const struct sched_entry *e)
{
    const struct cluster *c = &s->cluster;

    for (uint32_t i = 0; i < e->req_count; i++)
        if (c->nodes[e->holds[i].node].free[c->columns] == SCHED_ABSENT)
            return true;
    return false;
}

/* It waits like others again. */
static void pass_give_place_back(struct pass_run *p, uint32_t handle)
{
    struct sched *s = p->s;
    struct sched_entry *e = &s->entries[handle];
    struct sched_outcome out = { .verdict = SCHED_NO_ROOM, .account = SCHED_NO_ACCOUNT };

    for (uint32_t q = 0; q < e->req_count; q++)
        entry_release(s, e, q);
    entry_charge(s, e, -1);
    assert(s->preempting > 0);
    s->preempting--;
    p->unplanned = NULL;
    e->status = ENTRY_WAITING;
    e->is_reported = false;
    wait_queue_insert(s, handle);
    pass_report(p, handle, &out);
}

static void pass_start_preempting(struct pass_run *p)
{
    for (uint32_t i = 0; p->s->preempting && p->s->booking_count && i < p->s->entry_count; i++)
        if (p->s->entries[i].status == ENTRY_PREEMPTING)
            p->s->entries[i].started_usec = p->now_usec; /* not earlier than that */
    for (uint32_t i = 0; p->s->preempting && i < p->s->entry_count; i++) {
        struct sched_entry *e = &p->s->entries[i];
        struct sched_outcome out = { .verdict = SCHED_PLACED, .account = SCHED_NO_ACCOUNT };

        if (e->status != ENTRY_PREEMPTING)
            continue;
        if (pass_has_lost_agent(p->s, e) || !pass_may_stay(p, e)) {
            pass_give_place_back(p, i);
            continue;
        }
        if (!pass_has_real_room(p->s, e))
            continue;
        e->status = ENTRY_PLACED;
        e->started_usec = p->now_usec;
        assert(p->s->preempting > 0);
        p->s->preempting--;
        pass_report(p, i, &out);
    }
}

static void pass_drop_placed(struct sched *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->queue_count; i++)
        if (s->entries[s->queue[i].handle].status == ENTRY_WAITING)
            s->queue[kept++] = s->queue[i];
    s->queue_count = kept;
}

/* Who has a place set aside has it ahead of the queue. It starts when those have gone that it is
 * made of.
 */
static void pass_start_reserved(struct pass_run *p)
{
    struct sched *s = p->s;

    for (size_t i = 0; s->reservation_count && i < s->queue_count; i++) {
        struct sched_outcome out = { .session = s->queue[i].handle, .account = SCHED_NO_ACCOUNT };
        struct sched_entry *e = &s->entries[s->queue[i].handle];

        if (e->unit != SCHED_SESSION || !reservation_find(s, e->row))
            continue;
        out.verdict = validate_entry(s, e, p->now_usec, &out.account);
        if (out.verdict != SCHED_PLACED) {
            reservation_release(s, e->row); /* its turn among others comes */
        } else if (reservation_start(s, e)) {
            booked_limit_lifetime(s, e, p->now_usec);
            if (!pass_may_stay(p, e)) {
                for (uint32_t q = 0; q < e->req_count; q++)
                    entry_release(s, e, q);
                continue;
            }
            if (!pass_has_real_room(s, e))
                out.verdict = SCHED_PREEMPTING;
            pass_commit_entry(p, e, out.verdict == SCHED_PLACED ? ENTRY_PLACED : ENTRY_PREEMPTING);
            pass_report(p, s->queue[i].handle, &out);
        }
    }
    if (p->has_placed)
        pass_drop_placed(s);
}

void sched_pass(struct sched *s, int64_t now_usec, struct arena *arena, struct sched_result *ret)
{
    struct pass_run p = { .s = s, .now_usec = now_usec, .arena = arena };

    s->pass_count++;
    wait_queue_close_gaps(s);
    booked_advance(s, now_usec);
    strbuf_clear(&s->choices);
    pass_start_preempting(&p);
    pass_start_reserved(&p);
    for (size_t from = 0, to; from < s->queue_count && !p.result.is_blocked && !p.is_over;
         from = to) {
        to = wait_queue_band_end(s, from);
        pass_look_at_band(&p, from, to);
    }
    if (p.has_placed)
        pass_drop_placed(s);
    sched_assert_consistent(s);
    *ret = p.result;
}
