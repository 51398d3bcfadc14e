/* SPDX-License-Identifier: Apache-2.0 */
/* service_check.c - whether a model service may be created, or become what a command makes of it */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "manager/core/serving/service_command.h"
#include "manager/core/serving/service_share.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/state.h"

void service_rename_field(struct aq_error *err)
{
    static const struct {
        const char *of_session, *ours;
    } names[] = { { "config.resources", "resources" },
                  { "config.resource_opts.", "" },
                  { "startupCommand", "command" },
                  { "bootstrap_script", "bootstrap" },
                  { "clusterSize", "cluster_size" } };
    char rest[sizeof(err->field)];

    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        size_t len = strlen(names[i].of_session);

        if (strncmp(err->field, names[i].of_session, len) != 0)
            continue;
        (void)snprintf(rest, sizeof(rest), "%s", err->field + len);
        (void)snprintf(err->field, sizeof(err->field), "%s%.60s", names[i].ours, rest);
        return;
    }
}

/* Services of a user, or of all (NULL), with those that are being written: requests at the same time
 * cannot exceed the limit.
 */
static size_t service_count(const struct core *core, const struct uuid *user_id)
{
    size_t count = 0;

    LIST_FOREACH(link, &core->services)
        count += !user_id
                 || uuid_equals(&LIST_ENTRY(link, struct model_service_entry, all_link)->s.user_id,
                                user_id);
    LIST_FOREACH(link, &core->service_creations)
        count += !user_id
                 || uuid_equals(
                     &LIST_ENTRY(link, struct service_command, creation_link)->made.user_id,
                     user_id);
    return count;
}

static int service_check_count(const struct core *core, const struct model_service *s,
                               struct aq_error *err)
{
    if (service_count(core, NULL) >= MODEL_SERVICE_LIVE_MAX)
        return aq_fail_kind(err, EDQUOT, "quota-exceeded",
                            "there are %d model services already; end some that are not needed",
                            MODEL_SERVICE_LIVE_MAX);
    if (service_count(core, &s->user_id) >= MODEL_SERVICE_USER_MAX)
        return aq_fail_kind(err, EDQUOT, "quota-exceeded",
                            "the user has %d model services already; end some that are not needed",
                            MODEL_SERVICE_USER_MAX);
    if (model_service_entry_find_named(core, s->name))
        return aq_fail_as(err, EEXIST, "service-already-exists", "name",
                          "a model service is already called '%s'; choose another name or end that "
                          "one",
                          s->name);
    return 0;
}

static int service_check_limit(const struct core *core, const struct model_service *s,
                               struct aq_error *err)
{
    int64_t limit = core->serving.limit ? core->serving.limit(core->serving.limit_data, &s->user_id)
                                        : 0;

    if (limit <= 0 || s->replicas_max <= limit)
        return 0;
    return aq_fail_as(err, EDQUOT, "quota-exceeded", "replicas",
                      "the policy of the service's owner allows %lld replicas of a model service "
                      "at most, not %lld",
                      (long long)limit, (long long)s->replicas_max);
}

int service_check_all(const struct service_command *c, struct aq_error *err)
{
    const struct core *core = c->core;
    int r = c->is_new ? model_service_check_name(c->made.name, err) : 0;

    if (r == 0)
        r = model_service_check(&c->made, err);
    if (r == 0 && c->is_new)
        r = service_check_count(core, &c->made, err);
    if (r == 0)
        r = service_check_limit(core, &c->made, err);
    if (r == 0)
        r = service_share_check(core, &c->made, c->has_revision && !c->is_new, err);
    if (r < 0)
        service_rename_field(err);
    return r;
}

int service_fail_conflict(struct aq_error *err)
{
    return aq_fail_kind(err, ESTALE, "conflict",
                        "the model service was changed meanwhile; look at it and repeat the "
                        "request");
}

int service_check_version(const struct model_service_entry *was, struct model_service *s,
                          struct aq_error *err)
{
    if (!was)
        return aq_fail_kind(err, ENOENT, "object-not-found", "No such model service.");
    if (was->s.is_ending)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "the model service '%s' is ending and cannot be changed", was->s.name);
    if (s->version > was->s.version + 1 || s->version <= was->base_version)
        return service_fail_conflict(err);
    s->version = was->s.version + 1;
    return 0;
}
