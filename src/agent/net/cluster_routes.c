/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_routes.c - the address, routes and (VXLAN) neighbours of the tunnel's device */
#include "agent/net/cluster_routes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/net/rtnl.h"
#include "base/vec.h"

/* ---- routes: to each session's subnet and to each agent ---- */

struct cluster_routes {
    struct rtnl_route *items;
    size_t count, cap;
};

static void cluster_routes_add(struct cluster_routes *routes, const struct rtnl_route *route)
{
    vec_grow(&routes->items, &routes->cap, routes->count + 1, sizeof(*routes->items));
    routes->items[routes->count++] = *route;
}

static void cluster_routes_on_found(void *data, const struct rtnl_route *route)
{
    cluster_routes_add(data, route);
}

static bool cluster_routes_has(const struct cluster_routes *routes, const struct rtnl_route *route)
{
    for (size_t i = 0; i < routes->count; i++)
        if (routes->items[i].first == route->first && routes->items[i].bits == route->bits)
            return true;
    return false;
}

static void cluster_routes_collect(const struct cluster_plan *plan, struct cluster_routes *ret)
{
    for (size_t i = 0; i < plan->subnet_count; i++)
        cluster_routes_add(ret, &(struct rtnl_route){ .first = plan->subnets[i].first,
                                                      .bits = plan->subnets[i].bits });
    for (size_t i = 0; i < plan->peer_count; i++)
        if (plan->peers[i].address)
            cluster_routes_add(ret,
                               &(struct rtnl_route){ .first = plan->peers[i].address, .bits = 32 });
}

static int cluster_routes_write_routes(const struct cluster_plan *plan, int nl, uint32_t index,
                                       struct aq_error *err)
{
    struct cluster_routes wanted = { .count = 0 }, found = { .count = 0 };
    int r = rtnl_each_route(nl, index, cluster_routes_on_found, &found, err);

    cluster_routes_collect(plan, &wanted);
    for (size_t i = 0; r == 0 && i < wanted.count; i++)
        if (!cluster_routes_has(&found, &wanted.items[i]))
            r = rtnl_put_route(nl, index, &wanted.items[i], err);
    for (size_t i = 0; r == 0 && i < found.count; i++)
        if (!cluster_routes_has(&wanted, &found.items[i]))
            r = rtnl_delete_route(nl, index, &found.items[i], err);
    free(wanted.items);
    free(found.items);
    return r;
}

/* ---- VXLAN: who is behind which address, and on which node ---- */

struct cluster_neighbours {
    struct rtnl_neighbour *items;
    size_t count, cap;
};

static void cluster_neighbours_add(struct cluster_neighbours *list,
                                   const struct rtnl_neighbour *neighbour)
{
    vec_grow(&list->items, &list->cap, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = *neighbour;
}

static void cluster_neighbours_on_found(void *data, const struct rtnl_neighbour *neighbour)
{
    cluster_neighbours_add(data, neighbour);
}

static bool cluster_neighbours_has(const struct cluster_neighbours *list,
                                   const struct rtnl_neighbour *neighbour)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].address == neighbour->address
            && list->items[i].remote == neighbour->remote
            && memcmp(list->items[i].mac, neighbour->mac, sizeof(neighbour->mac)) == 0)
            return true;
    return false;
}

/* The address of "192.0.2.7:51871"; 0 for IPv6, which VXLAN is not used over. */
static uint32_t cluster_neighbours_parse(const char *endpoint)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr in;
    size_t len = strcspn(endpoint, ":");

    if (len >= sizeof(text))
        return 0;
    memcpy(text, endpoint, len);
    text[len] = '\0';
    return inet_pton(AF_INET, text, &in) == 1 ? ntohl(in.s_addr) : 0;
}

static void cluster_neighbours_collect(const struct cluster_plan *plan,
                                       struct cluster_neighbours *ret)
{
    for (size_t i = 0; i < plan->peer_count; i++) {
        const struct cluster_peer *peer = &plan->peers[i];
        struct rtnl_neighbour neighbour = { .remote = cluster_neighbours_parse(peer->endpoint) };

        cluster_plan_make_mac(peer->id, neighbour.mac);
        if (!neighbour.remote)
            continue;
        cluster_neighbours_add(ret, &neighbour);
        neighbour.remote = 0;
        neighbour.address = peer->address;
        if (peer->address)
            cluster_neighbours_add(ret, &neighbour);
        for (size_t j = 0; j < peer->kernel_count; j++) {
            neighbour.address = peer->kernels[j];
            cluster_neighbours_add(ret, &neighbour);
        }
    }
}

/* Unwanted neighbours are removed first: a MAC has one remote node. */
static int cluster_routes_write_neighbours(const struct cluster_plan *plan, int nl, uint32_t index,
                                           struct aq_error *err)
{
    struct cluster_neighbours wanted = { .count = 0 }, found = { .count = 0 };
    int r = rtnl_each_neighbour(nl, index, cluster_neighbours_on_found, &found, err);

    cluster_neighbours_collect(plan, &wanted);
    for (size_t i = 0; r == 0 && i < found.count; i++)
        if (!cluster_neighbours_has(&wanted, &found.items[i]))
            r = rtnl_delete_neighbour(nl, index, &found.items[i], err);
    for (size_t i = 0; r == 0 && i < wanted.count; i++)
        if (!cluster_neighbours_has(&found, &wanted.items[i]))
            r = rtnl_put_neighbour(nl, index, &wanted.items[i], err);
    free(wanted.items);
    free(found.items);
    return r;
}

int cluster_routes_write(const struct cluster_plan *plan, int nl, struct aq_error *err)
{
    struct aq_error failure = { 0 };
    uint32_t index;
    int r = rtnl_get_index(nl, CLUSTER_DEVICE, &index, err);

    if (r == 0 && plan->address) {
        r = rtnl_add_address(nl, index, plan->address, plan->address, &failure);
        r = r == -EEXIST || r == 0 ? 0 : aq_fail(err, failure.code, "%s", failure.text);
    }
    if (r == 0)
        r = cluster_routes_write_routes(plan, nl, index, err);
    if (r == 0 && plan->mode == CLUSTER_VXLAN)
        r = cluster_routes_write_neighbours(plan, nl, index, err);
    return r;
}
