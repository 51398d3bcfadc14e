/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - the agent's certificates in its state directory: link/identity.h */
#ifndef AQ_AGENT_IDENTITY_H
#define AQ_AGENT_IDENTITY_H

#include "agent/settings/settings.h"
#include "link/identity.h"

struct link_identity_place identity_place(const struct settings *settings);
/* As link_identity_join(). */
int identity_join(const struct settings *settings, const char *url, const char *token,
                  struct aq_error *err);

/* -ENOENT, saying what to do, before joining. The managers of the settings
 * are taken in place of those that were joined and named.
 */
int identity_load(const struct settings *settings, struct link_identity *ret, struct aq_error *err);

#endif
