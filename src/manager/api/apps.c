/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's main kernel publishes: GET /stream/session/{name}/apps.
 *
 * This is the list that a proxy chooses from when somebody wants to connect to
 * an app: its host_ports are on the agent that the main kernel runs on.
 */
#include "manager/api/apps.h"

#include "base/json_load.h"
#include "manager/api/resources.h"
#include "manager/api/session_find.h"

const char *apps_raw(const struct session *session)
{
    const char *ports = session && session->kernel_count ? session->kernels[0].service_ports : NULL;

    return ports ? ports : "[]";
}

/* Nothing of what an agent has said is believed: what is no list of numbers is left out. */
static void apps_write_ports(const json_t *ports, struct jsonw *w)
{
    const json_t *port;
    size_t i;

    jsonw_array_begin(w);
    json_array_foreach(ports, i, port)
        if (json_is_integer(port))
            jsonw_int(w, json_integer_value(port));
    jsonw_array_end(w);
}

void apps_write(const struct session *session, struct jsonw *w)
{
    json_auto_t *services = json_load_string(apps_raw(session), 0);
    const json_t *service;
    size_t i;

    jsonw_array_begin(w);
    json_array_foreach(services, i, service) {
        jsonw_object_begin(w);
        jsonw_member_str(w, "name", json_string_value(json_object_get(service, "name")));
        jsonw_member_str(w, "protocol", json_string_value(json_object_get(service, "protocol")));
        jsonw_key(w, "ports");
        apps_write_ports(json_object_get(service, "container_ports"), w);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void apps_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct session *session = session_find_live_by_owner(data, req);

    if (!session)
        return;
    apps_write(session, &w);
    request_reply_json(req, 200, &out);
}

const struct route apps_routes[] = {
    { METHOD_GET, "/stream/session/{name}/apps", API_USER, apps_on_list, owner_fields,
      "What a session's main container publishes" },
};
API_ROUTES_END(apps);
