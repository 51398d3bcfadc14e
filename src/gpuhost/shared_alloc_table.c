/* SPDX-License-Identifier: Apache-2.0 */
/* shared_alloc_table.c - the agent's table of memory that several processes hold, and its file */
#include "gpuhost/shared_alloc_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"

#define FILE_MAGIC 0x6e6c7161u /* "aqln" */
#define FILE_VERSION 1u
#define GRANULES_MAX (((uint64_t)1 << AQ_GPU_CHARGE_GRANULE_BITS) - 1)

/* As it is in the file, an array of these whose first element is the header. None lies
 * across a page, so each is written at once.
 */
struct shared_alloc_record {
    uint64_t token;                /* 0 = free */
    uint32_t device, charged_slot; /* 0 = the container */
    uint64_t granules;
    uint32_t count, reserved; /* of holders */
    uint8_t holders[AQ_GPU_SLOTS_MAX / 8];
    uint8_t unused[96];
};
static_assert(sizeof(struct shared_alloc_record) == 256, "goes to a file");

struct shared_alloc_file_header {
    uint32_t magic, version, size, reserved;
};

struct gpu_shared_allocs {
    int fd;       /* -1 = not kept */
    uint32_t end; /* all records from here on are free */
    struct shared_alloc_record records[AQ_GPU_LOANS_MAX];
};

int gpu_shared_allocs_new(struct gpu_shared_allocs **ret, struct aq_error *err)
{
    /* pages of its own: most tables stay empty */
    struct gpu_shared_allocs *table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (table == MAP_FAILED)
        return aq_fail_errno(err, "mmap for the shared allocations of a GPU slice");
    table->fd = -1;
    *ret = table;
    return 0;
}

void gpu_shared_allocs_free(struct gpu_shared_allocs *table)
{
    if (!table)
        return;
    aq_closep(&table->fd);
    (void)munmap(table, sizeof(*table));
}

/* ---- the file ---- */

static void shared_alloc_table_write(const struct gpu_shared_allocs *table,
                                     const struct shared_alloc_record *record)
{
    off_t at = (off_t)sizeof(*record) * (1 + (record - table->records));

    /* a full disk costs exactness after the next agent's start, no more */
    if (table->fd >= 0)
        (void)!pwrite(table->fd, record, sizeof(*record), at);
}

static bool shared_alloc_table_holds(const struct shared_alloc_record *record, uint32_t slot)
{
    return record->holders[slot / 8] >> (slot % 8) & 1;
}

static uint32_t shared_alloc_table_count_holders(const struct shared_alloc_record *record)
{
    uint32_t count = 0;

    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++)
        count += shared_alloc_table_holds(record, slot);
    return count;
}

static bool shared_alloc_table_is_valid(const struct shared_alloc_record *record)
{
    return record->token && record->device < AQ_GPU_DEVICES_MAX
           && record->charged_slot < AQ_GPU_SLOTS_MAX && record->granules
           && record->granules <= GRANULES_MAX && record->count
           && record->count == shared_alloc_table_count_holders(record)
           && (!record->charged_slot || shared_alloc_table_holds(record, record->charged_slot));
}

static void shared_alloc_table_read(struct gpu_shared_allocs *table)
{
    struct shared_alloc_file_header header = { 0 };

    if (pread(table->fd, &header, sizeof(header), 0) != sizeof(header) || header.magic != FILE_MAGIC
        || header.version != FILE_VERSION || header.size != sizeof(struct shared_alloc_record))
        return;
    for (uint32_t i = 0; i < AQ_GPU_LOANS_MAX; i++) {
        struct shared_alloc_record *record = &table->records[i];

        if (pread(table->fd, record, sizeof(*record), (off_t)sizeof(*record) * (1 + (off_t)i))
                != sizeof(*record)
            || !shared_alloc_table_is_valid(record))
            *record = (struct shared_alloc_record){ 0 };
        else
            table->end = i + 1;
    }
}

int gpu_shared_allocs_open_file(struct gpu_shared_allocs *table, const char *path,
                                struct aq_error *err)
{
    const struct shared_alloc_file_header header = { FILE_MAGIC, FILE_VERSION,
                                                     sizeof(struct shared_alloc_record), 0 };

    aq_closep(&table->fd);
    table->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (table->fd < 0)
        return aq_fail_errno(err, "open '%s'", path);
    shared_alloc_table_read(table);
    if (pwrite(table->fd, &header, sizeof(header), 0) != sizeof(header))
        return aq_fail_errno(err, "write '%s'", path);
    for (uint32_t i = 0; i < table->end; i++)
        shared_alloc_table_write(table, &table->records[i]);
    return 0;
}

/* ---- the records ---- */

static uint32_t shared_alloc_table_index_of(const struct gpu_shared_allocs *table, uint64_t token)
{
    uint32_t i = 0;

    while (i < table->end && (table->records[i].token != token || !token))
        i++;
    return i;
}

bool gpu_shared_allocs_has(const struct gpu_shared_allocs *table, uint64_t token)
{
    return shared_alloc_table_index_of(table, token) < table->end;
}

static struct shared_alloc_record *shared_alloc_table_find(struct gpu_shared_allocs *table,
                                                           uint64_t token)
{
    uint32_t index = shared_alloc_table_index_of(table, token);

    return index < table->end ? &table->records[index] : NULL;
}

static struct shared_alloc_record *shared_alloc_table_find_free(struct gpu_shared_allocs *table)
{
    for (uint32_t i = 0; i < AQ_GPU_LOANS_MAX; i++)
        if (!table->records[i].token) {
            table->end = AQ_MAX(table->end, i + 1);
            return &table->records[i];
        }
    return NULL;
}

static void shared_alloc_table_add_holder(struct gpu_shared_allocs *table,
                                          struct shared_alloc_record *record, uint32_t slot)
{
    if (shared_alloc_table_holds(record, slot))
        return;
    record->holders[slot / 8] |= (uint8_t)(1u << (slot % 8));
    record->count++;
    shared_alloc_table_write(table, record);
}

/* The last one takes the record with it. */
static void shared_alloc_table_remove_holder(struct gpu_shared_allocs *table,
                                             struct shared_alloc_record *record, uint32_t slot)
{
    record->holders[slot / 8] &= (uint8_t) ~(1u << (slot % 8));
    if (record->charged_slot == slot)
        record->charged_slot = 0;
    if (--record->count == 0)
        *record = (struct shared_alloc_record){ 0 };
    shared_alloc_table_write(table, record);
    AQ_FAULT("gpuhost.shared-allocs.left");
}

int gpu_shared_allocs_export(struct gpu_shared_allocs *table, uint32_t slot, uint32_t device,
                             uint64_t token, uint64_t granules)
{
    struct shared_alloc_record *record = shared_alloc_table_find(table, token);

    if (slot == 0 || slot >= AQ_GPU_SLOTS_MAX || device >= AQ_GPU_DEVICES_MAX || !token || !granules
        || granules > GRANULES_MAX)
        return -EINVAL;
    if (record) {
        shared_alloc_table_add_holder(table, record, slot);
        return record->charged_slot == slot ? 0 : -EEXIST;
    }
    if (!(record = shared_alloc_table_find_free(table)))
        return -ENOSPC;
    *record = (struct shared_alloc_record){
        .token = token, .device = device, .charged_slot = slot, .granules = granules
    };
    shared_alloc_table_add_holder(table, record, slot);
    return 0;
}

int gpu_shared_allocs_join(struct gpu_shared_allocs *table, uint32_t slot, uint64_t token,
                           uint32_t *ret_device, uint64_t *ret_granules)
{
    struct shared_alloc_record *record = shared_alloc_table_find(table, token);

    if (!record || slot == 0 || slot >= AQ_GPU_SLOTS_MAX)
        return -ENOENT;
    shared_alloc_table_add_holder(table, record, slot);
    *ret_device = record->device;
    *ret_granules = record->granules;
    return 0;
}

int gpu_shared_allocs_leave(struct gpu_shared_allocs *table, uint32_t slot, uint64_t token)
{
    struct shared_alloc_record *record = shared_alloc_table_find(table, token);

    if (!record || slot >= AQ_GPU_SLOTS_MAX || !shared_alloc_table_holds(record, slot))
        return -ENOENT;
    shared_alloc_table_remove_holder(table, record, slot);
    return 0;
}

bool gpu_shared_allocs_end_process(struct gpu_shared_allocs *table, uint32_t slot)
{
    bool found = false;

    for (uint32_t i = 0; i < table->end; i++)
        if (table->records[i].token && shared_alloc_table_holds(&table->records[i], slot)) {
            shared_alloc_table_remove_holder(table, &table->records[i], slot);
            found = true;
        }
    while (table->end && !table->records[table->end - 1].token)
        table->end--;
    return found;
}

/* ---- sums ---- */

uint64_t gpu_shared_allocs_charged(const struct gpu_shared_allocs *table, uint32_t slot,
                                   uint32_t device)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < table->end; i++)
        if (table->records[i].token && table->records[i].device == device
            && table->records[i].charged_slot == slot)
            sum += table->records[i].granules;
    return sum;
}

uint64_t gpu_shared_allocs_charged_to_container(const struct gpu_shared_allocs *table,
                                                uint32_t device)
{
    return AQ_MIN(gpu_shared_allocs_charged(table, 0, device), GRANULES_MAX);
}

uint64_t gpu_shared_allocs_uncharged(const struct gpu_shared_allocs *table, uint32_t slot,
                                     uint32_t device)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < table->end; i++)
        if (table->records[i].token && table->records[i].device == device
            && table->records[i].charged_slot != slot
            && shared_alloc_table_holds(&table->records[i], slot))
            sum += table->records[i].granules;
    return sum;
}

uint64_t gpu_shared_allocs_overcounted(const struct gpu_shared_allocs *table, uint32_t device)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < table->end; i++)
        if (table->records[i].token && table->records[i].device == device)
            sum += table->records[i].granules * (table->records[i].count - 1);
    return sum;
}
