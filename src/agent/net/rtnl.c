#include "agent/net/rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <string.h>

#define REQUEST_MAX 1024

struct request {
    union {
        struct nlmsghdr header;
        char bytes[REQUEST_MAX];
    };
};

int rtnl_open(struct mnl_socket **ret, struct aq_error *err)
{
    struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);

    if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
        int r = aq_fail_errno(err, "open a route socket");

        rtnl_close(nl);
        return r;
    }
    *ret = nl;
    return 0;
}

void rtnl_close(struct mnl_socket *socket)
{
    if (socket)
        (void)mnl_socket_close(socket);
}

static struct nlmsghdr *begin(struct request *request, uint16_t type, uint16_t flags)
{
    struct nlmsghdr *header = mnl_nlmsg_put_header(request->bytes);

    header->nlmsg_type = type;
    header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    header->nlmsg_seq = 1;
    return header;
}

/* Send, and give each answer to 'cb' until the acknowledgement. -errno of the kernel. */
static int talk(struct mnl_socket *nl, const struct nlmsghdr *header, mnl_cb_t cb, void *data)
{
    char bytes[8192];
    int r = 1;

    if (mnl_socket_sendto(nl, header, header->nlmsg_len) < 0)
        return -errno;
    while (r > 0) {
        ssize_t got = mnl_socket_recvfrom(nl, bytes, sizeof(bytes));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        r = mnl_cb_run(bytes, (size_t)got, header->nlmsg_seq, mnl_socket_get_portid(nl), cb, data);
    }
    return r < 0 ? -errno : 0;
}

static int change(struct mnl_socket *nl, const struct nlmsghdr *header, const char *what,
                  struct aq_error *err)
{
    int r = talk(nl, header, NULL, NULL);

    return r < 0 ? aq_fail(err, -r, "%s: %s", what, strerror(-r)) : 0;
}

int rtnl_add_veth(struct mnl_socket *nl, const char *name, const char *peer, int peer_ns,
                  uint32_t mtu, struct aq_error *err)
{
    struct request request;
    struct nlmsghdr *header = begin(&request, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    struct nlattr *info, *data, *other;

    (void)mnl_nlmsg_put_extra_header(header, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(header, IFLA_IFNAME, name);
    mnl_attr_put_u32(header, IFLA_MTU, mtu);
    info = mnl_attr_nest_start(header, IFLA_LINKINFO);
    mnl_attr_put_str(header, IFLA_INFO_KIND, "veth");
    data = mnl_attr_nest_start(header, IFLA_INFO_DATA);
    other = mnl_attr_nest_start(header, VETH_INFO_PEER);
    (void)mnl_nlmsg_put_extra_header(header, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(header, IFLA_IFNAME, peer);
    mnl_attr_put_u32(header, IFLA_MTU, mtu);
    mnl_attr_put_u32(header, IFLA_NET_NS_FD, (uint32_t)peer_ns);
    mnl_attr_nest_end(header, other);
    mnl_attr_nest_end(header, data);
    mnl_attr_nest_end(header, info);
    return change(nl, header, "make a veth pair", err);
}

int rtnl_delete_link(struct mnl_socket *nl, const char *name, struct aq_error *err)
{
    struct request request;
    struct nlmsghdr *header = begin(&request, RTM_DELLINK, NLM_F_ACK);

    (void)mnl_nlmsg_put_extra_header(header, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(header, IFLA_IFNAME, name);
    return change(nl, header, "remove an interface", err);
}

int rtnl_set_up(struct mnl_socket *nl, uint32_t index, struct aq_error *err)
{
    struct request request;
    struct nlmsghdr *header = begin(&request, RTM_NEWLINK, NLM_F_ACK);
    struct ifinfomsg *link = mnl_nlmsg_put_extra_header(header, sizeof(*link));

    link->ifi_index = (int)index;
    link->ifi_change = IFF_UP;
    link->ifi_flags = IFF_UP;
    return change(nl, header, "set an interface up", err);
}

int rtnl_add_address(struct mnl_socket *nl, uint32_t index, uint32_t local, uint32_t peer,
                     struct aq_error *err)
{
    struct request request;
    struct nlmsghdr *header = begin(&request, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    struct ifaddrmsg *address = mnl_nlmsg_put_extra_header(header, sizeof(*address));

    address->ifa_family = AF_INET;
    address->ifa_prefixlen = 32;
    address->ifa_index = index;
    mnl_attr_put_u32(header, IFA_LOCAL, htonl(local));
    mnl_attr_put_u32(header, IFA_ADDRESS, htonl(peer));
    return change(nl, header, "give an interface its address", err);
}

int rtnl_add_default_route(struct mnl_socket *nl, uint32_t index, uint32_t gateway,
                           struct aq_error *err)
{
    struct request request;
    struct nlmsghdr *header = begin(&request, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    struct rtmsg *route = mnl_nlmsg_put_extra_header(header, sizeof(*route));

    route->rtm_family = AF_INET;
    route->rtm_table = RT_TABLE_MAIN;
    route->rtm_protocol = RTPROT_STATIC;
    route->rtm_scope = RT_SCOPE_UNIVERSE;
    route->rtm_type = RTN_UNICAST;
    mnl_attr_put_u32(header, RTA_OIF, index);
    mnl_attr_put_u32(header, RTA_GATEWAY, htonl(gateway));
    return change(nl, header, "make a default route", err);
}

/* ---- looking ---- */

struct link_walk {
    int (*fn)(void *data, const struct rtnl_link *link);
    void *data;
    int r;
};

static int on_link(const struct nlmsghdr *header, void *data)
{
    const struct ifinfomsg *info = mnl_nlmsg_get_payload(header);
    struct rtnl_link link = { .index = (uint32_t)info->ifi_index };
    struct link_walk *walk = data;
    const struct nlattr *attr;

    mnl_attr_for_each(attr, header, sizeof(*info)) {
        if (mnl_attr_get_type(attr) == IFLA_IFNAME
            && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
            (void)strncpy(link.name, mnl_attr_get_str(attr), sizeof(link.name) - 1);
        if (mnl_attr_get_type(attr) == IFLA_MTU && mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
            link.mtu = mnl_attr_get_u32(attr);
    }
    if (walk->r == 0)
        walk->r = walk->fn(walk->data, &link);
    return MNL_CB_OK; /* all of the answer has to be read */
}

int rtnl_each_link(struct mnl_socket *nl, int (*fn)(void *data, const struct rtnl_link *link),
                   void *data, struct aq_error *err)
{
    struct request request;
    struct nlmsghdr *header = begin(&request, RTM_GETLINK, NLM_F_DUMP);
    struct link_walk walk = { .fn = fn, .data = data };
    int r;

    (void)mnl_nlmsg_put_extra_header(header, sizeof(struct ifinfomsg));
    r = talk(nl, header, on_link, &walk);
    return r < 0 ? aq_fail(err, -r, "list the interfaces: %s", strerror(-r)) : walk.r;
}

static int take_index(void *data, const struct rtnl_link *link)
{
    *(uint32_t *)data = link->index;
    return 0;
}

int rtnl_get_index(struct mnl_socket *nl, const char *name, uint32_t *ret, struct aq_error *err)
{
    struct request request;
    struct nlmsghdr *header = begin(&request, RTM_GETLINK, NLM_F_ACK);
    struct link_walk walk = { .fn = take_index, .data = ret };
    int r;

    (void)mnl_nlmsg_put_extra_header(header, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(header, IFLA_IFNAME, name);
    r = talk(nl, header, on_link, &walk);
    return r < 0 ? aq_fail(err, -r, "interface '%s': %s", name, strerror(-r)) : 0;
}

struct uplinks {
    uint32_t *indexes;
    size_t count, max;
};

static void add_uplink(struct uplinks *uplinks, uint32_t index)
{
    for (size_t i = 0; i < uplinks->count; i++)
        if (uplinks->indexes[i] == index)
            return;
    if (uplinks->count < uplinks->max)
        uplinks->indexes[uplinks->count++] = index;
}

/* The next hops of a route over several interfaces. */
static void add_next_hops(struct uplinks *uplinks, const struct nlattr *attr)
{
    const struct rtnexthop *hop = mnl_attr_get_payload(attr);
    size_t left = mnl_attr_get_payload_len(attr);

    while (left >= sizeof(*hop) && hop->rtnh_len >= sizeof(*hop) && hop->rtnh_len <= left) {
        size_t step = RTNH_ALIGN(hop->rtnh_len);

        add_uplink(uplinks, (uint32_t)hop->rtnh_ifindex);
        if (step >= left)
            return;
        left -= step;
        hop = (const struct rtnexthop *)(const void *)((const char *)hop + step);
    }
}

static int on_route(const struct nlmsghdr *header, void *data)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(header);
    const struct nlattr *attr;

    if (route->rtm_family != AF_INET || route->rtm_type != RTN_UNICAST
        || (route->rtm_flags & RTM_F_CLONED))
        return MNL_CB_OK;
    mnl_attr_for_each(attr, header, sizeof(*route)) {
        if (mnl_attr_get_type(attr) == RTA_OIF && mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
            add_uplink(data, mnl_attr_get_u32(attr));
        if (mnl_attr_get_type(attr) == RTA_MULTIPATH)
            add_next_hops(data, attr);
    }
    return MNL_CB_OK;
}

int rtnl_get_uplinks(struct mnl_socket *nl, uint32_t *ret, size_t max, size_t *ret_count,
                     struct aq_error *err)
{
    struct request request;
    struct nlmsghdr *header = begin(&request, RTM_GETROUTE, NLM_F_DUMP);
    struct rtmsg *route = mnl_nlmsg_put_extra_header(header, sizeof(*route));
    struct uplinks uplinks = { .indexes = ret, .max = max };
    int r;

    route->rtm_family = AF_INET;
    r = talk(nl, header, on_route, &uplinks);
    if (r < 0)
        return aq_fail(err, -r, "list the routes: %s", strerror(-r));
    *ret_count = uplinks.count;
    return 0;
}
