/* SPDX-License-Identifier: Apache-2.0 */
/* Ending many sessions in one request. */
#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "manager/session/session.h"
#include "manager/session/session_feature.h"
#include "store/query.h"

#define ENDED_MAX 1000

struct end_params {
    struct str_list sessions;
    bool forced, recursive;
};

static const struct field end_fields[] = {
    { "sessions", FIELD_STR_LIST, FIELD_REQUIRED, offsetof(struct end_params, sessions), 0,
      ENDED_MAX, .doc = "their ids" },
    { "forced", FIELD_BOOL, 0, offsetof(struct end_params, forced),
      .doc = "without grace; administrators" },
    { "recursive", FIELD_BOOL, 0, offsetof(struct end_params, recursive),
      .doc = "also what waits for them, and for that" },
    FIELD_END,
};

enum ending_state { ENDING_GONE, ENDING_CANCELLED, ENDING_TERMINATED, ENDING_REMOVED };

struct endings;

struct session_end_ending {
    struct endings *all;
    struct uuid id;
    enum ending_state state;
};

struct endings {
    const struct api *api;
    struct request *req;
    size_t count, waiting;
    struct uuid *gone; /* those that have ended before: the ones in ERROR can be removed */
    struct core_dismissal *removed;
    size_t gone_count;
    struct store_page *errors;
    int r; /* of the first that failed */
    struct aq_error err;
    struct session_end_ending items[];
};

static void session_end_reply(const struct endings *all)
{
    static const char *const names[] = {
        [ENDING_GONE] = "gone",
        [ENDING_CANCELLED] = "cancelled",
        [ENDING_TERMINATED] = "terminated",
        [ENDING_REMOVED] = "removed",
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    if (all->r < 0) {
        request_fail(all->req, &all->err);
        return;
    }
    AQ_FAULT("api.terminate.many-durable");
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < all->count; i++) {
        jsonw_object_begin(&w);
        api_write_uuid(&w, "id", &all->items[i].id);
        jsonw_member_str(&w, "status", names[all->items[i].state]);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(all->req, 200, &out);
}

static bool session_end_is_allowed(const struct api *api, const struct principal *who,
                                   const struct session *s)
{
    const struct user *user = core_find_user(api->core, &s->user_id);

    if (who->role == ROLE_SUPERADMIN || strcmp(s->access_key, who->access_key) == 0)
        return true;
    return who->role == ROLE_ADMIN && s->domain && who->domain
           && strcmp(s->domain, who->domain) == 0 && user && user->role != ROLE_SUPERADMIN;
}

/* ---- errors of those that have ended ---- */

static void session_end_on_removed(void *data, int r, const struct aq_error *err)
{
    struct endings *all = data;

    if (r < 0 && all->r == 0) {
        all->r = r;
        all->err = *err;
    }
    session_end_reply(all);
}

static void session_end_mark_removed(struct endings *all, const struct uuid *id)
{
    for (size_t i = 0; i < all->count; i++)
        if (uuid_equals(&all->items[i].id, id))
            all->items[i].state = ENDING_REMOVED;
}

static void session_end_on_read_errors(void *data, int r, const struct aq_error *err)
{
    struct endings *all = data;
    struct store_page *errors = AQ_TAKE(all->errors);
    size_t count = 0;

    if (r < 0) {
        session_end_on_removed(all, r, err);
        return;
    }
    for (size_t i = 0; i < errors->count; i++) {
        const struct session *s = &errors->sessions[i].session;

        if (!session_end_is_allowed(all->api, api_principal(all->req), s))
            continue;
        session_end_mark_removed(all, &s->id);
        all->removed[count++] = (struct core_dismissal){ s->id, s->name, s->domain };
    }
    if (count)
        core_dismiss_sessions(all->api->core, all->removed, count, api_who(all->api, all->req),
                              session_end_on_removed, all);
    else
        session_end_reply(all);
    store_page_free(errors);
}

static int session_end_read_errors(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct endings *all = data;
    const struct store_query query = { .statuses = 1u << SESSION_ERROR,
                                       .ids = all->gone,
                                       .id_count = all->gone_count };

    return store_list_sessions(tx, &query, &all->errors, err);
}

/* All that lived are ended. */
static void session_end_remove_errors(struct endings *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].state == ENDING_GONE)
            all->gone[all->gone_count++] = all->items[i].id;
    if (all->r < 0 || !all->gone_count)
        session_end_reply(all);
    else
        store_read(core_store(all->api->core), session_end_read_errors, session_end_on_read_errors,
                   all);
}

/* One that has ended meanwhile is as good as ended by us. */
static void session_end_on_ended(void *data, int r, const struct aq_error *err)
{
    struct session_end_ending *ending = data;
    struct endings *all = ending->all;

    if (r == -ENOENT) {
        ending->state = ENDING_GONE;
    } else if (r < 0 && all->r == 0) {
        all->r = r;
        all->err = *err;
    }
    if (--all->waiting == 0)
        session_end_remove_errors(all);
}

static void session_end_on_dependent_ended(void *data, int r, const struct aq_error *err)
{
    struct endings *all = data;

    if (r < 0 && r != -ENOENT && all->r == 0) {
        all->r = r;
        all->err = *err;
    }
    if (--all->waiting == 0)
        session_end_remove_errors(all);
}

static void session_end_recursively(struct endings *all, bool forced)
{
    struct session_dependency *roots = arena_array(request_get_arena(all->req), all->count,
                                                   sizeof(*roots));

    for (size_t i = 0; i < all->count; i++)
        roots[i] = (struct session_dependency){ .id = all->items[i].id };
    all->waiting += session_end_dependents(all->api, all->req, roots, all->count, forced,
                                           session_end_on_dependent_ended, all);
}

/* All ids are looked at before the first session is ended. */
static int session_end_read_ids(const struct api *api, const struct request *req,
                                const struct end_params *params, struct endings *all,
                                struct aq_error *err)
{
    const struct principal *who = api_principal(req);

    if (params->forced && !principal_may(who->role, API_ADMIN))
        return aq_fail_kind(err, EPERM, "insufficient-privilege",
                            "only administrators may end a session by force");
    if (all->count == 0)
        return api_fail_param(err, "sessions", "name 1 to %d sessions", ENDED_MAX);
    for (size_t i = 0; i < all->count; i++) {
        struct session_end_ending *ending = &all->items[i];
        const struct session *s;

        if (uuid_parse(params->sessions.items[i], &ending->id) < 0)
            return api_fail_param(err, "sessions", "'%.100s' is not the id of a session",
                                  params->sessions.items[i]);
        s = core_find_session(api->core, &ending->id);
        if (s && !session_end_is_allowed(api, who, s))
            return problem_no_such(err, "session", "no session of yours has the id '%s'",
                                   params->sessions.items[i]);
        ending->all = all;
        ending->state = s && s->status == SESSION_PENDING ? ENDING_CANCELLED : ENDING_TERMINATED;
    }
    return 0;
}

static void session_end_on_end(struct request *req, void *data)
{
    struct end_params params = { .forced = false };
    struct endings *all = NULL;
    struct core_dismissal *removed = NULL;
    struct uuid *gone = NULL;
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0) {
        all = arena_alloc(request_get_arena(req),
                          sizeof(*all) + params.sessions.count * sizeof(all->items[0]));
        gone = arena_array(request_get_arena(req), params.sessions.count + 1, sizeof(*gone));
        removed = arena_array(request_get_arena(req), params.sessions.count + 1, sizeof(*removed));
        *all = (struct endings){
            .api = api, .req = req, .count = params.sessions.count, .gone = gone, .removed = removed
        };
        (void)session_end_read_ids(api, req, &params, all, &err);
    }
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    AQ_FAULT("api.terminate.many-decoded");
    all->waiting = all->count;
    if (params.recursive)
        session_end_recursively(all, params.forced);
    for (size_t i = 0; i < all->count; i++)
        core_terminate_session(api->core, &all->items[i].id, params.forced,
                               params.forced ? REASON_FORCE_TERMINATED : REASON_USER_REQUESTED,
                               api_who(api, req), session_end_on_ended, &all->items[i]);
}

static const struct route session_end_routes[] = {
    { METHOD_DELETE, "/aliquot/v1/sessions", API_USER | API_FREEZABLE, session_end_on_end,
      end_fields, "End up to 1000 sessions, take them from the queue, or remove those in ERROR" },
};
API_ROUTES_END(session_end);
