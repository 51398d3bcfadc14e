/* SPDX-License-Identifier: Apache-2.0 */
/* standby.h - the link of a manager that does not lead: a listener that redirects agents to the
 * leader, and a connection to the leader, by which the leader lists this manager
 *
 * The listener is the server side of the link, the connection its client side (link/link.h), as of
 * a leader and of an agent.
 */
#ifndef AQ_MANAGER_STANDBY_H
#define AQ_MANAGER_STANDBY_H

#include "manager/conf.h"
#include "manager/manager_identity.h"
#include "store/leadership.h"

struct standby;

struct standby_conf {
    uv_loop_t *loop;
    const struct manager_conf *conf;
    const struct manager_identity *identity; /* both borrowed, as is 'claim' */
    const struct leader_claim *claim;        /* of this manager */
    uint16_t link_port;                      /* to listen on; 0 = any free one */
    /* The leader refused this manager, e.g. because an administrator removed it, so it cannot stand
     * by. Never called from within a function of this header.
     */
    void (*on_refused)(void *data, const struct aq_error *err);
    void *data;
};

/* Starts to listen. Errors of link_server_new(). */
int standby_open(const struct standby_conf *conf, struct standby **ret, struct aq_error *err);
/* Connect to the leader at 'link' ("host:port"), which is copied; NULL = the leader is unknown.
 * Does nothing if the leader is the same as before.
 */
void standby_set_leader(struct standby *standby, const char *link);
uint16_t standby_get_link_port(const struct standby *standby);
/* The loop must run once more. NULL is allowed. */
void standby_free(struct standby *standby);

#endif
