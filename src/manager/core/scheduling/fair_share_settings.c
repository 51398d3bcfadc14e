/* SPDX-License-Identifier: Apache-2.0 */
/* fair_share_settings.c - see fair_share_settings.h */
#include "manager/core/scheduling/fair_share_settings.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "sched/fair.h"

int fair_share_settings_check(json_t *from, struct aq_error *err)
{
    static const char *const prefixes[] = { "slot:", "domain:", "project:", "user:" };
    const char *key;
    json_t *value;

    if (from && !json_is_object(from))
        return aq_fail_field(err, EINVAL, "fair_share", "must be an object");
    json_object_foreach(from, key, value) {
        bool is_days = strcmp(key, "half_life_days") == 0 || strcmp(key, "lookback_days") == 0;
        bool is_known = is_days || strcmp(key, "default_weight") == 0;

        for (size_t i = 0; i < AQ_COUNT(prefixes); i++)
            is_known |= strncmp(key, prefixes[i], strlen(prefixes[i])) == 0;
        if (!is_known)
            return aq_fail_field(err, EINVAL, "fair_share",
                                 "fair_share has no '%.40s'; it has "
                                 "half_life_days, lookback_days, default_weight, slot:NAME, "
                                 "domain:NAME, project:ID and user:ID",
                                 key);
        if (!json_is_number(value) || !(json_number_value(value) > 0)
            || json_number_value(value) > (is_days ? FAIR_LOOKBACK_MAX_DAYS : 1e6))
            return aq_fail_field(err, EINVAL, "fair_share",
                                 "fair_share.%.60s must be above 0 and "
                                 "at most %d",
                                 key, is_days ? FAIR_LOOKBACK_MAX_DAYS : 1000000);
    }
    return 0;
}

static double setting(const json_t *all, const char *key, double otherwise)
{
    const json_t *value = json_object_get(all, key);

    return json_is_number(value) ? json_number_value(value) : otherwise;
}

int fair_share_settings_read(const struct resource_group *g, struct fair_share_settings *ret)
{
    json_t *opts, *all;

    errno = 0;
    opts = g->scheduler_opts ? json_load_string(g->scheduler_opts, 0) : NULL;
    if (!opts && errno == ENOMEM)
        return -ENOMEM;
    all = json_object_get(opts, "fair_share");
    if (fair_share_settings_check(all, NULL) < 0)
        all = NULL; /* of a database of another version */
    *ret = (struct fair_share_settings){
        .half_life_days = setting(all, "half_life_days", 7),
        .lookback_days = setting(all, "lookback_days", 28),
        .default_weight = setting(all, "default_weight", 1),
        .all = json_incref(all),
    };
    json_decref(opts);
    return 0;
}

void fair_share_settings_done(struct fair_share_settings *s)
{
    json_decref(s->all);
}

double fair_share_settings_slot_weight(const struct fair_share_settings *s, const char *slot)
{
    char key[80];

    (void)snprintf(key, sizeof(key), "slot:%s", slot);
    return setting(s->all, key, fair_default_weight(slot));
}

double fair_share_settings_weight(const struct fair_share_settings *s, enum core_fair_level level,
                                  const struct usage_ledger_holder *h)
{
    char key[128], id[UUID_TEXT_MAX];

    if (level == CORE_FAIR_DOMAIN)
        (void)snprintf(key, sizeof(key), "domain:%s", h->domain);
    else if (level == CORE_FAIR_PROJECT)
        (void)snprintf(key, sizeof(key), "project:%s", uuid_format(&h->project, id));
    else
        (void)snprintf(key, sizeof(key), "user:%s", uuid_format(&h->user, id));
    return setting(s->all, key, s->default_weight);
}
