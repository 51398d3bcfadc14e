/* SPDX-License-Identifier: Apache-2.0 */
/* Resource groups as accounts: what requests give one by one becomes members of scheduler_opts. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "base/suggest.h"
#include "manager/account/account.h"
#include "model/resource_opts.h"

static const void *resource_group_find(const struct core *core, const char *key)
{
    return core_find_resource_group(core, key);
}

static const void *resource_group_find_same(const struct core *core, const void *params)
{
    return core_find_resource_group(core, ((const struct resource_group *)params)->name);
}

/* What scheduler_opts and its member "config" may have that means something. */
static const char *const resource_group_options[] = { "agent_selection_strategy",
                                                      RESOURCE_OPTS_SPLITTING,
                                                      "allowed_networks",
                                                      "allowed_session_types",
                                                      "backfill",
                                                      "backfill_max_wait",
                                                      "backfill_reservations",
                                                      "config",
                                                      "fair_share",
                                                      "handler_options",
                                                      "pending_timeout",
                                                      "preemption",
                                                      NULL };
static const char *const resource_group_config[] = { "num_retries_to_skip", NULL };

static void resource_group_write_unknown(const json_t *opts, const char *const *names,
                                         const char *before, struct jsonw *w)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)opts, key, value) {
        AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;
        size_t i = 0;

        while (names[i] && strcmp(names[i], key) != 0)
            i++;
        if (names[i])
            continue;
        strbuf_addf(&name, "%s%s", before, key);
        jsonw_str(w, name.data);
    }
}

void account_write_unused_options(const struct resource_group *group, struct jsonw *w)
{
    json_auto_t *opts = group->scheduler_opts ? json_load_string(group->scheduler_opts, 0) : NULL;

    jsonw_array_begin(w);
    resource_group_write_unknown(opts, resource_group_options, "", w);
    resource_group_write_unknown(json_object_get(opts, "config"), resource_group_config, "config.",
                                 w);
    jsonw_array_end(w);
}

/* Names that mean nothing here are kept for Backend.AI's clients, but what is nearly one of ours is
 * a slip.
 */
static void resource_group_check_slips(struct account_row *row, const json_t *opts,
                                       const char *const *names)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)opts, key, value) {
        struct suggest suggest = suggest_for(key, strlen(key));

        for (size_t i = 0; names[i]; i++)
            suggest_offer(&suggest, names[i]);
        if (suggest.best && suggest.distance > 0)
            api_fail_param(&row->err, "scheduler_opts", "has no '%.40s'; did you mean '%s'?", key,
                           suggest.best);
    }
}

static void resource_group_check_names(struct account_row *row, const json_t *opts)
{
    resource_group_check_slips(row, opts, resource_group_options);
    resource_group_check_slips(row, json_object_get(opts, "config"), resource_group_config);
}

static bool resource_group_sets_options(const struct resource_group_request *params)
{
    return params->group.scheduler_opts || params->group.selection
           || params->group.pending_timeout_usec != RESOURCE_GROUP_UNSET
           || params->retries != RESOURCE_GROUP_UNSET || params->backfill != MAYBE_UNSET
           || params->backfill_reservations != RESOURCE_GROUP_UNSET
           || params->backfill_max_wait_sec != RESOURCE_GROUP_UNSET
           || params->splitting != MAYBE_UNSET || params->allowed_session_types.count
           || params->networks.count || params->preemption || params->fair_share
           || params->handler_options;
}

static json_t *resource_group_list_words(const struct str_list *words)
{
    json_t *list = json_array();

    for (size_t i = 0; i < words->count; i++)
        json_array_append_new(list, json_string(words->items[i]));
    return list;
}

/* Users may be named by e-mail; their ids are kept. */
static json_t *resource_group_resolve_users(struct account_row *row, const json_t *from)
{
    json_t *resolved = json_object(), *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)from, key, value) {
        char text[UUID_TEXT_MAX + 8] = "user:";
        const struct user *user;

        if (strncmp(key, text, 5) || !strchr(key, '@')) {
            json_object_set(resolved, key, value);
        } else if (!(user = core_find_user_by_email(row->api->core, key + 5))) {
            api_fail_param(&row->err, "fair_share", "there is no user '%.64s'", key + 5);
        } else {
            uuid_format(&user->id, text + 5);
            json_object_set(resolved, text, value);
        }
    }
    return resolved;
}

/* Its members over those that are there. */
static void resource_group_merge_object(json_t *opts, const char *key, const json_t *from)
{
    if (!json_is_object(json_object_get(opts, key)))
        json_object_set_new(opts, key, json_object());
    json_object_update(json_object_get(opts, key), (json_t *)(uintptr_t)from);
}

static void resource_group_merge_fair_share(struct account_row *row, json_t *opts,
                                            const json_t *given)
{
    json_auto_t *resolved = resource_group_resolve_users(row, given);
    const char *key;
    json_t *value;

    resource_group_merge_object(opts, "fair_share", resolved);
    json_object_foreach(resolved, key, value)
        if (json_is_null(value))
            json_object_del(json_object_get(opts, "fair_share"), key);
}

/* A new group has backfill, unless its options say otherwise: that, or after how many tries others
 * pass.
 */
static void resource_group_default_backfill(json_t *opts)
{
    const json_t *retries = json_object_get(json_object_get(opts, "config"), "num_retries_to_skip");

    if (!json_object_get(opts, "backfill") && json_integer_value(retries) == 0)
        json_object_set_new(opts, "backfill", json_true());
}

/* What is given one by one goes into the options as they are given whole, or as they were. The
 * timeout is also a column.
 */
static char *resource_group_merge_options(struct account_row *row, const char *whole)
{
    const struct resource_group_request *params = row->params;
    json_auto_t *opts = json_load_string(whole, 0);
    json_t *config;

    if (!json_is_object(opts)) { /* of a database of another version */
        json_decref(opts);
        opts = json_object();
    }
    config = json_object_get(opts, "config");
    if (params->retries != RESOURCE_GROUP_UNSET && !json_is_object(config)) {
        json_object_set_new(opts, "config", json_object());
        config = json_object_get(opts, "config");
    }
    if (params->retries != RESOURCE_GROUP_UNSET)
        json_object_set_new(config, "num_retries_to_skip", json_integer(params->retries));
    if (params->backfill != MAYBE_UNSET)
        json_object_set_new(opts, "backfill", json_boolean(params->backfill == MAYBE_TRUE));
    if (params->backfill_reservations != RESOURCE_GROUP_UNSET)
        json_object_set_new(opts, "backfill_reservations",
                            json_integer(params->backfill_reservations));
    if (params->backfill_max_wait_sec != RESOURCE_GROUP_UNSET)
        json_object_set_new(opts, "backfill_max_wait", json_integer(params->backfill_max_wait_sec));
    if (params->splitting != MAYBE_UNSET)
        json_object_set_new(opts, RESOURCE_OPTS_SPLITTING,
                            json_boolean(params->splitting == MAYBE_TRUE));
    if (params->allowed_session_types.count)
        json_object_set_new(opts, "allowed_session_types",
                            resource_group_list_words(&params->allowed_session_types));
    if (params->networks.count)
        json_object_set_new(opts, "allowed_networks", resource_group_list_words(&params->networks));
    if (params->group.pending_timeout_usec != RESOURCE_GROUP_UNSET)
        json_object_set_new(opts, "pending_timeout",
                            json_integer(params->group.pending_timeout_usec / USEC_PER_SEC));
    if (params->fair_share)
        resource_group_merge_fair_share(row, opts, params->fair_share);
    if (params->preemption)
        resource_group_merge_object(opts, "preemption", params->preemption);
    if (params->handler_options)
        resource_group_merge_object(opts, "handler_options", params->handler_options);
    if (params->group.selection && !params->group.scheduler_opts)
        json_object_del(opts, "agent_selection_strategy"); /* which would be before it */
    if (!row->old)
        resource_group_default_backfill(opts);
    return json_dump_text(opts, JSON_COMPACT);
}

/* What was stored before stays, even if this version would not take it. */
static void resource_group_check_scheduling(struct account_row *row,
                                            const struct resource_group_request *params,
                                            const struct resource_group *group)
{
    struct aq_error err;

    if ((params->group.scheduler || resource_group_sets_options(params))
        && core_check_scheduling(group, &err) < 0)
        api_fail_param(&row->err, err.field, "%s", err.text);
}

/* Set a text that the row of another version lacks. */
static void resource_group_default_text(char **text)
{
    if (!*text)
        *text = aq_strdup("{}");
}

static void resource_group_complete(struct account_row *row)
{
    const struct resource_group_request *params = row->params;
    const struct resource_group *old = row->old;
    struct resource_group *group = &row->event->resource_group;
    struct core_scheduling scheduling;

    resource_group_check_names(row, (const void *)params->group.scheduler_opts); /* JSON */
    resource_group_default_text(&group->scheduler_opts);
    resource_group_default_text(&group->driver_opts);
    if (!old || resource_group_sets_options(params)) {
        AQ_CLEANUP(aq_freep) char *whole = group->scheduler_opts;

        group->scheduler_opts = resource_group_merge_options(row, whole);
    }
    group->pending_timeout_usec = old ? old->pending_timeout_usec : 0;
    resource_group_check_scheduling(row, params, group);
    core_read_scheduling(group, &scheduling);
    group->pending_timeout_usec = scheduling.pending_timeout_usec;
}

static void resource_group_select_row(struct account_row *row, struct store_query *query)
{
    query->name = account_keep(row, row->event->resource_group.name);
}

const struct account_kind account_resource_group = {
    .object = "scaling group",
    .noun = "resource group",
    .purge = PURGE_RESOURCE_GROUP,
    .event = EVENT_RESOURCE_GROUP_SAVED,
    .entity = &resource_group_entity,
    .offset = offsetof(struct event, resource_group),
    .create = resource_group_create,
    .change = resource_group_change,
    .params_size = sizeof(struct resource_group_request),
    .defaults = &resource_group_no_request,
    .list = store_list_resource_groups,
    .find = resource_group_find,
    .find_same = resource_group_find_same,
    .complete = resource_group_complete,
    .select = resource_group_select_row,
};
