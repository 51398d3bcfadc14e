/* SPDX-License-Identifier: Apache-2.0 */
/* queue_order.c - the sessions that wait, sorted, and which one of a priority is tried next
 *
 * fifo: by row. With retries_to_skip, those that failed as often come after
 *   the others, and others may pass them; until then the first holds up all.
 * lifo: the latest first.
 * drf: always the next of the owner whose dominant share is least, counting
 *   what this pass has placed (dominant resource fairness, Ghodsi et al. 2011).
 * fair-share: owners by the factors of domain, project and user; the owner with the
 *   largest one is next.
 */
#include <assert.h>
#include <string.h>

#include "base/vec.h"
#include "sched/scheduler_internal.h"

/* ---- the queue: by unit, priority, row and rank ---- */

/* < 0: a comes before b. */
int wait_queue_compare(const struct queue_item *a, const struct queue_item *b)
{
    if (a->unit != b->unit)
        return a->unit < b->unit ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

struct queue_item wait_queue_item(const struct sched_session *session)
{
    return (struct queue_item){ .row = session->row,
                                .priority = session->priority,
                                .unit = session->unit,
                                .rank = session->rank };
}

static struct queue_item queue_order_item_of(const struct sched *s, const struct sched_entry *e)
{
    return (struct queue_item){ .row = e->row,
                                .priority = e->priority,
                                .unit = e->unit,
                                .rank = e->rank,
                                .handle = (uint32_t)(e - s->entries),
                                .owner = e->owner };
}

/* The first that does not come before 'q'. */
size_t wait_queue_find(const struct sched *s, const struct queue_item *q)
{
    size_t low = 0, high = s->queue_count;

    if (high && wait_queue_compare(&s->queue[high - 1], q) < 0)
        return high;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (wait_queue_compare(&s->queue[middle], q) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t wait_queue_band_end(const struct sched *s, size_t from)
{
    size_t low = from, high = s->queue_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (s->queue[middle].priority == s->queue[from].priority
            && s->queue[middle].unit == s->queue[from].unit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void room_search_add(struct room_search *search, uint32_t handle)
{
    if (search->count == ROOM_SEARCH_MAX)
        *search = (struct room_search){ 0 };
    else if (search->version)
        search->handles[search->count++] = handle;
}

void wait_queue_insert(struct sched *s, uint32_t handle)
{
    struct sched_entry *e = &s->entries[handle];
    struct queue_item q = queue_order_item_of(s, e);
    size_t at = wait_queue_find(s, &q);

    if (at < s->queue_count && wait_queue_compare(&q, &s->queue[at]) == 0) {
        assert(s->queue[at].handle == NO_HANDLE); /* rows are unique */
        s->queue_gaps--;
    } else {
        vec_grow(&s->queue, &s->queue_cap, s->queue_count + 1, sizeof(*s->queue));
        memmove(&s->queue[at + 1], &s->queue[at], (s->queue_count - at) * sizeof(q));
        s->queue_count++;
    }
    s->queue[at] = q;
    e->queued_in_pass = s->pass_count;
    room_search_add(&s->search, handle);
}

void wait_queue_remove(struct sched *s, const struct sched_entry *e)
{
    struct queue_item q = queue_order_item_of(s, e);
    size_t at = wait_queue_find(s, &q);

    assert(at < s->queue_count && s->queue[at].handle == q.handle);
    s->queue[at].handle = NO_HANDLE;
    s->queue_gaps++;
}

void wait_queue_close_gaps(struct sched *s)
{
    size_t kept = 0;

    if (!s->queue_gaps)
        return;
    for (size_t i = 0; i < s->queue_count; i++)
        if (s->queue[i].handle != NO_HANDLE)
            s->queue[kept++] = s->queue[i];
    s->queue_count = kept;
    s->queue_gaps = 0;
}

/* ---- by row ---- */

struct fifo_rounds {
    bool is_second_round;
};

static void queue_order_begin_fifo(struct queue_order *seq, struct arena *arena)
{
    seq->data = arena_alloc(arena, sizeof(struct fifo_rounds));
}

/* As it was when the pass began. */
static bool queue_order_is_skipped(const struct sched *s, const struct sched_entry *e)
{
    return s->options.retries_to_skip
           && e->retries - (e->tried_in_pass == s->pass_count) >= s->options.retries_to_skip;
}

/* First those that are not skipped, then the others. */
static uint32_t queue_order_next_fifo(struct queue_order *seq)
{
    struct fifo_rounds *skipping = seq->data;

    for (;;) {
        for (; seq->at < seq->count; seq->at++) {
            const struct queue_item *q = &seq->items[seq->at];

            if (!seq->s->options.retries_to_skip
                || queue_order_is_skipped(seq->s, &seq->s->entries[q->handle])
                       == skipping->is_second_round) {
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

static bool queue_order_may_pass_fifo(const struct sched *s, const struct sched_entry *e)
{
    return queue_order_is_skipped(s, e);
}

const struct sequencer_ops sched_fifo = { .name = "fifo",
                                          .begin = queue_order_begin_fifo,
                                          .next = queue_order_next_fifo,
                                          .may_pass = queue_order_may_pass_fifo };

static uint32_t queue_order_next_lifo(struct queue_order *seq)
{
    return seq->at < seq->count ? seq->items[seq->count - ++seq->at].handle : NO_HANDLE;
}

const struct sequencer_ops sched_lifo = { .name = "lifo", .next = queue_order_next_lifo };

/* ---- by owner ---- */

/* An owner's sessions of the band, in their order. */
struct owner_queue {
    uint32_t owner;
    const struct queue_item *items; /* of the band */
    uint32_t *places;               /* the owner's, in it */
    size_t count, at;
    double key[3]; /* the larger, the earlier */
};

struct owner_queues {
    struct owner_queue *all;
    struct owner_queue **heap; /* the next on top */
    size_t count;
};

/* Does 'a' come before 'b'? */
static bool owner_queue_before(const struct owner_queue *a, const struct owner_queue *b)
{
    for (int i = 0; i < 3; i++)
        if (a->key[i] != b->key[i])
            return a->key[i] > b->key[i];
    return a->items[a->places[a->at]].row < b->items[b->places[b->at]].row;
}

static void owner_queues_sift_down(struct owner_queues *l, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < l->count; at = child) {
        struct owner_queue *swap = l->heap[at];

        if (child + 1 < l->count && owner_queue_before(l->heap[child + 1], l->heap[child]))
            child++;
        if (!owner_queue_before(l->heap[child], swap))
            return;
        l->heap[at] = l->heap[child];
        l->heap[child] = swap;
    }
}

/* The largest part of what there is that the owner holds of one slot. */
static double queue_order_share(struct sched *s, uint32_t owner)
{
    const struct cluster *c = &s->cluster;
    double share = 0;

    if (s->capacity_at != c->agents_changed) {
        memset(s->capacity, 0, c->width * sizeof(*s->capacity));
        for (size_t n = 0; n < c->node_count; n++)
            for (size_t i = 0; !c->nodes[n].booking && i < c->columns; i++)
                s->capacity[i] += c->nodes[n].capacity[i];
        s->capacity_at = c->agents_changed;
    }
    for (size_t i = 0; owner < s->owner_count && i < c->columns; i++)
        if (s->capacity[i] > 0 && s->owners[owner].used)
            share = AQ_MAX(share, (double)s->owners[owner].used[i] / (double)s->capacity[i]);
    return share;
}

static void queue_order_key_drf(struct sched *s, struct owner_queue *queue)
{
    queue->key[0] = -queue_order_share(s, queue->owner);
}

static void queue_order_key_fair_share(struct sched *s, struct owner_queue *queue)
{
    if (queue->owner < s->owner_count)
        memcpy(queue->key, s->owners[queue->owner].factors, sizeof(queue->key));
}

/* Unknown owners share the last queue. */
static uint32_t owner_queue_of(const struct sched *s, uint32_t owner)
{
    return (uint32_t)AQ_MIN((size_t)owner, s->owner_count);
}

/* A counting sort of the band into queues. */
static void owner_queues_fill(struct queue_order *seq, struct owner_queues *l, struct arena *arena)
{
    size_t count = seq->s->owner_count + 1;
    uint32_t *places = arena_array(arena, seq->count, sizeof(*places));
    size_t at = 0;

    l->all = arena_array(arena, count, sizeof(*l->all));
    l->heap = arena_array(arena, count, sizeof(struct owner_queue *));
    for (size_t i = 0; i < seq->count; i++)
        l->all[owner_queue_of(seq->s, seq->items[i].owner)].count++;
    for (size_t i = 0; i < count; at += l->all[i].count, i++) {
        l->all[i].owner = (uint32_t)i;
        l->all[i].items = seq->items;
        l->all[i].places = &places[at];
    }
    for (size_t i = 0; i < seq->count; i++) {
        struct owner_queue *queue = &l->all[owner_queue_of(seq->s, seq->items[i].owner)];

        queue->places[queue->at++] = (uint32_t)i;
    }
    for (size_t i = 0; i < count; i++) {
        l->all[i].at = 0;
        if (l->all[i].count)
            l->heap[l->count++] = &l->all[i];
    }
}

static void owner_queues_begin(struct queue_order *seq, struct arena *arena,
                               void (*key)(struct sched *s, struct owner_queue *queue))
{
    struct owner_queues *l = arena_alloc(arena, sizeof(*l));

    owner_queues_fill(seq, l, arena);
    for (size_t i = 0; i < l->count; i++)
        key(seq->s, l->heap[i]);
    for (size_t i = l->count / 2; i-- > 0;)
        owner_queues_sift_down(l, i);
    seq->data = l;
}

static void queue_order_begin_drf(struct queue_order *seq, struct arena *arena)
{
    owner_queues_begin(seq, arena, queue_order_key_drf);
}

static void queue_order_begin_fair_share(struct queue_order *seq, struct arena *arena)
{
    owner_queues_begin(seq, arena, queue_order_key_fair_share);
}

/* The one given last is done with: its queue goes on. */
static uint32_t owner_queues_next(struct queue_order *seq)
{
    struct owner_queues *l = seq->data;
    const struct owner_queue *next;

    if (seq->at++ > 0 && l->count) {
        struct owner_queue *top = l->heap[0];

        if (seq->s->options.sequencer == &sched_drf)
            queue_order_key_drf(seq->s, top);
        if (++top->at == top->count)
            l->heap[0] = l->heap[--l->count];
        owner_queues_sift_down(l, 0);
    }
    assert(l->count < 2 || !owner_queue_before(l->heap[1], l->heap[0]));
    assert(l->count < 3 || !owner_queue_before(l->heap[2], l->heap[0]));
    next = l->count ? l->heap[0] : NULL;
    return next ? next->items[next->places[next->at]].handle : NO_HANDLE;
}

const struct sequencer_ops sched_drf = { .name = "drf",
                                         .begin = queue_order_begin_drf,
                                         .next = owner_queues_next };
const struct sequencer_ops sched_fair_share = { .name = "fair-share",
                                                .begin = queue_order_begin_fair_share,
                                                .next = owner_queues_next };

const struct sequencer_ops *sched_find_sequencer(const char *name)
{
    static const struct sequencer_ops *const all[] = { &sched_fifo, &sched_lifo, &sched_drf,
                                                       &sched_fair_share };

    for (size_t i = 0; i < AQ_COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}
