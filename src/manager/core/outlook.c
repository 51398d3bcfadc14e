/* outlook.c - when a waiting session will start
 *
 * The group's scheduler is asked for a plan of its whole queue, which answers
 * for every session in it. A plan is used again for as long as ten times what
 * it cost, so that many who ask take a tenth of the loop's time at most.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "manager/core/parts.h"

/* Sessions times agents that are planned: some 0.1 s. */
#define PLAN_WORK_MAX 2000000
#define PLAN_AGE_FACTOR 10

struct plan_item {
    int64_t row;
    size_t position;          /* from 1; 0 = not room is what it waits for */
    enum sched_start start;
    int64_t starts_usec;
};

struct plan {
    int64_t until_usec;       /* monotonic */
    size_t length;            /* those with a position */
    size_t count;
    struct plan_item items[]; /* by row */
};

void outlook_done(struct rgroup *g)
{
    free(g->plan);
    g->plan = NULL;
}

static int compare_rows(const void *a, const void *b)
{
    const struct plan_item *x = a, *y = b;

    return (x->row > y->row) - (x->row < y->row);
}

static const struct plan_item *find_item(const struct plan *plan, int64_t row)
{
    const struct plan_item key = { .row = row };

    return plan ? bsearch(&key, plan->items, plan->count, sizeof(key), compare_rows) : NULL;
}

static struct plan *take_plan(const struct rgroup *g, const struct sched_planned *planned,
                              size_t count)
{
    struct plan *plan = malloc(sizeof(*plan) + count * sizeof(plan->items[0]));

    if (!plan)
        return NULL;
    *plan = (struct plan){ .count = count };
    for (size_t i = 0; i < count; i++)
        plan->items[i] = (struct plan_item){ .row = g->seats[planned[i].handle]->s.row,
            .position = planned[i].start == SCHED_START_RULED ? 0 : ++plan->length,
            .start = planned[i].start, .starts_usec = planned[i].starts_usec };
    qsort(plan->items, count, sizeof(plan->items[0]), compare_rows);
    return plan;
}

static int make_plan(struct core *core, struct rgroup *g)
{
    int64_t begun = clock_monotonic_usec();
    struct sched_planned *planned;
    int r = kept_sync(core, g);

    outlook_done(g);
    if (r == 0)
        r = sched_plan(g->sched, clock_realtime_usec(), PLAN_WORK_MAX / (g->node_count + 1) + 1,
                       &core->scratch, &planned);
    if (r >= 0)
        g->plan = take_plan(g, planned, (size_t)r);
    arena_clear(&core->scratch, 1 << 16);
    if (r < 0 || !g->plan)
        return r < 0 ? r : -ENOMEM;
    g->plan->until_usec = clock_monotonic_usec()
        + PLAN_AGE_FACTOR * (clock_monotonic_usec() - begun);
    return 0;
}

static void fill(const struct live *l, const struct plan_item *item, struct core_outlook *ret)
{
    *ret = (struct core_outlook){ .start = SCHED_START_RULED, .tries = live_tries(l),
        .verdict = l->verdict, .length = l->rgroup->plan ? l->rgroup->plan->length : 0 };
    if (l->verdict == SCHED_TOO_EARLY)
        ret->starts_usec = l->s.starts_usec;
    if (!item || l->is_parked)
        return;
    ret->position = item->position;
    ret->start = item->start;
    ret->starts_usec = item->starts_usec;
}

int core_get_outlook(struct core *core, const struct uuid *session_id, struct core_outlook *ret)
{
    struct live *l = live_find(core, session_id);
    const struct plan_item *item;
    int r = 0;

    if (!l || l->s.status != SESSION_PENDING)
        return -ENOENT;
    item = find_item(l->rgroup->plan, l->s.row);
    if (!item || clock_monotonic_usec() >= l->rgroup->plan->until_usec) {
        r = make_plan(core, l->rgroup);
        item = find_item(l->rgroup->plan, l->s.row);
    }
    fill(l, item, ret);
    return r;
}

int outlook_guess(struct core *core, struct live *l, struct core_outlook *ret)
{
    struct sched_planned *planned;
    int r = kept_guess(core, l, PLAN_WORK_MAX / (l->rgroup->node_count + 1) + 1, &planned);

    *ret = (struct core_outlook){ .start = SCHED_START_RULED };
    for (int i = 0; i < r; i++) {
        ret->length += planned[i].start != SCHED_START_RULED;
        if (planned[i].handle != l->handle)
            continue;
        ret->position = planned[i].start == SCHED_START_RULED ? 0 : ret->length;
        ret->start = planned[i].start;
        ret->starts_usec = planned[i].starts_usec;
    }
    arena_clear(&core->scratch, 1 << 16);
    return AQ_MIN(r, 0);
}

const char *core_start_name(enum sched_start start)
{
    static const char *const names[] = {
        [SCHED_START_AT] = "known",
        [SCHED_START_OPEN] = "open-ended",
        [SCHED_START_BEHIND] = "behind",
        [SCHED_START_RULED] = "not-in-queue",
        [SCHED_START_FAR] = "too-far-back",
    };

    return names[start];
}

static void say_start(const struct core_outlook *o, struct strbuf *text)
{
    char iso[CLOCK_ISO_MAX];

    switch (o->start) {
    case SCHED_START_AT:
        strbuf_addf(text, "By the time limits of those before it and of those that run it starts "
                    "until %s, if nothing of higher priority comes.",
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
    case SCHED_START_FAR:
        strbuf_adds(text, "When it starts is not known: too many are before it.");
        break;
    case SCHED_START_RULED:
        strbuf_adds(text, "It is not in the queue: room alone would not start it.");
        break;
    }
}

void outlook_say(const struct rgroup *g, const struct core_outlook *o, struct strbuf *text)
{
    if (text->len)
        strbuf_addc(text, '\n');
    if (o->position)
        strbuf_addf(text, "It is number %zu of %zu that wait for room in resource group '%s'. ",
                    o->position, o->length, g->g.name);
    say_start(o, text);
}

void core_write_outlook(const struct core_outlook *o, struct jsonw *w)
{
    char iso[CLOCK_ISO_MAX];

    if (o->position)
        jsonw_member_int(w, "position", (int64_t)o->position);
    else
        jsonw_member_null(w, "position");
    jsonw_member_int(w, "queue_length", (int64_t)o->length);
    jsonw_member_str(w, "start", core_start_name(o->start));
    jsonw_member_str(w, "starts_by", o->start == SCHED_START_AT
                                         ? clock_format_iso(o->starts_usec, iso) : NULL);
    jsonw_member_int(w, "retries", o->tries);
}
