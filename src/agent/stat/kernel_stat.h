/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_stat.h - what one container uses, by its cgroups and its network
 *
 * The files stay open as long as the container lives. Files and fields: Linux,
 * Documentation/admin-guide/cgroup-v1/ (cpuacct, memory, blkio-controller) and
 * cgroup-v2.rst.
 */
#ifndef AQ_AGENT_STAT_KERNEL_STAT_H
#define AQ_AGENT_STAT_KERNEL_STAT_H

#include "agent/cgroup/cgroup.h"
#include "agent/stat/sample.h"

struct kernel_stat;

struct kernel_stat_conf {
    const struct cgroup_layout *cgroups;
    const char *name;      /* of its cgroups */
    const char *link;      /* the node's end of its network; NULL = it has none */
    const char *root;      /* before /sys; "" = none */
    const char *scratch;   /* file of the space that it may write to; NULL = it has no such */
    int64_t scratch_bytes; /* size of that */
};

/* What is not there is not measured. -ENOENT if none of its cgroups is there
 * (yet), 'conf' is not needed afterwards.
 */
int kernel_stat_open(const struct kernel_stat_conf *conf, struct kernel_stat **ret,
                     struct aq_error *err);
/* NULL is fine. */
void kernel_stat_free(struct kernel_stat *stat);
AQ_DEFINE_CLEANUP(struct kernel_stat, kernel_stat_free)

/* Add the values of the kernel that the sample has begun. */
void kernel_stat_sample(const struct kernel_stat *stat, struct sample *sample);

/* Its processes, at most 'max': how many. */
size_t kernel_stat_pids(const struct kernel_stat *stat, int32_t *pids, size_t max);

#endif
