/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - addresses, physical memory, plain allocations, copies */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda.h"

#define CLASSES 41
#define PITCH 512

struct allocation {
    CUdeviceptr address;
    uint64_t bytes, physical; /* physical 0 = nothing is charged here */
    CUdevice device;
    int shared; /* its number + 1; 0 = is not (ipc.c) */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUdeviceptr space, space_end;
static struct {
    CUdeviceptr *list;
    size_t count, capacity;
} spare[CLASSES];
static struct allocation *table; /* open addressing by address */
static size_t capacity, count;
static uint64_t small_bytes[SIM_DEVICES_MAX];

static int memory_class_of(uint64_t bytes)
{
    int class = 9;

    while (class < CLASSES - 1 && (uint64_t)1 << class < bytes)
        class ++;
    return class;
}

CUdeviceptr sim_address_take(uint64_t bytes)
{
    int class = memory_class_of(bytes);
    CUdeviceptr address = 0;

    (void)pthread_mutex_lock(&lock);
    if (!space) {
        void *mapped = mmap(NULL, SIM_ADDRESS_SPACE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        space = mapped == MAP_FAILED ? 0 : (CUdeviceptr)(uintptr_t)mapped;
        space = (space + SIM_GRANULE) & ~(SIM_GRANULE - 1);
        space_end = (CUdeviceptr)(uintptr_t)mapped + SIM_ADDRESS_SPACE;
    }
    if (spare[class].count) {
        address = spare[class].list[--spare[class].count];
    } else if (space + ((uint64_t)1 << class) <= space_end) {
        uint64_t align = class >= 21 ? SIM_GRANULE : 512;

        space = (space + align - 1) & ~(align - 1);
        address = space;
        space += (uint64_t)1 << class;
    }
    (void)pthread_mutex_unlock(&lock);
    return address;
}

void sim_address_give(CUdeviceptr address, uint64_t bytes)
{
    int class = memory_class_of(bytes);

    (void)pthread_mutex_lock(&lock);
    if (spare[class].count == spare[class].capacity) {
        size_t more = spare[class].capacity ? spare[class].capacity * 2 : 64;
        CUdeviceptr *list = realloc(spare[class].list, more * sizeof(*list));

        if (list) {
            spare[class].list = list;
            spare[class].capacity = more;
        }
    }
    if (spare[class].count < spare[class].capacity)
        spare[class].list[spare[class].count++] = address;
    (void)pthread_mutex_unlock(&lock);
}

static uint64_t memory_whole_granules(uint64_t bytes)
{
    return (bytes + SIM_GRANULE - 1) & ~(SIM_GRANULE - 1);
}

static uint64_t memory_packed(uint64_t bytes)
{
    return (bytes + 511) & ~(uint64_t)511;
}

/* Small pieces share granules. The card is asked when a granule begins or ends. */
bool sim_physical_take(CUdevice device, uint64_t bytes)
{
    uint64_t before, after;
    bool taken = true;

    if (bytes >= SIM_LARGE)
        return memory_whole_granules(bytes) >= bytes
               && sim_memory_take((uint32_t)device, memory_whole_granules(bytes));
    (void)pthread_mutex_lock(&lock);
    before = memory_whole_granules(small_bytes[device]);
    after = memory_whole_granules(small_bytes[device] + memory_packed(bytes));
    if (after > before || sim_card()->faults.alloc_every)
        taken = sim_memory_take((uint32_t)device, after - before);
    if (taken)
        small_bytes[device] += memory_packed(bytes);
    (void)pthread_mutex_unlock(&lock);
    return taken;
}

void sim_physical_give(CUdevice device, uint64_t bytes)
{
    uint64_t before, after;

    if (bytes >= SIM_LARGE) {
        sim_memory_give((uint32_t)device, memory_whole_granules(bytes));
        return;
    }
    (void)pthread_mutex_lock(&lock);
    before = memory_whole_granules(small_bytes[device]);
    small_bytes[device] -= memory_packed(bytes) < small_bytes[device] ? memory_packed(bytes)
                                                                      : small_bytes[device];
    after = memory_whole_granules(small_bytes[device]);
    if (before > after)
        sim_memory_give((uint32_t)device, before - after);
    (void)pthread_mutex_unlock(&lock);
}

static size_t memory_index_of(CUdeviceptr address)
{
    return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (capacity - 1);
}

static void memory_insert(struct allocation one)
{
    size_t i = memory_index_of(one.address);

    while (table[i].address)
        i = (i + 1) & (capacity - 1);
    table[i] = one;
    count++;
}

static bool memory_enter(struct allocation one)
{
    (void)pthread_mutex_lock(&lock);
    if (count * 2 >= capacity) {
        struct allocation *old = table;
        size_t old_capacity = capacity, more = capacity ? capacity * 2 : 1024;
        struct allocation *fresh = calloc(more, sizeof(*fresh));

        if (!fresh) {
            (void)pthread_mutex_unlock(&lock);
            return false;
        }
        table = fresh;
        capacity = more;
        count = 0;
        for (size_t i = 0; i < old_capacity; i++)
            if (old[i].address)
                memory_insert(old[i]);
        free(old);
    }
    memory_insert(one);
    (void)pthread_mutex_unlock(&lock);
    return true;
}

static bool memory_leave(CUdeviceptr address, struct allocation *ret)
{
    bool found = false;

    (void)pthread_mutex_lock(&lock);
    for (size_t i = capacity ? memory_index_of(address) : 0; capacity && table[i].address;
         i = (i + 1) & (capacity - 1)) {
        if (table[i].address != address)
            continue;
        *ret = table[i];
        found = true;
        for (size_t gap = i, j = (i + 1) & (capacity - 1);; j = (j + 1) & (capacity - 1)) {
            if (!table[j].address) {
                table[gap] = (struct allocation){ 0 };
                count--;
                break;
            }
            if (((j - memory_index_of(table[j].address)) & (capacity - 1))
                >= ((j - gap) & (capacity - 1))) {
                table[gap] = table[j];
                gap = j;
            }
        }
        break;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

void sim_memory_forget(CUdevice device)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < capacity; i++)
        if (table[i].address && table[i].device == device) {
            table[i].physical = 0;
            if (table[i].shared)
                sim_export_forget(table[i].shared - 1);
            table[i].shared = 0;
        }
    small_bytes[device] = 0;
    (void)pthread_mutex_unlock(&lock);
    sim_memory_give((uint32_t)device, UINT64_MAX);
}

bool sim_allocation_find(CUdeviceptr address, CUdeviceptr *ret_base, uint64_t *ret_bytes,
                         CUdevice *ret_device, int **ret_shared)
{
    bool found = false;

    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < capacity && !found; i++) {
        struct allocation *one = &table[i];

        found = one->address && address >= one->address && address - one->address < one->bytes;
        if (!found)
            continue;
        *ret_base = one->address;
        *ret_bytes = one->bytes;
        *ret_device = one->device;
        *ret_shared = &one->shared;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

static CUresult memory_allocate(CUdeviceptr *pointer, uint64_t bytes)
{
    CUdevice device = sim_context()->device;
    CUdeviceptr address;

    if (!sim_physical_take(device, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    address = sim_address_take(bytes);
    if (!address || !memory_enter((struct allocation){ address, bytes, bytes, device, 0 })) {
        sim_physical_give(device, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pointer = address;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    SIM_CHECK_CONTEXT();
    if (!pointer || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_allocate(pointer, bytes);
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
    SIM_CHECK_CONTEXT();
    if (!pointer || !bytes || !(flags & (CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST)))
        return CUDA_ERROR_INVALID_VALUE;
    /* lives where it was last used: in the host until the device has room */
    *pointer = sim_address_take(bytes);
    if (!*pointer
        || !memory_enter((struct allocation){ *pointer, bytes, 0, sim_context()->device, 0 }))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
    SIM_CHECK_CONTEXT();
    if (!pointer || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return memory_allocate(pointer, *pitch * height);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    struct allocation one;

    SIM_CHECK_CONTEXT();
    if (!pointer)
        return CUDA_SUCCESS;
    if (sim_pool_free(pointer))
        return CUDA_SUCCESS;
    if (!memory_leave(pointer, &one))
        return CUDA_ERROR_INVALID_VALUE;
    if (one.shared)
        sim_export_drop(one.shared - 1);
    else if (one.physical)
        sim_physical_give(one.device, one.physical);
    sim_address_give(one.address, one.bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct sim_card *card = sim_card();
    uint64_t used;

    SIM_CHECK_CONTEXT();
    if (!free_bytes || !total)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock(card);
    used = sim_memory_used(card, (uint32_t)sim_context()->device);
    sim_unlock(card);
    *total = card->devices[sim_context()->device].memory;
    *free_bytes = *total - used;
    return CUDA_SUCCESS;
}

/* The data is written in its memory in program order: copies do not take device time. */
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    SIM_CHECK_CONTEXT();
    if (!to || !from)
        return CUDA_ERROR_INVALID_VALUE;
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return cuMemcpy(to, (CUdeviceptr)(uintptr_t)from, bytes);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpy((CUdeviceptr)(uintptr_t)to, from, bytes);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpy(to, from, bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpy(to, from, bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyHtoD_v2(to, from, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyDtoH_v2(to, from, bytes);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes)
{
    SIM_CHECK_CONTEXT();
    if (!to)
        return CUDA_ERROR_INVALID_VALUE;
    memset((void *)(uintptr_t)to, value, bytes);
    return CUDA_SUCCESS;
}
