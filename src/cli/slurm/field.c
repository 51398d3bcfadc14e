/* SPDX-License-Identifier: Apache-2.0 */
/* What squeue and sacct can show of a job. */
#include "cli/slurm/field.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

/* ---- values ---- */

static void job_write_id(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_addf(out, "%" PRId64, job->id);
}

/* "12", "12_3", "12_[4-99%8]" */
static void job_write_task(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    if (!job->array_number)
        job_write_id(row, out);
    else if (job->set)
        strbuf_addf(out, "%" PRId64 "_[%s]", job->array_number, job->set);
    else
        strbuf_addf(out, "%" PRId64 "_%" PRId64, job->array_number, job->index);
}

static void job_write_array_id(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_addf(out, "%" PRId64, job->array_number ? job->array_number : job->id);
}

static void job_write_index(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    if (job->set)
        strbuf_adds(out, job->set);
    else if (job->array_number)
        strbuf_addf(out, "%" PRId64, job->index);
    else
        strbuf_adds(out, "N/A");
}

static void job_write_name(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_adds(out, job->name);
}

static void job_write_state(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_adds(out, job_state_name(job->state));
}

static void job_write_code(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_adds(out, job_state_code(job->state));
}

static void job_write_user(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_addf(out, "%.*s", (int)strcspn(job->user, "@"), job->user);
}

static void job_write_account(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_adds(out, job->account);
}

static void job_write_partition(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_adds(out, job->partition);
}

static void job_write_comment(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_adds(out, job->comment[0] ? job->comment : "(null)");
}

static void job_write_reason(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_adds(out, job->reason);
}

static void job_write_nodes(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_addf(out, "%" PRId64, job->nodes);
}

static void job_write_cpus(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_addf(out, "%" PRId64, job->cpus);
}

static void job_write_priority(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_addf(out, "%" PRId64, job->priority);
}

static void job_write_exit(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_addf(out, "%d:%d", job->exit_code, job->signal);
}

static void job_write_one(const void *row, struct strbuf *out)
{
    (void)row;
    strbuf_adds(out, "1");
}

static void job_write_nothing(const void *row, struct strbuf *out)
{
    (void)row;
    (void)out;
}

static void job_write_null(const void *row, struct strbuf *out)
{
    (void)row;
    strbuf_adds(out, "(null)");
}

static void job_write_cluster(const void *row, struct strbuf *out)
{
    (void)row;
    strbuf_adds(out, "aliquot");
}

static void job_write_session(const void *row, struct strbuf *out)
{
    const struct job *job = row;
    const char *id = json_string_value(json_object_get(job->row, "id"));

    strbuf_adds(out, id ? id : "");
}

static void job_write_node_list(const void *row, struct strbuf *out)
{
    const struct job *job = row;
    const json_t *agent;
    size_t i;

    json_array_foreach(json_object_get(job->row, "agents"), i, agent)
        strbuf_addf(out, "%s%s", i ? "," : "", json_string_value(agent));
}

/* "afterok:12(unfulfilled),afterany:15_3(unfulfilled)": what it still waits for, and what can no longer
 * be met. "(null)" without any.
 */
static void job_write_dependency(const void *row, struct strbuf *out)
{
    static const struct {
        const char *condition, *word;
    } words[] = { { "success", "afterok" },
                  { "failure", "afternotok" },
                  { "end", "afterany" },
                  { "start", "after" },
                  { "corresponding", "aftercorr" } };
    const struct job *job = row;
    const json_t *all = json_object_get(job->row, "dependencies"), *one;
    size_t i, count = 0;

    json_array_foreach(all, i, one) {
        const char *condition = json_string_value(json_object_get(one, "condition"));
        const char *state = json_string_value(json_object_get(one, "state"));
        const json_t *index = json_object_get(one, "index");
        bool is_array = json_object_get(one, "array") != NULL;
        int64_t number = json_integer_value(json_object_get(one, is_array ? "number" : "job_id"));
        const char *word = condition ? condition : "";

        if (!state || strcmp(state, "met") == 0 || !number)
            continue;
        for (size_t k = 0; k < AQ_COUNT(words); k++)
            if (strcmp(word, words[k].condition) == 0)
                word = words[k].word;
        strbuf_addf(out, "%s%s:%" PRId64, count++ ? "," : "", word, number);
        if (is_array && json_is_integer(index))
            strbuf_addf(out, "_%" PRId64, (int64_t)json_integer_value(index));
        else if (is_array)
            strbuf_adds(out, "_*");
        strbuf_adds(out, strcmp(state, "unmet") == 0 ? "(failed)" : "(unfulfilled)");
    }
    if (!count)
        strbuf_adds(out, "(null)");
}

static void job_write_reservation(const void *row, struct strbuf *out)
{
    const struct job *job = row;
    const char *name = json_string_value(json_object_get(job->row, "reservation"));

    strbuf_adds(out, name ? name : "(null)");
}

/* Where it runs, or why it does not. */
static void job_write_where(const void *row, struct strbuf *out)
{
    const struct job *job = row;
    bool is_waiting = job->state == JOB_PENDING || job_state_is_ended(job->state);

    if (is_waiting && strcmp(job->reason, "None") != 0)
        strbuf_addf(out, "(%s)", job->reason);
    else
        job_write_node_list(job, out);
}

/* "4G", "512M", in whole numbers. */
static void job_write_size(int64_t bytes, struct strbuf *out)
{
    static const char units[] = "MGT";
    int64_t size = bytes >> 20;
    size_t i = 0;

    for (; units[i + 1] && size && size % 1024 == 0; i++)
        size /= 1024;
    strbuf_addf(out, "%" PRId64 "%c", size, units[i]);
}

static void job_write_mem(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    job_write_size(job->mem_bytes, out);
}

static void job_write_tres(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_addf(out, "cpu=%" PRId64 ",mem=", job->cpus);
    job_write_size(job->mem_bytes, out);
    strbuf_addf(out, ",node=%" PRId64 ",billing=%" PRId64, job->nodes, job->cpus);
    if (job->gpus)
        strbuf_addf(out, ",gres/gpu=%" PRId64, job->gpus);
}

static void job_write_gres(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    if (job->gpus)
        strbuf_addf(out, "gres/gpu:%" PRId64, job->gpus);
    else
        strbuf_adds(out, "N/A");
}

/* ---- times ---- */

/* "1-02:03:04", "02:03:04"; 'is_short' without leading zeros: "3:04". */
static void job_write_span(int64_t sec, bool is_short, struct strbuf *out)
{
    int days = (int)(sec / 86400), hours = (int)(sec / 3600 % 24), minutes = (int)(sec / 60 % 60);
    int seconds = (int)(sec % 60);

    if (days)
        strbuf_addf(out, "%d-%02d:%02d:%02d", days, hours, minutes, seconds);
    else if (is_short && !hours)
        strbuf_addf(out, "%d:%02d", minutes, seconds);
    else
        strbuf_addf(out, is_short ? "%d:%02d:%02d" : "%02d:%02d:%02d", hours, minutes, seconds);
}

static void job_write_used(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    job_write_span(job_elapsed_sec(job), true, out);
}

static void job_write_elapsed(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    job_write_span(job_elapsed_sec(job), false, out);
}

static void job_write_elapsed_raw(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_addf(out, "%" PRId64, job_elapsed_sec(job));
}

static void job_write_limit(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    if (job->limit_sec)
        job_write_span(job->limit_sec, true, out);
    else
        strbuf_adds(out, "UNLIMITED");
}

static void job_write_limit_raw(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    if (job->limit_sec)
        strbuf_addf(out, "%" PRId64, (job->limit_sec + 59) / 60);
    else
        strbuf_adds(out, "UNLIMITED");
}

static void job_write_left(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    if (job->limit_sec)
        job_write_span(AQ_MAX(job->limit_sec - job_elapsed_sec(job), 0), true, out);
    else
        strbuf_adds(out, "UNLIMITED");
}

/* Of the node that used most; sacct writes KiB. */
static void job_write_peak(const void *row, struct strbuf *out)
{
    const struct job *job = row;
    const json_t *peak = json_object_get(json_object_get(job->row, "summary"), "mem_peak");

    if (json_is_integer(peak))
        strbuf_addf(out, "%" PRId64 "K", (int64_t)json_integer_value(peak) >> 10);
}

/* "00:02.340", from an hour on "01:02:03" */
static void job_write_total(const void *row, struct strbuf *out)
{
    const struct job *job = row;
    const json_t *used = json_object_get(json_object_get(job->row, "summary"), "cpu_sec");
    int64_t ms = (int64_t)(json_number_value(used) * 1000 + 0.5);

    if (!json_is_number(used))
        return;
    if (ms >= INT64_C(3600000))
        job_write_span(ms / 1000, false, out);
    else
        strbuf_addf(out, "%02d:%02d.%03d", (int)(ms / 60000), (int)(ms / 1000 % 60),
                    (int)(ms % 1000));
}

/* What was allocated, however much of it was used. */
static void job_write_cpu_time(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    job_write_span(job_elapsed_sec(job) * job->cpus, false, out);
}

static void job_write_cpu_time_raw(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    strbuf_addf(out, "%" PRId64, job_elapsed_sec(job) * job->cpus);
}

static void job_write_time(int64_t usec, const char *unknown, struct strbuf *out)
{
    time_t sec = (time_t)(usec / USEC_PER_SEC);
    struct tm local;
    char text[32];

    if (!usec || !localtime_r(&sec, &local)) {
        strbuf_adds(out, unknown);
        return;
    }
    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &local);
    strbuf_adds(out, text);
}

static void job_write_submit(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    job_write_time(job->submit_usec, "N/A", out);
}

static void job_write_start(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    job_write_time(job->start_usec, "N/A", out);
}

static void job_write_begun(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    job_write_time(job->state == JOB_PENDING ? 0 : job->start_usec, "Unknown", out);
}

static void job_write_ended(const void *row, struct strbuf *out)
{
    const struct job *job = row;

    job_write_time(job->end_usec, "Unknown", out);
}

/* Of one that runs, when its limit ends it. */
static void job_write_end(const void *row, struct strbuf *out)
{
    const struct job *job = row;
    int64_t limit = job->limit_sec && job->start_usec && job->state == JOB_RUNNING
                        ? job->start_usec + job->limit_sec * USEC_PER_SEC
                        : 0;

    job_write_time(job->end_usec ? job->end_usec : limit, "N/A", out);
}

/* ---- the table ---- */

/* clang-format off */
const struct slurm_field job_fields[] = {
    { "JobID",        'i', "JOBID",         12, job_write_task, 0 },
    { "JobIDRaw",     'A', "JOBID",         12, job_write_id, 0 },
    { "JobArrayID",   'F', "ARRAY_JOB_ID",  12, job_write_array_id, 0 },
    { "ArrayJobID",    0,  "ARRAY_JOB_ID",  12, job_write_array_id, 0 },
    { "ArrayTaskID",  'K', "ARRAY_TASK_ID", 12, job_write_index, 0 },
    { "JobName",      'j', "NAME",          10, job_write_name, 0 },
    { "Name",          0,  "NAME",          10, job_write_name, 0 },
    { "State",        'T', "STATE",         10, job_write_state, 0 },
    { "StateCompact", 't', "ST",            10, job_write_code, 0 },
    { "User",         'u', "USER",           9, job_write_user, JOB_NEEDS_OWNER },
    { "UserName",      0,  "USER",           9, job_write_user, JOB_NEEDS_OWNER },
    { "UID",          'U', "UID",            6, job_write_user, JOB_NEEDS_OWNER },
    { "UserID",        0,  "UID",            6, job_write_user, JOB_NEEDS_OWNER },
    { "Group",        'g', "GROUP",          9, job_write_account, JOB_NEEDS_OWNER },
    { "Account",      'a', "ACCOUNT",       10, job_write_account, JOB_NEEDS_OWNER },
    { "Partition",    'P', "PARTITION",     10, job_write_partition, 0 },
    { "Comment",      'k', "COMMENT",       14, job_write_comment, 0 },
    { "QOS",          'q', "QOS",           10, job_write_null, 0 },
    { "Cluster",       0,  "CLUSTER",       10, job_write_cluster, 0 },
    { "Priority",     'Q', "PRIORITY",      10, job_write_priority, 0 },
    { "PriorityLong", 'p', "PRIORITY",      10, job_write_priority, 0 },
    { "Reason",       'r', "REASON",        22, job_write_reason, JOB_NEEDS_DEPENDENCY },
    { "ReasonList",   'R', "NODELIST(REASON)", 22, job_write_where, JOB_NEEDS_DEPENDENCY },
    { "NodeList",     'N', "NODELIST",      15, job_write_node_list, 0 },
    { "BatchHost",    'B', "EXEC_HOST",     15, job_write_node_list, 0 },
    { "ReqNodes",     'n', "REQ_NODES",      8, job_write_nothing, 0 },
    { "NNodes",        0,  "NODES",          8, job_write_nodes, 0 },
    { "AllocNodes",    0,  "NODES",         10, job_write_nodes, 0 },
    { "NumNodes",     'D', "NODES",          8, job_write_nodes, 0 },
    { "AllocCPUS",     0,  "CPUS",          10, job_write_cpus, 0 },
    { "NCPUS",         0,  "CPUS",          10, job_write_cpus, 0 },
    { "ReqCPUS",       0,  "CPUS",           8, job_write_cpus, 0 },
    { "NumCPUs",      'C', "CPUS",           8, job_write_cpus, 0 },
    { "NTasks",        0,  "TASKS",          8, job_write_one, 0 },
    { "NumTasks",      0,  "TASKS",          8, job_write_one, 0 },
    { "ReqMem",        0,  "MIN_MEMORY",    10, job_write_mem, 0 },
    { "MinMemory",    'm', "MIN_MEMORY",    10, job_write_mem, 0 },
    { "AllocTRES",     0,  "TRES",          10, job_write_tres, 0 },
    { "ReqTRES",       0,  "TRES",          10, job_write_tres, 0 },
    { "tres-alloc",    0,  "TRES_ALLOC",    10, job_write_tres, 0 },
    { "tres-per-node",'b', "TRES_PER_NODE", 13, job_write_gres, 0 },
    { "Gres",          0,  "TRES_PER_NODE", 13, job_write_gres, 0 },
    { "Features",     'f', "FEATURES",      10, job_write_null, 0 },
    { "Dependency",   'E', "DEPENDENCY",    10, job_write_dependency, JOB_NEEDS_DEPENDENCY },
    { "Reservation",  'v', "RESERVATION",   10, job_write_reservation, JOB_NEEDS_RESERVATION },
    { "WorkDir",      'Z', "WORK_DIR",      20, job_write_nothing, 0 },
    { "Command",      'o', "COMMAND",       20, job_write_nothing, 0 },
    { "OverSubscribe",'h', "OVER_SUBSCRIBE",14, job_write_nothing, 0 },
    { "ExitCode",      0,  "EXIT_CODE",      8, job_write_exit, 0 },
    { "exit_code",     0,  "EXIT_CODE",      8, job_write_exit, 0 },
    { "DerivedExitCode", 0, "DERIVED_EC",   15, job_write_exit, 0 },
    { "Elapsed",       0,  "TIME",          10, job_write_elapsed, 0 },
    { "ElapsedRaw",    0,  "TIME",          10, job_write_elapsed_raw, 0 },
    { "TimeUsed",     'M', "TIME",          10, job_write_used, 0 },
    { "TimeLimit",    'l', "TIME_LIMIT",    10, job_write_limit, JOB_NEEDS_LIMIT },
    { "TimelimitRaw",  0,  "TIME_LIMIT",    12, job_write_limit_raw, JOB_NEEDS_LIMIT },
    { "TimeLeft",     'L', "TIME_LEFT",     10, job_write_left, JOB_NEEDS_LIMIT },
    { "Submit",        0,  "SUBMIT_TIME",   19, job_write_submit, 0 },
    { "SubmitTime",   'V', "SUBMIT_TIME",   19, job_write_submit, 0 },
    { "Eligible",      0,  "ELIGIBLE_TIME", 19, job_write_submit, 0 },
    { "Start",         0,  "START_TIME",    19, job_write_begun, 0 },
    { "StartTime",    'S', "START_TIME",    19, job_write_start, 0 },
    { "End",           0,  "END_TIME",      19, job_write_ended, 0 },
    { "EndTime",      'e', "END_TIME",      19, job_write_end, JOB_NEEDS_LIMIT },
    { "MaxRSS",        0,  "MAX_RSS",       10, job_write_peak, JOB_NEEDS_USAGE },
    { "MaxVMSize",     0,  "MAX_VM_SIZE",   10, job_write_nothing, 0 },
    { "AveRSS",        0,  "AVE_RSS",       10, job_write_nothing, 0 },
    { "AveCPU",        0,  "AVE_CPU",       10, job_write_nothing, 0 },
    { "TotalCPU",      0,  "TOTAL_CPU",     12, job_write_total, JOB_NEEDS_USAGE },
    { "CPUTime",       0,  "CPU_TIME",      10, job_write_cpu_time, 0 },
    { "CPUTimeRAW",    0,  "CPU_TIME",      10, job_write_cpu_time_raw, 0 },
    { "Session",       0,  "SESSION",       36, job_write_session, 0 },
    { .name = NULL },
};
/* clang-format on */
