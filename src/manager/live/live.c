/* SPDX-License-Identifier: Apache-2.0 */
/* GET /aliquot/v1/live: what a console shows, over one WebSocket a tab, as it changes.
 *
 * In:  {"subscribe": ["map", "sessions", "queue", "arrays", "runs", "run"], "all": false,
 *       "run": "digits.7"}
 * Out: {"type": "hello", …} first, {"type": "snapshot" or "change", "topic", …} of live_rows.h,
 *      {"type": "error", "field", "message"}, {"type": "alive"} after five seconds without another
 *
 * Changes are merged for a quarter of a second. A tab that reads slowly is given nothing more until
 * it has taken what it was given, and then the newest.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/websocket.h"
#include "manager/live/live.h"
#include "manager/live/live_views.h"
#include "manager/live/live_feature.h"
#include "manager/pipeline/pipeline.h"
#include "manager/call/flushes.h"
#include "manager/call/streams.h"

#define LIVE_TICK_MSEC 250
#define LIVE_ASKED_MAX 4096           /* bytes of a message of the browser */
#define LIVE_MESSAGE_MAX (256 * 1024) /* about; of ours */
#define LIVE_TABS_MAX 64              /* of one user */
#define LIVE_ALIVE_USEC (5 * USEC_PER_SEC)

struct live_feed {
    struct live_views views;
    struct list tabs;
    uv_timer_t *timer; /* while there are tabs */
};

struct live_tab {
    struct list link;
    struct api *api;
    struct request *req;  /* until the websocket owns it */
    struct websocket *ws; /* NULL before open */
    int64_t sent_usec;    /* monotonic: of the last message */
    struct api_stream right;
    struct flush flush;
    struct uuid user_id;
    char access_key[ACCESS_KEY_MAX];
    enum user_role role;
    char *domain, *groups; /* that it may see: groups as in struct live_scope, NULL = all */
    uint64_t groups_version;
    struct live_groups *reading;       /* groups, or NULL */
    struct pipeline_reading *checking; /* whether it may see the run, or NULL */
    char *run;                         /* that it asked for, by id or name; NULL = none */
    bool all;
    struct live_view *views[LIVE_TOPICS];
    struct live_place places[LIVE_TOPICS];
};

/* ---- the feed ---- */

struct live_feed *live_feed_new(struct api *api)
{
    struct live_feed *feed = aq_alloc(sizeof(*feed));

    live_views_init(&feed->views, api);
    list_init(&feed->tabs);
    return feed;
}

void live_feed_free(struct live_feed *feed)
{
    if (!feed)
        return;
    live_views_done(&feed->views);
    free(feed);
}

static void live_on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void live_on_timer(uv_timer_t *timer)
{
    struct live_feed *feed = timer->data;

    live_views_tick(&feed->views);
    LIST_FOREACH(it, &feed->tabs) {
        struct live_tab *tab = LIST_ENTRY(it, struct live_tab, link);

        flushes_add(tab->api->flushes, core_loop(tab->api->core), &tab->flush);
    }
}

static void live_start_timer(struct live_feed *feed)
{
    if (feed->timer)
        return;
    feed->timer = aq_alloc(sizeof(*feed->timer));
    (void)uv_timer_init(core_loop(feed->views.core), feed->timer);
    feed->timer->data = feed;
    (void)uv_timer_start(feed->timer, live_on_timer, LIVE_TICK_MSEC, LIVE_TICK_MSEC);
}

static size_t live_count_tabs(const struct live_feed *feed, const struct uuid *user_id)
{
    size_t count = 0;

    LIST_FOREACH(it, &feed->tabs) {
        count += uuid_equals(&LIST_ENTRY(it, const struct live_tab, link)->user_id, user_id);
    }
    return count;
}

/* ---- a tab ---- */

static void live_tab_leave(struct live_tab *tab, enum live_topic topic)
{
    live_views_leave(&tab->api->live->views, AQ_TAKE(tab->views[topic]));
    tab->places[topic] = (struct live_place){ 0 };
}

static void live_tab_leave_run(struct live_tab *tab)
{
    pipeline_reading_cancel(AQ_TAKE(tab->checking));
    free(AQ_TAKE(tab->run));
    live_tab_leave(tab, LIVE_RUN);
}

static void live_tab_free(struct live_tab *tab)
{
    struct live_feed *feed = tab->api->live;

    live_tab_leave_run(tab);
    for (int i = 0; i < LIVE_TOPICS; i++)
        live_tab_leave(tab, (enum live_topic)i);
    live_groups_cancel(tab->reading);
    flush_cancel(&tab->flush);
    api_stream_close(&tab->right);
    list_remove(&tab->link);
    if (list_is_empty(&feed->tabs) && feed->timer)
        uv_close((uv_handle_t *)AQ_TAKE(feed->timer), live_on_closed);
    free(tab->domain);
    free(tab->groups);
    free(tab);
}

/* Its role and domain may be others by now. */
static bool live_tab_is_as_before(const struct live_tab *tab, const struct user *user)
{
    return user && user->role == tab->role
           && strcmp(user->domain ? user->domain : "", tab->domain ? tab->domain : "") == 0;
}

static int live_tab_send(struct live_tab *tab, const char *text, size_t len)
{
    tab->sent_usec = clock_monotonic_usec();
    return websocket_send(tab->ws, true, text, len);
}

/* Pages do not see pings: without a message they cannot tell a quiet manager from a stopped one. */
static int live_tab_send_alive(struct live_tab *tab)
{
    static const char alive[] = "{\"type\":\"alive\"}";

    if (websocket_get_queued(tab->ws) || clock_monotonic_usec() - tab->sent_usec < LIVE_ALIVE_USEC)
        return 0;
    return live_tab_send(tab, alive, sizeof(alive) - 1);
}

/* What has changed, while the connection takes it. */
static void live_tab_write(struct live_tab *tab)
{
    const struct strbuf *text;
    int r = 0;

    for (int i = 0; i < LIVE_TOPICS && r == 0; i++) {
        do {
            if (!tab->views[i] || websocket_get_queued(tab->ws))
                break;
            text = live_rows_write(&tab->views[i]->rows, live_topic_name((enum live_topic)i),
                                   LIVE_MESSAGE_MAX, &tab->places[i]);
            if (text)
                r = live_tab_send(tab, text->data, text->len);
        } while (r == 0 && text);
    }
    if (r == 0)
        r = live_tab_send_alive(tab);
    if (r < 0)
        websocket_close(tab->ws, WEBSOCKET_INTERNAL, "the connection does not take what is sent");
}

static void live_tab_read_groups(struct live_tab *tab);

static void live_tab_on_flush(struct flush *flush)
{
    struct live_tab *tab = AQ_CONTAINER_OF(flush, struct live_tab, flush);
    const struct user *user = core_find_user(tab->api->core, &tab->user_id);

    if (!tab->ws)
        return;
    if (!live_tab_is_as_before(tab, user)) {
        websocket_close(tab->ws, WEBSOCKET_TRY_LATER, "the user has another role or domain");
        return;
    }
    if (tab->groups && !tab->reading
        && tab->groups_version != live_groups_version(tab->api->core, user))
        live_tab_read_groups(tab);
    live_tab_write(tab);
}

static void live_tab_on_drain(struct websocket *ws, void *data)
{
    (void)ws;
    live_tab_on_flush(&((struct live_tab *)data)->flush);
}

static void live_tab_on_close(struct websocket *ws, uint16_t code, const struct aq_error *err,
                              void *data)
{
    (void)ws;
    (void)code;
    (void)err;
    live_tab_free(data);
}

/* ---- what it asks for ---- */

struct live_asked {
    struct str_list topics;
    const char *run;
    bool all;
};

static const struct field asked_fields[] = {
    { "subscribe", FIELD_STR_LIST, FIELD_REQUIRED, offsetof(struct live_asked, topics), 0,
      LIVE_TOPICS },
    { "run", FIELD_STR, FIELD_NULLABLE, offsetof(struct live_asked, run), 1, 64 },
    { "all", FIELD_BOOL, 0, offsetof(struct live_asked, all) },
    FIELD_END,
};

/* One that it follows already goes on where it is. */
static void live_tab_follow(struct live_tab *tab, enum live_topic topic,
                            const struct live_scope *scope)
{
    struct live_views *views = &tab->api->live->views;
    struct live_view *view = live_views_join(views, topic, scope);

    if (view != tab->views[topic])
        tab->places[topic] = (struct live_place){ 0 };
    live_views_leave(views, tab->views[topic]);
    tab->views[topic] = view;
}

static void live_tab_join(struct live_tab *tab, enum live_topic topic)
{
    struct live_scope scope = { .groups = topic == LIVE_MAP ? tab->groups : NULL };

    if (topic == LIVE_RUNS && !tab->all)
        scope.user_id = tab->user_id;
    else if (topic != LIVE_MAP && !tab->all)
        scope.access_key = tab->access_key;
    else if (topic != LIVE_MAP && !principal_may(tab->role, API_SUPERADMIN))
        scope.domain = tab->domain;
    live_tab_follow(tab, topic, &scope);
}

static void live_tab_send_error(struct live_tab *tab, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    api_write_mistake(&out, err);
    (void)websocket_send(tab->ws, true, out.data, out.len);
}

/* pipeline_read_fn: may it see the run? */
static void live_tab_on_checked(void *data, int r, const struct uuid *run_id,
                                const struct pipeline_task_row *none, size_t count,
                                const struct aq_error *err)
{
    struct live_tab *tab = data;

    (void)none;
    (void)count;
    tab->checking = NULL;
    if (r < 0) {
        struct aq_error own = { 0 };

        free(AQ_TAKE(tab->run));
        (void)api_fail_param(&own, "run", "%s", err->text);
        live_tab_send_error(tab, &own);
        return;
    }
    live_tab_follow(tab, LIVE_RUN, &(struct live_scope){ .run_id = *run_id });
    flushes_add(tab->api->flushes, core_loop(tab->api->core), &tab->flush);
}

static void live_tab_join_run(struct live_tab *tab, const char *run)
{
    const struct folder_viewer who = {
        .user_id = tab->user_id,
        .is_superadmin = principal_may(tab->role, API_SUPERADMIN),
        .admin_of = tab->role == ROLE_ADMIN ? tab->domain : NULL,
    };

    if (tab->run && strcmp(tab->run, run) == 0)
        return;
    live_tab_leave_run(tab);
    tab->run = aq_strdup(run);
    tab->checking = pipeline_read(tab->api, &who, run, false, live_tab_on_checked, tab);
}

static int live_tab_subscribe(struct live_tab *tab, const struct live_asked *asked,
                              struct aq_error *err)
{
    bool is_asked[LIVE_TOPICS] = { false };
    enum live_topic topic;

    for (size_t i = 0; i < asked->topics.count; i++) {
        if (live_topic_parse(asked->topics.items[i], &topic) < 0)
            return api_fail_param(err, "subscribe",
                                  "must be of map, sessions, queue, arrays, runs and run");
        is_asked[topic] = true;
    }
    if (is_asked[LIVE_RUN] && !asked->run)
        return api_fail_param(err, "run", "is missing; name the run to follow");
    if (asked->all && !principal_may(tab->role, API_ADMIN))
        return api_fail_param(err, "all", "only administrators may see everybody's sessions");
    tab->all = asked->all;
    for (int i = 0; i < LIVE_TOPICS; i++)
        if (is_asked[i] && i == LIVE_RUN)
            live_tab_join_run(tab, asked->run);
        else if (is_asked[i])
            live_tab_join(tab, (enum live_topic)i);
        else if (i == LIVE_RUN)
            live_tab_leave_run(tab);
        else
            live_tab_leave(tab, (enum live_topic)i);
    flushes_add(tab->api->flushes, core_loop(tab->api->core), &tab->flush);
    return 0;
}

static void live_tab_on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                                void *data)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct live_asked asked = { .all = false };
    struct live_tab *tab = data;
    json_auto_t *json = NULL;
    struct aq_error err = { 0 };

    (void)ws;
    (void)is_text;
    if (decode_json(bytes, len, &json, &err) < 0
        || decode_object(asked_fields, json, &arena, &asked, &err) < 0
        || live_tab_subscribe(tab, &asked, &err) < 0)
        live_tab_send_error(tab, &err);
}

static const struct websocket_ops ws_ops = {
    .on_message = live_tab_on_message,
    .on_drain = live_tab_on_drain,
    .on_close = live_tab_on_close,
};

/* ---- the beginning ---- */

static void live_tab_fail(struct live_tab *tab, const struct aq_error *err)
{
    struct request *req = tab->req;

    request_set_gone(req, NULL, NULL);
    live_tab_free(tab);
    request_fail(req, err);
}

static void live_tab_on_forbidden(void *data, const struct aq_error *err)
{
    struct live_tab *tab = data;

    if (tab->ws)
        websocket_close(tab->ws, WEBSOCKET_POLICY, err->text);
}

/* Who follows, and whom the manager takes them for. */
static void live_tab_send_hello(struct live_tab *tab)
{
    const struct user *user = core_find_user(tab->api->core, &tab->user_id);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", "hello");
    api_write_time(&w, "at", clock_realtime_usec());
    jsonw_member_str(&w, "user", user ? user->email : NULL);
    jsonw_member_str(&w, "access_key", tab->access_key);
    jsonw_member_str(&w, "domain", tab->domain);
    jsonw_member_bool(&w, "is_admin", principal_may(tab->role, API_ADMIN));
    jsonw_object_end(&w);
    (void)live_tab_send(tab, out.data, out.len);
}

static void live_tab_open(struct live_tab *tab)
{
    const struct websocket_options options = { .message_max = LIVE_ASKED_MAX };
    const char *why_not = api_stream_why_not(tab->api->core, tab->access_key);
    struct aq_error err = { 0 };

    if (why_not) /* since the request was let in */
        (void)aq_fail_kind(&err, EACCES, "auth-failed", "%s", why_not);
    if (err.code || websocket_accept(tab->req, &options, &ws_ops, tab, &tab->ws, &err) < 0)
        live_tab_fail(tab, &err);
    else
        live_tab_send_hello(tab);
}

/* ---- which nodes ---- */

/* Resource groups whose nodes the tab sees: when they change, the whole map is sent again. */
static void live_tab_change_groups(struct live_tab *tab, char *groups)
{
    free(tab->groups);
    tab->groups = groups;
    if (tab->views[LIVE_MAP])
        live_tab_join(tab, LIVE_MAP);
}

/* The first time, or because the user may use others. */
static void live_tab_on_groups(void *data, int r, char *groups, const struct aq_error *err)
{
    struct live_tab *tab = data;

    tab->reading = NULL;
    if (tab->ws) {
        if (r < 0)
            websocket_close(tab->ws, WEBSOCKET_INTERNAL, err->text);
        else
            live_tab_change_groups(tab, groups);
        return;
    }
    request_set_gone(tab->req, NULL, NULL);
    tab->groups = groups;
    if (r < 0)
        live_tab_fail(tab, err);
    else
        live_tab_open(tab);
}

static void live_tab_on_gone(struct request *req, void *data)
{
    (void)req;
    live_tab_fail(data, &(struct aq_error){ .code = EPIPE });
}

static void live_tab_read_groups(struct live_tab *tab)
{
    const struct user *user = core_find_user(tab->api->core, &tab->user_id);

    tab->groups_version = live_groups_version(tab->api->core, user);
    tab->reading = live_groups_read(tab->api->core, user, tab->access_key, live_tab_on_groups, tab);
}

/* ---- the request ---- */

static struct live_tab *live_tab_new(struct api *api, struct request *req)
{
    const struct principal *who = api_principal(req);
    struct live_tab *tab = aq_alloc(sizeof(*tab));

    tab->api = api;
    tab->req = req;
    tab->flush.fn = live_tab_on_flush;
    tab->user_id = who->user_id;
    tab->role = who->role;
    memcpy(tab->access_key, who->access_key, sizeof(tab->access_key));
    list_add(&api->live->tabs, &tab->link);
    tab->domain = aq_strdup(who->domain);
    live_start_timer(api->live);
    api_stream_open(api, tab->access_key, &tab->right, live_tab_on_forbidden, tab);
    return tab;
}

static void live_on_request(struct request *req, void *data)
{
    struct aq_error err = { 0 };
    struct live_tab *tab;
    struct api *api = data;

    if (api_decode(req, NULL, NULL, &err) == 0
        && live_count_tabs(api->live, &api_principal(req)->user_id) >= LIVE_TABS_MAX)
        aq_fail_kind(&err, EAGAIN, "rate-limit-exceeded", "%d connections follow already",
                     LIVE_TABS_MAX);
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    tab = live_tab_new(api, req);
    if (principal_may(tab->role, API_ADMIN)) {
        live_tab_open(tab);
    } else {
        live_tab_read_groups(tab);
        request_set_gone(req, live_tab_on_gone, tab);
    }
}

static const struct route live_routes[] = {
    { METHOD_GET, "/aliquot/v1/live", API_USER, live_on_request, NULL,
      "Nodes, sessions and the queue as they change, over WebSocket", .answer = { 101 } },
};
API_ROUTES_END(live);
