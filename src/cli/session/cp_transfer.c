/* SPDX-License-Identifier: Apache-2.0 */
/* One copy of "aliquot cp": a request that carries an archive, or a file. */
#include "cli/session/cp_transfer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/client.h"
#include "cli/session/session.h"
#include "cli/session/standard_input.h"
#include "cli/signals.h"
#include "transfer/tree_reader.h"
#include "transfer/tree_writer.h"

#define QUEUE_HIGH (512 * 1024)
#define PIECE 65536
#define ANSWER_MAX 65536 /* of an error */

struct cp_run {
    struct cp_job *job;
    uv_loop_t *loop;
    struct exchange *exchange; /* NULL once it has ended */
    struct cli_signals signals;
    struct progress progress;
    int64_t begun_usec;
    uint64_t bytes;
    int status;           /* of the answer, 0 = none yet */
    struct strbuf answer; /* that is no success */
    bool is_over;
    int r;
    struct aq_error err;
    /* into the session */
    struct tree_reader *tree;
    struct standard_input input;
    bool is_sent;
    /* out of it */
    struct tar_reader *archive;
    struct tree_writer *writer;
};

static void cp_leave(struct cp_run *c, int r)
{
    if (c->is_over)
        return;
    c->is_over = true;
    c->r = r;
}

static void cp_show_progress(struct cp_run *c, size_t more)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int64_t took = clock_monotonic_usec() - c->begun_usec;

    c->bytes += more;
    if (!c->progress.is_terminal)
        return;
    progress_write_bytes(&c->progress, (int64_t)c->bytes, c->job->total_bytes, &text);
    (void)progress_write_rate((int64_t)c->bytes, took, &text);
    progress_stage(&c->progress, text.data);
    progress_tick(&c->progress);
}

/* Names are a stranger's: what is not printable is replaced. */
static void cp_print_note(struct cp_run *c, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;

    utf8_write_printable(text, strlen(text), &clean);
    progress_clear(&c->progress);
    cli_note(c->job->cli, "aliquot: %s", clean.data);
}

static void cp_take_note(struct cp_run *c, const char *text)
{
    cp_print_note(c, text);
    if (strncmp(text, "failed: ", 8) == 0)
        c->job->failed++;
}

/* ---- the answer ---- */

static void cp_on_head(struct exchange *exchange, const struct message_head *head, void *data)
{
    struct cp_run *c = data;

    (void)exchange;
    c->status = head->status;
}

static void cp_take_archive(struct cp_run *c, const char *bytes, size_t len)
{
    int r = c->archive ? tar_reader_feed(c->archive, bytes, len, &c->err)
                       : standard_output_write(STDOUT_FILENO, bytes, len);

    if (r < 0 && !c->archive)
        (void)aq_fail(&c->err, -r, "cannot write to standard output: %s", strerror(-r));
    if (r < 0)
        cp_leave(c, r);
    else
        cp_show_progress(c, len);
}

static void cp_on_body(struct exchange *exchange, const char *bytes, size_t len, void *data)
{
    struct cp_run *c = data;

    (void)exchange;
    if (c->is_over)
        return;
    if (c->status < 300)
        cp_take_archive(c, bytes, len);
    else if (c->answer.len < ANSWER_MAX)
        strbuf_add(&c->answer, bytes, AQ_MIN(len, ANSWER_MAX - c->answer.len));
}

static void cp_on_end(struct exchange *exchange, const struct aq_error *err, void *data)
{
    struct cp_run *c = data;

    (void)exchange;
    c->exchange = NULL;
    if (c->is_over)
        return;
    if (c->status >= 300) {
        cp_leave(c,
                 cli_fail_status(c->job->cli, c->status, c->answer.data, c->answer.len, &c->err));
    } else if (err->code && !c->status) {
        c->err = *err;
        cp_leave(c, cli_fail_connection(c->job->cli, &c->err));
    } else if (err->code) {
        cp_leave(c, aq_fail(&c->err, ECONNRESET, "the transfer was cut off before its end"));
    } else {
        cp_leave(c, c->archive ? tar_reader_finish(c->archive, &c->err) : 0);
    }
}

/* ---- into the session ---- */

static void cp_send(struct cp_run *c, const char *bytes, size_t len)
{
    int r = exchange_write(c->exchange, bytes, len);

    if (r == -EPIPE)
        c->is_sent = true; /* the answer says why */
    else if (r < 0)
        cp_leave(c, aq_fail(&c->err, -r, "cannot send: %s", strerror(-r)));
    else
        cp_show_progress(c, len);
}

static void cp_finish_sending(struct cp_run *c)
{
    c->is_sent = true;
    (void)exchange_finish(c->exchange);
}

static bool cp_may_send(const struct cp_run *c)
{
    return c->exchange && !c->is_over && !c->is_sent && !c->status;
}

/* As long as the manager takes it. */
static void cp_send_tree(struct cp_run *c)
{
    static char piece[PIECE];

    while (cp_may_send(c) && exchange_get_queued(c->exchange) < QUEUE_HIGH) {
        ssize_t got = tree_reader_read(c->tree, piece, sizeof(piece), &c->err);

        if (got < 0)
            cp_leave(c, (int)got);
        else if (got == 0)
            cp_finish_sending(c);
        else
            cp_send(c, piece, (size_t)got);
    }
}

static void cp_on_input(void *data, const char *message, size_t len)
{
    struct cp_run *c = data;

    if (!cp_may_send(c))
        return;
    if (len)
        cp_send(c, message + 1, len - 1);
    else
        cp_finish_sending(c);
    standard_input_pause(&c->input,
                         !cp_may_send(c) || exchange_get_queued(c->exchange) > QUEUE_HIGH);
}

static void cp_on_drain(struct exchange *exchange, void *data)
{
    struct cp_run *c = data;

    (void)exchange;
    if (c->tree)
        cp_send_tree(c);
    else if (c->input.loop && cp_may_send(c))
        standard_input_pause(&c->input, false);
}

/* ---- out of the session ---- */

static int cp_on_entry(void *data, const struct tar_entry *entry, struct aq_error *err)
{
    struct cp_run *c = data;

    return tree_writer_ops.on_entry(c->writer, entry, err);
}

static int cp_on_bytes(void *data, const char *bytes, size_t len, struct aq_error *err)
{
    struct cp_run *c = data;

    return tree_writer_ops.on_bytes(c->writer, bytes, len, err);
}

static int cp_on_entry_end(void *data, struct aq_error *err)
{
    struct cp_run *c = data;

    return tree_writer_ops.on_entry_end(c->writer, err);
}

static int cp_on_archive_note(void *data, const char *text, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;

    if (strncmp(text, "error: ", 7) == 0) {
        utf8_write_printable(text + 7, strlen(text + 7), &clean);
        return aq_fail(err, EIO, "%s", clean.data);
    }
    cp_take_note(data, text);
    return 0;
}

static void cp_on_writer_note(void *data, const char *text)
{
    cp_take_note(data, text);
}

static int cp_open_writer(struct cp_run *c, struct aq_error *err)
{
    static const struct tar_reader_ops ops = {
        .on_entry = cp_on_entry,
        .on_bytes = cp_on_bytes,
        .on_entry_end = cp_on_entry_end,
        .on_note = cp_on_archive_note,
    };
    static const struct tar_limits limits = { .entries_max = 0 }; /* the manager's are asked for */
    const struct tree_writer_options options = {
        .is_wary = true, .top = c->job->top, .on_note = cp_on_writer_note, .data = c
    };
    int r = tree_writer_new(c->job->root, c->job->local, &options, &c->writer, err);

    return r < 0 ? r : tar_reader_new(&limits, &ops, c, &c->archive, err);
}

/* ---- both ---- */

static void cp_on_signal(void *data, int signum)
{
    struct cp_run *c = data;

    cp_leave(c, aq_fail(&c->err, ECANCELED, "ended by signal %d", signum));
}

static void cp_stop(struct cp_run *c)
{
    exchange_cancel(AQ_TAKE(c->exchange));
    standard_input_close(&c->input);
    cli_signals_close(&c->signals);
    progress_stage(&c->progress, "");
    tree_writer_free(c->writer);
    tar_reader_free(c->archive);
    tree_reader_free(c->tree);
    strbuf_done(&c->answer);
}

static int cp_request(struct cp_run *c, enum method method, struct aq_error *err)
{
    static const struct exchange_ops ops = {
        .on_head = cp_on_head, .on_body = cp_on_body, .on_end = cp_on_end, .on_drain = cp_on_drain
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct client_request request = { .method = method,
                                            .stream_body = method == METHOD_PUT,
                                            .body_max = UINT64_MAX };

    session_path(c->job->cli, &path, c->job->id, "/files");
    cli_path_query(&path, "path", c->job->path);
    cli_path_query(&path, "format", c->job->root < 0 ? "raw" : NULL);
    cli_path_query(&path, "kernel", c->job->kernel);
    return cli_begin_send(c->job->cli, path.data, request, &ops, c, &c->exchange, err);
}

/* What ended a transfer may be the end of the session. */
static int cp_explain_end(const struct cp_job *job, struct aq_error *err)
{
    json_t *session = NULL;
    const char *status;

    if (err->code != ECONNRESET || session_get(job->cli, job->id, &session, NULL) < 0)
        return -err->code;
    status = json_string_value(json_object_get(session, "status"));
    if (status && strcmp(status, "RUNNING") != 0 && strcmp(status, "RUNNING_DEGRADED") != 0)
        (void)aq_fail(err, ECONNRESET, "session '%s' has ended meanwhile (it is %s)", job->name,
                      status);
    json_decref(session);
    return -err->code;
}

static int cp_run_job(struct cp_job *job, enum method method, struct aq_error *err)
{
    static const struct tar_limits limits = { .entries_max = 0 }; /* the manager has some */
    static const int signums[] = { SIGINT, SIGTERM, SIGHUP, 0 };
    struct cp_run c = { .job = job, .begun_usec = clock_monotonic_usec() };
    int r;

    strbuf_init(&c.answer);
    progress_init(&c.progress, job->cli->globals.quiet, job->cli->output.ascii);
    r = cli_client_open(job->cli, &c.loop, NULL, err);
    if (r < 0)
        return r;
    if (job->root < 0 && method == METHOD_PUT)
        r = standard_input_open(&c.input, c.loop, cp_on_input, &c, err);
    else if (job->root >= 0)
        r = method == METHOD_PUT ? tree_reader_new(job->root, &job->local, 1, &limits, &c.tree, err)
                                 : cp_open_writer(&c, err);
    if (r == 0)
        r = cp_request(&c, method, err);
    if (r == 0) {
        cli_signals_open(&c.signals, c.loop, signums, cp_on_signal, &c);
        if (method == METHOD_PUT)
            cp_on_drain(c.exchange, &c);
    }
    while (r == 0 && !c.is_over)
        (void)uv_run(c.loop, UV_RUN_ONCE);
    cp_stop(&c);
    if (r < 0 || c.r == 0)
        return r;
    *err = c.err;
    return cp_explain_end(job, err);
}

int cp_into_session(struct cp_job *job, struct aq_error *err)
{
    return cp_run_job(job, METHOD_PUT, err);
}

int cp_out_of_session(struct cp_job *job, struct aq_error *err)
{
    return cp_run_job(job, METHOD_GET, err);
}
