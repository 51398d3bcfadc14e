/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c - the allocator of published ports; a port rests before it is used again */
#include "agent/net/ports.h"

#include <errno.h>

#include "base/clock.h"
#include "base/memory.h"

struct port_state {
    bool is_used;
    int64_t free_since_usec; /* monotonic */
};

static size_t ports_size_of(const struct ports *ports)
{
    return (size_t)(ports->max - ports->min) + 1;
}

static void ports_push(struct ports *ports, uint32_t index)
{
    ports->queue[(ports->first + ports->count++) % ports_size_of(ports)] = index;
}

static uint32_t *ports_at(const struct ports *ports, size_t place)
{
    return &ports->queue[(ports->first + place) % ports_size_of(ports)];
}

/* Take the one at 'place' out; those before it move up. */
static void ports_remove_at(struct ports *ports, size_t place)
{
    for (; place; place--)
        *ports_at(ports, place) = *ports_at(ports, place - 1);
    ports->first = (ports->first + 1) % ports_size_of(ports);
    ports->count--;
}

int ports_init(struct ports *ports, uint16_t min, uint16_t max, int64_t rest_usec,
               struct aq_error *err)
{
    if (min == 0 || min > max)
        return aq_fail_field(err, EINVAL, "ports", "ports %u to %u are no range", min, max);
    *ports = (struct ports){ .min = min, .max = max, .rest_usec = rest_usec };
    ports->states = aq_alloc_array(ports_size_of(ports), sizeof(*ports->states));
    ports->queue = aq_alloc_array(ports_size_of(ports), sizeof(*ports->queue));
    for (uint32_t i = 0; i < ports_size_of(ports); i++) {
        ports->states[i].free_since_usec = INT64_MIN / 2;
        ports_push(ports, i);
    }
    return 0;
}

void ports_done(struct ports *ports)
{
    free(AQ_TAKE(ports->states));
    free(AQ_TAKE(ports->queue));
}

int ports_take(struct ports *ports, bool (*is_free)(uint16_t port), uint16_t *ret,
               struct aq_error *err)
{
    int64_t now = clock_monotonic_usec();

    for (size_t place = 0; place < ports->count; place++) {
        uint32_t index = *ports_at(ports, place);
        uint16_t port = (uint16_t)(ports->min + index);

        if (now - ports->states[index].free_since_usec < ports->rest_usec)
            break; /* those behind it were freed later */
        if (is_free && !is_free(port))
            continue;
        ports_remove_at(ports, place);
        ports->states[index].is_used = true;
        *ret = port;
        return 0;
    }
    return aq_fail_kind(err, ENOSPC, "insufficient-resource",
                        "no port from %u to %u is free; give the agent a larger range of ports",
                        ports->min, ports->max);
}

bool ports_take_number(struct ports *ports, uint16_t port)
{
    if (port < ports->min || port > ports->max || ports->states[port - ports->min].is_used)
        return false;
    ports->states[port - ports->min].is_used = true;
    for (size_t place = 0; place < ports->count; place++)
        if (*ports_at(ports, place) == (uint32_t)(port - ports->min)) {
            ports_remove_at(ports, place);
            break;
        }
    return true;
}

void ports_give(struct ports *ports, uint16_t port)
{
    if (port < ports->min || port > ports->max || !ports->states[port - ports->min].is_used)
        return;
    ports->states[port - ports->min] = (struct port_state){
        .free_since_usec = clock_monotonic_usec()
    };
    ports_push(ports, (uint32_t)(port - ports->min));
}
