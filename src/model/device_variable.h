/* SPDX-License-Identifier: Apache-2.0 */
/* device_variable.h - environment variables that choose among accelerators
 *
 * Images and users set them for machines that they have to themselves
 * (NVIDIA_VISIBLE_DEVICES=all). A session has what it was granted, numbered from 0, so only a value
 * that names some of that, or nothing, can be meant for it.
 */
#ifndef AQ_MODEL_DEVICE_VARIABLE_H
#define AQ_MODEL_DEVICE_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Tells programs, and the runner, how many accelerators a session has; those that tell
 * more are in accelhost/gpu_variables.h.
 */
#define DEVICE_COUNT_VARIABLE "GPU_COUNT"

/* Does the variable, "NAME=value", name anything but the first 'count' devices? False for all
 * other variables.
 */
bool device_variable_exceeds(const char *variable, size_t count);

#endif
