/* SPDX-License-Identifier: Apache-2.0 */
/* entries.c - every way to get device memory, under a slice of 256 MiB
 *
 * Each row allocates in steps of 64 MiB until it is refused, must be refused
 * with CUDA_ERROR_OUT_OF_MEMORY within the slice, frees everything, and finds
 * as much free as before.
 */
#include <fcntl.h>
#include <unistd.h>

#include "client.h"

#define STEP (64 * MIB)
#define STEPS_MAX 16

struct row {
    const char *symbol;
    CUresult (*take)(void *call, uint64_t *ret);
    CUresult (*give)(uint64_t held);
    const char *also; /* symbol without which the row makes no sense, or NULL */
};

static CUmemoryPool pool;
static CUstream stream;

static CUresult take_plain(void *call, uint64_t *ret)
{
    return ((fn_cuMemAlloc_v2 *)call)((CUdeviceptr *)ret, STEP);
}

static CUresult give_plain(uint64_t held)
{
    return FN(cuMemFree_v2)(held);
}

static CUresult take_pitch(void *call, uint64_t *ret)
{
    size_t pitch;

    /* one byte wide: what counts is the pitch */
    return ((fn_cuMemAllocPitch_v2 *)call)((CUdeviceptr *)ret, &pitch, 1, STEP / 512, 4);
}

static CUresult take_managed(void *call, uint64_t *ret)
{
    return ((fn_cuMemAllocManaged *)call)((CUdeviceptr *)ret, STEP, CU_MEM_ATTACH_GLOBAL);
}

static CUresult take_async(void *call, uint64_t *ret)
{
    return ((fn_cuMemAllocAsync *)call)((CUdeviceptr *)ret, STEP, stream);
}

static CUresult take_from_pool(void *call, uint64_t *ret)
{
    return ((fn_cuMemAllocFromPoolAsync *)call)((CUdeviceptr *)ret, STEP, pool, stream);
}

static CUresult give_async(uint64_t held)
{
    return FN(cuMemFreeAsync)(held, stream);
}

static CUresult take_handle(void *call, uint64_t *ret)
{
    const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };

    return ((fn_cuMemCreate *)call)((CUmemGenericAllocationHandle *)ret, STEP, &prop, 0);
}

static CUresult give_handle(uint64_t held)
{
    return FN(cuMemRelease)(held);
}

/* Memory that comes back from a descriptor is the same memory, and paid for as such. */
static CUresult take_import(void *call, uint64_t *ret)
{
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
    };
    CUmemGenericAllocationHandle handle;
    CUresult result = FN(cuMemCreate)(&handle, STEP, &prop, 0);
    int fd;

    if (result != CUDA_SUCCESS)
        return result;
    MUST(
        FN(cuMemExportToShareableHandle)(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    result = ((fn_cuMemImportFromShareableHandle *)call)((CUmemGenericAllocationHandle *)ret,
                                                         (void *)(intptr_t)fd,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    MUST(FN(cuMemRelease)(handle));
    (void)close(fd);
    return result;
}

static CUresult take_external(void *call, uint64_t *ret)
{
    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC want = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
        .handle.fd = open("/dev/null", O_RDWR | O_CLOEXEC),
        .size = STEP,
    };
    CUresult result = ((fn_cuImportExternalMemory *)call)((CUexternalMemory *)ret, &want);

    (void)close(want.handle.fd);
    return result;
}

static CUresult give_external(uint64_t held)
{
    return FN(cuDestroyExternalMemory)((CUexternalMemory)(uintptr_t)held);
}

static CUresult take_array(void *call, uint64_t *ret)
{
    const CUDA_ARRAY_DESCRIPTOR want = { 4096, STEP / 4096 / 16, CU_AD_FORMAT_FLOAT, 4 };

    return ((fn_cuArrayCreate_v2 *)call)((CUarray *)ret, &want);
}

static CUresult take_array_3d(void *call, uint64_t *ret)
{
    const CUDA_ARRAY3D_DESCRIPTOR want = { 1024, 256, 16, CU_AD_FORMAT_FLOAT, 4, 0 };

    return ((fn_cuArray3DCreate_v2 *)call)((CUarray *)ret, &want);
}

static CUresult give_array(uint64_t held)
{
    return FN(cuArrayDestroy)((CUarray)(uintptr_t)held);
}

static CUresult take_mipmap(void *call, uint64_t *ret)
{
    const CUDA_ARRAY3D_DESCRIPTOR want = { 2048, 2048, 0, CU_AD_FORMAT_FLOAT, 4, 0 };

    return ((fn_cuMipmappedArrayCreate *)call)((CUmipmappedArray *)ret, &want, 4);
}

static CUresult give_mipmap(uint64_t held)
{
    return FN(cuMipmappedArrayDestroy)((CUmipmappedArray)(uintptr_t)held);
}

/* Memory behind a tile lives on when its handle is released. */
static CUarray sparse;
static unsigned int tiles;

static CUresult take_tile(void *call, uint64_t *ret)
{
    const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    const CUDA_ARRAY3D_DESCRIPTOR want = { 16384, 16384,
                                           0,     CU_AD_FORMAT_FLOAT,
                                           4,     CUDA_ARRAY3D_SPARSE };
    CUarrayMapInfo tile = { .memOperationType = CU_MEM_OPERATION_TYPE_MAP };
    CUresult result = FN(cuMemCreate)(&tile.memHandle, STEP, &prop, 0);

    if (result != CUDA_SUCCESS)
        return result;
    if (!tiles)
        MUST(FN(cuArray3DCreate_v2)(&sparse, &want));
    tile.resource.array = sparse;
    tile.subresource.sparseLevel.offsetX = tiles++;
    MUST(((fn_cuMemMapArrayAsync *)call)(&tile, 1, stream));
    MUST(FN(cuMemRelease)(tile.memHandle));
    *ret = tiles;
    return CUDA_SUCCESS;
}

static CUresult give_tile(uint64_t held)
{
    CUarrayMapInfo tile = { .memOperationType = CU_MEM_OPERATION_TYPE_UNMAP };

    tile.resource.array = sparse;
    tile.subresource.sparseLevel.offsetX = (unsigned int)held - 1;
    MUST(FN(cuMemMapArrayAsync)(&tile, 1, stream));
    return --tiles ? CUDA_SUCCESS : FN(cuArrayDestroy)(sparse);
}

static CUresult take_heap(void *call, uint64_t *ret)
{
    static size_t heap;
    CUresult result = ((fn_cuCtxSetLimit *)call)(CU_LIMIT_MALLOC_HEAP_SIZE, heap + STEP);

    if (result == CUDA_SUCCESS)
        heap += STEP;
    *ret = 1;
    return result;
}

static CUresult give_heap(uint64_t held)
{
    (void)held;
    return FN(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 0);
}

static CUresult take_context(void *call, uint64_t *ret)
{
    CUresult result = ((fn_cuCtxCreate_v2 *)call)((CUcontext *)ret, 0, 0);
    CUcontext made;

    if (result == CUDA_SUCCESS)
        MUST(FN(cuCtxPopCurrent_v2)(&made));
    return result;
}

static CUresult take_context_v3(void *call, uint64_t *ret)
{
    CUresult result = ((fn_cuCtxCreate_v3 *)call)((CUcontext *)ret, NULL, 0, 0, 0);
    CUcontext made;

    if (result == CUDA_SUCCESS)
        MUST(FN(cuCtxPopCurrent_v2)(&made));
    return result;
}

static CUresult take_context_v4(void *call, uint64_t *ret)
{
    CUresult result = ((fn_cuCtxCreate_v4 *)call)((CUcontext *)ret, NULL, 0, 0);
    CUcontext made;

    if (result == CUDA_SUCCESS)
        MUST(FN(cuCtxPopCurrent_v2)(&made));
    return result;
}

static CUresult give_context(uint64_t held)
{
    return FN(cuCtxDestroy_v2)((CUcontext)(uintptr_t)held);
}

/* Memory nodes pay when the graph is launched, and until the card is trimmed. */
static CUresult run_graph(CUgraph graph, uint64_t *ret)
{
    CUgraphExec exec;
    CUresult result;

    MUST(FN(cuGraphInstantiate_v2)(&exec, graph, NULL, NULL, 0));
    MUST(FN(cuGraphDestroy)(graph));
    result = FN(cuGraphLaunch)(exec, stream);
    *ret = (uintptr_t)exec;
    if (result != CUDA_SUCCESS)
        MUST(FN(cuGraphExecDestroy)(exec));
    return result;
}

static int graph_nodes;

static CUresult take_graph(void *call, uint64_t *ret)
{
    CUgraph graph;
    CUgraphNode node;

    graph_nodes++;
    MUST(FN(cuGraphCreate)(&graph, 0));
    for (int i = 0; i < graph_nodes; i++) {
        CUDA_MEM_ALLOC_NODE_PARAMS params = { .bytesize = STEP };

        params.poolProps.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, 0 };
        MUST(((fn_cuGraphAddMemAllocNode *)call)(&node, graph, NULL, 0, &params));
    }
    return run_graph(graph, ret);
}

/* Behind more nodes than one would look at. */
static CUresult take_big_graph(void *call, uint64_t *ret)
{
    CUgraph graph;
    CUgraphNode node;

    graph_nodes++;
    MUST(FN(cuGraphCreate)(&graph, 0));
    for (int i = 0; i < 400; i++)
        MUST(FN(cuGraphAddEmptyNode)(&node, graph, NULL, 0));
    for (int i = 0; i < graph_nodes; i++) {
        CUDA_MEM_ALLOC_NODE_PARAMS params = { .bytesize = STEP };

        params.poolProps.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, 0 };
        MUST(((fn_cuGraphAddMemAllocNode *)call)(&node, graph, NULL, 0, &params));
    }
    return run_graph(graph, ret);
}

static CUresult take_graph_node(void *call, uint64_t *ret)
{
    CUgraph graph;
    CUgraphNode node;

    graph_nodes++;
    MUST(FN(cuGraphCreate)(&graph, 0));
    for (int i = 0; i < graph_nodes; i++) {
        CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };

        params.alloc.bytesize = STEP;
        params.alloc.poolProps.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, 0 };
        MUST(((fn_cuGraphAddNode *)call)(&node, graph, NULL, 0, &params));
    }
    return run_graph(graph, ret);
}

static CUresult take_captured(void *call, uint64_t *ret)
{
    CUgraph graph;
    CUdeviceptr pointer;

    graph_nodes++;
    MUST(((fn_cuStreamBeginCapture_v2 *)call)(stream, 0));
    for (int i = 0; i < graph_nodes; i++)
        MUST(FN(cuMemAllocAsync)(&pointer, STEP, stream));
    MUST(FN(cuStreamEndCapture)(stream, &graph));
    return run_graph(graph, ret);
}

static CUresult give_graph(uint64_t held)
{
    MUST(FN(cuGraphExecDestroy)((CUgraphExec)(uintptr_t)held));
    graph_nodes = 0;
    return FN(cuDeviceGraphMemTrim)(0);
}

static const struct row rows[] = {
    { "cuMemAlloc_v2", take_plain, give_plain, NULL },
    { "cuMemAllocPitch_v2", take_pitch, give_plain, NULL },
    { "cuMemAllocManaged", take_managed, give_plain, NULL },
    { "cuMemAllocAsync", take_async, give_async, NULL },
    { "cuMemAllocAsync_ptsz", take_async, give_async, NULL },
    { "cuMemAllocAsync", take_async, give_plain, NULL },
    { "cuMemAllocFromPoolAsync", take_from_pool, give_async, NULL },
    { "cuMemAllocFromPoolAsync_ptsz", take_from_pool, give_async, NULL },
    { "cuMemAlloc_v2", take_plain, give_async, "cuMemFreeAsync" },
    { "cuMemCreate", take_handle, give_handle, NULL },
    { "cuMemImportFromShareableHandle", take_import, give_handle, NULL },
    { "cuImportExternalMemory", take_external, give_external, NULL },
    { "cuArrayCreate_v2", take_array, give_array, NULL },
    { "cuArray3DCreate_v2", take_array_3d, give_array, NULL },
    { "cuMemMapArrayAsync", take_tile, give_tile, NULL },
    { "cuMemMapArrayAsync_ptsz", take_tile, give_tile, NULL },
    { "cuMipmappedArrayCreate", take_mipmap, give_mipmap, NULL },
    { "cuCtxSetLimit", take_heap, give_heap, NULL },
    { "cuCtxCreate", take_context, give_context, NULL },
    { "cuCtxCreate_v2", take_context, give_context, NULL },
    { "cuCtxCreate_v3", take_context_v3, give_context, NULL },
    { "cuCtxCreate_v4", take_context_v4, give_context, NULL },
    { "cuGraphAddMemAllocNode", take_graph, give_graph, NULL },
    { "cuGraphAddMemAllocNode", take_big_graph, give_graph, NULL },
    { "cuGraphAddNode", take_graph_node, give_graph, NULL },
    { "cuStreamBeginCapture_v2", take_captured, give_graph, "cuMemAllocAsync" },
};

/* Refused with their own error, whatever is free. */
static void check_denied(void)
{
    unsigned int old;
    CUarray array;

    CHECK(FN(cuMemAlloc)(&old, 4096) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(FN(cuMemAllocPitch)(&old, &old, 1, 1, 4) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(FN(cuArrayCreate)(&array, NULL) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(FN(cuArray3DCreate)(&array, NULL) == CUDA_ERROR_NOT_SUPPORTED);
    if (FN(cuCheckpointProcessCheckpoint))
        CHECK(FN(cuCheckpointProcessCheckpoint)(1, NULL) == CUDA_ERROR_NOT_PERMITTED);
}

static bool has(const char *symbol)
{
    return !symbol || dlsym(driver, symbol);
}

static void check_row(const struct row *row)
{
    void *call = dlsym(driver, row->symbol);
    uint64_t held[STEPS_MAX] = { 0 };
    size_t before = free_bytes();
    CUresult result = CUDA_SUCCESS;
    int count = 0;

    if (!call || !has(row->also)) {
        (void)printf("none %s\n", row->symbol);
        return;
    }
    while (count < STEPS_MAX && (result = row->take(call, &held[count])) == CUDA_SUCCESS)
        count++;
    if (result != CUDA_ERROR_OUT_OF_MEMORY || count < 1 || count > 4) {
        (void)printf("BAD %s: %d after %d steps of 64 MiB\n", row->symbol, (int)result, count);
        exit(1);
    }
    for (int i = 0; i < count; i++)
        MUST(row->give(held[i]));
    MUST(FN(cuCtxSynchronize)());
    if (free_bytes() != before) {
        (void)printf("BAD %s: %zu free before, %zu after\n", row->symbol, before, free_bytes());
        exit(1);
    }
    (void)printf("ok %s %d\n", row->symbol, count);
}

int main(void)
{
    const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };

    (void)start_cuda();
    MUST(FN(cuStreamCreate)(&stream, 0));
    if (FN(cuMemPoolCreate))
        MUST(FN(cuMemPoolCreate)(&pool, &props));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(&rows[i]);
    check_denied();
    return 0;
}
