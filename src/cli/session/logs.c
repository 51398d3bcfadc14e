/* SPDX-License-Identifier: Apache-2.0 */
/* "logs": what a session's program has printed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/session/log_filter.h"
#include "cli/session/session.h"
#include "cli/verbs.h"

struct logs_opts {
    bool follow, timestamps;
    struct cli_int tail;
    const char *kernel, *grep, *since;
};

static const struct cli_opt logs_opts[] = {
    { 'f', "follow", CLI_FLAG, offsetof(struct logs_opts, follow), NULL,
      "go on until the session ends" },
    { 0, "tail", CLI_INT, offsetof(struct logs_opts, tail), "N", "begin N lines before the end" },
    { 0, "kernel", CLI_STR, offsetof(struct logs_opts, kernel), "HOSTNAME",
      "of this kernel, e.g. sub1; main1 unless given" },
    { 0, "grep", CLI_STR, offsetof(struct logs_opts, grep), "PATTERN",
      "only lines that match this extended regular expression" },
    { 0, "since", CLI_STR, offsetof(struct logs_opts, since), "TIME",
      "only lines from a date, or so long ago, on: by their own times" },
    { 't', "timestamps", CLI_FLAG, offsetof(struct logs_opts, timestamps), NULL,
      "before each line its own time, in UTC" },
    CLI_OPT_END,
};

static int logs_on_body(void *data, const char *bytes, size_t len)
{
    return log_filter_feed(data, bytes, len);
}

/* Without times --since can choose no lines; --timestamps has shown them as they are. */
static int logs_lack_times(struct cli *cli, const struct logs_opts *opts, const char *session,
                           struct aq_error *err)
{
    static const char text[] = "no line of the log begins with a time, and times of lines are not "
                               "recorded; let the program print them";

    if (!opts->since) {
        cli_note(cli, "%s", text);
        return 0;
    }
    cli_hint(cli, "for the end of the log: aliquot logs --tail 100 %.64s", session);
    return aq_fail(err, EINVAL, "--since: %s", text);
}

static int logs_filter(struct cli *cli, const struct logs_opts *opts, const char *path,
                       const char *session, struct aq_error *err)
{
    const struct log_filter_options wanted = { opts->grep, opts->since, opts->timestamps };
    struct log_filter *filter = NULL;
    int r = log_filter_new(&wanted, &filter, err);

    if (r == 0)
        r = cli_stream(cli, METHOD_GET, path, NULL, logs_on_body, filter, err);
    if (r == 0 && (r = log_filter_end(filter)) < 0)
        (void)aq_fail(err, -r, "cannot write the log: %s", strerror(-r));
    if (r == 0 && (opts->since || opts->timestamps) && !log_filter_has_times(filter))
        r = logs_lack_times(cli, opts, session, err);
    log_filter_free(filter);
    return r;
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

static int logs_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct logs_opts *opts = data;
    char tail[24];
    int r = opts->follow ? logs_await(cli, argv[0], err) : 0;

    (void)argc;
    if (r < 0)
        return r;
    (void)snprintf(tail, sizeof(tail), "%lld", (long long)opts->tail.value);
    session_path(cli, &path, argv[0], "/logs");
    cli_path_query(&path, "follow", opts->follow ? "true" : NULL);
    cli_path_query(&path, "tail", opts->tail.is_set ? tail : NULL);
    cli_path_query(&path, "kernel", opts->kernel);
    r = opts->grep || opts->since || opts->timestamps
            ? logs_filter(cli, opts, path.data, argv[0], err)
            : cli_copy(cli, path.data, err);
    return r < 0 ? aq_error_wrap(err, "session '%s'", argv[0]) : 0;
}

#define LOGS_DETAILS                                                                 \
    "Times of lines are not recorded: --since and --timestamps go by dates at the\n" \
    "beginning of lines, as programs that keep a log print them (2026-11-23\n"       \
    "02:19:03, [2026-11-23T02:19:03.5Z]; UTC unless the line says otherwise). A\n"   \
    "line without one belongs to the line before."

const struct cli_verb verb_session_logs = {
    .name = "session logs",
    .args = "SESSION",
    .summary = "Show what a session's program has printed",
    .details = LOGS_DETAILS,
    .examples = "aliquot session logs train-3fa2b1\n"
                "aliquot session logs --grep 'loss|error' train-3fa2b1\n"
                "aliquot session logs -f --tail 20 train-3fa2b1",
    .opts = logs_opts,
    .opts_size = sizeof(struct logs_opts),
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
    .opts_size = sizeof(struct logs_opts),
    .min_args = 1,
    .max_args = 1,
    .run = logs_run,
};
