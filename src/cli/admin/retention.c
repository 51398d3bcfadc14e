/* SPDX-License-Identifier: Apache-2.0 */
/* "admin retention": how long rows are kept, and removing old ones. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define RETENTION_PATH "/aliquot/v1/retention"

#define COLUMN_KEEP                                      \
    { "entity", "ENTITY", COLUMN_TEXT, COLUMN_IS_NAME }, \
    {                                                    \
        "keep", "KEEP", COLUMN_TEXT, 0                   \
    }
#define COLUMNS_COUNTED                                                                   \
    { "rows", "ROWS", COLUMN_NUMBER, 0 }, { "removable", "REMOVABLE", COLUMN_NUMBER, 0 }, \
    {                                                                                     \
        "oldest_at", "OLDEST", COLUMN_TIME, 0                                             \
    }
#define COLUMNS_RUN                                                                          \
    { "running", "RUNNING", COLUMN_BOOL, 0 }, { "last_run_at", "LAST RUN", COLUMN_TIME, 0 }, \
        { "last_run_ended_at", "ENDED", COLUMN_TIME, COLUMN_IS_WIDE },                       \
    {                                                                                        \
        "last_removed", "REMOVED", COLUMN_NUMBER, 0                                          \
    }

static const struct column columns[] = { COLUMN_KEEP, COLUMNS_COUNTED, COLUMNS_RUN, COLUMN_END };
static const struct column plan_columns[] = { COLUMN_KEEP, COLUMNS_COUNTED, COLUMN_END };
static const struct column done_columns[] = { COLUMN_KEEP, COLUMNS_RUN, COLUMN_END };

static int retention_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    (void)argv;
    return list_show_whole(cli, RETENTION_PATH, "items", columns, err);
}

const struct cli_verb verb_admin_retention_ls = {
    .name = "admin retention ls",
    .args = "",
    .summary = "Show how long rows are kept, how many are older, and what was removed last",
    .details =
        "KEEP is what [retention] of manager.toml says. REMOVABLE is how many rows are older\n"
        "and needed by nothing that lives; of sessions, how many sessions with all that\n"
        "hangs on them. They go in the next hour, or with 'retention run'.",
    .examples = "aliquot admin retention ls\naliquot admin retention ls -o json",
    .run = retention_ls,
};

/* ---- run ---- */

struct retention_opts {
    struct cli_list entities;
    const char *keep;
    bool dry_run, yes;
};

static const struct cli_opt opts[] = {
    { 0, "entity", CLI_LIST, offsetof(struct retention_opts, entities), "ENTITY",
      "only this, as 'retention ls' calls it; repeatable", "entities" },
    { 0, "dry-run", CLI_FLAG, offsetof(struct retention_opts, dry_run), NULL,
      "say what would be removed, and remove nothing" },
    { 0, "keep", CLI_STR, offsetof(struct retention_opts, keep), "TIME",
      "with --dry-run: as if they were kept for so long, e.g. 30d", "keep" },
    { 'y', "yes", CLI_FLAG, offsetof(struct retention_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

static int retention_post(struct cli *cli, const struct retention_opts *given, bool dry_run,
                          json_t **ret, struct aq_error *err)
{
    json_auto_t *body = json_pack("{s:b, s:[]}", "dry_run", dry_run, "entities");
    int r = cli_options_add(opts, given, body, err);

    return r < 0 ? r : cli_call(cli, METHOD_POST, RETENTION_PATH "/run", body, ret, err);
}

/* "120 of sessions, 3 of series"; "" = nothing. */
static void retention_describe(const json_t *answer, struct strbuf *out)
{
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(answer, "items"), i, row) {
        long long count = json_integer_value(json_object_get(row, "removable"));

        if (count > 0)
            strbuf_addf(out, "%s%lld of %s", out->len ? ", " : "", count,
                        json_string_value(json_object_get(row, "entity")));
    }
}

/* The row of the answer for the same entity as 'row'. */
static json_t *retention_find(const json_t *answer, const json_t *row)
{
    return list_find(json_object_get(answer, "items"), "entity",
                     json_string_value(json_object_get(row, "entity")));
}

/* Is one of the entities of 'begun' still under way? */
static bool retention_is_running(const json_t *begun, const json_t *answer)
{
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(begun, "items"), i, row)
        if (json_is_true(json_object_get(retention_find(answer, row), "running")))
            return true;
    return false;
}

/* Until all of 'begun' are done; *ret is how they are then. */
static int retention_wait(struct cli *cli, const json_t *begun, json_t **ret, struct aq_error *err)
{
    const struct timespec pause = { 0, 300 * USEC_PER_MSEC * 1000 };
    int r;

    for (;;) {
        r = cli_call(cli, METHOD_GET, RETENTION_PATH "?count=false", NULL, ret, err);
        if (r < 0 || !retention_is_running(begun, *ret))
            return r;
        json_decref(AQ_TAKE(*ret));
        (void)nanosleep(&pause, NULL);
    }
}

/* Show the entities of 'begun' as they are in 'answer'. */
static int retention_show_done(struct cli *cli, const json_t *begun, const json_t *answer,
                               struct aq_error *err)
{
    json_t *shown = json_pack("{s:[]}", "items"), *row;
    bool is_whole = true;
    size_t i;
    int r;

    json_array_foreach(json_object_get(begun, "items"), i, row) {
        json_t *now = retention_find(answer, row);

        is_whole = is_whole && !json_is_null(json_object_get(now, "last_run_ended_at"));
        (void)json_array_append(json_object_get(shown, "items"), now);
    }
    r = list_print(cli, done_columns, json_object_get(shown, "items"), err);
    json_decref(shown);
    if (r == 0 && !is_whole)
        return aq_fail(err, EIO, "not all was removed: the manager's log says why");
    return r;
}

static int retention_begin(struct cli *cli, const struct retention_opts *given,
                           struct aq_error *err)
{
    json_t *begun = NULL, *answer = NULL;
    int r = retention_post(cli, given, false, &begun, err);

    if (r == 0)
        r = retention_wait(cli, begun, &answer, err);
    if (r == 0)
        r = retention_show_done(cli, begun, answer, err);
    if (r == 0)
        cli_note(cli, "the database is as large as before, and fills its space again; "
                      "'aliquot admin db vacuum' gives it back");
    json_decref(begun);
    json_decref(answer);
    return r;
}

static int retention_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf what = STRBUF_INIT;
    const struct retention_opts *given = data;
    json_t *plan = NULL;
    int r;

    (void)argc;
    (void)argv;
    if (given->keep && !given->dry_run)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--keep goes with --dry-run; how long rows are kept is said by "
                            "[retention] of manager.toml");
    r = retention_post(cli, given, true, &plan, err);
    if (r < 0)
        return r;
    retention_describe(plan, &what);
    if (given->dry_run || what.len == 0)
        r = list_print(cli, plan_columns, json_object_get(plan, "items"), err);
    json_decref(plan);
    if (r == 0 && what.len == 0)
        cli_note(cli, "nothing is older than it is kept");
    if (r < 0 || given->dry_run || what.len == 0)
        return r;
    r = cli_confirm(given->yes, err, "Remove old rows for good, %s?", what.data);
    return r != 0 ? r : retention_begin(cli, given, err);
}

const struct cli_verb verb_admin_retention_run = {
    .name = "admin retention run",
    .args = "",
    .summary = "Remove rows now that are older than [retention] of manager.toml keeps them",
    .details =
        "Says how many and asks first; --dry-run only says it. Rows go in small pieces while\n"
        "the cluster works on; Ctrl-C stops the waiting, not the removing.",
    .examples = "aliquot admin retention run --dry-run\n"
                "aliquot admin retention run --dry-run --entity sessions --keep 30d\n"
                "aliquot admin retention run --entity sessions --yes",
    .opts = opts,
    .opts_size = sizeof(struct retention_opts),
    .run = retention_run,
};
