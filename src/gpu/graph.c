/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - graphs: charged when they are launched, for time and for memory
 *
 * What a graph costs is measured like a GPU kernel, keyed by the executable graph.
 * Memory nodes take physical memory when the graph first runs and keep it
 * until cuDeviceGraphMemTrim: before a launch there must be room for the
 * nodes of the graph; afterwards the charge follows the driver's count.
 */
#include <sys/mman.h>

#include "gpu/device.h"
#include "gpu/hooks.h"
#include "gpu/ledger.h"
#include "gpu/launch_fast_path.h"
#include "gpu/region.h"

#define DEPTH_MAX 16

int graph_with_memory;
static uint64_t charged[AQ_GPU_DEVICES_MAX]; /* of the driver's count, whole granules */

static uint64_t graph_whole_granules(uint64_t bytes)
{
    return (bytes + AQ_GPU_GRANULE - 1) & ~(AQ_GPU_GRANULE - 1);
}

/* Charge what the driver holds for graphs on 'device' now; 'spare' was reserved. */
static bool graph_follow(int device, uint64_t spare)
{
    uint64_t bytes = charged[device] + spare;
    CUdevice handle;

    if (gpu_real.cuDeviceGetGraphMemAttribute && gpu_device_handle(device, &handle))
        (void)gpu_real.cuDeviceGetGraphMemAttribute(handle, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                                    &bytes);
    bytes = graph_whole_granules(bytes);
    if (!ledger_resize((uint32_t)device, charged[device] + spare, bytes))
        return false;
    charged[device] = bytes;
    return true;
}

static uint64_t graph_memory(CUgraph graph, int depth);

static uint64_t graph_node_memory(CUgraphNode node, int depth)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    CUgraph child;
    int type = CU_GRAPH_NODE_TYPE_EMPTY;

    (void)gpu_real.cuGraphNodeGetType(node, &type);
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC
        && gpu_real.cuGraphMemAllocNodeGetParams(node, &params) == CUDA_SUCCESS)
        return graph_whole_granules(params.bytesize);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH && gpu_real.cuGraphChildGraphNodeGetGraph
        && gpu_real.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
        return graph_memory(child, depth + 1);
    return 0;
}

/* Bytes of the memory nodes of 'graph' and its children. mmap, as in ledger.c. */
static uint64_t graph_memory(CUgraph graph, int depth)
{
    CUgraphNode *nodes;
    size_t count = 0, size;
    uint64_t sum = 0;

    if (depth > DEPTH_MAX || !gpu_real.cuGraphMemAllocNodeGetParams
        || gpu_real.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || count == 0)
        return 0;
    size = count * sizeof(CUgraphNode);
    nodes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nodes == MAP_FAILED)
        return 0;
    if (gpu_real.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS)
        for (size_t i = 0; i < count; i++)
            sum += graph_node_memory(nodes[i], depth);
    (void)munmap(nodes, size);
    return sum;
}

/* 'exec' was made from 'graph'. */
static CUresult graph_after_instantiate(CUresult result, const CUgraphExec *exec, CUgraph graph)
{
    int device = gpu_device_current();
    uint64_t bytes;

    if (result != CUDA_SUCCESS)
        return result;
    launch_cost_drop(launch_cost_graph_key(*exec));
    bytes = graph_memory(graph, 0);
    if (!bytes || device < 0)
        return result;
    if (!ledger_add(LEDGER_GRAPH, (uintptr_t)*exec, (uint32_t)device, bytes, 0)) {
        (void)gpu_real.cuGraphExecDestroy(*exec);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (void)__atomic_fetch_add(&graph_with_memory, 1, __ATOMIC_RELAXED);
    return result;
}

CUresult on_graph_instantiate(fn_cuGraphInstantiate *real, CUgraphExec *exec, CUgraph graph,
                              CUgraphNode *error_node, char *log, size_t size)
{
    return graph_after_instantiate(real(exec, graph, error_node, log, size), exec, graph);
}

CUresult on_graph_instantiate_flags(fn_cuGraphInstantiateWithFlags *real, CUgraphExec *exec,
                                    CUgraph graph, unsigned long long flags)
{
    return graph_after_instantiate(real(exec, graph, flags), exec, graph);
}

CUresult on_graph_instantiate_params(fn_cuGraphInstantiateWithParams *real, CUgraphExec *exec,
                                     CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return graph_after_instantiate(real(exec, graph, params), exec, graph);
}

/* Room for the memory nodes of 'exec'; *ret_spare is what was reserved. */
static bool graph_make_room(CUgraphExec exec, struct ledger_entry *ret, uint64_t *ret_spare)
{
    *ret_spare = 0;
    if (!__atomic_load_n(&graph_with_memory, __ATOMIC_RELAXED)
        || !ledger_get(LEDGER_GRAPH, (uintptr_t)exec, ret))
        return true;
    *ret_spare = ret->bytes > charged[ret->device] ? ret->bytes - charged[ret->device] : 0;
    return !*ret_spare || ledger_reserve(ret->device, *ret_spare);
}

static void graph_after_launch(const struct ledger_entry *entry, uint64_t spare)
{
    if (spare && !graph_follow(entry->device, spare))
        ledger_release(entry->device, spare);
}

CUresult on_graph_launch(fn_cuGraphLaunch *real, CUgraphExec exec, CUstream stream)
{
    struct throttle_launch launch;
    struct ledger_entry entry;
    uint64_t spare;
    CUresult result;

    if (!graph_make_room(exec, &entry, &spare))
        return CUDA_ERROR_OUT_OF_MEMORY;
    throttle_begin(&launch, launch_cost_graph_key(exec),
                   stream || real != gpu_real.cuGraphLaunch_ptsz ? stream : CU_STREAM_PER_THREAD);
    result = real(exec, stream);
    throttle_end(&launch, result);
    graph_after_launch(&entry, spare);
    return result;
}

CUresult on_graph_upload(fn_cuGraphUpload *real, CUgraphExec exec, CUstream stream)
{
    struct ledger_entry entry;
    uint64_t spare;
    CUresult result;

    if (!graph_make_room(exec, &entry, &spare))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = real(exec, stream);
    graph_after_launch(&entry, spare);
    return result;
}

/* The next launch measures again. */
CUresult on_graph_exec_update(fn_cuGraphExecUpdate *real, CUgraphExec exec, CUgraph graph,
                              CUgraphNode *error_node, int *update_result)
{
    CUresult result = real(exec, graph, error_node, update_result);

    if (result == CUDA_SUCCESS)
        launch_cost_drop(launch_cost_graph_key(exec));
    return result;
}

CUresult on_graph_exec_update_v2(fn_cuGraphExecUpdate_v2 *real, CUgraphExec exec, CUgraph graph,
                                 CUgraphExecUpdateResultInfo *info)
{
    CUresult result = real(exec, graph, info);

    if (result == CUDA_SUCCESS)
        launch_cost_drop(launch_cost_graph_key(exec));
    return result;
}

CUresult on_graph_exec_destroy(fn_cuGraphExecDestroy *real, CUgraphExec exec)
{
    struct ledger_entry entry;
    CUresult result = real(exec);

    if (result != CUDA_SUCCESS)
        return result;
    launch_cost_drop(launch_cost_graph_key(exec));
    if (__atomic_load_n(&graph_with_memory, __ATOMIC_RELAXED)
        && ledger_take(LEDGER_GRAPH, (uintptr_t)exec, &entry)) {
        (void)__atomic_fetch_sub(&graph_with_memory, 1, __ATOMIC_RELAXED);
        (void)graph_follow(entry.device, 0);
    }
    return result;
}

CUresult on_graph_mem_trim(fn_cuDeviceGraphMemTrim *real, CUdevice device)
{
    CUresult result = real(device);
    int index = gpu_device_index(device);

    if (result == CUDA_SUCCESS && index >= 0)
        (void)graph_follow(index, 0);
    return result;
}

/* A node that could never run is refused when it is made, as the driver does. */
static bool graph_could_fit(const CUmemPoolProps *props, size_t bytes)
{
    int device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE
                     ? gpu_device_index(props->location.id)
                     : gpu_device_current();

    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE
        && props->location.type != CU_MEM_LOCATION_TYPE_INVALID)
        return true; /* in the host */
    return device >= 0
           && graph_whole_granules(bytes) >> AQ_GPU_GRANULE_SHIFT
                  <= gpu_region_limit((uint32_t)device);
}

CUresult on_graph_add_alloc(fn_cuGraphAddMemAllocNode *real, CUgraphNode *node, CUgraph graph,
                            const CUgraphNode *after, size_t count,
                            CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    if (params && !graph_could_fit(&params->poolProps, params->bytesize))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return real(node, graph, after, count, params);
}

static bool graph_node_fits(const CUgraphNodeParams *params)
{
    return !params || params->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC
           || graph_could_fit(&params->alloc.poolProps, params->alloc.bytesize);
}

CUresult on_graph_add_node(fn_cuGraphAddNode *real, CUgraphNode *node, CUgraph graph,
                           const CUgraphNode *after, size_t count, CUgraphNodeParams *params)
{
    return graph_node_fits(params) ? real(node, graph, after, count, params)
                                   : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult on_graph_add_node_v2(fn_cuGraphAddNode_v2 *real, CUgraphNode *node, CUgraph graph,
                              const CUgraphNode *after, const void *edges, size_t count,
                              CUgraphNodeParams *params)
{
    return graph_node_fits(params) ? real(node, graph, after, edges, count, params)
                                   : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult graph_after_capture_begin(CUresult result)
{
    if (result == CUDA_SUCCESS)
        throttle_count_capture(1);
    return result;
}

CUresult on_begin_capture_v1(fn_cuStreamBeginCapture *real, CUstream stream)
{
    return graph_after_capture_begin(real(stream));
}

CUresult on_begin_capture(fn_cuStreamBeginCapture_v2 *real, CUstream stream, int mode)
{
    return graph_after_capture_begin(real(stream, mode));
}

CUresult on_begin_capture_to_graph(fn_cuStreamBeginCaptureToGraph *real, CUstream stream,
                                   CUgraph graph, const CUgraphNode *after, const void *edges,
                                   size_t count, int mode)
{
    return graph_after_capture_begin(real(stream, graph, after, edges, count, mode));
}

/* An invalidated capture ends with an error, and ends. */
CUresult on_end_capture(fn_cuStreamEndCapture *real, CUstream stream, CUgraph *graph)
{
    bool was_capturing = throttle_is_capturing(stream);
    CUresult result = real(stream, graph);

    if (result == CUDA_SUCCESS || was_capturing)
        throttle_count_capture(-1);
    return result;
}
