/* SPDX-License-Identifier: Apache-2.0 */
/* service_port.h - ports of a container that others may connect to
 *
 * The image names its services in a label of Backend.AI, in the form
 * "NAME:PROTOCOL:PORT" or "NAME:PROTOCOL:[PORT,PORT]", several with commas
 * between them; a session may open further ports by their numbers. Pure.
 */
#ifndef AQ_MODEL_SERVICE_PORT_H
#define AQ_MODEL_SERVICE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/lists.h"
#include "base/jsonw.h"

#define SERVICE_LABEL "ai.backend.service-ports"
#define SERVICE_ENDPOINT_LABEL "ai.backend.endpoint-ports"
#define SERVICE_NAME_MAX 63
#define SERVICE_TERMINAL "ttyd" /* the web terminal, ours in every container */
#define SERVICE_TERMINAL_PORT 7681
#define SERVICE_PORTS_MAX 32 /* of one kernel, of all its services */

struct service {
    char name[SERVICE_NAME_MAX + 1];
    const char *protocol; /* static: "tcp", "http", "preopen", "vnc" or "rdp" */
    bool is_inference;
    size_t first, count; /* its ports in services.ports */
};

struct services {
    struct service items[SERVICE_PORTS_MAX];
    size_t count;
    uint16_t ports[SERVICE_PORTS_MAX]; /* as the container counts */
    size_t port_count;
};

/* Add what an image's label says. Ports are 1025 to 65534, none twice, and
 * none of those that Backend.AI's programs use in every container. Services of
 * the protocol "pty" are left out. -EINVAL with field SERVICE_LABEL, -E2BIG.
 */
int services_add_label(struct services *services, const char *label,
                       struct aq_error *err) AQ_UNTRUSTED;

/* Services whose names an image's SERVICE_ENDPOINT_LABEL lists, "NAME,NAME", serve a model. */
void services_mark_endpoints(struct services *services, const char *label);

/* Add the ports that a session opens, from 1024 on, each a service called by its
 * number. -EINVAL with field "preopen_ports", -E2BIG.
 */
int services_add_preopen(struct services *services, const struct int_list *ports,
                         struct aq_error *err);

/* Add one at a reserved port, which the platform itself serves; false if there
 * is no room, or the image has one of this name. 'protocol' is static.
 */
bool services_add_own(struct services *services, const char *name, const char *protocol,
                      uint16_t port);

/* [{"name","protocol","container_ports","host_ports","is_inference"}]; 'outside'
 * is the node's port for each of 'ports', 0 = none; NULL = none of them is published.
 */
void services_write(const struct services *services, const uint16_t *outside, struct jsonw *w);

#endif
