/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - see identity.h */
#include "proxy/identity.h"

#include <errno.h>

#include "link/link.h"

int identity_join(const struct settings *settings, const char *address, const char *token,
                  struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *id = aq_format(LINK_PROXY_PREFIX "%s", settings->name);
    const struct link_identity_place place = { settings->state, "proxy", id };

    return id ? link_identity_join(&place, address, token, false, err) : aq_fail_oom(err);
}

int identity_load(const struct settings *settings, struct link_identity *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *id = aq_format(LINK_PROXY_PREFIX "%s", settings->name);
    const struct link_identity_place place = { settings->state, "proxy", id };
    int r = id ? link_identity_load(&place, &settings->manager, ret, err) : aq_fail_oom(err);

    if (r != -ENOENT)
        return r;
    return aq_fail(err, ENOENT,
                   "this proxy has not joined a cluster ('%s' has no certificate): get a token "
                   "with 'aliquot agent token --proxy %s' and run 'aliquot-proxy join "
                   "MANAGER:PORT TOKEN'",
                   settings->state, settings->name);
}
