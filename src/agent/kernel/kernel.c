/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - the states of one kernel, and the next step from each */
#include "agent/kernel/kernel_internal.h"

#include <errno.h>
#include <string.h>

#include "agent/kernel/bootstrap.h"
#include "agent/kernel/devices.h"
#include "agent/kernel/kernel_command.h"
#include "agent/kernel/last_lines.h"
#include "agent/kernel/lease.h"
#include "agent/kernel/prerequisites.h"
#include "agent/kernel/readiness.h"
#include "agent/stat/kernel_stat.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/session.h"
#include "monitor/protocol.h"

/* ---- the table ---- */

struct local_kernel *kernel_find(struct agent_daemon *agent, const struct uuid *id)
{
    return map_get(&agent->kernels, id->bytes, sizeof(id->bytes));
}

struct local_kernel *kernel_add(struct agent_daemon *agent, const struct uuid *id)
{
    struct local_kernel *k = aq_alloc(sizeof(*k));

    map_set(&agent->kernels, id->bytes, sizeof(id->bytes), k);
    k->agent = agent;
    list_init(&k->room.link);
    k->id = *id;
    k->state = MSG_KERNEL_CREATING;
    k->lease_until_usec = LEASE_UNKNOWN;
    k->at_usec = clock_realtime_usec();
    return k;
}

void kernel_drop(struct local_kernel *k)
{
    (void)map_remove(&k->agent->kernels, k->id.bytes, sizeof(k->id.bytes));
    kernel_stop_resizing(k);
    readiness_end(k);
    devices_release(k);
    prerequisites_release(k);
    kernel_stat_free(k->stat);
    runtime_release(k->run);
    message_done(&k->command);
    free(k->service_ports);
    slots_done(&k->slots);
    alloc_grant_done(&k->chosen);
    free(k->alloc);
    free(k->slots_text);
    free(k->reason);
    free(k->error_field);
    free(k->error_text);
    free(k->last_lines);
    free(k->limit_violations);
    free(k->outputs);
    free(k);
}

bool kernel_is_final(const struct local_kernel *k)
{
    return k->state == MSG_KERNEL_TERMINATED || k->state == MSG_KERNEL_ERROR;
}

/* ---- reports ---- */

void kernel_describe(const struct local_kernel *k, struct msg_kernel_status *ret)
{
    *ret = (struct msg_kernel_status){
        .kernel_id = k->id,
        .session_id = k->session_id,
        .attempt = k->attempt,
        .epoch = k->command.stamp.epoch,
        .commit = k->command.stamp.commit,
        .state = k->state,
        .reason = k->reason,
        .has_exit = k->has_exit,
        .exit_code = k->exit_code,
        .outputs = k->outputs,
        .alloc = k->alloc,
        .slots = k->slots_text,
        .service_ports = k->service_ports,
        .error_kind = k->error_kind,
        .error_field = k->error_field,
        .error_text = k->error_text,
        .last_lines = k->last_lines,
        .limit_violation = k->limit_violations,
        .is_ready = k->is_ready,
        .bootstrap = k->is_bootstrapping,
        .lease_usec = kernel_get_spec(k)->lease_usec,
        .lease_grace_usec = kernel_get_spec(k)->lease_grace_usec,
        .at_usec = k->at_usec,
    };
    kernel_describe_resizing(k, ret);
}

void kernel_report(const struct local_kernel *k)
{
    struct message msg = { .type = MSG_KERNEL_STATUS };

    kernel_describe(k, &msg.kernel_status);
    agent_send(k->agent, &msg);
}

void kernel_enter(struct local_kernel *k, enum msg_kernel_state state, int64_t at_usec)
{
    k->state = state;
    k->is_bootstrapping = k->is_ready = false;
    k->at_usec = at_usec ? at_usec : clock_realtime_usec();
    kernel_report(k);
    if (state == MSG_KERNEL_RUNNING)
        readiness_begin(k);
    else
        readiness_end(k);
}

void kernel_set_text(char **place, const char *text)
{
    free(*place);
    *place = text && text[0] ? aq_strdup(text) : NULL;
}

void kernel_note_error(struct local_kernel *k, const struct aq_error *err)
{
    k->error_kind = err->kind ? err->kind : REASON_FAILED_TO_CREATE;
    kernel_set_text(&k->error_field, err->field);
    kernel_set_text(&k->error_text, err->text);
    if (!k->reason)
        kernel_set_text(&k->reason, REASON_FAILED_TO_CREATE);
}

/* ---- its life ---- */

bool kernel_is_of_type(const struct local_kernel *k, enum session_type type)
{
    const char *name = kernel_get_spec(k)->session_type;

    return name && strcmp(name, session_type_name(type)) == 0;
}

bool kernel_is_main(const struct local_kernel *k)
{
    const char *role = kernel_get_spec(k)->role;

    return !role || strcmp(role, "main") == 0;
}

bool kernel_has_output(const struct local_kernel *k)
{
    return kernel_is_main(k) && kernel_is_of_type(k, SESSION_BATCH);
}

const char *kernel_hostname_of(const struct local_kernel *k)
{
    const char *hostname = kernel_get_spec(k)->hostname;

    return hostname ? hostname : "main1";
}

int kernel_take_spec(struct local_kernel *k, struct aq_error *err)
{
    const struct kernel_spec *spec = kernel_get_spec(k);
    struct slots slots = { .items = NULL };
    int r = kernel_command_check(spec, err);

    if (r == 0)
        r = slots_from_text(spec->slots, strlen(spec->slots), NULL, &slots, err);
    if (r < 0)
        return r;
    slots_done(&k->slots);
    k->slots = slots;
    k->session_id = k->command.kernel_create.session_id;
    k->chosen.count = 0;
    if (spec->devices)
        alloc_grant_read_json(&k->chosen, spec->devices, k->agent->resources.types);
    return 0;
}

static void kernel_on_bootstrap(void *data)
{
    struct local_kernel *k = data;

    if (!k->is_attached) /* an agent before us started it */
        prerequisites_adopt_slice(k);
    if (k->state != MSG_KERNEL_CREATING || k->run_attempt != k->attempt)
        return;
    k->is_bootstrapping = true;
    kernel_report(k);
}

static void kernel_on_running(void *data, int64_t started_usec)
{
    struct local_kernel *k = data;

    AQ_FAULT("agent.running.seen");
    if (!k->is_attached) /* an agent before us started it */
        prerequisites_adopt_slice(k);
    if (k->state == MSG_KERNEL_CREATING && k->run_attempt == k->attempt)
        kernel_enter(k, MSG_KERNEL_RUNNING, started_usec);
}

static void kernel_on_ended(void *data, const struct runtime_exit *exit)
{
    kernel_end(data, exit);
}

const struct runtime_events kernel_run_events = { .on_running = kernel_on_running,
                                                  .on_ended = kernel_on_ended,
                                                  .on_bootstrap = kernel_on_bootstrap };

/* ---- shutdown ---- */

/* What the manager calls it. */
static const char *kernel_reason_of(const struct local_kernel *k, const struct runtime_exit *exit)
{
    if (strcmp(exit->reason, MONITOR_TERMINATED) == 0)
        return k->reason ? k->reason : REASON_USER_REQUESTED;
    if (strcmp(exit->reason, MONITOR_TIMEOUT) == 0)
        return REASON_TASK_TIMEOUT;
    if (strcmp(exit->reason, MONITOR_BOOTSTRAP_TIMEOUT) == 0)
        return REASON_BOOTSTRAP_TIMEOUT;
    if (strcmp(exit->reason, MONITOR_OUT_OF_MEMORY) == 0)
        return REASON_OUT_OF_MEMORY;
    if (strcmp(exit->reason, MONITOR_BAD_OUTPUT) == 0)
        return REASON_BAD_OUTPUT;
    if (strcmp(exit->reason, MONITOR_LEASE_OVER) == 0)
        return REASON_AGENT_LOST;
    if (strcmp(exit->reason, MONITOR_LOST) == 0)
        return REASON_MONITOR_LOST;
    if (strcmp(exit->reason, MONITOR_NOT_STARTED) == 0)
        return REASON_FAILED_TO_START;
    if (!kernel_is_of_type(k, SESSION_BATCH))
        return REASON_SELF_TERMINATED;
    return exit->has_code && exit->code == 0 ? REASON_TASK_FINISHED : REASON_TASK_FAILED;
}

/* A program that failed, or was ended by a signal, after its slice of a GPU was full. */
static bool kernel_was_gpu_full(const struct local_kernel *k, const struct runtime_exit *exit,
                                struct strbuf *why)
{
    bool has_failed = strcmp(exit->reason, MONITOR_SIGNALLED) == 0
                      || (strcmp(exit->reason, MONITOR_EXITED) == 0 && exit->code != 0);

    return has_failed && k->slice && gpu_slice_was_full(k->slice, why);
}

/* The reason if the bootstrap script ended the kernel before its program started, else NULL. */
static const char *kernel_find_bootstrap_failure(const struct local_kernel *k,
                                                 const struct runtime_exit *exit,
                                                 struct strbuf *why)
{
    bool is_late = strcmp(exit->reason, MONITOR_BOOTSTRAP_TIMEOUT) == 0;
    AQ_CLEANUP(aq_freep) char *directory = NULL;

    if (!kernel_get_spec(k)->session.bootstrap || exit->code == 0
        || (!is_late && strcmp(exit->reason, MONITOR_EXITED) != 0
            && strcmp(exit->reason, MONITOR_OUT_OF_MEMORY) != 0))
        return NULL;
    directory = disk_worker_run_path(k->agent->disk, &k->id,
                                     k->run_attempt ? k->run_attempt : k->attempt);
    if (directory && is_late)
        bootstrap_describe_timeout(directory, k->agent->settings->bootstrap_usec, why);
    else if (!directory || !bootstrap_has_failed(directory, exit->code, why))
        return NULL;
    if (exit->was_short_of_memory)
        strbuf_addf(why, "\n%s", exit->text);
    return is_late ? REASON_BOOTSTRAP_TIMEOUT : REASON_BOOTSTRAP_FAILED;
}

/* A replica of a model service may end again and again, and its user wants to know why. */
static void kernel_read_last_lines(struct local_kernel *k)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf log = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf lines = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *directory = disk_worker_run_path(
        k->agent->disk, &k->id, k->run_attempt ? k->run_attempt : k->attempt);

    last_lines_read_log(directory, LAST_LINES_READ_MAX, &log);
    last_lines_write(log.data, log.len, &lines);
    kernel_set_text(&k->last_lines, lines.data);
}

static void kernel_conclude(struct local_kernel *k, const struct runtime_exit *exit)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf why = STRBUF_INIT;
    bool never_ran = strcmp(exit->reason, MONITOR_NOT_STARTED) == 0;
    const char *bootstrap = kernel_find_bootstrap_failure(k, exit, &why);
    const char *reason = bootstrap                            ? bootstrap
                         : kernel_was_gpu_full(k, exit, &why) ? REASON_GPU_OUT_OF_MEMORY
                                                              : kernel_reason_of(k, exit);

    if (reason != k->reason)
        kernel_set_text(&k->reason, reason);
    k->has_exit = exit->has_code;
    k->exit_code = exit->code;
    kernel_set_text(&k->outputs, exit->outputs);
    if (kernel_get_spec(k)->probe_port && strcmp(exit->reason, MONITOR_TERMINATED) != 0)
        kernel_read_last_lines(k);
    if (never_ran && !k->error_kind)
        k->error_kind = REASON_FAILED_TO_START;
    if (bootstrap)
        k->error_kind = bootstrap;
    if (!k->error_text)
        kernel_set_text(&k->error_text, why.len ? why.data : exit->text);
    if (!k->error_kind && exit->was_short_of_memory)
        k->error_kind = REASON_OUT_OF_MEMORY;
    devices_release(k);
    prerequisites_release(k);
    kernel_stat_free(AQ_TAKE(k->stat));
    kernel_enter(k, never_ran || k->is_unreadable ? MSG_KERNEL_ERROR : MSG_KERNEL_TERMINATED,
                 exit->ended_usec);
    AQ_FAULT("agent.exit.reported");
}

void kernel_end(struct local_kernel *k, const struct runtime_exit *exit)
{
    bool was_older = k->run && k->run_attempt < k->attempt;

    streams_kernel_ended(k->agent, &k->id);
    if (!was_older)
        kernel_conclude(k, exit);
    runtime_release(AQ_TAKE(k->run));
    k->run_attempt = 0;
    if (was_older && k->state == MSG_KERNEL_RESTARTING)
        kernel_enter(k, MSG_KERNEL_CREATING, 0);
    if (was_older)
        kernel_step(k);
}

static void kernel_on_concluded(void *data, const struct disk_job *job, const struct aq_error *err)
{
    const struct runtime_exit exit = { .reason = job->reason, .text = job->text };
    struct local_kernel *k = kernel_find(data, &job->id);

    if (!k || !k->is_concluding)
        return;
    k->is_concluding = false;
    if (err->code)
        log_error("the end of a kernel is not recorded: %s", err->text);
    kernel_end(k, &exit);
}

/* It ends and was never started: say so in its directory first, so that no later
 * process of the agent starts it. 'reason' is static.
 */
static void kernel_end_unstarted(struct local_kernel *k, const char *reason, const char *text)
{
    struct disk_job job = { .action = DISK_CONCLUDE,
                            .id = k->id,
                            .attempt = k->attempt,
                            .reason = reason,
                            .on_done = kernel_on_concluded,
                            .data = k->agent };

    if (k->is_concluding)
        return;
    job.text = aq_strdup(text);
    disk_worker_add(k->agent->disk, &job);
    k->is_concluding = true;
}

void kernel_fail(struct local_kernel *k, const struct aq_error *err)
{
    kernel_note_error(k, err);
    kernel_end_unstarted(k, MONITOR_NOT_STARTED, err->text);
}

/* One of several kernels waits until all of them can start, so that each can reach the others. */
static bool kernel_hold(struct local_kernel *k)
{
    if (!kernel_get_spec(k)->is_held || k->is_released)
        return false;
    if (!k->is_ready) {
        k->is_ready = true;
        kernel_report(k);
        AQ_FAULT("agent.ready.reported");
    }
    return true;
}

/* Its devices first, then the program. */
static void kernel_begin(struct local_kernel *k)
{
    struct aq_error err = { 0 };
    bool is_new = !k->is_described && !k->is_attached && !k->attaching && !k->is_describing;
    int r = is_new ? kernel_take_spec(k, &err) : 0;

    if (r == 0 && is_new)
        r = devices_ensure(k, &err);

    if (r == 0 && !k->is_described)
        r = devices_prepare(k, &err);
    if (r == 0 && !k->is_described)
        r = prerequisites_prepare(k, &err);
    if (r == -EINPROGRESS || (r == 0 && (kernel_hold(k) || lease_holds_back(k))))
        return;
    k->is_ready = false;
    if (r == 0)
        r = kernel_launch(k, &err);
    if (r < 0)
        kernel_fail(k, &err);
}

void kernel_step(struct local_kernel *k)
{
    if (kernel_is_final(k) || k->agent->is_rejected)
        return;
    if (k->run && (k->wants_end || k->run_attempt < k->attempt))
        runtime_terminate(k->run, k->notice_usec, k->grace_usec);
    else if (k->run || !k->is_saved)
        return;
    else if (k->wants_end)
        kernel_end_unstarted(k, MONITOR_TERMINATED, "ended before it was started");
    else if (!k->is_concluding)
        kernel_begin(k);
}

int kernel_adopt(struct local_kernel *k, int64_t attempt, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *directory = disk_worker_run_path(k->agent->disk, &k->id, attempt);
    int r = runtime_adopt(k->is_container ? k->agent->containers : k->agent->runtime, directory,
                          &kernel_run_events, k, &k->run, err);

    if (r == 0)
        k->run_attempt = attempt;
    return r;
}
