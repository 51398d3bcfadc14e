/* sequence.c - in which order the sessions of a band are looked at
 *
 * fifo: by row. With retries_to_skip, those that failed as often come after
 *   the others, and others may pass them; until then the first holds up all.
 * lifo: the latest first.
 * drf: always the next of the owner whose dominant share is least, counting
 *   what this pass has placed (dominant resource fairness, Ghodsi et al. 2011).
 * fair-share: owners by the factors of domain, project and user; the largest
 *   is owed most.
 */
#include <errno.h>
#include <string.h>

#include "sched/state_private.h"

/* ---- by row ---- */

struct skipping {
    bool is_second_round;
};

static int begin_fifo(struct sequence *seq, struct arena *arena)
{
    return (seq->data = arena_alloc(arena, sizeof(struct skipping))) ? 0 : -ENOMEM;
}

/* As it was when the pass began. */
static bool is_skipped(const struct sched *s, const struct entry *e)
{
    return s->options.retries_to_skip &&
           e->retries - (e->tried_in == s->passes) >= s->options.retries_to_skip;
}

/* First those that are not skipped, then the others. */
static uint32_t next_fifo(struct sequence *seq)
{
    struct skipping *skipping = seq->data;

    for (;;) {
        for (; seq->at < seq->count; seq->at++) {
            const struct queued *q = &seq->items[seq->at];

            if (!seq->s->options.retries_to_skip ||
                is_skipped(seq->s, &seq->s->entries[q->handle]) == skipping->is_second_round) {
                seq->at++;
                return q->handle;
            }
        }
        if (skipping->is_second_round || !seq->s->options.retries_to_skip)
            return NO_HANDLE;
        skipping->is_second_round = true;
        seq->at = 0;
    }
}

static bool may_pass_fifo(const struct sched *s, const struct entry *e)
{
    return is_skipped(s, e);
}

const struct sequencer_ops sched_fifo = { .name = "fifo", .begin = begin_fifo, .next = next_fifo,
    .may_pass = may_pass_fifo };

static uint32_t next_lifo(struct sequence *seq)
{
    return seq->at < seq->count ? seq->items[seq->count - ++seq->at].handle : NO_HANDLE;
}

const struct sequencer_ops sched_lifo = { .name = "lifo", .next = next_lifo };

/* ---- by owner ---- */

/* An owner's sessions of the band, in their order. */
struct lane {
    uint32_t owner;
    const struct queued *items; /* of the band */
    uint32_t *places;           /* the owner's, in it */
    size_t count, at;
    double key[3]; /* the larger, the earlier */
};

struct lanes {
    struct lane *all;
    struct lane **heap; /* the next on top */
    size_t count;
};

/* Does 'a' come before 'b'? */
static bool lane_before(const struct lane *a, const struct lane *b)
{
    for (int i = 0; i < 3; i++)
        if (a->key[i] != b->key[i])
            return a->key[i] > b->key[i];
    return a->items[a->places[a->at]].row < b->items[b->places[b->at]].row;
}

static void sift_down(struct lanes *l, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < l->count; at = child) {
        struct lane *swap = l->heap[at];

        if (child + 1 < l->count && lane_before(l->heap[child + 1], l->heap[child]))
            child++;
        if (!lane_before(l->heap[child], swap))
            return;
        l->heap[at] = l->heap[child];
        l->heap[child] = swap;
    }
}

double owner_share(struct sched *s, uint32_t owner)
{
    const struct cluster *c = &s->cluster;
    double share = 0;

    if (s->capacity_at != c->agents_changed) {
        memset(s->capacity, 0, c->width * sizeof(*s->capacity));
        for (size_t n = 0; n < c->node_count; n++)
            for (size_t i = 0; c->nodes[n].id && i < c->columns; i++)
                s->capacity[i] += c->nodes[n].capacity[i];
        s->capacity_at = c->agents_changed;
    }
    for (size_t i = 0; owner < s->owner_count && i < c->columns; i++)
        if (s->capacity[i] > 0 && s->owners[owner].used)
            share = AQ_MAX(share, (double)s->owners[owner].used[i] / (double)s->capacity[i]);
    return share;
}

static void key_drf(struct sched *s, struct lane *lane)
{
    lane->key[0] = -owner_share(s, lane->owner);
}

static void key_fair_share(struct sched *s, struct lane *lane)
{
    if (lane->owner < s->owner_count)
        memcpy(lane->key, s->owners[lane->owner].factors, sizeof(lane->key));
}

/* Whoever is no known owner shares the last lane. */
static uint32_t lane_of(const struct sched *s, uint32_t owner)
{
    return (uint32_t)AQ_MIN((size_t)owner, s->owner_count);
}

/* A counting sort of the band into lanes. */
static int fill_lanes(struct sequence *seq, struct lanes *l, struct arena *arena)
{
    size_t count = seq->s->owner_count + 1;
    uint32_t *places = arena_array(arena, seq->count, sizeof(*places));
    size_t at = 0;

    l->all = arena_array(arena, count, sizeof(*l->all));
    l->heap = arena_array(arena, count, sizeof(struct lane *));
    if (!places || !l->all || !l->heap)
        return -ENOMEM;
    for (size_t i = 0; i < seq->count; i++)
        l->all[lane_of(seq->s, seq->items[i].owner)].count++;
    for (size_t i = 0; i < count; at += l->all[i].count, i++) {
        l->all[i].owner = (uint32_t)i;
        l->all[i].items = seq->items;
        l->all[i].places = &places[at];
    }
    for (size_t i = 0; i < seq->count; i++) {
        struct lane *lane = &l->all[lane_of(seq->s, seq->items[i].owner)];

        lane->places[lane->at++] = (uint32_t)i;
    }
    for (size_t i = 0; i < count; i++) {
        l->all[i].at = 0;
        if (l->all[i].count)
            l->heap[l->count++] = &l->all[i];
    }
    return 0;
}

static int begin_lanes(struct sequence *seq, struct arena *arena,
                       void (*key)(struct sched *s, struct lane *lane))
{
    struct lanes *l = arena_alloc(arena, sizeof(*l));

    if (!l || fill_lanes(seq, l, arena) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < l->count; i++)
        key(seq->s, l->heap[i]);
    for (size_t i = l->count / 2; i-- > 0;)
        sift_down(l, i);
    seq->data = l;
    return 0;
}

static int begin_drf(struct sequence *seq, struct arena *arena)
{
    return begin_lanes(seq, arena, key_drf);
}

static int begin_fair_share(struct sequence *seq, struct arena *arena)
{
    return begin_lanes(seq, arena, key_fair_share);
}

/* The one given last is done with: its lane goes on. */
static uint32_t next_lane(struct sequence *seq)
{
    struct lanes *l = seq->data;
    const struct lane *next;

    if (seq->at++ > 0 && l->count) {
        struct lane *top = l->heap[0];

        if (seq->s->options.sequencer == &sched_drf)
            key_drf(seq->s, top);
        if (++top->at == top->count)
            l->heap[0] = l->heap[--l->count];
        sift_down(l, 0);
    }
    next = l->count ? l->heap[0] : NULL;
    return next ? next->items[next->places[next->at]].handle : NO_HANDLE;
}

const struct sequencer_ops sched_drf = { .name = "drf", .begin = begin_drf, .next = next_lane };
const struct sequencer_ops sched_fair_share = { .name = "fair-share", .begin = begin_fair_share,
    .next = next_lane };

const struct sequencer_ops *sched_find_sequencer(const char *name)
{
    static const struct sequencer_ops *const all[] = { &sched_fifo, &sched_lifo, &sched_drf,
        &sched_fair_share };

    for (size_t i = 0; i < AQ_COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}
