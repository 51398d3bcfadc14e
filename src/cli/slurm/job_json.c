/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in the form of data_parser/v0.0.41, which is that of Slurm 24.05: a number that may be missing
 * is {"set", "infinite", "number"}, times are Unix time, limits minutes, memory MiB.
 */
#include "cli/slurm/job_json.h"

#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "cli/slurm/field.h"
#include "cli/slurm/slurm.h"

static json_t *job_json_number(bool is_set, int64_t number)
{
    return json_pack("{s:b, s:b, s:I}", "set", is_set, "infinite", 0, "number",
                     (json_int_t)(is_set ? number : 0));
}

static json_t *job_json_time(int64_t usec)
{
    return job_json_number(usec != 0, usec / USEC_PER_SEC);
}

/* A field as squeue prints it; what is "(null)" there is empty here. */
static void job_json_add_field(json_t *to, const char *member, const struct job *job,
                               const char *name)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (const struct slurm_field *f = job_fields; f->name; f++)
        if (strcmp(f->name, name) == 0) {
            f->write(job, &text);
            break;
        }
    (void)json_object_set_new(to, member,
                              json_string(strcmp(text.data, "(null)") == 0 ? "" : text.data));
}

static json_t *job_json_exit_code(const struct job *job)
{
    const char *status = !job_state_is_ended(job->state) ? "PENDING"
                         : job->signal                   ? "SIGNALED"
                         : job->exit_code                ? "ERROR"
                                                         : "SUCCESS";

    return json_pack("{s:[s], s:o, s:{s:o, s:s}}", "status", status, "return_code",
                     job_json_number(job_state_is_ended(job->state), job->exit_code), "signal",
                     "id", job_json_number(job->signal != 0, job->signal), "name", "");
}

/* Elements of an array have its number and their index, those without a session a text of indices. */
static void job_json_add_array(json_t *to, const struct job *job)
{
    bool is_element = job->array_number && !job->set;

    (void)json_object_set_new(to, "array_job_id",
                              job_json_number(job->array_number != 0, job->array_number));
    (void)json_object_set_new(to, "array_task_id", job_json_number(is_element, job->index));
    (void)json_object_set_new(to, "array_task_string", json_string(job->set ? job->set : ""));
}

static json_t *job_json_describe(const struct job *job)
{
    json_t *to = json_pack(
        "{s:I, s:s, s:[s], s:s, s:s, s:s, s:s, s:s}", "job_id", (json_int_t)job->id, "name",
        job->name, "job_state", job_state_name(job->state), "state_reason", job->reason, "account",
        job->account, "partition", job->partition, "comment", job->comment, "cluster", "aliquot");
    int64_t limit_end = job->limit_sec && job->start_usec && job->state == JOB_RUNNING
                            ? job->start_usec + job->limit_sec * USEC_PER_SEC
                            : 0;
    json_t *limit = job_json_number(job->limit_sec != 0, (job->limit_sec + 59) / 60);

    if (!job->limit_sec)
        (void)json_object_set_new(limit, "infinite", json_true());
    job_json_add_array(to, job);
    job_json_add_field(to, "user_name", job, "User");
    job_json_add_field(to, "dependency", job, "Dependency");
    job_json_add_field(to, "resv_name", job, "Reservation");
    job_json_add_field(to, "nodes", job, "NodeList");
    job_json_add_field(to, "batch_host", job, "BatchHost");
    job_json_add_field(to, "tres_req_str", job, "ReqTRES");
    (void)json_object_set_new(to, "priority", job_json_number(true, job->priority));
    (void)json_object_set_new(to, "cpus", job_json_number(true, job->cpus));
    (void)json_object_set_new(to, "node_count", job_json_number(true, job->nodes));
    (void)json_object_set_new(to, "tasks", job_json_number(true, 1));
    (void)json_object_set_new(
        to, "memory_per_node",
        job_json_number(job->nodes > 0, job->nodes ? (job->mem_bytes >> 20) / job->nodes : 0));
    (void)json_object_set_new(to, "submit_time", job_json_time(job->submit_usec));
    (void)json_object_set_new(to, "eligible_time", job_json_time(job->submit_usec));
    (void)json_object_set_new(to, "start_time", job_json_time(job->start_usec));
    (void)json_object_set_new(to, "end_time",
                              job_json_time(job->end_usec ? job->end_usec : limit_end));
    (void)json_object_set_new(to, "time_limit", limit);
    (void)json_object_set_new(to, "exit_code", job_json_exit_code(job));
    return to;
}

int job_json_print(const struct job *jobs, size_t count, struct aq_error *err)
{
    json_t *all = json_array();
    json_auto_t *document = NULL;
    AQ_CLEANUP(aq_freep) char *text = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(all, job_json_describe(&jobs[i]));
    document = json_pack("{s:o, s:o, s:{s:{s:s}, s:{s:s, s:s, s:{s:s, s:s, s:s}}}, s:[], s:[]}",
                         "jobs", all, "last_update", job_json_time(clock_realtime_usec()), "meta",
                         "plugin", "data_parser", "data_parser/v0.0.41", "slurm", "release",
                         SLURM_VERSION, "cluster", "aliquot", "version", "major", "24", "minor",
                         "05", "micro", "0", "errors", "warnings");
    text = json_dump_text(document, JSON_INDENT(2));
    strbuf_addf(&out, "%s\n", text);
    return cli_print(&out, err);
}
