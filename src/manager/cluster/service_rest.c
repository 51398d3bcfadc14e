/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/services: storage hosts, proxies and web servers, and when each was heard last */
#include "manager/cluster/cluster_feature.h"

static void service_write(void *data, const struct core_front_contact *contact)
{
    struct jsonw *w = data;

    if (contact->kind == FRONT_MANAGER)
        return; /* /aliquot/v1/managers */
    jsonw_object_begin(w);
    jsonw_member_str(w, "kind", core_front_kind_name(contact->kind));
    jsonw_member_str(w, "name", contact->name);
    jsonw_member_str(w, "url", contact->url);
    jsonw_member_bool(w, "connected", contact->is_connected);
    api_write_time(w, "last_contact", contact->heard_usec);
    jsonw_object_end(w);
}

static void service_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;

    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    core_each_front(api->core, service_write, &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static const struct route service_routes[] = {
    { METHOD_GET, "/aliquot/v1/services", API_SUPERADMIN, service_on_list, NULL,
      "Storage hosts, proxies and web servers that have connected" },
};
API_ROUTES_END(service);
