/* SPDX-License-Identifier: Apache-2.0 */
/* Resource groups: what can be given, and what becomes of it. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/suggest.h"
#include "manager/account/account.h"
#include "model/resource_opts.h"

#define UNSET (-1)

struct resource_group_params {
    const char *name, *description, *scheduler, *selection, *agent_loss_policy;
    const json_t *scheduler_opts, *driver_opts, *preemption, *fair_share, *handler_options;
    struct str_list allowed_session_types;
    enum maybe is_active, backfill, splitting;
    int64_t retries, backfill_reservations, backfill_max_wait_sec;
    int64_t pending_timeout_sec, agent_loss_grace_sec;
};

#define COUNT_MAX 1000000

/* clang-format off */
#define CHANGES                                                                                    \
    { "description", FIELD_STR, FIELD_NULLABLE | FIELD_LINES, offsetof(struct resource_group_params, description), 0, 512 },    \
    { "is_active", FIELD_MAYBE, 0, offsetof(struct resource_group_params, is_active) },                           \
    { "scheduler", FIELD_STR, 0, offsetof(struct resource_group_params, scheduler), 1, 64, \
      .doc = "fifo, lifo, drf or fair-share" },                                                     \
    { "scheduler_opts", FIELD_OBJECT, 0, offsetof(struct resource_group_params, scheduler_opts) },                \
    { "driver_opts", FIELD_OBJECT, 0, offsetof(struct resource_group_params, driver_opts),         \
      .doc = "kept for Backend.AI's clients, and without effect" },                                \
    { "selection", FIELD_STR, 0, offsetof(struct resource_group_params, selection), 1, 64,                        \
      .doc = "concentrated, dispersed, round-robin, legacy, fragmentation, bin-packing or "        \
             "high-performance" },                                                                 \
    { "retries", FIELD_INT, 0, offsetof(struct resource_group_params, retries), 0, COUNT_MAX,                     \
      .doc = "fifo without backfill: who found no room so often is passed by others; 0 = nobody" },                 \
    { "backfill", FIELD_MAYBE, 0, offsetof(struct resource_group_params, backfill),                               \
      .doc = "others may start first if that delays nobody; true for a new group" },          \
    { "backfill_reservations", FIELD_INT, 0, offsetof(struct resource_group_params, backfill_reservations), 0,    \
      COUNT_MAX, .doc = "that many get a time to start; 0 = all" },                                \
    { "backfill_max_wait_sec", FIELD_INT, 0, offsetof(struct resource_group_params, backfill_max_wait_sec), 0,    \
      INT64_C(1) << 30, .doc = "resources are kept for a session without a start time that has waited this long; 0 = never" }, \
    { RESOURCE_OPTS_SPLITTING, FIELD_MAYBE, 0, offsetof(struct resource_group_params, splitting),   \
      .doc = "whether amounts of devices may be split, of sessions that do not say it" },          \
    { "allowed_session_types", FIELD_STR_LIST, 0,                                                  \
      offsetof(struct resource_group_params, allowed_session_types), 0, 8,                                        \
      .doc = "what may be made in it; interactive and batch unless set" },                         \
    { "fair_share", FIELD_OBJECT, 0, offsetof(struct resource_group_params, fair_share),                          \
      .doc = "half_life_days, lookback_days, default_weight, and weights: slot:NAME, "             \
             "domain:NAME, project:ID, user:ID or E-MAIL, user:ID/PROJECT-ID; what is not named "  \
             "stays, what is null goes" },                                                         \
    { "preemption", FIELD_OBJECT, 0, offsetof(struct resource_group_params, preemption),                          \
      .doc = "which sessions preempt which: enabled, order, mode, interactive, victim_scope, "     \
             "preemption_min_runtime, preemptible_priority; what is not named stays" },            \
    { "handler_options", FIELD_OBJECT, 0, offsetof(struct resource_group_params, handler_options),                \
      .doc = "how often a start is tried, and for how long: schedule-sessions, "                   \
             "check-precondition, start-sessions, each with .max_retry_count and .timeout; "      \
             "what is not named stays" },                                                          \
    { "pending_timeout_sec", FIELD_INT, 0, offsetof(struct resource_group_params, pending_timeout_sec), 0,        \
      INT64_C(1) << 30, .doc = "0 = none" },                                                       \
    { "agent_loss_policy", FIELD_STR, 0, offsetof(struct resource_group_params, agent_loss_policy), 1, 16,        \
      .doc = "wait, terminate or requeue" },                                                       \
    { "agent_loss_grace_sec", FIELD_INT, 0, offsetof(struct resource_group_params, agent_loss_grace_sec), 0,      \
      INT64_C(1) << 30 }
/* clang-format on */

const struct field account_resource_group_create[] = {
    { "name", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, offsetof(struct resource_group_params, name),
      1, 64 },
    CHANGES,
    FIELD_END,
};

const struct field account_resource_group_change[] = { CHANGES, FIELD_END };

static const void *resource_group_find(const struct core *core, const char *key)
{
    return core_find_resource_group(core, key);
}

static const void *resource_group_find_same(const struct core *core, const void *params)
{
    return core_find_resource_group(core, ((const struct resource_group_params *)params)->name);
}

static void resource_group_check_word(struct account_row *row, const char *field, const char *text,
                                      const char *const *words)
{
    for (size_t i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return;
    if (text)
        api_fail_param(&row->err, field, "'%s' is none of its values", text);
}

static void resource_group_check(struct account_row *row,
                                 const struct resource_group_params *params)
{
    static const char *const policies[] = { "wait", "terminate", "requeue", NULL };

    resource_group_check_word(row, "agent_loss_policy", params->agent_loss_policy, policies);
}

/* What scheduler_opts and its member "config" may have that means something. */
static const char *const resource_group_options[] = { "agent_selection_strategy",
                                                      RESOURCE_OPTS_SPLITTING,
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
        if (strbuf_ok(&name))
            jsonw_str(w, name.data);
        else
            w->out->failed = true;
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

static bool resource_group_sets_options(const struct resource_group_params *params)
{
    return params->scheduler_opts || params->selection || params->retries != UNSET
           || params->backfill != MAYBE_UNSET || params->backfill_reservations != UNSET
           || params->backfill_max_wait_sec != UNSET || params->splitting != MAYBE_UNSET
           || params->allowed_session_types.count || params->pending_timeout_sec != UNSET
           || params->preemption || params->fair_share || params->handler_options;
}

static json_t *resource_group_list_types(const struct str_list *types)
{
    json_t *list = json_array();

    for (size_t i = 0; i < types->count; i++)
        json_array_append_new(list, json_string(types->items[i]));
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

/* Texts of JSON: what is given one by one goes into the options as they are
 * given whole, or as they were. The timeout is also a column.
 */
static char *resource_group_merge_options(struct account_row *row, const char *old)
{
    const struct resource_group_params *params = row->params;
    json_auto_t *opts = params->scheduler_opts ? json_deep_copy(params->scheduler_opts)
                                               : json_load_string(old, 0);
    json_t *config;

    if (!json_is_object(opts)) { /* of a database of another version */
        json_decref(opts);
        opts = json_object();
    }
    config = json_object_get(opts, "config");
    if (params->retries != UNSET && !json_is_object(config)) {
        json_object_set_new(opts, "config", json_object());
        config = json_object_get(opts, "config");
    }
    if (params->retries != UNSET)
        json_object_set_new(config, "num_retries_to_skip", json_integer(params->retries));
    if (params->backfill != MAYBE_UNSET)
        json_object_set_new(opts, "backfill", json_boolean(params->backfill == MAYBE_TRUE));
    if (params->backfill_reservations != UNSET)
        json_object_set_new(opts, "backfill_reservations",
                            json_integer(params->backfill_reservations));
    if (params->backfill_max_wait_sec != UNSET)
        json_object_set_new(opts, "backfill_max_wait", json_integer(params->backfill_max_wait_sec));
    if (params->splitting != MAYBE_UNSET)
        json_object_set_new(opts, RESOURCE_OPTS_SPLITTING,
                            json_boolean(params->splitting == MAYBE_TRUE));
    if (params->allowed_session_types.count)
        json_object_set_new(opts, "allowed_session_types",
                            resource_group_list_types(&params->allowed_session_types));
    if (params->pending_timeout_sec != UNSET)
        json_object_set_new(opts, "pending_timeout", json_integer(params->pending_timeout_sec));
    if (params->fair_share)
        resource_group_merge_fair_share(row, opts, params->fair_share);
    if (params->preemption)
        resource_group_merge_object(opts, "preemption", params->preemption);
    if (params->handler_options)
        resource_group_merge_object(opts, "handler_options", params->handler_options);
    if (params->selection && !params->scheduler_opts)
        json_object_del(opts, "agent_selection_strategy"); /* which would be before it */
    if (!row->old)
        resource_group_default_backfill(opts);
    return json_dump_text(opts, JSON_COMPACT);
}

/* What was stored before stays, even if this version would not take it. */
static void resource_group_check_scheduling(struct account_row *row,
                                            const struct resource_group_params *params,
                                            const struct resource_group *group)
{
    struct aq_error err;

    if ((params->scheduler || resource_group_sets_options(params))
        && core_check_scheduling(group, &err) < 0)
        api_fail_param(&row->err, err.field, "%s", err.text);
}

static void resource_group_fill(struct account_row *row)
{
    static const struct resource_group fresh = {
        .is_active = true,
        .agent_loss_grace_usec = 300 * USEC_PER_SEC,
    };
    const struct resource_group_params *params = row->params;
    const struct resource_group *old = row->old ? row->old : &fresh;
    struct resource_group *group = &row->event->resource_group;
    const char *old_opts = old->scheduler_opts ? old->scheduler_opts : "{}";
    struct core_scheduling scheduling;

    resource_group_check(row, params);
    resource_group_check_names(row, params->scheduler_opts);
    group->name = account_text(row, params->name, old->name);
    group->description = account_text(row, params->description, old->description);
    group->is_active = account_bool(params->is_active, old->is_active);
    group->scheduler = account_text(row, params->scheduler,
                                    old->scheduler ? old->scheduler : "fifo");
    group->scheduler_opts = !row->old || resource_group_sets_options(params)
                                ? resource_group_merge_options(row, old_opts)
                                : account_text(row, NULL, old_opts);
    if (!group->scheduler_opts)
        aq_fail_oom(&row->err);
    group->driver_opts = params->driver_opts
                             ? json_dump_text(params->driver_opts, JSON_COMPACT)
                             : account_text(row, NULL, old->driver_opts ? old->driver_opts : "{}");
    if (!group->driver_opts)
        aq_fail_oom(&row->err);
    group->selection = account_text(row, params->selection,
                                    old->selection ? old->selection : "concentrated");
    resource_group_check_scheduling(row, params, group);
    group->agent_loss_policy = account_text(
        row, params->agent_loss_policy, old->agent_loss_policy ? old->agent_loss_policy : "wait");
    group->pending_timeout_usec = old->pending_timeout_usec;
    core_read_scheduling(group, &scheduling);
    group->pending_timeout_usec = scheduling.pending_timeout_usec;
    group->agent_loss_grace_usec = params->agent_loss_grace_sec == UNSET
                                       ? old->agent_loss_grace_usec
                                       : params->agent_loss_grace_sec * USEC_PER_SEC;
}

static void resource_group_select_row(struct account_row *row, struct store_query *query)
{
    query->name = account_keep(row, row->event->resource_group.name);
}

static const struct resource_group_params defaults = { .retries = UNSET,
                                                       .backfill_reservations = UNSET,
                                                       .backfill_max_wait_sec = UNSET,
                                                       .pending_timeout_sec = UNSET,
                                                       .agent_loss_grace_sec = UNSET };

const struct account_kind account_resource_group = {
    .object = "scaling group",
    .noun = "resource group",
    .purge = PURGE_RESOURCE_GROUP,
    .event = EVENT_RESOURCE_GROUP_SAVED,
    .create = account_resource_group_create,
    .change = account_resource_group_change,
    .params_size = sizeof(struct resource_group_params),
    .defaults = &defaults,
    .list = store_list_resource_groups,
    .find = resource_group_find,
    .find_same = resource_group_find_same,
    .fill = resource_group_fill,
    .select = resource_group_select_row,
};
