/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c - other amounts of GPUs for a kernel that runs
 *
 * It keeps its devices; only how much of each changes. The manager first asks on
 * trial: the larger of both amounts is reserved, the plugins say what the new
 * ones would be worth, and all that is written beside the kernel, so that who
 * says "prepared" can do it later, whatever dies meanwhile. Then comes the command to
 * do it, or one to stay as it is. To do it, command and resource.txt are written
 * again, then the slice changes: less than what is in use takes nothing away.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel/devices.h"
#include "agent/kernel/kernel_command.h"
#include "alloc/resource_txt.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/memory.h"

struct resizing {
    struct slots slots;                 /* what it is to hold */
    struct alloc_grant fresh;           /* the same by device */
    struct alloc_grant extra;           /* what the map holds for it beside k->grant */
    struct accel_attachment attachment; /* of 'fresh', while it is written */
    struct accel_call *asking;          /* the plugins */
    char *slots_text, *alloc_text;      /* for reports, once it is certain */
    int64_t trial;          /* of the manager; 0 = a former process of the agent had it */
    bool is_certain;        /* written: it survives this process */
    bool is_ordered;        /* it is to be done, not only tried */
    uint64_t writing;       /* number of the disk's job; 0 = none */
    struct message command; /* with the new amounts, while it is written */
};

static uint64_t last_job;

static void resizing_free(struct resizing *z)
{
    if (!z)
        return;
    accel_cancel(z->asking);
    accel_attachment_done(&z->attachment);
    alloc_grant_done(&z->fresh);
    alloc_grant_done(&z->extra);
    slots_done(&z->slots);
    free(z->slots_text);
    free(z->alloc_text);
    message_done(&z->command);
    free(z);
}
AQ_DEFINE_CLEANUP(struct resizing, resizing_free)

static void resize_give_back(struct local_kernel *k, struct alloc_grant *grant)
{
    struct aq_error err = { 0 };

    if (alloc_map_release(k->agent->resources.map, grant, &err) < 0)
        log_error("devices are held wrongly: %s", err.text);
    grant->count = 0;
}

void kernel_stop_resizing(struct local_kernel *k)
{
    if (k->resizing)
        resize_give_back(k, &k->resizing->extra);
    resizing_free(AQ_TAKE(k->resizing));
}

const struct alloc_grant *kernel_reserved(const struct local_kernel *k)
{
    return k->resizing ? &k->resizing->extra : NULL;
}

/* ---- what is told ---- */

static char *slots_json(const struct local_kernel *k, const struct slots *slots)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    slots_write_json(slots, k->agent->resources.types, &w);
    return strbuf_steal(&text);
}

void kernel_tell_slots(struct local_kernel *k)
{
    free(k->slots_text);
    k->slots_text = k->slice ? slots_json(k, &k->slots) : NULL;
}

void kernel_describe_resizing(const struct local_kernel *k, struct msg_kernel_status *ret)
{
    const struct resizing *z = k->resizing;

    if (!z || !z->is_certain)
        return;
    ret->prepared = z->slots_text;
    ret->prepared_alloc = z->alloc_text;
    ret->trial = z->trial;
}

static void resize_be_certain(struct local_kernel *k, struct resizing *z)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    alloc_grant_write_json(&z->fresh, &w);
    z->alloc_text = strbuf_steal(&text);
    z->slots_text = slots_json(k, &z->slots);
    z->is_certain = true;
}

static void resize_reject(struct local_kernel *k, int64_t trial, const struct aq_error *err)
{
    struct message msg = { .type = MSG_KERNEL_STATUS };

    kernel_describe(k, &msg.kernel_status);
    msg.kernel_status.error_kind = err->kind ? err->kind : "invalid-resource-argument";
    msg.kernel_status.error_field = err->field[0] ? err->field : NULL;
    msg.kernel_status.error_text = err->text;
    msg.kernel_status.trial = trial;
    agent_send(k->agent, &msg);
}

/* What was certain stays so: the manager may command it again. */
static void resize_give_up(struct local_kernel *k, const struct aq_error *err)
{
    struct resizing *z = k->resizing;
    int64_t trial = z->is_ordered ? 0 : z->trial;

    accel_attachment_done(&z->attachment);
    z->is_ordered = false;
    z->writing = 0;
    if (!z->is_certain)
        kernel_stop_resizing(k);
    resize_reject(k, trial, err);
}

/* ---- it is written ---- */

/* The map, the kernel and its slice have the new amounts. */
static void resize_take_over(struct local_kernel *k)
{
    struct resizing *z = k->resizing;
    bool is_asked = k->attaching; /* devices.c: what the former ones are worth now */
    struct aq_error err = { 0 };

    accel_cancel(AQ_TAKE(k->attaching));
    resize_give_back(k, &z->extra);
    resize_give_back(k, &k->grant);
    if (alloc_map_apply(k->agent->resources.map, &z->fresh, &err) < 0)
        log_error("devices are held wrongly: %s", err.text);
    AQ_SWAP(k->grant, z->fresh);
    AQ_SWAP(k->slots, z->slots);
    AQ_SWAP(k->attachment, z->attachment);
    AQ_SWAP(k->command, z->command);
    kernel_stop_resizing(k);
    if (is_asked)
        devices_resize(k);
}

static void resize_on_done(void *data, const struct disk_job *job, const struct aq_error *err)
{
    struct local_kernel *k = kernel_find(data, &job->id);
    struct aq_error failed = *err;

    if (!k || !k->resizing || k->resizing->writing != job->number || k->attempt != job->attempt)
        return; /* the end or another command has come meanwhile */
    AQ_FAULT("agent.gpu.resize.written");
    if (!failed.code && k->slice)
        (void)gpu_slice_resize(k->slice, &k->resizing->attachment, &failed);
    if (failed.code) {
        resize_give_up(k, &failed);
        return;
    }
    resize_take_over(k);
    devices_describe(k);
    kernel_tell_slots(k);
    kernel_report(k);
    AQ_FAULT("agent.gpu.resize.reported");
}

static void resize_ask(struct local_kernel *k);

static void resize_on_certain(void *data, const struct disk_job *job, const struct aq_error *err)
{
    struct local_kernel *k = kernel_find(data, &job->id);
    struct resizing *z = k ? k->resizing : NULL;

    if (!z || z->writing != job->number || k->attempt != job->attempt)
        return;
    z->writing = 0;
    AQ_FAULT("agent.gpu.resize.prepared");
    if (err->code) {
        resize_give_up(k, err);
        return;
    }
    resize_be_certain(k, z);
    if (z->is_ordered)
        resize_ask(k);
    else
        kernel_report(k);
}

/* What follows of a kernel with the new amounts: they are in it meanwhile. */
static void resize_exchange(struct local_kernel *k)
{
    AQ_SWAP(k->slots, k->resizing->slots);
    AQ_SWAP(k->grant, k->resizing->fresh);
    AQ_SWAP(k->attachment, k->resizing->attachment);
    AQ_SWAP(k->command, k->resizing->command);
}

/* The command says the new amounts, too, once they are to be: the kernel may be restarted. */
static int resize_write_all(struct local_kernel *k, struct aq_error *err)
{
    struct resizing *z = k->resizing;
    AQ_CLEANUP(aq_freep) char *slots = slots_json(k, &z->slots);
    struct msg_kernel_create create = k->command.kernel_create;
    struct disk_job job = { .action = z->is_ordered ? DISK_REPLACE : DISK_INTEND,
                            .id = k->id,
                            .attempt = k->attempt,
                            .program = STRBUF_INIT,
                            .uid = k->is_container ? (uid_t)-1 : k->agent->uid,
                            .gid = k->agent->gid,
                            .on_done = z->is_ordered ? resize_on_done : resize_on_certain,
                            .data = k->agent,
                            .number = ++last_job };
    int r;

    create.spec.slots = slots;
    create.spec.devices = NULL; /* it has its devices; their amounts were others */
    message_done(&z->command);
    z->command = (struct message){ .type = MSG_UNKNOWN };
    r = kernel_command_copy(&create, &k->command.stamp, &z->command, err);
    if (r < 0)
        return r;
    resize_exchange(k);
    r = kernel_describe_config(k, &job, err);
    resize_exchange(k);
    if (r < 0)
        disk_job_done(&job);
    else
        disk_worker_add(k->agent->disk, &job);
    z->writing = r == 0 ? job.number : 0;
    return r;
}

/* ---- the plugins are asked ---- */

static void resize_on_attached(void *data, struct accel_attachment *attachment,
                               const struct aq_error *err)
{
    struct local_kernel *k = data;
    struct resizing *z = k->resizing;
    struct aq_error failed = *err;

    z->asking = NULL;
    AQ_FAULT("agent.gpu.resize.attached");
    if (attachment) {
        accel_attachment_done(&z->attachment);
        z->attachment = *attachment;
        *attachment = (struct accel_attachment){ .devices = NULL };
    }
    if (!attachment || resize_write_all(k, &failed) < 0)
        resize_give_up(k, &failed);
}

/* Checked again when it is to be done: devices may be worth something else than at the trial. */
static void resize_ask(struct local_kernel *k)
{
    struct aq_error err = { 0 };

    if (accel_attach(k->agent->accel, &k->resizing->fresh, resize_on_attached, k,
                     &k->resizing->asking, &err)
        < 0)
        resize_give_up(k, &err);
}

/* ---- commands ---- */

/* The larger of both amounts of each device is held from here on. */
static int resize_reserve(struct local_kernel *k, struct resizing *z, struct aq_error *err)
{
    int r;

    alloc_grant_excess(&z->fresh, &k->grant, &z->extra);
    r = alloc_map_apply(k->agent->resources.map, &z->extra, err);
    if (r < 0)
        z->extra.count = 0;
    return r;
}

static int resize_begin(struct local_kernel *k, struct slots *slots, int64_t trial,
                        struct aq_error *err)
{
    AQ_CLEANUP(resizing_freep) struct resizing *z = aq_alloc(sizeof(*z));
    int r;

    if (trial && (!k->slice || k->wants_end))
        return aq_fail_field(err, EINVAL, "session",
                             "only a running session with parts of GPUs "
                             "that are held can be given others");
    AQ_SWAP(z->slots, *slots);
    z->trial = trial;
    z->is_ordered = !trial;
    r = alloc_map_resize(k->agent->resources.map, &k->grant, &z->slots, &z->fresh, err);
    if (r == 0)
        r = resize_reserve(k, z, err);
    if (r < 0)
        return r;
    k->resizing = AQ_TAKE(z);
    resize_ask(k);
    return 0;
}

static void resize_on_forgotten(void *data, const struct disk_job *job, const struct aq_error *err)
{
    (void)data;
    (void)job;
    if (err->code)
        log_warning("what a kernel was to hold is not forgotten: %s", err->text);
}

/* It stays as it is. If the file outlives that, the manager says so again. */
static void resize_forget(struct local_kernel *k)
{
    struct disk_job job = { .action = DISK_INTEND,
                            .id = k->id,
                            .attempt = k->attempt,
                            .program = STRBUF_INIT,
                            .on_done = resize_on_forgotten,
                            .data = k->agent };

    kernel_stop_resizing(k);
    disk_worker_add(k->agent->disk, &job);
}

static int resize_accept(struct local_kernel *k, const struct msg_kernel_resize *resize,
                         struct aq_error *err)
{
    AQ_CLEANUP(slots_donep) struct slots slots = { .items = NULL };
    struct resizing *z = k->resizing;
    int r = slots_from_text(resize->slots, strlen(resize->slots), k->agent->resources.types, &slots,
                            err);

    if (r < 0)
        return r;
    if (k->state != MSG_KERNEL_RUNNING || !k->run || k->is_describing)
        return aq_fail_as(err, EAGAIN, "busy", "session",
                          "it is about to start or to end; ask "
                          "again");
    if (z && slots_eq(&z->slots, &slots)) {
        bool is_idle = z->is_certain && !z->asking && !z->writing;

        z->trial = resize->trial ? resize->trial : z->trial;
        z->is_ordered |= !resize->trial;
        if (is_idle && z->is_ordered)
            resize_ask(k);
        else if (is_idle)
            kernel_report(k);
        return 0;
    }
    if (z && z->is_ordered && z->writing)
        return aq_fail_as(err, EAGAIN, "busy", "session",
                          "its devices are changing already; ask "
                          "again");
    if (z)
        resize_forget(k);
    if (!slots_eq(&k->slots, &slots))
        return resize_begin(k, &slots, resize->trial, err);
    kernel_report(k);
    return 0;
}

void kernel_on_resize(struct agent_daemon *agent, const struct msg_kernel_resize *resize)
{
    struct local_kernel *k = kernel_find(agent, &resize->kernel_id);
    struct aq_error err = { 0 };

    AQ_FAULT("agent.gpu.resize.received");
    if (!k || resize->attempt != k->attempt)
        return; /* the inventory says what is here */
    if (resize_accept(k, resize, &err) < 0)
        resize_reject(k, resize->trial, &err);
}

/* ---- one that outlived an agent ---- */

static int resize_read_intended(const struct local_kernel *k, struct alloc_grant *ret)
{
    AQ_CLEANUP(aq_freep) char *directory = disk_worker_run_path(k->agent->disk, &k->id, k->attempt);
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/resize.txt", directory);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct resource_txt file = { .scratch_bytes = 0 };
    int r = fs_read(AT_FDCWD, path, RESOURCE_TXT_MAX, &text, NULL);

    if (r == 0)
        r = resource_txt_read(text.data, text.len, k->agent->resources.types, &file, NULL);
    if (r < 0)
        return r;
    AQ_SWAP(*ret, file.grant);
    resource_txt_done(&file);
    return 0;
}

/* As 'k' holds, but what the devices say. */
static int resize_slots_of(const struct local_kernel *k, const struct alloc_grant *grant,
                           struct slots *ret)
{
    AQ_CLEANUP(slots_donep) struct slots sum = { .items = NULL };
    int r = alloc_grant_sum(grant, &sum);

    slots_copy(ret, &k->slots);
    for (size_t i = 0; r == 0 && i < sum.count; i++)
        if (slots_get(ret, sum.items[i].name))
            slots_put(ret, sum.items[i].name, sum.items[i].amount);
    return r;
}

void kernel_recover_resizing(struct local_kernel *k)
{
    AQ_CLEANUP(resizing_freep) struct resizing *z = aq_alloc(sizeof(*z));
    struct aq_error err = { 0 };

    if (!k->grant.count || resize_read_intended(k, &z->fresh) < 0)
        return;
    if (resize_slots_of(k, &z->fresh, &z->slots) < 0 || slots_eq(&z->slots, &k->slots))
        return; /* it is done */
    if (resize_reserve(k, z, &err) < 0) {
        log_warning("room for a kernel is not kept: %s", err.text);
        return;
    }
    resize_be_certain(k, z);
    k->resizing = AQ_TAKE(z);
}
