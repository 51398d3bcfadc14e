/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - see identity.h */
#include "front/identity.h"

#include <errno.h>

int front_identity_join(const struct front_settings *settings, const char *address,
                        const char *token, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *id = aq_format("%s:%s", settings->program, settings->name);
    const struct link_identity_place place = { settings->state, settings->program, id };

    return link_identity_join(&place, address, token, false, err);
}

int front_identity_load(const struct front_settings *settings, struct link_identity *ret,
                        struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *id = aq_format("%s:%s", settings->program, settings->name);
    const struct link_identity_place place = { settings->state, settings->program, id };
    int r = link_identity_load(&place, &settings->managers, ret, err);

    if (r != -ENOENT)
        return r;
    return aq_fail(err, ENOENT,
                   "this %s has not joined a cluster ('%s' has no certificate): get a token "
                   "with 'aliquot agent token --%s %s' and run 'aliquot-%s join "
                   "MANAGER:PORT TOKEN'",
                   settings->program, settings->state, settings->program, settings->name,
                   settings->program);
}

int front_identity_keep_epoch(const struct front_settings *settings, int64_t epoch,
                              struct aq_error *err)
{
    const struct link_identity_place place = { settings->state, settings->program, NULL };

    return link_identity_keep_epoch(&place, epoch, err);
}

int front_identity_keep_managers(const struct front_settings *settings,
                                 const struct link_manager *list, size_t count,
                                 struct aq_error *err)
{
    const struct link_identity_place place = { settings->state, settings->program, NULL };

    return link_identity_keep_managers(&place, list, count, err);
}
