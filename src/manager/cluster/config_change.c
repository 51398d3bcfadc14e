/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the configuration tree, and their effect. */
#include "manager/cluster/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/cluster/config_audit.h"
#include "manager/cluster/registry_logins.h"
#include "manager/cluster/cluster_feature.h"
#include "model/config_key.h"

struct config_change *config_change_new(struct api *api, struct request *req)
{
    return config_change_new_by(api, api_who(api, req));
}

struct config_change *config_change_new_by(struct api *api, const struct audit_who *by)
{
    struct config_change *change = aq_alloc(sizeof(*change));

    change->api = api;
    change->settings = aq_alloc(sizeof(*change->settings));
    change->audit = aq_alloc(sizeof(*change->audit));
    change->audit->by = *by;
    strbuf_init(&change->audit->keys);
    return change;
}

void config_change_free(struct config_change *change)
{
    if (!change)
        return;
    free(change->from);
    free(change->to);
    free(change->object);
    config_entries_done(&change->puts);
    config_entries_done(&change->removes);
    config_settings_done(change->settings);
    free(change->settings);
    config_audit_done(change->audit);
    free(change->audit);
    json_decref(change->result.named);
    free(change);
}

/* ---- on the store's thread ---- */

/* What is moved is put at its new keys. */
static int config_change_move(struct config_change *change, const struct config_entries *moved,
                              struct aq_error *err)
{
    int r = moved->count ? 0
                         : problem_no_such(err, "configuration key", "there is nothing at '%s'",
                                           change->from);

    for (size_t i = 0; r == 0 && i < moved->count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf key = STRBUF_INIT;

        strbuf_adds(&key, change->to);
        r = config_key_add(&key, "to", moved->items[i].key + strlen(change->from), err);
        if (r == 0 && !key.len)
            r = aq_fail_field(err, EINVAL, "to", "the root cannot have a value, which '%s' has",
                              change->from);
        if (r == 0)
            config_entries_add(&change->puts, key.data, moved->items[i].value);
    }
    return r;
}

static int config_change_remove(struct store_tx *tx, struct config_change *change,
                                struct aq_error *err)
{
    AQ_CLEANUP(config_entries_done) struct config_entries gone = { 0 };
    int r = config_entries_read(tx, change->from, change->below, &gone, err);

    if (r == 0 && change->to)
        r = config_change_move(change, &gone, err);
    for (size_t i = 0; r == 0 && i < gone.count; i++)
        config_audit_add(change->audit, gone.items[i].key, gone.items[i].value, NULL, !change->to);
    change->result.removed = gone.count;
    if (r == 0)
        r = config_entries_remove(tx, change->from, change->below, err);
    return r < 0 ? r : 0;
}

static int config_change_remove_listed(struct store_tx *tx, struct config_change *change,
                                       struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < change->removes.count; i++) {
        AQ_CLEANUP(config_entries_done) struct config_entries gone = { 0 };
        const char *key = change->removes.items[i].key;

        r = config_entries_read(tx, key, false, &gone, err);
        if (r < 0 || !gone.count)
            continue;
        config_audit_add(change->audit, key, gone.items[0].value, NULL, true);
        r = config_entries_remove(tx, key, false, err);
        change->result.removed += r > 0;
        r = AQ_MIN(r, 0);
    }
    return r;
}

static int config_change_compare(const void *key, const void *entry)
{
    return strcmp(key, ((const struct config_entry *)entry)->key);
}

static int config_change_seal(struct store_tx *tx, const struct config_entry *entry, char **ret,
                              struct aq_error *err)
{
    struct aq_error why = { 0 };

    if (config_secret_seal(tx, entry->value, ret, &why) == 0)
        return 0;
    return aq_fail_field(err, EINVAL, entry->key, "%.200s", why.text);
}

static int config_change_put_one(struct store_tx *tx, struct config_change *change,
                                 const struct config_entries *old, const struct config_entry *entry,
                                 struct aq_error *err)
{
    const struct config_entry *was = old->count
                                         ? bsearch(entry->key, old->items, old->count,
                                                   sizeof(*old->items), config_change_compare)
                                         : NULL;
    struct config_result *result = &change->result;
    AQ_CLEANUP(aq_freep) char *sealed = NULL;
    const char *value = entry->value;
    int r = config_known_check(entry->key, value, err);

    if (r < 0)
        return r;
    if (r == 0 && result->without_effect++ < CONFIG_NAMED_MAX)
        json_array_append_new(result->named, json_string(entry->key));
    if (registry_logins_is_password(entry->key)) {
        if ((r = config_change_seal(tx, entry, &sealed, err)) < 0)
            return r;
        value = sealed;
    }
    if (was && strcmp(was->value, value) == 0) {
        result->same++;
        return 0;
    }
    result->changed += was != NULL;
    result->added += was == NULL;
    config_audit_add(change->audit, entry->key, was ? was->value : NULL, value, !change->to);
    return config_entry_put(tx, entry->key, value, err);
}

static int config_change_put_all(struct store_tx *tx, struct config_change *change,
                                 struct aq_error *err)
{
    AQ_CLEANUP(config_entries_done) struct config_entries old = { 0 };
    const struct config_entries *puts = &change->puts;
    int r = 0;

    if (puts->count)
        r = config_entries_read(tx, puts->count == 1 ? puts->items[0].key : "", puts->count > 1,
                                &old, err);
    for (size_t i = 0; r == 0 && i < puts->count; i++)
        r = config_change_put_one(tx, change, &old, &puts->items[i], err);
    return r;
}

static int config_change_write_audit(struct store_tx *tx, const struct config_change *change,
                                     struct aq_error *err)
{
    const struct config_entries *puts = &change->puts;
    const char *action = change->to ? "move-config" : change->from ? "delete-config" : "set-config";
    const char *key = change->from ? change->from : puts->count == 1 ? puts->items[0].key : NULL;

    if (change->action) {
        action = change->action;
        key = NULL;
    }
    return config_audit_write(tx, change->audit, action, key, err);
}

/* What every change before has left, which may be other than what was there when this was asked. */
static int config_change_check_object(struct store_tx *tx, const struct config_change *change,
                                      struct aq_error *err)
{
    AQ_CLEANUP(config_entries_done) struct config_entries there = { 0 };
    int r = config_entries_read(tx, change->object, true, &there, err);

    if (r < 0 || change->is_new == (there.count == 0))
        return r < 0 ? r : 0;
    if (change->is_new)
        return aq_fail_as(err, EEXIST, "invalid-api-params", "name", "there is '%s' already",
                          change->object);
    return problem_no_such(err, "configuration key", "there is nothing at '%s'", change->object);
}

static int config_change_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct config_change *change = data;
    int r = 0;

    change->result.named = json_array();
    if (change->object)
        r = config_change_check_object(tx, change, err);
    if (r == 0 && change->decide)
        r = change->decide(tx, change, change->decide_data, err);
    if (r == 0 && change->from)
        r = config_change_remove(tx, change, err);
    if (r == 0)
        r = config_change_remove_listed(tx, change, err);
    if (r == 0)
        r = config_change_put_all(tx, change, err);
    if (r == 0)
        r = config_entries_check_size(tx, err);
    if (r == 0)
        r = config_known_read(tx, change->settings, err);
    if (r == 0)
        r = config_change_write_audit(tx, change, err);
    return r == 0 && change->dry_run ? aq_fail(err, ECANCELED, "a dry run") : r;
}

/* ---- on the loop's ---- */

void config_apply_origins(struct api *api)
{
    api->origins = api->cluster->own_origins;
    if (!api->cluster->settings.has_origins)
        return;
    api->origins.allowed = api->cluster->settings.origins;
    api->origins.count = api->cluster->settings.origin_count;
}

/* Takes the settings. */
static void config_apply(struct api *api, struct config_settings *settings)
{
    config_settings_done(&api->cluster->settings);
    api->cluster->settings = *settings;
    *settings = (struct config_settings){ 0 };
    api->is_frozen = api->cluster->settings.is_frozen;
    config_apply_origins(api);
    core_set_logins(api->core, AQ_TAKE(api->cluster->settings.logins));
    core_set_idle(api->core, &api->cluster->settings.idle);
    core_set_fifo_retries(api->core, api->cluster->settings.fifo_retries);
}

static void config_change_on_written(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(config_change_freep) struct config_change *change = data;

    struct cluster_state *cluster = change->api->cluster;

    if (r == -ECANCELED && change->dry_run) {
        r = 0;
    } else if (r == 0) {
        if (change->puts.count || change->removes.count || !change->decide)
            config_apply(change->api, change->settings);
        if (cluster->on_change)
            cluster->on_change(cluster->on_change_data);
    }
    change->done(change->data, &change->result, r, err);
}

void config_change_start(struct config_change *change, config_done_fn *done, void *data)
{
    change->done = done;
    change->data = data;
    store_write(core_store(change->api->core), config_change_write, config_change_on_written,
                change);
}

void config_change_put(struct api *api, struct request *req, const char *key, const char *value,
                       config_done_fn *done, void *data)
{
    struct config_change *change = config_change_new(api, req);

    config_entries_add(&change->puts, key, value);
    config_change_start(change, done, data);
}

void cluster_follow_tree(struct api *api, void (*changed)(void *data), void *data)
{
    api->cluster->on_change = changed;
    api->cluster->on_change_data = data;
}

static int config_load_settings(struct store_tx *tx, void *data, struct aq_error *err)
{
    return config_known_read(tx, data, err);
}

int config_load(struct api *api, struct aq_error *err)
{
    struct config_settings settings = { 0 };
    int r = store_call(core_store(api->core), config_load_settings, &settings, err);

    if (r == 0)
        config_apply(api, &settings);
    return r;
}
