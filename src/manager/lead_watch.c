/* SPDX-License-Identifier: Apache-2.0 */
/* lead_watch.c - see lead_watch.h */
#include "manager/lead_watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"

/* Results of the thread that the loop's thread has not yet delivered. */
struct lead_news {
    bool has_view,
        is_new; /* is_new: of this view, or of an earlier one that it replaced undelivered */
    struct leader_view view;
    bool has_error;
    struct aq_error err;
    bool has_taken;
    int taken_result;
    int64_t epoch;
    struct aq_error taken_err;
};

struct lead_watch {
    uv_async_t wake;
    const struct lead_watch_ops *ops;
    void *data;
    char *uri;
    pthread_t thread;
    pthread_mutex_t lock; /* of the members below */
    pthread_cond_t changed;
    bool is_stopping, is_paused, wants_take;
    struct leader_view seen;
    struct leader_claim self;
    struct lead_news news;
};

/* ---- the thread ---- */

/* Wait until the row is due to be read, or there is something else to do. True = take the lead. The
 * caller checks is_stopping and is_paused.
 */
static bool watch_wait(struct lead_watch *w)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LEAD_WATCH_USEC * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!w->is_stopping && !w->wants_take && !w->is_paused
           && pthread_cond_timedwait(&w->changed, &w->lock, &until) == 0)
        continue;
    return AQ_TAKE(w->wants_take);
}

static void watch_look(struct lead_watch *w, struct leadership *leadership)
{
    struct leader_view view = { .epoch = 0 };
    struct aq_error err = { 0 };
    bool is_new = false;
    int r;

    (void)pthread_mutex_unlock(&w->lock);
    r = leadership_read(leadership, &view, &is_new, &err);
    (void)pthread_mutex_lock(&w->lock);
    if (r < 0) {
        w->news.has_error = true;
        w->news.err = err;
    } else {
        w->news.has_error = false;
        w->news.is_new = is_new || (w->news.has_view && w->news.is_new);
        w->news.has_view = true;
        w->news.view = view;
    }
}

static void watch_take(struct lead_watch *w, struct leadership *leadership)
{
    struct leader_view seen = w->seen;
    struct leader_claim self = w->self;
    struct aq_error err = { 0 };
    int64_t epoch = 0;
    int r;

    (void)pthread_mutex_unlock(&w->lock);
    r = leadership_take(leadership, &seen, &self, &epoch, &err);
    AQ_FAULT("lead.taken");
    (void)pthread_mutex_lock(&w->lock);
    w->news.has_taken = true;
    w->news.taken_result = r;
    w->news.epoch = epoch;
    w->news.taken_err = err;
}

/* Runs until the thread is paused or stopped; a lost connection is renewed by leadership_read(). */
static void watch_connected(struct lead_watch *w, struct leadership *leadership)
{
    while (!w->is_stopping && !w->is_paused) {
        bool is_to_take = watch_wait(w);

        if (w->is_stopping || w->is_paused)
            break;
        if (is_to_take)
            watch_take(w, leadership);
        else
            watch_look(w, leadership);
        (void)uv_async_send(&w->wake);
    }
}

static void watch_connect(struct lead_watch *w)
{
    struct leadership *leadership = NULL;
    struct aq_error err = { 0 };
    int r;

    (void)pthread_mutex_unlock(&w->lock);
    r = leadership_open(w->uri, &leadership, &err);
    (void)pthread_mutex_lock(&w->lock);
    if (r == 0) {
        watch_look(w, leadership);
        (void)uv_async_send(&w->wake);
        watch_connected(w, leadership);
    } else {
        w->news.has_error = true;
        w->news.err = err;
        (void)uv_async_send(&w->wake);
        if (watch_wait(w) && !w->is_paused)
            w->news = (struct lead_news){ .has_taken = true, .taken_result = r, .taken_err = err };
    }
    (void)pthread_mutex_unlock(&w->lock);
    leadership_close(leadership);
    (void)pthread_mutex_lock(&w->lock);
}

static void *watch_loop(void *data)
{
    struct lead_watch *w = data;

    (void)pthread_mutex_lock(&w->lock);
    while (!w->is_stopping) {
        if (w->is_paused)
            (void)pthread_cond_wait(&w->changed, &w->lock);
        else
            watch_connect(w);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- the loop ---- */

static void watch_on_wake(uv_async_t *wake)
{
    struct lead_watch *w = wake->data;
    struct lead_news news;

    (void)pthread_mutex_lock(&w->lock);
    news = w->news;
    w->news = (struct lead_news){ .has_view = false };
    (void)pthread_mutex_unlock(&w->lock);
    if (news.has_taken) {
        w->ops->on_taken(w->data, news.taken_result, news.epoch, &news.taken_err);
        return; /* the view was read before the take */
    }
    if (w->is_paused)
        return;
    if (news.has_error)
        w->ops->on_error(w->data, -news.err.code, &news.err);
    else if (news.has_view)
        w->ops->on_view(w->data, &news.view, news.is_new);
}

static int watch_start(struct lead_watch *w, struct aq_error *err)
{
    sigset_t all, before;
    int r;

    (void)sigfillset(&all); /* the loop's thread handles signals */
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    r = pthread_create(&w->thread, NULL, watch_loop, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r == 0
               ? 0
               : aq_fail(err, r, "cannot start the thread that watches the lead: %s", strerror(r));
}

static void watch_on_closed(uv_handle_t *handle)
{
    struct lead_watch *w = handle->data;

    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    free(w->uri);
    free(w);
}

int lead_watch_new(uv_loop_t *loop, const char *uri, const struct lead_watch_ops *ops, void *data,
                   struct lead_watch **ret, struct aq_error *err)
{
    struct lead_watch *w = aq_alloc(sizeof(*w));
    pthread_condattr_t monotonic;
    int r;

    w->ops = ops;
    w->data = data;
    w->uri = aq_strdup(uri);
    w->wake.data = w;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    (void)uv_async_init(loop, &w->wake, watch_on_wake);
    r = watch_start(w, err);
    if (r < 0) {
        uv_close((uv_handle_t *)&w->wake, watch_on_closed);
        return r;
    }
    *ret = w;
    return 0;
}

void lead_watch_take(struct lead_watch *w, const struct leader_view *seen,
                     const struct leader_claim *self)
{
    (void)pthread_mutex_lock(&w->lock);
    w->wants_take = true;
    w->seen = *seen;
    w->self = *self;
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
}

void lead_watch_pause(struct lead_watch *w, bool is_paused)
{
    (void)pthread_mutex_lock(&w->lock);
    w->is_paused = is_paused;
    w->news = (struct lead_news){ .has_view = false };
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
}

void lead_watch_free(struct lead_watch *w)
{
    if (!w)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->is_stopping = true;
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    uv_close((uv_handle_t *)&w->wake, watch_on_closed);
}
