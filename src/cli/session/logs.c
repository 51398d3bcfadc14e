/* SPDX-License-Identifier: Apache-2.0 */
/* "logs": what a session's program has printed. */
#include "cli/session/logs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "cli/client.h"
#include "cli/local_date.h"
#include "cli/request.h"
#include "cli/session/kernel_logs.h"
#include "cli/session/log_filter.h"
#include "cli/session/log_position.h"
#include "cli/session/session.h"
#include "cli/verbs.h"
#include "model/status.h"

#define FOLLOW_AGAIN_USEC 300000 /* before the manager is asked again that was lost */
#define POLL_MSEC 5000           /* for kernels that start later */
#define POLL_OVER_MSEC 1000      /* and when all logs have ended, for the session's end */

struct logs_verb_opts {
    struct logs_opts logs; /* first: the rows below also read one that stands alone */
};

static const struct cli_opt logs_opts[] = {
    LOGS_OPT_ROWS(struct logs_verb_opts),
    { 0, "attempt", CLI_INT, offsetof(struct logs_verb_opts, logs.attempt), "N",
      "logs of this attempt of a retried session; default: the last", "attempt" },
    CLI_OPT_END,
};

/* ---- of one kernel ---- */

/* What comes of the log, on its way out. */
struct logs_stream {
    struct cli *cli;
    const struct logs_opts *opts;
    struct log_filter *filter; /* NULL = all lines */
    struct log_position position;
    bool has_position;  /* the log has times, and can be gone on with */
    bool has_begun;     /* bytes have come, ever */
    bool is_unwritable; /* 'written' is why */
    int written;
    int64_t lost_usec; /* of cli_awaits_manager() */
};

static int logs_write(struct logs_stream *s, const char *bytes, size_t len)
{
    s->written = s->filter ? log_filter_feed(s->filter, bytes, len)
                           : fs_write_all(STDOUT_FILENO, bytes, len);
    s->is_unwritable = s->written < 0;
    return s->written;
}

static int logs_on_body(void *data, const char *bytes, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct logs_stream *s = data;

    s->has_begun = true;
    s->lost_usec = 0;
    if (!s->has_position)
        return logs_write(s, bytes, len);
    log_position_take(&s->position, bytes, len, s->opts->timestamps, &text);
    return text.len ? logs_write(s, text.data, text.len) : 0;
}

/* 'since' in place of the options that say where it begins; NULL = as they say. */
static int logs_open(struct logs_stream *s, const char *name, const char *since,
                     struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    struct logs_opts opts = *s->opts;
    char text[CLOCK_ISO_MAX];

    if (since)
        opts.tail.is_set = false;
    opts.timestamps |= s->has_position;
    session_path(s->cli, &path, name, "/logs");
    cli_path_query(&path, "since", since ? since : local_date_resolve(opts.since, text));
    cli_path_options(&path, logs_opts, &opts);
    return cli_stream(s->cli, METHOD_GET, path.data, NULL, logs_on_body, s, err);
}

/* Until its end. A manager that goes away, or gives way to another, is waited for. */
static int logs_follow(struct logs_stream *s, const char *name, struct aq_error *err)
{
    bool is_only_new = s->opts->tail.is_set && s->opts->tail.value == 0;
    bool has_answered = !is_only_new || !s->opts->kernel; /* logs_show() has asked */
    char begun[CLOCK_ISO_MAX];
    const char *since = NULL;
    int r;

    (void)clock_format_iso(clock_realtime_usec(), begun);
    s->has_position = true;
    while ((r = logs_open(s, name, since, err)) < 0 && !s->is_unwritable) {
        if (r == -EINVAL && s->has_position && !s->has_begun && !s->opts->timestamps
            && !s->opts->since) { /* a log without times */
            s->has_position = false;
            continue;
        }
        if (!s->has_position
            || !cli_awaits_manager(s->cli, err, has_answered || s->has_begun, &s->lost_usec))
            return r;
        (void)usleep(FOLLOW_AGAIN_USEC);
        log_position_reopen(&s->position);
        since = s->position.since[0] ? s->position.since : is_only_new ? begun : NULL;
    }
    return r;
}

static int logs_show_one(struct cli *cli, const struct logs_opts *opts, const char *name,
                         struct aq_error *err)
{
    struct logs_stream s = { .cli = cli, .opts = opts };
    int r = opts->grep ? log_filter_new(opts->grep, opts->timestamps, &s.filter, err) : 0;

    if (r == 0)
        r = opts->follow ? logs_follow(&s, name, err) : logs_open(&s, name, NULL, err);
    if (r == 0 && s.filter && (s.written = log_filter_end(s.filter)) < 0)
        s.is_unwritable = true;
    if (s.is_unwritable)
        r = aq_fail(err, -s.written, "cannot write the log: %s", strerror(-s.written));
    log_filter_free(s.filter);
    return r;
}

static bool logs_as_json(const struct cli *cli)
{
    return cli->output.format == OUTPUT_JSON || cli->output.format == OUTPUT_JSONL;
}

/* Until it runs, with what it waits for; what one that has ended wrote is there. */
static int logs_await(struct cli *cli, const char *name, struct aq_error *err)
{
    struct follow_session session;
    int r = session_await(cli, name, &session, err);

    if (r == -ECHILD)
        cli->hint[0] = '\0';
    return r == -ECHILD ? 0 : r;
}

/* ---- of several kernels ---- */

struct logs_merged {
    struct cli *cli;
    struct follow_session session;
    struct kernel_logs *logs;
    uv_timer_t poll;
    bool has_poll, is_final;
    struct exchange *asking;
    int r;
    struct aq_error err;
};

static void logs_take_session(struct logs_merged *m, const json_t *session)
{
    const char *text = json_string_value(json_object_get(session, "status"));
    enum session_status status;

    m->is_final = text && session_status_parse(text, &status) == 0 && session_is_terminal(status);
    if (m->r == 0)
        m->r = kernel_logs_update(m->logs, session, &m->err);
}

/* A manager that does not answer may be restarting: the logs wait for it, too. One that refuses has
 * removed the session, or the right to it.
 */
static void logs_on_session(void *data, const struct client_response *response,
                            const struct aq_error *err)
{
    struct logs_merged *m = data;
    int status = response ? response->head->status : 0;
    json_t *session;

    (void)err;
    m->asking = NULL;
    m->is_final |= status >= 400 && status < 500 && status != 429;
    if (status != 200)
        return;
    session = json_loadb(response->body, response->body_len, 0, NULL);
    if (session)
        logs_take_session(m, session);
    json_decref(session);
}

static void logs_ask(struct logs_merged *m)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct client_request request = { .method = METHOD_GET, .answer_msec = POLL_MSEC };

    session_path(m->cli, &path, m->session.id, "");
    if (!m->asking && m->r == 0)
        m->r = cli_begin_fetch(m->cli, path.data, request, logs_on_session, m, &m->asking, &m->err);
}

static void logs_on_poll(uv_timer_t *timer)
{
    struct logs_merged *m = timer->data;

    logs_ask(m);
    (void)uv_timer_start(timer, logs_on_poll,
                         kernel_logs_are_over(m->logs) ? POLL_OVER_MSEC : POLL_MSEC, 0);
}

/* One has ended: maybe the session has, or it starts again. */
static void logs_on_change(void *data)
{
    struct logs_merged *m = data;

    if (m->has_poll && kernel_logs_are_over(m->logs))
        (void)uv_timer_start(&m->poll, logs_on_poll, 0, 0);
}

static void logs_on_poll_closed(uv_handle_t *handle)
{
    struct logs_merged *m = handle->data;

    m->has_poll = false;
}

static void logs_open_poll(struct logs_merged *m, uv_loop_t *loop)
{
    m->poll.data = m;
    (void)uv_timer_init(loop, &m->poll);
    (void)uv_timer_start(&m->poll, logs_on_poll, POLL_MSEC, 0);
    m->has_poll = true;
}

/* The kernels' logs as one, which goes on with 'follow' until the session has ended. */
static int logs_show_merged(struct cli *cli, const struct logs_opts *opts, const char *since,
                            const json_t *session, struct aq_error *err)
{
    struct logs_merged m = { .cli = cli };
    const struct kernel_logs_options options = {
        .kernel = opts->kernel,
        .since = since,
        .grep = opts->grep,
        .tail = opts->tail,
        .follow = opts->follow,
        .timestamps = opts->timestamps,
        .no_prefix = opts->no_prefix || opts->kernel,
        .as_json = logs_as_json(cli),
        .on_change = logs_on_change,
        .data = &m,
    };
    uv_loop_t *loop;
    int r = session_read(cli, session, &m.session, err);

    if (r == 0)
        r = cli_client_open(cli, &loop, NULL, err);
    if (r == 0)
        r = kernel_logs_new(cli, &m.session, &options, &m.logs, err);
    if (r < 0)
        return r;
    logs_take_session(&m, session);
    if (opts->follow)
        logs_open_poll(&m, loop);
    while (m.r == 0 && !(kernel_logs_are_over(m.logs) && (m.is_final || !opts->follow)))
        if ((m.r = kernel_logs_check(m.logs, &m.err)) == 0)
            (void)uv_run(loop, UV_RUN_ONCE);
    if (m.r == 0)
        m.r = kernel_logs_check(m.logs, &m.err);
    exchange_cancel(m.asking);
    if (m.has_poll)
        uv_close((uv_handle_t *)&m.poll, logs_on_poll_closed);
    while (m.has_poll)
        (void)uv_run(loop, UV_RUN_ONCE);
    if (m.r == 0 && kernel_logs_are_partial(m.logs))
        m.r = CLI_EXIT_FAILURE;
    kernel_logs_free(m.logs);
    if (m.r < 0)
        *err = m.err;
    return m.r;
}

/* ---- the command ---- */

int logs_show(struct cli *cli, const struct logs_opts *opts, const char *name, struct aq_error *err)
{
    json_auto_t *session = NULL;
    char since[CLOCK_ISO_MAX];
    bool is_only_new = opts->tail.is_set && opts->tail.value == 0;
    int r = local_date_check("--since", opts->since, err);

    if (r == 0 && opts->attempt.is_set && logs_as_json(cli))
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                         "--attempt prints lines as they are, without -o json");
    if (r == 0 && opts->follow && !is_only_new) /* all is new of one that waits until then */
        r = logs_await(cli, name, err);
    if (r == 0 && (!opts->kernel || logs_as_json(cli)))
        r = session_get(cli, name, &session, err);
    if (r < 0)
        return r;
    r = logs_as_json(cli)
                || (!opts->attempt.is_set
                    && json_integer_value(json_object_get(session, "cluster_size")) > 1)
            ? logs_show_merged(cli, opts, local_date_resolve(opts->since, since), session, err)
            : logs_show_one(cli, opts, name, err);
    return r < 0 ? session_wrap_error(err, name) : r;
}

static int logs_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct logs_verb_opts *opts = data;

    (void)argc;
    return logs_show(cli, &opts->logs, argv[0], err);
}

#define LOGS_DETAILS                                                                      \
    "When a line was printed is recorded by its node, to a few milliseconds: by\n"        \
    "the time at which its first byte came. --since takes a date\n"                       \
    "('2026-11-23 02:00', local time, or 2026-11-23T02:00:00Z), Unix time in seconds,\n"  \
    "or how long ago (10m, 1h30m).\n\n"                                                   \
    "Lines of several kernels come in the order of their times, each with the name of\n"  \
    "its kernel before it; --tail is then of each. -o json prints an object with time,\n" \
    "kernel and line for each line."

const struct cli_verb verb_session_logs = {
    .name = "session logs",
    .args = "SESSION",
    .summary = "Show what a session's program has printed",
    .details = LOGS_DETAILS,
    .examples = "aliquot session logs train-3fa2b1\n"
                "aliquot session logs --grep 'loss|error' train-3fa2b1\n"
                "aliquot session logs -f --tail 20 train-3fa2b1\n"
                "aliquot session logs --kernel sub1 train-3fa2b1",
    .opts = logs_opts,
    .opts_size = sizeof(struct logs_verb_opts),
    .min_args = 1,
    .max_args = 1,
    .run = logs_run,
};

const struct cli_verb verb_logs = {
    .name = "logs",
    .args = "SESSION",
    .summary = "Show what a session has printed (the same as 'session logs')",
    .details = LOGS_DETAILS,
    .examples = "aliquot logs -f train-3fa2b1\n"
                "aliquot logs --since 10m --grep error train-3fa2b1",
    .opts = logs_opts,
    .opts_size = sizeof(struct logs_verb_opts),
    .min_args = 1,
    .max_args = 1,
    .run = logs_run,
};
