/* SPDX-License-Identifier: Apache-2.0 */
/* rdma.h - InfiniBand and RoCE devices of this node that sessions may use
 *
 * /sys/class/infiniband has a directory for each device ("mlx5_0").
 * /sys/class/infiniband_verbs/uverbsN/ibdev names the device of /dev/infiniband/uverbsN. All
 * devices share /dev/infiniband/rdma_cm, which connections by address need. Files that manage the
 * fabric (umad, issm) are never passed to containers.
 */
#ifndef AQ_AGENT_NET_RDMA_H
#define AQ_AGENT_NET_RDMA_H

#include "base/arena.h"
#include "base/error.h"
#include "base/lists.h"

#define RDMA_ALL "all"
#define RDMA_CLASS "/sys/class/infiniband"

/* Zeroed = no devices. Texts are in the arena. */
struct rdma_devices {
    struct arena arena;
    struct str_list names;  /* "mlx5_0", sorted */
    struct str_list nodes;  /* paths of all device files on this node */
    struct str_list inside; /* the same in a container: "/dev/infiniband/uverbs0" */
};

/* Find the devices in 'wanted' (names, or RDMA_ALL). 'root' is prepended to all paths, "" in
 * production. -ENODEV: a device, or its file in /dev, is missing. Blocks for a few file reads.
 */
int rdma_find(const char *root, const char *const *wanted, size_t wanted_count,
              struct rdma_devices *ret, struct aq_error *err);
void rdma_devices_done(struct rdma_devices *devices);

#endif
