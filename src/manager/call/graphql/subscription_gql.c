/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions: what happens to a session, as long as somebody looks at it. See subscription_gql.h. */
#include "manager/call/graphql/subscription_gql.h"

#include <string.h>

#include "http/sse.h"
#include "manager/call/graphql/resolve.h"
#include "manager/call/flushes.h"
#include "manager/call/streams.h"

/* Of one keypair: a browser has six connections to a place, and pages need some of them. */
#define FEEDS_MAX 4
#define WAITING_MAX 32 /* changes of one session that were not told yet */

struct gql_feed {
    struct list link; /* in api->gql_feeds; of one that follows a session */
    struct api *api;
    struct request *req;
    void (*run)(struct gql_feed *feed);
    json_t *params;
    struct core_subscriber *subscriber; /* NULL = it follows none */
    struct api_stream stream;
    struct flush flush;
    enum session_status waiting[WAITING_MAX], told;
    size_t waiting_count;
    bool is_running;
    bool is_begun; /* answered with events */
    bool is_last;  /* nothing follows what waits */
    bool is_over;  /* nothing more is sent */
};

/* ---- the end ---- */

static void gql_feed_release(struct gql_feed *feed)
{
    flush_cancel(&feed->flush);
    json_decref(feed->params);
    if (!feed->subscriber)
        return;
    core_unsubscribe(feed->api->core, feed->subscriber);
    api_stream_close(&feed->stream);
    list_remove(&feed->link);
}

static void gql_feed_end(struct gql_feed *feed)
{
    gql_feed_release(feed);
    request_set_gone(feed->req, NULL, NULL);
    request_end(feed->req); /* the feed is in its arena */
}

/* A client that is not told so comes again. */
static void gql_feed_complete(struct gql_feed *feed)
{
    (void)sse_send(feed->req, "complete", NULL, "", 0);
    gql_feed_end(feed);
}

/* At once, or when the run has ended that is under way. */
static void gql_feed_stop(struct gql_feed *feed)
{
    feed->is_last = true;
    feed->waiting_count = 0;
    if (!feed->is_running)
        gql_feed_complete(feed);
}

static void gql_feed_on_forbidden(void *data, const struct aq_error *err)
{
    struct gql_feed *feed = data;

    (void)err;
    feed->is_over = true;
    gql_feed_stop(feed);
}

static void gql_feed_on_gone(struct request *req, void *data)
{
    struct gql_feed *feed = data;

    (void)req;
    feed->is_over = true;
    if (!feed->is_running)
        gql_feed_end(feed);
}

/* ---- what happens ---- */

/* The role or domain may be others by now. */
static bool gql_feed_is_as_before(const struct gql_feed *feed)
{
    const struct principal *who = api_principal(feed->req);
    const struct user *user = core_find_user(feed->api->core, &who->user_id);

    return user && user->role == who->role
           && strcmp(user->domain ? user->domain : "", who->domain ? who->domain : "") == 0;
}

static void gql_feed_on_flush(struct flush *flush)
{
    struct gql_feed *feed = AQ_CONTAINER_OF(flush, struct gql_feed, flush);

    if (!gql_feed_is_as_before(feed)) {
        gql_feed_stop(feed);
        return;
    }
    feed->told = feed->waiting[0];
    memmove(feed->waiting, feed->waiting + 1, --feed->waiting_count * sizeof(feed->told));
    feed->is_running = true;
    feed->run(feed);
}

/* In a later turn: one change may be for many. */
static void gql_feed_go_on(struct gql_feed *feed)
{
    flushes_add(feed->api->flushes, request_get_loop(feed->req), &feed->flush);
}

static void gql_feed_on_event(void *data, const struct core_event *event)
{
    enum session_status status = event->session->status;
    struct gql_feed *feed = data;

    if (event->kernel || !event->number || feed->is_last)
        return;
    feed->is_last = session_is_terminal(status);
    if (!feed->waiting_count || feed->waiting[feed->waiting_count - 1] != status)
        feed->waiting_count = AQ_MIN(feed->waiting_count + 1, WAITING_MAX);
    feed->waiting[feed->waiting_count - 1] = status;
    if (!feed->is_running)
        gql_feed_go_on(feed);
}

static void gql_feed_end_oldest(struct api *api, const char *access_key)
{
    struct gql_feed *oldest = NULL;
    unsigned count = 0;

    LIST_FOREACH(it, &api->gql_feeds) {
        struct gql_feed *feed = LIST_ENTRY(it, struct gql_feed, link);

        if (feed->is_last || strcmp(feed->stream.access_key, access_key) != 0)
            continue;
        if (!count++)
            oldest = feed;
    }
    if (count >= FEEDS_MAX)
        gql_feed_stop(oldest);
}

static void gql_feed_follow(struct gql_feed *feed, const struct uuid *session_id)
{
    const char *key = api_principal(feed->req)->access_key;

    if (feed->subscriber)
        return;
    gql_feed_end_oldest(feed->api, key);
    feed->subscriber = core_subscribe(feed->api->core, session_id, gql_feed_on_event, feed);
    api_stream_open(feed->api, key, &feed->stream, gql_feed_on_forbidden, feed);
    list_add(&feed->api->gql_feeds, &feed->link);
}

/* ---- the request ---- */

struct gql_feed *gql_feed_new(struct api *api, struct request *req,
                              void (*run)(struct gql_feed *feed))
{
    const char *accept = request_get_header(req, "Accept");
    struct gql_feed *feed;

    if (!accept || !strstr(accept, "text/event-stream"))
        return NULL;
    feed = arena_alloc(request_get_arena(req), sizeof(*feed));
    *feed = (struct gql_feed){ .api = api, .req = req, .run = run, .is_running = true };
    feed->flush.fn = gql_feed_on_flush;
    return feed;
}

struct api *gql_feed_api(const struct gql_feed *feed)
{
    return feed->api;
}

struct request *gql_feed_request(const struct gql_feed *feed)
{
    return feed->req;
}

int gql_feed_parse(struct gql_feed *feed, json_t **ret, struct aq_error *err)
{
    int r = feed->params ? 0 : api_parse(feed->req, &feed->params, err);

    *ret = json_incref(feed->params);
    return r;
}

void gql_feed_take(struct gql_feed *feed, const struct strbuf *reply)
{
    feed->is_running = false;
    if (!feed->is_begun) {
        sse_begin(feed->req, NULL, NULL);
        request_set_gone(feed->req, gql_feed_on_gone, feed);
        feed->is_begun = true;
    }
    if (request_is_gone(feed->req)
        || (!feed->is_over && sse_send(feed->req, "next", NULL, reply->data, reply->len) < 0))
        gql_feed_end(feed);
    else if (!feed->subscriber || (feed->is_last && !feed->waiting_count))
        gql_feed_complete(feed);
    else if (feed->waiting_count)
        gql_feed_go_on(feed);
}

void gql_feed_fail(struct gql_feed *feed, const struct aq_error *err)
{
    if (feed->is_begun) {
        gql_feed_end(feed);
        return;
    }
    gql_feed_release(feed);
    request_fail(feed->req, err);
}

/* ---- the root field ---- */

struct gql_change {
    struct gql_call *call;
    struct gql_feed *feed;
    struct uuid session_id;
    struct store_query query;
    struct store_page *page;
    const void *session;
    enum session_status status;
};

static int gql_change_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct gql_change *change = data;
    int r = gql_set_room(change->call->context, &change->query, err);

    return r < 0 ? r : store_list_sessions(tx, &change->query, &change->page, err);
}

static void gql_change_fill(struct gql_change *change)
{
    const struct session *s = &change->page->sessions->session;

    change->session = change->page->sessions;
    change->status = change->feed->is_begun ? change->feed->told : s->status;
    change->feed->is_last = change->feed->is_last || session_is_terminal(s->status);
    change->call->results[0] = gql_object(change);
}

static void gql_change_on_read(void *data, int r, const struct aq_error *err)
{
    struct gql_change *change = data;
    struct gql_call *call = change->call;

    if (r == 0)
        gql_keep(call->context, call->arena, change->page);
    if (r < 0)
        (void)gql_call_fail(call, "%s", err->text);
    else if (!change->page->count)
        (void)gql_call_fail(call, "there is no such session");
    else
        gql_change_fill(change);
    if (!change->session)
        gql_feed_stop(change->feed);
    gql_call_done(call);
}

static int gql_change_follow(struct gql_call *call)
{
    struct gql_change *change = arena_alloc(call->arena, sizeof(*change));
    const struct gql_context *context = call->context;

    if (!context->feed)
        return gql_call_fail(call, "%s: accept text/event-stream", call->field->name);
    if (uuid_parse(call->args[0].text, &change->session_id) < 0)
        return gql_call_fail(call, "sessionId must be a UUID");
    gql_feed_follow(context->feed, &change->session_id);
    change->call = call;
    change->feed = context->feed;
    change->query = (struct store_query){ .ids = &change->session_id,
                                          .id_count = 1,
                                          .with_kernels = true };
    gql_scope(context, &change->query);
    return gql_read(call, gql_change_read, gql_change_on_read, change);
}

static struct gql_value gql_change_get_status(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(session_status_name(((const struct gql_change *)parent)->status));
}

static struct gql_value gql_change_get_reason(struct gql_get *get, const void *parent)
{
    const struct session_row *row = ((const struct gql_change *)parent)->session;

    (void)get;
    return gql_text(row->session.reason ? row->session.reason : "");
}

#define FIELD(name) SCHEMA_FIELD_SchedulingBroadcastEventPayload_##name

static const struct gql_entry subscription_entries[] = {
    { SCHEMA_FIELD_Subscription_schedulingEventsBySession,
      GQL_CALL_COST(gql_change_follow, GQL_COST_READ, 1) },
    { FIELD(sessionId), GQL_UUID_AT(struct gql_change, session_id) },
    { FIELD(statusTransition), GQL_GET(gql_change_get_status) },
    { FIELD(reason), GQL_GET(gql_change_get_reason) },
    { FIELD(session), GQL_OBJECT_AT(struct gql_change, session) },
};
GQL_ENTRIES_END(subscription);
