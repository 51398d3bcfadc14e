/* SPDX-License-Identifier: Apache-2.0 */
/* rtnl.c - the rtnetlink(7) requests that networks of kernels need */
#include "agent/net/rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/veth.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/net/netlink.h"

int rtnl_open(int *ret, struct aq_error *err)
{
    const struct sockaddr_nl any = { .nl_family = AF_NETLINK };
    AQ_CLEANUP(aq_closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0)
        return aq_fail_errno(err, "open a route socket");
    *ret = AQ_TAKE_FD(fd);
    return 0;
}

int rtnl_change(int nl, const struct netlink_request *request, const char *what,
                struct aq_error *err)
{
    int r = netlink_talk(nl, request, NULL, NULL);

    return r < 0 ? aq_fail(err, -r, "%s: %s", what, strerror(-r)) : 0;
}

int rtnl_add_veth(int nl, const char *name, const char *peer, int peer_ns, uint32_t mtu,
                  struct aq_error *err)
{
    struct netlink_request request;
    size_t info, data, other;

    netlink_begin(&request, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    (void)netlink_add_header(&request, sizeof(struct ifinfomsg));
    netlink_add_text(&request, IFLA_IFNAME, name);
    netlink_add_u32(&request, IFLA_MTU, mtu);
    info = netlink_begin_nest(&request, IFLA_LINKINFO);
    netlink_add(&request, IFLA_INFO_KIND, "veth", 4);
    data = netlink_begin_nest(&request, IFLA_INFO_DATA);
    other = netlink_begin_nest(&request, VETH_INFO_PEER);
    (void)netlink_add_header(&request, sizeof(struct ifinfomsg));
    netlink_add_text(&request, IFLA_IFNAME, peer);
    netlink_add_u32(&request, IFLA_MTU, mtu);
    netlink_add_u32(&request, IFLA_NET_NS_FD, (uint32_t)peer_ns);
    netlink_end_nest(&request, other);
    netlink_end_nest(&request, data);
    netlink_end_nest(&request, info);
    return rtnl_change(nl, &request, "make a veth pair", err);
}

int rtnl_add_wireguard(int nl, const char *name, struct aq_error *err)
{
    struct netlink_request request;
    size_t info;

    netlink_begin(&request, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    (void)netlink_add_header(&request, sizeof(struct ifinfomsg));
    netlink_add_text(&request, IFLA_IFNAME, name);
    info = netlink_begin_nest(&request, IFLA_LINKINFO);
    netlink_add(&request, IFLA_INFO_KIND, "wireguard", 9);
    netlink_end_nest(&request, info);
    return rtnl_change(nl, &request, "create a WireGuard interface", err);
}

/* All who are there are permanent neighbours. Without ARP, packets to other addresses leave no
 * entries that wait for an answer: the table is one for all namespaces, and full with 1024.
 */
int rtnl_add_vxlan(int nl, const struct rtnl_vxlan *vxlan, struct aq_error *err)
{
    const uint16_t port = htons(vxlan->port);
    const uint8_t off = 0;
    struct netlink_request request;
    struct ifinfomsg *link;
    size_t info, data;

    netlink_begin(&request, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    link = netlink_add_header(&request, sizeof(*link));
    link->ifi_change = link->ifi_flags = IFF_NOARP;
    netlink_add_text(&request, IFLA_IFNAME, vxlan->name);
    netlink_add(&request, IFLA_ADDRESS, vxlan->mac, 6);
    info = netlink_begin_nest(&request, IFLA_LINKINFO);
    netlink_add(&request, IFLA_INFO_KIND, "vxlan", 5);
    data = netlink_begin_nest(&request, IFLA_INFO_DATA);
    netlink_add_u32(&request, IFLA_VXLAN_ID, vxlan->vni);
    netlink_add_u32(&request, IFLA_VXLAN_LOCAL, htonl(vxlan->local));
    netlink_add(&request, IFLA_VXLAN_PORT, &port, sizeof(port));
    netlink_add(&request, IFLA_VXLAN_LEARNING, &off, sizeof(off));
    netlink_end_nest(&request, data);
    netlink_end_nest(&request, info);
    return rtnl_change(nl, &request, "create a VXLAN interface", err);
}

static void rtnl_begin_link_change(struct netlink_request *request, uint32_t index)
{
    struct ifinfomsg *link;

    netlink_begin(request, RTM_NEWLINK, NLM_F_ACK);
    link = netlink_add_header(request, sizeof(*link));
    link->ifi_index = (int)index;
}

int rtnl_move_link(int nl, uint32_t index, int ns, const char *name, struct aq_error *err)
{
    struct netlink_request request;

    rtnl_begin_link_change(&request, index);
    netlink_add_u32(&request, IFLA_NET_NS_FD, (uint32_t)ns);
    netlink_add_text(&request, IFLA_IFNAME, name);
    return rtnl_change(nl, &request, "move an interface to another namespace", err);
}

int rtnl_set_mtu(int nl, uint32_t index, uint32_t mtu, struct aq_error *err)
{
    struct netlink_request request;

    rtnl_begin_link_change(&request, index);
    netlink_add_u32(&request, IFLA_MTU, mtu);
    return rtnl_change(nl, &request, "set the MTU of an interface", err);
}

int rtnl_delete_link(int nl, const char *name, struct aq_error *err)
{
    struct netlink_request request;

    netlink_begin(&request, RTM_DELLINK, NLM_F_ACK);
    (void)netlink_add_header(&request, sizeof(struct ifinfomsg));
    netlink_add_text(&request, IFLA_IFNAME, name);
    return rtnl_change(nl, &request, "remove an interface", err);
}

int rtnl_set_up(int nl, uint32_t index, struct aq_error *err)
{
    struct netlink_request request;
    struct ifinfomsg *link;

    netlink_begin(&request, RTM_NEWLINK, NLM_F_ACK);
    link = netlink_add_header(&request, sizeof(*link));
    link->ifi_index = (int)index;
    link->ifi_change = IFF_UP;
    link->ifi_flags = IFF_UP;
    return rtnl_change(nl, &request, "set an interface up", err);
}

int rtnl_add_address(int nl, uint32_t index, uint32_t local, uint32_t peer, struct aq_error *err)
{
    struct netlink_request request;
    struct ifaddrmsg *address;

    netlink_begin(&request, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    address = netlink_add_header(&request, sizeof(*address));
    address->ifa_family = AF_INET;
    address->ifa_prefixlen = 32;
    address->ifa_index = index;
    netlink_add_u32(&request, IFA_LOCAL, htonl(local));
    netlink_add_u32(&request, IFA_ADDRESS, htonl(peer));
    return rtnl_change(nl, &request, "give an interface its address", err);
}

int rtnl_add_default_route(int nl, uint32_t index, uint32_t gateway, struct aq_error *err)
{
    struct netlink_request request;
    struct rtmsg *route;

    netlink_begin(&request, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    route = netlink_add_header(&request, sizeof(*route));
    route->rtm_family = AF_INET;
    route->rtm_table = RT_TABLE_MAIN;
    route->rtm_protocol = RTPROT_STATIC;
    route->rtm_scope = RT_SCOPE_UNIVERSE;
    route->rtm_type = RTN_UNICAST;
    netlink_add_u32(&request, RTA_OIF, index);
    netlink_add_u32(&request, RTA_GATEWAY, htonl(gateway));
    return rtnl_change(nl, &request, "make a default route", err);
}

/* ---- looking ---- */

struct link_walk {
    void (*fn)(void *data, const struct rtnl_link *link);
    void *data;
};

static void rtnl_take_kind(const struct rtattr *info, struct rtnl_link *link)
{
    const struct rtattr *attr = RTA_DATA(info);
    size_t left = RTA_PAYLOAD(info);

    for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
        if (attr->rta_type == IFLA_INFO_KIND)
            (void)strncpy(link->kind, netlink_get_text(attr), sizeof(link->kind) - 1);
}

static void rtnl_on_link(const struct nlmsghdr *answer, void *data)
{
    const struct ifinfomsg *info = NLMSG_DATA(answer);
    struct rtnl_link link = { .index = (uint32_t)info->ifi_index,
                              .is_up = (info->ifi_flags & IFF_UP) != 0 };
    struct link_walk *walk = data;
    const struct rtattr *attr = IFLA_RTA(info);
    size_t left = IFLA_PAYLOAD(answer);

    for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
        if (attr->rta_type == IFLA_IFNAME)
            (void)strncpy(link.name, netlink_get_text(attr), sizeof(link.name) - 1);
        if (attr->rta_type == IFLA_MTU)
            link.mtu = netlink_get_u32(attr);
        if (attr->rta_type == IFLA_LINKINFO)
            rtnl_take_kind(attr, &link);
    }
    walk->fn(walk->data, &link);
}

int rtnl_each_link(int nl, void (*fn)(void *data, const struct rtnl_link *link), void *data,
                   struct aq_error *err)
{
    struct netlink_request request;
    struct link_walk walk = { .fn = fn, .data = data };
    int r;

    netlink_begin(&request, RTM_GETLINK, NLM_F_DUMP);
    (void)netlink_add_header(&request, sizeof(struct ifinfomsg));
    r = netlink_talk(nl, &request, rtnl_on_link, &walk);
    return r < 0 ? aq_fail(err, -r, "list the interfaces: %s", strerror(-r)) : 0;
}

static void rtnl_take_link(void *data, const struct rtnl_link *link)
{
    *(struct rtnl_link *)data = *link;
}

int rtnl_get_link(int nl, const char *name, struct rtnl_link *ret, struct aq_error *err)
{
    struct netlink_request request;
    struct link_walk walk = { .fn = rtnl_take_link, .data = ret };
    int r;

    netlink_begin(&request, RTM_GETLINK, NLM_F_ACK);
    (void)netlink_add_header(&request, sizeof(struct ifinfomsg));
    netlink_add_text(&request, IFLA_IFNAME, name);
    r = netlink_talk(nl, &request, rtnl_on_link, &walk);
    return r < 0 ? aq_fail(err, -r, "interface '%s': %s", name, strerror(-r)) : 0;
}

int rtnl_get_index(int nl, const char *name, uint32_t *ret, struct aq_error *err)
{
    struct rtnl_link link;
    int r = rtnl_get_link(nl, name, &link, err);

    if (r == 0)
        *ret = link.index;
    return r;
}

struct rtnl_uplinks {
    uint32_t *indexes;
    size_t count, max;
};

static void rtnl_add_uplink(struct rtnl_uplinks *uplinks, uint32_t index)
{
    for (size_t i = 0; i < uplinks->count; i++)
        if (uplinks->indexes[i] == index)
            return;
    if (uplinks->count < uplinks->max)
        uplinks->indexes[uplinks->count++] = index;
}

/* The next hops of a route over several interfaces. */
static void rtnl_add_next_hops(struct rtnl_uplinks *uplinks, const struct rtattr *attr)
{
    const struct rtnexthop *hop = RTA_DATA(attr);
    size_t left = RTA_PAYLOAD(attr);

    while (left >= sizeof(*hop) && hop->rtnh_len >= sizeof(*hop) && hop->rtnh_len <= left) {
        size_t step = RTNH_ALIGN(hop->rtnh_len);

        rtnl_add_uplink(uplinks, (uint32_t)hop->rtnh_ifindex);
        if (step >= left)
            return;
        left -= step;
        hop = (const struct rtnexthop *)(const void *)((const char *)hop + step);
    }
}

static void rtnl_on_route(const struct nlmsghdr *answer, void *data)
{
    const struct rtmsg *route = NLMSG_DATA(answer);
    const struct rtattr *attr = RTM_RTA(route);
    size_t left = RTM_PAYLOAD(answer);

    if (route->rtm_family != AF_INET || route->rtm_type != RTN_UNICAST
        || (route->rtm_flags & RTM_F_CLONED))
        return;
    for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
        if (attr->rta_type == RTA_OIF)
            rtnl_add_uplink(data, netlink_get_u32(attr));
        if (attr->rta_type == RTA_MULTIPATH)
            rtnl_add_next_hops(data, attr);
    }
}

int rtnl_get_uplinks(int nl, uint32_t *ret, size_t max, size_t *ret_count, struct aq_error *err)
{
    struct netlink_request request;
    struct rtmsg *route;
    struct rtnl_uplinks uplinks = { .indexes = ret, .max = max };
    int r;

    netlink_begin(&request, RTM_GETROUTE, NLM_F_DUMP);
    route = netlink_add_header(&request, sizeof(*route));
    route->rtm_family = AF_INET;
    r = netlink_talk(nl, &request, rtnl_on_route, &uplinks);
    if (r < 0)
        return aq_fail(err, -r, "list the routes: %s", strerror(-r));
    *ret_count = uplinks.count;
    return 0;
}
