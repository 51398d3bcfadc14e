/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to be had: slot types, resource groups, presets, what is left. */
#include <errno.h>
#include <string.h>

#include "manager/api/resources.h"
#include "manager/view/agent_plugins.h"
#include "store/query.h"

static void resource_on_slots(struct request *req, void *data)
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

static void resource_on_slot_details(struct request *req, void *data)
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

struct allowed_groups_params {
    const char *group;
};

static const struct field allowed_groups_fields[] = {
    { "group|group_id|group_name", FIELD_STR, FIELD_NULLABLE,
      offsetof(struct allowed_groups_params, group), 1, 64, .doc = "name or id of a project" },
    FIELD_END,
};

struct allowed_groups {
    struct request *req;
    const char *domain, *access_key;
    struct uuid project_id; /* nil = none */
    struct store_page *page;
};

static int resource_read_allowed_groups(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct allowed_groups *groups = data;

    return store_list_allowed_resource_groups(
        tx, groups->domain, uuid_is_nil(&groups->project_id) ? NULL : &groups->project_id,
        groups->access_key, &groups->page, err);
}

static void resource_on_allowed_groups_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct allowed_groups *groups = data;

    if (r < 0) {
        request_fail(groups->req, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "scaling_groups");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < groups->page->count; i++) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "name", groups->page->resource_groups[i].resource_group.name);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    store_page_free(groups->page);
    request_reply_json(groups->req, 200, &out);
}

/* The project that a caller names, by id or by name within the own domain. */
static int resource_find_project(const struct api *api, const struct request *req, const char *text,
                                 const struct project **ret, struct aq_error *err)
{
    const struct principal *who = api_principal(req);
    struct uuid id;

    *ret = uuid_parse(text, &id) == 0
               ? core_find_project(api->core, &id)
               : core_find_project_named(api->core, who->domain ? who->domain : "default", text);
    if (*ret
        && (principal_is_superadmin(who)
            || (who->domain && strcmp((*ret)->domain, who->domain) == 0)))
        return 0;
    return problem_no_such(err, "user group (or project)", "there is no project '%.64s'", text);
}

static void resource_on_allowed_groups(struct request *req, void *data)
{
    struct allowed_groups *groups = arena_alloc(request_get_arena(req), sizeof(*groups));
    const struct principal *who = api_principal(req);
    struct allowed_groups_params params = { 0 };
    const struct project *project = NULL;
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (!groups)
        aq_fail_oom(&err);
    if (err.code || api_decode(req, &params, NULL, &err) < 0
        || (params.group && resource_find_project(api, req, params.group, &project, &err) < 0)) {
        request_fail(req, &err);
        return;
    }
    *groups = (struct allowed_groups){ .req = req,
                                       .domain = who->domain,
                                       .access_key = who->access_key };
    if (project)
        groups->project_id = project->id;
    if (store_read(core_store(api->core), resource_read_allowed_groups,
                   resource_on_allowed_groups_read, groups)
        < 0) {
        aq_fail_oom(&err);
        request_fail(req, &err);
    }
}

/* ---- presets: none are kept yet, so all of them are listed ---- */

static void resource_on_presets(struct request *req, void *data)
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
static void resource_write_amounts(struct jsonw *w, const char *key, const struct slot_types *types,
                                   const struct slots *limit, bool is_unlimited,
                                   const struct slots *used)
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

static void resource_write_used(struct jsonw *w, const char *key, const struct slot_types *types,
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

static int resource_write_keypair(const struct api *api, const struct request *req,
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
    resource_write_amounts(w, "keypair_limits", types, limit, is_unlimited, NULL);
    resource_write_used(w, "keypair_using", types, &held);
    resource_write_amounts(w, "keypair_remaining", types, limit, is_unlimited, &held);
    return 0;
}

static int resource_write_project(const struct api *api, const struct project *project,
                                  const struct slot_types *types, struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots held = { 0 };
    int r = 0;

    for (const struct session *s = core_next_session(api->core, NULL); s;
         s = core_next_session(api->core, s))
        for (size_t k = 0; k < s->kernel_count && uuid_equals(&s->project_id, &project->id); k++)
            if (kernel_is_holding(s->kernels[k].status)
                && (r = slots_add(&held, &s->kernels[k].requested)) < 0)
                return r;
    resource_write_amounts(w, "group_limits", types, &project->total_slots, true, NULL);
    resource_write_used(w, "group_using", types, &held);
    resource_write_amounts(w, "group_remaining", types, &project->total_slots, true, &held);
    return 0;
}

/* What the group's agents that take sessions offer, and what of it is taken. */
static int resource_sum_agents(const struct api *api, const char *resource_group,
                               struct slots *offered, struct slots *held)
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

static int resource_write_resource_groups(const struct api *api, const char *only,
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
        if ((r = resource_sum_agents(api, group->name, &offered, &held)) < 0
            || (r = slots_add(&all_offered, &offered)) < 0 || (r = slots_add(&all_held, &held)) < 0)
            return r;
        jsonw_key(w, group->name);
        jsonw_object_begin(w);
        resource_write_used(w, "using", types, &held);
        resource_write_amounts(w, "remaining", types, &offered, false, &held);
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
    resource_write_amounts(w, "scaling_group_remaining", types, &all_offered, false, &all_held);
    return 0;
}

static void resource_on_check_presets(struct request *req, void *data)
{
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types = slot_types_ref(
        core_slot_types(((const struct api *)data)->core));
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct check_params params = { .group = "default" };
    struct jsonw w = jsonw_make(&out);
    const struct project *project;
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || resource_find_project(api, req, params.group, &project, &err) < 0
        || (params.resource_group && !core_find_resource_group(api->core, params.resource_group)
            && problem_no_such(&err, "scaling group", "there is no resource group '%s'",
                               params.resource_group)
                   < 0)) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    if (resource_write_keypair(api, req, types, &w) < 0
        || resource_write_project(api, project, types, &w) < 0
        || resource_write_resource_groups(api, params.resource_group, types, &w) < 0)
        out.failed = true;
    jsonw_key(&w, "presets");
    jsonw_array_begin(&w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

const struct route resource_routes[] = {
    { METHOD_GET, "/config/resource-slots", API_PUBLIC, resource_on_slots, NULL,
      "Known slots and their units" },
    { METHOD_GET, "/config/resource-slots/details", API_USER, resource_on_slot_details,
      details_fields, "How the slots are called and shown" },
    { METHOD_GET, "/scaling-groups", API_USER, resource_on_allowed_groups, allowed_groups_fields,
      "Resource groups that the caller may use" },
    { METHOD_GET, "/resource/presets", API_USER, resource_on_presets, NULL, "Resource presets" },
    { METHOD_POST, "/resource/check-presets", API_USER, resource_on_check_presets, check_fields,
      "What is used and left: of the keypair, the project and the resource groups" },
};
API_ROUTES_END(resource);
