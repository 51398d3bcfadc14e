/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/managers: the managers of the cluster, and which of them leads */
#include <errno.h>
#include <string.h>

#include "manager/core/managers.h"
#include "manager/node/node_feature.h"

/* ---- list ---- */

struct managers_list {
    const struct core *core;
    struct jsonw *w;
    int64_t total;
};

static void managers_write_one(void *data, const struct core_manager *manager)
{
    struct managers_list *list = data;
    struct jsonw *w = list->w;
    int64_t taken_usec, epoch = core_get_epoch(list->core, &taken_usec);

    jsonw_object_begin(w);
    jsonw_member_str(w, "name", manager->name);
    jsonw_member_str(w, "role", manager->is_leader ? "leader" : "standby");
    jsonw_member_str(w, "api", manager->api);
    jsonw_member_str(w, "link", manager->link);
    jsonw_member_str(w, "version", manager->version);
    jsonw_member_bool(w, "connected", manager->is_connected);
    api_write_time(w, "heard", manager->heard_usec);
    jsonw_key(w, "epoch");
    if (manager->is_leader && epoch)
        jsonw_int(w, epoch);
    else
        jsonw_null(w);
    api_write_time(w, "since", manager->is_leader ? taken_usec : 0);
    jsonw_object_end(w);
    list->total++;
}

static void managers_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    struct managers_list list = { .core = api->core, .w = &w };

    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    core_each_manager(api->core, managers_write_one, &list);
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", list.total);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* ---- rm ---- */

static void managers_on_remove(struct request *req, void *data)
{
    struct api *api = data;

    if (api_has_no_params(req))
        core_remove_manager(api->core, request_get_param(req, "name"), api_who(api, req),
                            api_reply_done, req);
}

/* ---- yield ---- */

struct yield_params {
    const char *to;
};

static const struct field yield_fields[] = {
    { "to", FIELD_STR, FIELD_NULLABLE, offsetof(struct yield_params, to), 1, 64,
      .doc = "the manager that is to lead; default: the first that can" },
    FIELD_END,
};

struct yield_search {
    const char *to;
    bool is_known, is_leader, is_connected; /* of 'to' */
    size_t standby_count;                   /* that are connected */
};

static void managers_look(void *data, const struct core_manager *manager)
{
    struct yield_search *search = data;

    search->standby_count += !manager->is_leader && manager->is_connected;
    if (!search->to || strcmp(search->to, manager->name) != 0)
        return;
    search->is_known = true;
    search->is_leader = manager->is_leader;
    search->is_connected = manager->is_connected;
}

static int managers_check_yield(const struct api *api, const char *to, struct aq_error *err)
{
    struct yield_search search = { .to = to };

    core_each_manager(api->core, managers_look, &search);
    if (to && !search.is_known)
        return aq_fail_field(err, ENOENT, "to", "there is no manager '%s'", to);
    if (to && search.is_leader)
        return aq_fail_kind(err, EBUSY, "conflict", "manager '%s' leads already", to);
    if (to && !search.is_connected)
        return aq_fail_kind(err, EBUSY, "conflict", "manager '%s' is not connected", to);
    if (!search.standby_count)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "no other manager is connected that could lead: aliquot manager ls");
    return 0;
}

static void managers_on_yield(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct yield_params params = { 0 };
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && managers_check_yield(api, params.to, &err) == 0
        && !api->yield)
        (void)aq_fail_kind(&err, EBUSY, "conflict", "this manager is alone");
    if (!err.code)
        (void)api->yield(api->yield_data, params.to, &err);
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    strbuf_adds(&out, "{}");
    request_reply_json(req, 202, &out);
}

static const struct route managers_routes[] = {
    { METHOD_GET, "/aliquot/v1/managers", API_SUPERADMIN, managers_on_list, NULL,
      "Managers of the cluster: which leads, which are connected" },
    { METHOD_DELETE, "/aliquot/v1/managers/{name}", API_SUPERADMIN, managers_on_remove, NULL,
      "Accept a manager no longer", .answer = { 204 } },
    { METHOD_POST, "/aliquot/v1/managers/yield", API_SUPERADMIN, managers_on_yield, yield_fields,
      "Let another manager lead", .answer = { 202 } },
};
API_ROUTES_END(managers);
