/* SPDX-License-Identifier: Apache-2.0 */
/* ports.h - the allocator of published ports; a port rests before it is used again
 *
 * Clients may hold a connection to, or keep a link to, a port whose kernel has
 * ended; the rest keeps them off those of other programs. The port that has been
 * free longest comes first.
 */
#ifndef AQ_AGENT_NET_PORTS_H
#define AQ_AGENT_NET_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ports {
    uint16_t min, max;
    int64_t rest_usec;
    struct port_state *states; /* of min..max */
    uint32_t *queue;           /* free ones, the longest free first */
    size_t first, count;
};

int ports_init(struct ports *ports, uint16_t min, uint16_t max, int64_t rest_usec,
               struct aq_error *err);
void ports_done(struct ports *ports);

/* One that 'is_free' (NULL = all) agrees to: nobody else on the node may use
 * it. -ENOSPC if none has rested long enough.
 */
int ports_take(struct ports *ports, bool (*is_free)(uint16_t port), uint16_t *ret,
               struct aq_error *err);
/* This one, whatever its rest; false if it is in use or out of range. */
bool ports_take_number(struct ports *ports, uint16_t port);
void ports_give(struct ports *ports, uint16_t port);

#endif
