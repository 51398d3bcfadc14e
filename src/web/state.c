/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - what a web server says of itself */
#include "base/jsonw.h"
#include "http/version.h"
#include "web/web.h"

static void state_reply(const struct web *web, struct request *req, bool is_good, const char *state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    front_write_state(web->front, state, &out);
    request_reply_json(req, is_good ? 200 : 503, &out);
}

static void state_on_live(struct request *req, void *data)
{
    state_reply(data, req, true, "alive");
}

static void state_on_ready(struct request *req, void *data)
{
    const struct web *web = data;
    bool is_ready = manager_is_connected(&web->manager) && !web->http.is_draining;

    state_reply(web, req, is_ready, is_ready ? "ready" : "not ready");
}

static void state_on_ping(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    (void)data;
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "version", API_VERSION_ANNOUNCED);
    jsonw_member_str(&w, "details", "Success");
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void state_on_config(struct request *req, void *data)
{
    config_serve(data, req);
}

const struct route state_routes[] = {
    { METHOD_GET, "/func/ping", 0, state_on_ping, .doc = "Is it there?" },
    { METHOD_GET, "/config.toml", 0, state_on_config, .doc = "Settings of the WebUI" },
    { METHOD_GET, "/livez", 0, state_on_live, .doc = "Does it run?" },
    { METHOD_GET, "/readyz", 0, state_on_ready, .doc = "Does it take requests?" },
};
const size_t state_route_count = AQ_COUNT(state_routes);
