/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint_record.h - the file 'record' of an endpoint
 *
 *   session UUID
 *   number N        of its address in the subnet, and of its interface
 *   hostname NAME
 *   port INSIDE OUTSIDE    for each published port
 */
#ifndef AQ_AGENT_NET_ENDPOINT_RECORD_H
#define AQ_AGENT_NET_ENDPOINT_RECORD_H

#include <stdbool.h>

#include "agent/net/net.h"
#include "base/strbuf.h"

struct endpoint_record {
    struct uuid session_id;
    uint32_t number;
    char hostname[NET_HOSTNAME_MAX + 1];
    struct net_port ports[NET_PORTS_MAX];
    size_t port_count;
    bool has_peers; /* in the session, ever; not in the file */
};

void endpoint_record_add(struct strbuf *out, const struct endpoint_record *record);

/* -EINVAL unless all of it is there and nothing else. */
int endpoint_record_parse(const char *text, struct endpoint_record *ret, struct aq_error *err);

#endif
