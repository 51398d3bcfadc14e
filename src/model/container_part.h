/* SPDX-License-Identifier: Apache-2.0 */
/* container_part.h - what a container is given of its node: mounts, devices, hooks
 *
 * Plain data between the plugins of accelerators (accelhost/) and who starts the container. All
 * paths are absolute; everything is borrowed.
 */
#ifndef AQ_MODEL_CONTAINER_PART_H
#define AQ_MODEL_CONTAINER_PART_H

#include <stdbool.h>
#include <stdint.h>

struct container_mount {
    const char *source, *target; /* on the node, inside */
    bool may_write;
};

struct container_device {
    const char *source, *target; /* a device node on the node; its path inside */
    bool may_read, may_write, may_mknod;
};

struct container_hook { /* run by the OCI runtime before it enters the container's root */
    const char *path;
    const char *const *args, *const *env; /* NULL-terminated; NULL = the path alone, none */
    int64_t timeout;                      /* seconds; 0 = none */
};

#endif
