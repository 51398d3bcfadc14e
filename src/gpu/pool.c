/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - memory pools, which are charged for what they have reserved */
#include "gpu/pool.h"

#include "gpu/device.h"
#include "gpu/ledger.h"
#include "gpu/shared_alloc.h"
#include "gpu/region.h"
#include "gpu/throttle.h"

#define POOLS_MAX 64 /* checked after a synchronisation */

/* Some pool has freed memory since it was last checked. */
static bool is_dirty;

/* Pools made by the program are entered at creation, the devices' own ones when
 * they are first used.
 */
static bool pool_find(CUmemoryPool pool, int device, struct ledger_entry *ret)
{
    if (ledger_get(LEDGER_POOL, (uintptr_t)pool, ret))
        return true;
    return device >= 0 && ledger_add(LEDGER_POOL, (uintptr_t)pool, (uint32_t)device, 0, 0)
           && ledger_get(LEDGER_POOL, (uintptr_t)pool, ret);
}

static bool pool_reserved_bytes(CUmemoryPool pool, uint64_t *ret)
{
    return gpu_real.cuMemPoolGetAttribute
           && gpu_real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, ret)
                  == CUDA_SUCCESS;
}

/* Whole granules, so that a pool never shares one with plain allocations. */
static uint64_t pool_whole_granules(uint64_t bytes)
{
    uint64_t rounded = (bytes + AQ_GPU_GRANULE - 1) & ~(AQ_GPU_GRANULE - 1);

    return rounded < bytes ? UINT64_MAX : rounded;
}

/* Follow the driver; 'spare' was reserved for it beforehand. */
static bool pool_follow(CUmemoryPool pool, uint64_t spare)
{
    struct ledger_entry entry;
    uint64_t reserved;

    if (!pool_reserved_bytes(pool, &reserved)) {
        if (!ledger_get(LEDGER_POOL, (uintptr_t)pool, &entry))
            return false;
        reserved = entry.bytes + spare;
    }
    return ledger_follow(LEDGER_POOL, (uintptr_t)pool, pool_whole_granules(reserved), spare);
}

/* It holds granules that nobody uses, and may let go of them at any synchronisation. */
static bool pool_keeps_freed(CUmemoryPool pool)
{
    uint64_t reserved, used = 0;

    return pool_reserved_bytes(pool, &reserved)
           && gpu_real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used)
                  == CUDA_SUCCESS
           && pool_whole_granules(used) < reserved;
}

static void pool_collect(const struct ledger_entry *entry, void *data)
{
    struct ledger_entry *list = data;

    for (int i = 0; i < POOLS_MAX; i++)
        if (!list[i].is_used) {
            list[i] = *entry;
            return;
        }
}

void pool_settle(void)
{
    struct ledger_entry list[POOLS_MAX];

    if (!__atomic_load_n(&is_dirty, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&is_dirty, false, __ATOMIC_RELAXED);
    for (int i = 0; i < POOLS_MAX; i++)
        list[i].is_used = 0;
    ledger_each(LEDGER_POOL, pool_collect, list);
    for (int i = 0; i < POOLS_MAX && list[i].is_used; i++) {
        CUmemoryPool pool = (CUmemoryPool)(uintptr_t)list[i].key;

        (void)pool_follow(pool, 0);
        if (pool_keeps_freed(pool))
            __atomic_store_n(&is_dirty, true, __ATOMIC_RELAXED);
    }
}

/* The most that the pool may have to grow for 'bytes' is reserved beforehand,
 * and made exact afterwards.
 */
static CUresult pool_allocate(fn_cuMemAllocFromPoolAsync *real, fn_cuMemAllocAsync *real_current,
                              CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                              CUstream stream)
{
    struct ledger_entry entry;
    uint64_t estimate = pool_whole_granules(bytes), reserved, room = 0;
    CUresult result;

    if (!pool_find(pool, gpu_device_current(), &entry))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (gpu_real.cuMemPoolGetAttribute && pool_reserved_bytes(pool, &reserved)
        && gpu_real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &room)
               == CUDA_SUCCESS)
        room = reserved > room ? reserved - room : 0;
    if (bytes <= room)
        estimate = 0; /* the pool has it, if it is in one piece */
    if (estimate && !ledger_reserve(entry.device, estimate))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = real ? real(pointer, bytes, pool, stream) : real_current(pointer, bytes, stream);
    if (result != CUDA_SUCCESS) {
        if (estimate)
            ledger_release(entry.device, estimate);
        return result;
    }
    if (!pool_follow(pool, estimate)
        || !ledger_add(LEDGER_POOL_MEMORY, *pointer, entry.device, bytes, (uintptr_t)pool)) {
        if (gpu_real.cuMemFreeAsync)
            (void)gpu_real.cuMemFreeAsync(*pointer, stream);
        __atomic_store_n(&is_dirty, true, __ATOMIC_RELAXED);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult on_mem_alloc_from_pool(fn_cuMemAllocFromPoolAsync *real, CUdeviceptr *pointer,
                                size_t bytes, CUmemoryPool pool, CUstream stream)
{
    if (!pointer || !bytes || !pool || throttle_is_capturing(stream))
        return real(pointer, bytes, pool, stream);
    return pool_allocate(real, NULL, pointer, bytes, pool, stream);
}

CUresult on_mem_alloc_async(fn_cuMemAllocAsync *real, CUdeviceptr *pointer, size_t bytes,
                            CUstream stream)
{
    CUmemoryPool pool = NULL;
    CUdevice device;

    if (!pointer || !bytes || throttle_is_capturing(stream))
        return real(pointer, bytes, stream);
    if (!gpu_real.cuDeviceGetMemPool || gpu_real.cuCtxGetDevice(&device) != CUDA_SUCCESS
        || gpu_real.cuDeviceGetMemPool(&pool, device) != CUDA_SUCCESS)
        return real(pointer, bytes, stream);
    return pool_allocate(NULL, real, pointer, bytes, pool, stream);
}

CUresult pool_free(fn_cuMemFree_v2 *real, CUdeviceptr pointer)
{
    struct ledger_entry entry;
    bool known = ledger_take(LEDGER_POOL_MEMORY, pointer, &entry);
    CUresult result = real(pointer);

    if (known && result == CUDA_SUCCESS) {
        __atomic_store_n(&is_dirty, true, __ATOMIC_RELAXED);
    } else if (known) {
        (void)ledger_add(LEDGER_POOL_MEMORY, pointer, entry.device, entry.bytes, entry.link);
    }
    return result;
}

/* Also frees what cuMemAlloc gave: that is charged until now, though the
 * driver gives it back only when the stream gets there.
 */
CUresult on_mem_free_async(fn_cuMemFreeAsync *real, CUdeviceptr pointer, CUstream stream)
{
    struct ledger_entry entry;
    bool plain = ledger_take(LEDGER_MEMORY, pointer, &entry);
    bool pooled = !plain && ledger_take(LEDGER_POOL_MEMORY, pointer, &entry);
    CUresult result = real(pointer, stream);

    if (result != CUDA_SUCCESS) {
        if (plain || pooled)
            (void)ledger_add((enum ledger_kind)entry.kind, pointer, entry.device, entry.bytes,
                             entry.link);
        return result;
    }
    if (plain)
        shared_alloc_release(&entry);
    if (pooled)
        __atomic_store_n(&is_dirty, true, __ATOMIC_RELAXED);
    return result;
}

CUresult on_pool_create(fn_cuMemPoolCreate *real, CUmemoryPool *pool, const CUmemPoolProps *props)
{
    CUresult result = real(pool, props);
    int device;

    if (result != CUDA_SUCCESS || !props || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return result;
    device = gpu_device_index(props->location.id);
    if (device >= 0 && ledger_add(LEDGER_POOL, (uintptr_t)*pool, (uint32_t)device, 0, 0))
        return CUDA_SUCCESS;
    if (gpu_real.cuMemPoolDestroy)
        (void)gpu_real.cuMemPoolDestroy(*pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Its memory goes when the last allocation from it is freed; then the driver
 * no longer answers for the pool, so what is still out keeps its charge.
 */
CUresult on_pool_destroy(fn_cuMemPoolDestroy *real, CUmemoryPool pool)
{
    struct ledger_entry entry;
    uint64_t used = 0;
    bool known = ledger_get(LEDGER_POOL, (uintptr_t)pool, &entry);
    CUresult result;

    if (known && gpu_real.cuMemPoolGetAttribute)
        (void)gpu_real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
    result = real(pool);
    if (known && result == CUDA_SUCCESS && !used) {
        (void)ledger_take(LEDGER_POOL, (uintptr_t)pool, &entry);
        ledger_release(entry.device, entry.bytes);
    }
    return result;
}

CUresult on_pool_trim_to(fn_cuMemPoolTrimTo *real, CUmemoryPool pool, size_t keep)
{
    CUresult result = real(pool, keep);

    if (result == CUDA_SUCCESS)
        (void)pool_follow(pool, 0);
    return result;
}

CUresult on_pool_set_attribute(fn_cuMemPoolSetAttribute *real, CUmemoryPool pool, int attribute,
                               void *value)
{
    CUresult result = real(pool, attribute, value);

    if (result == CUDA_SUCCESS && attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        (void)pool_follow(pool, 0);
    return result;
}
