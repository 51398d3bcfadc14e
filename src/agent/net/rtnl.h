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

struct netlink_request;

/* Send a change; 'what' begins the error's text. */
int rtnl_change(int nl, const struct netlink_request *request, const char *what,
                struct aq_error *err);

/* A pair of which the peer lies in namespace 'peer_ns'; both are down. */
int rtnl_add_veth(int nl, const char *name, const char *peer, int peer_ns, uint32_t mtu,
                  struct aq_error *err);

/* -EOPNOTSUPP if the Linux kernel has no WireGuard. It is down. */
int rtnl_add_wireguard(int nl, const char *name, struct aq_error *err);

/* Without learning: it reaches what rtnl_put_neighbour() names. IPv4; 'local' in host byte order. */
struct rtnl_vxlan {
    const char *name;
    const uint8_t *mac; /* 6 bytes */
    uint32_t vni, local;
    uint16_t port;
};
int rtnl_add_vxlan(int nl, const struct rtnl_vxlan *vxlan, struct aq_error *err);

/* To namespace 'ns', with another name. */
int rtnl_move_link(int nl, uint32_t index, int ns, const char *name, struct aq_error *err);
int rtnl_set_mtu(int nl, uint32_t index, uint32_t mtu, struct aq_error *err);

struct rtnl_link {
    uint32_t index, mtu;
    char name[IF_NAMESIZE];
    char kind[16]; /* "veth", "tun"; "" = hardware */
    bool is_up;
};

/* -ENODEV if there is none. */
int rtnl_delete_link(int nl, const char *name, struct aq_error *err);
int rtnl_get_link(int nl, const char *name, struct rtnl_link *ret, struct aq_error *err);
int rtnl_get_index(int nl, const char *name, uint32_t *ret, struct aq_error *err);
int rtnl_set_up(int nl, uint32_t index, struct aq_error *err);

/* 'local' with 'peer' at the other end: also makes the route to it. Addresses
 * in host byte order.
 */
int rtnl_add_address(int nl, uint32_t index, uint32_t local, uint32_t peer, struct aq_error *err);
int rtnl_add_default_route(int nl, uint32_t index, uint32_t gateway, struct aq_error *err);

/* ---- rtnl_route.c ---- */

/* To 'first'/'bits', directly or by 'gateway' (0 = directly); replaces one that is there. 'mtu' of
 * packets that go there, 0 = the interface's.
 */
struct rtnl_route {
    uint32_t first, gateway, mtu;
    unsigned bits;
};
int rtnl_put_route(int nl, uint32_t index, const struct rtnl_route *route, struct aq_error *err);
int rtnl_delete_route(int nl, uint32_t index, const struct rtnl_route *route, struct aq_error *err);

/* Call 'fn' for each static IPv4 route to interface 'index'; not for those of its addresses. */
int rtnl_each_route(int nl, uint32_t index, void (*fn)(void *data, const struct rtnl_route *route),
                    void *data, struct aq_error *err);

/* Either an address and the MAC behind it, or ('address' 0) the node that frames to a MAC go to. */
struct rtnl_neighbour {
    uint32_t address, remote;
    uint8_t mac[6];
};
int rtnl_put_neighbour(int nl, uint32_t index, const struct rtnl_neighbour *neighbour,
                       struct aq_error *err);
int rtnl_delete_neighbour(int nl, uint32_t index, const struct rtnl_neighbour *neighbour,
                          struct aq_error *err);

/* Call 'fn' for each permanent one of either kind. */
int rtnl_each_neighbour(int nl, uint32_t index,
                        void (*fn)(void *data, const struct rtnl_neighbour *neighbour), void *data,
                        struct aq_error *err);

/* Call 'fn' for each interface. */
int rtnl_each_link(int nl, void (*fn)(void *data, const struct rtnl_link *link), void *data,
                   struct aq_error *err);

/* Indexes of interfaces that IPv4 routes lead to, each once; at most 'max'. */
int rtnl_get_uplinks(int nl, uint32_t *ret, size_t max, size_t *ret_count, struct aq_error *err);

#endif
