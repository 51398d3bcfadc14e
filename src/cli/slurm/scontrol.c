/* SPDX-License-Identifier: Apache-2.0 */
/* scontrol: "show" of jobs, partitions, nodes, reservations, settings and lists of hosts. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/slurm/field.h"
#include "cli/slurm/job_list.h"
#include "cli/slurm/node_list.h"
#include "cli/slurm/slurm.h"
#include "cli/verbs.h"

struct scontrol_opts {
    bool version, one_line, is_ignored;
    const char *clusters;
};

static const struct cli_opt scontrol_opts[] = {
#define AT(member) offsetof(struct scontrol_opts, member)
    { 'o', "oneliner", CLI_FLAG, AT(one_line), NULL, "each on one line" },
    { 'a', "all", CLI_FLAG, AT(is_ignored), NULL, "as it is in any case" },
    { 'd', "details", CLI_FLAG, AT(is_ignored), NULL, "ignored" },
    { 'Q', "quiet", CLI_FLAG, AT(is_ignored), NULL, "ignored" },
    SLURM_OPT_ROWS(struct scontrol_opts),
#undef AT
    CLI_OPT_END,
};

struct scontrol {
    struct cli *cli;
    const char *gap; /* between the lines of one thing */
    struct strbuf out;
};

/* ---- jobs ---- */

static void scontrol_add(struct scontrol *s, const struct job *job, const char *name,
                         const char *field)
{
    strbuf_addf(&s->out, "%s=", name);
    for (const struct slurm_field *f = job_fields; f->name; f++)
        if (strcasecmp(f->name, field) == 0)
            f->write(job, &s->out);
}

static void scontrol_write_job(struct scontrol *s, const struct job *job)
{
    static const struct {
        const char *name, *field;
        bool begins_line;
    } rows[] = {
        { "JobId", "JobIDRaw", false },
        { "ArrayJobId", "ArrayJobID", false },
        { "ArrayTaskId", "ArrayTaskID", false },
        { "JobName", "JobName", false },
        { "UserId", "User", true },
        { "Account", "Account", false },
        { "Priority", "Priority", true },
        { "QOS", "QOS", false },
        { "JobState", "State", true },
        { "Reason", "Reason", false },
        { "Dependency", "Dependency", false },
        { "ExitCode", "ExitCode", true },
        { "RunTime", "Elapsed", true },
        { "TimeLimit", "TimeLimit", false },
        { "SubmitTime", "SubmitTime", true },
        { "EligibleTime", "SubmitTime", false },
        { "StartTime", "StartTime", true },
        { "EndTime", "EndTime", false },
        { "Partition", "Partition", true },
        { "Reservation", "Reservation", false },
        { "NodeList", "NodeList", true },
        { "NumNodes", "NumNodes", true },
        { "NumCPUs", "NumCPUs", false },
        { "NumTasks", "NumTasks", false },
        { "ReqTRES", "ReqTRES", true },
        { "MinMemoryNode", "MinMemory", true },
        { "Comment", "Comment", true },
        { "Session", "Session", true },
    };

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        if (strncmp(rows[i].name, "Array", 5) == 0 && !job->array_number)
            continue;
        if (i)
            strbuf_adds(&s->out, rows[i].begins_line ? s->gap : " ");
        scontrol_add(s, job, rows[i].name, rows[i].field);
    }
    strbuf_adds(&s->out, "\n\n");
}

static int scontrol_show_job(struct scontrol *s, const char *ids, struct aq_error *err)
{
    AQ_CLEANUP(job_list_done) struct job_list list = { .rows = NULL };
    struct job_query query = {
        .ids = ids,
        .is_all_users = true,
        .has_ended = ids != NULL,
        .must_exist = true,
        .needs = JOB_NEEDS_LIMIT | JOB_NEEDS_OWNER | JOB_NEEDS_DEPENDENCY | JOB_NEEDS_RESERVATION,
    };
    int r = job_list_read(s->cli, &query, &list, err);

    for (size_t i = 0; r == 0 && i < list.count; i++)
        scontrol_write_job(s, &list.jobs[i]);
    if (r == 0 && list.count == 0)
        strbuf_adds(&s->out, "No jobs in the system\n");
    return r;
}

/* ---- nodes ---- */

static void scontrol_write_node(struct scontrol *s, const struct node *node)
{
    strbuf_addf(&s->out, "NodeName=%s Arch=(unknown)%s", node->id, s->gap);
    strbuf_addf(&s->out, "CPUAlloc=%" PRId64 " CPUTot=%" PRId64 "%s", node->cpus - node->free_cpus,
                node->cpus, s->gap);
    if (node->gpus)
        strbuf_addf(&s->out, "Gres=gpu:%" PRId64 "%s", node->gpus, s->gap);
    strbuf_addf(&s->out, "RealMemory=%" PRId64 " AllocMem=%" PRId64 " FreeMem=%" PRId64 "%s",
                node->mem_bytes >> 20, (node->mem_bytes - node->free_mem_bytes) >> 20,
                node->free_mem_bytes >> 20, s->gap);
    strbuf_addf(&s->out, "State=%s Partitions=%s", node->state, node->partition);
    if (node->reason[0])
        strbuf_addf(&s->out, "%sReason=%s", s->gap, node->reason);
    strbuf_adds(&s->out, "\n\n");
}

static int scontrol_show_node(struct scontrol *s, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(node_list_done) struct node_list list = { .answer = NULL };
    int r = node_list_read(s->cli, &list, err);

    for (size_t i = 0; r == 0 && i < list.count; i++)
        if (!name || slurm_list_has(name, list.nodes[i].id))
            scontrol_write_node(s, &list.nodes[i]);
    if (r == 0 && name && !s->out.len)
        return aq_fail_kind(err, ENOENT, "node-not-found", "Node %.60s not found", name);
    return r;
}

/* The nodes list[first .. ret) of one partition. */
static size_t scontrol_write_partition(struct scontrol *s, const struct node_list *list,
                                       size_t first)
{
    const char *name = list->nodes[first].partition;
    bool is_default = list->partition && strcmp(name, list->partition) == 0;
    int64_t cpus = 0;
    size_t i = first;

    strbuf_addf(&s->out, "PartitionName=%s%s", name, s->gap);
    strbuf_addf(&s->out, "Default=%s State=UP MaxTime=UNLIMITED DefaultTime=NONE%sNodes=",
                is_default ? "YES" : "NO", s->gap);
    for (; i < list->count && strcmp(list->nodes[i].partition, name) == 0; i++) {
        strbuf_addf(&s->out, "%s%s", i > first ? "," : "", list->nodes[i].id);
        cpus += list->nodes[i].cpus;
    }
    strbuf_addf(&s->out, "%sTotalCPUs=%" PRId64 " TotalNodes=%zu\n\n", s->gap, cpus, i - first);
    return i;
}

static int scontrol_show_partition(struct scontrol *s, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(node_list_done) struct node_list list = { .answer = NULL };
    int r = node_list_read(s->cli, &list, err);

    for (size_t i = 0; r == 0 && i < list.count;) {
        if (!name || slurm_list_has(name, list.nodes[i].partition))
            i = scontrol_write_partition(s, &list, i);
        else
            i++;
    }
    if (r == 0 && name && !s->out.len)
        return aq_fail_kind(err, ENOENT, "partition-not-found", "Partition %.60s not found", name);
    return r;
}

/* ---- reservations ---- */

/* Slurm's dates are local and have no zone. */
static void scontrol_add_date(struct scontrol *s, const char *name, const char *iso)
{
    char text[CLOCK_ISO_MAX];
    int64_t usec;

    if (!iso || clock_parse_date(iso, &usec) < 0) {
        strbuf_addf(&s->out, "%s=Unknown ", name);
        return;
    }
    (void)clock_format_local(usec, text);
    text[strcspn(text, " ")] = 'T';
    strbuf_addf(&s->out, "%s=%s ", name, text);
}

/* Those of "for" that have the prefix, with commas between them. */
static void scontrol_add_members(struct scontrol *s, const char *name, const char *prefix,
                                 const json_t *members)
{
    const json_t *member;
    size_t i, count = 0;

    strbuf_addf(&s->out, "%s=", name);
    json_array_foreach(members, i, member) {
        const char *text = json_string_value(member);

        if (text && strncmp(text, prefix, strlen(prefix)) == 0)
            strbuf_addf(&s->out, "%s%s", count++ ? "," : "", text + strlen(prefix));
    }
    strbuf_adds(&s->out, count ? " " : "(null) ");
}

static void scontrol_write_reservation(struct scontrol *s, const json_t *row)
{
    const json_t *agents = json_object_get(row, "agents"), *members = json_object_get(row, "for");
    const char *state = json_string_value(json_object_get(row, "state"));
    int64_t seconds = json_integer_value(json_object_get(row, "duration"));
    const char *slot;
    const json_t *amount, *agent;
    size_t i, count = 0;

    strbuf_addf(&s->out, "ReservationName=%s ", json_string_value(json_object_get(row, "name")));
    scontrol_add_date(s, "StartTime", json_string_value(json_object_get(row, "start")));
    scontrol_add_date(s, "EndTime", json_string_value(json_object_get(row, "end")));
    strbuf_addf(&s->out, "Duration=%02d:%02d:%02d%sNodes=", (int)(seconds / 3600),
                (int)(seconds / 60 % 60), (int)(seconds % 60), s->gap);
    json_array_foreach(agents, i, agent)
        strbuf_addf(&s->out, "%s%s", i ? "," : "", json_string_value(agent));
    strbuf_addf(&s->out, " NodeCnt=%zu PartitionName=%s%sTRES=", json_array_size(agents),
                json_string_value(json_object_get(row, "resource_group")), s->gap);
    json_object_foreach((json_t *)(uintptr_t)json_object_get(row, "resources"), slot, amount)
        strbuf_addf(&s->out, "%s%s=%s", count++ ? "," : "", slot, json_string_value(amount));
    strbuf_adds(&s->out, s->gap);
    scontrol_add_members(s, "Users", "user:", members);
    scontrol_add_members(s, "Accounts", "project:", members);
    strbuf_addf(&s->out, "State=%s\n\n",
                state && strcmp(state, "active") == 0 ? "ACTIVE" : "INACTIVE");
}

static int scontrol_show_reservation(struct scontrol *s, const char *name, struct aq_error *err)
{
    json_auto_t *answer = NULL;
    const json_t *row;
    size_t i;
    int r = cli_call(s->cli, METHOD_GET, "/aliquot/v1/reservations", NULL, &answer, err);

    json_array_foreach(json_object_get(answer, "items"), i, row)
        if (!name || slurm_list_has(name, json_string_value(json_object_get(row, "name"))))
            scontrol_write_reservation(s, row);
    if (r == 0 && !s->out.len && name)
        return aq_fail_kind(err, ENOENT, "reservation-not-found", "Reservation %.60s not found",
                            name);
    if (r == 0 && !s->out.len)
        strbuf_adds(&s->out, "No reservations in the system\n");
    return r;
}

/* ---- the rest ---- */

static int scontrol_show_config(struct scontrol *s, const char *name, struct aq_error *err)
{
    (void)name;
    (void)err;
    strbuf_addf(&s->out,
                "AccountingStorageType   = accounting_storage/aliquot\n"
                "ClusterName             = aliquot\n"
                "MinJobAge               = %d sec\n"
                "SchedulerType           = sched/aliquot\n"
                "SLURM_VERSION           = " SLURM_VERSION "\n",
                SLURM_MIN_JOB_AGE_SEC);
    return 0;
}

/* One of a list of hosts a line, by which scripts find theirs. */
static int scontrol_show_hostnames(struct scontrol *s, const char *list, struct aq_error *err)
{
    const char *at = list ? list : getenv("SLURM_JOB_NODELIST");

    if (!at)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "show hostnames needs a list: SLURM_JOB_NODELIST is not set");
    while (*at) {
        size_t len = strcspn(at, ",");

        strbuf_addf(&s->out, "%.*s\n", (int)len, at);
        at += len + (at[len] == ',');
    }
    return 0;
}

static const struct {
    const char *name, *other;
    int (*show)(struct scontrol *s, const char *name, struct aq_error *err);
} things[] = {
    { "job", "jobs", scontrol_show_job },
    { "node", "nodes", scontrol_show_node },
    { "partition", "partitions", scontrol_show_partition },
    { "reservation", "reservations", scontrol_show_reservation },
    { "config", "configuration", scontrol_show_config },
    { "hostnames", "hostname", scontrol_show_hostnames },
};

/* "job 12" or "job=12" */
static int scontrol_show(struct scontrol *s, int argc, char **argv, struct aq_error *err)
{
    size_t len = strcspn(argv[0], "=");
    const char *name = argv[0][len] ? argv[0] + len + 1 : argc > 1 ? argv[1] : NULL;

    for (size_t i = 0; i < AQ_COUNT(things); i++)
        if ((strlen(things[i].name) == len && strncasecmp(argv[0], things[i].name, len) == 0)
            || (strlen(things[i].other) == len && strncasecmp(argv[0], things[i].other, len) == 0))
            return things[i].show(s, name, err);
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                        "invalid entity:%.60s for keyword:show; there are job, node, partition, "
                        "reservation, config and hostnames",
                        argv[0]);
}

/* What to use instead of a command of scontrol other than show. */
static const char *scontrol_instead(const char *command)
{
    static const struct {
        const char *command, *text;
    } instead[] = {
        { "requeue", "'aliquot session restart SESSION' starts a job again, 'aliquot session retry "
                     "SESSION' one that has ended" },
        { "create", "'aliquot reservation create' makes reservations" },
        { "delete", "'aliquot reservation cancel' ends reservations" },
        { "reboot", "'aliquot agent drain --end AGENT' empties a node" },
        { "wait_job", "'aliquot session wait SESSION' waits for a job" },
    };

    for (size_t i = 0; i < AQ_COUNT(instead); i++)
        if (strcasecmp(command, instead[i].command) == 0)
            return instead[i].text;
    return "sessions cannot be held or changed while they wait; end one with scancel, submit it "
           "again with --begin";
}

static int scontrol_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct scontrol_opts *opts = data;
    struct scontrol s = { .cli = cli, .gap = opts->one_line ? " " : "\n   ", .out = STRBUF_INIT };
    int r;

    if (opts->version)
        return slurm_print_version(err);
    if (argc < 1)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "a command is missing, such as 'show job 12'");
    if (strcasecmp(argv[0], "show") != 0)
        return aq_fail_kind(err, ENOTSUP, CLI_KIND_USAGE, "%.40s is not supported, only show: %s",
                            argv[0], scontrol_instead(argv[0]));
    if (argc < 2)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "show what? job, node, partition, reservation, config or hostnames");
    r = scontrol_show(&s, argc - 1, argv + 1, err);
    if (r == 0)
        r = cli_print(&s.out, err);
    strbuf_done(&s.out);
    return r;
}

const struct cli_verb verb_slurm_scontrol = {
    .name = "slurm scontrol",
    .args = "show job|node|partition|reservation|config|hostnames [NAME]",
    .summary = "Show a job, node, partition or reservation, as Slurm's scontrol does",
    .examples = "scontrol show job 12\nscontrol show hostnames \"$SLURM_JOB_NODELIST\"",
    .opts = scontrol_opts,
    .opts_size = sizeof(struct scontrol_opts),
    .max_args = -1,
    .flags = SLURM_VERB_FLAGS,
    .run = scontrol_run,
};
