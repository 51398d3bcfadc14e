#include "agent/split_private.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 64
#define CORE_MAX 4095

/* ---- settings ---- */

/* A number at *text, which is moved behind it; -1 if there is none. */
static long take_number(const char **text)
{
    char *end;
    long number = **text >= '0' && **text <= '9' ? strtol(*text, &end, 10) : -1;

    if (number >= 0)
        *text = end;
    return number;
}

static int read_part(const char *text, struct split *split, struct aq_error *err)
{
    const char *at = text ? text : "";
    long part = take_number(&at), parts = *at == '/' ? (at++, take_number(&at)) : -1;

    if (*at || part < 1 || part > parts || parts > PARTS_MAX)
        return aq_fail_field(err, EINVAL, "resource.part",
                             "resource.part '%s': must be K/N, the K-th of N agents, N up to %d; "
                             "allocation-mode auto-split needs it", text ? text : "", PARTS_MAX);
    split->part = part - 1;
    split->parts = parts;
    return 0;
}

static bool read_range(const char *text, long *first, long *last)
{
    *first = take_number(&text);
    *last = *text == '-' ? (text++, take_number(&text)) : *first;
    return *text == '\0' && *first >= 0 && *first <= *last && *last <= CORE_MAX;
}

bool split_is_device(const char *text)
{
    const char *slash = strchr(text, '/');

    return slash && slash != text && slash[1] && slash[1] != '=';
}

static int check_lists(const struct split *split, struct aq_error *err)
{
    long first, last;

    for (size_t i = 0; i < split->cores.count; i++)
        if (!read_range(split->cores.items[i], &first, &last))
            return aq_fail_field(err, EINVAL, "resource.cores",
                                 "resource.cores '%s': must be a core's number or a range, as 0-3",
                                 split->cores.items[i]);
    for (size_t i = 0; i < split->devices.count; i++) {
        const char *text = split->devices.items[i];

        if (!split_is_device(text))
            return aq_fail_field(err, EINVAL, "resource.devices",
                                 "resource.devices '%s': must be KIND/ID or SLOT/ID, as cuda/GPU-1, "
                                 "cuda/* or cuda.shares/GPU-1=0.5", text);
    }
    return split_check_reserved(split, err);
}

int split_read(const struct settings *settings, struct split *ret, struct aq_error *err)
{
    static const char *const names[] = { "exclusive", "shared", "auto-split" };
    struct split split = { .part = 0, .parts = 1, .cores = settings->split_cores,
                           .devices = settings->split_devices,
                           .reserved = settings->split_reserved };
    size_t mode = 0;
    int r = 0;

    while (mode < AQ_COUNT(names) && strcmp(names[mode], settings->split_mode) != 0)
        mode++;
    if (mode == AQ_COUNT(names))
        return aq_fail_field(err, EINVAL, "resource.allocation-mode",
                             "resource.allocation-mode '%s' is none of exclusive, shared, auto-split",
                             settings->split_mode);
    split.mode = (enum split_mode)mode;
    if (split.mode == SPLIT_AUTO)
        r = read_part(settings->split_part, &split, err);
    else if (settings->split_part)
        r = aq_fail_field(err, EINVAL, "resource.part",
                          "resource.part is for allocation-mode auto-split only");
    if (r == 0)
        r = check_lists(&split, err);
    if (r == 0)
        *ret = split;
    return r;
}

bool split_has_core(const struct split *split, int core)
{
    for (size_t i = 0; i < split->cores.count; i++) {
        long first, last;

        if (read_range(split->cores.items[i], &first, &last) && core >= first && core <= last)
            return true;
    }
    return split->cores.count == 0;
}

/* ---- chosen devices ---- */

bool split_is_meant(const char *text, const struct alloc_device *device)
{
    const char *slash = strchr(text, '/'), *amount = strchr(slash, '=');
    size_t len = (size_t)(slash - text), name_len = strlen(device->slot_name);
    AQ_CLEANUP(aq_freep) char *pattern
        = strndup(slash + 1, amount ? (size_t)(amount - slash - 1) : strlen(slash + 1));

    return pattern && strncmp(device->slot_name, text, AQ_MIN(len, name_len)) == 0
           && (len == name_len || len == slot_name_device_len(device->slot_name))
           && fnmatch(pattern, device->id, 0) == 0;
}

/* The smallest part of the device; 0 = it is given whole, or in bytes. */
static int64_t quantum_of(const struct alloc_slot *slot, const struct alloc_device *device)
{
    return device->quantum ? device->quantum : slot->quantum;
}

static int set_amount(const char *text, const struct alloc_slot *slot, struct alloc_device *device,
                      struct aq_error *err)
{
    const char *amount = strchr(strchr(text, '/'), '=');
    int64_t wanted, quantum = quantum_of(slot, device);

    if (!amount)
        return 0;
    if (slot_amount_parse(amount + 1, strlen(amount + 1), slot->type, false, slot->name, &wanted,
                          NULL) < 0
        || wanted <= 0 || wanted > device->capacity
        || wanted % (quantum ? quantum : 1) || slot->type == SLOT_UNIQUE
        || (slot->type == SLOT_COUNT && !quantum && wanted % AMOUNT_ONE))
        return aq_fail_field(err, EINVAL, "resource.devices",
                             "resource.devices '%s': device '%s' cannot be had in that amount; "
                             "give a part of it that its quantum divides", text, device->id);
    device->capacity = wanted;
    return 0;
}

static int choose(const struct split *split, const struct alloc_slot *slot,
                  struct alloc_device *device, struct aq_error *err)
{
    if (split->devices.count == 0 || !strchr(device->slot_name, '.'))
        return 0;
    for (size_t i = 0; i < split->devices.count; i++)
        if (split_is_meant(split->devices.items[i], device))
            return set_amount(split->devices.items[i], slot, device, err);
    device->capacity = 0;
    return 0;
}

/* ---- equal parts ---- */

/* How many of 'count' are ours: the first agents get one more. */
static int64_t ours_of(const struct split *split, int64_t count)
{
    return count / split->parts + (split->part < count % split->parts);
}

/* The first of them. */
static int64_t first_of(const struct split *split, int64_t count)
{
    return split->part * (count / split->parts) + AQ_MIN(split->part, count % split->parts);
}

static void divide(const struct split *split, const struct alloc_slot *slot, int64_t index,
                   int64_t count, int64_t align, struct alloc_device *device)
{
    int64_t first = first_of(split, count);

    if (slot->type == SLOT_UNIFIED)
        return;
    if (slot->type == SLOT_BYTES) {
        device->capacity /= split->parts;
        device->capacity -= device->capacity > align ? device->capacity % align : 0;
    } else if (slot->quantum) {
        int64_t quantum = quantum_of(slot, device);

        device->capacity = ours_of(split, device->capacity / quantum) * quantum;
    } else if (index < first || index >= first + ours_of(split, count)) {
        device->capacity = 0;
    }
}

static void divide_slot(const struct split *split, const struct alloc_slot *slot, int64_t align,
                        struct alloc_device *devices, size_t count)
{
    int64_t all = 0, index = 0;

    for (size_t i = 0; i < count; i++)
        all += strcmp(devices[i].slot_name, slot->name) == 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(devices[i].slot_name, slot->name) == 0)
            divide(split, slot, index++, all, align, &devices[i]);
}

int split_apply(const struct split *split, const struct alloc_slot *slots, size_t slot_count,
                int64_t align, struct alloc_device *devices, size_t device_count,
                struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < slot_count; i++) {
        for (size_t k = 0; r == 0 && k < device_count; k++)
            if (strcmp(devices[k].slot_name, slots[i].name) == 0)
                r = choose(split, &slots[i], &devices[k], err);
        if (r == 0 && split->parts > 1)
            divide_slot(split, &slots[i], align, devices, device_count);
    }
    return r;
}
