/* SPDX-License-Identifier: Apache-2.0 */
/* uuid.h - how drivers name devices: "GPU-513a5f0e-7721-...", or "MIG-..." */
#ifndef AQ_GPU_UUID_H
#define AQ_GPU_UUID_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_UUID_TEXT_MAX 41

/* With or without what stands before the first '-' of such a name. False = no UUID, and
 * 'ret' holds anything.
 */
bool gpu_uuid_read(const char *text, uint8_t ret[16]);

/* "GPU-..."; returns 'ret'. Its first 12 bytes tell the devices of a machine apart. */
char *gpu_uuid_write(const uint8_t uuid[16], char ret[GPU_UUID_TEXT_MAX]);

#endif
