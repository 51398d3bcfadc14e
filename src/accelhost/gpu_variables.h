/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_variables.h - variables that tell a session's program about its GPUs
 *
 * Images made for Backend.AI count and size their accelerators by them. The
 * devices are those of the first kind that the session has, numbered from 0
 * in the order in which the program sees them:
 *
 *     GPU_TYPE=cuda
 *     GPU_MODEL_NAME=NVIDIA H100
 *     GPU_CONFIG=0:4g,1:4g
 *     TF_GPU_MEMORY_ALLOC=0:4096,1:4096    (MiB)
 *     GPU_COUNT=2
 *     N_GPUS=2
 *
 * Without accelerators the last two are 0, and all that there are.
 *
 * Other variables about GPUs are not made here, because only others know them:
 *
 * - what a vendor's libraries need (LD_LIBRARY_PATH, NVIDIA_VISIBLE_DEVICES=void)
 *   is said by the plugin of the device or its CDI specification: accel_attachment.environ;
 * - a choice among devices (CUDA_VISIBLE_DEVICES) is made by images and users; one that names
 *   devices of others is left out: model/device_variable.h;
 * - `aliquot gpu run`, which has no session, sets what its library needs: gpuhost/run_command.c.
 */
#ifndef AQ_ACCELHOST_GPU_VARIABLES_H
#define AQ_ACCELHOST_GPU_VARIABLES_H

#include "accelhost/accel.h"

#define GPU_VARIABLES_MAX 6

/* How many devices GPU_COUNT tells of. */
size_t gpu_variables_count_devices(const struct accel_attachment *attachment);

/* The variables, with values in the arena or of the attachment. How many. */
size_t gpu_variables_make(const struct accel_attachment *attachment, struct arena *arena,
                          struct text_pair ret[GPU_VARIABLES_MAX]);

#endif
