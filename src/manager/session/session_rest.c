/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions by name or id: match, show, say why. */
#include <errno.h>
#include <string.h>

#include "manager/session/session_feature.h"
#include "manager/session/session.h"
#include "manager/session/session_view.h"
#include "store/query.h"

/* ---- match ---- */

struct match_params {
    const char *id, *owner_access_key;
};

static const struct field match_fields[] = {
    { "id", FIELD_STR, FIELD_REQUIRED, offsetof(struct match_params, id), 1, 64,
      .doc = "beginning of an id or name" },
    OWNER_FIELD(struct match_params, owner_access_key),
    FIELD_END,
};

static void session_on_match(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct session *found[CORE_MATCH_MAX];
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    struct match_params params = { 0 };
    const struct keypair *owner;
    struct aq_error err = { 0 };
    size_t count;

    if (api_decode(req, &params, NULL, &err) < 0
        || api_owner(api, req, params.owner_access_key, &owner, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    count = core_match_sessions(api->core, owner->access_key, params.id, found);
    jsonw_object_begin(&w);
    jsonw_key(&w, "matches");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < count; i++) {
        jsonw_object_begin(&w);
        api_write_uuid(&w, "id", &found[i]->id);
        jsonw_member_str(&w, "name", found[i]->name);
        jsonw_member_str(&w, "status", session_view_status(api_principal(req), found[i]->status));
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* ---- show ---- */

static void session_on_info_found(struct request *req, const struct session_row *row, void *data)
{
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types = slot_types_ref(
        core_slot_types(((const struct api *)data)->core));
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    session_view_info(api_principal(req), types, row, &w);
    request_reply_json(req, 200, &out);
}

static void session_on_info(struct request *req, void *data)
{
    session_find_brief_by_owner(data, req, session_on_info_found);
}

static void session_on_show_found(struct request *req, const struct session_row *row, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct api *api = data;
    struct jsonw w = jsonw_make(&out);

    session_view_own(api_principal(req), api->core, row, SESSION_FIELDS_ALL, &w);
    request_reply_json(req, 200, &out);
}

static void session_on_show(struct request *req, void *data)
{
    session_find_by_owner(data, req, session_on_show_found);
}

/* ---- why ---- */

static void session_reply_why_pending(struct request *req, const struct session *s,
                                      const char *text, const char *explanation)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "status", session_view_status(api_principal(req), s->status));
    jsonw_member_str(&w, "reason", s->reason);
    jsonw_member_str(&w, "text", text);
    api_write_raw(&w, "explanation", explanation);
    jsonw_key(&w, "timeout_sec");
    session_view_write_timeout(s, &w);
    jsonw_key(&w, "ends_by");
    session_view_write_ends_by(s, &w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void session_on_why_pending_found(struct request *req, const struct session_row *row,
                                         void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, json = STRBUF_INIT,
                                           idle_text = STRBUF_INIT;
    const struct session *s = &row->session;
    const struct api *api = data;
    const struct session *live;
    struct core_idle idle;

    if (s->status == SESSION_PENDING && core_explain(api->core, &s->id, &text, &json, NULL) == 0) {
        session_reply_why_pending(req, s, text.data, json.data);
        return;
    }
    strbuf_truncate(&text, 0);
    core_status_text(s->status_data, &text);
    if ((live = core_find_session(api->core, &s->id)) && live->status == s->status)
        core_add_pull_failures(live, &text);
    if (live && core_read_idle(api->core, live, &idle))
        core_idle_write_text(&idle, live->name, &idle_text);
    if (idle_text.len)
        strbuf_addf(&text, "%s%s", text.len ? " " : "", idle_text.data);
    if (s->status == SESSION_CREATING && !text.len)
        strbuf_adds(&text, "Its bootstrap script runs; 'aliquot logs' shows what it has written.");
    session_reply_why_pending(req, s, text.len ? text.data : NULL, s->status_data);
}

static void session_on_why_pending(struct request *req, void *data)
{
    session_find_by_owner(data, req, session_on_why_pending_found);
}

static const struct route session_routes[] = {
    { METHOD_GET, "/session/_/match", API_USER, session_on_match, match_fields,
      "Live sessions whose id or name begins so" },
    { METHOD_GET, "/session/{name}", API_USER, session_on_info, owner_fields, "Show one session" },
    { METHOD_GET, "/aliquot/v1/sessions/{name}", API_USER, session_on_show, owner_fields,
      "Show one session and its kernels" },
    { METHOD_GET, "/aliquot/v1/sessions/{name}/why", API_USER, session_on_why_pending, owner_fields,
      "Why a session waits, or why it ended" },
};
API_ROUTES_END(session);
