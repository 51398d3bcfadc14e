/* SPDX-License-Identifier: Apache-2.0 */
/* route_file.c - see route_file.h */
#include "proxy/route_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json_load.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "proxy/route_internal.h"

static const char *const ways[] = {
    [ROUTE_SOCKET] = "socket", [ROUTE_TLS] = "tls", [ROUTE_MANAGER] = "manager"
};

/* ---- writing ---- */

static void route_file_write_route(const struct app_route *r, struct jsonw *w)
{
    char id[UUID_TEXT_MAX];

    jsonw_object_begin(w);
    jsonw_member_str(w, "id", uuid_format(&r->ticket_id, id));
    jsonw_member_str(w, "session", uuid_format(&r->session_id, id));
    jsonw_member_str(w, "app", r->app);
    jsonw_member_str(w, "access_key", r->access_key);
    if (!uuid_is_nil(&r->service_id))
        jsonw_member_str(w, "service", uuid_format(&r->service_id, id));
    jsonw_member_str(w, "agent", r->agent_id);
    jsonw_member_str(w, "address", r->address);
    jsonw_member_str(w, "ticket", r->ticket);
    jsonw_member_int(w, "expires_usec", r->expires_usec);
    jsonw_object_end(w);
}

int route_file_write(const struct routes *rs, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/" ROUTE_FILE,
                                                rs->proxy->settings->common.state);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    jsonw_object_begin(&w);
    jsonw_key(&w, "routes");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < rs->known.count; i++)
        route_file_write_route(rs->known.entries[i].value, &w);
    jsonw_array_end(&w);
    jsonw_key(&w, "agents");
    jsonw_object_begin(&w);
    for (size_t i = 0; i < rs->agents.count; i++) {
        const struct route_agent *agent = rs->agents.entries[i].value;

        jsonw_key(&w, rs->agents.entries[i].key);
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "way", ways[agent->way]);
        jsonw_member_str(&w, "why", agent->why);
        jsonw_object_end(&w);
    }
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    return fs_write_quick(AT_FDCWD, path, text.data, text.len, 0600, err);
}

/* ---- reading ---- */

static json_t *route_file_load(const char *state, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/" ROUTE_FILE, state);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_t *json;

    if (fs_read(AT_FDCWD, path, ROUTE_FILE_MAX, &text, err) < 0)
        return NULL;
    json = json_load_text(text.data, text.len, 0, NULL);
    if (!json_is_object(json)) {
        json_decref(json);
        json = NULL;
        (void)aq_fail(err, EINVAL, "'%s' is damaged; it is replaced", path);
    }
    return json;
}

static const char *route_file_text(const json_t *of, const char *name, size_t max)
{
    const char *text = json_string_value(json_object_get(of, name));

    return text && *text && strlen(text) <= max ? text : NULL;
}

static void route_file_take(struct routes *rs, const json_t *from)
{
    const char *id = route_file_text(from, "id", UUID_TEXT_MAX);
    const char *session = route_file_text(from, "session", UUID_TEXT_MAX);
    const char *app = route_file_text(from, "app", COOKIE_APP_MAX);
    const char *key = route_file_text(from, "access_key", COOKIE_KEY_MAX - 1);
    const char *service = route_file_text(from, "service", UUID_TEXT_MAX);
    struct msg_app_route got = { .ticket = route_file_text(from, "ticket", TICKET_MAX),
                                 .agent_id = route_file_text(from, "agent", AGENT_ID_MAX),
                                 .address = route_file_text(from, "address", 300),
                                 .expires_usec = json_integer_value(
                                     json_object_get(from, "expires_usec")) };
    struct msg_app_connect want = { .app = app, .access_key = key };

    if (id && session && app && key && got.ticket && got.agent_id && got.address
        && uuid_parse(id, &got.ticket_id) == 0 && uuid_parse(session, &want.session_id) == 0
        && (!service || uuid_parse(service, &want.service_id) == 0)
        && got.expires_usec > clock_realtime_usec() && rs->known.count < ROUTES_MAX)
        (void)routes_put(rs, &want, &got);
}

int route_file_read(struct routes *rs, struct aq_error *err)
{
    json_auto_t *json = route_file_load(rs->proxy->settings->common.state, err);
    const json_t *route;
    size_t i;

    if (!json && err->code == ENOENT) {
        *err = (struct aq_error){ 0 };
        return 0;
    }
    if (!json)
        return -err->code;
    json_array_foreach(json_object_get(json, "routes"), i, route)
        route_file_take(rs, route);
    return 0;
}

int route_file_each_way(const char *state, route_file_way_fn *fn, void *data, struct aq_error *err)
{
    json_auto_t *json = route_file_load(state, err);
    const char *agent;
    json_t *entry;

    if (!json)
        return -err->code;
    json_object_foreach(json_object_get(json, "agents"), agent, entry) {
        const char *way = json_string_value(json_object_get(entry, "way"));
        const char *why = json_string_value(json_object_get(entry, "why"));

        if (way)
            fn(data, agent, way, why ? why : "");
    }
    return 0;
}
