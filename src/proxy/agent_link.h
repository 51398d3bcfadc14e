/* SPDX-License-Identifier: Apache-2.0 */
/* agent_link.h - connections to apps that an agent opens for a ticket, without the manager
 *
 * On the agent's own machine the connection itself is handed over by a socket; from another machine
 * its bytes go by TLS through the agent (agent/data/data.h). Connections by TLS are kept for the
 * next app of the same agent, as a handshake costs more than most carry.
 *
 * Loop's thread only; callbacks never come from within a call.
 */
#ifndef AQ_PROXY_AGENT_LINK_H
#define AQ_PROXY_AGENT_LINK_H

#include "link/identity.h"
#include "link/link.h"

struct agent_links;
struct agent_ask;

/* 'run' is the runtime directory, where agents of this machine have their sockets. Texts are copied. */
int agent_links_new(uv_loop_t *loop, const struct link_identity *identity, const char *run,
                    struct agent_links **ret, struct aq_error *err);
void agent_links_free(struct agent_links *links); /* after the last ask; NULL is fine */

struct agent_target {
    const char *agent_id, *address; /* address "-": only by the socket */
    const char *ticket;
};

/* A way to the app. It is borrowed for the call, in which agent_opened_attach() is to be called. */
struct agent_opened;
/* 'opened', or 'err': a refusal of the agent has the kind "refused", or "connect-failed" where the
 * ticket is good and the app's port does not accept; without a kind the agent was not reached.
 */
typedef void agent_opened_fn(void *data, struct agent_opened *opened, const struct aq_error *err);

void agent_link_open(struct agent_links *links, const struct agent_target *target,
                     agent_opened_fn *fn, void *data, struct agent_ask **ret);
bool agent_opened_by_socket(const struct agent_opened *opened);
/* The stream begins: *ret is set, then ops->on_open() is called. -errno of taking a socket over. */
int agent_opened_attach(struct agent_opened *opened, const struct link_stream_ops *ops, void *data,
                        struct link_stream **ret, struct aq_error *err);
/* No callback follows. NULL is fine. */
void agent_ask_cancel(struct agent_ask *ask);

#endif
