/* SPDX-License-Identifier: Apache-2.0 */
/* proxies.h - the proxies that lead browsers to apps of sessions; part of core.h, whose rules
 * hold here
 *
 * A proxy joins with a token that was made for its name, and is connected by the agents' link as
 * "proxy:NAME" (LINK_PROXY_PREFIX). Nothing of it is stored but its certificate.
 */
#ifndef AQ_MANAGER_CORE_PROXIES_H
#define AQ_MANAGER_CORE_PROXIES_H

#include "link/link.h"

struct core;

/* What a proxy asks, app.*; borrowed for the call. */
typedef void core_proxy_fn(void *data, const char *proxy, const struct message *msg);
void core_on_proxy_message(struct core *core, core_proxy_fn *fn, void *data);

/* -ENOTCONN if it has gone meanwhile. */
int core_send_proxy(struct core *core, const char *proxy, const struct message *msg,
                    struct aq_error *err);
/* As link_server_open_stream(). */
int core_open_proxy_stream(struct core *core, const char *proxy, struct msg_stream_open *open,
                           const struct link_stream_ops *ops, void *data, struct link_stream **ret,
                           struct aq_error *err);

/* The URL at which browsers reach a proxy that is connected, the first by name; NULL = none.
 * Borrowed until the loop runs again.
 */
const char *core_find_proxy_url(const struct core *core);

#endif
