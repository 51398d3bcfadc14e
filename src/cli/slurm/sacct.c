/* SPDX-License-Identifier: Apache-2.0 */
/* sacct: jobs of a span of time, those that ended included. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/slurm/field.h"
#include "cli/slurm/job_list.h"
#include "cli/slurm/slurm.h"
#include "cli/submit/slurm_begin.h"
#include "cli/verbs.h"

#define DEFAULT_FORMAT "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
#define BRIEF_FORMAT "JobID,State,ExitCode"

struct sacct_opts {
    bool version, allocations, no_header, parsable, parsable2, all_users, is_brief, is_ignored;
    const char *clusters, *jobs, *name, *user, *account, *partition, *states, *format;
    const char *start, *end, *delimiter, *ignored;
};

static const struct cli_opt sacct_opts[] = {
#define AT(member) offsetof(struct sacct_opts, member)
    { 'j', "jobs", CLI_STR, AT(jobs), "NUMBER,...", "these" },
    { 0, "name", CLI_STR, AT(name), "NAME,...", "of these names" },
    { 'u', "user", CLI_STR, AT(user), "USER,...", "of these users" },
    { 0, "uid", CLI_STR, AT(user), "USER,...", "the same" },
    { 'a', "allusers", CLI_FLAG, AT(all_users), NULL, "of all users" },
    { 'A', "accounts", CLI_STR, AT(account), "ACCOUNT,...", "of these projects" },
    { 'r', "partition", CLI_STR, AT(partition), "PARTITION,...", "of these resource groups" },
    { 's', "state", CLI_STR, AT(states), "STATE,...", "in these states" },
    { 'S', "starttime", CLI_STR, AT(start), "TIME",
      "that had not ended then; today if -j names none" },
    { 'E', "endtime", CLI_STR, AT(end), "TIME", "submitted before" },
    { 'o', "format", CLI_STR, AT(format), "FIELD,...", "fields such as JobID%20,State" },
    { 'b', "brief", CLI_FLAG, AT(is_brief), NULL, "number, state and exit code" },
    { 'n', "noheader", CLI_FLAG, AT(no_header), NULL, "no header lines" },
    { 'p', "parsable", CLI_FLAG, AT(parsable), NULL, "'|' behind each value" },
    { 'P', "parsable2", CLI_FLAG, AT(parsable2), NULL, "'|' between values" },
    { 0, "delimiter", CLI_STR, AT(delimiter), "TEXT", "in place of '|'" },
    { 'X', "allocations", CLI_FLAG, AT(allocations), NULL,
      "jobs without steps, as it is in any case" },
    { 'D', "duplicates", CLI_FLAG, AT(is_ignored), NULL, "there are none" },
    { 0, "noconvert", CLI_FLAG, AT(is_ignored), NULL, "sizes are whole numbers" },
    { 0, "units", CLI_STR, AT(ignored), "UNIT", "sizes are whole numbers" },
    SLURM_OPT_ROWS(struct sacct_opts),
#undef AT
    CLI_OPT_END,
};

static int sacct_read_time(const char *option, const char *text, int64_t *ret, struct aq_error *err)
{
    if (slurm_moment_parse(text, clock_realtime_usec(), ret) == 0)
        return 0;
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                        "Invalid time specification for --%s: %.60s; expected now-2days, "
                        "2026-12-24T08:00 or 16:00",
                        option, text);
}

/* Without -S those of today, or whenever the jobs were that -j names. */
static int sacct_read_times(const struct sacct_opts *opts, struct job_query *query,
                            struct aq_error *err)
{
    const char *start = opts->start ? opts->start : opts->jobs ? NULL : "today";
    int r = start ? sacct_read_time("starttime", start, &query->since_usec, err) : 0;

    return r == 0 && opts->end ? sacct_read_time("endtime", opts->end, &query->until_usec, err) : r;
}

static int sacct_read_line(const struct sacct_opts *opts, struct slurm_line *line,
                           struct aq_error *err)
{
    const char *chosen = getenv("SACCT_FORMAT");

    if (opts->parsable || opts->parsable2)
        line->delimiter = opts->delimiter ? opts->delimiter : "|";
    line->ends_with_delimiter = opts->parsable && !opts->parsable2;
    return slurm_line_parse(opts->format     ? opts->format
                            : opts->is_brief ? BRIEF_FORMAT
                            : chosen         ? chosen
                                             : DEFAULT_FORMAT,
                            SLURM_LINE_SACCT, job_fields, line, err);
}

static int sacct_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct sacct_opts *opts = data;
    struct job_query query = {
        .ids = opts->jobs,
        .names = opts->name,
        .users = opts->user,
        .partitions = opts->partition,
        .accounts = opts->account,
        .states = opts->states,
        .is_all_users = opts->all_users,
        .has_ended = true,
    };
    AQ_CLEANUP(job_list_done) struct job_list list = { .rows = NULL };
    struct slurm_line line = { .count = 0 };
    int r;

    (void)argc;
    (void)argv;
    if (opts->version)
        return slurm_print_version(err);
    r = sacct_read_times(opts, &query, err);
    if (r == 0)
        r = sacct_read_line(opts, &line, err);
    if (r < 0)
        return r;
    query.needs = slurm_line_needs(&line);
    r = job_list_read(cli, &query, &list, err);
    return r < 0 ? r
                 : slurm_line_print(&line, !opts->no_header, list.jobs, list.count,
                                    sizeof(*list.jobs), err);
}

const struct cli_verb verb_slurm_sacct = {
    .name = "slurm sacct",
    .args = "",
    .summary = "List jobs with those that ended, as Slurm's sacct does",
    .examples = "sacct -X --parsable2 --noheader --format=JobIDRaw,State -S now-2days",
    .opts = sacct_opts,
    .opts_size = sizeof(struct sacct_opts),
    .flags = SLURM_VERB_FLAGS,
    .run = sacct_run,
};
