/* SPDX-License-Identifier: Apache-2.0 */
/* helper.c - the process of one plugin: asked, timed out, restarted */
#include "accelhost/helper.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "accelhost/answer.h"
#include "accelhost/helper_process.h"
#include "accelhost/linked_plugin.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"

#define DELAY_MAX_USEC (60 * USEC_PER_SEC)

struct helper {
    struct helper_conf conf;        /* texts are ours */
    struct helper_process *process; /* NULL = none */
    struct linked_plugin *linked;   /* instead of a process; NULL = none */
    struct list calls;              /* the first may be under way */
    bool is_busy;                   /* it is */
    int64_t last_id;
    int failures;       /* in a row */
    int64_t start_usec; /* when to start the next process; 0 = one is there */
    uv_timer_t timer;   /* its closing frees all this */
};

struct helper_call {
    struct list link;
    struct helper *helper;
    int64_t id, deadline_usec;
    char *text;          /* the request, one line */
    helper_done_fn done; /* NULL = cancelled while under way */
    void *data;
};

static void helper_set_timer(struct helper *h);
static void helper_send_next(struct helper *h);

/* ---- calls ---- */

static void helper_drop_call(struct helper_call *call)
{
    list_remove(&call->link);
    free(call->text);
    free(call);
}

/* Returns what the callee says about the answer. */
static bool helper_finish_call(struct helper_call *call, const json_t *result, struct aq_error *err)
{
    helper_done_fn done = call->done;
    void *data = call->data;

    helper_drop_call(call);
    return !done || done(data, result, err);
}

static struct helper_call *helper_first_call(struct helper *h)
{
    return list_is_empty(&h->calls) ? NULL : LIST_ENTRY(h->calls.next, struct helper_call, link);
}

/* ---- the end of a process ---- */

static void helper_give_up_process(struct helper *h)
{
    helper_process_free(AQ_TAKE(h->process));
    linked_plugin_free(AQ_TAKE(h->linked));
    h->is_busy = false;
}

/* The process is of no more use: say why, plan the next one. */
static void helper_fail(struct helper *h, const char *why)
{
    /* at once after it has served something */
    int64_t delay = h->failures
                        ? AQ_MIN(USEC_PER_SEC << AQ_MIN(h->failures - 1, 10), DELAY_MAX_USEC)
                        : 0;
    struct helper_call *call = h->is_busy ? helper_first_call(h) : NULL;
    char text[256];

    (void)snprintf(text, sizeof(text), "%s", why);
    helper_give_up_process(h);
    h->start_usec = clock_monotonic_usec() + delay;
    h->failures++;
    if (call) {
        struct aq_error err = { 0 };

        (void)aq_fail_as(&err, EIO, "accelerator-failed", h->conf.name,
                         "accelerator plugin '%s' %s", h->conf.name, text);
        (void)helper_finish_call(call, NULL, &err);
    }
    helper_set_timer(h);
    h->conf.on_failed(h->conf.data, text);
}

/* ---- answers ---- */

static void helper_on_result(struct helper *h, int64_t id, const json_t *result,
                             struct aq_error *why)
{
    struct helper_call *call = h->is_busy ? helper_first_call(h) : NULL;

    if (id == 0) { /* it could not be loaded */
        helper_fail(h, why->text);
        return;
    }
    if (!call || call->id != id) {
        helper_fail(h, "answers what it was not asked");
        return;
    }
    h->is_busy = false;
    if (!result) {
        struct aq_error err = { 0 };

        (void)aq_fail_as(&err, EIO, "accelerator-failed", h->conf.name,
                         "accelerator plugin '%s': %s", h->conf.name, why->text);
        (void)helper_finish_call(call, NULL, &err);
    } else if (helper_finish_call(call, result, why)) {
        h->failures = 0;
    } else {
        helper_fail(h, why->text);
        return;
    }
    helper_send_next(h);
    helper_set_timer(h);
}

static void helper_on_line(void *data, const char *line, size_t len)
{
    struct helper *h = data;
    struct aq_error why = { 0 }, err = { 0 };
    json_t *result = NULL;
    int64_t id;

    if (answer_parse(line, len, &id, &result, &why, &err) < 0)
        helper_fail(h, err.text);
    else
        helper_on_result(h, id, result, &why);
    json_decref(result);
}

static void helper_on_failed(void *data, const char *why)
{
    helper_fail(data, why);
}

/* ---- requests ---- */

static void helper_send_next(struct helper *h)
{
    struct helper_call *call = helper_first_call(h);

    if (!(h->process || h->linked) || h->is_busy || !call)
        return;
    h->is_busy = true;
    if (h->linked)
        linked_plugin_send(h->linked, AQ_TAKE(call->text));
    else
        helper_process_send(h->process, AQ_TAKE(call->text));
}

/* ---- the start of a process ---- */

static int helper_start_process(struct helper *h, struct aq_error *err)
{
    static const struct helper_events events = { .on_line = helper_on_line,
                                                 .on_failed = helper_on_failed };
    int r;

    if (h->conf.linked)
        return linked_plugin_new(&h->conf, &events, h, &h->linked, err);
    r = helper_process_new(&h->conf, &events, h, &h->process);
    if (r < 0)
        (void)aq_fail(err, -r, "cannot be started: %.160s: %s", h->conf.program,
                      r == UV_ENOENT && access(h->conf.program, X_OK) == 0
                          ? "it needs the GNU C library (glibc), which this machine does not have"
                          : uv_strerror(r));
    return r;
}

static void helper_start(struct helper *h)
{
    struct aq_error err = { 0 };

    h->start_usec = 0;
    if (helper_start_process(h, &err) < 0) {
        helper_fail(h, err.text);
        return;
    }
    h->conf.on_started(h->conf.data);
    helper_send_next(h);
}

/* ---- time ---- */

static void helper_fail_late(struct helper *h, struct helper_call *call)
{
    struct aq_error err = { 0 };

    (void)aq_fail_as(&err, ETIMEDOUT, "accelerator-failed", h->conf.name,
                     "accelerator plugin '%s' did not answer within %lld ms", h->conf.name,
                     (long long)(h->conf.limit_usec / USEC_PER_MSEC));
    (void)helper_finish_call(call, NULL, &err);
}

/* A callback may drop other calls. */
static void helper_fail_all_late(struct helper *h, const struct helper_call *busy, int64_t now)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *link;

    list_cursor_begin(&cursor, &h->calls);
    while ((link = list_cursor_next(&cursor))) {
        struct helper_call *call = LIST_ENTRY(link, struct helper_call, link);

        if (call != busy && now >= call->deadline_usec)
            helper_fail_late(h, call);
    }
}

/* Calls that waited behind one that hung have as long as if they came now. */
static void helper_extend_waiting(struct helper *h, int64_t now)
{
    LIST_FOREACH(link, &h->calls)
        LIST_ENTRY(link, struct helper_call, link)->deadline_usec = now + h->conf.limit_usec;
}

static void helper_on_timer(uv_timer_t *timer)
{
    struct helper *h = timer->data;
    int64_t now = clock_monotonic_usec();
    struct helper_call *busy = h->is_busy ? helper_first_call(h) : NULL;

    if (busy && now >= busy->deadline_usec) {
        char why[80];

        (void)snprintf(why, sizeof(why), "did not answer within %lld ms",
                       (long long)(h->conf.limit_usec / USEC_PER_MSEC));
        helper_extend_waiting(h, now);
        helper_fail(h, why);
        return; /* the timer is set */
    }
    helper_fail_all_late(h, busy, now);
    if (h->start_usec && now >= h->start_usec)
        helper_start(h);
    helper_set_timer(h);
}

/* At the next moment when something is due. */
static void helper_set_timer(struct helper *h)
{
    int64_t next = h->start_usec ? h->start_usec : INT64_MAX, now = clock_monotonic_usec();

    if (uv_is_closing((uv_handle_t *)&h->timer))
        return;
    LIST_FOREACH(link, &h->calls)
        next = AQ_MIN(next, LIST_ENTRY(link, struct helper_call, link)->deadline_usec);
    if (next == INT64_MAX)
        (void)uv_timer_stop(&h->timer);
    else
        (void)uv_timer_start(&h->timer, helper_on_timer,
                             next > now ? (uint64_t)((next - now) / USEC_PER_MSEC + 1) : 0, 0);
}

/* ---- life ---- */

struct helper *helper_new(const struct helper_conf *conf)
{
    struct helper *h = aq_alloc(sizeof(*h));

    h->conf = *conf;
    h->conf.program = aq_strdup(conf->program);
    h->conf.plugin = aq_strdup(conf->plugin);
    h->conf.config = aq_strdup(conf->config);
    h->conf.name = aq_strdup(conf->name);
    list_init(&h->calls);
    (void)uv_timer_init(conf->loop, &h->timer);
    h->timer.data = h;
    h->start_usec = 1;
    helper_set_timer(h);
    return h;
}

static void helper_on_timer_closed(uv_handle_t *handle)
{
    struct helper *h = handle->data;

    free((void *)(uintptr_t)h->conf.program);
    free((void *)(uintptr_t)h->conf.plugin);
    free((void *)(uintptr_t)h->conf.config);
    free((void *)(uintptr_t)h->conf.name);
    free(h);
}

void helper_free(struct helper *helper)
{
    if (!helper)
        return;
    LIST_FOREACH(link, &helper->calls)
        helper_drop_call(LIST_ENTRY(link, struct helper_call, link));
    helper_give_up_process(helper);
    uv_close((uv_handle_t *)&helper->timer, helper_on_timer_closed);
}

struct helper_call *helper_ask(struct helper *helper, const char *members, helper_done_fn done,
                               void *data)
{
    struct helper_call *call = aq_alloc(sizeof(*call));

    call->helper = helper;
    call->id = ++helper->last_id;
    call->deadline_usec = clock_monotonic_usec() + helper->conf.limit_usec;
    call->done = done;
    call->data = data;
    call->text = aq_format("{\"id\":%lld,%s}\n", (long long)call->id, members);
    list_add(&helper->calls, &call->link);
    helper_send_next(helper);
    helper_set_timer(helper);
    return call;
}

void helper_cancel(struct helper_call *call)
{
    if (!call)
        return;
    if (call->helper->is_busy && helper_first_call(call->helper) == call)
        call->done = NULL; /* its answer will come */
    else
        helper_drop_call(call);
}
