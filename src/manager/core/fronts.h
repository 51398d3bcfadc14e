/* SPDX-License-Identifier: Apache-2.0 */
/* fronts.h - the daemons that clients reach beside the manager: proxies, which lead browsers to
 * apps of sessions, storage hosts, and web servers; and standbys, which are managers that do not
 * lead; part of core.h, whose rules hold here
 *
 * A front daemon joins with a token that was made for its name, and is connected by the agents'
 * link under an id such as "proxy:NAME" (LINK_PROXY_PREFIX). Nothing of it is stored but its
 * certificate; of a manager, its row (managers.h).
 */
#ifndef AQ_MANAGER_CORE_FRONTS_H
#define AQ_MANAGER_CORE_FRONTS_H

#include "link/link.h"
#include "link/ticket.h"

struct core;

enum front_kind { FRONT_PROXY, FRONT_STORAGE, FRONT_WEB, FRONT_MANAGER, FRONT_KINDS };

struct core_front_ops {
    /* What it asks or answers, app.*, storage.* or web.*; borrowed for the call. */
    void (*on_message)(void *data, const char *id, const struct message *msg);
    /* It has gone, or another process took its name. NULL = nobody needs to know. */
    void (*on_lost)(void *data, const char *id);
    /* It greets; messages can be sent from the next turn of the loop on. May be NULL, too. */
    void (*on_connected)(void *data, const char *id);
};

/* 'ops' NULL = nobody listens any more. */
void core_set_front_ops(struct core *core, enum front_kind kind, const struct core_front_ops *ops,
                        void *data);

/* The same for the messages serving.* of proxies, which core_set_front_ops() does not get. */
void core_set_serving_ops(struct core *core, const struct core_front_ops *ops, void *data);

/* Is this the id of a front daemon, whether it is a good one or not? No agent's is. */
bool core_is_front(const char *id);

/* The name of a front daemon in its id. */
const char *core_front_name(enum front_kind kind, const char *id);

/* -ENOTCONN if it has gone meanwhile. */
int core_send_front(struct core *core, const char *id, const struct message *msg,
                    struct aq_error *err);
/* To every one of the kind that is connected. */
void core_send_fronts(struct core *core, enum front_kind kind, const struct message *msg);
/* As link_server_open_stream(). */
int core_open_front_stream(struct core *core, const char *id, struct msg_stream_open *open,
                           const struct link_stream_ops *ops, void *data, struct link_stream **ret,
                           struct aq_error *err);

/* ---- apps that proxies reach without the manager: link/ticket.h ---- */

/* Where the agent takes tickets: msg_hello.data; NULL = it takes none now. */
const char *core_agent_data_address(const struct core *core, const char *agent_id);
/* As ticket_write() and ticket_read(), with the cluster's authority. */
int core_write_ticket(const struct core *core, const struct ticket *ticket, struct strbuf *out,
                      struct aq_error *err);
int core_read_ticket(struct core *core, const char *text, int64_t now_usec, struct ticket *ret,
                     struct aq_error *err);

struct core_front_contact {
    enum front_kind kind;
    const char *name, *url; /* of its last connection */
    const char *domain_url; /* msg_hello.domain_url; NULL = it has none */
    bool is_connected;
    int64_t heard_usec; /* wall clock: when bytes came last from it */
};

/* All that have connected since the manager's start, in no order. */
void core_each_front(const struct core *core,
                     void (*fn)(void *data, const struct core_front_contact *contact), void *data);
/* "proxy", "storage", "web", "manager" */
const char *core_front_kind_name(enum front_kind kind);

/* The URL at which clients reach the daemon; NULL = it is not connected. 'id' NULL = the first of
 * the kind by name. Borrowed until the loop runs again.
 */
const char *core_find_front_url(const struct core *core, enum front_kind kind, const char *id);

/* The same of all of the kind: 'fn' is called for each, in no order. */
void core_list_front_urls(const struct core *core, enum front_kind kind,
                          void (*fn)(void *data, const char *url), void *data);

#endif
