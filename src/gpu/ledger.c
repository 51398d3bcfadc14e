/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - the table of what this process holds, and its charges */
#include "gpu/ledger.h"

#include <string.h>
#include <sys/mman.h>

#include "gpu/charge.h"
#include "gpu/lock.h"
#include "gpu/region.h"

#define FIRST_CAPACITY 1024 /* entries; a power of two */
#define SMALL_ROUND 512     /* the driver's smallest piece */

/* Open addressing, linear probing, at most half full; mmap instead of malloc,
 * which the program may have replaced by one that uses this library.
 */
struct table {
    struct ledger_entry *entries;
    uint64_t capacity, count;
};

static struct gpu_lock lock;
static struct table table;
static uint64_t small_bytes[AQ_GPU_DEVICES_MAX];
static uint64_t overhead_bytes[AQ_GPU_DEVICES_MAX];

static bool ledger_reserve_granules(uint32_t device, uint64_t granules)
{
    return charge_reserve(gpu_region.usage, gpu_region.slot, device, granules,
                          gpu_region_limit(device));
}

static void ledger_release_granules(uint32_t device, uint64_t granules)
{
    charge_release(gpu_region.usage, gpu_region.slot, device, granules);
}

static void ledger_count_rejection(uint32_t device)
{
    struct aq_gpu_usage_device *shared = &gpu_region.usage->devices[device];

    (void)__atomic_fetch_add(&shared->refused, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->refused_ns, gpu_now_ns(), __ATOMIC_RELAXED);
    gpu_region_renew();
}

static bool ledger_has_device(uint32_t device)
{
    return gpu_region_is_attached() && device < gpu_region.device_count;
}

static uint64_t ledger_round_small(uint64_t bytes)
{
    return (bytes + SMALL_ROUND - 1) & ~(uint64_t)(SMALL_ROUND - 1);
}

/* Replace a charge of 'from' bytes by one of 'to'; false = no room, unchanged. */
static bool ledger_recharge(uint32_t device, uint64_t from, uint64_t to)
{
    uint64_t small = small_bytes[device], less = from < LEDGER_LARGE ? ledger_round_small(from) : 0;
    uint64_t old = charge_granules(small) + (from < LEDGER_LARGE ? 0 : charge_granules(from));
    uint64_t new;

    small = small > less ? small - less : 0;
    small += to < LEDGER_LARGE ? ledger_round_small(to) : 0;
    new = charge_granules(small) + (to < LEDGER_LARGE ? 0 : charge_granules(to));
    if (new > old && !ledger_reserve_granules(device, new - old))
        return false;
    if (new < old)
        ledger_release_granules(device, old - new);
    small_bytes[device] = small;
    return true;
}

bool ledger_reserve(uint32_t device, uint64_t bytes)
{
    bool reserved;

    if (!ledger_has_device(device))
        return false;
    gpu_region_renew(); /* an agent that came back may have granted more, or less */
    gpu_lock_take(&lock);
    reserved = ledger_recharge(device, 0, bytes);
    gpu_lock_give(&lock);
    if (!reserved)
        ledger_count_rejection(device);
    return reserved;
}

void ledger_release(uint32_t device, uint64_t bytes)
{
    if (!ledger_has_device(device))
        return;
    gpu_lock_take(&lock);
    (void)ledger_recharge(device, bytes, 0);
    gpu_lock_give(&lock);
}

bool ledger_resize(uint32_t device, uint64_t from, uint64_t to)
{
    bool resized;

    if (!ledger_has_device(device))
        return false;
    gpu_lock_take(&lock);
    resized = ledger_recharge(device, from, to);
    gpu_lock_give(&lock);
    if (!resized)
        ledger_count_rejection(device);
    return resized;
}

bool ledger_set_overhead(uint32_t device, uint64_t bytes)
{
    uint64_t old, new_granules = charge_granules(bytes);
    bool set = true;

    if (!ledger_has_device(device))
        return false;
    gpu_lock_take(&lock);
    old = charge_granules(overhead_bytes[device]);
    if (new_granules > old)
        set = ledger_reserve_granules(device, new_granules - old);
    else
        ledger_release_granules(device, old - new_granules);
    if (set) {
        overhead_bytes[device] = bytes;
        __atomic_store_n(&gpu_region.usage->slots[gpu_region.slot].devices[device].contexts, bytes,
                         __ATOMIC_RELAXED);
    }
    gpu_lock_give(&lock);
    if (!set)
        ledger_count_rejection(device);
    return set;
}

uint64_t ledger_overhead(uint32_t device)
{
    return overhead_bytes[device];
}

uint64_t ledger_charged(uint32_t device)
{
    return ledger_has_device(device)
               ? charge_of_slot(gpu_region.usage, gpu_region.slot, device) << AQ_GPU_GRANULE_SHIFT
               : 0;
}

static uint64_t ledger_index_of(enum ledger_kind kind, uint64_t key)
{
    return ((key ^ kind) * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & (table.capacity - 1);
}

static struct ledger_entry *ledger_find(enum ledger_kind kind, uint64_t key)
{
    if (!table.count)
        return NULL;
    for (uint64_t i = ledger_index_of(kind, key); table.entries[i].is_used;
         i = (i + 1) & (table.capacity - 1))
        if (table.entries[i].key == key && table.entries[i].kind == kind)
            return &table.entries[i];
    return NULL;
}

static void ledger_insert(const struct ledger_entry *entry)
{
    uint64_t i = ledger_index_of((enum ledger_kind)entry->kind, entry->key);

    while (table.entries[i].is_used)
        i = (i + 1) & (table.capacity - 1);
    table.entries[i] = *entry;
    table.count++;
}

static bool ledger_grow(void)
{
    struct table old = table;
    uint64_t capacity = old.capacity ? old.capacity * 2 : FIRST_CAPACITY;
    void *fresh = mmap(NULL, capacity * sizeof(*old.entries), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (fresh == MAP_FAILED)
        return false;
    table = (struct table){ .entries = fresh, .capacity = capacity };
    for (uint64_t i = 0; i < old.capacity; i++)
        if (old.entries[i].is_used)
            ledger_insert(&old.entries[i]);
    if (old.entries)
        (void)munmap(old.entries, old.capacity * sizeof(*old.entries));
    return true;
}

/* Close the gap, so that probing needs no marks of what was there. */
static void ledger_erase(struct ledger_entry *entry)
{
    uint64_t mask = table.capacity - 1, gap = (uint64_t)(entry - table.entries);

    for (uint64_t i = (gap + 1) & mask; table.entries[i].is_used; i = (i + 1) & mask) {
        uint64_t home = ledger_index_of((enum ledger_kind)table.entries[i].kind,
                                        table.entries[i].key);

        if (((i - home) & mask) >= ((i - gap) & mask)) {
            table.entries[gap] = table.entries[i];
            gap = i;
        }
    }
    table.entries[gap].is_used = 0;
    table.count--;
}

bool ledger_add(enum ledger_kind kind, uint64_t key, uint32_t device, uint64_t bytes, uint64_t link)
{
    const struct ledger_entry entry = { .key = key,
                                        .bytes = bytes,
                                        .link = link,
                                        .refs = 1,
                                        .kind = (uint8_t)kind,
                                        .device = (uint8_t)device,
                                        .is_used = 1 };
    bool added;

    gpu_lock_take(&lock);
    added = table.count * 2 < table.capacity || ledger_grow();
    if (added)
        ledger_insert(&entry);
    gpu_lock_give(&lock);
    return added;
}

/* Room in the last granule of small allocations, after 'bytes' more or fewer. */
static bool ledger_keeps_granules(uint32_t device, uint64_t bytes, bool more)
{
    uint64_t small = __atomic_load_n(&small_bytes[device], __ATOMIC_RELAXED);
    uint64_t after = more ? small + ledger_round_small(bytes) : small - ledger_round_small(bytes);

    return bytes < LEDGER_LARGE && (more || small >= ledger_round_small(bytes))
           && charge_granules(after) == charge_granules(small);
}

bool ledger_fits_small(uint32_t device, uint64_t bytes)
{
    return ledger_has_device(device) && ledger_keeps_granules(device, bytes, true);
}

bool ledger_add_small(uint64_t key, uint32_t device, uint64_t bytes)
{
    const struct ledger_entry entry = { .key = key,
                                        .bytes = bytes,
                                        .refs = 1,
                                        .kind = LEDGER_MEMORY,
                                        .device = (uint8_t)device,
                                        .is_used = 1 };
    bool added;

    gpu_lock_take(&lock);
    added = table.count * 2 < table.capacity || ledger_grow();
    if (added && ledger_keeps_granules(device, bytes, true))
        small_bytes[device] += ledger_round_small(bytes);
    else
        added = added && ledger_has_device(device) && ledger_recharge(device, 0, bytes);
    if (added)
        ledger_insert(&entry);
    gpu_lock_give(&lock);
    return added;
}

bool ledger_take_plain(uint64_t key, struct ledger_entry *ret, bool *ret_released)
{
    struct ledger_entry *entry;

    *ret_released = false;
    gpu_lock_take(&lock);
    entry = ledger_find(LEDGER_MEMORY, key);
    if (entry) {
        *ret = *entry;
        ledger_erase(entry);
        *ret_released = !ret->link && ledger_keeps_granules(ret->device, ret->bytes, false);
        if (*ret_released)
            small_bytes[ret->device] -= ledger_round_small(ret->bytes);
    }
    gpu_lock_give(&lock);
    return entry != NULL;
}

bool ledger_get(enum ledger_kind kind, uint64_t key, struct ledger_entry *ret)
{
    const struct ledger_entry *entry;

    gpu_lock_take(&lock);
    entry = ledger_find(kind, key);
    if (entry)
        *ret = *entry;
    gpu_lock_give(&lock);
    return entry != NULL;
}

bool ledger_take(enum ledger_kind kind, uint64_t key, struct ledger_entry *ret)
{
    struct ledger_entry *entry;

    gpu_lock_take(&lock);
    entry = ledger_find(kind, key);
    if (entry) {
        *ret = *entry;
        ledger_erase(entry);
    }
    gpu_lock_give(&lock);
    return entry != NULL;
}

bool ledger_set(enum ledger_kind kind, uint64_t key, uint64_t bytes, uint64_t link)
{
    struct ledger_entry *entry;

    gpu_lock_take(&lock);
    entry = ledger_find(kind, key);
    if (entry) {
        entry->bytes = bytes;
        entry->link = link;
    }
    gpu_lock_give(&lock);
    return entry != NULL;
}

bool ledger_follow(enum ledger_kind kind, uint64_t key, uint64_t bytes, uint64_t spare)
{
    struct ledger_entry *entry;
    bool followed = false;

    gpu_lock_take(&lock);
    entry = ledger_find(kind, key);
    if (entry && ledger_has_device(entry->device)) {
        followed = ledger_recharge(entry->device, entry->bytes + spare, bytes);
        if (followed)
            entry->bytes = bytes;
        else
            (void)ledger_recharge(entry->device, spare, 0);
    }
    gpu_lock_give(&lock);
    return followed;
}

bool ledger_ref(enum ledger_kind kind, uint64_t key)
{
    struct ledger_entry *entry;

    gpu_lock_take(&lock);
    entry = ledger_find(kind, key);
    if (entry)
        entry->refs++;
    gpu_lock_give(&lock);
    return entry != NULL;
}

bool ledger_unref(enum ledger_kind kind, uint64_t key, struct ledger_entry *ret)
{
    struct ledger_entry *entry;
    bool last;

    gpu_lock_take(&lock);
    entry = ledger_find(kind, key);
    last = entry && --entry->refs == 0;
    if (last) {
        *ret = *entry;
        ledger_erase(entry);
    }
    gpu_lock_give(&lock);
    return last;
}

bool ledger_find_range(enum ledger_kind kind, uint64_t address, struct ledger_entry *ret)
{
    bool found = false;

    gpu_lock_take(&lock);
    for (uint64_t i = 0; i < table.capacity && !found; i++) {
        const struct ledger_entry *entry = &table.entries[i];

        found = entry->is_used && entry->kind == kind && address >= entry->key
                && address - entry->key < entry->bytes;
        if (found)
            *ret = *entry;
    }
    gpu_lock_give(&lock);
    return found;
}

void ledger_each(enum ledger_kind kind, void (*visit)(const struct ledger_entry *entry, void *data),
                 void *data)
{
    gpu_lock_take(&lock);
    for (uint64_t i = 0; i < table.capacity; i++)
        if (table.entries[i].is_used && table.entries[i].kind == kind)
            visit(&table.entries[i], data);
    gpu_lock_give(&lock);
}

void ledger_after_fork(void)
{
    if (table.entries)
        (void)munmap(table.entries, table.capacity * sizeof(*table.entries));
    table = (struct table){ 0 };
    memset(small_bytes, 0, sizeof(small_bytes));
    memset(overhead_bytes, 0, sizeof(overhead_bytes));
    lock.taken = 0;
}
