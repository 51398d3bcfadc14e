/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - the agent's certificates, and joining a cluster with a token
 *
 * In the state directory: agent.key (0600, made here, never sent), agent.crt,
 * ca.crt, and manager, the address that was joined ("host:port").
 */
#ifndef AQ_AGENT_IDENTITY_H
#define AQ_AGENT_IDENTITY_H

#include "agent/settings/settings.h"

struct identity {
    char *key, *cert, *ca; /* PEM */
    struct conf_listen manager;
};

/* Join the cluster whose manager is at 'url' ("host[:port]", perhaps with a
 * scheme) with a token; an identity that is there already is replaced.
 */
int identity_join(const struct settings *settings, const char *url, const char *token,
                  struct aq_error *err);

/* -ENOENT, saying what to do, before joining. The manager of the settings
 * goes before the one that was joined.
 */
int identity_load(const struct settings *settings, struct identity *ret, struct aq_error *err);
void identity_done(struct identity *identity);

#endif
