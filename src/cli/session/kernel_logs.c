/* SPDX-License-Identifier: Apache-2.0 */
/* The logs of a session's kernels as one. */
#include "cli/session/kernel_logs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/jsonw.h"
#include "base/memory.h"
#include "base/vec.h"
#include "cli/client.h"
#include "cli/session/log_filter.h"
#include "cli/session/log_merge.h"
#include "cli/session/session.h"
#include "cli/session/standard_input.h"
#include "model/session.h"
#include "model/status.h"

#define TICK_MSEC 150          /* a line waits one or two ticks for other kernels' lines */
#define RETRY_TICKS 4          /* between retries of a log whose connection failed */
#define TRIES_ENDED_MAX 20     /* of a session that has ended */
#define TRIES_MAX 200          /* without a byte: two minutes */
#define HELD_MAX (256u << 10)  /* bytes of a log that wait for other logs before reading stops */
#define ANSWER_MAX (16u << 10) /* of an error */

struct kernel_log {
    struct kernel_logs *of;
    char hostname[KERNEL_HOSTNAME_MAX];
    char started[40]; /* last start of its program, as the manager formats it; "" = unknown */
    struct exchange *ex;
    int status;           /* of the answer */
    struct strbuf answer; /* that is an error */
    bool is_new;          /* it joined while others were followed: its log is read from the start */
    bool is_paused, is_done;
    unsigned tries, wait_ticks; /* since the last byte; before the next try */
    uint64_t seen, skip;        /* bytes taken; bytes to pass over after opening again */
};

struct kernel_logs {
    struct cli *cli;
    const struct follow_session *session;
    struct kernel_logs_options options;
    struct log_filter *filter; /* NULL = all lines */
    struct log_merge *merge;
    struct kernel_log **logs; /* as the merge numbers them */
    size_t count, cap;
    int width; /* of the longest name */
    uv_timer_t timer;
    bool has_timer, is_over;
    bool is_final;   /* the session has ended */
    bool is_partial; /* a log could not be read, and a note was printed */
    struct strbuf out;
    struct aq_error err;
};

static void kernel_logs_fail(struct kernel_logs *logs)
{
    if (logs->is_over)
        return;
    logs->is_over = true;
    logs->options.on_change(logs->options.data);
}

/* ---- lines ---- */

static void kernel_logs_write_json(struct kernel_logs *logs, const struct log_merge_line *line)
{
    struct jsonw w = jsonw_make(&logs->out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "time");
    jsonw_strn(&w, line->time, line->time_len);
    jsonw_member_str(&w, "kernel", logs->logs[line->log]->hostname);
    jsonw_key(&w, "line");
    jsonw_strn(&w, line->text, line->text_len);
    jsonw_object_end(&w);
}

/* "train/sub1 | ", in a colour of the kernel's own. */
static void kernel_logs_write_prefix(struct kernel_logs *logs, size_t log)
{
    static const char *const colours[] = { "\033[36m", "\033[33m", "\033[32m",
                                           "\033[35m", "\033[34m", "\033[31m" };
    const char *label = logs->options.label;
    bool is_coloured = logs->cli->output.colour;

    if (logs->options.no_prefix)
        return;
    if (is_coloured)
        strbuf_adds(&logs->out, colours[log % AQ_COUNT(colours)]);
    if (label)
        strbuf_addf(&logs->out, "%s/", label);
    strbuf_addf(&logs->out, "%-*s |%s ", logs->width, logs->logs[log]->hostname,
                is_coloured ? "\033[0m" : "");
}

static void kernel_logs_on_line(void *data, const struct log_merge_line *line)
{
    struct kernel_logs *logs = data;

    if (logs->filter && !log_filter_matches(logs->filter, line->text, line->text_len))
        return;
    if (logs->options.as_json) {
        kernel_logs_write_json(logs, line);
    } else {
        kernel_logs_write_prefix(logs, line->log);
        if (logs->options.timestamps) {
            strbuf_add(&logs->out, line->time, line->time_len);
            strbuf_addc(&logs->out, ' ');
        }
        strbuf_add(&logs->out, line->text, line->text_len);
    }
    strbuf_addc(&logs->out, '\n');
}

/* Writes the merged lines, and stops reading logs that are far ahead of others. */
static void kernel_logs_flush(struct kernel_logs *logs)
{
    int r;

    if (logs->out.len) {
        if (logs->options.before_write)
            logs->options.before_write(logs->options.data);
        r = standard_output_write(STDOUT_FILENO, logs->out.data, logs->out.len);
        strbuf_clear(&logs->out);
        if (r < 0) {
            (void)aq_fail(&logs->err, -r, "cannot write the log: %s", strerror(-r));
            kernel_logs_fail(logs);
        }
    }
    for (size_t i = 0; i < logs->count; i++) {
        struct kernel_log *log = logs->logs[i];
        bool is_ahead = log_merge_held(logs->merge, i) > HELD_MAX;

        if (!log->ex || is_ahead == log->is_paused)
            continue;
        log->is_paused = is_ahead;
        if (is_ahead)
            exchange_pause(log->ex);
        else
            exchange_resume(log->ex);
    }
}

/* ---- one log ---- */

static size_t kernel_log_number(const struct kernel_log *log)
{
    size_t i = 0;

    while (log->of->logs[i] != log)
        i++;
    return i;
}

static void kernel_log_end(struct kernel_log *log)
{
    struct kernel_logs *logs = log->of;

    log->is_done = true;
    log_merge_end(logs->merge, kernel_log_number(log));
    kernel_logs_flush(logs);
    if (!logs->is_over)
        logs->options.on_change(logs->options.data);
}

/* Retries later if that may help; otherwise the other logs are shown without this one, as its node
 * may be lost.
 */
static void kernel_log_fail(struct kernel_log *log, const struct aq_error *err)
{
    struct kernel_logs *logs = log->of;
    unsigned tries_max = logs->is_final ? TRIES_ENDED_MAX : TRIES_MAX;
    bool may_pass = logs->options.follow && !logs->options.tail.is_set
                    && (log->status == 0 || log->status == 200 || log->status == 429
                        || log->status >= 500);

    if (may_pass && log->tries < tries_max) {
        log->wait_ticks = RETRY_TICKS;
        return;
    }
    if (log->status == 0 && !logs->options.follow) { /* the connection to the manager failed, not
                                                        the kernel's log */
        logs->err = *err;
        kernel_logs_fail(logs);
        return;
    }
    logs->is_partial = true;
    if (logs->options.before_write)
        logs->options.before_write(logs->options.data);
    cli_note(logs->cli, "aliquot: the log of kernel '%s' cannot be read: %s", log->hostname,
             err->text);
    kernel_log_end(log);
}

static void kernel_log_on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct kernel_log *log = data;

    (void)ex;
    log->status = head->status;
}

static void kernel_log_on_body(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct kernel_log *log = data;
    size_t skipped = AQ_MIN(log->skip, (uint64_t)len);

    (void)ex;
    if (log->status != 200) {
        if (log->answer.len < ANSWER_MAX)
            strbuf_add(&log->answer, bytes, len);
        return;
    }
    log->tries = 0;
    log->skip -= skipped;
    log->seen += len - skipped;
    log_merge_feed(log->of->merge, kernel_log_number(log), bytes + skipped, len - skipped);
    kernel_logs_flush(log->of);
}

static void kernel_log_on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct kernel_log *log = data;
    struct aq_error why = *err;

    (void)ex;
    log->ex = NULL;
    log->is_paused = false;
    if (!err->code && (log->status == 200 || log->status == 404)) { /* 404: it never ran */
        kernel_log_end(log);
        return;
    }
    if (!err->code)
        (void)cli_fail_status(log->of->cli, log->status, log->answer.len ? log->answer.data : "",
                              log->answer.len, &why);
    kernel_log_fail(log, &why);
}

static void kernel_log_open(struct kernel_log *log)
{
    static const struct exchange_ops ops = {
        .on_head = kernel_log_on_head,
        .on_body = kernel_log_on_body,
        .on_end = kernel_log_on_end,
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct client_request request = { .method = METHOD_GET, .body_max = UINT64_MAX };
    const struct kernel_logs_options *options = &log->of->options;
    char tail[24];

    log->tries++;
    log->status = 0;
    log->skip = log->seen;
    strbuf_clear(&log->answer);
    strbuf_addf(&path, "/aliquot/v1/sessions/%s/logs?timestamps=true", log->of->session->id);
    cli_path_query(&path, "kernel", log->hostname);
    cli_path_query(&path, "follow", options->follow ? "true" : NULL);
    (void)snprintf(tail, sizeof(tail), "%lld", (long long)options->tail.value);
    cli_path_query(&path, "tail", options->tail.is_set && !log->is_new ? tail : NULL);
    cli_path_query(&path, "since", options->since);
    cli_path_query(&path, "owner_access_key",
                   log->of->session->owner[0] ? log->of->session->owner : NULL);
    if (cli_begin_send(log->of->cli, path.data, request, &ops, log, &log->ex, &log->of->err) < 0)
        kernel_logs_fail(log->of);
}

/* ---- all ---- */

static void kernel_logs_on_tick(uv_timer_t *timer)
{
    struct kernel_logs *logs = timer->data;

    log_merge_tick(logs->merge);
    kernel_logs_flush(logs);
    for (size_t i = 0; i < logs->count && !logs->is_over; i++)
        if (logs->logs[i]->wait_ticks && --logs->logs[i]->wait_ticks == 0)
            kernel_log_open(logs->logs[i]);
}

static void kernel_logs_on_closed(uv_handle_t *handle)
{
    struct kernel_logs *logs = handle->data;

    logs->has_timer = false;
}

int kernel_logs_new(struct cli *cli, const struct follow_session *session,
                    const struct kernel_logs_options *options, struct kernel_logs **ret,
                    struct aq_error *err)
{
    struct log_filter *filter = NULL;
    struct kernel_logs *logs;
    uv_loop_t *loop;
    int r = cli_client_open(cli, &loop, NULL, err);

    if (r == 0 && options->grep)
        r = log_filter_new(options->grep, false, &filter, err);
    if (r < 0)
        return r;
    logs = aq_alloc(sizeof(*logs));
    logs->cli = cli;
    logs->session = session;
    logs->options = *options;
    logs->filter = filter;
    logs->merge = log_merge_new(kernel_logs_on_line, logs);
    strbuf_init(&logs->out);
    logs->timer.data = logs;
    if (options->follow) {
        (void)uv_timer_init(loop, &logs->timer);
        (void)uv_timer_start(&logs->timer, kernel_logs_on_tick, TICK_MSEC, TICK_MSEC);
        logs->has_timer = true;
    }
    *ret = logs;
    return 0;
}

void kernel_logs_free(struct kernel_logs *logs)
{
    if (!logs)
        return;
    for (size_t i = 0; i < logs->count; i++) {
        exchange_cancel(logs->logs[i]->ex);
        strbuf_done(&logs->logs[i]->answer);
        free(logs->logs[i]);
    }
    if (logs->has_timer) {
        uv_loop_t *loop = logs->timer.loop;

        uv_close((uv_handle_t *)&logs->timer, kernel_logs_on_closed);
        while (logs->has_timer)
            (void)uv_run(loop, UV_RUN_ONCE);
    }
    free(logs->logs);
    log_merge_free(logs->merge);
    log_filter_free(logs->filter);
    strbuf_done(&logs->out);
    free(logs);
}

static struct kernel_log *kernel_logs_find(const struct kernel_logs *logs, const char *hostname)
{
    for (size_t i = 0; i < logs->count; i++)
        if (strcmp(logs->logs[i]->hostname, hostname) == 0)
            return logs->logs[i];
    return NULL;
}

static void kernel_logs_add(struct kernel_logs *logs, const char *hostname, bool is_new)
{
    struct kernel_log *log = aq_alloc(sizeof(*log));

    log->of = logs;
    log->is_new = is_new;
    (void)snprintf(log->hostname, sizeof(log->hostname), "%s", hostname);
    strbuf_init(&log->answer);
    vec_grow(&logs->logs, &logs->cap, logs->count + 1, sizeof(*logs->logs));
    logs->logs[logs->count++] = log;
    (void)log_merge_add(logs->merge);
    logs->width = AQ_MAX(logs->width, (int)strlen(log->hostname));
}

/* A program that was started again has a log of its own, from its beginning. */
static void kernel_log_note_start(struct kernel_log *log, const json_t *kernel)
{
    const char *status = json_string_value(json_object_get(kernel, "status"));
    const char *since = json_string_value(json_object_get(kernel, "status_changed"));
    bool is_again;

    if (!status || !since || strcmp(status, kernel_status_name(KERNEL_RUNNING)) != 0)
        return;
    is_again = log->is_done && log->started[0] && strcmp(log->started, since) != 0;
    (void)snprintf(log->started, sizeof(log->started), "%s", since);
    if (!is_again || !log->of->options.follow)
        return;
    log->is_done = false;
    log->seen = 0;
    log->is_new = true;
    log_merge_go_on(log->of->merge, kernel_log_number(log));
    kernel_log_open(log);
}

int kernel_logs_update(struct kernel_logs *logs, const json_t *session, struct aq_error *err)
{
    const json_t *kernels = json_object_get(session, "kernels"), *kernel;
    const char *text = json_string_value(json_object_get(session, "status"));
    size_t before = logs->count, i;
    enum session_status status;

    if (logs->is_over)
        return 0;
    logs->is_final = text && session_status_parse(text, &status) == 0
                     && session_is_terminal(status);
    if (!logs->options.kernel && json_array_size(kernels) > KERNEL_LOGS_MAX)
        return aq_fail_kind(err, E2BIG, CLI_KIND_USAGE,
                            "session '%s' has %zu kernels, and up to %d logs are shown at a time; "
                            "choose one with --kernel",
                            logs->session->name, json_array_size(kernels), KERNEL_LOGS_MAX);
    json_array_foreach(kernels, i, kernel) {
        const char *hostname = json_string_value(json_object_get(kernel, "hostname"));
        struct kernel_log *log = hostname ? kernel_logs_find(logs, hostname) : NULL;

        if (!hostname || (logs->options.kernel && strcmp(logs->options.kernel, hostname) != 0))
            continue;
        if (!log)
            kernel_logs_add(logs, hostname, before > 0);
    }
    json_array_foreach(kernels, i, kernel) {
        const char *hostname = json_string_value(json_object_get(kernel, "hostname"));
        struct kernel_log *log = hostname ? kernel_logs_find(logs, hostname) : NULL;

        if (log)
            kernel_log_note_start(log, kernel);
    }
    if (logs->options.kernel && logs->count == 0)
        return aq_fail(err, ENOENT, "session '%s' has no kernel '%.40s'", logs->session->name,
                       logs->options.kernel);
    for (i = before; i < logs->count && !logs->is_over; i++)
        kernel_log_open(logs->logs[i]);
    return 0;
}

bool kernel_logs_are_over(const struct kernel_logs *logs)
{
    for (size_t i = 0; i < logs->count; i++)
        if (!logs->logs[i]->is_done && !logs->is_over)
            return false;
    return logs->is_over || logs->count > 0 || !logs->options.follow;
}

bool kernel_logs_are_partial(const struct kernel_logs *logs)
{
    return logs->is_partial;
}

int kernel_logs_check(const struct kernel_logs *logs, struct aq_error *err)
{
    if (logs->err.code && err)
        *err = logs->err;
    return -logs->err.code;
}
