/* SPDX-License-Identifier: Apache-2.0 */
/* rdma.h - InfiniBand and RoCE devices of this node that sessions may use
 *
 * /sys/class/infiniband has a directory for each ("mlx5_0"); /sys/class/infiniband_verbs/uverbsN/ibdev
 * names the device whose verbs go through /dev/infiniband/uverbsN. Connections by address need
 * rdma_cm besides, which all share. Devices that manage the fabric (umad, issm) are never given.
 */
#ifndef AQ_AGENT_NET_RDMA_H
#define AQ_AGENT_NET_RDMA_H

#include "base/arena.h"
#include "base/error.h"
#include "base/lists.h"

#define RDMA_ALL "all"
#define RDMA_CLASS "/sys/class/infiniband"

/* Zeroed: none. Texts are in the arena. */
struct rdma_devices {
    struct arena arena;
    struct str_list names;  /* "mlx5_0", sorted */
    struct str_list nodes;  /* paths on this node, of all of them */
    struct str_list inside; /* the same in a container: "/dev/infiniband/uverbs0" */
};

/* Those of 'wanted' (names, or RDMA_ALL), below 'root', which stands for "/"; "" = it. -ENODEV
 * names what is missing: a device, or its file in /dev. Blocks for some file reads.
 */
int rdma_find(const char *root, const char *const *wanted, size_t wanted_count,
              struct rdma_devices *ret, struct aq_error *err);
void rdma_devices_done(struct rdma_devices *devices);

#endif
