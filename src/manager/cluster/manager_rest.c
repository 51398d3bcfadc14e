/* SPDX-License-Identifier: Apache-2.0 */
/* /manager: status (running or frozen) and the announcement.
 *
 * Both are keys of the configuration tree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manager/cluster/cluster_feature.h"
#include "manager/cluster/cluster.h"

/* ---- changing them ---- */

struct manager_change {
    const struct api *api;
    struct request *req;
    bool ends_all; /* sessions, once it is frozen */
};

static void manager_ignore_result(void *data, int r, const struct aq_error *err)
{
    (void)data;
    (void)r;
    (void)err;
}

static void manager_end_all_sessions(const struct api *api, struct request *req)
{
    const struct session *next;

    for (const struct session *s = core_next_session(api->core, NULL); s; s = next) {
        next = core_next_session(api->core, s);
        core_terminate_session(api->core, &s->id, true, REASON_FORCE_TERMINATED, api_who(api, req),
                               manager_ignore_result, NULL);
    }
}

static void manager_on_changed(void *data, const struct config_result *result, int r,
                               const struct aq_error *err)
{
    const struct manager_change *change = data;

    (void)result;
    if (r == 0 && change->ends_all)
        manager_end_all_sessions(change->api, change->req);
    api_reply_done(change->req, r, err);
}

static void manager_start_change(struct api *api, struct request *req, const char *key,
                                 const char *value, bool ends_all)
{
    struct manager_change *change = arena_alloc(request_get_arena(req), sizeof(*change));

    *change = (struct manager_change){ .api = api, .req = req, .ends_all = ends_all };
    config_change_put(api, req, key, value, manager_on_changed, change);
}

/* ---- status ---- */

static const struct field status_fields[] = {
    { "status", FIELD_IGNORED }, /* sent by clients that ask */
    FIELD_END,
};

static void manager_write_node(const struct api *api, const char *status, struct jsonw *w)
{
    struct core_counts counts = core_get_counts(api->core);
    static const char api_version[] = "[9,\"20250722\"]";

    jsonw_object_begin(w);
    jsonw_member_str(w, "id", "manager");
    jsonw_member_int(w, "num_proc", 1);
    jsonw_member_null(w, "service_addr");
    jsonw_member_int(w, "heartbeat_timeout", 0);
    jsonw_member_bool(w, "ssl_enabled", false);
    jsonw_member_int(w, "active_sessions", (int64_t)counts.running);
    jsonw_member_str(w, "status", status);
    jsonw_member_str(w, "version", ALIQUOT_VERSION);
    api_write_raw(w, "api_version", api_version);
    jsonw_object_end(w);
}

static void manager_on_status(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    const char *status = api->is_frozen ? "frozen" : "running";
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "nodes");
    jsonw_array_begin(&w);
    manager_write_node(api, status, &w);
    jsonw_array_end(&w);
    jsonw_member_str(&w, "status", status);
    jsonw_member_int(&w, "active_sessions", (int64_t)core_get_counts(api->core).running);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

struct freeze_params {
    const char *status;
    bool force_kill;
};

static const struct field freeze_fields[] = {
    { "status", FIELD_STR, FIELD_REQUIRED, offsetof(struct freeze_params, status), 1, 16,
      .doc = "running or frozen" },
    { "force_kill", FIELD_BOOL, FIELD_NULLABLE, offsetof(struct freeze_params, force_kill),
      .doc = "end all sessions at once" },
    FIELD_END,
};

static void manager_on_freeze(struct request *req, void *data)
{
    struct freeze_params params = { 0 };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && strcmp(params.status, "running")
        && strcmp(params.status, "frozen"))
        api_fail_param(&err, "status", "must be running or frozen");
    else if (!err.code && params.force_kill && strcmp(params.status, "frozen"))
        api_fail_param(&err, "force_kill", "is for freezing only");
    if (err.code)
        request_fail(req, &err);
    else
        manager_start_change(data, req, "manager/status", params.status, params.force_kill);
}

/* ---- announcement ---- */

static void manager_on_announcement(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const char *announcement = ((const struct api *)data)->cluster->settings.announcement;

    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    jsonw_member_bool(&w, "enabled", announcement);
    jsonw_member_str(&w, "message", announcement ? announcement : "");
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

struct announce_params {
    const char *message;
    bool enabled;
};

static const struct field announce_fields[] = {
    { "enabled", FIELD_BOOL, 0, offsetof(struct announce_params, enabled) },
    { "message", FIELD_STR, FIELD_NULLABLE | FIELD_LINES, offsetof(struct announce_params, message),
      0, 4096 },
    FIELD_END,
};

static void manager_on_announce(struct request *req, void *data)
{
    struct announce_params params = { .message = "" };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && params.enabled && !*params.message)
        api_fail_param(&err, "message", "is required for an announcement");
    if (err.code)
        request_fail(req, &err);
    else
        manager_start_change(data, req, "manager/announcement",
                             params.enabled ? params.message : "", false);
}

static const struct route manager_routes[] = {
    { METHOD_GET, "/manager/status", API_PUBLIC, manager_on_status, status_fields,
      "Whether the manager runs or is frozen" },
    { METHOD_PUT, "/manager/status", API_SUPERADMIN, manager_on_freeze, freeze_fields,
      "Freeze: refuse whatever changes sessions; or run again", .answer = { 204 } },
    { METHOD_GET, "/manager/announcement", API_PUBLIC, manager_on_announcement, NULL,
      "What the administrators want everyone to read" },
    { METHOD_POST, "/manager/announcement", API_SUPERADMIN, manager_on_announce, announce_fields,
      "Set or clear the announcement", .answer = { 204 } },
};
API_ROUTES_END(manager);
