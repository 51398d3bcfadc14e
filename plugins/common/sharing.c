#include "common/sharing.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

__extension__ typedef unsigned __int128 wide;

static const struct conf_item device_items[] = {
    { "", "id", CONF_STR, offsetof(struct sharing_device, id), NULL, 0, 0, CONF_REQUIRED,
      "Id of the device" },
    { "", "allocation_mode", CONF_STR, offsetof(struct sharing_device, mode), NULL, 0, 0,
      CONF_REQUIRED, "discrete or fractional" },
    CONF_TABLE_END,
};
const struct conf_table sharing_device_table = { sizeof(struct sharing_device), device_items, false,
                                                 false };

static int check_mode(const char *mode, struct aq_error *err)
{
    if (strcmp(mode, "discrete") == 0 || strcmp(mode, "fractional") == 0)
        return 0;
    return aq_fail_field(err, EINVAL, "allocation_mode",
                         "allocation_mode: '%.40s' is neither discrete nor fractional", mode);
}

int sharing_check(const struct sharing *sharing, struct aq_error *err)
{
    const struct sharing_device *devices = sharing->devices.items;
    int r = check_mode(sharing->mode, err);

    for (size_t i = 0; r == 0 && i < sharing->devices.count; i++)
        r = check_mode(devices[i].mode, err);
    if (r == 0 && sharing->quantum_micro % 10000)
        r = aq_fail_field(err, EINVAL, "quantum_size", "quantum_size: must be in whole hundredths");
    return r;
}

bool sharing_is_masked(const struct sharing *sharing, const char *id)
{
    for (size_t i = 0; i < sharing->masked.count; i++)
        if (strcmp(sharing->masked.items[i], id) == 0)
            return true;
    return false;
}

bool sharing_is_fractional(const struct sharing *sharing, const char *id)
{
    const struct sharing_device *devices = sharing->devices.items;

    for (size_t i = 0; i < sharing->devices.count; i++)
        if (strcmp(devices[i].id, id) == 0)
            return strcmp(devices[i].mode, "fractional") == 0;
    return strcmp(sharing->mode, "fractional") == 0;
}

/* total/unit in hundredths, cut. */
static int64_t hundredths(uint64_t total, int64_t unit)
{
    wide count = (wide)total * 100 / (wide)unit;

    return count > INT64_MAX / 10000 ? INT64_MAX / 10000 : (int64_t)count;
}

int64_t sharing_count(const struct sharing *sharing, uint64_t memory_bytes, uint32_t processors)
{
    int64_t count = INT64_MAX;

    if (sharing->unit_mem > 0)
        count = hundredths(memory_bytes, sharing->unit_mem);
    if (sharing->unit_proc > 0 && hundredths(processors, sharing->unit_proc) < count)
        count = hundredths(processors, sharing->unit_proc);
    return count == INT64_MAX ? SHARING_ONE : count * (SHARING_ONE / 100);
}

static uint64_t part_of(uint64_t whole, int64_t amount)
{
    return (uint64_t)((wide)whole * (wide)amount / SHARING_ONE);
}

uint64_t sharing_memory(const struct sharing *sharing, uint64_t device_bytes, uint32_t processors,
                        int64_t amount)
{
    int64_t shares;

    if (sharing->unit_mem > 0)
        return part_of((uint64_t)sharing->unit_mem, amount);
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
        count = part_of((uint64_t)sharing->unit_proc, amount);
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

static void put(const struct aq_accelerator_out *out, const char *key, const char *suffix,
                const char *value)
{
    char name[64];
    size_t i = 0;

    for (; *key && i < 20; key++)
        name[i++] = *key == '-' ? '_' : (char)toupper((unsigned char)*key);
    name[i] = '\0';
    strncat(name, suffix, sizeof(name) - i - 1);
    out->need(out->data, &(struct aq_accelerator_need){ .kind = AQ_ACCELERATOR_RESOURCE,
                                                        .name = name, .value = value });
}

int sharing_write_resource(const struct sharing *sharing, const char *key,
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
    if (!strbuf_ok(&ids) || !strbuf_ok(&memory) || !strbuf_ok(&processors))
        return -ENOMEM;
    put(out, key, "_GLOBAL_DEVICE_IDS", ids.data);
    put(out, key, "_RESOURCE_VIRTUALIZED", memory.len ? "1" : "0");
    if (!memory.len)
        return 0;
    put(out, key, "_MEMORY_LIMITS", memory.data);
    put(out, key, "_PROCESSOR_LIMITS", processors.data);
    (void)snprintf(reserved, sizeof(reserved), "%" PRId64, sharing->reserved_memory);
    put(out, key, "_RESERVED_MEMORY", reserved);
    return 0;
}
