/* SPDX-License-Identifier: Apache-2.0 */
/* sharing.c - devices in shares: how many of them, how large, and resource.txt for the container */
#include "common/sharing.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

__extension__ typedef unsigned __int128 wide;

static const struct conf_item device_items[] = {
    { "", "id", CONF_STR, offsetof(struct sharing_device, id), NULL, 0, 0, CONF_REQUIRED,
      "Id of the device" },
    { "", "allocation_mode", CONF_STR, offsetof(struct sharing_device, mode), NULL, 0, 0, 0,
      "discrete or fractional" },
    { "", "quantum_size", CONF_MICRO, offsetof(struct sharing_device, quantum_micro), NULL, 10000,
      SHARING_ONE, 0, "The smallest part of a share of it" },
    CONF_TABLE_END,
};
const struct conf_table sharing_device_table = { sizeof(struct sharing_device), device_items, false,
                                                 false };

/* Fill 'err' for a key of the i-th [[device]], or of the top level (SIZE_MAX). */
static int sharing_refuse(size_t i, const char *key, const char *why, struct aq_error *err)
{
    char field[64];

    if (i == SIZE_MAX)
        (void)snprintf(field, sizeof(field), "%s", key);
    else
        (void)snprintf(field, sizeof(field), "device[%zu].%s", i, key);
    return aq_fail_field(err, EINVAL, field, "%s: %s", field, why);
}

static int sharing_check_mode(size_t i, const char *mode, struct aq_error *err)
{
    char why[120];

    if (strcmp(mode, "discrete") == 0 || strcmp(mode, "fractional") == 0)
        return 0;
    (void)snprintf(why, sizeof(why), "'%.40s' is neither discrete nor fractional%s", mode,
                   strcmp(mode, "mig") == 0 ? "; the driver's mode decides on slices" : "");
    return sharing_refuse(i, "allocation_mode", why, err);
}

static int sharing_check_quantum(size_t i, int64_t quantum_micro, struct aq_error *err)
{
    return quantum_micro % 10000
               ? sharing_refuse(i, "quantum_size", "must be in whole hundredths, as 0.25", err)
               : 0;
}

static const char *sharing_mode_of(const struct sharing *sharing,
                                   const struct sharing_device *device)
{
    return device && device->mode ? device->mode : sharing->mode;
}

static int sharing_check_device(const struct sharing *sharing, size_t i, struct aq_error *err)
{
    const struct sharing_device *devices = sharing->devices.items, *device = &devices[i];
    int r = sharing_check_mode(i, sharing_mode_of(sharing, device), err);

    if (r == 0)
        r = sharing_check_quantum(i, device->quantum_micro, err);
    if (r < 0)
        return r;
    for (size_t k = 0; k < i; k++)
        if (strcmp(devices[k].id, device->id) == 0)
            return sharing_refuse(i, "id", "an entry before has the same id; make them one", err);
    if (!device->mode && !device->quantum_micro)
        return sharing_refuse(i, "id",
                              "the entry changes nothing; give it an allocation_mode or a"
                              " quantum_size",
                              err);
    if (device->quantum_micro && strcmp(sharing_mode_of(sharing, device), "discrete") == 0)
        return sharing_refuse(i, "quantum_size",
                              "the device is given whole; it goes with allocation_mode ="
                              " \"fractional\"",
                              err);
    return 0;
}

int sharing_check(const struct sharing *sharing, struct aq_error *err)
{
    int r = sharing_check_mode(SIZE_MAX, sharing->mode, err);

    if (r == 0)
        r = sharing_check_quantum(SIZE_MAX, sharing->quantum_micro, err);
    for (size_t i = 0; r == 0 && i < sharing->devices.count; i++)
        r = sharing_check_device(sharing, i, err);
    return r;
}

bool sharing_is_masked(const struct sharing *sharing, const char *id)
{
    for (size_t i = 0; i < sharing->masked.count; i++)
        if (fnmatch(sharing->masked.items[i], id, 0) == 0)
            return true;
    return false;
}

/* The entry that means the device, or NULL. */
static const struct sharing_device *sharing_find_device(const struct sharing *sharing,
                                                        const char *id)
{
    const struct sharing_device *devices = sharing->devices.items;

    for (size_t i = 0; i < sharing->devices.count; i++)
        if (fnmatch(devices[i].id, id, 0) == 0)
            return &devices[i];
    return NULL;
}

bool sharing_is_fractional(const struct sharing *sharing, const char *id)
{
    return strcmp(sharing_mode_of(sharing, sharing_find_device(sharing, id)), "fractional") == 0;
}

uint32_t sharing_own_quantum(const struct sharing *sharing, const char *id)
{
    const struct sharing_device *device = sharing_find_device(sharing, id);

    return device ? (uint32_t)device->quantum_micro : 0;
}

/* total/unit in hundredths, cut. */
static int64_t sharing_hundredths(uint64_t total, int64_t unit)
{
    wide count = (wide)total * 100 / (wide)unit;

    return count > INT64_MAX / 10000 ? INT64_MAX / 10000 : (int64_t)count;
}

int64_t sharing_count(const struct sharing *sharing, uint64_t memory_bytes, uint32_t processors)
{
    int64_t count = INT64_MAX;

    if (sharing->unit_mem > 0)
        count = sharing_hundredths(memory_bytes, sharing->unit_mem);
    if (sharing->unit_proc > 0 && sharing_hundredths(processors, sharing->unit_proc) < count)
        count = sharing_hundredths(processors, sharing->unit_proc);
    return count == INT64_MAX ? SHARING_ONE : count * (SHARING_ONE / 100);
}

static uint64_t sharing_part_of(uint64_t whole, int64_t amount)
{
    return (uint64_t)((wide)whole * (wide)amount / SHARING_ONE);
}

uint64_t sharing_memory(const struct sharing *sharing, uint64_t device_bytes, uint32_t processors,
                        int64_t amount)
{
    int64_t shares;

    if (sharing->unit_mem > 0)
        return sharing_part_of((uint64_t)sharing->unit_mem, amount);
    /* in proportion to how many shares the device has */
    shares = sharing_count(sharing, device_bytes, processors);
    return shares > 0 ? (uint64_t)((wide)device_bytes * (wide)amount / (wide)shares) : 0;
}

uint32_t sharing_processors(const struct sharing *sharing, uint64_t device_bytes,
                            uint32_t processors, int64_t amount)
{
    int64_t shares = sharing_count(sharing, device_bytes, processors);
    uint64_t count = 0;

    if (sharing->unit_proc > 0)
        count = sharing_part_of((uint64_t)sharing->unit_proc, amount);
    else if (shares > 0)
        count = (uint64_t)((wide)processors * (wide)amount / (wide)shares);
    return count < SHARING_PROCESSORS_MIN ? SHARING_PROCESSORS_MIN : (uint32_t)count;
}

uint32_t sharing_time(const struct sharing *sharing, uint64_t device_bytes, uint32_t processors,
                      int64_t amount)
{
    int64_t shares = sharing_count(sharing, device_bytes, processors);
    wide time = 0;

    if (sharing->unit_proc > 0 && processors > 0)
        time = (wide)sharing->unit_proc * (wide)amount / processors;
    else if (shares > 0)
        time = (wide)amount * SHARING_ONE / (wide)shares;
    return time < 1 ? 1 : time > SHARING_ONE ? (uint32_t)SHARING_ONE : (uint32_t)time;
}

/* ---- resource.txt ---- */

static void sharing_put(const struct aq_accelerator_out *out, const char *key, const char *suffix,
                        const char *value)
{
    char name[64];
    size_t i = 0;

    for (; *key && i < 20; key++)
        name[i++] = *key == '-' ? '_' : (char)toupper((unsigned char)*key);
    name[i] = '\0';
    strncat(name, suffix, sizeof(name) - i - 1);
    out->need(out->data, &(struct aq_accelerator_need){
                             .kind = AQ_ACCELERATOR_RESOURCE, .name = name, .value = value });
}

void sharing_write_resource(const struct sharing *sharing, const char *key,
                            const struct sharing_part *parts, size_t count,
                            const struct aq_accelerator_out *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf ids = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf memory = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf processors = STRBUF_INIT;
    char reserved[24];

    for (size_t i = 0; i < count; i++) {
        strbuf_addf(&ids, "%s%zu:%s", i ? "," : "", i, parts[i].device);
        if (!parts[i].is_fractional)
            continue;
        strbuf_addf(&memory, "%s%s:%" PRIu64, memory.len ? "," : "", parts[i].device,
                    parts[i].memory_bytes);
        strbuf_addf(&processors, "%s%s:%" PRIu32, processors.len ? "," : "", parts[i].device,
                    parts[i].processors);
    }
    sharing_put(out, key, "_GLOBAL_DEVICE_IDS", ids.data);
    sharing_put(out, key, "_RESOURCE_VIRTUALIZED", memory.len ? "1" : "0");
    if (!memory.len)
        return;
    sharing_put(out, key, "_MEMORY_LIMITS", memory.data);
    sharing_put(out, key, "_PROCESSOR_LIMITS", processors.data);
    (void)snprintf(reserved, sizeof(reserved), "%" PRId64, sharing->reserved_memory);
    sharing_put(out, key, "_RESERVED_MEMORY", reserved);
}
