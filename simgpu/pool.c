/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - stream-ordered pools: keep what was freed until a synchronisation */
#include <pthread.h>
#include <stdlib.h>

#include "cuda.h"

#define PIECES_MAX 65536

struct CUmemPoolHandle_st {
    CUdevice device;
    uint64_t reserved, used, used_high, reserved_high, threshold;
    bool is_destroyed;
    struct CUmemPoolHandle_st *next;
};

struct pool_piece {
    CUdeviceptr address;
    uint64_t bytes;
    CUmemoryPool pool;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUmemPoolHandle_st defaults[SIM_DEVICES_MAX];
static CUmemoryPool current[SIM_DEVICES_MAX];
static struct CUmemPoolHandle_st *pools;
static struct pool_piece *pieces;
static size_t piece_count;

static uint64_t pool_whole(uint64_t bytes)
{
    return (bytes + SIM_GRANULE - 1) & ~(SIM_GRANULE - 1);
}

CUmemoryPool sim_pool_current(CUdevice device)
{
    defaults[device].device = device;
    return current[device] ? current[device] : &defaults[device];
}

/* Under the lock. */
static void pool_shrink(CUmemoryPool pool, uint64_t keep)
{
    uint64_t used = pool_whole(pool->used);

    if (keep < used)
        keep = used;
    keep = pool_whole(keep);
    if (keep < pool->reserved) {
        sim_memory_give((uint32_t)pool->device, pool->reserved - keep);
        pool->reserved = keep;
    }
}

void sim_pools_settle(void)
{
    (void)pthread_mutex_lock(&lock);
    for (int i = 0; i < SIM_DEVICES_MAX; i++)
        pool_shrink(&defaults[i], defaults[i].threshold);
    for (CUmemoryPool pool = pools; pool; pool = pool->next)
        pool_shrink(pool, pool->is_destroyed ? 0 : pool->threshold);
    (void)pthread_mutex_unlock(&lock);
}

CUresult sim_pool_alloc(CUmemoryPool pool, CUdeviceptr *pointer, size_t bytes)
{
    uint64_t size = (bytes + 511) & ~(uint64_t)511, grow = 0;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    (void)pthread_mutex_lock(&lock);
    if (!pieces)
        pieces = calloc(PIECES_MAX, sizeof(*pieces));
    if (pool->used + size > pool->reserved)
        grow = pool_whole(pool->used + size - pool->reserved);
    if (pieces && piece_count < PIECES_MAX
        && (!grow || sim_memory_take((uint32_t)pool->device, grow))) {
        *pointer = sim_address_take(size);
        pool->reserved += grow;
        pool->used += size;
        pieces[piece_count++] = (struct pool_piece){ *pointer, size, pool };
        result = CUDA_SUCCESS;
    }
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    (void)pthread_mutex_unlock(&lock);
    return result;
}

bool sim_pool_free(CUdeviceptr pointer)
{
    bool found = false;

    if (!__atomic_load_n(&piece_count, __ATOMIC_RELAXED))
        return false;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = piece_count; i-- > 0 && !found;) {
        if (pieces[i].address != pointer)
            continue;
        found = true;
        pieces[i].pool->used -= pieces[i].bytes;
        sim_address_give(pointer, pieces[i].bytes);
        pieces[i] = pieces[--piece_count];
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                 CUstream stream)
{
    SIM_CHECK_CONTEXT();
    if (!pointer || !bytes || !pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_capture_of(stream))
        return sim_graph_add_alloc(sim_capture_of(stream), pointer, bytes);
    return sim_pool_alloc(pool, pointer, bytes);
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    SIM_CHECK_CONTEXT();
    return cuMemAllocFromPoolAsync(pointer, bytes, sim_pool_current(sim_context()->device), stream);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    (void)stream;
    return cuMemFree_v2(pointer);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED
        || props->location.id < 0 || props->location.id >= SIM_DEVICES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(*pool = calloc(1, sizeof(**pool))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*pool)->device = props->location.id;
    (void)pthread_mutex_lock(&lock);
    (*pool)->next = pools;
    pools = *pool;
    (void)pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Its memory stays until the last piece is freed; the struct stays for good. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    (void)pthread_mutex_lock(&lock);
    pool->is_destroyed = true;
    pool_shrink(pool, 0);
    (void)pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    (void)pthread_mutex_lock(&lock);
    pool_shrink(pool, keep);
    (void)pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static uint64_t *pool_attribute(CUmemoryPool pool, int attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    const uint64_t *found = pool && value ? pool_attribute(pool, attribute) : NULL;

    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    *(uint64_t *)value = *found;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    if (!pool || !value || attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        return CUDA_ERROR_INVALID_VALUE;
    pool->threshold = *(uint64_t *)value;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    if (!pool || device < 0 || device >= SIM_DEVICES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    defaults[device].device = device;
    *pool = &defaults[device];
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    if (!pool || device < 0 || device >= SIM_DEVICES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *pool = sim_pool_current(device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    if (!pool || device < 0 || device >= SIM_DEVICES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    current[device] = pool;
    return CUDA_SUCCESS;
}
