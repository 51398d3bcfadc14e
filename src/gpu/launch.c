/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - every way to start a GPU kernel, and the calls after which work is done */
#include "gpu/hooks.h"
#include "gpu/shared_alloc.h"
#include "gpu/pool.h"
#include "gpu/throttle.h"

/* Stream 0 of the form for a default stream per thread is another stream. */
#define STREAM_OF(real, symbol, stream) \
    ((stream) || (real) != gpu_real.symbol##_ptsz ? (stream) : CU_STREAM_PER_THREAD)

CUresult on_launch_kernel(fn_cuLaunchKernel *real, CUfunction function, unsigned int grid_x,
                          unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                          unsigned int block_y, unsigned int block_z, unsigned int shared,
                          CUstream stream, void **params, void **extra)
{
    struct throttle_launch launch;
    CUresult result;

    throttle_begin(&launch,
                   launch_cost_key(function, (uint64_t)grid_x * grid_y * grid_z,
                                   (uint64_t)block_x * block_y * block_z),
                   STREAM_OF(real, cuLaunchKernel, stream));
    result = real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                  params, extra);
    throttle_end(&launch, result);
    return result;
}

CUresult on_launch_kernel_ex(fn_cuLaunchKernelEx *real, const CUlaunchConfig *config,
                             CUfunction function, void **params, void **extra)
{
    struct throttle_launch launch;
    CUresult result;

    if (!config)
        return real(config, function, params, extra);
    throttle_begin(
        &launch,
        launch_cost_key(function, (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
                        (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ),
        STREAM_OF(real, cuLaunchKernelEx, config->hStream));
    result = real(config, function, params, extra);
    throttle_end(&launch, result);
    return result;
}

CUresult on_launch_cooperative(fn_cuLaunchCooperativeKernel *real, CUfunction function,
                               unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                               unsigned int block_x, unsigned int block_y, unsigned int block_z,
                               unsigned int shared, CUstream stream, void **params)
{
    struct throttle_launch launch;
    CUresult result;

    throttle_begin(&launch,
                   launch_cost_key(function, (uint64_t)grid_x * grid_y * grid_z,
                                   (uint64_t)block_x * block_y * block_z),
                   STREAM_OF(real, cuLaunchCooperativeKernel, stream));
    result = real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                  params);
    throttle_end(&launch, result);
    return result;
}

/* One GPU kernel on several devices: paid where the calling thread is. */
CUresult on_launch_multi_device(fn_cuLaunchCooperativeKernelMultiDevice *real,
                                CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags)
{
    struct throttle_launch launch;
    CUresult result;

    if (!list || !count)
        return real(list, count, flags);
    gpu_region_count_launches(count);
    throttle_begin(&launch,
                   launch_cost_key(list->function,
                                   (uint64_t)list->gridDimX * list->gridDimY * list->gridDimZ,
                                   (uint64_t)list->blockDimX * list->blockDimY * list->blockDimZ),
                   list->hStream);
    result = real(list, count, flags);
    throttle_end(&launch, result);
    return result;
}

CUresult on_launch_old(fn_cuLaunch *real, CUfunction function)
{
    struct throttle_launch launch;
    CUresult result;

    gpu_region_count_launches(1);
    throttle_begin(&launch, launch_cost_key(function, 1, 0), NULL);
    result = real(function);
    throttle_end(&launch, result);
    return result;
}

CUresult on_launch_grid(fn_cuLaunchGrid *real, CUfunction function, int width, int height)
{
    struct throttle_launch launch;
    CUresult result;

    gpu_region_count_launches(1);
    throttle_begin(&launch, launch_cost_key(function, (uint64_t)width * (uint64_t)height, 0), NULL);
    result = real(function, width, height);
    throttle_end(&launch, result);
    return result;
}

CUresult on_launch_grid_async(fn_cuLaunchGridAsync *real, CUfunction function, int width,
                              int height, CUstream stream)
{
    struct throttle_launch launch;
    CUresult result;

    gpu_region_count_launches(1);
    throttle_begin(&launch, launch_cost_key(function, (uint64_t)width * (uint64_t)height, 0),
                   stream);
    result = real(function, width, height, stream);
    throttle_end(&launch, result);
    return result;
}

static CUresult launch_after_wait(int64_t begin_ns, CUresult result)
{
    throttle_wait_end(begin_ns);
    pool_settle();
    shared_alloc_sync();
    return result;
}

CUresult on_ctx_synchronize(fn_cuCtxSynchronize *real)
{
    int64_t begin = throttle_wait_begin();

    return launch_after_wait(begin, real());
}

CUresult on_ctx_synchronize_v2(fn_cuCtxSynchronize_v2 *real, CUcontext context)
{
    int64_t begin = throttle_wait_begin();

    return launch_after_wait(begin, real(context));
}

CUresult on_stream_synchronize(fn_cuStreamSynchronize *real, CUstream stream)
{
    int64_t begin = throttle_wait_begin();

    return launch_after_wait(begin, real(stream));
}

CUresult on_event_synchronize(fn_cuEventSynchronize *real, CUevent event)
{
    int64_t begin = throttle_wait_begin();

    return launch_after_wait(begin, real(event));
}

CUresult on_stream_destroy(fn_cuStreamDestroy *real, CUstream stream)
{
    CUresult result = real(stream);

    if (throttle_is_on())
        throttle_settle();
    return result;
}
