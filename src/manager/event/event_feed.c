/* SPDX-License-Identifier: Apache-2.0 */
/* event_feed.c - a stream of events of sessions: from the store, then as they happen
 *
 * No event is lost or doubled where one becomes the other. The subscription is there before the
 * first page is read. While the stream is behind, what happens after the page's reading began is
 * kept aside; the last page has all that was there when it was read, and of what was kept only
 * what has a higher number follows it.
 */
#include "manager/event/event_feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/sse.h"
#include "model/status.h"

#define PLACE_TEXT_MAX 44
#define HELD_MAX ((size_t)64 << 10)

struct event_page_read {
    struct event_feed *feed; /* NULL = it has ended */
    struct session_event_place after;
    struct session_event_page *page;
};

/* An event that was kept aside. */
struct held_mark {
    int64_t number;
    size_t end; /* of its text in 'held' */
    bool is_last;
};

static void event_feed_read_page(struct event_feed *feed);

/* ---- ids ---- */

static int event_feed_parse_number(const char **text, char end, int64_t *ret)
{
    size_t len = strspn(*text, "0123456789");

    if (len == 0 || len > 18 || (*text)[len] != end)
        return -EINVAL;
    *ret = strtoll(*text, NULL, 10);
    *text += len + (end != '\0');
    return 0;
}

int event_feed_read_place(struct event_feed *feed, const char *field, const char *text,
                          struct aq_error *err)
{
    struct session_event_place place = { 0 };

    feed->has_place = true;
    if (!*text)
        return 0;
    if (event_feed_parse_number(&text, '-', &place.number) < 0
        || event_feed_parse_number(&text, '\0', &place.at_usec) < 0)
        return api_fail_param(err, field, "must be the id of an event of this route, or empty");
    feed->place = place;
    feed->is_behind = true;
    return 0;
}

static const char *event_feed_format_place(const struct session_event_place *place,
                                           char ret[PLACE_TEXT_MAX])
{
    (void)snprintf(ret, PLACE_TEXT_MAX, "%lld-%lld", (long long)place->number,
                   (long long)place->at_usec);
    return ret;
}

/* ---- the end ---- */

/* The stream is over, one way or the other. */
static void event_feed_end(struct event_feed *feed)
{
    flush_cancel(&feed->flush);
    strbuf_done(&feed->waiting);
    strbuf_done(&feed->held);
    strbuf_done(&feed->marks);
    store_page_free(feed->ended);
    if (feed->read)
        feed->read->feed = NULL;
    core_unsubscribe(feed->api->core, feed->subscriber);
    api_stream_close(&feed->stream);
    request_set_gone(feed->req, NULL, NULL);
    request_end(feed->req); /* the feed is in its arena */
}

static void event_feed_on_gone(struct request *req, void *data)
{
    (void)req;
    event_feed_end(data);
}

/* What waits goes out; an error ends the stream: its reader is gone, or too slow to be kept. */
static int event_feed_write(struct event_feed *feed)
{
    struct strbuf text = feed->waiting;
    int r;

    strbuf_init(&feed->waiting);
    flush_cancel(&feed->flush);
    r = text.len ? request_write(feed->req, text.data, text.len) : 0;
    strbuf_done(&text);
    return r;
}

static void event_feed_on_flush(struct flush *flush)
{
    struct event_feed *feed = AQ_CONTAINER_OF(flush, struct event_feed, flush);

    if (event_feed_write(feed) < 0)
        event_feed_end(feed);
}

/* An event about the stream itself; 'reason' and 'place' may be NULL. */
static void event_feed_add_own(struct event_feed *feed, const char *name, const char *reason,
                               const struct session_event_place *place)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    char id[PLACE_TEXT_MAX];

    jsonw_object_begin(&w);
    if (reason)
        jsonw_member_str(&w, "reason", reason);
    jsonw_object_end(&w);
    sse_format(&feed->waiting, name, place ? event_feed_format_place(place, id) : NULL, out.data,
               out.len);
}

static void event_feed_close(struct event_feed *feed, const char *reason)
{
    event_feed_add_own(feed, "server_close", reason, NULL);
    (void)event_feed_write(feed);
    event_feed_end(feed);
}

/* Without a last event, by which clients know that they may connect again. */
static void event_feed_break_off(struct event_feed *feed)
{
    (void)event_feed_write(feed);
    event_feed_end(feed);
}

/* The follower has lost the right to it. */
static void event_feed_on_forbidden(void *data, const struct aq_error *err)
{
    event_feed_close(data, err->text);
}

/* ---- events ---- */

bool event_feed_is_visible(const struct event_feed *feed, const struct session *s)
{
    return (!feed->access_key[0] || strcmp(s->access_key, feed->access_key) == 0)
           && (!feed->domain || (s->domain && strcmp(s->domain, feed->domain) == 0))
           && (!feed->name || strcmp(s->name, feed->name) == 0)
           && (uuid_is_nil(&feed->session_id) || uuid_equals(&s->id, &feed->session_id))
           && (uuid_is_nil(&feed->project_id) || uuid_equals(&s->project_id, &feed->project_id));
}

/* A feed of everybody's sessions follows an administrator, whose role and domain may change. */
static bool event_feed_is_as_before(const struct event_feed *feed)
{
    const struct principal *who = api_principal(feed->req);
    const struct user *user = core_find_user(feed->api->core, &who->user_id);

    return feed->access_key[0]
           || (user && user->role == who->role
               && (!feed->domain || (user->domain && strcmp(user->domain, feed->domain) == 0)));
}

static bool event_feed_is_in_scope(const struct event_feed *feed, const struct core_event *event)
{
    return (feed->scope != SCOPE_SESSION || !event->kernel)
           && (feed->scope != SCOPE_KERNEL || event->kernel);
}

static void event_feed_write_image(struct jsonw *w, const struct core_image_status *image)
{
    jsonw_key(w, "image");
    jsonw_object_begin(w);
    jsonw_member_str(w, "name", image->image);
    jsonw_member_str(w, "agent", image->agent_id);
    jsonw_member_str(w, "state", image->state);
    jsonw_member_int(w, "doneBytes", image->done_bytes);
    jsonw_member_int(w, "totalBytes", image->total_bytes);
    if (image->error_text)
        jsonw_member_str(w, "error", image->error_text);
    jsonw_object_end(w);
}

static void event_feed_write_members(struct jsonw *w, const struct core_event *event)
{
    const struct session *s = event->session;

    jsonw_member_str(w, "reason", event->reason ? event->reason : "");
    jsonw_member_str(w, "sessionName", s->name);
    jsonw_member_str(w, "ownerAccessKey", s->access_key);
    api_write_uuid(w, "sessionId", &s->id);
    if (event->kernel) {
        api_write_uuid(w, "kernelId", &event->kernel->id);
        jsonw_member_str(w, "clusterRole", event->kernel->role);
        jsonw_member_int(w, "clusterIdx", event->kernel->index);
    }
    if (event->has_exit)
        jsonw_member_int(w, "exitCode", event->exit_code);
    if (event->image)
        event_feed_write_image(w, event->image);
    if (event->run_id)
        jsonw_member_str(w, "runId", event->run_id);
    if (event->limit_violations)
        jsonw_member_str(w, "misuse", event->limit_violations);
}

/* Nothing, if it is of a kind that the client did not ask for. */
static void event_feed_format(const struct event_feed *feed, const struct core_event *event,
                              struct strbuf *ret)
{
    const struct session_event_place place = { event->number, event->at_usec };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    char id[PLACE_TEXT_MAX];

    if (!event_feed_is_in_scope(feed, event))
        return;
    jsonw_object_begin(&w);
    event_feed_write_members(&w, event);
    jsonw_object_end(&w);
    sse_format(ret, event->name, event->number ? event_feed_format_place(&place, id) : NULL,
               out.data, out.len);
}

/* The event by which a session ends in this state: its last. */
static bool event_feed_is_last(const struct event_feed *feed, const struct core_event *event)
{
    enum session_status status = event->session->status;

    return !uuid_is_nil(&feed->session_id) && !event->kernel && session_is_terminal(status)
           && strcmp(event->name, session_event_name(status)) == 0;
}

/* Write it soon, with what comes until then. False if it was the last. */
static bool event_feed_take(struct event_feed *feed, const struct core_event *event)
{
    bool is_last = event_feed_is_last(feed, event);

    event_feed_format(feed, event, &feed->waiting);
    if (is_last)
        event_feed_close(feed, NULL);
    return !is_last;
}

/* It may be in the page that is being read, or not. */
static void event_feed_hold(struct event_feed *feed, const struct core_event *event)
{
    struct held_mark mark = { .number = event->number, .is_last = event_feed_is_last(feed, event) };

    feed->is_held_full = feed->is_held_full || feed->held.len > HELD_MAX;
    if (feed->is_held_full)
        return;
    event_feed_format(feed, event, &feed->held);
    mark.end = feed->held.len;
    strbuf_add(&feed->marks, &mark, sizeof(mark));
}

static void event_feed_on_event(void *data, const struct core_event *event)
{
    struct event_feed *feed = data;

    if (!event_feed_is_as_before(feed)) {
        event_feed_break_off(feed);
        return;
    }
    if (!event_feed_is_visible(feed, event->session))
        return;
    if (event->number && feed->is_behind) {
        event_feed_hold(feed, event);
        return;
    }
    if (event->number && event->number <= feed->place.number)
        return; /* it came with the last page */
    if (event_feed_take(feed, event))
        flushes_add(feed->api->flushes, request_get_loop(feed->req), &feed->flush);
}

/* ---- a session that had ended before ---- */

/* As the events that this session's end was told by. */
static void event_feed_send_ended(struct event_feed *feed)
{
    const struct session *s = &feed->ended->sessions[0].session;
    struct core_event event = { .session = s, .reason = s->reason };

    event.name = result_event_name(s->result);
    if (event.name && !event_feed_take(feed, &event))
        return;
    event.name = session_event_name(s->status);
    (void)event_feed_take(feed, &event);
}

/* ---- what was missed ---- */

static void event_feed_tell_gap(struct event_feed *feed, const char *reason)
{
    event_feed_add_own(feed, "gap", reason, NULL);
    feed->has_gap = true;
}

static bool event_feed_take_row(struct event_feed *feed, const struct session_event_row *row)
{
    const struct core_event event = {
        .name = row->name,
        .session = &row->session,
        .kernel = row->is_kernel ? &row->kernel : NULL,
        .reason = row->reason,
        .has_exit = row->has_exit,
        .exit_code = row->exit_code,
        .at_usec = row->place.at_usec,
        .number = row->place.number,
    };

    feed->place = row->place;
    if (row->is_removed && !feed->has_gap)
        event_feed_tell_gap(feed, "sessions were removed");
    return row->is_removed || !event_feed_is_visible(feed, &row->session)
           || event_feed_take(feed, &event);
}

/* The events after the last page's; false if the stream has ended with them. */
static bool event_feed_add_held(struct event_feed *feed)
{
    const struct session_event_place last = core_last_event(feed->api->core);
    size_t begin = 0, count = feed->marks.len / sizeof(struct held_mark);
    const struct held_mark *marks = (const void *)feed->marks.data;
    bool is_last = false;

    for (size_t i = 0; i < count; i++) {
        if (marks[i].number <= feed->place.number)
            begin = marks[i].end;
        else
            is_last = is_last || marks[i].is_last;
    }
    strbuf_add(&feed->waiting, feed->held.data + begin, feed->held.len - begin);
    if (last.number > feed->place.number)
        feed->place = last;
    if (is_last)
        event_feed_close(feed, NULL);
    return !is_last;
}

/* From now on as it happens. */
static void event_feed_go_live(struct event_feed *feed)
{
    feed->is_behind = false;
    if (feed->ended && feed->has_gap) {
        event_feed_send_ended(feed);
        return;
    }
    if (feed->ended) {
        event_feed_close(feed, NULL);
        return;
    }
    if (!event_feed_add_held(feed))
        return;
    strbuf_done(&feed->held);
    strbuf_done(&feed->marks);
    event_feed_add_own(feed, "bookmark", NULL, &feed->place);
    if (event_feed_write(feed) < 0)
        event_feed_end(feed);
}

/* The next page, now or when the connection has taken what it was given. */
static void event_feed_go_on(struct event_feed *feed)
{
    if (event_feed_write(feed) < 0) {
        event_feed_end(feed);
        return;
    }
    feed->wants_page = request_get_queued(feed->req) > 0;
    if (!feed->wants_page)
        event_feed_read_page(feed);
}

static void event_feed_take_page(struct event_feed *feed, const struct session_event_page *page)
{
    if (!event_feed_is_as_before(feed)) {
        event_feed_break_off(feed);
        return;
    }
    if (!page->is_known)
        event_feed_tell_gap(feed, page->is_old ? "the id is too old" : "the id is not known");
    for (size_t i = 0; i < page->count; i++)
        if (!event_feed_take_row(feed, &page->rows[i]))
            return;
    if (!page->is_known && !page->is_old) { /* from now on */
        feed->place = core_last_event(feed->api->core);
        event_feed_go_live(feed);
    } else if (page->count == SESSION_EVENTS_AT_A_TIME || feed->is_held_full) {
        event_feed_go_on(feed);
    } else {
        event_feed_go_live(feed);
    }
}

static void event_feed_on_drain(struct request *req, void *data)
{
    struct event_feed *feed = data;

    (void)req;
    if (feed->wants_page)
        event_feed_read_page(feed);
}

/* store_tx_fn */
static int event_page_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct event_page_read *read = data;

    return store_list_session_events(tx, &read->after, &read->page, err);
}

/* store_done_fn; a client whose stream ends without a word comes again. */
static void event_page_on_read(void *data, int r, const struct aq_error *err)
{
    struct event_page_read *read = data;
    struct event_feed *feed = read->feed;

    (void)err;
    if (feed)
        feed->read = NULL;
    if (feed && r < 0)
        event_feed_end(feed);
    else if (feed)
        event_feed_take_page(feed, read->page);
    session_event_page_free(read->page);
    free(read);
}

static void event_feed_read_page(struct event_feed *feed)
{
    struct event_page_read *read = aq_alloc(sizeof(*read));

    feed->wants_page = feed->is_held_full = false;
    strbuf_done(&feed->held);
    strbuf_done(&feed->marks);
    *read = (struct event_page_read){ .feed = feed, .after = feed->place };
    feed->read = read;
    store_read(core_store(feed->api->core), event_page_read, event_page_on_read, read);
}

/* ---- the beginning ---- */

void event_feed_begin(struct event_feed *feed)
{
    struct core *core = feed->api->core;
    const struct uuid *id = uuid_is_nil(&feed->session_id) ? NULL : &feed->session_id;

    if (!feed->ended)
        feed->subscriber = core_subscribe(core, id, event_feed_on_event, feed);
    api_stream_open(feed->api, api_principal(feed->req)->access_key, &feed->stream,
                    event_feed_on_forbidden, feed);
    feed->flush.fn = event_feed_on_flush;
    sse_begin(feed->req, event_feed_on_drain, feed);
    request_set_gone(feed->req, event_feed_on_gone, feed);
    if (feed->is_behind) {
        event_feed_read_page(feed);
    } else if (feed->ended) {
        event_feed_send_ended(feed);
    } else {
        feed->place = core_last_event(feed->api->core);
        if (feed->has_place) {
            event_feed_add_own(feed, "bookmark", NULL, &feed->place);
            if (event_feed_write(feed) < 0)
                event_feed_end(feed);
        }
    }
}
