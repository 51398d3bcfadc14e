/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - see watch.h */
#include "kube/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "http/url.h"
#include "kube/object.h"

#define PAGE 250             /* objects of a list */
#define EVENT_MAX (4u << 20) /* an event; etcd has no larger objects than 1.5 MiB */
#define WATCH_SECONDS 240    /* then the server ends a watch */
#define WATCH_MSEC_MAX ((WATCH_SECONDS + 30) * 1000)
#define AGAIN_MSEC_MIN 1000 /* also from one watch to the next: whatever a server does, no more */
#define AGAIN_MSEC_MAX 30000

struct kube_watch {
    struct kube_watch_conf conf;
    char *path, *selector;
    struct map known; /* key -> the list in which it was, as a number */
    uintptr_t list;   /* the number of the latest */
    struct strbuf version;
    struct kube_call *listing;
    struct exchange *following;
    int status;             /* of 'following' */
    struct strbuf line;     /* of its body, not whole yet; all of it if it is an error */
    struct aq_error failed; /* of an event */
    bool must_list;         /* what is known cannot be followed on */
    uv_timer_t timer;       /* to the next list or watch, or the end of 'following'; its closing
                               frees all this */
    unsigned again_msec;    /* after the latest failure; 0 = there was none */
};

static void watch_list(struct kube_watch *watch, const char *more);
static void watch_follow(struct kube_watch *watch);
static void watch_conclude(struct kube_watch *watch, const struct aq_error *err);

static void watch_on_timer(uv_timer_t *timer)
{
    struct kube_watch *watch = timer->data;

    if (watch->following) {
        exchange_cancel(AQ_TAKE(watch->following));
        watch_conclude(watch, &(struct aq_error){ .code = 0 });
    } else if (watch->must_list) {
        watch_list(watch, NULL);
    } else {
        watch_follow(watch);
    }
}

static void watch_wait(struct kube_watch *watch, unsigned msec)
{
    (void)uv_timer_start(&watch->timer, watch_on_timer, msec, 0);
}

/* Try again, later each time. */
static void watch_fail(struct kube_watch *watch, const struct aq_error *err)
{
    watch->again_msec = AQ_MIN(AQ_MAX(watch->again_msec * 2, AGAIN_MSEC_MIN), AGAIN_MSEC_MAX);
    watch_wait(watch, watch->again_msec);
    watch->conf.on_failed(watch->conf.data, err);
}

/* ---- objects ---- */

static int watch_note(struct kube_watch *watch, const json_t *object, bool is_there,
                      struct aq_error *err)
{
    char key[KUBE_KEY_MAX + 1];

    if (!kube_object_key(object, key))
        return aq_fail(err, EPROTO, "an object without a name");
    if (!is_there) {
        if (map_removes(&watch->known, key))
            watch->conf.on_gone(watch->conf.data, key);
        return 0;
    }
    map_sets(&watch->known, key, (void *)watch->list);
    watch->conf.on_object(watch->conf.data, key, object);
    return 0;
}

static int watch_set_version(struct kube_watch *watch, const json_t *object, struct aq_error *err)
{
    const char *version = kube_object_version(object);

    if (!version)
        return aq_fail(err, EPROTO, "no version");
    strbuf_clear(&watch->version);
    strbuf_adds(&watch->version, version);
    return 0;
}

/* ---- the list ---- */

/* Tell of those that the list had no more. */
static void watch_sweep(struct kube_watch *watch)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const char **gone = arena_array(&arena, watch->known.count + 1, sizeof(*gone));
    size_t count = 0;

    for (size_t i = 0; i < watch->known.count; i++) {
        const struct map_entry *entry = &watch->known.entries[i];

        if ((uintptr_t)entry->value != watch->list)
            gone[count++] = arena_strdup(&arena, entry->key);
    }
    for (size_t i = 0; i < count; i++) {
        (void)map_removes(&watch->known, gone[i]);
        watch->conf.on_gone(watch->conf.data, gone[i]);
    }
}

static int watch_take_page(struct kube_watch *watch, const json_t *page, struct aq_error *err)
{
    const json_t *items = json_object_get(page, "items"), *item;
    size_t i;
    int r = json_is_array(items) || json_is_null(items)
                ? watch_set_version(watch, page, err)
                : aq_fail(err, EPROTO, "no list of objects");

    json_array_foreach(items, i, item)
        if (r == 0)
            r = watch_note(watch, item, true, err);
    return r;
}

static void watch_on_page(void *data, const json_t *page, const struct aq_error *err)
{
    struct kube_watch *watch = data;
    struct aq_error failed = *err;
    const char *more;

    watch->listing = NULL;
    if (page && watch_take_page(watch, page, &failed) == 0) {
        more = json_string_value(json_object_get(json_object_get(page, "metadata"), "continue"));
        if (more && more[0]) {
            watch_list(watch, more);
            return;
        }
        watch_sweep(watch);
    }
    if (failed.code) {
        watch_fail(watch, &failed);
        return;
    }
    watch->must_list = false;
    watch->again_msec = 0;
    watch->conf.on_synced(watch->conf.data);
    watch_follow(watch);
}

/* Ask for the first page, or the one after 'more'. */
static void watch_list(struct kube_watch *watch, const char *more)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    struct kube_ask ask = { .method = METHOD_GET };
    struct aq_error err = { 0 };

    if (!more)
        watch->list++;
    strbuf_addf(&path, "%s?limit=%d%s%s", watch->path, PAGE, watch->selector[0] ? "&" : "",
                watch->selector);
    if (more) {
        strbuf_adds(&path, "&continue=");
        url_encode(&path, more);
    }
    ask.path = path.data;
    if (kube_api_ask(watch->conf.api, &ask, watch_on_page, watch, &watch->listing, &err) < 0)
        watch_fail(watch, &err);
}

/* ---- what changes ---- */

static int watch_take_event(struct kube_watch *watch, const char *line, size_t len,
                            struct aq_error *err)
{
    enum kube_event_kind kind;
    json_t *object;
    int r = kube_event_read(line, len, &kind, &object, err);

    if (r < 0)
        return r;
    if (kind == KUBE_EVENT_EXPIRED)
        r = aq_fail(err, EKEYEXPIRED, "the watch begins too long ago");
    else if (kind == KUBE_EVENT_FAILED)
        r = aq_fail(err, EIO, "the watch has failed");
    else if (kind != KUBE_EVENT_OTHER)
        r = watch_set_version(watch, object, err);
    if (r == 0 && (kind == KUBE_EVENT_IS || kind == KUBE_EVENT_GONE))
        r = watch_note(watch, object, kind == KUBE_EVENT_IS, err);
    if (r == 0)
        watch->again_msec = 0;
    json_decref(object);
    return r;
}

static void watch_on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct kube_watch *watch = data;

    (void)ex;
    watch->status = head->status;
}

static void watch_on_body(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct kube_watch *watch = data;
    struct aq_error *err = &watch->failed;
    size_t begin = 0;
    const char *end;

    (void)ex;
    if (err->code)
        return;
    strbuf_add(&watch->line, bytes, len);
    while (watch->status == 200 && !err->code
           && (end = memchr(watch->line.data + begin, '\n', watch->line.len - begin))) {
        size_t line_len = (size_t)(end - watch->line.data) - begin;

        (void)watch_take_event(watch, watch->line.data + begin, line_len, err);
        begin += line_len + 1;
    }
    strbuf_consume(&watch->line, begin);
    if (!err->code && watch->line.len > EVENT_MAX)
        (void)aq_fail(err, EMSGSIZE, "an event of more than %u bytes", EVENT_MAX);
    if (err->code)
        watch_wait(watch, 0); /* breaks it off */
}

static void watch_on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct kube_watch *watch = data;
    struct aq_error failed = *err;

    (void)ex;
    watch->following = NULL;
    if (!failed.code && watch->status != 200)
        (void)kube_status_read(watch->status, watch->line.data, watch->line.len, &failed);
    watch_conclude(watch, &failed);
}

/* The watch is over: 'err' says why if that is not how watches end. */
static void watch_conclude(struct kube_watch *watch, const struct aq_error *err)
{
    struct aq_error failed = watch->failed.code ? watch->failed : *err;

    strbuf_done(&watch->line);
    watch->must_list = watch->failed.code || failed.code == EKEYEXPIRED;
    if (failed.code && failed.code != EKEYEXPIRED)
        watch_fail(watch, &failed);
    else
        watch_wait(watch, AGAIN_MSEC_MIN);
}

static void watch_follow(struct kube_watch *watch)
{
    static const struct exchange_ops ops = { .on_head = watch_on_head,
                                             .on_body = watch_on_body,
                                             .on_end = watch_on_end };
    AQ_CLEANUP(aq_freep) char *path = aq_format(
        "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s%s%s", watch->path,
        WATCH_SECONDS, watch->version.data, watch->selector[0] ? "&" : "", watch->selector);
    struct aq_error err = { 0 };

    watch->failed = (struct aq_error){ .code = 0 };
    watch->status = 0;
    if (kube_api_follow(watch->conf.api, path, &ops, watch, &watch->following, &err) == 0)
        watch_wait(watch, WATCH_MSEC_MAX);
    else
        watch_fail(watch, &err);
}

/* ---- life ---- */

static void watch_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

struct kube_watch *kube_watch_new(const struct kube_watch_conf *conf)
{
    struct kube_watch *watch = aq_alloc(sizeof(*watch));

    *watch = (struct kube_watch){ .conf = *conf,
                                  .path = aq_strdup(conf->path),
                                  .selector = aq_strdup(conf->selector ? conf->selector : ""),
                                  .version = STRBUF_INIT,
                                  .line = STRBUF_INIT,
                                  .must_list = true };
    (void)uv_timer_init(kube_api_loop(conf->api), &watch->timer);
    watch->timer.data = watch;
    watch_wait(watch, 0);
    return watch;
}

void kube_watch_free(struct kube_watch *watch)
{
    if (!watch)
        return;
    kube_call_cancel(watch->listing);
    exchange_cancel(watch->following);
    map_done(&watch->known);
    strbuf_done(&watch->version);
    strbuf_done(&watch->line);
    free(watch->path);
    free(watch->selector);
    uv_close((uv_handle_t *)&watch->timer, watch_on_closed);
}
