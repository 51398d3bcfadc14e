/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to be had: slot types and resource groups. */
#include <errno.h>
#include <string.h>

#include "manager/scheduling/scheduling_feature.h"
#include "manager/node/node.h"
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
    const struct core *core;
    const char *proxy_of; /* the group whose app proxy is asked for; NULL = all are listed */
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

/* "v1" is what clients know as a group without an address of an app proxy. */
static void resource_reply_proxy(const struct allowed_groups *groups)
{
    const char *version = core_find_front_url(groups->core, FRONT_PROXY, NULL)
                              ? "{\"wsproxy_version\":\"v2\"}"
                              : "{\"wsproxy_version\":\"v1\"}";
    struct aq_error err = { 0 };

    for (size_t i = 0; i < groups->page->count; i++)
        if (strcmp(groups->page->resource_groups[i].resource_group.name, groups->proxy_of) == 0) {
            request_reply(groups->req, 200, "application/json", version, strlen(version));
            return;
        }
    problem_no_such(&err, "scaling group", "there is no resource group '%.64s' for you",
                    groups->proxy_of);
    request_fail(groups->req, &err);
}

static void resource_on_allowed_groups_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct allowed_groups *groups = data;
    struct store_page *page;

    if (r < 0) {
        request_fail(groups->req, err);
        return;
    }
    page = groups->page; /* the groups go by the reply */
    if (groups->proxy_of) {
        resource_reply_proxy(groups);
        store_page_free(page);
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

static void resource_on_allowed_groups(struct request *req, void *data)
{
    struct allowed_groups *groups = arena_alloc(request_get_arena(req), sizeof(*groups));
    const struct principal *who = api_principal(req);
    struct allowed_groups_params params = { 0 };
    const struct project *project = NULL;
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || (params.group && api_find_project(api, req, params.group, &project, &err) < 0)) {
        request_fail(req, &err);
        return;
    }
    *groups = (struct allowed_groups){ .req = req,
                                       .core = api->core,
                                       .proxy_of = request_get_param(req, "name"),
                                       .domain = who->domain,
                                       .access_key = who->access_key };
    if (project)
        groups->project_id = project->id;
    store_read(core_store(api->core), resource_read_allowed_groups, resource_on_allowed_groups_read,
               groups);
}

static const struct route resource_routes[] = {
    { METHOD_GET, "/config/resource-slots", API_PUBLIC, resource_on_slots, NULL,
      "Known slots and their units" },
    { METHOD_GET, "/config/resource-slots/details", API_USER, resource_on_slot_details,
      details_fields, "How the slots are called and shown" },
    { METHOD_GET, "/scaling-groups", API_USER, resource_on_allowed_groups, allowed_groups_fields,
      "Resource groups that the caller may use" },
    { METHOD_GET, "/scaling-groups/{name}/wsproxy-version", API_USER, resource_on_allowed_groups,
      allowed_groups_fields, "Which protocol of app proxies a resource group has" },
};
API_ROUTES_END(resource);
