/* SPDX-License-Identifier: Apache-2.0 */
/* GET /events/session: what happens to sessions, as server-sent events.
 *
 * Events of before the request are not repeated, but for one: who asks by id
 * for a session that has ended is told so and the stream ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/sse.h"
#include "manager/api/resources.h"
#include "manager/api/session_find.h"
#include "manager/request/flushes.h"
#include "manager/request/streams.h"
#include "store/query.h"

enum scope { SCOPE_ALL, SCOPE_SESSION, SCOPE_KERNEL };

struct event_params {
    const char *session_name, *owner_access_key, *project, *scope;
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
    FIELD_END,
};

struct feed {
    struct api *api;
    struct request *req;
    struct core_subscriber *subscriber;
    enum scope scope;
    char access_key[ACCESS_KEY_MAX];    /* "" = everyone's */
    const char *domain;                 /* NULL = any */
    const char *name;                   /* NULL = any */
    struct uuid project_id, session_id; /* nil = any */
    struct store_page *page;
    struct api_stream stream;
    struct flush flush;
    struct strbuf waiting; /* text of events, until then */
};

/* The stream is over, one way or the other. */
static void feed_end(struct feed *feed)
{
    flush_cancel(&feed->flush);
    strbuf_done(&feed->waiting);
    if (feed->subscriber)
        core_unsubscribe(feed->api->core, feed->subscriber);
    feed->subscriber = NULL;
    api_stream_close(&feed->stream);
    request_set_gone(feed->req, NULL, NULL);
    request_end(feed->req); /* the feed is in its arena */
}

static void events_on_gone(struct request *req, void *data)
{
    (void)req;
    feed_end(data);
}

/* Whether the caller may see, and asked for, this session. What is not so is as if it
 * did not exist: nothing of it is sent, nor is its end.
 */
static bool events_is_visible(const struct feed *feed, const struct session *s)
{
    return (!feed->access_key[0] || strcmp(s->access_key, feed->access_key) == 0)
           && (!feed->domain || (s->domain && strcmp(s->domain, feed->domain) == 0))
           && (!feed->name || strcmp(s->name, feed->name) == 0)
           && (uuid_is_nil(&feed->project_id) || uuid_equals(&s->project_id, &feed->project_id));
}

static bool events_is_in_scope(const struct feed *feed, const struct core_event *event)
{
    return (feed->scope != SCOPE_SESSION || !event->kernel)
           && (feed->scope != SCOPE_KERNEL || event->kernel);
}

static void events_write_image(struct jsonw *w, const struct core_image_status *image)
{
    jsonw_key(w, "image");
    jsonw_object_begin(w);
    jsonw_member_str(w, "name", image->image);
    jsonw_member_str(w, "agent", image->agent_id);
    jsonw_member_str(w, "state", image->state);
    jsonw_member_int(w, "doneBytes", image->done_bytes);
    jsonw_member_int(w, "totalBytes", image->total_bytes);
    jsonw_object_end(w);
}

/* What waits goes out; an error ends the stream: its reader is gone, or too slow to be kept. */
static int feed_write(struct feed *feed)
{
    struct strbuf text = feed->waiting;
    int r;

    strbuf_init(&feed->waiting);
    r = !strbuf_ok(&text) ? -ENOMEM : text.len ? request_write(feed->req, text.data, text.len) : 0;
    strbuf_done(&text);
    return r;
}

static void feed_on_flush(struct flush *flush)
{
    struct feed *feed = AQ_CONTAINER_OF(flush, struct feed, flush);

    if (feed_write(feed) < 0)
        feed_end(feed);
}

/* Write it soon, with what comes until then. */
static int events_add_event(struct feed *feed, const struct core_event *event)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct session *s = event->session;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "reason", event->reason ? event->reason : "");
    jsonw_member_str(&w, "sessionName", s->name);
    jsonw_member_str(&w, "ownerAccessKey", s->access_key);
    api_write_uuid(&w, "sessionId", &s->id);
    if (event->kernel) {
        api_write_uuid(&w, "kernelId", &event->kernel->id);
        jsonw_member_str(&w, "clusterRole", event->kernel->role);
        jsonw_member_int(&w, "clusterIdx", event->kernel->index);
    }
    if (event->has_exit)
        jsonw_member_int(&w, "exitCode", event->exit_code);
    if (event->image)
        events_write_image(&w, event->image);
    if (event->run_id)
        jsonw_member_str(&w, "runId", event->run_id);
    if (event->limit_violations)
        jsonw_member_str(&w, "misuse", event->limit_violations);
    jsonw_object_end(&w);
    if (!strbuf_ok(&out))
        return -ENOMEM;
    sse_format(&feed->waiting, event->name, NULL, out.data, out.len);
    return flushes_add(feed->api->flushes, request_get_loop(feed->req), &feed->flush);
}

static void events_send_close(struct feed *feed)
{
    sse_format(&feed->waiting, "server_close", NULL, "{}", 2);
    (void)feed_write(feed);
    feed_end(feed);
}

/* The follower has lost the right to it. */
static void events_on_forbidden(void *data, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct feed *feed = data;

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "reason", err->text);
    jsonw_object_end(&w);
    if (strbuf_ok(&out))
        sse_format(&feed->waiting, "server_close", NULL, out.data, out.len);
    (void)feed_write(feed);
    feed_end(feed);
}

/* The event by which a session ends in this state: its last. */
static const char *events_name_of_last(enum session_status status)
{
    return status == SESSION_CANCELLED ? "session_cancelled" : "session_terminated";
}

static bool events_is_last(const struct core_event *event)
{
    return session_is_terminal(event->session->status)
           && strcmp(event->name, events_name_of_last(event->session->status)) == 0;
}

static void events_on_event(void *data, const struct core_event *event)
{
    struct feed *feed = data;

    if (!events_is_visible(feed, event->session))
        return;
    if (events_is_in_scope(feed, event) && events_add_event(feed, event) < 0)
        feed_end(feed); /* gone, or too slow to be kept */
    else if (!uuid_is_nil(&feed->session_id) && events_is_last(event))
        events_send_close(feed);
}

/* ---- a session that has ended already ---- */

static int events_read_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct feed *feed = data;
    const struct store_query query = { .ids = &feed->session_id,
                                       .id_count = 1,
                                       .access_key = feed->access_key[0] ? feed->access_key : NULL,
                                       .domain = feed->domain };

    return store_list_sessions(tx, &query, &feed->page, err);
}

/* As the events that this session's end was told by. */
static void events_send_ended(struct feed *feed, const struct session *s)
{
    struct core_event event = { .session = s, .reason = s->reason };

    sse_begin(feed->req, NULL, NULL);
    if (s->result != RESULT_UNDEFINED) {
        event.name = s->result == RESULT_SUCCESS ? "session_success" : "session_failure";
        (void)events_add_event(feed, &event);
    }
    event.name = events_name_of_last(s->status);
    (void)events_add_event(feed, &event);
    events_send_close(feed);
}

static void events_on_ended_read(void *data, int r, const struct aq_error *err)
{
    struct aq_error missing = { 0 };
    struct feed *feed = data;
    struct store_page *page = feed->page; /* the feed goes with the request */

    if (r < 0) {
        request_fail(feed->req, err);
        return;
    }
    if (page->count) {
        events_send_ended(feed, &page->sessions[0].session);
    } else {
        problem_no_such(&missing, "session", "no session of this owner has this id");
        request_fail(feed->req, &missing);
    }
    store_page_free(page);
}

/* ---- the request ---- */

/* One word, or both with a comma between them. */
static int events_read_scope(const char *text, enum scope *ret, struct aq_error *err)
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

static int events_read_owner(struct feed *feed, const struct event_params *params,
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

static int events_read_project(struct feed *feed, const char *text, struct aq_error *err)
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

static int events_read_feed(struct feed *feed, struct aq_error *err)
{
    struct event_params params = { .scope = "*" };
    int r;

    if ((r = api_decode(feed->req, &params, NULL, err)) < 0
        || (r = events_read_scope(params.scope, &feed->scope, err)) < 0
        || (r = events_read_owner(feed, &params, err)) < 0
        || (r = events_read_project(feed, params.project, err)) < 0)
        return r;
    if (params.session_name && strcmp(params.session_name, "*") != 0)
        feed->name = params.session_name;
    feed->session_id = params.session_id;
    return 0;
}

static void events_start(struct feed *feed, struct aq_error *err)
{
    const struct uuid *id = uuid_is_nil(&feed->session_id) ? NULL : &feed->session_id;
    const struct session *live = id ? core_find_session(feed->api->core, id) : NULL;

    if (id && (!live || !events_is_visible(feed, live))) {
        if (store_read(core_store(feed->api->core), events_read_ended, events_on_ended_read, feed)
            < 0)
            aq_fail_oom(err);
        return;
    }
    if (!(feed->subscriber = core_subscribe(feed->api->core, id, events_on_event, feed))) {
        aq_fail_oom(err);
        return;
    }
    if (api_stream_open(feed->api, api_principal(feed->req)->access_key, &feed->stream,
                        events_on_forbidden, feed)
        < 0) {
        core_unsubscribe(feed->api->core, feed->subscriber);
        aq_fail_oom(err);
        return;
    }
    sse_begin(feed->req, NULL, NULL);
    request_set_gone(feed->req, events_on_gone, feed);
}

static void events_on_follow(struct request *req, void *data)
{
    struct feed *feed = arena_alloc(request_get_arena(req), sizeof(*feed));
    struct aq_error err = { 0 };

    if (!feed)
        aq_fail_oom(&err);
    if (!err.code) {
        feed->api = data;
        feed->req = req;
        feed->flush.fn = feed_on_flush;
        strbuf_init(&feed->waiting);
        if (events_read_feed(feed, &err) == 0)
            events_start(feed, &err);
    }
    if (err.code)
        request_fail(req, &err);
}

const struct route events_routes[] = {
    { METHOD_GET, "/events/session", API_USER, events_on_follow, event_fields,
      "What happens to sessions, as server-sent events" },
};
API_ROUTES_END(events);
