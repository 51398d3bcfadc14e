/* SPDX-License-Identifier: Apache-2.0 */
/* lead.h - the role of a manager: it leads, stands by, or waits for a leader
 *
 * With the database in a file, a manager leads from lead_start() on. With the database on a server,
 * the row of the lease decides: a standby takes the lead from a leader that is dead (election.h),
 * and a leader yields it when an administrator asks. Requests go to the API of this process if it
 * leads, or through manager/forward to the leader; they wait while there is none. A manager that
 * lost the lead involuntarily does not stand by: its memory may differ from the database, so its
 * program exits and is started again.
 */
#ifndef AQ_MANAGER_LEAD_H
#define AQ_MANAGER_LEAD_H

#include <uv.h>

#include "http/server.h"
#include "manager/conf.h"
#include "store/leadership.h"

struct lead;

struct lead_conf {
    uv_loop_t *loop;
    const struct manager_conf *conf;
    const struct leader_claim *claim; /* of this manager; borrowed, as are all pointers here */
    struct server *server;            /* receives the app of the role */
    bool dev;
    /* Called once, when the manager first leads or stands by; never from within lead_start(). */
    void (*on_ready)(void *data);
    /* Called at most once: the program must exit or, with -ERESTART, start again. Never from within
     * lead_start().
     */
    void (*on_lost)(void *data, const struct aq_error *err);
    void *data;
};

/* Call before the server listens. Errors of leader_open() and of the state folder; -EBUSY: another
 * manager uses the folder.
 */
int lead_start(const struct lead_conf *conf, struct lead **ret, struct aq_error *err);

/* The port on which agents connect, in any role. */
uint16_t lead_get_link_port(const struct lead *lead);
/* 'turn_sec': the longest turn of the loop since the previous call. */
void lead_write_metrics(const struct lead *lead, double turn_sec, struct strbuf *out);

/* Call before the server stops: the role does not change from here on. */
void lead_prepare_stop(struct lead *lead);
/* Call after the server has stopped: completes pending commits and gives the lead up. */
void lead_stop(struct lead *lead);
/* Call after lead_stop() and server_free(). The loop must run once more. NULL is allowed. */
void lead_free(struct lead *lead);

#endif
