/* What there is to be had: slot types, resource groups, presets, what is left. */
#include <errno.h>
#include <string.h>

#include "manager/api/api.h"
#include "manager/api/plugins.h"

static void on_slots(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct slot_types *types = core_slot_types(((const struct api *)data)->core);
    struct jsonw w = jsonw_make(&out);
    enum slot_type type;

    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    for (size_t i = 0; i < slot_types_count(types); i++) {
        const char *name = slot_types_name(types, i, &type);

        jsonw_member_str(&w, name, slot_type_name(type));
    }
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

struct details_params {
    const char *group;
};

static const struct field details_fields[] = {
    { "sgroup", FIELD_STR, FIELD_NULLABLE, offsetof(struct details_params, group), 1, 64 },
    FIELD_END,
};

static void on_slot_details(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct api *api = data;
    struct details_params params = { .group = NULL };
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    plugins_write_slots(api->core, params.group, &w);
    request_reply_json(req, 200, &out);
}

/* ---- resource groups that the caller may use ---- */

struct groups_params {
    const char *group;
};

static const struct field groups_fields[] = {
    { "group|group_id|group_name", FIELD_STR, FIELD_NULLABLE,
      offsetof(struct groups_params, group), 1, 64, .doc = "name or id of a project" },
    FIELD_END,
};

struct groups {
    struct request *req;
    const char *domain, *access_key;
    struct uuid group_id; /* nil = none */
    struct store_page *page;
};

static int read_groups(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct groups *groups = data;

    return store_list_allowed_resource_groups(
        tx, groups->domain, uuid_is_nil(&groups->group_id) ? NULL : &groups->group_id,
        groups->access_key, &groups->page, err);
}

static void on_groups_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct groups *groups = data;

    if (r < 0) {
        request_fail(groups->req, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "scaling_groups");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < groups->page->count; i++) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "name", groups->page->resource_groups[i].name);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    store_page_free(groups->page);
    request_reply_json(groups->req, 200, &out);
}

/* The project that a caller names, by id or by name within the own domain. */
static int find_group(const struct api *api, const struct request *req, const char *text,
                      const struct group **ret, struct aq_error *err)
{
    const struct principal *who = api_principal(req);
    struct uuid id;

    *ret = uuid_parse(text, &id) == 0
        ? core_find_group(api->core, &id)
        : core_find_group_named(api->core, who->domain ? who->domain : "default", text);
    if (*ret && (principal_is_superadmin(who)
                 || (who->domain && strcmp((*ret)->domain, who->domain) == 0)))
        return 0;
    return problem_no_such(err, "user group (or project)", "'%.64s' does not exist", text);
}

static void on_groups(struct request *req, void *data)
{
    struct groups *groups = arena_alloc(request_get_arena(req), sizeof(*groups));
    const struct principal *who = api_principal(req);
    struct groups_params params = { 0 };
    const struct group *group = NULL;
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (!groups)
        aq_fail(&err, ENOMEM, "resource groups");
    if (err.code || api_decode(req, &params, NULL, &err) < 0
        || (params.group && find_group(api, req, params.group, &group, &err) < 0)) {
        request_fail(req, &err);
        return;
    }
    *groups = (struct groups){ .req = req, .domain = who->domain, .access_key = who->access_key };
    if (group)
        groups->group_id = group->id;
    if (store_read(core_store(api->core), read_groups, on_groups_read, groups) < 0) {
        aq_fail(&err, ENOMEM, "resource groups");
        request_fail(req, &err);
    }
}

/* ---- presets: none are kept yet, so all of them are listed ---- */

static void on_presets(struct request *req, void *data)
{
    static const char none[] = "{\"presets\":[]}";

    (void)data;
    if (api_has_no_params(req))
        request_reply(req, 200, "application/json", none, sizeof(none) - 1);
}

/* ---- what is left ---- */

struct check_params {
    const char *group, *resource_group;
};

static const struct field check_fields[] = {
    { "group", FIELD_STR, FIELD_NULLABLE, offsetof(struct check_params, group), 1, 64 },
    { "scaling_group|scalingGroup", FIELD_STR, FIELD_NULLABLE,
      offsetof(struct check_params, resource_group), 1, 64 },
    FIELD_END,
};

/* One map over all known slots: 'limit' - 'used', "Infinity" without a limit. */
static void write_amounts(struct jsonw *w, const char *key, const struct slot_types *types,
                          const struct slots *limit, bool is_unlimited, const struct slots *used)
{
    char text[AMOUNT_TEXT_MAX];
    enum slot_type type;

    jsonw_key(w, key);
    jsonw_object_begin(w);
    for (size_t i = 0; i < slot_types_count(types); i++) {
        const char *name = slot_types_name(types, i, &type);
        int64_t amount = AMOUNT_INFINITE, taken = used ? slots_get(used, name) : 0;

        for (size_t s = 0; limit && s < limit->count; s++)
            if (limit->items[s].name == name)
                amount = limit->items[s].amount;
        if (amount == AMOUNT_INFINITE && !is_unlimited)
            amount = 0;
        if (amount != AMOUNT_INFINITE)
            amount = AQ_MAX(amount - taken, 0);
        jsonw_member_str(w, name, slot_amount_format(amount, type, text));
    }
    jsonw_object_end(w);
}

static void write_using(struct jsonw *w, const char *key, const struct slot_types *types,
                        const struct slots *using)
{
    char text[AMOUNT_TEXT_MAX];
    enum slot_type type;

    jsonw_key(w, key);
    jsonw_object_begin(w);
    for (size_t i = 0; i < slot_types_count(types); i++) {
        const char *name = slot_types_name(types, i, &type);

        jsonw_member_str(w, name, slot_amount_format(slots_get(using, name), type, text));
    }
    jsonw_object_end(w);
}

static int write_keypair(const struct api *api, const struct request *req,
                         const struct slot_types *types, struct jsonw *w)
{
    const struct keypair *key = core_find_keypair(api->core, api_principal(req)->access_key);
    const struct keypair_policy *policy = key ? core_find_policy(api->core, key->policy) : NULL;
    const struct slots *limit = policy ? &policy->total_slots : NULL;
    bool is_unlimited = !policy || policy->unlimited_unspecified;
    AQ_CLEANUP(slots_donep) struct slots held = { 0 };
    size_t sessions;
    int r;

    if ((r = core_get_usage(api->core, api_principal(req)->access_key, &held, &sessions)) < 0)
        return r;
    write_amounts(w, "keypair_limits", types, limit, is_unlimited, NULL);
    write_using(w, "keypair_using", types, &held);
    write_amounts(w, "keypair_remaining", types, limit, is_unlimited, &held);
    return 0;
}

static int write_project(const struct api *api, const struct group *group,
                         const struct slot_types *types, struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots held = { 0 };
    int r = 0;

    for (const struct session *s = core_next_session(api->core, NULL); s;
         s = core_next_session(api->core, s))
        for (size_t k = 0; k < s->kernel_count && uuid_equals(&s->group_id, &group->id); k++)
            if (kernel_is_holding(s->kernels[k].status)
                && (r = slots_add(&held, &s->kernels[k].requested)) < 0)
                return r;
    write_amounts(w, "group_limits", types, &group->total_slots, true, NULL);
    write_using(w, "group_using", types, &held);
    write_amounts(w, "group_remaining", types, &group->total_slots, true, &held);
    return 0;
}

/* What the group's agents that take sessions offer, and what of it is taken. */
static int sum_agents(const struct api *api, const char *resource_group, struct slots *offered,
                      struct slots *held)
{
    const struct agent *agent;
    int r = 0;

    for (size_t i = 0; r == 0 && (agent = core_get_agent(api->core, i)); i++) {
        AQ_CLEANUP(slots_donep) struct slots occupied = { 0 };

        if (agent->status != AGENT_ALIVE || !agent->schedulable || !agent->resource_group
            || strcmp(agent->resource_group, resource_group) != 0)
            continue;
        if ((r = core_get_occupied(api->core, agent->id, &occupied)) == 0
            && (r = slots_add(held, &occupied)) == 0)
            r = slots_add(offered, &agent->available);
    }
    return r;
}

static int write_resource_groups(const struct api *api, const char *only,
                                 const struct slot_types *types, struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots all_offered = { 0 }, all_held = { 0 };
    const struct resource_group *group;
    int r;

    jsonw_key(w, "scaling_groups");
    jsonw_object_begin(w);
    for (size_t i = 0; (group = core_get_resource_group(api->core, i)); i++) {
        AQ_CLEANUP(slots_donep) struct slots offered = { 0 }, held = { 0 };

        if (only && strcmp(only, group->name) != 0)
            continue;
        if ((r = sum_agents(api, group->name, &offered, &held)) < 0
            || (r = slots_add(&all_offered, &offered)) < 0
            || (r = slots_add(&all_held, &held)) < 0)
            return r;
        jsonw_key(w, group->name);
        jsonw_object_begin(w);
        write_using(w, "using", types, &held);
        write_amounts(w, "remaining", types, &offered, false, &held);
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
    write_amounts(w, "scaling_group_remaining", types, &all_offered, false, &all_held);
    return 0;
}

static void on_check(struct request *req, void *data)
{
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types
        = slot_types_ref(core_slot_types(((const struct api *)data)->core));
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct check_params params = { .group = "default" };
    struct jsonw w = jsonw_make(&out);
    const struct group *group;
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || find_group(api, req, params.group, &group, &err) < 0
        || (params.resource_group && !core_find_resource_group(api->core, params.resource_group)
            && problem_no_such(&err, "scaling group", "'%s' does not exist",
                               params.resource_group) < 0)) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    if (write_keypair(api, req, types, &w) < 0 || write_project(api, group, types, &w) < 0
        || write_resource_groups(api, params.resource_group, types, &w) < 0)
        out.failed = true;
    jsonw_key(&w, "presets");
    jsonw_array_begin(&w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

const struct route resource_routes[] = {
    { METHOD_GET, "/config/resource-slots", API_PUBLIC, on_slots, NULL,
      "Known slots and their units" },
    { METHOD_GET, "/config/resource-slots/details", API_USER, on_slot_details, details_fields,
      "How the slots are called and shown" },
    { METHOD_GET, "/scaling-groups", API_USER, on_groups, groups_fields,
      "Resource groups that the caller may use" },
    { METHOD_GET, "/resource/presets", API_USER, on_presets, NULL, "Resource presets" },
    { METHOD_POST, "/resource/check-presets", API_USER, on_check, check_fields,
      "What is used and left: of the keypair, the project and the resource groups" },
};
API_ROUTES_END(resource);
