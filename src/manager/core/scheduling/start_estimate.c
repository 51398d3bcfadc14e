/* SPDX-License-Identifier: Apache-2.0 */
/* start_estimate.c - when a waiting session will start
 *
 * The group's scheduler is asked for a plan of its whole queue, which answers
 * for every session in it. A plan is used again for as long as ten times what
 * it cost, so that many who ask take a tenth of the loop's time at most.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/scheduling/start_estimate.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* Sessions times agents that are planned: some 0.1 s. */
#define PLAN_WORK_MAX 2000000
#define PLAN_AGE_FACTOR 10

struct plan_item {
    int64_t row;
    size_t position; /* from 1; 0 = it does not wait for resources */
    enum sched_start start;
    int64_t starts_usec;
    bool is_due, has_claim, is_promised;
    struct uuid promised_to;
};

struct plan {
    int64_t until_usec; /* monotonic */
    size_t length;      /* those with a position */
    size_t count;
    struct plan_item items[]; /* by row */
};

void start_estimate_done(struct resource_group_entry *g)
{
    free(g->plan);
    g->plan = NULL;
}

static int start_estimate_compare_rows(const void *a, const void *b)
{
    const struct plan_item *x = a, *y = b;

    return (x->row > y->row) - (x->row < y->row);
}

static const struct plan_item *start_estimate_find_item(const struct plan *plan, int64_t row)
{
    const struct plan_item key = { .row = row };

    return plan ? bsearch(&key, plan->items, plan->count, sizeof(key), start_estimate_compare_rows)
                : NULL;
}

static struct plan_item start_estimate_make_item(const struct resource_group_entry *g,
                                                 const struct sched_start_estimate *from,
                                                 size_t position)
{
    struct plan_item item = { .position = position,
                              .start = from->start,
                              .starts_usec = from->starts_usec,
                              .is_due = from->is_due,
                              .has_claim = from->has_claim,
                              .is_promised = from->promised != SCHED_NO_SESSION };

    if (item.is_promised)
        item.promised_to = g->members[from->promised]->s.id;
    return item;
}

static struct plan *start_estimate_take_plan(const struct resource_group_entry *g,
                                             const struct sched_start_estimate *planned,
                                             size_t count)
{
    struct plan *plan = aq_alloc(sizeof(*plan) + count * sizeof(plan->items[0]));

    *plan = (struct plan){ .count = count };
    for (size_t i = 0; i < count; i++) {
        bool is_queued = planned[i].start != SCHED_START_RULED_OUT;

        plan->items[i] = start_estimate_make_item(g, &planned[i], is_queued ? ++plan->length : 0);
        plan->items[i].row = g->members[planned[i].handle]->s.row;
    }
    qsort(plan->items, count, sizeof(plan->items[0]), start_estimate_compare_rows);
    return plan;
}

static int start_estimate_make_plan(struct core *core, struct resource_group_entry *g)
{
    int64_t begun = clock_monotonic_usec();
    struct sched_start_estimate *planned;
    int r = sched_sync_push(core, g);

    start_estimate_done(g);
    if (r == 0)
        r = (int)sched_estimate_starts(g->sched, clock_realtime_usec(),
                                       PLAN_WORK_MAX / (g->node_count + 1) + 1, &core->scratch,
                                       &planned);
    if (r >= 0)
        g->plan = start_estimate_take_plan(g, planned, (size_t)r);
    arena_clear(&core->scratch, 1 << 16);
    if (r < 0)
        return r;
    g->plan->until_usec = clock_monotonic_usec()
                          + PLAN_AGE_FACTOR * (clock_monotonic_usec() - begun);
    return 0;
}

static void start_estimate_fill_item(const struct plan_item *item, struct core_start_estimate *ret)
{
    ret->position = item->position;
    ret->start = item->start;
    ret->starts_usec = item->starts_usec;
    ret->is_due = item->is_due;
    ret->has_claim = item->has_claim;
    ret->is_promised = item->is_promised;
    ret->promised_to = item->promised_to;
}

static void start_estimate_fill(const struct session_entry *l, const struct plan_item *item,
                                struct core_start_estimate *ret)
{
    *ret = (struct core_start_estimate){ .start = SCHED_START_RULED_OUT,
                                         .tries = sched_sync_tries(l),
                                         .verdict = l->queue.verdict,
                                         .length = l->resource_group->plan
                                                       ? l->resource_group->plan->length
                                                       : 0 };
    if (l->queue.verdict == SCHED_TOO_EARLY)
        ret->starts_usec = session_entry_starts_usec(l);
    if (!item || l->queue.is_parked)
        return;
    start_estimate_fill_item(item, ret);
}

/* Would a new plan have it? Of what waits for something else none has it, however many are asked
 * for.
 */
static bool start_estimate_may_be_in_queue(const struct session_entry *l)
{
    return l->sched.membership == MEMBERSHIP_WAITING || !list_is_empty(&l->sched.change_link);
}

int core_get_start_estimate(struct core *core, const struct uuid *session_id,
                            struct core_start_estimate *ret)
{
    struct session_entry *l = session_entry_find(core, session_id);
    const struct session_entry *to = NULL;
    const struct plan_item *item;
    const struct plan *plan;
    int r = 0;

    if (!l || l->s.status != SESSION_PENDING)
        return -ENOENT;
    if (core->orphans.restored_usec) { /* no pass runs, so no plan holds */
        start_estimate_fill(l, NULL, ret);
        return 0;
    }
    plan = l->resource_group->plan;
    item = start_estimate_find_item(plan, l->s.row);
    if (!plan || clock_monotonic_usec() >= plan->until_usec
        || (!item && start_estimate_may_be_in_queue(l))) {
        r = start_estimate_make_plan(core, l->resource_group);
        item = start_estimate_find_item(l->resource_group->plan, l->s.row);
    }
    start_estimate_fill(l, item, ret);
    if (ret->is_promised && (to = session_entry_find(core, &ret->promised_to)))
        item = start_estimate_find_item(l->resource_group->plan, to->s.row);
    ret->is_kept = to && item && item->has_claim;
    return r;
}

static bool start_estimate_has_claim(const struct sched_start_estimate *planned, int count,
                                     uint32_t handle)
{
    for (int i = 0; i < count; i++) {
        if (planned[i].handle == handle)
            return planned[i].has_claim;
    }
    return false;
}

static bool start_estimate_is_among(const uint32_t *handles, size_t count, uint32_t handle)
{
    for (size_t i = 0; i < count; i++)
        if (handles[i] == handle)
            return true;
    return false;
}

int start_estimate_what_if(struct core *core, struct session_entry *l, size_t count, size_t most,
                           size_t *ret_started, struct core_start_estimate *ret)
{
    uint32_t *handles = arena_array(&core->scratch, count, sizeof(*handles));
    size_t seen = 0, started = 0;
    struct sched_start_estimate *planned;
    int r;

    *ret = (struct core_start_estimate){ .start = SCHED_START_RULED_OUT };
    *ret_started = 0;
    if (core->orphans.restored_usec)
        return 0;
    r = sched_sync_what_if(core, l, handles, count,
                           PLAN_WORK_MAX / (l->resource_group->node_count + 1) + 1, &planned);
    for (int i = 0; i < r; i++) {
        bool is_queued = planned[i].start != SCHED_START_RULED_OUT;
        struct plan_item item;

        ret->length += is_queued;
        if (started < seen || !start_estimate_is_among(handles, count, planned[i].handle))
            continue; /* the one that does not start now was found, or it is none of them */
        seen++;
        if (start_estimate_is_among(handles, count, planned[i].promised))
            planned[i].promised = SCHED_NO_SESSION;
        started += started < most && planned[i].start == SCHED_START_AT
                   && planned[i].starts_usec <= clock_realtime_usec();
        item = start_estimate_make_item(l->resource_group, &planned[i],
                                        is_queued ? ret->length : 0);
        start_estimate_fill_item(&item, ret);
        ret->is_kept = start_estimate_has_claim(planned, r, planned[i].promised);
    }
    if (started < count && ret->position) { /* those that start do not wait beside it */
        ret->position -= started;
        ret->length -= started;
    }
    *ret_started = started;
    arena_clear(&core->scratch, 1 << 16);
    return AQ_MIN(r, 0);
}

/* "known", "open-ended", ...: a stable word for programs. */
static const char *core_start_name(enum sched_start start)
{
    static const char *const names[] = {
        [SCHED_START_AT] = "known",
        [SCHED_START_OPEN] = "open-ended",
        [SCHED_START_BEHIND] = "behind",
        [SCHED_START_RULED_OUT] = "not-in-queue",
        [SCHED_START_NOT_ESTIMATED] = "too-far-back",
    };

    return names[start];
}

/* How backfill treats a session whose start is not known. */
static void start_estimate_say_claim(const struct resource_group_entry *g,
                                     const struct core_start_estimate *o, struct strbuf *text)
{
    int64_t max_wait_sec = g->options.max_wait_usec / USEC_PER_SEC;

    if (!g->options.backfill || max_wait_sec == 0)
        return;
    if (o->has_claim)
        strbuf_addf(text,
                    " It has waited for more than %" PRId64 " s (backfill-max-wait-sec): resources "
                    "that become free are kept for it.",
                    max_wait_sec);
    else if (o->is_due)
        strbuf_addf(text,
                    " It has waited for more than %" PRId64 " s (backfill-max-wait-sec), but "
                    "resources are kept for other sessions that have waited too long; it takes its "
                    "turn after them.",
                    max_wait_sec);
    else
        strbuf_addf(text,
                    " Sessions behind it may start first until it has waited for %" PRId64 " s "
                    "(backfill-max-wait-sec).",
                    max_wait_sec);
}

/* Names the session that an earlier start would delay. */
static void start_estimate_say_promised(const struct core *core,
                                        const struct core_start_estimate *o, struct strbuf *text)
{
    const struct session_entry *to = session_entry_find(core, &o->promised_to);
    char id[UUID_TEXT_MAX];

    if (!o->is_promised || !to)
        return;
    (void)uuid_format(&o->promised_to, id);
    if (o->is_kept)
        strbuf_addf(text,
                    " It fits on an agent whose resources are kept for session '%s' (%s), which "
                    "has waited too long.",
                    to->s.name, id);
    else
        strbuf_addf(text,
                    " It fits on an agent where session '%s' (%s) is to start, and would delay "
                    "that session%s.",
                    to->s.name, id,
                    o->start == SCHED_START_AT
                        ? ""
                        : ": it has no time limit (--timeout), or one that ends after that start");
}

static void start_estimate_say_start(const struct core_start_estimate *o, struct strbuf *text)
{
    char iso[CLOCK_ISO_MAX];

    switch (o->start) {
    case SCHED_START_AT:
        strbuf_addf(text,
                    "By the time limits of those before it and of those that run, it starts "
                    "at %.19sZ at the latest, if nothing of higher priority comes.",
                    clock_format_iso(o->starts_usec, iso));
        break;
    case SCHED_START_OPEN:
        strbuf_adds(text, "When it starts is not known: what it needs is held by, or promised to, "
                          "sessions without a time limit, or no agent has it at all.");
        break;
    case SCHED_START_BEHIND:
        strbuf_adds(text, "When it starts is not known: a session that holds up the queue before "
                          "it has no known start.");
        break;
    case SCHED_START_NOT_ESTIMATED:
        strbuf_adds(text, "When it starts is not known: too many are before it.");
        break;
    case SCHED_START_RULED_OUT:
        strbuf_adds(text, "It is blocked by a limit or a condition, not by a lack of room.");
        break;
    }
}

void start_estimate_write_text(const struct core *core, const struct resource_group_entry *g,
                               const struct core_start_estimate *o, struct strbuf *text)
{
    bool is_now = o->verdict == SCHED_PLACED && o->start == SCHED_START_AT
                  && o->starts_usec <= clock_realtime_usec();

    if (is_now || o->verdict == SCHED_NO_AGENT || o->verdict == SCHED_NO_CAPACITY)
        return; /* the explanation says it: with the next pass, or no agent to estimate it on */
    if (text->len)
        strbuf_addc(text, '\n');
    if (o->position)
        strbuf_addf(text, "It is number %zu of %zu that wait for room in resource group '%s'. ",
                    o->position, o->length, g->g.name);
    start_estimate_say_start(o, text);
    start_estimate_say_promised(core, o, text);
    if (o->start == SCHED_START_OPEN)
        start_estimate_say_claim(g, o, text);
}

void core_write_start_estimate(const struct core_start_estimate *o, struct jsonw *w)
{
    char iso[CLOCK_ISO_MAX], id[UUID_TEXT_MAX];

    if (o->position)
        jsonw_member_int(w, "position", (int64_t)o->position);
    else
        jsonw_member_null(w, "position");
    jsonw_member_int(w, "queue_length", (int64_t)o->length);
    jsonw_member_str(w, "start", core_start_name(o->start));
    jsonw_member_str(w, "starts_by",
                     o->start == SCHED_START_AT ? clock_format_iso(o->starts_usec, iso) : NULL);
    jsonw_member_bool(w, "has_claim", o->has_claim);
    jsonw_member_str(w, "promised_to", o->is_promised ? uuid_format(&o->promised_to, id) : NULL);
}
