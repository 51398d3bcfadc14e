/* SPDX-License-Identifier: Apache-2.0 */
/* rtnl_route.c - routes and neighbours of one interface */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/net/netlink.h"
#include "agent/net/rtnl.h"

/* ---- routes ---- */

static void rtnl_begin_route(struct netlink_request *request, uint16_t type, uint16_t flags,
                             uint32_t index, const struct rtnl_route *route)
{
    struct rtmsg *message;

    netlink_begin(request, type, (uint16_t)(NLM_F_ACK | flags));
    message = netlink_add_header(request, sizeof(*message));
    message->rtm_family = AF_INET;
    message->rtm_dst_len = (unsigned char)route->bits;
    message->rtm_table = RT_TABLE_MAIN;
    message->rtm_protocol = RTPROT_STATIC;
    message->rtm_scope = route->gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
    message->rtm_type = RTN_UNICAST;
    netlink_add_u32(request, RTA_DST, htonl(route->first));
    netlink_add_u32(request, RTA_OIF, index);
    if (route->gateway)
        netlink_add_u32(request, RTA_GATEWAY, htonl(route->gateway));
}

int rtnl_put_route(int nl, uint32_t index, const struct rtnl_route *route, struct aq_error *err)
{
    struct netlink_request request;
    size_t metrics;

    rtnl_begin_route(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, index, route);
    if (route->mtu) {
        metrics = netlink_begin_nest(&request, RTA_METRICS);
        netlink_add_u32(&request, RTAX_MTU, route->mtu);
        netlink_end_nest(&request, metrics);
    }
    return rtnl_change(nl, &request, "add a route", err);
}

int rtnl_delete_route(int nl, uint32_t index, const struct rtnl_route *route, struct aq_error *err)
{
    struct netlink_request request;

    rtnl_begin_route(&request, RTM_DELROUTE, 0, index, route);
    return rtnl_change(nl, &request, "remove a route", err);
}

struct route_walk {
    uint32_t index;
    void (*fn)(void *data, const struct rtnl_route *route);
    void *data;
};

static uint32_t rtnl_find_mtu(const struct rtattr *metrics)
{
    const struct rtattr *attr = RTA_DATA(metrics);
    size_t left = RTA_PAYLOAD(metrics);

    for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
        if (attr->rta_type == RTAX_MTU)
            return netlink_get_u32(attr);
    return 0;
}

static void rtnl_on_route_of(const struct nlmsghdr *answer, void *data)
{
    const struct rtmsg *message = NLMSG_DATA(answer);
    const struct rtattr *attr = RTM_RTA(message);
    struct route_walk *walk = data;
    struct rtnl_route route = { .bits = message->rtm_dst_len };
    size_t left = RTM_PAYLOAD(answer);
    uint32_t index = 0;

    if (message->rtm_family != AF_INET || message->rtm_table != RT_TABLE_MAIN
        || message->rtm_protocol != RTPROT_STATIC)
        return;
    for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
        if (attr->rta_type == RTA_OIF)
            index = netlink_get_u32(attr);
        else if (attr->rta_type == RTA_DST)
            route.first = ntohl(netlink_get_u32(attr));
        else if (attr->rta_type == RTA_GATEWAY)
            route.gateway = ntohl(netlink_get_u32(attr));
        else if (attr->rta_type == RTA_METRICS)
            route.mtu = rtnl_find_mtu(attr);
    }
    if (index == walk->index)
        walk->fn(walk->data, &route);
}

int rtnl_each_route(int nl, uint32_t index, void (*fn)(void *data, const struct rtnl_route *route),
                    void *data, struct aq_error *err)
{
    struct route_walk walk = { .index = index, .fn = fn, .data = data };
    struct netlink_request request;
    struct rtmsg *route;
    int r;

    netlink_begin(&request, RTM_GETROUTE, NLM_F_DUMP);
    route = netlink_add_header(&request, sizeof(*route));
    route->rtm_family = AF_INET;
    r = netlink_talk(nl, &request, rtnl_on_route_of, &walk);
    return r < 0 ? aq_fail(err, -r, "list the routes: %s", strerror(-r)) : 0;
}

/* ---- neighbours ---- */

static void rtnl_begin_neighbour(struct netlink_request *request, uint16_t type, uint16_t flags,
                                 uint32_t index, const struct rtnl_neighbour *neighbour)
{
    struct ndmsg *message;

    netlink_begin(request, type, (uint16_t)(NLM_F_ACK | flags));
    message = netlink_add_header(request, sizeof(*message));
    message->ndm_family = neighbour->address ? AF_INET : AF_BRIDGE;
    message->ndm_ifindex = (int)index;
    message->ndm_state = NUD_PERMANENT;
    message->ndm_flags = neighbour->address ? 0 : NTF_SELF;
    if (neighbour->address)
        netlink_add_u32(request, NDA_DST, htonl(neighbour->address));
    else
        netlink_add_u32(request, NDA_DST, htonl(neighbour->remote));
    netlink_add(request, NDA_LLADDR, neighbour->mac, sizeof(neighbour->mac));
}

int rtnl_put_neighbour(int nl, uint32_t index, const struct rtnl_neighbour *neighbour,
                       struct aq_error *err)
{
    struct netlink_request request;

    rtnl_begin_neighbour(&request, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, index, neighbour);
    return rtnl_change(nl, &request, "add a neighbour", err);
}

int rtnl_delete_neighbour(int nl, uint32_t index, const struct rtnl_neighbour *neighbour,
                          struct aq_error *err)
{
    struct netlink_request request;

    rtnl_begin_neighbour(&request, RTM_DELNEIGH, 0, index, neighbour);
    return rtnl_change(nl, &request, "remove a neighbour", err);
}

struct neighbour_walk {
    uint32_t index;
    void (*fn)(void *data, const struct rtnl_neighbour *neighbour);
    void *data;
};

static void rtnl_on_neighbour(const struct nlmsghdr *answer, void *data)
{
    const struct ndmsg *message = NLMSG_DATA(answer);
    const struct rtattr *attr = (const struct rtattr *)(const void *)(message + 1);
    struct neighbour_walk *walk = data;
    struct rtnl_neighbour neighbour = { .address = 0 };
    size_t left = NLMSG_PAYLOAD(answer, sizeof(*message));
    uint32_t destination = 0;

    if (message->ndm_ifindex != (int)walk->index || !(message->ndm_state & NUD_PERMANENT))
        return;
    for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
        if (attr->rta_type == NDA_DST)
            destination = ntohl(netlink_get_u32(attr));
        else if (attr->rta_type == NDA_LLADDR && RTA_PAYLOAD(attr) == sizeof(neighbour.mac))
            memcpy(neighbour.mac, RTA_DATA(attr), sizeof(neighbour.mac));
    }
    if (!destination)
        return;
    if (message->ndm_family == AF_INET)
        neighbour.address = destination;
    else
        neighbour.remote = destination;
    walk->fn(walk->data, &neighbour);
}

int rtnl_each_neighbour(int nl, uint32_t index,
                        void (*fn)(void *data, const struct rtnl_neighbour *neighbour), void *data,
                        struct aq_error *err)
{
    static const unsigned char families[] = { AF_INET, AF_BRIDGE };
    struct neighbour_walk walk = { .index = index, .fn = fn, .data = data };
    struct netlink_request request;
    struct ndmsg *message;
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(families); i++) {
        netlink_begin(&request, RTM_GETNEIGH, NLM_F_DUMP);
        message = netlink_add_header(&request, sizeof(*message));
        message->ndm_family = families[i];
        message->ndm_ifindex = (int)index;
        r = netlink_talk(nl, &request, rtnl_on_neighbour, &walk);
    }
    return r < 0 ? aq_fail(err, -r, "list the neighbours: %s", strerror(-r)) : 0;
}
