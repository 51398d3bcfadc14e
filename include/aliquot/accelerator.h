/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot/accelerator.h - what an accelerator plugin for Aliquot provides
 *
 * A plugin is a shared object that exports one constant,
 *
 *     const struct aq_accelerator aq_accelerator = {
 *         .abi = AQ_ACCELERATOR_ABI, .size = sizeof(aq_accelerator), .name = "npu", ...
 *     };
 *
 * The agent runs each plugin in a process of its own (aliquot-accel), calls
 * one function at a time, always from the same thread, and ends the process
 * when a call exceeds its time limit or what comes back is not acceptable; it
 * then starts a new one, later and later. So a plugin may crash or hang
 * without harm to the agent or to running containers, and need not undo
 * anything.
 *
 * Results are handed to the host piece by piece through struct
 * aq_accelerator_out; everything that pointers lead to is borrowed for the
 * duration of that call. Text is UTF-8. A NULL text is no text.
 *
 * Amounts are exact: units of 10^-6 for counts (2.5 shares = 2500000), bytes
 * for AQ_ACCELERATOR_BYTES.
 *
 * This ABI is frozen: structs keep their layout as long as AQ_ACCELERATOR_ABI
 * is the same. Reserved members are 0.
 */
#ifndef ALIQUOT_ACCELERATOR_H
#define ALIQUOT_ACCELERATOR_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AQ_ACCELERATOR_ABI 1u
#define AQ_ACCELERATOR_SYMBOL "aq_accelerator"
#define AQ_ACCELERATOR_EXPORT __attribute__((visibility("default")))

/* ---- what a node has ---- */

enum aq_accelerator_status {
    AQ_ACCELERATOR_HEALTHY = 0,
    AQ_ACCELERATOR_DEGRADED = 1,    /* works, somebody should look: still offered */
    AQ_ACCELERATOR_OFFLINE = 2,     /* does not work: not offered until it does */
    AQ_ACCELERATOR_UNAVAILABLE = 3, /* no driver, no hardware */
};

/* Exactly one per describe(). */
struct aq_accelerator_identity {
    const char *key;     /* "cuda": slots are named "cuda.…"; [a-z0-9-], at most 16 */
    const char *name;    /* "NVIDIA GPU" */
    const char *version; /* of the driver; NULL = none */
    uint32_t status;     /* enum aq_accelerator_status */
    uint32_t reserved;
    const char *status_text; /* why, if not healthy */
};

enum aq_accelerator_slot_type {
    AQ_ACCELERATOR_COUNT = 0, /* whole devices, or parts of one if there is a quantum */
    AQ_ACCELERATOR_BYTES = 1,
    AQ_ACCELERATOR_UNIQUE = 2,  /* a session gets exactly one, for itself */
    AQ_ACCELERATOR_UNIFIED = 3, /* attached to every session, no amount */
};

/* A resource that sessions can ask for. Declared even if no device has it now. */
struct aq_accelerator_slot {
    const char *name;         /* "KEY.device", "KEY.shares", "KEY.device:PROFILE" */
    uint32_t type;            /* enum aq_accelerator_slot_type */
    uint32_t round_length;    /* decimals to show */
    int64_t quantum;          /* > 0: can be had in multiples of this part of a device; 0: whole */
    const char *exclusive;    /* a session may use only one of the slots with this same word */
    const char *human_name;   /* "GPU" */
    const char *description;  /* "GPU capable of CUDA" */
    const char *display_unit; /* "fGPU" */
    const char *display_icon; /* "gpu1" */
    uint64_t reserved;
};

/* A device, or the part of one that a slot stands for. One id may appear under
 * several slots: it is then the same hardware, and is held as one of them at a
 * time.
 */
struct aq_accelerator_device {
    const char *id;       /* unique in its slot: 1 to 63 of [A-Za-z0-9._/+@-] */
    const char *slot;     /* one of the slots */
    int64_t amount;       /* of the slot; UNIQUE: 1000000, UNIFIED: 0 */
    const char *model;    /* "NVIDIA H100 80GB HBM3" */
    const char *location; /* "0000:4f:00.0" */
    uint64_t memory_bytes;
    uint32_t processors;     /* multiprocessors, cores: what shares are counted by */
    int32_t numa_node;       /* -1 = not known */
    const char *parent;      /* the device that this is a slice of; NULL = a whole one */
    uint32_t status;         /* enum aq_accelerator_status */
    uint32_t quantum;        /* of this device, where it is not the slot's; 0 = the slot's */
    const char *status_text; /* why, if not healthy: "Xid 79: fell off the bus" */
};

/* ---- what a container needs ---- */

/* A part of a session's allocation. */
struct aq_accelerator_grant {
    const char *slot;
    const char *device;
    int64_t amount;
};

enum aq_accelerator_need_kind {
    AQ_ACCELERATOR_NODE = 0,  /* name: device file of the host; value: path inside (NULL = same) */
    AQ_ACCELERATOR_MOUNT = 1, /* name: path of the host; value: path inside (NULL = same) */
    AQ_ACCELERATOR_ENVIRON = 2,  /* name, value: a variable */
    AQ_ACCELERATOR_CDI = 3,      /* name: a qualified CDI device, "vendor.com/class=name" */
    AQ_ACCELERATOR_RESOURCE = 4, /* name, value: a further line of /home/config/resource.txt */
    AQ_ACCELERATOR_GROUP = 5,    /* name: number of a supplementary group */
};

#define AQ_ACCELERATOR_READ (1u << 0)  /* NODE: may be read */
#define AQ_ACCELERATOR_WRITE (1u << 1) /* NODE, MOUNT: may be written; a mount is else read-only */
#define AQ_ACCELERATOR_MKNOD (1u << 2) /* NODE */

struct aq_accelerator_need {
    uint32_t kind; /* enum aq_accelerator_need_kind */
    uint32_t flags;
    const char *name;
    const char *value;
};

/* What the session sees of one device it was given. */
struct aq_accelerator_part {
    const char *device;
    const char *model;
    uint64_t memory_bytes;
    uint32_t processors;
    uint32_t time; /* millionths of the device's time; not 0: a slice that
                                  libaliquot-gpu.so is to hold to it and to memory_bytes */
};

/* ---- what is used ---- */

enum aq_accelerator_unit {
    AQ_ACCELERATOR_UNIT_COUNT = 0,
    AQ_ACCELERATOR_UNIT_BYTES = 1, /* whole ones: others are rounded */
    AQ_ACCELERATOR_UNIT_PERCENT = 2,
    AQ_ACCELERATOR_UNIT_MSEC = 3,
    AQ_ACCELERATOR_UNIT_BPS = 4,
    AQ_ACCELERATOR_UNIT_WATTS = 5,
    AQ_ACCELERATOR_UNIT_CELSIUS = 6,
};

/* Derived values worth keeping. */
#define AQ_ACCELERATOR_STAT_MAX (1u << 0)
#define AQ_ACCELERATOR_STAT_MIN (1u << 1)
#define AQ_ACCELERATOR_STAT_AVG (1u << 2)
#define AQ_ACCELERATOR_STAT_RATE (1u << 3)

/* A session whose share is to be measured. */
struct aq_accelerator_target {
    const struct aq_accelerator_grant *grants;
    size_t grant_count;
    const int32_t *pids; /* all processes, as this host numbers them */
    size_t pid_count;
};

#define AQ_ACCELERATOR_NO_TARGET UINT32_MAX

/* One value: of the node (device NULL, no target), a device, or a target. */
struct aq_accelerator_metric {
    const char *key; /* "cuda_mem": [a-z0-9_], begins with the plugin's key */
    const char *device;
    uint32_t target; /* index, or AQ_ACCELERATOR_NO_TARGET */
    uint32_t unit;   /* enum aq_accelerator_unit */
    uint32_t stats;  /* AQ_ACCELERATOR_STAT_… */
    uint32_t reserved;
    double value;
    double capacity; /* negative = has none */
};

/* ---- calls ---- */

/* Where results go. */
struct aq_accelerator_out {
    uint32_t abi, size;
    void *data; /* the host's: first argument of each */
    void (*identity)(void *data, const struct aq_accelerator_identity *identity);
    /* "cuda_version", "12.4". The agent itself reads "nvml_library", the management library to
     * watch slices with, and "simulated_card", what it is to look at (simgpu/device.h).
     */
    void (*info)(void *data, const char *key, const char *value);
    void (*slot)(void *data, const struct aq_accelerator_slot *slot);
    void (*device)(void *data, const struct aq_accelerator_device *device);
    void (*need)(void *data, const struct aq_accelerator_need *need);
    void (*part)(void *data, const struct aq_accelerator_part *part);
    void (*metric)(void *data, const struct aq_accelerator_metric *metric);
    /* Why the call is about to return an error. */
    void (*error)(void *data, const char *text);
};

/* What the host offers for the plugin's life. */
struct aq_accelerator_host {
    uint32_t abi, size;
    const char *root;   /* stands for "/" wherever the plugin looks at the machine; "" = "/" */
    const char *config; /* path of the plugin's own settings; NULL = there are none */
    void (*log)(int level, const char *text); /* level as in syslog(3) */
};

/* Calls return 0 or -errno. */
struct aq_accelerator {
    uint32_t abi;     /* AQ_ACCELERATOR_ABI */
    uint32_t size;    /* sizeof(struct aq_accelerator) */
    const char *name; /* of this plugin, for messages */

    /* Read the settings. Missing hardware or drivers are no error: describe()
     * says so. *ret is passed to all others.
     */
    int (*open)(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
                void **ret);
    void (*close)(void *self);

    /* Look at the machine again: identity, info, slots, devices. Called at the
     * start and again every now and then.
     */
    int (*describe)(void *self, const struct aq_accelerator_out *out);

    /* Needs and parts for one session's grants of this plugin. Called before
     * each start of a container, also for unified devices (amount 0).
     */
    int (*attach)(void *self, const struct aq_accelerator_grant *grants, size_t count,
                  const struct aq_accelerator_out *out);

    /* Metrics of node, devices and targets, now. NULL = there are none. */
    int (*measure)(void *self, const struct aq_accelerator_target *targets, size_t count,
                   const struct aq_accelerator_out *out);

    void *reserved[4];
};

#ifdef __LP64__
static_assert(sizeof(struct aq_accelerator_identity) == 40, "frozen");
static_assert(sizeof(struct aq_accelerator_slot) == 72, "frozen");
static_assert(sizeof(struct aq_accelerator_device) == 80, "frozen");
static_assert(sizeof(struct aq_accelerator_grant) == 24, "frozen");
static_assert(sizeof(struct aq_accelerator_need) == 24, "frozen");
static_assert(sizeof(struct aq_accelerator_part) == 32, "frozen");
static_assert(sizeof(struct aq_accelerator_target) == 32, "frozen");
static_assert(sizeof(struct aq_accelerator_metric) == 48, "frozen");
static_assert(sizeof(struct aq_accelerator_out) == 80, "frozen");
static_assert(sizeof(struct aq_accelerator_host) == 32, "frozen");
static_assert(sizeof(struct aq_accelerator) == 88, "frozen");
#endif

#ifdef __cplusplus
}
#endif

#endif
