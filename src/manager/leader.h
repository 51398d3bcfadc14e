/* SPDX-License-Identifier: Apache-2.0 */
/* leader.h - the part of a manager that exists while it leads: the core, which writes, schedules
 * and holds the connections of agents, and the API on it
 *
 * It is opened and ended while the loop keeps running. A manager with its database in a file always
 * leads.
 */
#ifndef AQ_MANAGER_LEADER_H
#define AQ_MANAGER_LEADER_H

#include "http/server.h"
#include "manager/call/api.h"
#include "manager/conf.h"
#include "manager/core/core.h"
#include "store/leadership.h"

struct leader;

struct leader_conf {
    uv_loop_t *loop;
    const struct manager_conf *conf;
    const struct address_list *proxies; /* trusted, in their normal form */
    const struct leader_claim *claim;   /* of this manager */
    int64_t epoch;                      /* that was taken; 0 = the store takes the next one */
    int64_t ahead_usec;                 /* of core_conf */
    uint16_t link_port;
    bool dev;
    /* Of core_conf: this manager lost the lead because of 'err'. */
    void (*lost)(void *data, const struct aq_error *err);
    /* Another manager opened a connection with its clients' requests: link_server_ops.on_http(). */
    void (*on_http)(void *data, struct stream *stream, struct strbuf *first, const char *peer);
    api_yield_fn *yield; /* NULL = no other manager can lead */
    void *data;          /* of these three */
};

/* Load the database, which blocks, and listen for agents. Errors of core_new(), core_start(),
 * api_new(), or of a setting.
 */
int leader_open(const struct leader_conf *conf, struct leader **ret, struct aq_error *err);

const struct server_app *leader_get_app(const struct leader *leader);
struct core *leader_get_core(const struct leader *leader);
/* metrics_write() of this leader. 'turn_sec': the longest turn of the loop. */
void leader_write_metrics(const struct leader *leader, const struct server *server, double turn_sec,
                          struct strbuf *out);

/* Complete pending commits, give up the lease, close the link, and end the requests whose clients
 * have disconnected. The server must have stopped giving requests to leader_get_app(). Further
 * calls do nothing.
 */
void leader_stop(struct leader *leader);
/* After leader_stop(). The loop must run once more. NULL is allowed. */
void leader_free(struct leader *leader);

#endif
