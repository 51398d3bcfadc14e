/* /aliquot/v1/resource-groups: agents that are scheduled together, and how */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "manager/api/people.h"

#define UNSET (-1)

struct params {
    const char *name, *description, *scheduler, *selection, *agent_loss_policy;
    const json_t *scheduler_opts, *preemption, *fair_share, *handler_options;
    struct str_list allowed_session_types;
    enum maybe is_active, backfill;
    int64_t retries, backfill_reservations;
    int64_t pending_timeout_sec, agent_loss_grace_sec;
};

#define COUNT_MAX 1000000

#define CHANGES                                                                                    \
    { "description", FIELD_STR, FIELD_NULLABLE, offsetof(struct params, description), 0, 512 },    \
    { "is_active", FIELD_MAYBE, 0, offsetof(struct params, is_active) },                           \
    { "scheduler", FIELD_STR, 0, offsetof(struct params, scheduler), 1, 64, \
      .doc = "fifo, lifo, drf or fair-share" },                                                     \
    { "scheduler_opts", FIELD_OBJECT, 0, offsetof(struct params, scheduler_opts) },                \
    { "selection", FIELD_STR, 0, offsetof(struct params, selection), 1, 64,                        \
      .doc = "concentrated, dispersed, round-robin, legacy, fragmentation, bin-packing or "        \
             "high-performance" },                                                                 \
    { "retries", FIELD_INT, 0, offsetof(struct params, retries), 0, COUNT_MAX,                     \
      .doc = "fifo: who found no room so often is passed by others; 0 = nobody" },                 \
    { "backfill", FIELD_MAYBE, 0, offsetof(struct params, backfill),                               \
      .doc = "others may start first if that delays nobody" },          \
    { "backfill_reservations", FIELD_INT, 0, offsetof(struct params, backfill_reservations), 0,    \
      COUNT_MAX, .doc = "that many get a time to start; 0 = all" },                                \
    { "allowed_session_types", FIELD_STR_LIST, 0,                                                  \
      offsetof(struct params, allowed_session_types), 0, 8,                                        \
      .doc = "what may be made in it; interactive and batch unless set" },                         \
    { "fair_share", FIELD_OBJECT, 0, offsetof(struct params, fair_share),                          \
      .doc = "half_life_days, lookback_days, default_weight, and weights: slot:NAME, "             \
             "domain:NAME, project:ID, user:ID or E-MAIL; what is not named stays" },              \
    { "preemption", FIELD_OBJECT, 0, offsetof(struct params, preemption),                          \
      .doc = "who makes way for whom: enabled, order, mode, interactive, victim_scope, "           \
             "preemption_min_runtime, preemptible_priority; what is not named stays" },            \
    { "handler_options", FIELD_OBJECT, 0, offsetof(struct params, handler_options),                \
      .doc = "how often a start is tried, and for how long: schedule-sessions, "                   \
             "check-precondition, start-sessions, each with .max_retry_count and .timeout; "      \
             "what is not named stays" },                                                          \
    { "pending_timeout_sec", FIELD_INT, 0, offsetof(struct params, pending_timeout_sec), 0,        \
      INT64_C(1) << 30, .doc = "0 = none" },                                                       \
    { "agent_loss_policy", FIELD_STR, 0, offsetof(struct params, agent_loss_policy), 1, 16,        \
      .doc = "wait, terminate or requeue" },                                                       \
    { "agent_loss_grace_sec", FIELD_INT, 0, offsetof(struct params, agent_loss_grace_sec), 0,      \
      INT64_C(1) << 30 }

static const struct field create_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED, offsetof(struct params, name), 1, 64 },
    CHANGES,
    FIELD_END,
};

static const struct field change_fields[] = { CHANGES, FIELD_END };

static void write_scheduling(const struct resource_group *group, struct jsonw *w)
{
    struct core_scheduling scheduling;

    core_read_scheduling(group, &scheduling);
    jsonw_member_int(w, "retries", scheduling.options.retries_to_skip);
    jsonw_member_bool(w, "backfill", scheduling.options.backfill);
    jsonw_member_int(w, "backfill_reservations", scheduling.options.reservations_max);
    jsonw_key(w, "allowed_session_types");
    jsonw_array_begin(w);
    for (int type = SESSION_INTERACTIVE; type <= SESSION_SYSTEM; type++)
        if (scheduling.session_types >> type & 1)
            jsonw_str(w, session_type_name(type));
    jsonw_array_end(w);
    jsonw_member_int(w, "pending_timeout_sec", scheduling.pending_timeout_usec / USEC_PER_SEC);
    jsonw_key(w, "preemption");
    core_write_preemption(&scheduling, w);
    jsonw_key(w, "handler_options");
    core_write_handler_options(&scheduling, w);
}

static void write_row(const struct api_list *list, const struct store_page *page, size_t i,
                      struct jsonw *w)
{
    const struct resource_group *group = &page->resource_groups[i];

    (void)list;
    jsonw_object_begin(w);
    jsonw_member_str(w, "name", group->name);
    jsonw_member_str(w, "description", group->description);
    jsonw_member_bool(w, "is_active", group->is_active);
    jsonw_member_str(w, "scheduler", group->scheduler);
    api_write_raw(w, "scheduler_opts", group->scheduler_opts);
    jsonw_member_str(w, "selection", group->selection);
    write_scheduling(group, w);
    jsonw_member_str(w, "agent_loss_policy", group->agent_loss_policy);
    jsonw_member_int(w, "agent_loss_grace_sec", group->agent_loss_grace_usec / USEC_PER_SEC);
    jsonw_object_end(w);
}

static const void *find(const struct core *core, const char *key)
{
    return core_find_resource_group(core, key);
}

static const void *find_same(const struct core *core, const void *params)
{
    return core_find_resource_group(core, ((const struct params *)params)->name);
}

static void check_word(struct people_row *row, const char *field, const char *text,
                       const char *const *words)
{
    for (size_t i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return;
    if (text)
        api_fail_param(&row->err, field, "'%s' is none of its values", text);
}

static void check(struct people_row *row, const struct params *params)
{
    static const char *const policies[] = { "wait", "terminate", "requeue", NULL };

    check_word(row, "agent_loss_policy", params->agent_loss_policy, policies);
}

static bool sets_options(const struct params *params)
{
    return params->scheduler_opts || params->retries != UNSET || params->backfill != MAYBE_UNSET
        || params->backfill_reservations != UNSET || params->allowed_session_types.count
        || params->pending_timeout_sec != UNSET || params->preemption
        || params->fair_share || params->handler_options;
}

static json_t *list_types(const struct str_list *types)
{
    json_t *list = json_array();

    for (size_t i = 0; i < types->count; i++)
        json_array_append_new(list, json_string(types->items[i]));
    return list;
}

/* Users may be named by e-mail; their ids are kept. */
static json_t *resolve_users(struct people_row *row, const json_t *from)
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
static void merge_object(json_t *opts, const char *key, const json_t *from)
{
    if (!json_is_object(json_object_get(opts, key)))
        json_object_set_new(opts, key, json_object());
    json_object_update(json_object_get(opts, key), (json_t *)(uintptr_t)from);
}

/* Texts of JSON: what is given one by one goes into the options as they are
 * given whole, or as they were. The timeout is also a column.
 */
static char *merge_options(struct people_row *row, const char *old)
{
    const struct params *params = row->params;
    json_auto_t *opts = params->scheduler_opts ? json_deep_copy(params->scheduler_opts)
                                               : json_loads(old, 0, NULL);
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
    if (params->allowed_session_types.count)
        json_object_set_new(opts, "allowed_session_types",
                            list_types(&params->allowed_session_types));
    if (params->pending_timeout_sec != UNSET)
        json_object_set_new(opts, "pending_timeout", json_integer(params->pending_timeout_sec));
    if (params->fair_share) {
        json_auto_t *resolved = resolve_users(row, params->fair_share);

        merge_object(opts, "fair_share", resolved);
    }
    if (params->preemption)
        merge_object(opts, "preemption", params->preemption);
    if (params->handler_options)
        merge_object(opts, "handler_options", params->handler_options);
    return json_dumps(opts, JSON_COMPACT);
}

/* What was stored before stays, even if this version would not take it. */
static void check_scheduling(struct people_row *row, const struct params *params,
                             const struct resource_group *group)
{
    struct aq_error err;

    if ((params->scheduler || params->selection || sets_options(params)) &&
        core_check_scheduling(group, &err) < 0)
        api_fail_param(&row->err, err.field, "%s", err.text);
}

static void fill(struct people_row *row)
{
    static const struct resource_group fresh = {
        .is_active = true,
        .agent_loss_grace_usec = 300 * USEC_PER_SEC,
    };
    const struct params *params = row->params;
    const struct resource_group *old = row->old ? row->old : &fresh;
    struct resource_group *group = &row->event->resource_group;
    const char *old_opts = old->scheduler_opts ? old->scheduler_opts : "{}";
    struct core_scheduling scheduling;

    check(row, params);
    group->name = people_text(row, params->name, old->name);
    group->description = people_text(row, params->description, old->description);
    group->is_active = people_bool(params->is_active, old->is_active);
    group->scheduler = people_text(row, params->scheduler, old->scheduler ? old->scheduler : "fifo");
    group->scheduler_opts = sets_options(params) ? merge_options(row, old_opts)
                                                 : people_text(row, NULL, old_opts);
    if (!group->scheduler_opts)
        aq_fail(&row->err, ENOMEM, "row");
    group->driver_opts = people_text(row, NULL, old->driver_opts ? old->driver_opts : "{}");
    group->selection = people_text(row, params->selection,
                                   old->selection ? old->selection : "concentrated");
    check_scheduling(row, params, group);
    group->agent_loss_policy = people_text(
        row, params->agent_loss_policy, old->agent_loss_policy ? old->agent_loss_policy : "wait");
    group->pending_timeout_usec = old->pending_timeout_usec;
    core_read_scheduling(group, &scheduling);
    group->pending_timeout_usec = scheduling.pending_timeout_usec;
    group->agent_loss_grace_usec = params->agent_loss_grace_sec == UNSET
        ? old->agent_loss_grace_usec : params->agent_loss_grace_sec * USEC_PER_SEC;
}

static void select_row(struct people_row *row, struct store_query *query)
{
    query->name = people_keep(row, row->event->resource_group.name);
}

static const struct params defaults = { .retries = UNSET, .backfill_reservations = UNSET,
                                        .pending_timeout_sec = UNSET,
                                        .agent_loss_grace_sec = UNSET };

static const struct people_kind kind = {
    .object = "scaling group",
    .event = EVENT_RESOURCE_GROUP_SAVED,
    .params_size = sizeof(struct params),
    .defaults = &defaults,
    .list = store_list_resource_groups,
    .write = write_row,
    .narrow = people_narrow_nothing,
    .find = find,
    .find_same = find_same,
    .fill = fill,
    .select = select_row,
};

PEOPLE_HANDLERS(kind)

/* ---- who may use it ---- */

struct allow_params {
    const char *domain, *group, *access_key;
};

static const struct field allow_fields[] = {
    { "domain", FIELD_STR, 0, offsetof(struct allow_params, domain), 1, 64 },
    { "group", FIELD_STR, 0, offsetof(struct allow_params, group), 1, 64, .doc = "id" },
    { "access_key", FIELD_STR, 0, offsetof(struct allow_params, access_key), 1, 64 },
    FIELD_END,
};

static void on_allow(struct request *req, void *data)
{
    const char *name = request_get_param(req, "key");
    struct allow_params params = { 0 };
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0) {
        if (!core_find_resource_group(api->core, name))
            problem_no_such(&err, "scaling group", "'%.64s' does not exist", name);
        else if (!params.domain + !params.group + !params.access_key != 2)
            api_fail_param(&err, "body", "give one of domain, group and access_key");
    }
    if (err.code)
        request_fail(req, &err);
    else
        core_allow_resource_group(api->core, name, params.domain, params.group, params.access_key,
                                  api_reply_done, req);
}

const struct route resource_group_routes[] = {
    { METHOD_GET, "/aliquot/v1/resource-groups", API_ADMIN, on_list, people_page_fields,
      "List resource groups" },
    { METHOD_POST, "/aliquot/v1/resource-groups", API_SUPERADMIN, on_create, create_fields,
      "Make a resource group" },
    { METHOD_PATCH, "/aliquot/v1/resource-groups/{key}", API_SUPERADMIN, on_change, change_fields,
      "Change a resource group" },
    { METHOD_POST, "/aliquot/v1/resource-groups/{key}/allow", API_SUPERADMIN, on_allow,
      allow_fields, "Let a domain, project or keypair use a resource group" },
};
API_ROUTES_END(resource_group);
