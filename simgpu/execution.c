/* SPDX-License-Identifier: Apache-2.0 */
/* execution.c - what the multiprocessors have done by now
 *
 * One client at a time has the processors, in turns of slice_ns while others
 * have work, as cards without MPS do it. Within its turn the GPU kernels at the
 * heads of its queues run side by side; together they can use no more than
 * all processors.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

#define WAIT_MAX_NS 1000000

int64_t sim_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct sim_item *execution_head(struct sim_queue *queue)
{
    return queue->done < queue->pushed ? &queue->items[queue->done % SIM_RING] : NULL;
}

/* Is there anything for the card to do? Waiting for an event is not. */
static bool execution_has_work(struct sim_client *client, uint32_t device)
{
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        const struct sim_item *item = execution_head(&client->uses[device].queues[i]);

        if (item
            && (item->kind != SIM_WAIT
                || client->events[item->event % SIM_EVENTS].done >= item->event_turn))
            return true;
    }
    return false;
}

/* Do what takes no time; is a GPU kernel left at the head of some queue? */
static bool execution_settle(struct sim_client *client, uint32_t device, int64_t at)
{
    bool runnable = false, moved = true;

    while (moved) {
        moved = runnable = false;
        for (uint32_t i = 0; i < SIM_STREAMS; i++) {
            struct sim_queue *queue = &client->uses[device].queues[i];
            struct sim_item *item;

            while ((item = execution_head(queue))) {
                struct sim_event *event = &client->events[item->event % SIM_EVENTS];

                if (item->kind == SIM_KERNEL && item->left_ns > 0) {
                    runnable = true;
                    break;
                }
                if (item->kind == SIM_WAIT && event->done < item->event_turn)
                    break;
                if (item->kind == SIM_EVENT && event->done < item->event_turn) {
                    event->done = item->event_turn;
                    event->at_ns = at;
                }
                queue->done++;
                moved = true;
            }
        }
    }
    return runnable;
}

/* Let the next client have its turn if this one's is over or has nothing to do.
 * Events are marked in their client's turn, as on a real card. False = nobody
 * has a GPU kernel to run.
 */
static bool execution_pick(struct sim_card *card, uint32_t device, int64_t at, bool *others)
{
    struct sim_device *self = &card->devices[device];

    for (;;) {
        uint32_t next = SIM_CLIENTS_MAX, count = 0;
        bool current_works = false;

        for (uint32_t i = 1; i <= SIM_CLIENTS_MAX; i++) {
            uint32_t candidate = (self->current + i) % SIM_CLIENTS_MAX;
            struct sim_client *client = &card->clients[candidate];

            if (!client->pid || !client->uses[device].launches
                || !execution_has_work(client, device))
                continue;
            count++;
            if (candidate == self->current)
                current_works = true;
            else if (next == SIM_CLIENTS_MAX)
                next = candidate;
        }
        *others = count > 1;
        if (!count)
            return false;
        if (next != SIM_CLIENTS_MAX && (!current_works || at >= self->turn_end_ns)) {
            self->current = next;
            self->turn_end_ns = at + card->slice_ns;
        } else if (at >= self->turn_end_ns) {
            self->turn_end_ns = at + card->slice_ns;
        }
        if (execution_settle(&card->clients[self->current], device, at))
            return true;
    }
}

static double execution_fraction(const struct sim_item *item, uint32_t processors)
{
    return item->blocks >= processors ? 1.0
                                      : (double)(item->blocks ? item->blocks : 1) / processors;
}

/* How fast each of the client's GPU kernels gets on. */
static double execution_speed(struct sim_use *use, uint32_t processors)
{
    double wanted = 0;

    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        struct sim_item *item = execution_head(&use->queues[i]);

        if (item && item->kind == SIM_KERNEL)
            wanted += execution_fraction(item, processors);
    }
    return wanted > 1 ? 1 / wanted : 1;
}

static int64_t execution_first_end(struct sim_use *use, double rate)
{
    int64_t first = INT64_MAX;

    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        struct sim_item *item = execution_head(&use->queues[i]);
        int64_t needs = item && item->kind == SIM_KERNEL
                            ? (int64_t)((double)item->left_ns / rate) + 1
                            : INT64_MAX;

        if (needs < first)
            first = needs;
    }
    return first;
}

static void execution_remember(struct sim_use *use, int64_t from, int64_t span)
{
    use->busy_ns += span;
    while (span > 0) {
        int64_t id = from / SIM_BUCKET_NS, part = (id + 1) * SIM_BUCKET_NS - from;
        uint32_t at = (uint32_t)(id % SIM_BUCKETS);

        if (part > span)
            part = span;
        if (use->bucket_id[at] != id) {
            use->bucket_id[at] = id;
            use->bucket_ns[at] = 0;
        }
        use->bucket_ns[at] += part;
        from += part;
        span -= part;
    }
}

static void execution_run(struct sim_use *use, double rate, int64_t span)
{
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        struct sim_item *item = execution_head(&use->queues[i]);

        if (item && item->kind == SIM_KERNEL) {
            item->left_ns -= (int64_t)((double)span * rate);
            if (item->left_ns <= 1)
                item->left_ns = 0;
        }
    }
}

int64_t sim_advance(struct sim_card *card, uint32_t device, int64_t now)
{
    struct sim_device *self = &card->devices[device];
    bool others;

    while (execution_pick(card, device, self->now_ns, &others)) {
        struct sim_use *use = &card->clients[self->current].uses[device];
        double rate = execution_speed(use, self->processors);
        int64_t span = execution_first_end(use, rate), left = now - self->now_ns;

        if (others && span > self->turn_end_ns - self->now_ns)
            span = self->turn_end_ns - self->now_ns;
        if (left <= 0)
            return self->now_ns + span;
        if (span > left)
            span = left;
        execution_run(use, rate, span);
        execution_remember(use, self->now_ns, span);
        self->now_ns += span;
    }
    self->now_ns = now;
    return INT64_MAX;
}

uint32_t sim_utilization(const struct sim_card *card, uint32_t device, int client, int64_t now)
{
    int64_t last = now / SIM_BUCKET_NS - 1, first = last - 1000000000 / SIM_BUCKET_NS + 1, sum = 0;

    for (int i = 0; i < SIM_CLIENTS_MAX; i++) {
        const struct sim_use *use = &card->clients[i].uses[device];

        if ((client >= 0 && client != i) || !card->clients[i].pid)
            continue;
        for (uint32_t b = 0; b < SIM_BUCKETS; b++)
            if (use->bucket_id[b] >= first && use->bucket_id[b] <= last)
                sum += use->bucket_ns[b];
    }
    return (uint32_t)((sum + 5000000) / 10000000);
}

static void execution_sleep_until(int64_t when, int64_t now)
{
    int64_t span = when - now;
    struct timespec pause;

    span = span > WAIT_MAX_NS ? WAIT_MAX_NS : span < 1000 ? 1000 : span;
    pause = (struct timespec){ .tv_nsec = (long)span };
    (void)nanosleep(&pause, NULL);
}

uint64_t sim_push(uint32_t device, uint32_t queue, const struct sim_item *item)
{
    struct sim_card *card = sim_card();
    struct sim_queue *own = &sim_self()->uses[device].queues[queue % SIM_STREAMS];
    uint64_t number = 0;

    while (!number) {
        int64_t now = sim_now_ns(), next;

        sim_lock(card);
        next = sim_advance(card, device, now);
        if (own->pushed - own->done < SIM_RING) {
            own->items[own->pushed % SIM_RING] = *item;
            number = ++own->pushed;
            sim_self()->uses[device].launches++;
        }
        sim_unlock(card);
        if (!number)
            execution_sleep_until(next, now);
    }
    return number;
}

/* Bring the card forward and see; true ends the wait. */
static bool execution_look(uint32_t device, bool (*is_done)(const void *what), const void *what,
                           int64_t *next, int64_t *now)
{
    struct sim_card *card = sim_card();
    bool done;

    *now = sim_now_ns();
    sim_lock(card);
    *next = sim_advance(card, device, *now);
    done = is_done(what);
    sim_unlock(card);
    return done;
}

struct queue_mark {
    const struct sim_queue *queue;
    uint64_t number;
};

struct event_mark {
    const struct sim_event *event;
    uint64_t turn;
};

static bool execution_is_queue_done(const void *what)
{
    const struct queue_mark *mark = what;

    return mark->queue->done >= mark->number;
}

static bool execution_is_event_done(const void *what)
{
    const struct event_mark *mark = what;

    return mark->event->done >= mark->turn;
}

void sim_wait_queue(uint32_t device, uint32_t queue, uint64_t number)
{
    const struct queue_mark mark = { &sim_self()->uses[device].queues[queue % SIM_STREAMS],
                                     number };
    int64_t next, now;

    while (!execution_look(device, execution_is_queue_done, &mark, &next, &now))
        execution_sleep_until(next, now);
}

void sim_wait_event(uint32_t device, uint32_t event, uint64_t turn)
{
    const struct event_mark mark = { &sim_self()->events[event % SIM_EVENTS], turn };
    int64_t next, now;

    while (!execution_look(device, execution_is_event_done, &mark, &next, &now))
        execution_sleep_until(next, now);
}

bool sim_is_event_done(uint32_t device, uint32_t event, uint64_t turn)
{
    const struct event_mark mark = { &sim_self()->events[event % SIM_EVENTS], turn };
    int64_t next, now;

    return execution_look(device, execution_is_event_done, &mark, &next, &now);
}

bool sim_is_queue_done(uint32_t device, uint32_t queue)
{
    const struct sim_queue *own = &sim_self()->uses[device].queues[queue % SIM_STREAMS];
    const struct queue_mark mark = { own, own->pushed };
    int64_t next, now;

    return execution_look(device, execution_is_queue_done, &mark, &next, &now);
}
