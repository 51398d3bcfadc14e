/* SPDX-License-Identifier: Apache-2.0 */
/* leader.h - what a manager has while it leads: the core, which writes, schedules and holds the
 * agents, and the API on it
 *
 * Opened and ended on a loop that goes on. A manager on a file always leads.
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
    int64_t epoch;                      /* that was taken; 0 = the store takes one */
    int64_t ahead_usec;                 /* of core_conf */
    uint16_t link_port;
    bool dev;
    /* Of core_conf: why this manager does not lead any more. */
    void (*lost)(void *data, const struct aq_error *err);
    /* Of another manager, with requests of its clients: link_server_ops.on_http(). */
    void (*on_http)(void *data, struct stream *stream, struct strbuf *first, const char *peer);
    api_yield_fn *yield; /* NULL = no other manager can lead */
    void *data;          /* of the three */
};

/* Load the database and listen to agents. Blocks while it loads. Errors as of core_new(),
 * core_start() and api_new(), or of settings.
 */
int leader_open(const struct leader_conf *conf, struct leader **ret, struct aq_error *err);

const struct server_app *leader_get_app(const struct leader *leader);
struct core *leader_get_core(const struct leader *leader);
/* All of metrics_write(). 'turn_sec': the longest turn of the loop. */
void leader_write_metrics(const struct leader *leader, const struct server *server, double turn_sec,
                          struct strbuf *out);

/* Make durable what is under way, give up the lease, close the link, and end the requests whose
 * clients have gone. The server passes leader_get_app() no further ones. Calls after the first do
 * nothing.
 */
void leader_stop(struct leader *leader);
/* After leader_stop(), if it was opened. The loop must run once more. NULL is fine. */
void leader_free(struct leader *leader);

#endif
