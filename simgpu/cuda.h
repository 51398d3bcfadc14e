/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - the objects behind the simulated driver's handles */
#ifndef SIMGPU_CUDA_H
#define SIMGPU_CUDA_H

#include "device.h"
#include "exports.h"

#define SIM_EXPORT __attribute__((visibility("default")))

struct CUctx_st {
    CUdevice device;
    bool is_primary;
    int users; /* of a primary context */
    size_t limits[16];
};

struct CUstream_st {
    CUdevice device;
    uint32_t queue;
    struct CUgraph_st *capture; /* NULL = not capturing */
};

struct CUmod_st {
    CUdevice device;
};

/* "work_NS" works for NS nanoseconds, "work" for as many as its first parameter says. */
struct CUfunc_st {
    int64_t fixed_ns;
};

/* The calling thread's context; NULL = none. */
CUcontext sim_context(void);

/* Has cuInit been called, in this process and not in its parent? */
bool sim_is_ready(void);

/* Is it one of the card's? */
bool sim_has_device(CUdevice device);

#define SIM_CHECK_CONTEXT()                    \
    do {                                       \
        if (!sim_is_ready())                   \
            return CUDA_ERROR_NOT_INITIALIZED; \
        if (!sim_context())                    \
            return CUDA_ERROR_INVALID_CONTEXT; \
    } while (0)

/* Contexts and code: memory of the driver itself. */
bool sim_overhead_take(CUdevice device, uint64_t bytes);
void sim_overhead_give(CUdevice device, uint64_t bytes);

/* A stream's queue on the current device: streams 0, 1 and 2 are no objects. */
uint32_t sim_queue_of(CUstream stream);

/* The device of a stream; of streams that are no objects, the current one. */
CUdevice sim_device_of(CUstream stream);

/* The graph that 'stream' is being captured into, or NULL. */
struct CUgraph_st *sim_capture_of(CUstream stream);

/* Add to a graph what a captured call did. */
CUresult sim_graph_add_kernel(struct CUgraph_st *graph, CUfunction function, uint64_t blocks,
                              void **params);
CUresult sim_graph_add_alloc(struct CUgraph_st *graph, CUdeviceptr *pointer, size_t bytes);

/* A GPU kernel on a queue; takes no time if its duration is 0. */
CUresult sim_launch(CUfunction function, uint64_t blocks, CUstream stream, void **params);
CUresult sim_launch_ns(int64_t ns, uint64_t blocks, CUstream stream);
int64_t sim_duration(CUfunction function, void **params);

/* All that this process may map. */
#define SIM_ADDRESS_SPACE ((uint64_t)1 << 40)

/* Addresses: real memory of this process, filled on touch, so copies work. */
CUdeviceptr sim_address_take(uint64_t bytes);
void sim_address_give(CUdeviceptr address, uint64_t bytes);

/* Physical memory for 'bytes' on a device, packed like the driver does. */
bool sim_physical_take(CUdevice device, uint64_t bytes);
void sim_physical_give(CUdevice device, uint64_t bytes);

/* Forget all allocations of a device: its last context is gone. */
void sim_memory_forget(CUdevice device);

/* Physical memory of cuMemCreate, until its last owner and mapping are gone. */
struct sim_handle {
    uint64_t bytes;
    CUdevice device; /* -1 = in the host */
    int owners;
    int shared; /* its number + 1; 0 = is not (ipc.c) */
    CUmemAllocationProp prop;
};

/* Plain memory that begins at, or contains, an address: its entry in the table, where
 * 'ret_shared' points to its number + 1. False = there is none. Single-threaded use.
 */
bool sim_allocation_find(CUdeviceptr address, CUdeviceptr *ret_base, uint64_t *ret_bytes,
                         CUdevice *ret_device, int **ret_shared);

/* Memory that this process made becomes shared, or -1; one object more, or fewer, of it
 * here. The last one gives it back; ipc.c.
 */
int sim_export(CUdevice device, uint64_t bytes);
void sim_export_drop(int number);
/* A device's memory is forgotten: what of it was shared is not this process's any more. */
void sim_export_forget(int number);

/* Pools; pool.c. */
CUresult sim_pool_alloc(CUmemoryPool pool, CUdeviceptr *pointer, size_t bytes);
bool sim_pool_free(CUdeviceptr pointer);
CUmemoryPool sim_pool_current(CUdevice device);
void sim_pools_settle(void);

#endif
