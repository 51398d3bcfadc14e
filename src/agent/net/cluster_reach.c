/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_reach.c - which agents answer through the tunnel
 *
 * Agents of network.peers are asked for an echo every 10 s; three without an answer in a row, and
 * the agent counts as unreachable. Those that a kernel waits for are asked several times a second.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/net/cluster_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"

#define CHECK_USEC (10 * USEC_PER_SEC)
#define TELL_USEC (60 * USEC_PER_SEC)
#define WAIT_USEC (10 * USEC_PER_SEC)
#define WAIT_STEP_MSEC 200
#define STEP_MSEC 1000
#define LOST_MAX 3
#define PACKET_MAX 9000
#define PACKET_SMALL 64
#define IP_HEADER 20
#define ANSWERS_MAX 256 /* packets that are read before other events are served */

/* ---- echos ---- */

int cluster_reach_open_socket(const void *data, struct aq_error *err)
{
    int *const *place = (int *const *)data;
    AQ_CLEANUP(aq_closep)
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMP);
    const int whole = IP_PMTUDISC_DO;

    if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof(whole)) < 0)
        return aq_fail_errno(err, "open a socket for ICMP");
    **place = AQ_TAKE_FD(fd);
    return 0;
}

/* A packet of 'size' bytes, which is not split. */
static void cluster_reach_ask(struct cluster_networks *cluster, const struct cluster_reach *reach,
                              size_t size)
{
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(reach->address) };
    union {
        struct icmphdr header;
        char bytes[PACKET_MAX];
    } echo = { .header = { .type = ICMP_ECHO, .un.echo.sequence = htons(++cluster->sequence) } };

    if (cluster->socket >= 0 && reach->address)
        (void)sendto(cluster->socket, echo.bytes, AQ_MIN(size, sizeof(echo)) - IP_HEADER, 0,
                     (const struct sockaddr *)&to, sizeof(to)); /* a failed send counts as a
                                                                   missing answer */
}

static void cluster_reach_tell(struct cluster_networks *cluster)
{
    cluster->told_usec = clock_monotonic_usec();
    if (!cluster->is_freed)
        cluster->on_reach(cluster->data);
}

void cluster_reach_tell_soon(struct cluster_networks *cluster)
{
    cluster->told_usec = clock_monotonic_usec();
    for (size_t i = 0; i < cluster->reach_count; i++)
        if (cluster->reach[i].is_checked && cluster->reach[i].state != REACH_UNKNOWN)
            cluster->told_usec = INT64_MIN / 2;
}

static void cluster_reach_set(struct cluster_networks *cluster, struct cluster_reach *reach,
                              enum reach_state state)
{
    if (reach->state == state)
        return;
    reach->state = state;
    if (!reach->is_checked)
        return;
    if (state == REACH_NO)
        log_warning("agent %s (%s, %s) does not answer; open that UDP port between the nodes",
                    reach->id, reach->endpoint, cluster_plan_mode_name(cluster->mode));
    else
        log_info("agent %s (%s) answers", reach->id, reach->endpoint);
    cluster_reach_tell(cluster);
}

/* ---- kernels that wait ---- */

struct cluster_reach *cluster_reach_find(const struct cluster_networks *cluster, const char *id)
{
    for (size_t i = 0; i < cluster->reach_count; i++)
        if (strcmp(cluster->reach[i].id, id) == 0)
            return &cluster->reach[i];
    return NULL;
}

/* An agent of the kernel's session that has not answered since it waits; NULL = all have. */
static const char *cluster_reach_find_silent(const struct cluster_member *m)
{
    for (size_t i = 0; i < m->session->needed_count; i++) {
        const char *id = m->session->needed[i];
        const struct cluster_reach *reach = cluster_reach_find(m->cluster, id);

        if (!reach || reach->answered_usec < m->since_usec)
            return id;
    }
    return NULL;
}

static void cluster_reach_fail(struct cluster_member *m, const char *id)
{
    const struct cluster_reach *reach = cluster_reach_find(m->cluster, id);
    struct aq_error err = { 0 };

    if (!reach || !reach->address)
        (void)aq_fail_kind(&err, EHOSTUNREACH, CLUSTER_UNREACHABLE,
                           "agent %s has no address of agent %s; check that both run the same "
                           "release, with the same [network] cluster",
                           m->cluster->id, id);
    else
        (void)aq_fail_kind(&err, EHOSTUNREACH, CLUSTER_UNREACHABLE,
                           "agent %s got no answer from agent %s (%s/udp, %s) for %d s; open that "
                           "port between the nodes",
                           m->cluster->id, id, reach->endpoint,
                           cluster_plan_mode_name(m->cluster->mode),
                           (int)(WAIT_USEC / USEC_PER_SEC));
    cluster_member_end(m, &err);
}

/* True if some kernel still waits. */
static bool cluster_reach_settle(struct cluster_networks *cluster)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    int64_t now = clock_monotonic_usec();
    bool is_waiting = false;
    struct list *link;

    list_cursor_begin(&cursor, &cluster->members);
    while ((link = list_cursor_next(&cursor))) {
        struct cluster_member *m = LIST_ENTRY(link, struct cluster_member, link);
        const char *silent;

        if (m->state != MEMBER_REACHING)
            continue;
        silent = cluster_reach_find_silent(m);
        if (!silent)
            cluster_member_end(m, NULL);
        else if (now - m->since_usec >= WAIT_USEC)
            cluster_reach_fail(m, silent);
        else
            is_waiting = true;
    }
    return is_waiting;
}

static bool cluster_reach_is_awaited(const struct cluster_networks *cluster, const char *id)
{
    LIST_FOREACH(it, &cluster->members) {
        const struct cluster_member *m = LIST_ENTRY(it, struct cluster_member, link);

        if (m->state == MEMBER_REACHING && cluster_session_needs(m->session, id))
            return true;
    }
    return false;
}

/* ---- answers ---- */

static void cluster_reach_take_answer(struct cluster_networks *cluster, uint32_t from, size_t size)
{
    for (size_t i = 0; i < cluster->reach_count; i++) {
        struct cluster_reach *reach = &cluster->reach[i];

        if (reach->address != from)
            continue;
        reach->answered_usec = clock_monotonic_usec();
        if (size > PACKET_SMALL)
            reach->whole_usec = reach->answered_usec;
        reach->lost = 0;
        cluster_reach_set(cluster, reach, REACH_YES);
    }
}

static void cluster_reach_on_readable(uv_poll_t *poll, int status, int events)
{
    struct cluster_networks *cluster = poll->data;
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    union {
        struct icmphdr header;
        char bytes[PACKET_MAX];
    } answer;

    (void)status;
    (void)events;
    for (int i = 0; i < ANSWERS_MAX; i++) {
        ssize_t got = recvfrom(cluster->socket, &answer, sizeof(answer), 0,
                               (struct sockaddr *)&from, &len);

        if (got < (ssize_t)sizeof(answer.header))
            break;
        if (answer.header.type == ICMP_ECHOREPLY)
            cluster_reach_take_answer(cluster, ntohl(from.sin_addr.s_addr),
                                      (size_t)got + IP_HEADER);
    }
    (void)cluster_reach_settle(cluster);
}

void cluster_reach_take_socket(struct cluster_networks *cluster, int fd)
{
    cluster->socket = fd;
    (void)uv_poll_init(cluster->net->loop, &cluster->poll, fd);
    (void)uv_poll_start(&cluster->poll, UV_READABLE, cluster_reach_on_readable);
}

/* ---- packets of full size ---- */

/* Lowers the size of packets for all agents: a router or switch between the nodes drops large ones
 * silently.
 */
static void cluster_reach_lower_mtu(struct cluster_networks *cluster,
                                    const struct cluster_reach *reach)
{
    AQ_CLEANUP(aq_freep) char *why = aq_format("packets of %u bytes do not get to agent %s: the "
                                               "MTU is %d",
                                               cluster->mtu, reach->id, CLUSTER_MTU_MIN);

    log_warning("%s; check the MTU of the network between the nodes", why);
    cluster_offer_lower_mtu(cluster, CLUSTER_MTU_MIN, why);
    cluster->wanted++;
    cluster_write_update(cluster);
}

/* After a check; small and large were asked for at once. */
static void cluster_reach_check_size(struct cluster_networks *cluster, struct cluster_reach *reach)
{
    bool has_answer = reach->answered_usec >= reach->sent_usec;

    if (!reach->sent_usec || !has_answer || cluster->mtu <= CLUSTER_MTU_MIN)
        return;
    if (reach->whole_usec >= reach->sent_usec)
        reach->cut = 0;
    else if (++reach->cut >= LOST_MAX)
        cluster_reach_lower_mtu(cluster, reach);
}

/* ---- time ---- */

static void cluster_reach_check(struct cluster_networks *cluster, struct cluster_reach *reach,
                                int64_t now)
{
    bool is_lost = reach->sent_usec && reach->answered_usec < reach->sent_usec;

    if (reach->sent_usec && now - reach->sent_usec < CHECK_USEC)
        return;
    if (is_lost && ++reach->lost >= LOST_MAX)
        cluster_reach_set(cluster, reach, REACH_NO);
    cluster_reach_check_size(cluster, reach);
    reach->sent_usec = now;
    cluster_reach_ask(cluster, reach, PACKET_SMALL);
    cluster_reach_ask(cluster, reach, cluster->mtu);
}

static void cluster_reach_start_timer(struct cluster_networks *cluster, bool is_waiting);

static void cluster_reach_on_tick(uv_timer_t *timer)
{
    struct cluster_networks *cluster = timer->data;
    int64_t now = clock_monotonic_usec();

    for (size_t i = 0; i < cluster->reach_count; i++) {
        struct cluster_reach *reach = &cluster->reach[i];

        if (now < reach->begin_usec)
            continue;
        if (reach->is_checked)
            cluster_reach_check(cluster, reach, now);
        if (reach->answered_usec < now - WAIT_STEP_MSEC * USEC_PER_MSEC
            && cluster_reach_is_awaited(cluster, reach->id))
            cluster_reach_ask(cluster, reach, PACKET_SMALL);
    }
    /* a tunnel that has ended is created again */
    if (now - cluster->checked_usec >= CHECK_USEC) {
        cluster->checked_usec = now;
        cluster->wanted++;
        cluster_write_update(cluster);
    }
    if (cluster->peers.agent_count && now - cluster->told_usec >= TELL_USEC)
        cluster_reach_tell(cluster);
    cluster_reach_start_timer(cluster, cluster_reach_settle(cluster));
}

static void cluster_reach_start_timer(struct cluster_networks *cluster, bool is_waiting)
{
    if (!cluster->is_freed)
        (void)uv_timer_start(&cluster->timer, cluster_reach_on_tick,
                             is_waiting ? WAIT_STEP_MSEC : STEP_MSEC, 0);
}

/* ---- who is asked ---- */

/* The agent with the smaller id of two asks first: simultaneous WireGuard handshakes can both fail
 * for 15 s.
 */
static int64_t cluster_reach_begin(const struct cluster_networks *cluster, const char *id)
{
    return clock_monotonic_usec() + (strcmp(cluster->id, id) < 0 ? 0 : USEC_PER_SEC);
}

static void cluster_reach_add(struct cluster_networks *cluster,
                              const struct cluster_network_agent *agent, bool is_checked)
{
    struct cluster_reach *reach = cluster_reach_find(cluster, agent->id);
    struct range range = { .first = 0 };

    if (strcmp(agent->id, cluster->id) == 0)
        return;
    if (!reach) {
        vec_grow(&cluster->reach, &cluster->reach_cap, cluster->reach_count + 1,
                 sizeof(*cluster->reach));
        reach = &cluster->reach[cluster->reach_count++];
        *reach = (struct cluster_reach){ .begin_usec = cluster_reach_begin(cluster, agent->id) };
        (void)snprintf(reach->id, sizeof(reach->id), "%s", agent->id);
    }
    (void)range_parse(agent->address, &range, NULL);
    (void)snprintf(reach->endpoint, sizeof(reach->endpoint), "%s", agent->endpoint);
    reach->address = range.first;
    reach->is_checked |= is_checked;
    reach->is_wanted = true;
}

static void cluster_reach_drop_unwanted(struct cluster_networks *cluster)
{
    size_t kept = 0;

    for (size_t i = 0; i < cluster->reach_count; i++)
        if (cluster->reach[i].is_wanted)
            cluster->reach[kept++] = cluster->reach[i];
    cluster->reach_count = kept;
}

void cluster_reach_update(struct cluster_networks *cluster)
{
    for (size_t i = 0; i < cluster->reach_count; i++)
        cluster->reach[i].is_wanted = cluster->reach[i].is_checked = false;
    LIST_FOREACH(it, &cluster->sessions) {
        const struct cluster_network *network =
            &LIST_ENTRY(it, struct cluster_session, link)->network;

        for (size_t i = 0; i < network->agent_count; i++)
            cluster_reach_add(cluster, &network->agents[i], false);
    }
    for (size_t i = 0; i < cluster->peers.agent_count; i++)
        cluster_reach_add(cluster, &cluster->peers.agents[i], true);
    cluster_reach_drop_unwanted(cluster);
    if (cluster->socket >= 0)
        cluster_reach_start_timer(cluster, true);
}

void cluster_list_reach(const struct cluster_networks *cluster, struct arena *arena,
                        struct str_list *ret_reachable, struct str_list *ret_unreachable)
{
    *ret_reachable = *ret_unreachable = (struct str_list){ .count = 0 };
    for (size_t i = 0; i < cluster->reach_count; i++) {
        const struct cluster_reach *reach = &cluster->reach[i];
        struct str_list *list = reach->state == REACH_YES ? ret_reachable : ret_unreachable;
        const char *id = arena_strdup(arena, reach->id);

        if (reach->is_checked && reach->state != REACH_UNKNOWN)
            (void)arena_append(arena, &list->items, &list->count, &id, sizeof(id));
    }
}
