/* SPDX-License-Identifier: Apache-2.0 */
/* lead.h - the role of a manager: it leads, stands by, or waits until it knows which
 *
 * With the database in a file it leads from lead_start() on. With the database on a server the row
 * of its lease decides, also later: a standby takes the lead of a leader that is dead (election.h),
 * a leader gives it up if an administrator asks. Requests go to the API here, or by manager/forward
 * to the leader; while there is none they wait. A manager that has lost the lead by force does not
 * stand by: what it has in memory is not to be trusted, and its program ends, to be started again.
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
    const struct leader_claim *claim; /* of this manager; borrowed as all here */
    struct server *server;            /* is given the app of the role */
    bool dev;
    /* It leads or stands by, for the first time. Not from within lead_start(). */
    void (*on_ready)(void *data);
    /* Once: this program has to end, or with -ERESTART to begin anew. Not from within lead_start(). */
    void (*on_lost)(void *data, const struct aq_error *err);
    void *data;
};

/* Before the server listens. Errors as of leader_open(), of the state folder, and -EBUSY: another
 * manager has it.
 */
int lead_start(const struct lead_conf *conf, struct lead **ret, struct aq_error *err);

/* Where agents connect to, in any role. */
uint16_t lead_get_link_port(const struct lead *lead);
/* 'turn_sec': the longest turn of the loop since the last time. */
void lead_write_metrics(const struct lead *lead, double turn_sec, struct strbuf *out);

/* The server is about to stop: from here on the role does not change. */
void lead_prepare_stop(struct lead *lead);
/* After the server has stopped: make durable what is under way, give the lead up. */
void lead_stop(struct lead *lead);
/* After lead_stop(), and server_free(). The loop must run once more. NULL is fine. */
void lead_free(struct lead *lead);

#endif
