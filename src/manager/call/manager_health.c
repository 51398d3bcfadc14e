/* SPDX-License-Identifier: Apache-2.0 */
/* What each of several managers answers a load balancer of itself. */
#include "manager/call/manager_health.h"

#include "base/jsonw.h"

void manager_health_reply(struct request *req, const struct manager_health *health)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "name", health->name);
    jsonw_member_str(&w, "role", health->role);
    jsonw_key(&w, "leader");
    if (health->leader) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "name", health->leader->name);
        jsonw_member_str(&w, "api", health->leader->api);
        jsonw_object_end(&w);
    } else {
        jsonw_null(&w);
    }
    jsonw_member_int(&w, "epoch", health->epoch);
    jsonw_object_end(&w);
    request_add_header(req, "Cache-Control", "no-store");
    request_reply_json(req, health->leader ? 200 : 503, &out);
}
