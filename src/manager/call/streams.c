/* SPDX-License-Identifier: Apache-2.0 */
/* Long answers end with the right to them: see streams.h. */
#include "manager/call/streams.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define CHECK_MSEC 500

struct api_streams {
    const struct core *core;
    struct list open; /* api_stream.link */
    bool is_checking;
    uv_timer_t *timer; /* while there are any */
};

struct api_streams *api_streams_new(const struct core *core)
{
    struct api_streams *streams = aq_alloc(sizeof(*streams));

    streams->core = core;
    list_init(&streams->open);
    return streams;
}

void api_streams_free(struct api_streams *streams)
{
    free(streams);
}

static void streams_on_closed(uv_handle_t *handle)
{
    free(handle);
}

const char *api_stream_why_not(const struct core *core, const char *access_key)
{
    const struct keypair *key = core_find_keypair(core, access_key);
    const struct user *user = key ? core_find_user(core, &key->user_id) : NULL;
    const struct domain *domain = user && user->domain ? core_find_domain(core, user->domain)
                                                       : NULL;

    if (!key || !key->is_active)
        return "the keypair was deactivated or removed";
    if (!user || user->status != USER_ACTIVE)
        return "the user was deactivated or removed";
    if (user->domain && (!domain || !domain->is_active))
        return "the domain was deactivated or removed";
    return NULL;
}

static void streams_close_timer(struct api_streams *streams)
{
    if (streams->is_checking || !list_is_empty(&streams->open) || !streams->timer)
        return;
    uv_close((uv_handle_t *)streams->timer, streams_on_closed);
    streams->timer = NULL;
}

static void streams_on_timer(uv_timer_t *timer)
{
    struct api_streams *streams = timer->data;
    struct list before;

    streams->is_checking = true;
    list_init(&before); /* ending one may open or close others */
    while (!list_is_empty(&streams->open)) {
        struct list *first = streams->open.next;

        list_remove(first);
        list_add(&before, first);
    }
    while (!list_is_empty(&before)) {
        struct api_stream *stream = LIST_ENTRY(before.next, struct api_stream, link);
        const char *why = api_stream_why_not(streams->core, stream->access_key);
        struct aq_error err = { 0 };

        list_remove(&stream->link);
        list_add(&streams->open, &stream->link);
        if (!why)
            continue;
        aq_fail_kind(&err, EACCES, "auth-failed", "%s", why);
        api_stream_close(stream);
        stream->end(stream->data, &err);
    }
    streams->is_checking = false;
    streams_close_timer(streams);
}

void api_stream_open(const struct api *api, const char *access_key, struct api_stream *stream,
                     void (*end)(void *data, const struct aq_error *err), void *data)
{
    struct api_streams *streams = api->streams;

    if (!streams->timer) {
        streams->timer = aq_alloc(sizeof(*streams->timer));
        (void)uv_timer_init(core_loop(api->core), streams->timer);
        streams->timer->data = streams;
        (void)uv_timer_start(streams->timer, streams_on_timer, CHECK_MSEC, CHECK_MSEC);
    }
    stream->streams = streams;
    stream->end = end;
    stream->data = data;
    (void)snprintf(stream->access_key, sizeof(stream->access_key), "%s", access_key);
    list_add(&streams->open, &stream->link);
}

void api_stream_close(struct api_stream *stream)
{
    struct api_streams *streams = stream->streams;

    if (!streams)
        return;
    stream->streams = NULL;
    list_remove(&stream->link);
    streams_close_timer(streams);
}
