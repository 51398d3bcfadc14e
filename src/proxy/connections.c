/* SPDX-License-Identifier: Apache-2.0 */
/* connections.c - see connections.h */
#include "proxy/connections.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "http/client_address.h"

#define LOOK_MAX 256 /* connections of one kind that are looked at for one of an address */

void connections_init(struct proxy *p)
{
    list_init(&p->browsers);
    for (int step = 0; step < CLIENT_STEPS; step++)
        list_init(&p->waiting[step]);
}

void connections_done(struct proxy *p)
{
    map_done(&p->shares);
}

void connections_wait_for(struct browser *b, enum client_step step)
{
    list_remove(&b->waiting_link);
    if (step == CLIENT_NOTHING)
        return;
    b->waits_since = uv_now(b->proxy->loop);
    list_add(&b->proxy->waiting[step], &b->waiting_link);
}

/* ---- who leaves ---- */

/* The one that has waited for this step the longest, 'msec' at least; of 'share', unless NULL. */
static struct browser *connections_find_oldest(const struct proxy *p, enum client_step step,
                                               uint64_t msec, const struct client_share *share)
{
    uint64_t now = uv_now(p->loop);
    size_t looks = 0;

    LIST_FOREACH(it, &p->waiting[step]) {
        struct browser *b = LIST_ENTRY(it, struct browser, waiting_link);

        if (b->waits_since + msec > now || looks++ == LOOK_MAX)
            return NULL;
        if (!share || b->share == share || b->user == share)
            return b;
    }
    return NULL;
}

/* Clients that have their answer go first, then those that never said anything, the idle, and
 * those in the middle of a head or an answer. A client that is neither slow nor silent comes and
 * goes much faster than the time that is given to it.
 */
static struct browser *connections_find(const struct proxy *p, const struct client_share *share)
{
    static const struct {
        enum client_step step;
        uint64_t msec;
    } order[] = {
        { CLIENT_ENDS, 500 },        { CLIENT_SPEAKS, 1000 },
        { CLIENT_ASKS_AGAIN, 0 },    { CLIENT_FINISHES_HEAD, 1000 },
        { CLIENT_READS, 1000 },      { CLIENT_ENDS, 0 },
        { CLIENT_READS, 0 },         { CLIENT_SPEAKS, 0 },
        { CLIENT_FINISHES_HEAD, 0 },
    };
    struct browser *found = NULL;

    for (size_t i = 0; i < AQ_COUNT(order) && !found; i++)
        found = connections_find_oldest(p, order[i].step, order[i].msec, share);
    return found;
}

/* ---- coming and going ---- */

static struct client_share *connections_share_of(struct proxy *p, struct stream *stream)
{
    const char *address = stream_get_address(stream);
    char one[CLIENT_ADDRESS_MAX], network[CLIENT_ADDRESS_MAX];

    if (address_normalize(address, strlen(address), one) < 0)
        return NULL;
    client_address_network(one, network);
    return client_share_get(&p->shares, network);
}

bool connections_enter(struct proxy *p, struct stream *stream, bool is_tunnel,
                       struct client_share **ret_share)
{
    struct client_share *share = connections_share_of(p, stream);
    size_t max = (size_t)p->settings->common.connections_max;
    bool is_over = client_share_is_used_up(share, p->connection_count, max);
    struct browser *other = is_over ? connections_find(p, share) : NULL;
    bool has_room = !is_over || !is_tunnel || other;

    if (!other && p->connection_count >= max)
        other = connections_find(p, NULL);
    if (share)
        share->connections++;
    *ret_share = share;
    p->connection_count++;
    p->counts.connections++;
    if (other)
        browser_free(other);
    return has_room && p->connection_count <= max;
}

int connections_take_user(struct proxy *p, const char *access_key, struct client_share **user,
                          struct aq_error *err)
{
    char name[CLIENT_SHARE_NAME_MAX]; /* no address begins with "@" */
    struct client_share *share;
    struct browser *other = NULL;

    (void)snprintf(name, sizeof(name), "@%s", access_key);
    if (*user && strcmp((*user)->name, name) == 0)
        return 0;
    share = client_share_get(&p->shares, name);
    if (client_share_is_used_up(share, p->connection_count,
                                (size_t)p->settings->common.connections_max)
        && !(other = connections_find(p, share)))
        return aq_fail(err, EDQUOT,
                       "your apps have %zu connections of the proxy, as many as one user may have "
                       "now: close pages or programs that use them and try again",
                       share->connections);
    client_share_leave(&p->shares, *user);
    share->connections++;
    *user = share;
    if (other)
        browser_free(other);
    return 0;
}

void connections_leave(struct proxy *p, struct client_share *share, struct client_share *user)
{
    client_share_leave(&p->shares, share);
    client_share_leave(&p->shares, user);
    p->connection_count--;
    if (p->is_draining && p->connection_count == 0)
        front_drained(p->front);
}
