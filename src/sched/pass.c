/* pass.c - one look at those that wait */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "sched/state_private.h"

static const char *const verdict_names[] = {
    [SCHED_PLACED] = "placed",
    [SCHED_NO_ROOM] = "no-room",
    [SCHED_NO_AGENT] = "no-agent",
    [SCHED_TOO_EARLY] = "too-early",
    [SCHED_DEPENDENCY] = "dependency",
    [SCHED_DOOMED] = "dependency-failed",
    [SCHED_CONCURRENCY] = "concurrency",
    [SCHED_QUOTA] = "quota",
    [SCHED_PREEMPTING] = "preempting",
    [SCHED_BEHIND] = "behind",
};

const char *sched_verdict_name(enum sched_verdict verdict)
{
    return verdict_names[verdict];
}

struct pass {
    struct sched *s;
    int64_t now_usec;
    struct arena *arena;
    struct sched_result result;
    size_t cap;
    struct forecast *forecast;      /* once somebody found no room, with backfill */
    uint32_t reservations;
    uint32_t searches;              /* for whom to move */
    bool has_placed;
};

#define SEARCHES_MAX 32 /* of one pass: the first that found no room */

/* ---- outcomes ---- */

static struct sched_outcome *add_outcome(struct pass *p)
{
    if (p->result.count == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 16;
        struct sched_outcome *grown = arena_array(p->arena, cap, sizeof(*grown));

        if (!grown)
            return NULL;
        if (p->result.count)
            memcpy(grown, p->result.outcomes, p->result.count * sizeof(*grown));
        p->result.outcomes = grown;
        p->cap = cap;
    }
    return &p->result.outcomes[p->result.count++];
}

static const uint32_t *list_agents(struct pass *p, const struct entry *e)
{
    uint32_t *agents = arena_array(p->arena, e->kernel_count, sizeof(*agents));

    for (uint32_t k = 0; agents && k < e->kernel_count; k++)
        agents[k] = e->holds[e->single_node ? 0 : k].node;
    return agents;
}

static int tell(struct pass *p, uint32_t handle, const struct sched_outcome *out)
{
    struct entry *e = &p->s->entries[handle];
    bool is_placed = out->verdict == SCHED_PLACED || out->verdict == SCHED_PREEMPTING;
    struct sched_outcome *to;

    if (!is_placed && e->is_told && e->verdict == out->verdict && e->planned_usec == out->starts_usec)
        return 0;
    e->is_told = true;
    e->verdict = out->verdict;
    e->planned_usec = out->starts_usec;
    if (!(to = add_outcome(p)))
        return -ENOMEM;
    *to = *out;
    to->session = handle;
    if (out->verdict == SCHED_PLACED && p->s->choices.len &&
        !(to->choices = arena_strdup(p->arena, p->s->choices.data)))
        return -ENOMEM;
    return is_placed && !(to->agents = list_agents(p, e)) ? -ENOMEM : 0;
}

static void settle(struct pass *p, struct entry *e, enum entry_status status)
{
    const struct selector *selector = &p->s->options.selector;

    e->status = status;
    p->s->preempting += status == ENTRY_PREEMPTING;
    e->started_usec = p->now_usec;
    e->placed_in = p->s->passes;
    state_charge(p->s, e, 1);
    p->has_placed = true;
    for (uint32_t i = 0; selector->ops->placed && i < e->req_count; i++)
        selector->ops->placed(selector->data, &p->s->cluster, e->holds[i].node);
}

/* ---- looking ---- */

static int need_forecast(struct pass *p)
{
    if (!p->forecast)
        p->forecast = forecast_new(p->s, p->now_usec, false, p->arena);
    return p->forecast ? 0 : -ENOMEM;
}

/* No room, or others have a time: is there one for it, or, with 'only_now', does it start now
 * without moving any? Returns a verdict or -ENOMEM.
 */
static int find_time(struct pass *p, struct entry *e, bool only_now, int64_t *ret_usec)
{
    uint32_t max = p->s->options.reservations_max;
    bool is_last = max && p->reservations >= max;
    int64_t at;

    if (need_forecast(p) < 0 || forecast_entry(p->forecast, e, only_now || is_last, &at) < 0)
        return -ENOMEM;
    if (at <= p->now_usec)
        return SCHED_PLACED;
    if (!only_now) {
        p->reservations += !is_last;
        *ret_usec = at == INT64_MAX ? 0 : at;
    }
    return SCHED_NO_ROOM;
}

/* Is all that it holds really free for it: have its victims gone? */
static bool has_real_room(const struct sched *s, const struct entry *e)
{
    for (uint32_t i = 0; i < e->req_count; i++) {
        const struct node *n = &s->cluster.nodes[e->holds[i].node];

        for (size_t c = 0; c < s->cluster.width; c++)
            if (e->reqs[i]->amounts[c] > 0 && n->free[c] < 0)
                return false;
        for (uint32_t p = 0; p < e->holds[i].part_count; p++)
            if (n->devices[e->holds[i].parts[p].device].free < 0)
                return false;
    }
    return true;
}

/* The verdict on what preempt_for() or move_for() has answered. */
static int judge_hold(const struct pass *p, const struct entry *e, const struct sched_outcome *out,
                      int r)
{
    if (r <= 0)
        return r < 0 ? r : SCHED_NO_ROOM;
    return out->victim_count == 0 && has_real_room(p->s, e) ? SCHED_PLACED : SCHED_PREEMPTING;
}

/* The plans of others know of it. */
static int tell_forecast(struct pass *p, const struct entry *e, const struct sched_outcome *out)
{
    int r = p->forecast ? forecast_change(p->forecast, e, e->holds, -1) : 0;

    for (size_t i = 0; p->forecast && i < out->victim_count && r == 0; i++) {
        const struct entry *v = &p->s->entries[out->victims[i]];

        if ((r = forecast_leave(p->forecast, v, 1)) == 0)
            r = forecast_linger(p->forecast, v);
    }
    return r;
}

static int preempt(struct pass *p, struct entry *e, struct sched_outcome *out)
{
    int r = preempt_for(p->s, e, p->now_usec, p->arena, &out->victims, &out->victim_count);

    if (r > 0 && tell_forecast(p, e, out) < 0)
        return -ENOMEM;
    return judge_hold(p, e, out, r);
}

static int move(struct pass *p, struct entry *e, struct sched_outcome *out)
{
    if (p->searches >= SEARCHES_MAX)
        return SCHED_NO_ROOM;
    p->searches++;
    if (p->s->options.backfill && need_forecast(p) < 0)
        return -ENOMEM;
    return judge_hold(p, e, out, move_for(p->s, e, p->now_usec, p->forecast, p->arena, out));
}

/* A verdict or -ENOMEM. */
static int find_place(struct pass *p, struct entry *e, struct sched_outcome *out)
{
    const struct sched_options *o = &p->s->options;
    /* who was told a time starts where it was planned: others were planned around it */
    bool is_planned = p->forecast || (o->backfill && e->planned_usec);
    int r = SCHED_NO_ROOM;

    if (!is_planned)
        r = place_entry(p->s, e, p->arena);
    else if (!entry_has_agent(p->s, e, 0))
        return SCHED_NO_AGENT;
    else if (o->preemption.moves || o->preemption.enabled)
        r = find_time(p, e, true, NULL);
    if (r == SCHED_NO_ROOM && o->preemption.moves)
        r = move(p, e, out);
    if (r == SCHED_NO_ROOM && o->preemption.enabled)
        r = preempt(p, e, out);
    if (r == SCHED_NO_ROOM && o->backfill)
        r = find_time(p, e, false, &out->starts_usec);
    return r;
}

static int look(struct pass *p, uint32_t handle, struct sched_outcome *out)
{
    struct entry *e = &p->s->entries[handle];
    int r;

    *out = (struct sched_outcome){ .session = handle };
    strbuf_clear(&p->s->choices);
    out->verdict = validate_entry(p->s, e, p->now_usec, &out->account);
    if (out->verdict != SCHED_PLACED)
        return 0;
    if ((r = find_place(p, e, out)) < 0)
        return r;
    out->verdict = (enum sched_verdict)r;
    if (out->verdict == SCHED_PLACED)
        settle(p, e, ENTRY_PLACED);
    else if (out->verdict == SCHED_PREEMPTING)
        settle(p, e, ENTRY_PREEMPTING);
    return 0;
}

/* Does 'out' hold up those behind? */
static bool is_blocking(const struct pass *p, const struct entry *e,
                        const struct sched_outcome *out)
{
    const struct sched_options *o = &p->s->options;

    if (out->verdict != SCHED_NO_ROOM)
        return false;
    if (o->sequencer->may_pass && o->sequencer->may_pass(p->s, e))
        return false;
    return !o->backfill;
}

static int look_at_band(struct pass *p, size_t from, size_t to)
{
    const struct sequencer_ops *ops = p->s->options.sequencer;
    struct sequence seq = { .s = p->s, .items = &p->s->queue[from], .count = to - from };
    struct sched_outcome out;
    uint32_t handle;

    if (ops->begin && ops->begin(&seq, p->arena) < 0)
        return -ENOMEM;
    while (!p->result.is_blocked && (handle = ops->next(&seq)) != NO_HANDLE) {
        struct entry *e = &p->s->entries[handle];

        if (look(p, handle, &out) < 0 || tell(p, handle, &out) < 0)
            return -ENOMEM;
        p->result.is_blocked = is_blocking(p, e, &out);
        p->result.blocker = handle;
        if (out.verdict != SCHED_PLACED && e->retries < UINT32_MAX) {
            e->retries++;
            e->tried_in = p->s->passes; /* the sequencer goes by what it was before */
        }
    }
    return 0;
}

/* ---- the pass ---- */

/* An agent where it has its place takes nothing any more. */
static bool has_lost_agent(const struct sched *s, const struct entry *e)
{
    const struct cluster *c = &s->cluster;

    for (uint32_t i = 0; i < e->req_count; i++)
        if (c->nodes[e->holds[i].node].free[c->columns] == SCHED_ABSENT)
            return true;
    return false;
}

/* It waits like others again. */
static int give_place_back(struct pass *p, uint32_t handle)
{
    struct sched *s = p->s;
    struct entry *e = &s->entries[handle];
    struct sched_outcome out = { .verdict = SCHED_NO_ROOM, .account = SCHED_NO_ACCOUNT };

    if (!vec_grow(&s->queue, &s->queue_cap, s->queue_count + 1, sizeof(*s->queue)))
        return -ENOMEM;
    for (uint32_t q = 0; q < e->req_count; q++)
        if (state_release(s, e, q) < 0)
            return -ENOMEM;
    state_charge(s, e, -1);
    s->preempting--;
    e->status = ENTRY_WAITING;
    e->is_told = false;
    queue_insert(s, handle);
    return tell(p, handle, &out);
}

static int start_waiting_for_victims(struct pass *p)
{
    for (uint32_t i = 0; p->s->preempting && i < p->s->entry_count; i++) {
        struct entry *e = &p->s->entries[i];
        struct sched_outcome out = { .verdict = SCHED_PLACED, .account = SCHED_NO_ACCOUNT };

        if (e->status != ENTRY_PREEMPTING)
            continue;
        if (has_lost_agent(p->s, e)) {
            if (give_place_back(p, i) < 0)
                return -ENOMEM;
            continue;
        }
        if (!has_real_room(p->s, e))
            continue;
        e->status = ENTRY_PLACED;
        e->started_usec = p->now_usec;
        p->s->preempting--;
        if (tell(p, i, &out) < 0)
            return -ENOMEM;
    }
    return 0;
}

static void drop_placed(struct sched *s)
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
static int start_reserved(struct pass *p)
{
    struct sched *s = p->s;

    for (size_t i = 0; s->reserved_count && i < s->queue_count; i++) {
        struct sched_outcome out = { .session = s->queue[i].handle, .account = SCHED_NO_ACCOUNT };
        struct entry *e = &s->entries[s->queue[i].handle];
        int r = 0;

        if (!state_find_reserved(s, e->row))
            continue;
        out.verdict = validate_entry(s, e, p->now_usec, &out.account);
        if (out.verdict != SCHED_PLACED)
            r = state_unreserve(s, e->row); /* its turn among others comes */
        else if ((r = reserve_start(s, e)) > 0) {
            if (!has_real_room(s, e))
                out.verdict = SCHED_PREEMPTING;
            settle(p, e, out.verdict == SCHED_PLACED ? ENTRY_PLACED : ENTRY_PREEMPTING);
            r = tell(p, s->queue[i].handle, &out);
        }
        if (r < 0)
            return -ENOMEM;
    }
    if (p->has_placed)
        drop_placed(s);
    return 0;
}

/* The pass came to nothing: what it placed waits again. */
static void take_back(struct pass *p)
{
    for (size_t i = 0; i < p->s->entry_count; i++) {
        struct entry *e = &p->s->entries[i];

        if (e->placed_in != p->s->passes || e->status == ENTRY_WAITING || e->status == ENTRY_FREE)
            continue;
        p->s->preempting -= e->status == ENTRY_PREEMPTING;
        state_charge(p->s, e, -1);
        e->status = ENTRY_WAITING;
        e->is_told = false;
        for (uint32_t q = 0; q < e->req_count; q++)
            (void)state_release(p->s, e, q); /* into a state that was there before */
    }
}

int sched_pass(struct sched *s, int64_t now_usec, struct arena *arena, struct sched_result *ret,
               struct aq_error *err)
{
    struct pass p = { .s = s, .now_usec = now_usec, .arena = arena };
    int r;

    s->passes++;
    strbuf_clear(&s->choices);
    r = start_waiting_for_victims(&p);
    if (r == 0)
        r = start_reserved(&p);

    for (size_t from = 0, to; r == 0 && from < s->queue_count && !p.result.is_blocked; from = to) {
        to = queue_band_end(s, from);
        r = look_at_band(&p, from, to);
    }
    if (r < 0)
        take_back(&p);
    if (p.has_placed)
        drop_placed(s);
    if (r < 0)
        return aq_fail(err, ENOMEM, "a scheduling pass");
    *ret = p.result;
    return 0;
}
