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
                                 "domain:NAME, project:ID, user:ID and user:ID/PROJECT-ID",
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

struct fair_share_settings fair_share_settings_read(const struct resource_group *g)
{
    json_t *opts = g->scheduler_opts ? json_load_string(g->scheduler_opts, 0) : NULL;
    json_t *all = json_object_get(opts, "fair_share");
    struct fair_share_settings settings;

    if (fair_share_settings_check(all, NULL) < 0)
        all = NULL; /* of a database of another version */
    settings = (struct fair_share_settings){
        .half_life_days = setting(all, "half_life_days", 7),
        .lookback_days = setting(all, "lookback_days", 28),
        .default_weight = setting(all, "default_weight", 1),
        .all = json_incref(all),
    };
    json_decref(opts);
    return settings;
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
    char key[128], id[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    double otherwise = s->default_weight;

    if (level == CORE_FAIR_DOMAIN) {
        (void)snprintf(key, sizeof(key), "domain:%s", h->domain);
    } else if (level == CORE_FAIR_PROJECT) {
        (void)snprintf(key, sizeof(key), "project:%s", uuid_format(&h->project, id));
    } else {
        (void)snprintf(key, sizeof(key), "user:%s", uuid_format(&h->user, id));
        otherwise = setting(s->all, key, otherwise);
        (void)snprintf(key, sizeof(key), "user:%s/%s", id, uuid_format(&h->project, project));
    }
    return setting(s->all, key, otherwise);
}

/* "ID/ID"; false if it is something else. */
static bool fair_share_settings_parse_user(const char *text, struct core_fair_row *ret)
{
    const char *slash = strchr(text, '/');
    char id[UUID_TEXT_MAX];

    if (!slash || (size_t)(slash - text) >= sizeof(id))
        return false;
    (void)snprintf(id, sizeof(id), "%.*s", (int)(slash - text), text);
    return uuid_parse(id, &ret->user) == 0 && uuid_parse(slash + 1, &ret->project) == 0;
}

void fair_share_settings_each(const struct fair_share_settings *s,
                              void (*visit)(void *data, const struct core_fair_row *whom),
                              void *data)
{
    const char *key;
    json_t *value;

    json_object_foreach(s->all, key, value) {
        const char *name = strchr(key, ':');
        struct core_fair_row row = { .domain = name ? name + 1 : NULL };

        if (strncmp(key, "domain:", 7) == 0)
            row.level = CORE_FAIR_DOMAIN;
        else if (strncmp(key, "project:", 8) == 0 && uuid_parse(row.domain, &row.project) == 0)
            row.level = CORE_FAIR_PROJECT;
        else if (strncmp(key, "user:", 5) == 0 && fair_share_settings_parse_user(row.domain, &row))
            row.level = CORE_FAIR_USER;
        else
            continue;
        visit(data, &row);
    }
}

int core_read_fair_settings(const struct core *core, const char *name,
                            struct core_fair_settings *ret, core_fair_weight_fn visit, void *data,
                            struct aq_error *err)
{
    const struct resource_group *g = core_find_resource_group(core, name);
    struct fair_share_settings settings;

    if (!g)
        return aq_fail(err, ENOENT, "there is no resource group '%s'", name);
    settings = fair_share_settings_read(g);
    *ret = (struct core_fair_settings){ settings.half_life_days, settings.lookback_days,
                                        settings.default_weight };
    for (size_t i = 0; i < slot_types_count(core_slot_types(core)); i++) {
        enum slot_type type;
        const char *slot = slot_types_name(core_slot_types(core), i, &type);

        visit(data, slot, fair_share_settings_slot_weight(&settings, slot));
    }
    fair_share_settings_done(&settings);
    return 0;
}
