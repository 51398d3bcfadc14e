/* SPDX-License-Identifier: Apache-2.0 */
/* GET /services, POST /services/_/search: the caller's model services, for clients of Backend.AI. */
#include <string.h>
#include <strings.h>

#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_feature.h"

#define SEARCH_MAX 100

static bool services_is_own(const struct request *req, const struct model_service *s)
{
    return uuid_equals(&s->user_id, &api_principal(req)->user_id);
}

/* ---- all ---- */

struct services_list_params {
    const char *name;
};

static const struct field services_list_fields[] = {
    { "name", FIELD_STR, FIELD_NULLABLE, offsetof(struct services_list_params, name), 0, 64 },
    FIELD_END,
};

static void services_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct services_list_params params = { .name = NULL };
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    struct endpoint_row row;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_array_begin(&w);
    for (const struct model_service *s = NULL; (s = core_next_service(api->core, s));) {
        if (!services_is_own(req, s)
            || (params.name && *params.name && strcasecmp(params.name, s->name) != 0))
            continue;
        endpoint_fill(api, s, request_get_arena(req), &row);
        endpoint_write_short(&row, &w);
    }
    jsonw_array_end(&w);
    request_reply_json(req, 200, &out);
}

/* ---- by name ---- */

/* What the name must be, or must have; NULL = anything. */
struct services_search_params {
    const char *equals, *i_equals, *contains, *i_contains, *starts, *i_starts, *ends, *i_ends;
    int64_t offset, limit;
};

#define SEARCH_AT(member) offsetof(struct services_search_params, member)
#define NAME_TEST(name, member)                                   \
    {                                                             \
        name, FIELD_STR, FIELD_NULLABLE, SEARCH_AT(member), 0, 64 \
    }
static const struct field services_name_fields[] = {
    NAME_TEST("equals", equals),
    NAME_TEST("i_equals|iEquals", i_equals),
    NAME_TEST("contains", contains),
    NAME_TEST("i_contains|iContains", i_contains),
    NAME_TEST("starts_with|startsWith", starts),
    NAME_TEST("i_starts_with|iStartsWith", i_starts),
    NAME_TEST("ends_with|endsWith", ends),
    NAME_TEST("i_ends_with|iEndsWith", i_ends),
    FIELD_END,
};

static const struct field services_filter_fields[] = {
    { "name", FIELD_STRUCT, FIELD_NULLABLE, .sub = services_name_fields },
    FIELD_END,
};

static const struct field services_search_fields[] = {
    { "filter", FIELD_STRUCT, FIELD_NULLABLE, .sub = services_filter_fields },
    { "offset", FIELD_INT, FIELD_NULLABLE, SEARCH_AT(offset), 0, 1000000 },
    { "limit", FIELD_INT, FIELD_NULLABLE, SEARCH_AT(limit), 1, SEARCH_MAX },
    FIELD_END,
};

static bool services_ends(const char *name, const char *end, bool any_case)
{
    size_t len = strlen(name), end_len = strlen(end);

    if (end_len > len)
        return false;
    name += len - end_len;
    return any_case ? strcasecmp(name, end) == 0 : strcmp(name, end) == 0;
}

static bool services_is_found(const struct services_search_params *p, const char *name)
{
    return (!p->equals || strcmp(name, p->equals) == 0)
           && (!p->i_equals || strcasecmp(name, p->i_equals) == 0)
           && (!p->contains || strstr(name, p->contains))
           && (!p->i_contains || strcasestr(name, p->i_contains))
           && (!p->starts || strncmp(name, p->starts, strlen(p->starts)) == 0)
           && (!p->i_starts || strncasecmp(name, p->i_starts, strlen(p->i_starts)) == 0)
           && (!p->ends || services_ends(name, p->ends, false))
           && (!p->i_ends || services_ends(name, p->i_ends, true));
}

static void services_write_found(const struct api *api, struct request *req,
                                 const struct model_service *s, struct jsonw *w)
{
    struct endpoint_row row;

    endpoint_fill(api, s, request_get_arena(req), &row);
    jsonw_object_begin(w);
    api_write_uuid(w, "id", &row.id);
    jsonw_member_str(w, "name", row.name);
    jsonw_member_int(w, "replicas", row.replicas);
    jsonw_member_int(w, "desired_session_count", row.replicas);
    jsonw_member_int(w, "active_route_count", row.ready);
    jsonw_member_str(w, "service_endpoint", *row.url ? row.url : NULL);
    jsonw_key(w, "resource_slots");
    jsonw_raw(w, row.resources, strlen(row.resources));
    jsonw_member_str(w, "resource_group", *row.resource_group ? row.resource_group : NULL);
    jsonw_member_bool(w, "open_to_public", row.is_public);
    jsonw_object_end(w);
}

static void services_on_search(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct services_search_params params = { .limit = SEARCH_MAX };
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    struct aq_error err = { 0 };
    int64_t total = 0;

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (const struct model_service *s = NULL; (s = core_next_service(api->core, s));) {
        if (!services_is_own(req, s) || !services_is_found(&params, s->name))
            continue;
        if (total >= params.offset && total < params.offset + params.limit)
            services_write_found(api, req, s, &w);
        total++;
    }
    jsonw_array_end(&w);
    jsonw_key(&w, "pagination");
    jsonw_object_begin(&w);
    jsonw_member_int(&w, "total", total);
    jsonw_member_int(&w, "offset", params.offset);
    jsonw_member_int(&w, "limit", params.limit);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static const struct route backendai_services_list_routes[] = {
    { METHOD_GET, "/services", API_USER, services_on_list, services_list_fields,
      "Model services of the caller that have not ended" },
    { METHOD_POST, "/services/_/search", API_USER, services_on_search, services_search_fields,
      "Model services of the caller by their names" },
};
API_ROUTES_END(backendai_services_list);
