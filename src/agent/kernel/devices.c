/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c - devices of one kernel: allocated, attached, released */
#include "agent/kernel/devices.h"

#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"

/* ---- grants ---- */

void devices_detach(struct local_kernel *k)
{
    accel_cancel(AQ_TAKE(k->attaching));
    kernel_stop_resizing(k);
    accel_attachment_done(&k->attachment);
    k->is_attached = k->is_describing = false;
}

void devices_release(struct local_kernel *k)
{
    struct aq_error err = { 0 };

    devices_detach(k);
    if (k->grant.count && alloc_map_release(k->agent->resources.map, &k->grant, &err) < 0)
        log_error("devices are held wrongly: %s", err.text);
    alloc_grant_done(&k->grant);
}

void devices_describe(struct local_kernel *k)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    alloc_grant_write_json(&k->grant, &w);
    free(k->alloc);
    k->alloc = strbuf_steal(&text);
}

int devices_allocate(struct local_kernel *k, struct aq_error *err)
{
    const struct alloc_request request = {
        .slots = &k->slots,
        .forbid_fragmentation = kernel_get_spec(k)->session.splitting == SPLITTING_FORBIDDEN,
        .chosen = &k->chosen
    };
    int r = alloc_map_allocate(k->agent->resources.map, &request, &k->grant, err);

    if (r == 0)
        devices_describe(k);
    AQ_FAULT("agent.alloc.done");
    return r;
}

int devices_ensure(struct local_kernel *k, struct aq_error *err)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant missing = { .items = NULL };
    AQ_CLEANUP(slots_donep) struct slots held = { .items = NULL };

    if (k->grant.count) {
        if (alloc_grant_sum(&k->grant, &held) < 0)
            return aq_fail(err, EOVERFLOW, "the sum of the kernel's devices is out of range");
        alloc_grant_excess(&k->chosen, &k->grant, &missing);
        if (slots_eq(&held, &k->slots) && missing.count == 0)
            return 0;
        devices_release(k);
    }
    return devices_allocate(k, err);
}

int devices_apply_all(struct agent_daemon *agent, struct alloc_map *map, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < agent->kernels.count; i++) {
        const struct local_kernel *k = agent->kernels.entries[i].value;

        r = alloc_map_apply(map, &k->grant, err);
        if (r == 0 && kernel_reserved(k))
            r = alloc_map_apply(map, kernel_reserved(k), err);
    }
    return r;
}

/* ---- what they need ---- */

static void devices_on_described(void *data, const struct disk_job *job, const struct aq_error *err)
{
    struct local_kernel *k = kernel_find(data, &job->id);

    if (!k || k->attempt != job->attempt || !k->is_describing)
        return; /* another command or the end has come meanwhile */
    k->is_describing = false;
    AQ_FAULT("agent.devices.described");
    if (err->code) {
        kernel_fail(k, err);
        return;
    }
    k->is_attached = true;
    kernel_step(k);
}

/* The files of the config directory, now that all is known. */
static int devices_write_config(struct local_kernel *k, struct aq_error *err)
{
    struct disk_job job = { .action = DISK_DESCRIBE,
                            .id = k->id,
                            .attempt = k->attempt,
                            .program = STRBUF_INIT,
                            .on_done = devices_on_described,
                            .data = k->agent };
    int r = kernel_describe_config(k, &job, err);

    if (r < 0)
        disk_job_done(&job);
    else
        disk_worker_add(k->agent->disk, &job);
    k->is_describing = r == 0;
    return r;
}

static void devices_on_attached(void *data, struct accel_attachment *attachment,
                                const struct aq_error *err)
{
    struct local_kernel *k = data;
    struct aq_error failed = *err;

    k->attaching = NULL;
    AQ_FAULT("agent.devices.attached");
    if (attachment) {
        accel_attachment_done(&k->attachment);
        k->attachment = *attachment;
        *attachment = (struct accel_attachment){ .devices = NULL };
    }
    if (!attachment || devices_write_config(k, &failed) < 0)
        kernel_fail(k, &failed);
}

int devices_prepare(struct local_kernel *k, struct aq_error *err)
{
    int r;

    if (k->is_attached)
        return 0;
    if (k->attaching || k->is_describing)
        return -EINPROGRESS;
    k->is_attached = !accel_is_needed(&k->grant);
    if (k->is_attached)
        return 0;
    r = accel_attach(k->agent->accel, &k->grant, devices_on_attached, k, &k->attaching, err);
    return r < 0 ? r : -EINPROGRESS;
}

/* ---- slices of kernels that run ---- */

static void devices_on_resized(void *data, struct accel_attachment *attachment,
                               const struct aq_error *err)
{
    struct local_kernel *k = data;
    struct aq_error failed = *err;

    k->attaching = NULL;
    if (!attachment || !k->slice || gpu_slice_resize(k->slice, attachment, &failed) < 0)
        log_warning("a kernel keeps its parts of GPUs as they were: %s", failed.text);
}

void devices_resize(struct local_kernel *k)
{
    struct aq_error err = { 0 };

    if (!k->slice || !k->run || k->attaching || k->is_describing)
        return;
    if (accel_attach(k->agent->accel, &k->grant, devices_on_resized, k, &k->attaching, &err) < 0)
        log_warning("a kernel keeps its parts of GPUs as they were: %s", err.text);
}

void devices_resize_all(struct agent_daemon *agent)
{
    for (size_t i = 0; i < agent->kernels.count; i++)
        devices_resize(agent->kernels.entries[i].value);
}
