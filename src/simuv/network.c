/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - segments on their way from host to host: delays, stalls, resets and cuts
 *
 * Segments of one connection arrive in order. What meets a way that is cut, or a machine that is
 * off, is held up there, and comes when both are well again, as from TCP's retransmissions. What
 * is sent once only, a reset, is lost.
 */
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "simuv/simuv_internal.h"

#define LOOPBACK_MAX_USEC 20
#define STALL_MIN_USEC 200000
#define STALL_MAX_USEC 3000000
#define RETRY_MAX_USEC (120 * SIMUV_USEC_PER_SEC) /* between two retransmissions */

struct simuv_way {
    simuv_host from, to;
    struct simuv_path path;
    int64_t cut_since; /* while it is cut */
    struct list held;  /* segments */
    struct list link;  /* in simuv_machine.paths of 'to' */
};

static struct map network_ways; /* by the two hosts */

void simuv_network_begin(void)
{
    network_ways = (struct map)MAP_INIT;
}

struct simuv_way *simuv_way_find(simuv_host from, simuv_host to)
{
    simuv_host key[2] = { from, to };
    struct simuv_way *way = map_get(&network_ways, key, sizeof(key));

    if (way)
        return way;
    way = aq_alloc(sizeof(*way));
    way->from = from;
    way->to = to;
    way->path = (struct simuv_path){ .latency_min_usec = 50, .latency_max_usec = 300 };
    list_init(&way->held);
    list_init(&way->link);
    list_add(&simuv_machine_of(to)->paths, &way->link);
    (void)map_set(&network_ways, key, sizeof(key), way);
    return way;
}

struct simuv_way *simuv_way_of_link(struct list *link)
{
    return LIST_ENTRY(link, struct simuv_way, link);
}

bool simuv_way_is_open(const struct simuv_way *way)
{
    return !simuv_way_blocked_since(way);
}

int64_t simuv_way_blocked_since(const struct simuv_way *way)
{
    int64_t down = simuv_machine_of(way->to)->down_since;

    if (way->path.is_cut && down)
        return AQ_MIN(way->cut_since, down);
    return way->path.is_cut ? way->cut_since : down;
}

/* ---- sending ---- */

static void network_on_arrival(struct simuv_event *event);

static int64_t network_delay(const struct simuv_way *way)
{
    int64_t min = way->path.latency_min_usec, max = way->path.latency_max_usec, delay;

    if (way->from == way->to)
        return 1 + (int64_t)simuv_random_of_below(SIMUV_NETWORK, LOOPBACK_MAX_USEC);
    delay = min;
    if (max > min)
        delay += (int64_t)simuv_random_of_below(SIMUV_NETWORK, (uint64_t)(max - min) + 1);
    if (simuv_chance_of(SIMUV_NETWORK, way->path.stall))
        delay += STALL_MIN_USEC
                 + (int64_t)simuv_random_of_below(SIMUV_NETWORK, STALL_MAX_USEC - STALL_MIN_USEC);
    return delay;
}

/* Not before what this end sent earlier. */
static void network_schedule(struct simuv_segment *segment, int64_t delay)
{
    struct simuv_socket *from = segment->from;
    int64_t at = AQ_MAX(simuv_now + delay, from->last_arrival);

    from->last_arrival = at;
    simuv_event_schedule(&segment->event, at);
}

void simuv_segment_send(struct simuv_socket *from, enum simuv_segment_kind kind, const char *bytes,
                        size_t len)
{
    struct simuv_segment *segment = malloc(sizeof(*segment) + len);

    if (!segment)
        memory_is_short();
    memset(segment, 0, sizeof(*segment));
    segment->event = (struct simuv_event){ .run = network_on_arrival, .is_urgent = true };
    segment->kind = kind;
    segment->from = from;
    segment->to = from->peer;
    segment->len = (uint32_t)len;
    segment->number = kind == SIMUV_RST ? 0 : ++from->sent;
    list_init(&segment->link);
    if (len) {
        memcpy(segment->bytes, bytes, len);
        simuv_note_bytes(bytes, len);
    }
    simuv_socket_ref(from);
    if (segment->to)
        simuv_socket_ref(segment->to);
    network_schedule(segment, network_delay(from->out));
}

void simuv_segment_free(struct simuv_segment *segment)
{
    struct simuv_socket *from = segment->from, *to = segment->to;

    list_remove(&segment->link);
    simuv_event_cancel(&segment->event);
    free(segment);
    simuv_socket_unref(from);
    if (to)
        simuv_socket_unref(to);
}

/* ---- arriving ---- */

static void network_hold(struct simuv_way *way, struct simuv_segment *segment)
{
    if (segment->kind == SIMUV_RST) {
        simuv_segment_free(segment);
        return;
    }
    list_add(&way->held, &segment->link);
    segment->from->held++;
    simuv_socket_watch(segment->from);
}

/* Something between the two has no memory of the connection any more. */
static void network_reset(struct simuv_segment *segment)
{
    simuv_note("reset", segment->from->id, 0);
    simuv_socket_fail(segment->from, ECONNRESET);
    if (segment->to)
        simuv_socket_fail(segment->to, ECONNRESET);
    simuv_segment_free(segment);
}

static void network_on_arrival(struct simuv_event *event)
{
    struct simuv_segment *segment = AQ_CONTAINER_OF(event, struct simuv_segment, event);
    struct simuv_way *way = segment->from->out;

    simuv_note("segment", segment->from->id, (uint64_t)segment->kind << 32 | segment->len);
    if (!simuv_way_is_open(way)) {
        network_hold(way, segment);
    } else if (segment->number > segment->from->arrived + 1) {
        network_schedule(segment, 0); /* one before it was held up, and comes */
    } else {
        segment->from->arrived = AQ_MAX(segment->from->arrived, segment->number);
        if (segment->kind != SIMUV_RST && simuv_chance_of(SIMUV_NETWORK, way->path.reset))
            network_reset(segment);
        else
            simuv_socket_receive(segment);
    }
}

/* It will not come: what follows need not wait for it. */
static void network_drop(struct simuv_segment *segment)
{
    segment->from->arrived = AQ_MAX(segment->from->arrived, segment->number);
    simuv_segment_free(segment);
}

/* The longer it was blocked, the longer TCP waits for its next attempt. */
void simuv_way_flush(struct simuv_way *way)
{
    struct list held, *link;

    if (!simuv_way_is_open(way))
        return;
    list_init(&held);
    list_move(&way->held, &held);
    while ((link = list_take(&held))) {
        struct simuv_segment *segment = LIST_ENTRY(link, struct simuv_segment, link);
        uint64_t waited = (uint64_t)AQ_MIN(simuv_now - segment->event.at, RETRY_MAX_USEC);
        int64_t retry = (int64_t)simuv_random_of_below(SIMUV_NETWORK, waited + 1);

        segment->from->held--;
        if (segment->from->is_lost)
            network_drop(segment); /* nobody is there to send it again */
        else
            network_schedule(segment, network_delay(way) + retry);
    }
}

/* ---- what the simulation sets ---- */

void simuv_set_path(simuv_host from, simuv_host to, const struct simuv_path *path)
{
    struct simuv_way *way = simuv_way_find(from, to);
    bool was_cut = way->path.is_cut;

    simuv_note("path", (uint64_t)from << 32 | to, path->is_cut);
    way->path = *path;
    if (path->is_cut && !was_cut) {
        way->cut_since = simuv_now;
        simuv_sockets_watch(simuv_machine_of(from), simuv_machine_of(to));
    } else if (!path->is_cut && was_cut) {
        simuv_way_flush(way);
    }
}
