/* SPDX-License-Identifier: Apache-2.0 */
/* Changing sessions: end, restart, rename, prefer. */
#include <errno.h>

#include "base/fault.h"
#include "manager/core/services.h"
#include "manager/session/session_feature.h"
#include "manager/session/session.h"

/* ---- end ---- */

struct delete_params {
    const char *owner_access_key;
    bool forced, recursive;
};

static const struct field delete_fields[] = {
    OWNER_FIELD(struct delete_params, owner_access_key),
    { "forced", FIELD_BOOL, 0, offsetof(struct delete_params, forced),
      .doc = "without grace; administrators" },
    { "recursive", FIELD_BOOL, 0, offsetof(struct delete_params, recursive),
      .doc = "also what waits for it, and for that" },
    FIELD_END,
};

struct session_change_ending {
    struct request *req;
    bool was_queued;
    size_t waiting; /* answers: of the session, and of what depends on it */
    struct aq_error err;
};

static void session_change_reply_ended(const struct session_change_ending *ending)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    if (ending->err.code) {
        request_fail(ending->req, &ending->err);
        return;
    }
    AQ_FAULT("api.terminate.durable");
    jsonw_object_begin(&w);
    jsonw_key(&w, "stats");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "status", ending->was_queued ? "cancelled" : "terminated");
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    request_reply_json(ending->req, 200, &out);
}

static void session_change_on_ended(void *data, int r, const struct aq_error *err)
{
    struct session_change_ending *ending = data;

    if (r < 0 && !ending->err.code)
        ending->err = *err;
    if (--ending->waiting == 0)
        session_change_reply_ended(ending);
}

/* What has ended meanwhile is as good as ended by us. */
static void session_change_on_dependent_ended(void *data, int r, const struct aq_error *err)
{
    session_change_on_ended(data, r == -ENOENT ? 0 : r, err);
}

static void session_change_on_dismissed(void *data, int r, const struct aq_error *err)
{
    struct session_change_ending ending = { .req = data, .waiting = 1 };

    session_change_on_ended(&ending, r, err);
}

/* It has ended: only an error is left to be removed. */
static void session_change_on_delete_found(struct request *req, const struct session_row *row,
                                           void *data)
{
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (row->session.status == SESSION_ERROR) {
        const struct core_dismissal gone = { row->session.id, row->session.name,
                                             row->session.domain };

        core_dismiss_sessions(api->core, &gone, 1, api_who(api, req), session_change_on_dismissed,
                              req);
        return;
    }
    problem_no_such(&err, "session", "the session '%s' has ended already", row->session.name);
    request_fail(req, &err);
}

static void session_change_on_delete(struct request *req, void *data)
{
    struct session_change_ending *ending = arena_alloc(request_get_arena(req), sizeof(*ending));
    struct delete_params params = { 0 };
    const struct session *session;
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && params.forced
        && !principal_may(api_principal(req)->role, API_ADMIN))
        aq_fail_kind(&err, EPERM, "insufficient-privilege",
                     "only administrators may end a session by force");
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    if (!session_find_is_live(api, req, params.owner_access_key)) {
        session_find(api, req, params.owner_access_key, session_change_on_delete_found, api);
        return;
    }
    if (!(session = session_find_live(api, req, params.owner_access_key)))
        return;
    *ending = (struct session_change_ending){ .req = req,
                                              .was_queued = session->status == SESSION_PENDING,
                                              .waiting = 1 };
    AQ_FAULT("api.terminate.decoded");
    if (params.recursive)
        ending->waiting += session_end_dependents(
            api, req, &(struct session_dependency){ .id = session->id }, 1, params.forced,
            session_change_on_dependent_ended, ending);
    core_terminate_session(api->core, &session->id, params.forced,
                           params.forced ? REASON_FORCE_TERMINATED : REASON_USER_REQUESTED,
                           api_who(api, req), session_change_on_ended, ending);
}

/* ---- restart, rename ---- */

static void session_change_on_restart(struct request *req, void *data)
{
    struct api *api = data;
    const struct session *session = session_find_live_by_owner(api, req);

    if (session)
        core_restart_session(api->core, &session->id, api_who(api, req), api_reply_done, req);
}

struct rename_params {
    const char *name, *owner_access_key;
};

static const struct field rename_fields[] = {
    { "name|session_name|clientSessionToken", FIELD_STR, FIELD_REQUIRED,
      offsetof(struct rename_params, name), 1, SESSION_NAME_MAX, .doc = "the new name" },
    OWNER_FIELD(struct rename_params, owner_access_key),
    FIELD_END,
};

static void session_change_on_rename(struct request *req, void *data)
{
    struct rename_params params = { 0 };
    const struct session *session;
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0)
        request_fail(req, &err);
    else if ((session = session_find_live(api, req, params.owner_access_key)))
        core_rename_session(api->core, &session->id, params.name, api_who(api, req), api_reply_done,
                            req);
}

/* ---- name and priority in one, or parts of devices ---- */

struct patch_params {
    const char *name, *owner_access_key;
    int64_t priority;
    json_t *resources;
};

static const struct field patch_fields[] = {
    { "name", FIELD_STR, 0, offsetof(struct patch_params, name), 1, SESSION_NAME_MAX },
    { "priority", FIELD_INT, 0, offsetof(struct patch_params, priority), 0, 100 },
    { "resources", FIELD_OBJECT, 0, offsetof(struct patch_params, resources),
      .doc = "of a running session, alone: other amounts of the parts of devices that it has, "
             "for each of its kernels, e.g. {\"cuda.shares\": \"0.75\"}; administrators" },
    OWNER_FIELD(struct patch_params, owner_access_key),
    FIELD_END,
};

struct patch {
    const struct api *api;
    struct request *req;
    struct uuid id;
    const char *name;
};

static void session_change_on_prioritised(void *data, int r, const struct aq_error *err)
{
    const struct patch *patch = data;

    if (r < 0 || !patch->name)
        api_reply_done(patch->req, r, err);
    else
        core_rename_session(patch->api->core, &patch->id, patch->name,
                            api_who(patch->api, patch->req), api_reply_done, patch->req);
}

/* The share of a replica would not stay: its service sets it. The request is refused if not. */
static bool session_change_may_resize(const struct api *api, const struct session *session,
                                      struct request *req)
{
    struct core_replica replica;
    struct aq_error err = { 0 };

    if (!core_find_replica(api->core, session, &replica) || !replica.share_wanted_micro)
        return true;
    (void)api_fail_param(&err, "resources",
                         "'%s' is a replica of the model service '%s', which sets its share; "
                         "change the share of the service",
                         session->name, replica.service->name);
    request_fail(req, &err);
    return false;
}

static void session_change_resize(struct api *api, struct request *req,
                                  const struct patch_params *params)
{
    AQ_CLEANUP(slots_donep) struct slots changes = { .items = NULL };
    const struct session *session;
    struct aq_error err = { 0 };

    if (!principal_may(api_principal(req)->role, API_ADMIN))
        aq_fail_kind(&err, EPERM, "insufficient-privilege",
                     "only administrators may give a running session other parts of devices");
    else if (params->name || params->priority >= 0)
        api_fail_param(&err, "resources", "change resources alone, without name and priority");
    else if (slots_from_json(params->resources, core_slot_types(api->core), &changes, &err) == 0
             && !changes.count)
        api_fail_param(&err, "resources", "nothing to change: name a slot that the session has");
    if (err.code)
        request_fail(req, &err);
    else if ((session = session_find_live(api, req, params->owner_access_key))
             && session_change_may_resize(api, session, req))
        core_resize_session(api->core, &session->id, &changes, api_who(api, req), api_reply_done,
                            req);
}

static void session_change_on_patch(struct request *req, void *data)
{
    struct patch *patch = arena_alloc(request_get_arena(req), sizeof(*patch));
    struct patch_params params = { .priority = -1 };
    const struct session *session;
    struct api *api = data;
    json_auto_t *body = NULL;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, &body, &err) == 0 && !params.name && params.priority < 0
        && !params.resources)
        api_fail_param(&err, "body", "nothing to change: give name, priority or resources");
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    if (params.resources) {
        session_change_resize(api, req, &params);
        return;
    }
    if (!(session = session_find_live(api, req, params.owner_access_key)))
        return;
    *patch = (struct patch){ .api = api, .req = req, .id = session->id, .name = params.name };
    if (params.priority >= 0)
        core_set_priority(api->core, &session->id, (int)params.priority, api_who(api, req),
                          session_change_on_prioritised, patch);
    else
        session_change_on_prioritised(patch, 0, NULL);
}

static const struct route session_change_routes[] = {
    { METHOD_DELETE, "/session/{name}", API_USER | API_FREEZABLE, session_change_on_delete,
      delete_fields, "End a session, take it from the queue, or remove one in ERROR" },
    { METHOD_PATCH, "/session/{name}", API_USER | API_FREEZABLE, session_change_on_restart,
      owner_fields, "Restart the programs of a session", .answer = { 204 } },
    { METHOD_POST, "/session/{name}/rename", API_USER | API_FREEZABLE, session_change_on_rename,
      rename_fields, "Give a session another name", .answer = { 204 } },
    { METHOD_PATCH, "/aliquot/v1/sessions/{name}", API_USER | API_FREEZABLE,
      session_change_on_patch, patch_fields,
      "Change the name, priority or parts of devices of a session", .answer = { 204 } },
};
API_ROUTES_END(session_change);
