/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/orphans: what is newer on agents than the database */
#include <errno.h>

#include "manager/node/node_feature.h"

static void orphan_write(void *data, const struct core_orphan *o)
{
    struct jsonw *w = data;

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &o->session_id);
    jsonw_member_str(w, "name", o->name);
    jsonw_member_str(w, "access_key", o->access_key);
    jsonw_member_str(w, "type", o->type);
    jsonw_member_str(w, "image", o->image);
    jsonw_member_str(w, "state", o->is_ending ? "ENDING" : o->state);
    jsonw_member_str(w, "status", o->status);
    jsonw_member_str(w, "reason", o->is_of_lost_commit ? "lost-commit" : "restored");
    jsonw_member_str(w, "agents", o->agents);
    jsonw_member_int(w, "containers", (int64_t)o->found);
    if (o->expected)
        jsonw_member_int(w, "cluster_size", (int64_t)o->expected);
    else
        jsonw_member_null(w, "cluster_size");
    jsonw_member_bool(w, "adoptable",
                      o->name && !o->is_ending && !o->is_unreadable && o->found == o->expected);
    jsonw_object_end(w);
}

static void orphan_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct api *api = data;
    int64_t restored;

    if (!api_has_no_params(req))
        return;
    restored = core_restored_usec(api->core);
    jsonw_object_begin(&w);
    if (restored)
        api_write_time(&w, "backup_made_at", restored);
    else
        jsonw_member_null(&w, "backup_made_at");
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    core_each_orphan(api->core, orphan_write, &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* The session of the path; false: it was answered. */
static bool orphan_find(struct request *req, struct uuid *ret)
{
    const char *text = request_get_param(req, "id");
    struct aq_error err;

    if (!api_has_no_params(req))
        return false;
    if (uuid_parse(text, ret) == 0)
        return true;
    (void)aq_fail_kind(&err, ENOENT, "session-not-found", "'%.64s' is no id of a session", text);
    request_fail(req, &err);
    return false;
}

static void orphan_on_adopt(struct request *req, void *data)
{
    struct api *api = data;
    struct uuid id;

    if (orphan_find(req, &id))
        core_adopt_orphan(api->core, &id, api_who(api, req), api_reply_done, req);
}

static void orphan_on_end(struct request *req, void *data)
{
    struct api *api = data;
    struct uuid id;

    if (orphan_find(req, &id))
        core_end_orphan(api->core, &id, api_who(api, req), api_reply_done, req);
}

struct finish_params {
    bool force;
};

static const struct field finish_fields[] = {
    { "force", FIELD_BOOL, 0, offsetof(struct finish_params, force),
      .doc = "end what is undecided, and do not wait for agents that are away" },
    FIELD_END,
};

static void orphan_on_finish(struct request *req, void *data)
{
    struct finish_params params = { 0 };
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0)
        request_fail(req, &err);
    else
        core_finish_restore(api->core, params.force, api_who(api, req), api_reply_done, req);
}

static const struct route orphan_routes[] = {
    { METHOD_GET, "/aliquot/v1/orphans", API_SUPERADMIN, orphan_on_list, NULL,
      "Sessions on agents that are newer than the database: after a restore, or of lost commits" },
    { METHOD_POST, "/aliquot/v1/orphans/{id}/adopt", API_SUPERADMIN, orphan_on_adopt, NULL,
      "Take over a session that is newer than the database", .answer = { 204 } },
    { METHOD_DELETE, "/aliquot/v1/orphans/{id}", API_SUPERADMIN, orphan_on_end, NULL,
      "Kill a session that is newer than the database", .answer = { 204 } },
    { METHOD_POST, "/aliquot/v1/restore/finish", API_SUPERADMIN, orphan_on_finish, finish_fields,
      "Finish a restore: start sessions again", .answer = { 204 } },
};
API_ROUTES_END(orphan);
