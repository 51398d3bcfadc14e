/* SPDX-License-Identifier: Apache-2.0 */
/* accel.h - the accelerators of this node
 *
 * Each plugin (include/aliquot/accelerator.h) runs in a helper process,
 * aliquot-accel. A helper that crashes, exceeds its time limit or says what
 * cannot be is ended, named in the log and in accel_plugin.error, and started
 * again after 1, 2, 4 ... 60 seconds; what it had offered stays known as
 * offline until it is back. Everything belongs to the thread of the libuv
 * loop; callbacks never come from within a call.
 */
#ifndef AQ_ACCELHOST_ACCEL_H
#define AQ_ACCELHOST_ACCEL_H

#include <uv.h>

#include "model/container_part.h"
#include "accelhost/accel_settings.h"
#include "alloc/alloc_map.h"
#include "base/arena.h"
#include "base/text_pair.h"
#include "base/uuid.h"

struct accel;
struct accel_call;

enum accel_status { ACCEL_HEALTHY, ACCEL_DEGRADED, ACCEL_OFFLINE, ACCEL_UNAVAILABLE };
const char *accel_status_name(enum accel_status status); /* "healthy" ... */

struct accel_slot {
    const char *name; /* interned */
    enum slot_type type;
    int64_t quantum;                                                    /* 0 = whole */
    const char *exclusive;                                              /* NULL = none */
    const char *human_name, *description, *display_unit, *display_icon; /* may be NULL */
    uint32_t round_length;
};

struct accel_device {
    const char *id;
    const char *slot_name; /* interned */
    int64_t amount;
    int64_t quantum;                                     /* its own or the slot's; 0 = whole */
    const char *model, *location, *parent, *status_text; /* may be NULL */
    uint64_t memory_bytes;
    uint32_t processors;
    int numa_node; /* -1 = not known */
    enum accel_status status;
};

/* One plugin as it described itself last. */
struct accel_plugin {
    const char *name;                               /* of the plugin, "mock" */
    const char *key;                                /* "cuda"; NULL before the first answer */
    const char *human_name, *version, *status_text; /* may be NULL */
    enum accel_status status;
    const char *error; /* why it does not answer now; NULL = it does */
    const struct text_pair *info;
    size_t info_count;
    const struct accel_slot *slots;
    size_t slot_count;
    const struct accel_device *devices;
    size_t device_count;
};

/* Start the plugins that the settings name and run the loop until each has
 * described itself, failed or exceeded its time limit. A plugin that fails is no error here.
 * 'on_changed' is called when slots, devices or their health have changed.
 * 'settings' is borrowed. -EINVAL with the setting as field.
 */
int accel_new(uv_loop_t *loop, const struct accel_settings *settings,
              void (*on_changed)(void *data), void *data, struct accel **ret, struct aq_error *err);
/* End the helpers. Calls under way are dropped without their callback. */
void accel_free(struct accel *accel);
AQ_DEFINE_CLEANUP(struct accel, accel_free)

/* for (size_t i = 0; (plugin = accel_plugin(accel, i)); i++): good until the
 * loop runs again.
 */
const struct accel_plugin *accel_plugin(const struct accel *accel, size_t i);

/* ---- what a container needs for its devices ---- */

struct accel_part {   /* a device as the session sees it */
    const char *kind; /* "cuda" */
    const char *device_id, *model;
    uint64_t memory_bytes;
    uint32_t processors;
    uint32_t time_micro; /* millionths of the device's time; 0 = no slice (agent/gpu/gpu.h) */
};

struct accel_attachment {
    struct container_device *devices;
    size_t device_count;
    struct container_mount *mounts;
    size_t mount_count;
    struct text_pair *environ; /* of plugins and CDI; our own: gpu_variables.h */
    size_t environ_count;
    const char **cdi; /* "nvidia.com/gpu=0"; what they are is in the lists too */
    size_t cdi_count;
    struct container_hook *hooks; /* programs of the vendor's, see cdi.h */
    size_t hook_count;
    struct text_pair *pairs; /* further lines of resource.txt */
    size_t pair_count;
    gid_t *groups;
    size_t group_count;
    struct accel_part *parts;
    size_t part_count;
    struct arena arena; /* owns all of it */
};

void accel_attachment_done(struct accel_attachment *attachment);

/* Does any part of the grant belong to an accelerator? If not, accel_attach()
 * has nothing to ask, and the attachment is empty.
 */
bool accel_is_needed(const struct alloc_grant *grant);

/* 'attachment' is the callee's to take (then zero it) or to leave; NULL if
 * it failed, with kind "accelerator-failed" and the plugin as field in 'err'.
 */
typedef void (*accel_attached_fn)(void *data, struct accel_attachment *attachment,
                                  const struct aq_error *err);

/* Ask the plugins. 'done' is called once, at the latest after their time
 * limit, unless the call is cancelled before. -ENODEV, with kind
 * "accelerator-failed", if no plugin has a slot of the grant.
 */
int accel_attach(struct accel *accel, const struct alloc_grant *grant, accel_attached_fn done,
                 void *data, struct accel_call **ret, struct aq_error *err);
/* NULL is fine. */
void accel_cancel(struct accel_call *call);

/* ---- what is used ---- */

/* A kernel whose share is to be measured. */
struct accel_target {
    struct uuid kernel_id;
    const struct alloc_grant *grant;
    const int32_t *pids;
    size_t pid_count;
};

struct accel_metric {
    const char *key;    /* "cuda_mem" */
    const char *device; /* NULL: of the node, or of a kernel */
    bool is_of_kernel;
    struct uuid kernel_id;
    int64_t unit, stats; /* of model/metric.h */
    double value;
    double capacity; /* negative = none */
};

/* Ask every plugin that is not asked already, without waiting. */
void accel_measure(struct accel *accel, const struct accel_target *targets, size_t count);

/* What the i-th plugin answered last, the node's first, then device by device
 * and kernel by kernel, by the monotonic time at which it did (0 =
 * never); good until the loop runs again.
 */
const struct accel_metric *accel_metrics(const struct accel *accel, size_t i, size_t *ret_count,
                                         int64_t *ret_usec);

#endif
