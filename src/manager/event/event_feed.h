/* SPDX-License-Identifier: Apache-2.0 */
/* event_feed.h - the answer to GET /events/session: what was missed, then what happens
 *
 * Each event that the store has carries its place there as its id. Who comes with the id of the
 * last one is sent those after it, read from the store a page at a time, the next when the
 * connection has taken the one before; what happens meanwhile comes with the last page, or is
 * read with a further one. Everything here belongs to the loop's thread.
 */
#ifndef AQ_MANAGER_EVENT_EVENT_FEED_H
#define AQ_MANAGER_EVENT_EVENT_FEED_H

#include "manager/call/flushes.h"
#include "manager/call/streams.h"
#include "store/query.h"
#include "store/session_event.h"

enum event_scope { SCOPE_ALL, SCOPE_SESSION, SCOPE_KERNEL };

struct event_page_read;

struct event_feed {
    struct api *api;
    struct request *req;
    enum event_scope scope;
    char access_key[ACCESS_KEY_MAX];    /* "" = everyone's */
    const char *domain;                 /* NULL = any */
    const char *name;                   /* NULL = any */
    struct uuid project_id, session_id; /* nil = any */
    bool has_place;                     /* the client gave the id of the last event, or "" */
    struct session_event_place place;   /* this, and then of the last event that was looked at */

    struct store_page *ended; /* the session, if it had ended before; else NULL */
    struct core_subscriber *subscriber;
    struct api_stream stream;
    struct flush flush;
    struct strbuf waiting; /* text of events, until then */

    bool is_behind;            /* what happens is in the store, and read from there */
    bool wants_page, has_gap;  /* the next page, when the connection has taken this */
    bool is_held_full;         /* what came after 'held' is not in it */
    struct strbuf held, marks; /* text of events of after the page being read; struct held_mark */
    struct event_page_read *read; /* under way, or NULL */
};

/* "12-1764256800000000", or "" for what is to come: -EINVAL naming 'field'. */
int event_feed_read_place(struct event_feed *feed, const char *field, const char *text,
                          struct aq_error *err);

/* Whether the caller may see, and asked for, this session. What is not so is as if it
 * did not exist: nothing of it is sent, nor is its end.
 */
bool event_feed_is_visible(const struct event_feed *feed, const struct session *s);

/* Answer; feed->ended is the feed's if it is set. */
void event_feed_begin(struct event_feed *feed);

#endif
