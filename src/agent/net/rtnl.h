/* SPDX-License-Identifier: Apache-2.0 */
/* rtnl.h - the rtnetlink(7) requests that networks of kernels need
 *
 * Blocking, for worker threads; a socket belongs to the network namespace in
 * which it was opened, whichever the thread is in later.
 */
#ifndef AQ_AGENT_NET_RTNL_H
#define AQ_AGENT_NET_RTNL_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A descriptor, which the caller closes. */
int rtnl_open(int *ret, struct aq_error *err);

/* A pair of which the peer lies in namespace 'peer_ns'; both are down. */
int rtnl_add_veth(int nl, const char *name, const char *peer, int peer_ns, uint32_t mtu,
                  struct aq_error *err);

/* -ENODEV if there is none. */
int rtnl_delete_link(int nl, const char *name, struct aq_error *err);
int rtnl_get_index(int nl, const char *name, uint32_t *ret, struct aq_error *err);
int rtnl_set_up(int nl, uint32_t index, struct aq_error *err);

/* 'local' with 'peer' at the other end: also makes the route to it. Addresses
 * in host byte order.
 */
int rtnl_add_address(int nl, uint32_t index, uint32_t local, uint32_t peer, struct aq_error *err);
int rtnl_add_default_route(int nl, uint32_t index, uint32_t gateway, struct aq_error *err);

struct rtnl_link {
    uint32_t index, mtu;
    char name[IF_NAMESIZE];
};

/* Call 'fn' for each interface. */
int rtnl_each_link(int nl, void (*fn)(void *data, const struct rtnl_link *link), void *data,
                   struct aq_error *err);

/* Indexes of interfaces that IPv4 routes lead to, each once; at most 'max'. */
int rtnl_get_uplinks(int nl, uint32_t *ret, size_t max, size_t *ret_count, struct aq_error *err);

#endif
