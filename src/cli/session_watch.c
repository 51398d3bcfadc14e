/* Looking at a session from outside: logs, wait, why. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/list.h"
#include "cli/session.h"
#include "cli/verbs.h"

/* ---- logs ---- */

struct logs_opts {
    bool follow;
    struct cli_int tail;
    const char *kernel;
};

static const struct cli_opt logs_opts[] = {
    { 'f', "follow", CLI_FLAG, offsetof(struct logs_opts, follow), NULL,
      "go on until the session ends" },
    { 0, "tail", CLI_INT, offsetof(struct logs_opts, tail), "N", "begin N lines before the end" },
    { 0, "kernel", CLI_STR, offsetof(struct logs_opts, kernel), "HOSTNAME",
      "of this kernel, e.g. sub1; main1 unless given" },
    CLI_OPT_END,
};

static int logs(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct logs_opts *opts = data;
    char tail[24];
    int r;

    (void)argc;
    (void)snprintf(tail, sizeof(tail), "%lld", (long long)opts->tail.value);
    session_path(cli, &path, argv[0], "/logs");
    cli_path_query(&path, "follow", opts->follow ? "true" : NULL);
    cli_path_query(&path, "tail", opts->tail.is_set ? tail : NULL);
    cli_path_query(&path, "kernel", opts->kernel);
    r = cli_copy(cli, path.data, err);
    return r < 0 ? aq_error_wrap(err, "session '%s'", argv[0]) : 0;
}

const struct cli_verb verb_session_logs = {
    .name = "session logs",
    .args = "SESSION",
    .summary = "Show what a session's program has printed",
    .examples = "aliquot session logs train-3fa2b1\n"
                "aliquot session logs -f --tail 20 train-3fa2b1",
    .opts = logs_opts,
    .opts_size = sizeof(struct logs_opts),
    .min_args = 1,
    .max_args = 1,
    .run = logs,
};

const struct cli_verb verb_logs = {
    .name = "logs",
    .args = "SESSION",
    .summary = "Show what a session has printed (the same as 'session logs')",
    .examples = "aliquot logs -f train-3fa2b1",
    .opts = logs_opts,
    .opts_size = sizeof(struct logs_opts),
    .min_args = 1,
    .max_args = 1,
    .run = logs,
};

/* ---- wait ---- */

struct wait_opts {
    struct cli_int timeout;
};

static const struct cli_opt wait_opts[] = {
    { 0, "timeout", CLI_DURATION, offsetof(struct wait_opts, timeout), "TIME",
      "give up after this long, with exit status 3" },
    CLI_OPT_END,
};

static int wait_for(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct wait_opts *opts = data;
    AQ_CLEANUP(aq_freep) struct follow_session *sessions =
        calloc((size_t)argc, sizeof(*sessions));
    int r = 0, status = 0;

    if (!sessions)
        return aq_fail(err, ENOMEM, "sessions");
    for (int i = 0; r == 0 && i < argc; i++)
        r = session_resolve(cli, argv[i], &sessions[i], err);
    if (r == 0)
        r = follow_sessions(cli, sessions, (size_t)argc, 0, opts->timeout.value, &status, err);
    if (r == -ETIMEDOUT) {
        cli_note(cli, "aliquot: %s", err->text);
        return CLI_EXIT_TIMEOUT;
    }
    return r < 0 ? r : status;
}

const struct cli_verb verb_session_wait = {
    .name = "session wait",
    .args = "SESSION...",
    .summary = "Wait until sessions have ended and exit as their program did",
    .details = "With several sessions: as the first of them that failed, else 0.",
    .examples = "aliquot session wait train-3fa2b1 && echo done\n"
                "aliquot session wait --timeout 10m job-1 job-2",
    .opts = wait_opts,
    .opts_size = sizeof(struct wait_opts),
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_RUNS_PROGRAM,
    .run = wait_for,
};

/* ---- why ---- */

static const struct column why_columns[] = {
    { "status", "STATUS", COLUMN_STATUS, COLUMN_IS_NAME },
    { "reason", "REASON", COLUMN_TEXT, 0 },
    { "text", "TEXT", COLUMN_TEXT, COLUMN_IS_NESTED },
    { "explanation", "EXPLANATION", COLUMN_TEXT, COLUMN_IS_NESTED },
    COLUMN_END,
};

int session_print_text(struct cli *cli, const json_t *answer, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct column line = { "", "", COLUMN_TEXT, 0 };
    const char *text = json_string_value(json_object_get(answer, "text"));

    if (!text || !output_is_human(&cli->output) || cli->output.columns)
        return 0;
    while (*text) {
        size_t len = strcspn(text, "\n");
        json_t *piece = json_stringn_nocheck(text, len);

        strbuf_adds(&out, len ? "  " : "");
        cell_write(&cli->output, &line, piece, &out);
        strbuf_addc(&out, '\n');
        json_decref(piece);
        text += len + (text[len] == '\n');
    }
    return cli_print(&out, err);
}

struct why_opts {
    bool explain;
};

static const struct cli_opt why_opts[] = {
    { 0, "explain", CLI_FLAG, offsetof(struct why_opts, explain), NULL,
      "why it is where it is: the agents between which was chosen" },
    CLI_OPT_END,
};

static int why(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct why_opts *opts = data;
    json_t *answer = NULL;
    int r;

    (void)argc;
    if (opts->explain)
        return choices_show(cli, argv[0], err);
    session_path(cli, &path, argv[0], "/why");
    r = record_show(cli, path.data, why_columns, NULL, &answer, err);
    if (r == 0)
        r = session_print_text(cli, answer, err);
    json_decref(answer);
    return r < 0 ? aq_error_wrap(err, "session '%s'", argv[0]) : 0;
}

const struct cli_verb verb_session_why = {
    .name = "session why",
    .args = "SESSION",
    .summary = "Say why a session waits, where it runs, or why it ended",
    .details = "Which resource is short, on which agents and by how much; which policy; which\n"
               "session it waits for. Its place in the queue, and until when it starts, if\n"
               "the time limits of those before it say so.\n\n"
               "Of one that has started, --explain lists the best candidates as the scheduler\n"
               "saw them then: agents that were equal in one line, with what was free.",
    .examples = "aliquot session why train-3fa2b1\n"
                "aliquot session why --explain train-3fa2b1",
    .opts = why_opts,
    .opts_size = sizeof(struct why_opts),
    .min_args = 1,
    .max_args = 1,
    .run = why,
};
