/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the configuration tree that mean something here. */
#include "manager/cluster/config_known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"
#include "http/url.h"
#include "manager/cluster/cluster.h"
#include "manager/cluster/registry_logins.h"
#include "model/config_key.h"
#include "store/config_entries.h"

#define ANNOUNCEMENT_MAX 4096
#define ORIGINS_MAX 100
#define RETRIES_MAX 1000000
#define IDLE_ROOT "config/idle"
#define IDLE_KEYS IDLE_ROOT "/"

/* ---- values ---- */

static int config_known_read_status(const char *value, struct config_settings *into,
                                    struct aq_error *err)
{
    if (strcmp(value, "running") != 0 && strcmp(value, "frozen") != 0)
        return aq_fail(err, EINVAL, "must be running or frozen");
    into->is_frozen = *value == 'f';
    return 0;
}

static int config_known_read_announcement(const char *value, struct config_settings *into,
                                          struct aq_error *err)
{
    if (strlen(value) > ANNOUNCEMENT_MAX)
        return aq_fail(err, EINVAL, "is longer than %d bytes", ANNOUNCEMENT_MAX);
    if (*value)
        into->announcement = aq_strdup(value);
    return 0;
}

/* "http://HOST[:PORT]" or "https://...", as browsers write it. */
static bool config_known_is_origin(const char *text)
{
    const char *host = strstr(text, "://");
    struct url url;

    return strncmp(text, "http", 4) == 0 && host && !strpbrk(host + 3, "/?#")
           && url_parse(text, &url, NULL) == 0;
}

static int config_known_add_origin(const char *text, size_t len, struct config_settings *into,
                                   struct aq_error *err)
{
    char *origin = aq_strndup(text, len);

    vec_grow(&into->origins, &into->origin_cap, into->origin_count + 1, sizeof(*into->origins));
    into->origins[into->origin_count++] = origin;
    if (strcmp(origin, "*") != 0 && !config_known_is_origin(origin))
        return aq_fail(err, EINVAL,
                       "'%.60s' is no origin; it is https://HOST[:PORT], several with commas "
                       "between, or * for every page",
                       origin);
    return into->origin_count > ORIGINS_MAX
               ? aq_fail(err, EINVAL, "has more than %d origins", ORIGINS_MAX)
               : 0;
}

static int config_known_read_origins(const char *value, struct config_settings *into,
                                     struct aq_error *err)
{
    int r = 0;

    into->has_origins = true;
    while (r == 0 && *(value += strspn(value, " ,"))) {
        size_t len = strcspn(value, " ,");

        r = config_known_add_origin(value, len, into, err);
        value += len;
    }
    return r;
}

static int config_known_read_retries(const char *value, struct config_settings *into,
                                     struct aq_error *err)
{
    size_t digits = strspn(value, "0123456789");
    long number = digits && digits <= 7 && !value[digits] ? strtol(value, NULL, 10) : -1;

    if (number < 0 || number > RETRIES_MAX)
        return aq_fail(err, EINVAL, "must be a number from 0 to %d", RETRIES_MAX);
    into->fifo_retries = (uint32_t)number;
    return 0;
}

/* ---- keys ---- */

static const struct config_known {
    const char *key;
    /* Of the key; NULL = routes list it and what is below it. -EINVAL says what must be. */
    int (*read)(const char *value, struct config_settings *into, struct aq_error *err);
} config_knowns[] = {
    { "config/api/allow-origins", config_known_read_origins },
    { REGISTRY_KEY, NULL },
    { "config/plugins/scheduler/fifo/num_retries_to_skip", config_known_read_retries },
    { "manager/announcement", config_known_read_announcement },
    { "manager/status", config_known_read_status },
    { "volumes/_types", NULL },
};

void config_settings_done(struct config_settings *settings)
{
    for (size_t i = 0; i < settings->origin_count; i++)
        free(settings->origins[i]);
    free(settings->origins);
    free(settings->announcement);
    free(settings->logins);
    json_decref(settings->registries);
    *settings = (struct config_settings){ 0 };
}

static int config_known_try(const struct config_known *known, const char *value,
                            struct aq_error *err)
{
    struct config_settings scratch = { 0 };
    int r = known->read(value, &scratch, err);

    config_settings_done(&scratch);
    return r;
}

/* Of the keys below config/idle, whose names are not all known before. */
static int config_known_check_idle(const char *key, const char *value, struct aq_error *err)
{
    struct idle_settings scratch = { .threshold_count = 0 };
    struct aq_error why = { 0 };
    int r = idle_settings_put(&scratch, key + strlen(IDLE_KEYS), value, &why);

    return r < 0 ? aq_fail_field(err, EINVAL, key, "%s", why.text) : r;
}

int config_known_check(const char *key, const char *value, struct aq_error *err)
{
    if (strncmp(key, IDLE_KEYS, strlen(IDLE_KEYS)) == 0)
        return config_known_check_idle(key, value, err);
    for (size_t i = 0; i < AQ_COUNT(config_knowns); i++) {
        const struct config_known *known = &config_knowns[i];
        struct aq_error why = { 0 };

        if (!known->read && config_key_is_within(key, known->key))
            return 1;
        if (!known->read || strcmp(key, known->key) != 0)
            continue;
        if (config_known_try(known, value, &why) == 0)
            return 1;
        return aq_fail_field(err, EINVAL, key, "%s", why.text);
    }
    return 0;
}

static int config_known_read_one(const struct config_known *known, const char *value,
                                 struct config_settings *into, struct aq_error *err)
{
    struct aq_error why = { 0 };

    if (config_known_try(known, value, &why) == 0)
        return known->read(value, into, err);
    log_warning("the key %s of the configuration tree is not looked at: it %s", known->key,
                why.text);
    return 0;
}

static int config_known_read_idle(struct store_tx *tx, struct idle_settings *into,
                                  struct aq_error *err)
{
    struct config_entries found = { 0 };
    int r = config_entries_read(tx, IDLE_ROOT, true, &found, err);

    idle_settings_defaults(into);
    for (size_t i = 0; r == 0 && i < found.count; i++) {
        const char *key = found.items[i].key;
        struct aq_error why = { 0 };

        if (strlen(key) > strlen(IDLE_KEYS)
            && idle_settings_put(into, key + strlen(IDLE_KEYS), found.items[i].value, &why) < 0)
            log_warning("the key %s of the configuration tree is not looked at: it %s", key,
                        why.text);
    }
    config_entries_done(&found);
    return r;
}

int config_known_read(struct store_tx *tx, struct config_settings *ret, struct aq_error *err)
{
    struct config_settings settings = { 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(config_knowns); i++) {
        struct config_entries found = { 0 };

        if (config_knowns[i].read)
            r = config_entries_read(tx, config_knowns[i].key, false, &found, err);
        if (r == 0 && found.count)
            r = config_known_read_one(&config_knowns[i], found.items[0].value, &settings, err);
        config_entries_done(&found);
    }
    if (r == 0)
        r = config_known_read_idle(tx, &settings.idle, err);
    if (r == 0)
        r = registry_tree_read(tx, &settings.registries, err);
    if (r == 0)
        settings.logins = registry_logins_read(tx, settings.registries);
    if (r < 0)
        config_settings_done(&settings);
    else
        *ret = settings;
    return r;
}
