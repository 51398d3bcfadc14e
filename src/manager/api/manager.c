/* SPDX-License-Identifier: Apache-2.0 */
/* /manager: status (running or frozen) and the announcement.
 *
 * Both are settings in the store, read once at the start, so that they
 * outlive a restart.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manager/api/resources.h"
#include "store/token.h"

#define SETTING_STATUS "manager.status"
#define SETTING_ANNOUNCEMENT "manager.announcement"

struct loaded {
    struct strbuf status, announcement;
};

static int manager_read_settings(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct loaded *loaded = data;
    int r = setting_get(tx, SETTING_STATUS, &loaded->status, err);

    if (r < 0 && r != -ENOENT)
        return r;
    r = setting_get(tx, SETTING_ANNOUNCEMENT, &loaded->announcement, err);
    return r == -ENOENT ? 0 : r;
}

int manager_load(struct api *api, struct aq_error *err)
{
    struct loaded loaded = { STRBUF_INIT, STRBUF_INIT };
    int r = store_call(core_store(api->core), manager_read_settings, &loaded, err);

    if (r == 0) {
        api->is_frozen = strcmp(loaded.status.data, "frozen") == 0;
        if (loaded.announcement.len && !(api->announcement = strbuf_steal(&loaded.announcement)))
            r = aq_fail_oom(err);
    }
    strbuf_done(&loaded.status);
    strbuf_done(&loaded.announcement);
    return r;
}

/* ---- changing a setting ---- */

struct manager_change {
    struct api *api;
    struct request *req;
    const char *key, *value;
};

static int manager_write_setting(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct manager_change *change = data;

    return setting_set(tx, change->key, change->value, err);
}

static void manager_on_status_written(void *data, int r, const struct aq_error *err)
{
    const struct manager_change *change = data;

    if (r == 0)
        change->api->is_frozen = strcmp(change->value, "frozen") == 0;
    api_reply_done(change->req, r, err);
}

static void manager_on_announcement_written(void *data, int r, const struct aq_error *err)
{
    const struct manager_change *change = data;

    if (r == 0) {
        free(change->api->announcement);
        change->api->announcement = *change->value ? strdup(change->value) : NULL;
    }
    api_reply_done(change->req, r, err);
}

static void manager_start_change(struct api *api, struct request *req, const char *key,
                                 const char *value, store_done_fn done)
{
    struct manager_change *change = arena_alloc(request_get_arena(req), sizeof(*change));
    struct aq_error err = { 0 };

    if (change)
        *change = (struct manager_change){ .api = api, .req = req, .key = key, .value = value };
    if (!change || store_write(core_store(api->core), manager_write_setting, done, change) < 0) {
        aq_fail_oom(&err);
        request_fail(req, &err);
    }
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
};

static const struct field freeze_fields[] = {
    { "status", FIELD_STR, FIELD_REQUIRED, offsetof(struct freeze_params, status), 1, 16,
      .doc = "running or frozen" },
    { "force_kill", FIELD_UNSUPPORTED },
    FIELD_END,
};

static void manager_on_freeze(struct request *req, void *data)
{
    struct freeze_params params = { 0 };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && strcmp(params.status, "running")
        && strcmp(params.status, "frozen"))
        api_fail_param(&err, "status", "must be running or frozen");
    if (err.code)
        request_fail(req, &err);
    else
        manager_start_change(data, req, SETTING_STATUS, params.status, manager_on_status_written);
}

/* ---- announcement ---- */

static void manager_on_announcement(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;

    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    jsonw_member_bool(&w, "enabled", api->announcement);
    jsonw_member_str(&w, "message", api->announcement ? api->announcement : "");
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

struct announce_params {
    const char *message;
    bool enabled;
};

static const struct field announce_fields[] = {
    { "enabled", FIELD_BOOL, 0, offsetof(struct announce_params, enabled) },
    { "message", FIELD_STR, FIELD_NULLABLE, offsetof(struct announce_params, message), 0, 4096 },
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
        manager_start_change(data, req, SETTING_ANNOUNCEMENT, params.enabled ? params.message : "",
                             manager_on_announcement_written);
}

const struct route manager_routes[] = {
    { METHOD_GET, "/manager/status", API_PUBLIC, manager_on_status, status_fields,
      "Whether the manager runs or is frozen" },
    { METHOD_PUT, "/manager/status", API_SUPERADMIN, manager_on_freeze, freeze_fields,
      "Freeze: refuse whatever changes sessions; or run again" },
    { METHOD_GET, "/manager/announcement", API_PUBLIC, manager_on_announcement, NULL,
      "What the administrators want everyone to read" },
    { METHOD_POST, "/manager/announcement", API_SUPERADMIN, manager_on_announce, announce_fields,
      "Set or clear the announcement" },
};
API_ROUTES_END(manager);
