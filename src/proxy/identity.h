/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - the proxy's certificate in its state directory: link/identity.h */
#ifndef AQ_PROXY_IDENTITY_H
#define AQ_PROXY_IDENTITY_H

#include "link/identity.h"
#include "proxy/settings.h"

/* As link_identity_join(). */
int identity_join(const struct settings *settings, const char *address, const char *token,
                  struct aq_error *err);
/* -ENOENT, saying what to do, before joining. */
int identity_load(const struct settings *settings, struct link_identity *ret, struct aq_error *err);

#endif
