/* SPDX-License-Identifier: Apache-2.0 */
/* "eval": code that is run in a session, by an interpreter that keeps its state. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/client.h"
#include "cli/session/session.h"
#include "cli/verbs.h"

#define CODE_MAX (480 << 10)

struct eval_opts {
    const char *language, *file, *kernel;
};

static volatile sig_atomic_t eval_was_interrupted;

static void eval_on_interrupt(int signum)
{
    (void)signum;
    eval_was_interrupted = 1;
}

/* ---- what it writes ---- */

static void eval_note(const struct cli *cli, const char *text, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf note = STRBUF_INIT;

    utf8_write_text(text, len, &note);
    cli_note(cli, "%s", note.data);
}

static void eval_show_record(const struct cli *cli, const json_t *record)
{
    const char *kind = json_string_value(json_array_get(record, 0));
    const json_t *content = json_array_get(record, 1);
    const char *text = json_string_value(content);

    if (kind && text && strcmp(kind, "stdout") == 0)
        (void)fwrite(text, 1, json_string_length(content), stdout);
    else if (kind && text && strcmp(kind, "stderr") == 0)
        (void)fwrite(text, 1, json_string_length(content), stderr);
    else if (text)
        eval_note(cli, text, json_string_length(content));
    else if (json_is_array(content) && json_is_string(json_array_get(content, 0)))
        cli_note(cli, "[%s, %zu bytes; shown by clients with pictures]",
                 json_string_value(json_array_get(content, 0)),
                 json_string_length(json_array_get(content, 1)));
}

static void eval_show(const struct cli *cli, const json_t *result)
{
    const json_t *record;
    size_t i;

    json_array_foreach(json_object_get(result, "console"), i, record)
        eval_show_record(cli, record);
    (void)fflush(stdout);
}

/* ---- requests ---- */

static int eval_call(struct cli *cli, const struct follow_session *session, json_t *body,
                     json_t **ret_result, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *sent = body;
    json_auto_t *answer = NULL;
    json_t *result;
    int r;

    if (!sent)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--language is not UTF-8");
    session_old_path(cli, &path, session->name, "");
    if (session->kernel)
        (void)json_object_set_new(sent, "kernel", json_string(session->kernel));
    if ((r = cli_call(cli, METHOD_POST, path.data, sent, &answer, err)) < 0)
        return r;
    result = json_object_get(answer, "result");
    if (!json_is_object(result) || !json_is_string(json_object_get(result, "status")))
        return cli_fail_answer(cli, "it has no result", err);
    json_decref(*ret_result);
    *ret_result = json_incref(result);
    return 0;
}

static int eval_interrupt(struct cli *cli, const struct follow_session *session,
                          struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *answer = NULL;

    eval_was_interrupted = 0;
    session_old_path(cli, &path, session->name, "/interrupt");
    cli_path_query(&path, "kernel", session->kernel);
    return cli_call(cli, METHOD_POST, path.data, NULL, &answer, err);
}

static int eval_answer(struct cli *cli, const struct follow_session *session, json_t **result,
                       struct aq_error *err)
{
    const json_t *options = json_object_get(*result, "options");
    bool is_password = json_is_true(json_object_get(options, "is_password"));
    char line[CLI_LINE_MAX];
    int r = cli_read_line("", is_password, line, err);

    if (r == 0 && !utf8_is_valid(line, strlen(line)))
        return aq_fail(err, EINVAL, "the line of input is not UTF-8 text; convert it");
    return r < 0 ? r
                 : eval_call(cli, session,
                             json_pack("{s:s, s:O, s:s}", "mode", "input", "runId",
                                       json_object_get(*result, "runId"), "code", line),
                             result, err);
}

/* The run to its end; its exit code. */
static int eval_follow(struct cli *cli, const struct follow_session *session, json_t **result,
                       struct aq_error *err)
{
    const char *status;
    int r = 0;

    while (r == 0) {
        eval_show(cli, *result);
        status = json_string_value(json_object_get(*result, "status"));
        if (strcmp(status, "finished") == 0)
            return (int)json_integer_value(json_object_get(*result, "exitCode")) & 255;
        if (strcmp(status, "exec-timeout") == 0)
            return aq_fail(err, ETIMEDOUT,
                           "the code took longer than the cluster allows, and the "
                           "session is ended; 'aliquot run' has no such limit");
        if (eval_was_interrupted)
            r = eval_interrupt(cli, session, err);
        if (r == 0 && strcmp(status, "waiting-input") == 0)
            r = eval_answer(cli, session, result, err);
        else if (r == 0)
            r = eval_call(cli, session,
                          json_pack("{s:s, s:O}", "mode", "continue", "runId",
                                    json_object_get(*result, "runId")),
                          result, err);
    }
    return r;
}

static int eval_read(const struct eval_opts *opts, const char *given, struct strbuf *code,
                     struct aq_error *err)
{
    int r;

    if (given && opts->file)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "give code or --file, not both");
    if (given)
        strbuf_adds(code, given);
    r = given ? 0 : cli_read_file(opts->file ? opts->file : "-", CODE_MAX, code, err);
    if (r == -EFBIG)
        return aq_fail(err, EINVAL, "the code exceeds %d KiB; upload it as a file", CODE_MAX >> 10);
    if (r == 0 && (memchr(code->data, '\0', code->len) || !utf8_is_valid(code->data, code->len)))
        return aq_fail(err, EINVAL, "the code is not UTF-8 text, or contains NUL; convert it");
    return r;
}

static int eval_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf code = STRBUF_INIT;
    const struct sigaction action = { .sa_handler = eval_on_interrupt, .sa_flags = SA_RESTART };
    const struct eval_opts *opts = data;
    struct follow_session session;
    json_auto_t *result = NULL;
    int r = eval_read(opts, argc > 1 ? argv[1] : NULL, &code, err);

    if (r == 0)
        r = session_await(cli, argv[0], &session, err);
    if (r < 0)
        return r;
    session.kernel = opts->kernel;
    (void)sigaction(SIGINT, &action, NULL);
    r = eval_call(cli, &session,
                  json_pack("{s:s, s:s#, s:{s:s?}}", "mode", "query", "code", code.data, code.len,
                            "options", "language", opts->language),
                  &result, err);
    return r < 0 ? r : eval_follow(cli, &session, &result, err);
}

static const struct cli_opt eval_options[] = {
    { 'l', "language", CLI_STR, offsetof(struct eval_opts, language), "LANGUAGE",
      "python, shell, c or one that the image names; else the image's own" },
    { 'f', "file", CLI_STR, offsetof(struct eval_opts, file), "FILE",
      "the code is in this file; - is standard input" },
    SESSION_KERNEL_OPT_ROW(struct eval_opts, kernel),
    CLI_OPT_END,
};

const struct cli_verb verb_eval = {
    .name = "eval",
    .args = "SESSION [CODE]",
    .summary = "Run code in a session, by an interpreter that keeps its state",
    .details = "What one run has defined, the next can use: Python has one namespace and the\n"
               "shell is one. C is compiled and run. Without CODE it is read from standard\n"
               "input. Runs go one after the other. Ctrl-C interrupts the code, not the\n"
               "interpreter. The exit status is the code's: of Python 1 after an exception.",
    .examples = "aliquot eval notebook 'x = 6 * 7'\n"
                "aliquot eval notebook 'print(x)'\n"
                "aliquot eval -l shell notebook 'cd data; ls'\n"
                "aliquot eval -f step.py notebook",
    .opts = eval_options,
    .opts_size = sizeof(struct eval_opts),
    .min_args = 1,
    .max_args = 2,
    .flags = CLI_RUNS_PROGRAM,
    .run = eval_run,
};
