/* resize.c - other parts of GPUs for a kernel that runs
 *
 * It keeps its devices; only how much of each changes. Room is taken at once, so
 * that nobody else gets it. Then the plugins say what the new part is worth, the
 * order and resource.txt are written anew, and the slice changes: less than what
 * is in use takes nothing away. Reported when it is durable. Until then a crash
 * of the agent leaves all as it was.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/devices.h"
#include "agent/order.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"

struct resizing {
    struct alloc_grant former; /* in k->grant is the new one */
    struct slots slots;        /* what it is to hold */
    struct accel_attachment attachment; /* the former; in k->attachment is the new one */
    bool is_attached;
};

static void resizing_free(struct resizing *resizing)
{
    if (!resizing)
        return;
    alloc_grant_done(&resizing->former);
    slots_done(&resizing->slots);
    accel_attachment_done(&resizing->attachment);
    free(resizing);
}

void kernel_stop_resizing(struct local_kernel *k)
{
    resizing_free(AQ_TAKE(k->resizing));
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
    k->slots_text = k->slice ? slots_json(k, &k->slots) : NULL; /* not told if memory is short */
}

static void refuse(struct local_kernel *k, const struct aq_error *err)
{
    struct message msg = { .type = MSG_KERNEL_STATUS };

    kernel_describe(k, &msg.kernel_status);
    msg.kernel_status.error_kind = err->kind ? err->kind : "invalid-resource-argument";
    msg.kernel_status.error_field = err->field[0] ? err->field : NULL;
    msg.kernel_status.error_text = err->text;
    agent_send(k->agent, &msg);
}

/* ---- room ---- */

static int find_device(const struct local_kernel *k, const struct grant_item *item,
                       struct alloc_device_state *ret)
{
    for (size_t i = 0; alloc_map_device(k->agent->resources.map, i, ret); i++)
        if (strcmp(ret->slot_name, item->slot_name) == 0 && strcmp(ret->id, item->device_id) == 0)
            return 0;
    return -ENOENT;
}

/* The one device of which a slot's amount is. */
static int find_item(const struct alloc_grant *grant, const char *slot, struct grant_item **ret,
                     struct aq_error *err)
{
    size_t count = 0;

    for (size_t i = 0; i < grant->count; i++)
        if (strcmp(grant->items[i].slot_name, slot) == 0) {
            *ret = &grant->items[i];
            count++;
        }
    if (count == 1)
        return 0;
    return aq_fail_field(err, EINVAL, slot, count ? "the session has %s of %zu devices, and only a "
                                                    "part of one can change" :
                                                    "the session has no %s", slot, count);
}

static int check_room(const struct local_kernel *k, const struct grant_item *item, int64_t amount,
                      struct aq_error *err)
{
    char text[AMOUNT_TEXT_MAX], left[AMOUNT_TEXT_MAX];
    struct alloc_device_state device;

    if (find_device(k, item, &device) < 0 || device.quantum <= 0)
        return aq_fail_field(err, EINVAL, item->slot_name, "%s is not given in parts",
                             item->slot_name);
    if (amount <= 0 || amount % device.quantum)
        return aq_fail_field(err, EINVAL, item->slot_name, "%s of %s: parts of that device are "
                             "multiples of %s", slot_amount_format(amount, item->type, text),
                             item->slot_name,
                             slot_amount_format(device.quantum, item->type, left));
    if (amount > item->amount && amount - item->amount > device.capacity - device.allocated)
        return aq_fail_field(err, EINVAL, item->slot_name, "%s of %s: of the session's device only "
                             "%s more is free", slot_amount_format(amount, item->type, text),
                             item->slot_name,
                             slot_amount_format(AQ_MAX(device.capacity - device.allocated, 0),
                                                item->type, left));
    return 0;
}

/* 'fresh' is a copy of what it has: make it what it is to have. */
static int plan(const struct local_kernel *k, const struct slots *wanted, struct alloc_grant *fresh,
                struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < wanted->count; i++) {
        const struct slot *slot = &wanted->items[i];
        struct grant_item *item = NULL;

        if (slot->amount == slots_get(&k->slots, slot->name))
            continue;
        r = find_item(fresh, slot->name, &item, err);
        if (r == 0)
            r = check_room(k, item, slot->amount, err);
        if (r == 0)
            item->amount = slot->amount;
    }
    for (size_t i = 0; r == 0 && i < k->slots.count; i++)
        if (slots_get(&k->slots, k->slots.items[i].name)
            && !slots_get(wanted, k->slots.items[i].name))
            r = aq_fail_field(err, EINVAL, k->slots.items[i].name, "%s is missing: a running "
                              "session keeps what it has of each kind", k->slots.items[i].name);
    return r;
}

/* The map and the kernel have 'fresh' from now on; what they had comes back in it. */
static void exchange(struct local_kernel *k, struct alloc_grant *fresh)
{
    struct alloc_map *map = k->agent->resources.map;
    struct aq_error err = { 0 };

    if (alloc_map_release(map, &k->grant, &err) < 0 || alloc_map_apply(map, fresh, &err) < 0)
        log_error("devices are held wrongly: %s", err.text);
    AQ_SWAP(k->grant, *fresh);
}

/* ---- the way to the new amounts ---- */

static void give_up(struct local_kernel *k, const struct aq_error *err)
{
    exchange(k, &k->resizing->former);
    if (k->resizing->is_attached)
        AQ_SWAP(k->attachment, k->resizing->attachment);
    kernel_stop_resizing(k);
    refuse(k, err);
}

static void on_written(void *data, const struct disk_job *job, const struct aq_error *err)
{
    struct local_kernel *k = kernel_find(data, &job->id);
    struct aq_error failed = *err;

    if (!k || !k->resizing || k->attempt != job->attempt)
        return; /* the end has come meanwhile */
    AQ_FAULT("agent.gpu.resize.written");
    if (!failed.code && k->slice)
        (void)gpu_slice_resize(k->slice, &k->attachment, &failed);
    if (failed.code) {
        give_up(k, &failed);
        return;
    }
    AQ_SWAP(k->slots, k->resizing->slots);
    kernel_stop_resizing(k);
    devices_describe(k);
    kernel_tell_slots(k);
    kernel_report(k);
    AQ_FAULT("agent.gpu.resize.reported");
}

/* The order says the new amounts, too: the kernel may be started anew. */
static int write_all(struct local_kernel *k, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = disk_kernel_path(k->agent->disk, &k->id, "spec.json");
    AQ_CLEANUP(aq_freep) char *slots = slots_json(k, &k->resizing->slots);
    struct disk_job job = { .action = DISK_REPLACE, .id = k->id, .attempt = k->attempt,
                            .program = STRBUF_INIT, .uid = k->agent->uid, .gid = k->agent->gid,
                            .on_done = on_written, .data = k->agent };
    struct slots former = k->slots;
    struct message msg;
    int r = path && slots ? order_read(path, &msg, err) : aq_fail(err, ENOMEM, "kernel");

    if (r < 0)
        return r;
    msg.kernel_create.slots = slots;
    k->slots = k->resizing->slots; /* what resource.txt says follows from both */
    r = kernel_describe_config(k, &msg.kernel_create, &job, err);
    k->slots = former;
    message_done(&msg);
    if (r < 0)
        disk_job_done(&job);
    return r < 0 ? r : disk_add(k->agent->disk, &job, err);
}

static void on_attached(void *data, struct accel_attachment *attachment, const struct aq_error *err)
{
    struct local_kernel *k = data;
    struct aq_error failed = *err;

    k->attaching = NULL;
    AQ_FAULT("agent.gpu.resize.attached");
    if (attachment) {
        AQ_SWAP(k->attachment, *attachment);
        AQ_SWAP(k->resizing->attachment, *attachment);
        k->resizing->is_attached = true;
    }
    if (!attachment || write_all(k, &failed) < 0)
        give_up(k, &failed);
}

static int begin(struct local_kernel *k, const struct msg_kernel_resize *order, struct aq_error *err)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant fresh = { .items = NULL };
    struct resizing *resizing;
    int r;

    if (k->state != MSG_KERNEL_RUNNING || !k->run || !k->slice || k->wants_end)
        return aq_fail_field(err, EINVAL, "session", "only a running session with parts of GPUs "
                             "that are held can be given others");
    if (k->resizing || k->attaching || k->is_describing)
        return aq_fail_field(err, EINVAL, "session", "its devices are changing already; ask again");
    if (!(resizing = calloc(1, sizeof(*resizing))))
        return aq_fail(err, ENOMEM, "kernel");
    r = slots_from_text(order->slots, strlen(order->slots), k->agent->resources.types,
                        &resizing->slots, err);
    if (r == 0 && alloc_grant_copy(&fresh, &k->grant) < 0)
        r = aq_fail(err, ENOMEM, "kernel");
    if (r == 0)
        r = plan(k, &resizing->slots, &fresh, err);
    if (r == 0)
        r = accel_attach(k->agent->accel, &fresh, on_attached, k, &k->attaching, err);
    if (r < 0) {
        resizing_free(resizing);
        return r;
    }
    exchange(k, &fresh);
    AQ_SWAP(resizing->former, fresh);
    k->resizing = resizing;
    return 0;
}

void kernel_on_resize(struct agent *agent, const struct msg_kernel_resize *order)
{
    struct local_kernel *k = kernel_find(agent, &order->kernel_id);
    struct aq_error err = { 0 };

    AQ_FAULT("agent.gpu.resize.received");
    if (!k || order->attempt != k->attempt)
        return; /* the inventory says what is here */
    if (begin(k, order, &err) < 0)
        refuse(k, &err);
}
