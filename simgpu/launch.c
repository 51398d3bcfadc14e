/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - every way to start a GPU kernel */
#include "cuda.h"

int64_t sim_duration(CUfunction function, void **params)
{
    if (function->fixed_ns >= 0)
        return function->fixed_ns;
    return params && params[0] ? *(const int64_t *)params[0] : 0;
}

CUresult sim_launch_ns(int64_t ns, uint64_t blocks, CUstream stream)
{
    struct sim_faults *faults = &sim_card()->faults;
    struct sim_item item = { .kind = SIM_KERNEL,
                             .left_ns = ns,
                             .blocks = blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks };

    if (faults->launch_every
        && __atomic_add_fetch(&faults->launch_count, 1, __ATOMIC_RELAXED) % faults->launch_every
               == 0)
        return CUDA_ERROR_LAUNCH_FAILED;
    if (ns > 0)
        (void)sim_push((uint32_t)sim_device_of(stream), sim_queue_of(stream), &item);
    return CUDA_SUCCESS;
}

CUresult sim_launch(CUfunction function, uint64_t blocks, CUstream stream, void **params)
{
    if (!sim_context())
        return sim_is_ready() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_NOT_INITIALIZED;
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sim_capture_of(stream))
        return sim_graph_add_kernel(sim_capture_of(stream), function, blocks, params);
    return sim_launch_ns(sim_duration(function, params), blocks, stream);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared, CUstream stream, void **params,
                        void **extra)
{
    (void)block_x;
    (void)block_y;
    (void)block_z;
    (void)shared;
    (void)extra;
    return sim_launch(function, (uint64_t)grid_x * grid_y * grid_z, stream, params);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra)
{
    (void)extra;
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_launch(function, (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
                      config->hStream, params);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared, CUstream stream,
                                   void **params)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                          stream, params, NULL);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int count,
                                              unsigned int flags)
{
    CUresult result = list && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    (void)flags;
    for (unsigned int i = 0; result == CUDA_SUCCESS && i < count; i++)
        result = sim_launch(list[i].function,
                            (uint64_t)list[i].gridDimX * list[i].gridDimY * list[i].gridDimZ,
                            list[i].hStream, list[i].kernelParams);
    return result;
}

CUresult cuLaunch(CUfunction function)
{
    return sim_launch(function, 1, NULL, NULL);
}

CUresult cuLaunchGrid(CUfunction function, int width, int height)
{
    return sim_launch(function, (uint64_t)width * (uint64_t)height, NULL, NULL);
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    return sim_launch(function, (uint64_t)width * (uint64_t)height, stream, NULL);
}
