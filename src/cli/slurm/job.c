/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as jobs of Slurm: their numbers, names and states. */
#include "cli/slurm/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/submit/job_name.h"
#include "model/status.h"

/* ---- states ---- */

static const struct {
    const char *name, *code;
} job_states[JOB_STATE_COUNT] = {
    [JOB_PENDING] = { "PENDING", "PD" },
    [JOB_RUNNING] = { "RUNNING", "R" },
    [JOB_CONFIGURING] = { "CONFIGURING", "CF" },
    [JOB_COMPLETING] = { "COMPLETING", "CG" },
    [JOB_COMPLETED] = { "COMPLETED", "CD" },
    [JOB_CANCELLED] = { "CANCELLED", "CA" },
    [JOB_FAILED] = { "FAILED", "F" },
    [JOB_TIMEOUT] = { "TIMEOUT", "TO" },
    [JOB_NODE_FAIL] = { "NODE_FAIL", "NF" },
    [JOB_PREEMPTED] = { "PREEMPTED", "PR" },
    [JOB_OUT_OF_MEMORY] = { "OUT_OF_MEMORY", "OOM" },
};

const char *job_state_name(enum job_state state)
{
    return job_states[state].name;
}

const char *job_state_code(enum job_state state)
{
    return job_states[state].code;
}

int job_state_parse(const char *text, size_t len, enum job_state *ret)
{
    for (size_t i = 0; i < AQ_COUNT(job_states); i++)
        if ((strlen(job_states[i].name) == len && strncasecmp(text, job_states[i].name, len) == 0)
            || (strlen(job_states[i].code) == len
                && strncasecmp(text, job_states[i].code, len) == 0)) {
            *ret = (enum job_state)i;
            return 0;
        }
    return -EINVAL;
}

bool job_state_is_ended(enum job_state state)
{
    return state >= JOB_COMPLETED;
}

static enum job_state job_state_of_live(enum session_status status)
{
    switch (status) {
    case SESSION_RUNNING:
    case SESSION_RUNNING_DEGRADED:
        return JOB_RUNNING;
    case SESSION_TERMINATING:
        return JOB_COMPLETING;
    case SESSION_SCHEDULED:
    case SESSION_PREPARING:
    case SESSION_PULLING:
    case SESSION_PREPARED:
    case SESSION_CREATING:
    case SESSION_RESTARTING:
        return JOB_CONFIGURING;
    default:
        return JOB_PENDING;
    }
}

/* Reasons that say more than that the job failed. */
static const struct {
    const char *reason;
    enum job_state state;
    const char *word; /* Slurm's */
} job_ends[] = {
    { REASON_OUT_OF_MEMORY, JOB_OUT_OF_MEMORY, "OutOfMemory" },
    { REASON_GPU_OUT_OF_MEMORY, JOB_OUT_OF_MEMORY, "OutOfMemory" },
    { REASON_TASK_TIMEOUT, JOB_TIMEOUT, "TimeLimit" },
    { REASON_EXEC_TIMEOUT, JOB_TIMEOUT, "TimeLimit" },
    { REASON_AGENT_LOST, JOB_NODE_FAIL, "NodeDown" },
    { REASON_AGENT_DRAINED, JOB_NODE_FAIL, "NodeDown" },
    { REASON_AGENT_REMOVED, JOB_NODE_FAIL, "NodeDown" },
    { REASON_MONITOR_LOST, JOB_NODE_FAIL, "NodeDown" },
    { REASON_PREEMPTED, JOB_PREEMPTED, "Preempted" },
    { REASON_DEPENDENCY_FAILED, JOB_CANCELLED, "DependencyNeverSatisfied" },
    { REASON_USER_REQUESTED, JOB_CANCELLED, "None" },
    { REASON_FORCE_TERMINATED, JOB_CANCELLED, "None" },
    { REASON_TASK_FAILED, JOB_FAILED, "NonZeroExitCode" },
    { REASON_FAILED_TO_CREATE, JOB_FAILED, "JobLaunchFailure" },
    { REASON_FAILED_TO_START, JOB_FAILED, "JobLaunchFailure" },
};

static enum job_state job_state_of_ended(enum session_status status, const char *result,
                                         const char *reason, const char **ret_word)
{
    *ret_word = "None";
    for (size_t i = 0; i < AQ_COUNT(job_ends); i++)
        if (strcmp(reason, job_ends[i].reason) == 0) {
            *ret_word = job_ends[i].word;
            return job_ends[i].state;
        }
    if (status == SESSION_CANCELLED)
        return JOB_CANCELLED;
    if (strcmp(result, session_result_name(RESULT_SUCCESS)) == 0)
        return JOB_COMPLETED;
    if (status == SESSION_ERROR || strcmp(result, session_result_name(RESULT_FAILURE)) == 0) {
        *ret_word = status == SESSION_ERROR ? "JobLaunchFailure" : "NonZeroExitCode";
        return JOB_FAILED;
    }
    return JOB_CANCELLED;
}

/* ---- rows ---- */

#define MEMBERS                                                                           \
    "id,job_id,name,status,result,exit_code,reason,priority,resource_group,cluster_size," \
    "requested_slots,agents,created_at,starts_at,started_at,terminated_at,tag,image,access_key,array"

void job_members(unsigned needs, struct strbuf *out)
{
    static const struct {
        unsigned need;
        const char *members;
    } more[] = {
        { JOB_NEEDS_LIMIT, ",timeout_sec" },       { JOB_NEEDS_OWNER, ",user,group" },
        { JOB_NEEDS_USAGE, ",summary" },           { JOB_NEEDS_DEPENDENCY, ",dependencies" },
        { JOB_NEEDS_RESERVATION, ",reservation" },
    };

    strbuf_adds(out, MEMBERS);
    for (size_t i = 0; i < AQ_COUNT(more); i++)
        if (needs & more[i].need)
            strbuf_adds(out, more[i].members);
}

static const char *job_text(const json_t *row, const char *member)
{
    const char *text = json_string_value(json_object_get(row, member));

    return text ? text : "";
}

static int64_t job_time(const json_t *row, const char *member)
{
    int64_t usec;

    return clock_parse_date(job_text(row, member), &usec) < 0 ? 0 : usec;
}

/* Amounts are texts, of any size of number. */
static int64_t job_amount(const json_t *slots, const char *slot)
{
    const char *text = json_string_value(json_object_get(slots, slot));

    return text ? strtoll(text, NULL, 10) : 0;
}

static int64_t job_gpus(const json_t *slots)
{
    const char *name, *dot;
    const json_t *amount;

    json_object_foreach((json_t *)slots, name, amount)
        if ((dot = strchr(name, '.')) && strcmp(dot, ".device") == 0)
            return job_amount(slots, name);
    return 0;
}

/* The reason of a row says only that a condition holds it back, its dependencies say which. */
static bool job_waits_for_others(const json_t *row)
{
    const json_t *dependency;
    size_t i;

    json_array_foreach(json_object_get(row, "dependencies"), i, dependency)
        if (strcmp(job_text(dependency, "state"), "met") != 0)
            return true;
    return false;
}

/* Why it does not run yet, as far as the row says it. */
static const char *job_why_pending(const json_t *row, const struct job *job)
{
    if (job->start_usec > job->now_usec)
        return "BeginTime";
    return job_waits_for_others(row) ? "Dependency" : "Resources";
}

/* A signal is what ended a job that was ended, not what its program answered. */
static void job_read_exit(const json_t *row, struct job *job)
{
    const json_t *code = json_object_get(row, "exit_code");
    int status = json_is_integer(code) ? (int)json_integer_value(code) : 0;
    bool is_ended_by_us = job->state == JOB_CANCELLED || job->state == JOB_TIMEOUT
                          || job->state == JOB_OUT_OF_MEMORY || job->state == JOB_PREEMPTED;

    if (is_ended_by_us && status > 128)
        job->signal = status - 128;
    else
        job->exit_code = status;
    if (job->state == JOB_FAILED && status == 0)
        job->exit_code = 1;
}

/* What sessions and arrays have in common. */
static struct job job_read_common(const json_t *row, int64_t now_usec)
{
    const json_t *slots = json_object_get(row, "requested_slots");

    return (struct job){
        .row = row,
        .user = job_text(row, "user"),
        .account = job_text(row, "group"),
        .partition = job_text(row, "resource_group"),
        .comment = job_text(row, "tag"),
        .reason = "None",
        .submit_usec = job_time(row, "created_at"),
        .end_usec = job_time(row, "terminated_at"),
        .limit_sec = (int64_t)json_number_value(json_object_get(row, "timeout_sec")),
        .cpus = job_amount(slots, "cpu"),
        .mem_bytes = job_amount(slots, "mem"),
        .gpus = job_gpus(slots),
        .nodes = json_integer_value(json_object_get(row, "cluster_size")),
        .priority = json_integer_value(json_object_get(row, "priority")),
        .now_usec = now_usec,
    };
}

/* An element's session is called NAME[INDEX]. */
static void job_read_name(const json_t *row, struct job *ret)
{
    const char *name = job_text(row, "name");
    AQ_CLEANUP(aq_freep) char *stem = aq_format(
        "%.*s", ret->array_id ? (int)strcspn(name, "[") : (int)strlen(name), name);

    job_name_of_session(stem, ret->name);
}

int job_read(const json_t *row, int64_t now_usec, struct job *ret, struct aq_error *err)
{
    const json_t *array = json_object_get(row, "array");
    const char *reason = job_text(row, "reason");
    enum session_status status;

    *ret = job_read_common(row, now_usec);
    ret->id = json_integer_value(json_object_get(row, "job_id"));
    ret->start_usec = job_time(row, "started_at");
    ret->array_id = json_string_value(json_object_get(array, "id"));
    ret->index = json_integer_value(json_object_get(array, "index"));
    if (ret->id <= 0 || session_status_parse(job_text(row, "status"), &status) < 0)
        return aq_fail(err, EPROTO,
                       "the manager's answer has no job_id or an unknown status; is its version "
                       "older than that of this program?");
    job_read_name(row, ret);
    if (session_is_terminal(status)) {
        ret->state = job_state_of_ended(status, job_text(row, "result"), reason, &ret->reason);
        job_read_exit(row, ret);
        return 0;
    }
    ret->end_usec = 0;
    ret->state = job_state_of_live(status);
    if (ret->state == JOB_PENDING) {
        ret->start_usec = job_time(row, "starts_at");
        ret->reason = job_why_pending(row, ret);
    }
    return 0;
}

static const char *job_why_set_waits(const json_t *array)
{
    int64_t limit = json_integer_value(json_object_get(array, "limit"));

    if (job_waits_for_others(array))
        return "Dependency";
    return limit && json_integer_value(json_object_get(array, "running")) >= limit
               ? "JobArrayTaskLimit"
               : "Resources";
}

int job_read_set(const json_t *array, char *set, bool is_cancelled, int64_t now_usec,
                 struct job *ret, struct aq_error *err)
{
    *ret = job_read_common(array, now_usec);
    ret->id = ret->array_number = json_integer_value(json_object_get(array, "number"));
    ret->array_id = json_string_value(json_object_get(array, "id"));
    ret->index = -1;
    ret->set = set;
    if (ret->id <= 0 || !ret->array_id)
        return aq_fail(err, EPROTO, "the manager's answer has no number or id of an array");
    job_read_name(array, ret);
    ret->state = is_cancelled ? JOB_CANCELLED : JOB_PENDING;
    if (!is_cancelled)
        ret->reason = job_why_set_waits(array);
    return 0;
}

int64_t job_elapsed_sec(const struct job *job)
{
    int64_t end = job->end_usec ? job->end_usec : job->now_usec;

    if (job->state == JOB_PENDING || !job->start_usec || end < job->start_usec)
        return 0;
    return (end - job->start_usec) / USEC_PER_SEC;
}
