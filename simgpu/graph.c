/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - graphs of GPU kernels and memory nodes, built or captured
 *
 * A graph's GPU kernels run one after the other: their durations are summed when
 * it is instantiated. Memory nodes take physical memory at the first launch
 * and keep it until the card is told to trim.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

#define NODES_MAX 512

struct CUgraphNode_st {
    int type;
    int64_t ns;
    uint64_t blocks;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUgraph child;
};

struct CUgraph_st {
    struct CUgraphNode_st nodes[NODES_MAX];
    size_t count;
};

struct CUgraphExec_st {
    int64_t ns;
    uint64_t blocks, memory;
    CUdevice device;
    bool has_memory;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t reserved[SIM_DEVICES_MAX], used[SIM_DEVICES_MAX];

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    if (!graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = calloc(1, sizeof(**graph));
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    if (!graph)
        return CUDA_ERROR_INVALID_HANDLE;
    free(graph);
    return CUDA_SUCCESS;
}

static CUgraphNode graph_add(CUgraph graph, int type)
{
    CUgraphNode node = graph->count < NODES_MAX ? &graph->nodes[graph->count++] : NULL;

    if (node) {
        *node = (struct CUgraphNode_st){ .type = type };
    }
    return node;
}

CUresult sim_graph_add_kernel(struct CUgraph_st *graph, CUfunction function, uint64_t blocks,
                              void **params)
{
    CUgraphNode node = graph_add(graph, CU_GRAPH_NODE_TYPE_KERNEL);

    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->ns = sim_duration(function, params);
    node->blocks = blocks;
    return CUDA_SUCCESS;
}

CUresult sim_graph_add_alloc(struct CUgraph_st *graph, CUdeviceptr *pointer, size_t bytes)
{
    CUgraphNode node = graph_add(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC);

    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->alloc.bytesize = bytes;
    node->alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    node->alloc.poolProps.location.id = sim_context()->device;
    *pointer = node->alloc.dptr = sim_address_take(bytes);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                             size_t count)
{
    (void)after;
    (void)count;
    if (!node || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    *node = graph_add(graph, CU_GRAPH_NODE_TYPE_EMPTY);
    return *node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUresult result;

    (void)after;
    (void)count;
    if (!node || !graph || !params || !params->func)
        return CUDA_ERROR_INVALID_VALUE;
    result = sim_graph_add_kernel(graph, params->func,
                                  (uint64_t)params->gridDimX * params->gridDimY * params->gridDimZ,
                                  params->kernelParams);
    if (result == CUDA_SUCCESS)
        *node = &graph->nodes[graph->count - 1];
    return result;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
    return cuGraphAddKernelNode(node, graph, after, count, params);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                  size_t count, CUgraph child)
{
    (void)after;
    (void)count;
    if (!node || !graph || !child)
        return CUDA_ERROR_INVALID_VALUE;
    *node = graph_add(graph, CU_GRAPH_NODE_TYPE_GRAPH);
    if (!*node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*node)->child = child;
    return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *child)
{
    if (!node || !child)
        return CUDA_ERROR_INVALID_VALUE;
    *child = node->child;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    CUresult result;

    (void)after;
    (void)count;
    if (!node || !graph || !params || !params->bytesize)
        return CUDA_ERROR_INVALID_VALUE;
    SIM_CHECK_CONTEXT();
    result = sim_graph_add_alloc(graph, &params->dptr, params->bytesize);
    if (result == CUDA_SUCCESS)
        *node = &graph->nodes[graph->count - 1];
    return result;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                               size_t count, CUdeviceptr pointer)
{
    (void)after;
    (void)count;
    if (!node || !graph || !pointer)
        return CUDA_ERROR_INVALID_VALUE;
    *node = graph_add(graph, CU_GRAPH_NODE_TYPE_MEM_FREE);
    return *node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                        CUgraphNodeParams *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cuGraphAddKernelNode(node, graph, after, count, &params->kernel);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return cuGraphAddChildGraphNode(node, graph, after, count, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return cuGraphAddMemAllocNode(node, graph, after, count, &params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return cuGraphAddMemFreeNode(node, graph, after, count, params->free.dptr);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                           const void *edges, size_t count, CUgraphNodeParams *params)
{
    (void)edges;
    return cuGraphAddNode(node, graph, after, count, params);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    if (!graph || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; nodes && i < *count; i++)
        nodes[i] = i < graph->count ? &graph->nodes[i] : NULL;
    if (!nodes || *count > graph->count)
        *count = graph->count;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, int *type)
{
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    if (!node || !params || node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return CUDA_ERROR_INVALID_VALUE;
    *params = node->alloc;
    return CUDA_SUCCESS;
}

static void graph_sum(const struct CUgraph_st *graph, CUgraphExec exec)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct CUgraphNode_st *node = &graph->nodes[i];

        exec->ns += node->ns;
        if (node->blocks > exec->blocks)
            exec->blocks = node->blocks;
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            exec->memory += (node->alloc.bytesize + SIM_GRANULE - 1) & ~(SIM_GRANULE - 1);
        if (node->child)
            graph_sum(node->child, exec);
    }
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    SIM_CHECK_CONTEXT();
    if (!exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(*exec = calloc(1, sizeof(**exec))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*exec)->device = sim_context()->device;
    graph_sum(graph, *exec);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                               size_t size)
{
    (void)error_node;
    (void)log;
    (void)size;
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                            size_t size)
{
    return cuGraphInstantiate_v2(exec, graph, error_node, log, size);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    params->result_out = 0;
    return cuGraphInstantiateWithFlags(exec, graph, params->flags);
}

/* Executable graphs share the memory that is reserved: they run one after another. */
static CUresult graph_take_memory(CUgraphExec exec)
{
    CUresult result = CUDA_SUCCESS;

    (void)pthread_mutex_lock(&lock);
    if (exec->memory > reserved[exec->device]) {
        if (sim_memory_take((uint32_t)exec->device, exec->memory - reserved[exec->device]))
            reserved[exec->device] = exec->memory;
        else
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS && !exec->has_memory) {
        exec->has_memory = true;
        used[exec->device]++;
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    (void)stream;
    SIM_CHECK_CONTEXT();
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    return exec->memory ? graph_take_memory(exec) : CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    if (exec->memory)
        result = graph_take_memory(exec);
    return result == CUDA_SUCCESS ? sim_launch_ns(exec->ns, exec->blocks, stream) : result;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    if (!exec || !graph || !info)
        return CUDA_ERROR_INVALID_VALUE;
    info->result = 0;
    exec->ns = 0;
    exec->blocks = exec->memory = 0;
    graph_sum(graph, exec);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
                           int *update_result)
{
    CUgraphExecUpdateResultInfo info;

    (void)error_node;
    if (update_result)
        *update_result = 0;
    return cuGraphExecUpdate_v2(exec, graph, &info);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    (void)pthread_mutex_lock(&lock);
    if (exec->has_memory)
        used[exec->device]--;
    (void)pthread_mutex_unlock(&lock);
    free(exec);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    if (device < 0 || device >= SIM_DEVICES_MAX)
        return CUDA_ERROR_INVALID_DEVICE;
    (void)pthread_mutex_lock(&lock);
    if (!used[device]) {
        sim_memory_give((uint32_t)device, reserved[device]);
        reserved[device] = 0;
    }
    (void)pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
    if (device < 0 || device >= SIM_DEVICES_MAX || !value
        || attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)
        return CUDA_ERROR_INVALID_VALUE;
    *(uint64_t *)value = reserved[device];
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    (void)mode;
    if ((uintptr_t)stream <= 2)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return stream->capture ? CUDA_ERROR_ILLEGAL_STATE : cuGraphCreate(&stream->capture, 0);
}

CUresult cuStreamBeginCapture(CUstream stream)
{
    return cuStreamBeginCapture_v2(stream, 0);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    if ((uintptr_t)stream <= 2 || !stream->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (graph)
        *graph = stream->capture;
    stream->capture = NULL;
    return graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    *status = sim_capture_of(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                     : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    static __thread int own;
    int old = own;

    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    own = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
