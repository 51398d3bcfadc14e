/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_commands.c - what the manager wants of kernels: saved first, then done */
#include <errno.h>
#include <string.h>

#include "agent/kernel/container_spec.h"
#include "agent/kernel/devices.h"
#include "agent/kernel/kernel_command.h"
#include "agent/kernel/kernel_internal.h"
#include "agent/kernel/prerequisites.h"
#include "agent/kernel/services.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "model/session.h"

/* A command that leaves no trace here. */
static void kernel_commands_reject(struct agent_daemon *agent,
                                   const struct msg_kernel_create *create,
                                   const struct aq_error *err)
{
    const struct message msg = {
        .type = MSG_KERNEL_STATUS,
        .kernel_status = { .kernel_id = create->kernel_id,
                           .session_id = create->session_id,
                           .attempt = create->attempt,
                           .state = MSG_KERNEL_ERROR,
                           .reason = REASON_FAILED_TO_CREATE,
                           .error_kind = err->kind ? err->kind : REASON_FAILED_TO_CREATE,
                           .error_field = err->field[0] ? err->field : NULL,
                           .error_text = err->text,
                           .at_usec = clock_realtime_usec() },
    };

    agent_send(agent, &msg);
}

static void kernel_commands_on_unsaved(struct local_kernel *k, const struct disk_job *job,
                                       const struct aq_error *err)
{
    log_error("an order cannot be saved: %s", err->text);
    kernel_note_error(k, err);
    devices_release(k);
    kernel_enter(k, MSG_KERNEL_ERROR, 0);
    if (k->run)
        runtime_terminate(k->run, 0, 0);
    if (job->action == DISK_CREATE)
        kernel_drop(k); /* there is no directory */
}

static void kernel_commands_on_saved(void *data, const struct disk_job *job,
                                     const struct aq_error *err)
{
    struct agent_daemon *agent = data;
    struct local_kernel *k = kernel_find(agent, &job->id);
    struct receipt *receipt;

    if (!k || k->attempt != job->attempt)
        return; /* a newer command has come meanwhile */
    receipt = AQ_TAKE(k->receipt);
    AQ_FAULT("agent.create.durable");
    if (err->code) {
        kernel_commands_on_unsaved(k, job, err);
    } else {
        k->is_saved = true;
        kernel_step(k);
    }
    agent_settle(agent, receipt);
    AQ_FAULT("agent.create.acknowledged");
}

/* Queue the command for the disk; the message is acknowledged when it is there. */
static int kernel_commands_save(struct local_kernel *k, enum disk_action action, uint64_t seq,
                                struct aq_error *err)
{
    struct disk_job job = { .action = action,
                            .id = k->id,
                            .attempt = k->attempt,
                            .program = STRBUF_INIT,
                            .uid = k->is_container ? (uid_t)-1 : k->agent->uid,
                            .gid = k->agent->gid,
                            .on_done = kernel_commands_on_saved,
                            .data = k->agent };
    int r = kernel_describe_config(k, &job, err);

    if (r < 0) {
        disk_job_done(&job);
        return r;
    }
    disk_worker_add(k->agent->disk, &job);
    k->is_saved = false;
    k->is_described = action == DISK_CREATE && k->is_attached && !k->is_container;
    agent_settle(k->agent, AQ_TAKE(k->receipt)); /* of a command that this one replaces */
    k->receipt = agent_receipt(k->agent, seq);
    return 0;
}

static int kernel_commands_check_room(const struct agent_daemon *agent, struct aq_error *err)
{
    if (agent->is_draining)
        return aq_fail_kind(err, EAGAIN, "draining", "this agent is drained");
    if (agent->is_rejected)
        return aq_fail_kind(err, EAGAIN, "draining", "this agent is about to stop");
    if (agent->kernels.count >= KERNELS_MAX)
        return aq_fail_kind(err, EAGAIN, "busy", "this agent has %d kernels already", KERNELS_MAX);
    return 0;
}

/* A process of the node has no folders. */
static int kernel_commands_check_folders(const struct local_kernel *k, struct aq_error *err)
{
    return kernel_get_spec(k)->session.mounts.count
               ? aq_fail_as(err, ENOTSUP, "no-containers", "mounts",
                            "a session that is a process of its node has no folders: name an image")
               : 0;
}

static void kernel_commands_create_new(struct agent_daemon *agent, uint64_t seq,
                                       const struct msg_kernel_create *create)
{
    struct aq_error err = { 0 };
    struct local_kernel *k = NULL;
    int r = kernel_commands_check_room(agent, &err);

    if (r == 0) {
        k = kernel_add(agent, &create->kernel_id);
        k->attempt = create->attempt;
        r = kernel_command_copy(create, &agent->stamp, &k->command, &err);
    }
    if (r == 0)
        r = kernel_take_spec(k, &err);
    if (r == 0)
        r = container_is_wanted(agent, create->spec.session.image, &k->is_container, &err);
    if (r == 0 && !k->is_container)
        r = kernel_commands_check_folders(k, &err);
    if (r == 0)
        r = services_check(k, &err);
    if (r == 0)
        r = prerequisites_announce(k, NULL, &err);
    if (r == 0)
        r = devices_allocate(k, &err);
    /* plugins are asked once the command is safe */
    if (r == 0 && !accel_is_needed(&k->grant))
        r = devices_prepare(k, &err);
    if (r == 0)
        r = kernel_commands_save(k, DISK_CREATE, seq, &err);
    if (r == 0) {
        kernel_report(k);
        return;
    }
    kernel_commands_reject(agent, create, &err);
    if (k)
        kernel_drop(k);
}

/* A later attempt of a kernel that is here, with this command. */
static void kernel_commands_begin_attempt(struct local_kernel *k, uint64_t seq, int64_t attempt,
                                          int64_t grace_usec,
                                          const struct msg_kernel_create *create)
{
    int64_t former = k->attempt;
    struct message command = { .type = MSG_UNKNOWN };
    struct aq_error err = { 0 };
    int r = kernel_command_copy(create, &k->agent->stamp, &command, &err);

    k->attempt = attempt;
    devices_detach(k);
    if (r == 0) {
        AQ_SWAP(k->command, command);
        r = prerequisites_announce(k, command.kernel_create.spec.network, &err);
        if (r == 0)
            r = kernel_commands_save(k, DISK_REPLACE, seq, &err);
        if (r < 0)
            AQ_SWAP(k->command, command);
    }
    if (r < 0) {
        k->attempt = former;
        kernel_commands_reject(k->agent, create, &err);
    }
    message_done(&command);
    if (r < 0)
        return;
    k->wants_end = k->has_exit = k->is_released = false;
    k->exit_code = 0;
    k->error_kind = NULL;
    k->notice_usec = 0;
    k->grace_usec = grace_usec;
    kernel_set_text(&k->reason, NULL);
    kernel_set_text(&k->error_field, NULL);
    kernel_set_text(&k->error_text, NULL);
    kernel_set_text(&k->last_lines, NULL);
    kernel_set_text(&k->limit_violations, NULL);
    kernel_set_text(&k->outputs, NULL);
    kernel_enter(k, k->run ? MSG_KERNEL_RESTARTING : MSG_KERNEL_CREATING, 0);
}

void kernel_on_create(struct agent_daemon *agent, uint64_t seq,
                      const struct msg_kernel_create *create)
{
    struct local_kernel *k = kernel_find(agent, &create->kernel_id);
    struct aq_error err = { 0 };

    AQ_FAULT("agent.create.received");
    if (!k)
        kernel_commands_create_new(agent, seq, create);
    else if (create->attempt <= k->attempt)
        kernel_report(k); /* it has come before */
    else if (kernel_commands_check_room(agent, &err) < 0
             || kernel_command_check(&create->spec, &err) < 0)
        kernel_commands_reject(agent, create, &err);
    else
        kernel_commands_begin_attempt(k, seq, create->attempt, 0, create);
}

void kernel_on_restart(struct agent_daemon *agent, uint64_t seq,
                       const struct msg_kernel_restart *restart)
{
    struct local_kernel *k = kernel_find(agent, &restart->kernel_id);
    struct msg_kernel_create create;

    AQ_FAULT("agent.restart.received");
    if (!k || restart->attempt <= k->attempt) {
        if (k)
            kernel_report(k);
        return;
    }
    if (k->command.type == MSG_UNKNOWN) {
        log_error("a kernel cannot be restarted: its order is unreadable");
        return;
    }
    create = k->command.kernel_create;
    create.attempt = restart->attempt;
    create.spec.attempts++; /* the manager counts a restart as the end of an attempt, too */
    kernel_commands_begin_attempt(k, seq, restart->attempt, restart->grace_usec, &create);
}

void kernel_on_destroy(struct agent_daemon *agent, const struct msg_kernel_destroy *destroy)
{
    struct local_kernel *k = kernel_find(agent, &destroy->kernel_id);

    AQ_FAULT("agent.destroy.received");
    if (!k || (destroy->attempt && destroy->attempt < k->attempt))
        return; /* the inventory says what is here */
    if (kernel_is_final(k)) {
        kernel_report(k);
        return;
    }
    if (!k->wants_end || destroy->grace_usec < k->grace_usec)
        k->grace_usec = destroy->grace_usec;
    if (!k->wants_end || destroy->notice_usec < k->notice_usec)
        k->notice_usec = destroy->notice_usec;
    k->wants_end = true;
    if (!k->reason)
        kernel_set_text(&k->reason, destroy->reason);
    if (k->state != MSG_KERNEL_TERMINATING)
        kernel_enter(k, MSG_KERNEL_TERMINATING, 0);
    kernel_step(k);
    AQ_FAULT("agent.destroy.passed-on");
}

static void kernel_commands_on_forgotten(void *data, const struct disk_job *job,
                                         const struct aq_error *err)
{
    if (err->code)
        log_warning("the folder of a forgotten kernel remains: %s", err->text);
    if (job->retained_bytes)
        log_retention_add(data, &job->id, job->retained_bytes);
}

void kernel_on_release(struct agent_daemon *agent, const struct msg_kernel_release *release)
{
    struct local_kernel *k = kernel_find(agent, &release->kernel_id);

    AQ_FAULT("agent.release.received");
    if (!k || k->attempt != release->attempt)
        return;
    k->is_released = true;
    kernel_step(k);
}

void kernel_on_forget(struct agent_daemon *agent, const struct msg_kernel_forget *forget)
{
    struct local_kernel *k = kernel_find(agent, &forget->kernel_id);
    struct disk_job job = { .action = DISK_FORGET,
                            .id = forget->kernel_id,
                            .on_done = kernel_commands_on_forgotten,
                            .data = agent };

    AQ_FAULT("agent.forget.received");
    if (!k || !kernel_is_final(k) || (forget->attempt && forget->attempt < k->attempt))
        return;
    job.attempt = k->attempt;
    disk_worker_add(agent->disk, &job);
    kernel_drop(k);
}

void kernel_on_describe(struct agent_daemon *agent, const struct msg_kernel_describe *describe)
{
    struct local_kernel *k = kernel_find(agent, &describe->kernel_id);
    struct message answer = { .type = MSG_KERNEL_ORDER, .kernel_order = { describe->kernel_id } };
    AQ_CLEANUP(aq_freep) char *order = NULL;
    struct aq_error err = { .text = "its order is unreadable" };
    struct message command;

    if (!k)
        return; /* the inventory says what is here */
    command = k->command;
    command.kernel_create.spec.ssh_seed = NULL; /* the manager derives it */
    if (k->command.type == MSG_UNKNOWN
        || kernel_command_write(&command, k->attempt, &order, &err) < 0)
        log_warning("a kernel cannot be described: %s", err.text);
    answer.kernel_order.order = order;
    agent_send(agent, &answer);
}
