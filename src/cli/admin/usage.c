/* SPDX-License-Identifier: Apache-2.0 */
/* "admin usage": how much was held in a time, and by whom. */
#include <errno.h>

#include "cli/list.h"
#include "cli/local_date.h"
#include "cli/request.h"
#include "cli/verbs.h"

struct usage_opts {
    const char *month, *since, *until, *domain, *project, *user, *resource_group;
    int by;
};

static const struct cli_opt opts[] = {
    { 0, "month", CLI_STR, offsetof(struct usage_opts, month), "YYYY-MM",
      "a month of UTC; default: the current one", "month" },
    { 0, "since", CLI_STR, offsetof(struct usage_opts, since), "TIME",
      "in place of a month: from this local day or time, or how long ago" },
    { 0, "until", CLI_STR, offsetof(struct usage_opts, until), "TIME",
      "to the end of this day, or to this time; default: now" },
    { 0, "by", CLI_CHOICE, offsetof(struct usage_opts, by), "domain|project|user|resource-group",
      "what to sum by; default: project" },
    { 0, "domain", CLI_STR, offsetof(struct usage_opts, domain), "DOMAIN", "only of this domain",
      "domain" },
    { 0, "project", CLI_STR, offsetof(struct usage_opts, project), "PROJECT",
      "only of this project, by name or id", "project" },
    { 0, "user", CLI_STR, offsetof(struct usage_opts, user), "E-MAIL",
      "only of this user, or of this id", "user" },
    { 0, "resource-group", CLI_STR, offsetof(struct usage_opts, resource_group), "RESOURCE-GROUP",
      "only what was held there", "resource_group" },
    CLI_OPT_END,
};

/* In the order of --by. */
#define BY_PROJECT 1
static const char *const words[] = { "domain", "project", "user", "resource-group" };

#define COLUMNS_HELD                                                                              \
    { "sessions", "SESSIONS", COLUMN_NUMBER, 0 }, { "cpu_hours", "CPU-HOURS", COLUMN_NUMBER, 0 }, \
        { "mem_gib_hours", "GIB-HOURS", COLUMN_NUMBER, 0 },                                       \
        { "accelerator_hours", "ACCELERATOR-HOURS", COLUMN_SLOTS, 0 }, COLUMN_END
#define COLUMN_DOMAIN                      \
    {                                      \
        "domain", "DOMAIN", COLUMN_TEXT, 0 \
    }

static const struct column by_domain[] = {
    { "domain", "DOMAIN", COLUMN_TEXT, COLUMN_IS_NAME },
    COLUMNS_HELD,
};
static const struct column by_project[] = {
    COLUMN_DOMAIN,
    { "project", "PROJECT", COLUMN_TEXT, COLUMN_IS_NAME },
    { "project_id", "PROJECT-ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMNS_HELD,
};
static const struct column by_user[] = {
    COLUMN_DOMAIN,
    { "user", "USER", COLUMN_TEXT, COLUMN_IS_NAME },
    { "user_id", "USER-ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMNS_HELD,
};
static const struct column by_resource_group[] = {
    { "resource_group", "RESOURCE-GROUP", COLUMN_TEXT, COLUMN_IS_NAME },
    COLUMNS_HELD,
};
static const struct column *const columns[] = { by_domain, by_project, by_user, by_resource_group };

static int usage_print(struct cli *cli, int by, const json_t *answer, struct aq_error *err)
{
    const char *from = json_string_value(json_object_get(answer, "from"));
    const char *until = json_string_value(json_object_get(answer, "until"));
    char local_from[CLOCK_ISO_MAX], local_until[CLOCK_ISO_MAX];
    int64_t from_usec, until_usec;
    const json_t *items = json_object_get(answer, "items");
    int r = list_print(cli, columns[by], items, err);

    if (r == 0 && !list_note_empty(cli, items) && from && until && output_is_human(&cli->output)
        && clock_parse_date(from, &from_usec) == 0 && clock_parse_date(until, &until_usec) == 0)
        cli_note(cli, "held from %.16s to %.16s, local time",
                 clock_format_local(from_usec, local_from),
                 clock_format_local(until_usec, local_until));
    return r;
}

static int usage_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct usage_opts *given = data;
    int by = given->by ? given->by - 1 : BY_PROJECT, r;
    char since[CLOCK_ISO_MAX], until[CLOCK_ISO_MAX];
    json_t *answer = NULL;

    (void)argc;
    (void)argv;
    strbuf_adds(&path, "/aliquot/v1/usage");
    cli_path_query(&path, "by", words[by]);
    cli_path_query(&path, "since", local_date_resolve(given->since, since));
    cli_path_query(&path, "until", local_date_resolve_end(given->until, until));
    cli_path_options(&path, opts, given);
    r = cli_call(cli, METHOD_GET, path.data, NULL, &answer, err);
    if (r == 0)
        r = usage_print(cli, by, answer, err);
    json_decref(answer);
    return r;
}

const struct cli_verb verb_admin_usage = {
    .name = "admin usage",
    .args = "",
    .summary = "Show how many hours of processors, memory and accelerators were held, and by whom",
    .details =
        "What sessions held counts for the time that lies in the period, whether it was used or\n"
        "not, also of sessions that still run or that retention has removed. A session of 2\n"
        "processors and 4 GiB for 3 hours is 6 CPU-HOURS and 12 GIB-HOURS. Users see what they\n"
        "held themselves, administrators of a domain that domain.",
    .examples = "aliquot admin usage\n"
                "aliquot admin usage --month 2026-10 --by user -o csv\n"
                "aliquot admin usage --since 7d --project research --by user --sort -cpu_hours",
    .if_empty = "nothing was held in that time",
    .opts = opts,
    .opts_size = sizeof(struct usage_opts),
    .run = usage_run,
};
