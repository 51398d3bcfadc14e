/* SPDX-License-Identifier: Apache-2.0 */
/* sharing.h - how an administrator lets devices be shared, for all plugins
 *
 * The settings of a kind of device: given whole (KEY.device) or in shares
 * (KEY.shares), and how much one share is. One share is unit_mem bytes and
 * unit_proc processors; a device has as many shares as it has of the scarcer
 * of both, cut to hundredths. A unit of 0 does not count; if both are 0, a
 * device is one share, whatever its size.
 */
#ifndef AQ_PLUGINS_COMMON_SHARING_H
#define AQ_PLUGINS_COMMON_SHARING_H

#include "aliquot/accelerator.h"
#include "conf/conf.h"

#define SHARING_ONE INT64_C(1000000)
#define SHARING_PROCESSORS_MIN 4 /* what programs are told at least */

struct sharing {
    char *mode; /* "discrete" or "fractional" */
    int64_t unit_mem, unit_proc;
    int64_t quantum_micro;
    int64_t reserved_memory;    /* of each part, for the driver's own use */
    struct conf_list masked;    /* ids of devices that are not offered */
    struct conf_tables devices; /* struct sharing_device: those that differ */
};

/* In ids and masks '*' stands for any text; of several entries that mean a device, the first
 * counts.
 */
struct sharing_device {
    char *id;
    char *mode;            /* NULL = as all others */
    int64_t quantum_micro; /* 0 = as all others */
};

/* Rows of a table of items for a 'struct sharing' member; defaults are of the
 * plugin.
 */
/* clang-format off */
#define SHARING_ITEMS(type, member, mode_initial, unit_mem_initial, unit_proc_initial)             \
    { "", "allocation_mode", CONF_STR, offsetof(type, member.mode), mode_initial, 0, 0, 0,         \
      "discrete: whole devices; fractional: shares" },                                             \
    { "", "unit_mem", CONF_SIZE, offsetof(type, member.unit_mem), unit_mem_initial, 0, 0, 0,       \
      "Memory of one share; 0 does not count" },                                                   \
    { "", "unit_proc", CONF_INT, offsetof(type, member.unit_proc), unit_proc_initial, 0, 100000, 0, \
      "Processors of one share; 0 does not count" },                                               \
    { "", "quantum_size", CONF_MICRO, offsetof(type, member.quantum_micro), "0.1", 10000,          \
      SHARING_ONE, 0, "The smallest part of a share" },                                            \
    { "", "reserved_memory", CONF_SIZE, offsetof(type, member.reserved_memory), "64m", 0, 0, 0,    \
      "Memory of each part that the driver itself takes" },                                        \
    { "", "device_mask", CONF_LIST, offsetof(type, member.masked), NULL, 0, 0, 0,                  \
      "Devices that are not offered" },                                                            \
    { "", "device", CONF_TABLES, offsetof(type, member.devices), NULL, 0, 0, 0,                    \
      "Devices with an allocation_mode or a quantum_size of their own", &sharing_device_table }
/* clang-format on */

extern const struct conf_table sharing_device_table;

/* After loading: -EINVAL with the key as field, as in "device[0].quantum_size". */
int sharing_check(const struct sharing *sharing, struct aq_error *err);

bool sharing_is_masked(const struct sharing *sharing, const char *id);
/* Is the device given in shares? */
bool sharing_is_fractional(const struct sharing *sharing, const char *id);
/* The smallest part of it (10^-6); 0 = the one of the slot, sharing->quantum_micro. */
uint32_t sharing_own_quantum(const struct sharing *sharing, const char *id);

/* How many shares (10^-6) a device has, in whole hundredths. */
int64_t sharing_count(const struct sharing *sharing, uint64_t memory_bytes, uint32_t processors);

/* What 'amount' (10^-6) shares of such a device are: a unit each, or the part of
 * the device where the unit does not count.
 */
uint64_t sharing_memory(const struct sharing *sharing, uint64_t device_bytes, uint32_t processors,
                        int64_t amount);
uint32_t sharing_processors(const struct sharing *sharing, uint64_t device_bytes,
                            uint32_t processors, int64_t amount);

/* The part of the device's time, in millionths, that goes with them: that of a share's processors,
 * or in proportion to how many shares the device has. At least 1.
 */
uint32_t sharing_time(const struct sharing *sharing, uint64_t device_bytes, uint32_t processors,
                      int64_t amount);

/* ---- lines of resource.txt and variables for a session's parts ---- */

struct sharing_part {
    const char *device;
    uint64_t memory_bytes;
    uint32_t processors, time; /* time 0 = not a slice */
    bool is_fractional;
};

/* KEY_GLOBAL_DEVICE_IDS and, if there are shares, KEY_MEMORY_LIMITS,
 * KEY_PROCESSOR_LIMITS and KEY_RESERVED_MEMORY; KEY_RESOURCE_VIRTUALIZED.
 */
void sharing_write_resource(const struct sharing *sharing, const char *key,
                            const struct sharing_part *parts, size_t count,
                            const struct aq_accelerator_out *out);

#endif
