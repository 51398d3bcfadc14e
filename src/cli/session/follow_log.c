/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of followed sessions, read as they grow, each line with the name of its session. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/session/follow_internal.h"
#include "cli/session/standard_input.h"

#define EARLY_MAX 8  /* sessions whose log is asked for before they run */
#define TRIES_MAX 20 /* of a finished session's log, half a second apart */

static void follow_log_put(struct followed *item, const char *bytes, size_t len)
{
    struct follow *f = item->all;
    int r;

    progress_clear(&f->progress);
    r = standard_output_write(STDOUT_FILENO, bytes, len);
    if (r < 0) {
        aq_fail(&f->err, -r, "cannot write the log: %s", strerror(-r));
        follow_fail(f);
    }
}

static void follow_log_put_line(struct followed *item)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    strbuf_addf(&out, "%s | ", item->session->name);
    strbuf_add(&out, item->line.data, item->line.len);
    strbuf_addc(&out, '\n');
    strbuf_clear(&item->line);
    follow_log_put(item, out.data, out.len);
}

static void follow_log_put_prefixed(struct followed *item, const char *bytes, size_t len)
{
    while (len) {
        const char *end = memchr(bytes, '\n', len);
        size_t size = end ? (size_t)(end - bytes) : len;

        strbuf_add(&item->line, bytes, size);
        if (end)
            follow_log_put_line(item);
        size += end != NULL;
        bytes += size;
        len -= size;
    }
}

static void follow_log_on_body(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct followed *item = data;
    size_t skipped = item->log_skip < len ? (size_t)item->log_skip : len;

    (void)ex;
    item->log_tries = 0;
    item->log_skip -= skipped;
    item->log_seen += len - skipped;
    if (skipped == len)
        return;
    if (item->all->flags & FOLLOW_PREFIX)
        follow_log_put_prefixed(item, bytes + skipped, len - skipped);
    else
        follow_log_put(item, bytes + skipped, len - skipped);
}

static void follow_log_on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct followed *item = data;

    if (head->status == 200)
        return;
    /* A session that never ran has none; anything else may pass. */
    item->log_is_done = item->is_final && head->status == 404;
    item->log = NULL;
    exchange_cancel(ex);
    follow_ask(item);
}

static void follow_log_on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct followed *item = data;

    (void)ex;
    item->log = NULL;
    item->log_is_done = err->code == 0;
    if (item->log_is_done && item->line.len)
        follow_log_put_line(item);
    if (item->log_is_done && (item->is_final || item->all->events))
        follow_check(item->all); /* an event tells, or has told, of the end */
    else
        follow_ask(item);
}

/* The manager keeps a request for the log of what has not begun; but many of
 * them would take the connections of those that run.
 */
static bool follow_log_may_exist(const struct followed *item)
{
    return item->is_final || item->all->count <= EARLY_MAX || item->status == SESSION_RUNNING
           || item->status == SESSION_RUNNING_DEGRADED || item->status == SESSION_TERMINATING;
}

void follow_log_need(struct followed *item)
{
    static const struct exchange_ops ops = {
        .on_head = follow_log_on_head,
        .on_body = follow_log_on_body,
        .on_end = follow_log_on_end,
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct client_request request = { .method = METHOD_GET, .body_max = UINT64_MAX };
    struct follow *f = item->all;

    if (!(f->flags & FOLLOW_LOGS) || item->kernels || !item->log_is_known || item->log
        || item->log_is_done || !follow_log_may_exist(item))
        return;
    item->log_tries++;
    item->log_skip = item->log_seen;
    follow_path(item, "/aliquot/v1/sessions/", "/logs?follow=true", &path);
    if (cli_begin_send(f->cli, path.data, request, &ops, item, &item->log, &f->err) < 0)
        follow_fail(f);
}

bool follow_log_is_over(const struct followed *item)
{
    if (item->kernels)
        return kernel_logs_are_over(item->kernels);
    return !(item->all->flags & FOLLOW_LOGS) || item->log_is_done
           || (!item->log && item->log_tries >= TRIES_MAX);
}

/* ---- of several kernels ---- */

static void follow_log_on_kernels_changed(void *data)
{
    struct followed *item = data;
    struct follow *f = item->all;

    if (kernel_logs_check(item->kernels, &f->err) < 0)
        follow_fail(f);
    else if (item->is_final)
        follow_check(f);
    else if (kernel_logs_are_over(item->kernels))
        follow_ask(item);
}

static void follow_log_before_write(void *data)
{
    struct followed *item = data;

    progress_clear(&item->all->progress);
}

void follow_log_update(struct followed *item, const json_t *session)
{
    struct follow *f = item->all;
    const struct kernel_logs_options options = {
        .label = f->flags & FOLLOW_PREFIX ? item->session->name : NULL,
        .follow = true,
        .no_prefix = f->flags & FOLLOW_BARE,
        .on_change = follow_log_on_kernels_changed,
        .before_write = follow_log_before_write,
        .data = item,
    };
    bool has_several = json_integer_value(json_object_get(session, "cluster_size")) > 1;

    if (!(f->flags & FOLLOW_LOGS))
        return;
    if (!item->log_is_known && has_several
        && kernel_logs_new(f->cli, item->session, &options, &item->kernels, &f->err) < 0)
        follow_fail(f);
    item->log_is_known = true;
    if (item->kernels && kernel_logs_update(item->kernels, session, &f->err) < 0)
        follow_fail(f);
}

void follow_log_done(struct followed *item)
{
    kernel_logs_free(AQ_TAKE(item->kernels));
    exchange_cancel(item->log);
    item->log = NULL;
    if (item->line.len)
        follow_log_put_line(item);
    strbuf_done(&item->line);
}
