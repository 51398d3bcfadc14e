/* SPDX-License-Identifier: Apache-2.0 */
/* sinfo: partitions and nodes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"
#include "cli/client.h"
#include "cli/slurm/line.h"
#include "cli/slurm/node_list.h"
#include "cli/slurm/slurm.h"
#include "cli/verbs.h"

#define DEFAULT_FORMAT "%9P %.5a %.10l %.6D %.6t %N"
#define NODE_FORMAT "%20N %.6D %10P %6t"
#define RESERVATION_FORMAT "%12i %8T %19S %19E %11D %N"
#define SUMMARY_FORMAT "%10P %.5a %.10l %.16F %N"

struct sinfo_opts {
    bool version, no_header, by_node, summarize, reservations, is_ignored;
    const char *clusters, *format, *partition, *nodes, *states;
};

static const struct cli_opt sinfo_opts[] = {
#define AT(member) offsetof(struct sinfo_opts, member)
    { 'h', "noheader", CLI_FLAG, AT(no_header), NULL, "no header line" },
    { 'o', "format", CLI_STR, AT(format), "FORMAT", "fields such as '%P %D %t'" },
    { 'N', "Node", CLI_FLAG, AT(by_node), NULL, "a line for each node" },
    { 's', "summarize", CLI_FLAG, AT(summarize), NULL, "a line for each partition" },
    { 'T', "reservation", CLI_FLAG, AT(reservations), NULL, "reservations instead of partitions" },
    { 'p', "partition", CLI_STR, AT(partition), "PARTITION,...", "of these resource groups" },
    { 'n', "nodes", CLI_STR, AT(nodes), "NODE,...", "of these agents" },
    { 't', "states", CLI_STR, AT(states), "STATE,...", "in these states: idle, mix, alloc, ..." },
    { 'a', "all", CLI_FLAG, AT(is_ignored), NULL, "all that you may use, as it is in any case" },
    { 'e', "exact", CLI_FLAG, AT(is_ignored), NULL, "as it is in any case" },
    { 'l', "long", CLI_FLAG, AT(is_ignored), NULL, "ignored" },
    SLURM_OPT_ROWS(struct sinfo_opts),
#undef AT
    CLI_OPT_END,
};

/* Nodes that have one line. */
struct sinfo_row {
    const struct node **nodes;
    size_t count, cap;
    bool is_default;
};

/* ---- fields ---- */

static const struct node *sinfo_first(const void *row)
{
    return ((const struct sinfo_row *)row)->nodes[0];
}

static void sinfo_write_partition(const void *row, struct strbuf *out)
{
    strbuf_addf(out, "%s%s", sinfo_first(row)->partition,
                ((const struct sinfo_row *)row)->is_default ? "*" : "");
}

static void sinfo_write_name(const void *row, struct strbuf *out)
{
    strbuf_adds(out, sinfo_first(row)->partition);
}

static void sinfo_write_up(const void *row, struct strbuf *out)
{
    (void)row;
    strbuf_adds(out, "up");
}

static void sinfo_write_infinite(const void *row, struct strbuf *out)
{
    (void)row;
    strbuf_adds(out, "infinite");
}

static void sinfo_write_state(const void *row, struct strbuf *out)
{
    strbuf_adds(out, sinfo_first(row)->state);
}

static void sinfo_write_state_long(const void *row, struct strbuf *out)
{
    const char *state = sinfo_first(row)->state;

    strbuf_adds(out, strcmp(state, "mix") == 0     ? "mixed"
                     : strcmp(state, "alloc") == 0 ? "allocated"
                     : strcmp(state, "drain") == 0 ? "drained"
                                                   : state);
}

static void sinfo_write_cpus(const void *row, struct strbuf *out)
{
    strbuf_addf(out, "%" PRId64, sinfo_first(row)->cpus);
}

static void sinfo_write_mem(const void *row, struct strbuf *out)
{
    strbuf_addf(out, "%" PRId64, sinfo_first(row)->mem_bytes >> 20);
}

static void sinfo_write_gres(const void *row, struct strbuf *out)
{
    if (sinfo_first(row)->gpus)
        strbuf_addf(out, "gpu:%" PRId64, sinfo_first(row)->gpus);
    else
        strbuf_adds(out, "(null)");
}

static void sinfo_write_reason(const void *row, struct strbuf *out)
{
    strbuf_adds(out, sinfo_first(row)->reason[0] ? sinfo_first(row)->reason : "none");
}

static void sinfo_write_null(const void *row, struct strbuf *out)
{
    (void)row;
    strbuf_adds(out, "(null)");
}

static void sinfo_write_count(const void *row, struct strbuf *out)
{
    strbuf_addf(out, "%zu", ((const struct sinfo_row *)row)->count);
}

static void sinfo_write_list(const void *row, struct strbuf *out)
{
    const struct sinfo_row *r = row;

    for (size_t i = 0; i < r->count; i++)
        strbuf_addf(out, "%s%s", i ? "," : "", r->nodes[i]->id);
}

/* "allocated/idle/other/total" */
static void sinfo_write_nodes(const void *row, struct strbuf *out)
{
    const struct sinfo_row *r = row;
    size_t busy = 0, idle = 0;

    for (size_t i = 0; i < r->count; i++) {
        const char *state = r->nodes[i]->state;

        idle += strcmp(state, "idle") == 0;
        busy += strcmp(state, "mix") == 0 || strcmp(state, "alloc") == 0;
    }
    strbuf_addf(out, "%zu/%zu/%zu/%zu", busy, idle, r->count - busy - idle, r->count);
}

static void sinfo_write_cores(const void *row, struct strbuf *out)
{
    const struct sinfo_row *r = row;
    int64_t busy = 0, idle = 0, other = 0;

    for (size_t i = 0; i < r->count; i++) {
        const struct node *node = r->nodes[i];
        bool is_usable = strcmp(node->state, "down") != 0 && strcmp(node->state, "drain") != 0;

        busy += node->cpus - node->free_cpus;
        *(is_usable ? &idle : &other) += node->free_cpus;
    }
    strbuf_addf(out, "%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64, busy, idle, other,
                busy + idle + other);
}

/* 'needs' is set of what is summed up over the nodes of a line. */
static const struct slurm_field sinfo_fields[] = {
    { "PartitionName", 'P', "PARTITION", 0, sinfo_write_partition, 0 },
    { "Partition", 'R', "PARTITION", 0, sinfo_write_name, 0 },
    { "Available", 'a', "AVAIL", 0, sinfo_write_up, 0 },
    { "Time", 'l', "TIMELIMIT", 0, sinfo_write_infinite, 0 },
    { "StateCompact", 't', "STATE", 0, sinfo_write_state, 0 },
    { "StateLong", 'T', "STATE", 0, sinfo_write_state_long, 0 },
    { "CPUs", 'c', "CPUS", 0, sinfo_write_cpus, 0 },
    { "Memory", 'm', "MEMORY", 0, sinfo_write_mem, 0 },
    { "Gres", 'G', "GRES", 0, sinfo_write_gres, 0 },
    { "Reason", 'E', "REASON", 0, sinfo_write_reason, 0 },
    { "Features", 'f', "AVAIL_FEATURES", 0, sinfo_write_null, 0 },
    { "Nodes", 'D', "NODES", 0, sinfo_write_count, 1 },
    { "NodeList", 'N', "NODELIST", 0, sinfo_write_list, 1 },
    { "HostNames", 'n', "HOSTNAMES", 0, sinfo_write_list, 1 },
    { "NodeAIOT", 'F', "NODES(A/I/O/T)", 0, sinfo_write_nodes, 1 },
    { "CPUsState", 'C', "CPUS(A/I/O/T)", 0, sinfo_write_cores, 1 },
    { .name = NULL },
};

/* ---- rows ---- */

struct sinfo_rows {
    struct sinfo_row *items;
    size_t count, cap;
};

static void sinfo_rows_done(struct sinfo_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->items[i].nodes);
    free(rows->items);
}

static void sinfo_row_add(struct sinfo_row *row, const struct node *node)
{
    vec_grow(&row->nodes, &row->cap, row->count + 1, sizeof(*row->nodes));
    row->nodes[row->count++] = node;
}

/* What the line says of each of its nodes alike. */
static void sinfo_write_key(const struct slurm_line *line, const struct sinfo_row *row,
                            struct strbuf *out)
{
    strbuf_adds(out, row->nodes[0]->partition);
    for (size_t i = 0; i < line->count; i++)
        if (!line->cells[i].field->needs) {
            strbuf_addc(out, '\n');
            line->cells[i].field->write(row, out);
        }
}

static void sinfo_group(const struct slurm_line *line, const struct node_list *list,
                        const struct node *node, bool is_alone, struct sinfo_rows *rows)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf mine = STRBUF_INIT;
    struct sinfo_row row = { .is_default = list->partition
                                           && strcmp(node->partition, list->partition) == 0 };

    sinfo_row_add(&row, node);
    sinfo_write_key(line, &row, &mine);
    for (size_t i = 0; !is_alone && i < rows->count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf other = STRBUF_INIT;

        sinfo_write_key(line, &rows->items[i], &other);
        if (strcmp(mine.data, other.data) == 0) {
            sinfo_row_add(&rows->items[i], node);
            free(row.nodes);
            return;
        }
    }
    vec_grow(&rows->items, &rows->cap, rows->count + 1, sizeof(*rows->items));
    rows->items[rows->count++] = row;
}

/* ---- reservations ---- */

static void sinfo_write_resv_text(const void *row, const char *member, struct strbuf *out)
{
    const char *text = json_string_value(json_object_get(*(const json_t *const *)row, member));

    strbuf_adds(out, text ? text : "");
}

static void sinfo_write_resv_name(const void *row, struct strbuf *out)
{
    sinfo_write_resv_text(row, "name", out);
}

static void sinfo_write_resv_state(const void *row, struct strbuf *out)
{
    const char *state = json_string_value(json_object_get(*(const json_t *const *)row, "state"));

    strbuf_adds(out, state && strcmp(state, "active") == 0 ? "ACTIVE" : "INACTIVE");
}

/* Slurm's dates are local and have no zone. */
static void sinfo_write_resv_date(const void *row, const char *member, struct strbuf *out)
{
    const char *iso = json_string_value(json_object_get(*(const json_t *const *)row, member));
    char text[CLOCK_ISO_MAX];
    int64_t usec;

    if (!iso || clock_parse_date(iso, &usec) < 0) {
        strbuf_adds(out, "N/A");
        return;
    }
    (void)clock_format_local(usec, text);
    text[strcspn(text, " ")] = 'T';
    strbuf_adds(out, text);
}

static void sinfo_write_resv_start(const void *row, struct strbuf *out)
{
    sinfo_write_resv_date(row, "start", out);
}

static void sinfo_write_resv_end(const void *row, struct strbuf *out)
{
    sinfo_write_resv_date(row, "end", out);
}

static void sinfo_write_resv_duration(const void *row, struct strbuf *out)
{
    int64_t sec = json_integer_value(json_object_get(*(const json_t *const *)row, "duration"));

    if (sec >= 86400)
        strbuf_addf(out, "%" PRId64 "-", sec / 86400);
    strbuf_addf(out, "%02d:%02d:%02d", (int)(sec % 86400 / 3600), (int)(sec / 60 % 60),
                (int)(sec % 60));
}

static void sinfo_write_resv_nodes(const void *row, struct strbuf *out)
{
    const json_t *agent;
    size_t i;

    json_array_foreach(json_object_get(*(const json_t *const *)row, "agents"), i, agent)
        strbuf_addf(out, "%s%s", i ? "," : "", json_string_value(agent));
}

static const struct slurm_field resv_fields[] = {
    { "ReservationName", 'i', "RESV_NAME", 0, sinfo_write_resv_name, 0 },
    { "State", 'T', "STATE", 0, sinfo_write_resv_state, 0 },
    { "StartTime", 'S', "START_TIME", 0, sinfo_write_resv_start, 0 },
    { "EndTime", 'E', "END_TIME", 0, sinfo_write_resv_end, 0 },
    { "Duration", 'D', "DURATION", 0, sinfo_write_resv_duration, 0 },
    { "NodeList", 'N', "NODELIST", 0, sinfo_write_resv_nodes, 0 },
    { .name = NULL },
};

/* The columns of "sinfo -T" are fixed, as Slurm's are without -o. */
static int sinfo_show_reservations(struct cli *cli, bool has_header, struct aq_error *err)
{
    struct slurm_line line = { .count = 0 };
    json_auto_t *answer = NULL;
    const json_t **rows = NULL, *row;
    size_t count, i;
    int r = slurm_line_parse(RESERVATION_FORMAT, SLURM_LINE_LETTERS, resv_fields, &line, err);

    if (r == 0)
        r = cli_call(cli, METHOD_GET, "/aliquot/v1/reservations", NULL, &answer, err);
    if (r < 0)
        return r;
    count = json_array_size(json_object_get(answer, "items"));
    rows = aq_alloc_array(count, sizeof(json_t *));
    json_array_foreach(json_object_get(answer, "items"), i, row)
        rows[i] = row;
    if (count)
        r = slurm_line_print(&line, has_header, rows, count, sizeof(json_t *), err);
    else
        cli_note(cli, "No reservations in the system");
    free(rows);
    return r;
}

/* ---- the command ---- */

static bool sinfo_matches(const struct sinfo_opts *opts, const struct node *node)
{
    return (!opts->partition || slurm_list_has(opts->partition, node->partition))
           && (!opts->nodes || slurm_list_has(opts->nodes, node->id))
           && (!opts->states || slurm_list_has(opts->states, node->state));
}

static int sinfo_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct sinfo_opts *opts = data;
    const char *format = opts->format      ? opts->format
                         : opts->summarize ? SUMMARY_FORMAT
                         : opts->by_node   ? NODE_FORMAT
                                           : DEFAULT_FORMAT;
    AQ_CLEANUP(node_list_done) struct node_list list = { .answer = NULL };
    AQ_CLEANUP(sinfo_rows_done) struct sinfo_rows rows = { .items = NULL };
    struct slurm_line line = { .count = 0 };
    int r;

    (void)argc;
    (void)argv;
    if (opts->version)
        return slurm_print_version(err);
    if (opts->reservations && (opts->format || opts->by_node || opts->summarize))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "-T has no -o, -N or -s");
    if (opts->reservations)
        return sinfo_show_reservations(cli, !opts->no_header, err);
    r = slurm_line_parse(format, SLURM_LINE_LETTERS, sinfo_fields, &line, err);
    if (r == 0)
        r = node_list_read(cli, &list, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list.count; i++)
        if (sinfo_matches(opts, &list.nodes[i]))
            sinfo_group(&line, &list, &list.nodes[i], opts->by_node, &rows);
    return slurm_line_print(&line, !opts->no_header, rows.items, rows.count, sizeof(*rows.items),
                            err);
}

const struct cli_verb verb_slurm_sinfo = {
    .name = "slurm sinfo",
    .args = "",
    .summary = "List partitions and nodes, as Slurm's sinfo does",
    .examples = "sinfo\nsinfo -h -o '%P %D %t'",
    .opts = sinfo_opts,
    .opts_size = sizeof(struct sinfo_opts),
    .flags = SLURM_VERB_FLAGS,
    .run = sinfo_run,
};
