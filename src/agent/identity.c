/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - see identity.h */
#include "agent/identity.h"

#include <errno.h>

struct link_identity_place identity_place(const struct settings *settings)
{
    return (struct link_identity_place){ settings->state, "agent", settings->id };
}

int identity_join(const struct settings *settings, const char *url, const char *token,
                  struct aq_error *err)
{
    const struct link_identity_place place = identity_place(settings);

    return link_identity_join(&place, url, token, true, err);
}

int identity_load(const struct settings *settings, struct link_identity *ret, struct aq_error *err)
{
    const struct link_identity_place place = identity_place(settings);
    int r = link_identity_load(&place, &settings->managers, ret, err);

    if (r != -ENOENT)
        return r;
    return aq_fail(err, ENOENT,
                   "this node has not joined a cluster ('%s' has no certificate): get a token with "
                   "'aliquot agent token' and run 'aliquot-agent join MANAGER:PORT TOKEN'",
                   settings->state);
}
