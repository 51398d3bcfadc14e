/* SPDX-License-Identifier: Apache-2.0 */
/* GET /events/session: what happens to sessions, as server-sent events.
 *
 * Events of before the request are sent to who says which one was the last. Others get of them the
 * end alone, of a session that they ask for by its id, and then the stream ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manager/event/event_feed.h"
#include "manager/event/event_feature.h"
#include "manager/session/session.h"
#include "store/query.h"

struct event_params {
    const char *session_name, *owner_access_key, *project, *scope, *last_event;
    struct uuid session_id;
};

static const struct field event_fields[] = {
    { "sessionName|name", FIELD_STR, FIELD_NULLABLE, offsetof(struct event_params, session_name), 1,
      SESSION_NAME_MAX, .doc = "exact; \"*\" for all" },
    { "sessionId", FIELD_UUID, FIELD_NULLABLE, offsetof(struct event_params, session_id) },
    { "scope", FIELD_STR, 0, offsetof(struct event_params, scope), 1, 16,
      .doc = "*, session, kernel or session,kernel" },
    { "group|groupName", FIELD_STR, FIELD_NULLABLE, offsetof(struct event_params, project), 1, 64,
      .doc = "project; \"*\" for all" },
    { "ownerAccessKey|owner_access_key", FIELD_STR, FIELD_NULLABLE,
      offsetof(struct event_params, owner_access_key), 1, 64,
      .doc = "administrators; \"*\" for everyone's" },
    { "lastEventId", FIELD_STR, FIELD_NULLABLE, offsetof(struct event_params, last_event), 0, 64,
      .doc =
          "what came after this one; empty = it will be asked for. As the header Last-Event-ID" },
    FIELD_END,
};

/* ---- a session that has ended already ---- */

static int events_read_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct event_feed *feed = data;
    const struct store_query query = { .ids = &feed->session_id,
                                       .id_count = 1,
                                       .access_key = feed->access_key[0] ? feed->access_key : NULL,
                                       .domain = feed->domain };

    return store_list_sessions(tx, &query, &feed->ended, err);
}

static void events_on_ended_read(void *data, int r, const struct aq_error *err)
{
    struct aq_error failed = { 0 };
    struct event_feed *feed = data;

    if (r == 0 && feed->ended->count) {
        event_feed_begin(feed);
        return;
    }
    if (r < 0)
        failed = *err;
    else
        problem_no_such(&failed, "session", "there is no session with this id, or it is not yours");
    store_page_free(feed->ended);
    request_fail(feed->req, &failed);
}

/* ---- the request ---- */

/* One word, or both with a comma between them. */
static int events_read_scope(const char *text, enum event_scope *ret, struct aq_error *err)
{
    bool session = false, kernel = false;

    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        bool all = len == 1 && *at == '*', sessions = len == 7 && strncmp(at, "session", len) == 0;
        bool kernels = len == 6 && strncmp(at, "kernel", len) == 0;

        if (!all && !sessions && !kernels)
            return api_fail_param(err, "scope", "must be *, session, kernel or session,kernel");
        session = session || all || sessions;
        kernel = kernel || all || kernels;
        if (!*(at += len))
            break;
    }
    *ret = session && kernel ? SCOPE_ALL : session ? SCOPE_SESSION : SCOPE_KERNEL;
    return 0;
}

static int events_read_owner(struct event_feed *feed, const struct event_params *params,
                             struct aq_error *err)
{
    const struct principal *who = api_principal(feed->req);
    const struct keypair *owner;
    int r;

    if (params->owner_access_key && strcmp(params->owner_access_key, "*") == 0
        && principal_may(who->role, API_ADMIN)) {
        feed->domain = principal_is_superadmin(who) ? NULL : who->domain;
        return 0;
    }
    if ((r = api_owner(feed->api, feed->req, params->owner_access_key, &owner, err)) < 0)
        return r;
    memcpy(feed->access_key, owner->access_key, sizeof(feed->access_key));
    return 0;
}

static int events_read_project(struct event_feed *feed, const char *text, struct aq_error *err)
{
    const char *domain = api_principal(feed->req)->domain;
    const struct project *project;

    if (!text || strcmp(text, "*") == 0)
        return 0;
    if (uuid_parse(text, &feed->project_id) == 0)
        return 0;
    if (!(project = core_find_project_named(feed->api->core, domain ? domain : "default", text)))
        return problem_no_such(err, "user group (or project)", "there is no project '%s'", text);
    feed->project_id = project->id;
    return 0;
}

/* The header of clients that reconnect is newer than their URL. */
static int events_read_place(struct event_feed *feed, const char *param, struct aq_error *err)
{
    const char *header = request_get_header(feed->req, "Last-Event-ID");

    if (header)
        return event_feed_read_place(feed, "Last-Event-ID", header, err);
    return param ? event_feed_read_place(feed, "lastEventId", param, err) : 0;
}

static int events_read_feed(struct event_feed *feed, struct aq_error *err)
{
    struct event_params params = { .scope = "*" };
    int r;

    if ((r = api_decode(feed->req, &params, NULL, err)) < 0
        || (r = events_read_scope(params.scope, &feed->scope, err)) < 0
        || (r = events_read_owner(feed, &params, err)) < 0
        || (r = events_read_project(feed, params.project, err)) < 0
        || (r = events_read_place(feed, params.last_event, err)) < 0)
        return r;
    if (params.session_name && strcmp(params.session_name, "*") != 0)
        feed->name = params.session_name;
    feed->session_id = params.session_id;
    return 0;
}

static void events_start(struct event_feed *feed)
{
    const struct uuid *id = uuid_is_nil(&feed->session_id) ? NULL : &feed->session_id;
    const struct session *live = id ? core_find_session(feed->api->core, id) : NULL;

    if (id && (!live || !event_feed_is_visible(feed, live)))
        store_read(core_store(feed->api->core), events_read_ended, events_on_ended_read, feed);
    else
        event_feed_begin(feed);
}

static void events_on_follow(struct request *req, void *data)
{
    struct event_feed *feed = arena_alloc(request_get_arena(req), sizeof(*feed));
    struct aq_error err = { 0 };

    feed->api = data;
    feed->req = req;
    strbuf_init(&feed->waiting);
    strbuf_init(&feed->held);
    strbuf_init(&feed->marks);
    if (events_read_feed(feed, &err) < 0)
        request_fail(req, &err);
    else
        events_start(feed);
}

static const struct route events_routes[] = {
    { METHOD_GET, "/events/session", API_USER, events_on_follow, event_fields,
      "What happens to sessions, as server-sent events",
      .answer = { .types = "text/event-stream" } },
};
API_ROUTES_END(events);
