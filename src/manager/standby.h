/* SPDX-License-Identifier: Apache-2.0 */
/* standby.h - what a manager has on the link while it does not lead: a listener that sends agents
 * to the leader, and a connection of its own to the leader, which lists it
 *
 * Both ends of the link are the same as an agent's and a leader's: link/link.h.
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
    /* The leader accepts this manager no longer, e.g. as an administrator has removed it: it cannot
     * stand by. Not from within a function of this header.
     */
    void (*on_refused)(void *data, const struct aq_error *err);
    void *data;
};

/* Listens. Errors as of link_server_new(). */
int standby_open(const struct standby_conf *conf, struct standby **ret, struct aq_error *err);
/* Where the leader's link is ("host:port"), or NULL: not known. Nothing happens if it is as before.
 */
void standby_set_leader(struct standby *standby, const char *link);
uint16_t standby_get_link_port(const struct standby *standby);
/* The loop must run once more. NULL is fine. */
void standby_free(struct standby *standby);

#endif
