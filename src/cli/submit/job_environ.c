/* SPDX-License-Identifier: Apache-2.0 */
/* The variables that Slurm gives a job, as far as their values are known. */
#include "cli/submit/job_environ.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/session/cluster_spec.h"
#include "model/dependency.h"
#include "model/slot.h"

/* What the session has, by names of its own. */
static const struct {
    const char *name, *expression;
} job_environ_derived[] = {
    { "SLURM_JOB_ID", "${ALIQUOT_JOB_NUMBER:-$BACKENDAI_SESSION_ID}" },
    { "SLURM_JOBID", "${ALIQUOT_JOB_NUMBER:-$BACKENDAI_SESSION_ID}" },
    { "SLURM_JOB_USER", "${BACKENDAI_USER_NAME:-$BACKENDAI_USER_EMAIL}" },
    { "SLURM_JOB_NODELIST", "$BACKENDAI_CLUSTER_HOSTS" },
    { "SLURM_NODELIST", "$BACKENDAI_CLUSTER_HOSTS" },
    { "SLURM_JOB_NUM_NODES", "$BACKENDAI_CLUSTER_SIZE" },
    { "SLURM_NNODES", "$BACKENDAI_CLUSTER_SIZE" },
    { "SLURMD_NODENAME", "$BACKENDAI_CLUSTER_HOST" },
    { "SLURM_NODEID", "$BACKENDAI_CLUSTER_LOCAL_RANK" },
    { "SLURM_PROCID", "$BACKENDAI_CLUSTER_LOCAL_RANK" },
    { "SLURM_LOCALID", "0" },
    { "SLURM_GTIDS", "$BACKENDAI_CLUSTER_LOCAL_RANK" },
    { "SLURM_TASK_PID", "$$" },
    { "SLURM_CLUSTER_NAME", "aliquot" },
};

/* The same, where the session may lack them: the image a program, an older agent a variable. A
 * variable whose value is empty is not set.
 */
static const struct {
    const char *name, *expression;
} job_environ_optional[] = {
    { "SLURM_JOB_UID", "$(id -u 2>/dev/null)" },
    { "SLURM_JOB_GID", "$(id -g 2>/dev/null)" },
    { "SLURM_JOB_GROUP", "$(id -gn 2>/dev/null)" },
    { "SLURM_JOB_START_TIME", "$(date +%s 2>/dev/null)" },
    { "SLURM_RESTART_COUNT", "$ALIQUOT_RESTARTS" },
};

#define CPUS_PER_NODE                                                \
    "$(test -z \"$ALIQUOT_CPUS\" || { printf %s \"$ALIQUOT_CPUS\"; " \
    "test \"$BACKENDAI_CLUSTER_SIZE\" -le 1 || printf '(x%s)' \"$BACKENDAI_CLUSTER_SIZE\"; })"

/* "0,1": the program sees its GPUs by these numbers, whichever they are on the node. */
#define GPU_NUMBERS                                                                         \
    "$(c= i=0; while test \"$i\" -lt \"${GPU_COUNT:-0}\"; do printf '%s%s' \"$c\" \"$i\"; " \
    "c=, i=$((i + 1)); done)"

/* Does the user set it? */
static bool job_environ_is_given(const struct job_facts *facts, const char *name)
{
    const struct cli_list *given = &facts->spec->environ;
    size_t len = strlen(name);

    for (size_t i = 0; i < given->count; i++)
        if (strncmp(given->items[i], name, len) == 0
            && (!given->items[i][len] || given->items[i][len] == '='))
            return true;
    return false;
}

static void job_environ_text(const struct job_facts *facts, const char *name, const char *value,
                             struct strbuf *out)
{
    char *words[] = { (char *)value };

    if (!value || !utf8_is_valid(value, strlen(value)) || job_environ_is_given(facts, name))
        return;
    strbuf_addf(out, " %s=", name);
    spec_quote_command(1, words, out);
}

static void job_environ_number(const struct job_facts *facts, const char *name, int64_t value,
                               struct strbuf *out)
{
    if (value && !job_environ_is_given(facts, name))
        strbuf_addf(out, " %s=%" PRId64, name, value);
}

/* The whole amount of a slot that is asked for, 0 = it is not known. */
static int64_t job_environ_find_amount(const struct spec_opts *spec, const char *slot,
                                       enum slot_type type)
{
    size_t len = strlen(slot);
    int64_t unit = type == SLOT_BYTES ? 1 : AMOUNT_ONE, amount;

    for (size_t i = 0; i < spec->resources.count; i++)
        for (const char *at = spec->resources.items[i]; at;
             at = strchr(at, ','), at = at ? at + 1 : NULL)
            if (strncmp(at, slot, len) == 0 && at[len] == '='
                && slot_amount_parse(at + len + 1, strcspn(at + len + 1, ","), type, false, slot,
                                     &amount, NULL)
                       == 0)
                return amount % unit ? 0 : amount / unit;
    return 0;
}

/* "4", or "4(x2)" of several nodes. */
static void job_environ_per_node(const struct job_facts *facts, const char *name, int64_t each,
                                 int64_t nodes, struct strbuf *out)
{
    char text[64];

    (void)snprintf(text, sizeof(text), nodes > 1 ? "%" PRId64 "(x%" PRId64 ")" : "%" PRId64, each,
                   nodes);
    job_environ_text(facts, name, each ? text : NULL, out);
}

static void job_environ_tasks(const struct job_facts *facts, int64_t nodes, struct strbuf *out)
{
    const struct slurm_amounts *a = &facts->slurm->amounts;
    int64_t tasks = a->tasks ? a->tasks : a->tasks_per_node * nodes;
    int64_t each = tasks / nodes, more = tasks % nodes;
    char text[128];

    job_environ_number(facts, "SLURM_NTASKS", tasks, out);
    job_environ_number(facts, "SLURM_NPROCS", tasks, out);
    job_environ_number(facts, "SLURM_NTASKS_PER_NODE", a->tasks_per_node, out);
    if (!tasks || !more) {
        job_environ_per_node(facts, "SLURM_TASKS_PER_NODE", AQ_MAX(each, 1), nodes, out);
    } else if (each) { /* the first nodes have one more: "3(x2),2" */
        (void)snprintf(text, sizeof(text), "%" PRId64, each + 1);
        if (more > 1)
            (void)snprintf(text + strlen(text), 40, "(x%" PRId64 ")", more);
        (void)snprintf(text + strlen(text), 40, ",%" PRId64, each);
        if (nodes - more > 1)
            (void)snprintf(text + strlen(text), 40, "(x%" PRId64 ")", nodes - more);
        job_environ_text(facts, "SLURM_TASKS_PER_NODE", text, out);
    }
}

static void job_environ_amounts(const struct job_facts *facts, struct strbuf *out)
{
    const struct slurm_options *slurm = facts->slurm;
    const struct slurm_amounts *a = &slurm->amounts;
    int64_t nodes = cluster_spec_count(facts->spec);
    int64_t cpus = job_environ_find_amount(facts->spec, "cpu", SLOT_COUNT);
    int64_t mem = job_environ_find_amount(facts->spec, "mem", SLOT_BYTES);
    bool is_per_cpu = !a->mem_bytes && a->mem_per_cpu_bytes && mem == slurm->mem;
    bool is_per_gpu = !a->mem_bytes && !is_per_cpu && a->mem_per_gpu_bytes && mem == slurm->mem;

    job_environ_tasks(facts, AQ_MAX(nodes, 1), out);
    job_environ_number(facts, "SLURM_CPUS_ON_NODE", cpus, out);
    job_environ_per_node(facts, "SLURM_JOB_CPUS_PER_NODE", cpus, nodes, out);
    if (cpus == slurm->cpus)
        job_environ_number(facts, "SLURM_CPUS_PER_TASK", a->cpus_per_task, out);
    if (is_per_cpu)
        job_environ_number(facts, "SLURM_MEM_PER_CPU", a->mem_per_cpu_bytes >> 20, out);
    else if (is_per_gpu)
        job_environ_number(facts, "SLURM_MEM_PER_GPU", a->mem_per_gpu_bytes >> 20, out);
    else
        job_environ_number(facts, "SLURM_MEM_PER_NODE", mem >> 20, out);
    if (!facts->has_slurm_gpus)
        return;
    job_environ_number(facts, "SLURM_GPUS", a->gpus, out);
    job_environ_number(facts, "SLURM_GPUS_ON_NODE", slurm->gpus, out);
    job_environ_number(facts, "SLURM_GPUS_PER_NODE", a->gpus_per_node, out);
    job_environ_number(facts, "SLURM_GPUS_PER_TASK", a->gpus_per_task, out);
    job_environ_number(facts, "SLURM_CPUS_PER_GPU", a->cpus_per_gpu, out);
}

/* Where it was submitted, if the session has that directory, else where it begins: a script that
 * changes there goes on.
 */
static void job_environ_directory(const struct job_facts *facts, struct strbuf *out)
{
    char path[PATH_MAX], *words[] = { path };

    if (job_environ_is_given(facts, "SLURM_SUBMIT_DIR"))
        return;
    if (!getcwd(path, sizeof(path)) || !utf8_is_valid(path, strlen(path))) {
        strbuf_adds(out, "export SLURM_SUBMIT_DIR=\"$HOME\"\n");
        return;
    }
    strbuf_adds(out, "SLURM_SUBMIT_DIR=");
    spec_quote_command(1, words, out);
    strbuf_adds(out, "\ntest -d \"$SLURM_SUBMIT_DIR\" || SLURM_SUBMIT_DIR=$HOME\n"
                     "export SLURM_SUBMIT_DIR\n");
}

static void job_environ_optional_one(const struct job_facts *facts, const char *name,
                                     const char *expression, struct strbuf *out)
{
    if (!job_environ_is_given(facts, name))
        strbuf_addf(out, "%s=\"%s\"; test -n \"$%s\" && export %s || unset %s\n", name, expression,
                    name, name, name);
}

/* Amounts and resource group that the request does not name, as the session has them. */
static void job_environ_granted(const struct job_facts *facts, struct strbuf *out)
{
    const struct slurm_amounts *a = &facts->slurm->amounts;

    if (!job_environ_find_amount(facts->spec, "cpu", SLOT_COUNT)) {
        job_environ_optional_one(facts, "SLURM_CPUS_ON_NODE", "$ALIQUOT_CPUS", out);
        job_environ_optional_one(facts, "SLURM_JOB_CPUS_PER_NODE", CPUS_PER_NODE, out);
    }
    if (!job_environ_find_amount(facts->spec, "mem", SLOT_BYTES) && !a->mem_per_cpu_bytes
        && !a->mem_per_gpu_bytes)
        job_environ_optional_one(facts, "SLURM_MEM_PER_NODE",
                                 "${ALIQUOT_MEMORY:+$((ALIQUOT_MEMORY >> 20))}", out);
    if (!facts->has_slurm_gpus)
        job_environ_optional_one(facts, "SLURM_GPUS_ON_NODE", "${GPU_COUNT#0}", out);
    job_environ_optional_one(facts, "SLURM_JOB_GPUS", GPU_NUMBERS, out);
    if (!facts->partition)
        job_environ_optional_one(facts, "SLURM_JOB_PARTITION", "$ALIQUOT_RESOURCE_GROUP", out);
}

static void job_environ_times(const struct job_facts *facts, struct strbuf *out)
{
    int64_t limit = facts->spec->timeout.value / USEC_PER_SEC;
    char expression[96];

    (void)snprintf(expression, sizeof(expression),
                   "${SLURM_JOB_START_TIME:+$((SLURM_JOB_START_TIME + %" PRId64 "))}", limit);
    if (limit) /* else it has none */
        job_environ_optional_one(facts, "SLURM_JOB_END_TIME", expression, out);
}

/* "afterok:ID,afterany:ID" */
static void job_environ_dependency(const struct job_facts *facts, struct strbuf *out)
{
    const struct cli_list *after = &facts->spec->after;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (size_t i = 0; i < after->count; i++) {
        static const char *const types[] = { [DEPENDENCY_SUCCESS] = "afterok",
                                             [DEPENDENCY_FAILURE] = "afternotok",
                                             [DEPENDENCY_END] = "afterany",
                                             [DEPENDENCY_START] = "after",
                                             [DEPENDENCY_CORRESPONDING] = "aftercorr" };
        enum dependency_condition condition = DEPENDENCY_SUCCESS;
        const char *session = after->items[i];

        if (dependency_parse(after->items[i], &condition, &session, NULL) == 0)
            strbuf_addf(&text, "%s%s:%s", text.len ? "," : "", types[condition], session);
    }
    job_environ_text(facts, "SLURM_JOB_DEPENDENCY", after->count ? text.data : NULL, out);
}

void job_environ_write(const struct job_facts *facts, struct strbuf *out)
{
    char priority[16];
    char host[HOST_NAME_MAX + 1] = "";

    job_environ_directory(facts, out);
    strbuf_adds(out, "export");
    for (size_t i = 0; i < AQ_COUNT(job_environ_derived); i++)
        if (!job_environ_is_given(facts, job_environ_derived[i].name))
            strbuf_addf(out, " %s=\"%s\"", job_environ_derived[i].name,
                        job_environ_derived[i].expression);
    if (facts->name)
        job_environ_text(facts, "SLURM_JOB_NAME", facts->name, out);
    else if (!job_environ_is_given(facts, "SLURM_JOB_NAME"))
        strbuf_adds(out, " SLURM_JOB_NAME=\"$BACKENDAI_SESSION_NAME\"");
    if (gethostname(host, sizeof(host) - 1) == 0)
        job_environ_text(facts, "SLURM_SUBMIT_HOST", host, out);
    job_environ_text(facts, "SLURM_JOB_ACCOUNT", facts->account, out);
    job_environ_text(facts, "SLURM_JOB_PARTITION", facts->partition, out);
    (void)snprintf(priority, sizeof(priority), "%d", getpriority(PRIO_PROCESS, 0));
    job_environ_text(facts, "SLURM_PRIO_PROCESS", priority, out);
    job_environ_dependency(facts, out);
    job_environ_amounts(facts, out);
    strbuf_addc(out, '\n');
    for (size_t i = 0; i < AQ_COUNT(job_environ_optional); i++)
        job_environ_optional_one(facts, job_environ_optional[i].name,
                                 job_environ_optional[i].expression, out);
    job_environ_times(facts, out);
    job_environ_granted(facts, out);
}
