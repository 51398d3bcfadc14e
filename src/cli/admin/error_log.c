/* SPDX-License-Identifier: Apache-2.0 */
/* "admin error-log": what clients reported as having gone wrong in them. */
#include <errno.h>

#include "base/clock.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define ERROR_LOG_PATH "/logs/error"
#define SHOWN_DEFAULT 20
#define SHOWN_MAX 100
#define PAGE_MAX 1000000

struct error_log_opts {
    struct cli_int limit, page;
};

static const struct cli_opt ls_opts[] = {
    { 'n', "limit", CLI_INT, offsetof(struct error_log_opts, limit), "N",
      "so many on a page, 100 at most; default 20" },
    { 0, "page", CLI_INT, offsetof(struct error_log_opts, page), "N", "another page; default 1" },
    CLI_OPT_END,
};

static const struct column columns[] = {
    { "log_id", "ID", COLUMN_TEXT, COLUMN_IS_NAME },
    { "created_at", "AGE", COLUMN_TIME, 0 },
    { "severity", "SEVERITY", COLUMN_STATUS, 0 },
    { "source", "SOURCE", COLUMN_TEXT, 0 },
    { "user", "USER-ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "request_status", "STATUS", COLUMN_NUMBER, 0 },
    { "request_url", "URL", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "message", "MESSAGE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "context_lang", "LANGUAGE", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "context_env", "ENVIRONMENT", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "traceback", "TRACEBACK", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "is_read", "READ", COLUMN_BOOL, COLUMN_IS_EXTRA },
    COLUMN_END,
};

/* Seconds, as clients read them, into what columns show. */
static void error_log_set_times(json_t *logs)
{
    json_t *log;
    size_t i;

    json_array_foreach(logs, i, log) {
        double seconds = json_number_value(json_object_get(log, "created_at"));
        char text[CLOCK_ISO_MAX];

        clock_format_iso((int64_t)(seconds * (double)USEC_PER_SEC), text);
        (void)json_object_set_new(log, "created_at", json_string(text));
    }
}

static int error_log_print(struct cli *cli, const json_t *answer, int64_t page, int64_t limit,
                           struct aq_error *err)
{
    json_t *logs = json_object_get(answer, "logs");
    long long total = (long long)json_integer_value(json_object_get(answer, "count"));
    int r;

    error_log_set_times(logs);
    if ((r = list_print(cli, columns, logs, err)) < 0 || !output_is_human(&cli->output))
        return r;
    if (total == 0)
        cli_note(cli, "no client has reported an error");
    else if (page * limit < total)
        cli_note(cli, "%zu of %lld; the next: --page %lld", json_array_size(logs), total,
                 (long long)page + 1);
    return 0;
}

static int error_log_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct error_log_opts *opts = data;
    int64_t limit = opts->limit.is_set ? opts->limit.value : SHOWN_DEFAULT;
    int64_t page = opts->page.is_set ? opts->page.value : 1;
    json_t *answer = NULL;
    int r;

    (void)argc;
    (void)argv;
    if (limit < 1 || limit > SHOWN_MAX)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--limit takes 1 to %d", SHOWN_MAX);
    if (page < 1 || page > PAGE_MAX)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--page takes 1 to %d", PAGE_MAX);
    strbuf_addf(&path, ERROR_LOG_PATH "?page_size=%lld&page_no=%lld", (long long)limit,
                (long long)page);
    r = cli_call(cli, METHOD_GET, path.data, NULL, &answer, err);
    if (r == 0)
        r = error_log_print(cli, answer, page, limit, err);
    json_decref(answer);
    return r;
}

const struct cli_verb verb_admin_error_log_ls = {
    .name = "admin error-log ls",
    .args = "",
    .summary = "List errors that clients reported, the newest first",
    .details = "Users see their own, administrators of a domain those of its users, superadmins\n"
               "all. --columns also shows traceback, context_lang, context_env and is_read.",
    .examples =
        "aliquot admin error-log ls -n 100 --page 2\naliquot admin error-log ls -n 1 --columns message,traceback -o yaml",
    .opts = ls_opts,
    .opts_size = sizeof(struct error_log_opts),
    .run = error_log_ls,
};

static int error_log_clear(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct cli_things logs = { ERROR_LOG_PATH "/", "error log" };

    (void)data;
    return cli_things_call(cli, METHOD_POST, &logs, "/clear", NULL, argc, argv, err);
}

const struct cli_verb verb_admin_error_log_clear = {
    .name = "admin error-log clear",
    .args = "ID...",
    .summary = "List reports of errors no more",
    .examples = "aliquot admin error-log clear 5f0c1c52-6d3e-4c8e-9a43-8f1f3a5f9d11",
    .min_args = 1,
    .max_args = -1,
    .run = error_log_clear,
};
