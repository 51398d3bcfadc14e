/* SPDX-License-Identifier: Apache-2.0 */
/* squeue: jobs that wait, run or ended a short time ago. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/slurm/field.h"
#include "cli/slurm/job_json.h"
#include "cli/slurm/job_list.h"
#include "cli/slurm/slurm.h"
#include "cli/verbs.h"

#define DEFAULT_FORMAT "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
#define LONG_FORMAT "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
#define START_FORMAT "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %.20N %R"
#define SORT_MAX 16

struct squeue_opts {
    bool version, me, no_header, is_long, start, all, array, json;
    const char *clusters, *user, *jobs, *name, *partition, *states, *format, *Format, *sort;
    const char *account;
};

static const struct cli_opt squeue_opts[] = {
#define AT(member) offsetof(struct squeue_opts, member)
    { 'u', "user", CLI_STR, AT(user), "USER,...", "of these users" },
    { 0, "me", CLI_FLAG, AT(me), NULL, "your own" },
    { 'j', "jobs", CLI_STR, AT(jobs), "NUMBER,...", "these" },
    { 'j', "job", CLI_STR, AT(jobs), "NUMBER,...", "the same" },
    { 'n', "name", CLI_STR, AT(name), "NAME,...", "of these names" },
    { 'p', "partition", CLI_STR, AT(partition), "PARTITION,...", "of these resource groups" },
    { 'A', "account", CLI_STR, AT(account), "ACCOUNT,...", "of these projects" },
    { 't', "states", CLI_STR, AT(states), "STATE,...", "in these states, or all" },
    { 't', "state", CLI_STR, AT(states), "STATE,...", "the same" },
    { 'h', "noheader", CLI_FLAG, AT(no_header), NULL, "no header line" },
    { 'l', "long", CLI_FLAG, AT(is_long), NULL, "with the time limit" },
    { 0, "start", CLI_FLAG, AT(start), NULL, "of those that wait, when they start" },
    { 'o', "format", CLI_STR, AT(format), "FORMAT", "fields such as '%.18i %j'" },
    { 'O', "Format", CLI_STR, AT(Format), "FIELD,...", "fields such as JobID:10,State" },
    { 'S', "sort", CLI_STR, AT(sort), "[+-]LETTER,...", "order by letters of -o" },
    { 'a', "all", CLI_FLAG, AT(all), NULL, "of all partitions, as it is in any case" },
    { 'r', "array", CLI_FLAG, AT(array), NULL, "a line for each element of arrays that waits" },
    { 0, "json", CLI_FLAG, AT(json), NULL, "everything as JSON, as data_parser/v0.0.41 has it" },
    SLURM_OPT_ROWS(struct squeue_opts),
#undef AT
    CLI_OPT_END,
};

/* ---- order ---- */

struct squeue_order {
    const struct slurm_field *fields[SORT_MAX];
    bool is_descending[SORT_MAX];
    size_t count;
};

static int squeue_read_order(const char *text, struct squeue_order *ret, struct aq_error *err)
{
    for (const char *at = text; *at; at++) {
        bool is_descending = *at == '-';

        if (*at == ',')
            continue;
        at += *at == '-' || *at == '+';
        if (!slurm_field_find_letter(job_fields, *at) || ret->count == SORT_MAX)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "Invalid sort specification: %.60s",
                                text);
        ret->fields[ret->count] = slurm_field_find_letter(job_fields, *at);
        ret->is_descending[ret->count++] = is_descending;
    }
    return 0;
}

/* Numbers by their value, the rest as text. */
static int squeue_compare_text(const char *a, const char *b)
{
    char *end_a, *end_b;
    long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);

    if (*a && *b && !*end_a && !*end_b)
        return (x > y) - (x < y);
    return strcmp(a, b);
}

static int squeue_compare(const void *a, const void *b, void *data)
{
    const struct squeue_order *order = data;
    const struct job *x = a, *y = b;
    int result = 0;

    for (size_t i = 0; result == 0 && i < order->count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf left = STRBUF_INIT, right = STRBUF_INIT;

        if (order->fields[i]->letter == 't' || order->fields[i]->letter == 'T') {
            result = (int)x->state - (int)y->state;
        } else {
            order->fields[i]->write(x, &left);
            order->fields[i]->write(y, &right);
            result = squeue_compare_text(left.data, right.data);
        }
        if (order->is_descending[i])
            result = -result;
    }
    return result ? result : (x->id > y->id) - (x->id < y->id);
}

/* ---- the command ---- */

static int squeue_read_line(const struct squeue_opts *opts, struct slurm_line *line,
                            struct aq_error *err)
{
    const char *chosen = getenv("SQUEUE_FORMAT");
    const char *format = opts->format    ? opts->format
                         : opts->start   ? START_FORMAT
                         : opts->is_long ? LONG_FORMAT
                         : chosen        ? chosen
                                         : DEFAULT_FORMAT;

    return opts->Format ? slurm_line_parse(opts->Format, SLURM_LINE_NAMES, job_fields, line, err)
                        : slurm_line_parse(format, SLURM_LINE_LETTERS, job_fields, line, err);
}

static int squeue_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct squeue_opts *opts = data;
    struct job_query query = {
        .ids = opts->jobs,
        .names = opts->name,
        .users = opts->me ? NULL : opts->user,
        .partitions = opts->partition,
        .accounts = opts->account,
        .states = opts->start ? "PENDING" : opts->states,
        .is_all_users = !opts->me,
        .has_ended = opts->states && !opts->start,
        .since_usec = clock_realtime_usec() - SLURM_MIN_JOB_AGE_SEC * USEC_PER_SEC,
        .must_exist = true,
        .is_expanded = opts->array,
    };
    AQ_CLEANUP(job_list_done) struct job_list list = { .rows = NULL };
    struct squeue_order order = { .count = 0 };
    struct slurm_line line = { .count = 0 };
    int r;

    (void)argc;
    (void)argv;
    if (opts->version)
        return slurm_print_version(err);
    r = squeue_read_order(opts->sort ? opts->sort : "P,t,-Q", &order, err);
    if (r == 0)
        r = squeue_read_line(opts, &line, err);
    if (r < 0)
        return r;
    query.needs = opts->json ? JOB_JSON_NEEDS : slurm_line_needs(&line);
    for (size_t i = 0; i < order.count; i++)
        query.needs |= order.fields[i]->needs;
    r = job_list_read(cli, &query, &list, err);
    if (r == 0 && list.count)
        qsort_r(list.jobs, list.count, sizeof(*list.jobs), squeue_compare, &order);
    if (r < 0)
        return r;
    return opts->json ? job_json_print(list.jobs, list.count, err)
                      : slurm_line_print(&line, !opts->no_header, list.jobs, list.count,
                                         sizeof(*list.jobs), err);
}

const struct cli_verb verb_slurm_squeue = {
    .name = "slurm squeue",
    .args = "",
    .summary = "List jobs, as Slurm's squeue does",
    .examples = "squeue --me\nsqueue -h -o '%i %t' -t all -u \"$USER\"",
    .opts = squeue_opts,
    .opts_size = sizeof(struct squeue_opts),
    .flags = SLURM_VERB_FLAGS,
    .run = squeue_run,
};
