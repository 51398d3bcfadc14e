/* SPDX-License-Identifier: Apache-2.0 */
/* launch_fast_path.h - launches that need not enter their hook
 *
 * The exported entry points of launches ask here first (the hooks marked '?'
 * in hooks.def). Where no time is limited, or the launch is paid from this
 * process's credit, they jump to the driver with the arguments as they are;
 * only the others go to their hook. Launches of GPU kernels are counted here.
 */
#ifndef AQ_GPU_LAUNCH_FAST_PATH_H
#define AQ_GPU_LAUNCH_FAST_PATH_H

#include "gpu/throttle.h"

static inline bool fast_path_launch(CUfunction function, uint64_t blocks, uint64_t threads)
{
    gpu_region_count_launches(1);
    return !throttle_is_on() || throttle_try_credit(launch_cost_key(function, blocks, threads));
}

static inline bool fast_path_launch_kernel(CUfunction function, unsigned int grid_x,
                                           unsigned int grid_y, unsigned int grid_z,
                                           unsigned int block_x, unsigned int block_y,
                                           unsigned int block_z, unsigned int shared,
                                           CUstream stream, void **params, void **extra)
{
    (void)shared;
    (void)stream;
    (void)params;
    (void)extra;
    return fast_path_launch(function, (uint64_t)grid_x * grid_y * grid_z,
                            (uint64_t)block_x * block_y * block_z);
}

static inline bool fast_path_launch_kernel_ex(const CUlaunchConfig *config, CUfunction function,
                                              void **params, void **extra)
{
    (void)params;
    (void)extra;
    return !config
           || fast_path_launch(function,
                               (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
                               (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ);
}

static inline bool fast_path_launch_cooperative(CUfunction function, unsigned int grid_x,
                                                unsigned int grid_y, unsigned int grid_z,
                                                unsigned int block_x, unsigned int block_y,
                                                unsigned int block_z, unsigned int shared,
                                                CUstream stream, void **params)
{
    return fast_path_launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                   shared, stream, params, NULL);
}

/* Executable graphs with memory nodes: most programs have none. */
extern int graph_with_memory;

static inline uint64_t launch_cost_graph_key(CUgraphExec exec)
{
    return launch_cost_key(exec, 0, 1);
}

static inline bool fast_path_graph_launch(CUgraphExec exec, CUstream stream)
{
    (void)stream;
    return !__atomic_load_n(&graph_with_memory, __ATOMIC_RELAXED)
           && (!throttle_is_on() || throttle_try_credit(launch_cost_graph_key(exec)));
}

#endif
