/* SPDX-License-Identifier: Apache-2.0 */
/* "logs": what a session's program has printed. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/local_date.h"
#include "cli/request.h"
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
      "go on until the session ends", "follow" },
    { 0, "tail", CLI_INT, offsetof(struct logs_opts, tail), "N",
      "only the last N lines, up to 1000000; 0 = only new ones", "tail" },
    { 0, "kernel", CLI_STR, offsetof(struct logs_opts, kernel), "HOSTNAME",
      "of this kernel, e.g. sub1; default main1", "kernel" },
    { 0, "grep", CLI_STR, offsetof(struct logs_opts, grep), "PATTERN",
      "only lines that match this extended regular expression" },
    { 0, "since", CLI_STR, offsetof(struct logs_opts, since), "TIME",
      "only lines since then: a local date, Unix time, or how long ago" },
    { 't', "timestamps", CLI_FLAG, offsetof(struct logs_opts, timestamps), NULL,
      "before each line when it was printed, in UTC", "timestamps" },
    CLI_OPT_END,
};

static int logs_on_body(void *data, const char *bytes, size_t len)
{
    return log_filter_feed(data, bytes, len);
}

static int logs_filter(struct cli *cli, const struct logs_opts *opts, const char *path,
                       struct aq_error *err)
{
    struct log_filter *filter = NULL;
    int r = log_filter_new(opts->grep, opts->timestamps, &filter, err);

    if (r == 0)
        r = cli_stream(cli, METHOD_GET, path, NULL, logs_on_body, filter, err);
    if (r == 0 && (r = log_filter_end(filter)) < 0)
        (void)aq_fail(err, -r, "cannot write the log: %s", strerror(-r));
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
    char since[CLOCK_ISO_MAX];
    bool is_only_new = opts->tail.is_set && opts->tail.value == 0;
    int r = local_date_check("--since", opts->since, err);

    (void)argc;
    if (r == 0 && opts->follow && !is_only_new) /* all is new of one that waits until then */
        r = logs_await(cli, argv[0], err);
    if (r < 0)
        return r;
    session_path(cli, &path, argv[0], "/logs");
    cli_path_query(&path, "since", local_date_resolve(opts->since, since));
    cli_path_options(&path, logs_opts, opts);
    r = opts->grep ? logs_filter(cli, opts, path.data, err) : cli_copy(cli, path.data, err);
    return r < 0 ? session_wrap_error(err, argv[0]) : 0;
}

#define LOGS_DETAILS                                                                     \
    "When a line was printed is recorded by its node, to a few milliseconds: by\n"       \
    "the time at which its first byte came. --since takes a date\n"                      \
    "('2026-11-23 02:00', local time, or 2026-11-23T02:00:00Z), Unix time in seconds,\n" \
    "or how long ago (10m, 1h30m)."

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
