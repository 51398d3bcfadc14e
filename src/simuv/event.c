/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - the queue of all that is to happen, and simulated time */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "simuv/simuv_internal.h"

#define BEGIN_USEC (3600 * SIMUV_USEC_PER_SEC)
#define CHILDREN 4 /* of a node of the heap */
#define HASH_PRIME UINT64_C(0x9fb21c651e98df25)

struct simuv_entry {
    int64_t at;
    uint64_t order;
    struct simuv_event *event;
};

/* A call of simuv_at(). */
struct simuv_appointment {
    struct simuv_event event;
    void (*fn)(void *data);
    void *data;
};

bool simuv_has_begun;
int64_t simuv_now;

static struct simuv_entry *event_heap;
static size_t event_count, event_cap;
static uint64_t event_orders, event_hash;
static bool event_has_stepped, event_is_stopping;
static FILE *event_trace;

/* Found due while the driver waited, and not urgent; the innermost wait's are last. */
static struct simuv_event **event_deferred;
static size_t event_deferred_count, event_deferred_cap;

/* ---- the heap ---- */

static bool event_is_before(const struct simuv_entry *a, const struct simuv_entry *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void event_put(size_t i, struct simuv_entry entry)
{
    event_heap[i] = entry;
    entry.event->place = (uint32_t)i + 1;
}

static void event_sift_up(size_t i, struct simuv_entry entry)
{
    for (size_t parent; i > 0; i = parent) {
        parent = (i - 1) / CHILDREN;
        if (!event_is_before(&entry, &event_heap[parent]))
            break;
        event_put(i, event_heap[parent]);
    }
    event_put(i, entry);
}

static void event_sift_down(size_t i, struct simuv_entry entry)
{
    for (;;) {
        size_t first = i * CHILDREN + 1, least = first;

        if (first >= event_count)
            break;
        for (size_t child = first + 1; child < first + CHILDREN && child < event_count; child++)
            if (event_is_before(&event_heap[child], &event_heap[least]))
                least = child;
        if (!event_is_before(&event_heap[least], &entry))
            break;
        event_put(i, event_heap[least]);
        i = least;
    }
    event_put(i, entry);
}

void simuv_event_cancel(struct simuv_event *event)
{
    size_t i = event->place - 1;
    struct simuv_entry last;

    if (!event->place)
        return;
    event->place = 0;
    if (event->is_deferred) {
        event->is_deferred = false;
        event_deferred[i] = NULL;
        return;
    }
    last = event_heap[--event_count];
    if (i == event_count)
        return;
    if (i > 0 && event_is_before(&last, &event_heap[(i - 1) / CHILDREN]))
        event_sift_up(i, last);
    else
        event_sift_down(i, last);
}

static void event_push(struct simuv_event *event)
{
    vec_grow(&event_heap, &event_cap, event_count + 1, sizeof(*event_heap));
    event_count++;
    event_sift_up(event_count - 1, (struct simuv_entry){ event->at, event->order, event });
}

void simuv_event_schedule(struct simuv_event *event, int64_t at)
{
    simuv_event_cancel(event);
    event->at = at > simuv_now ? at : simuv_now;
    event->order = ++event_orders;
    event_push(event);
}

/* ---- running ---- */

/* Take the first event, which is not later than 'limit'; NULL = there is none. */
static struct simuv_event *event_take(int64_t limit)
{
    struct simuv_event *event;

    if (!event_count || event_heap[0].at > limit)
        return NULL;
    event = event_heap[0].event;
    simuv_event_cancel(event);
    if (event->at > simuv_now)
        simuv_now = event->at;
    return event;
}

static void event_defer(struct simuv_event *event)
{
    vec_grow(&event_deferred, &event_deferred_cap, event_deferred_count + 1,
             sizeof(struct simuv_event *));
    event_deferred[event_deferred_count++] = event;
    event->place = (uint32_t)event_deferred_count;
    event->is_deferred = true;
}

void simuv_event_wait(const bool *is_done, const char *what)
{
    size_t before = event_deferred_count;

    while (!*is_done) {
        struct simuv_event *event = event_take(INT64_MAX);

        if (!event)
            simuv_cannot(what);
        if (event->is_urgent)
            event->run(event);
        else
            event_defer(event);
    }
    while (event_deferred_count > before) {
        struct simuv_event *event = event_deferred[--event_deferred_count];

        if (!event)
            continue;
        event->is_deferred = false;
        event_push(event); /* it keeps its time and order */
    }
}

void simuv_event_stepped(void)
{
    event_has_stepped = true;
}

void simuv_stop(void)
{
    event_is_stopping = true;
}

void simuv_run_until(int64_t usec, void (*step)(void *data), void *data)
{
    struct simuv_event *event;

    event_is_stopping = false;
    while (!event_is_stopping && (event = event_take(usec))) {
        event->run(event);
        if (event_has_stepped && step)
            step(data);
        event_has_stepped = false;
    }
    if (!event_is_stopping && simuv_now < usec)
        simuv_now = usec;
}

static void event_on_appointment(struct simuv_event *event)
{
    struct simuv_appointment *appointment = AQ_CONTAINER_OF(event, struct simuv_appointment, event);
    void (*fn)(void *data) = appointment->fn;
    void *data = appointment->data;

    simuv_note("at", 0, 0);
    free(appointment);
    fn(data);
}

void simuv_at(int64_t usec, void (*fn)(void *data), void *data)
{
    struct simuv_appointment *appointment = aq_alloc(sizeof(*appointment));

    appointment->event.run = event_on_appointment;
    appointment->fn = fn;
    appointment->data = data;
    simuv_event_schedule(&appointment->event, usec);
}

/* ---- begin, end, and what happened ---- */

void simuv_begin(uint64_t seed)
{
    if (simuv_has_begun)
        simuv_cannot("a second simuv_begin() in one process");
    simuv_now = BEGIN_USEC;
    event_hash = seed;
    simuv_random_seed(seed);
    simuv_hosts_begin();
    simuv_network_begin();
    simuv_tasks_begin();
    simuv_has_begun = true;
    simuv_entropy_install();
}

/* What was queued stays in memory, as all that crashed hosts had. */
void simuv_end(void)
{
    event_count = 0;
}

int64_t simuv_now_usec(void)
{
    return simuv_now;
}

static void event_mix(uint64_t value)
{
    event_hash = (event_hash ^ value) * HASH_PRIME;
    event_hash ^= event_hash >> 32;
}

void simuv_note(const char *what, uint64_t id, uint64_t detail)
{
    event_mix((uint64_t)simuv_now);
    event_mix(id << 8 ^ (unsigned char)*what);
    event_mix(detail);
    if (event_trace)
        (void)fprintf(event_trace, "%" PRId64 " %s %" PRIu64 " %" PRIu64 " %016" PRIx64 "\n",
                      simuv_now, what, id, detail, event_hash);
}

void simuv_note_bytes(const void *bytes, size_t len)
{
    const char *at = bytes;
    uint64_t word;

    for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        event_mix(word);
    }
    word = len;
    memcpy(&word, at, len);
    event_mix(word);
}

uint64_t simuv_hash(void)
{
    return event_hash;
}

void simuv_trace(FILE *to)
{
    event_trace = to;
}
