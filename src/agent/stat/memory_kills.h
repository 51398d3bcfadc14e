/* SPDX-License-Identifier: Apache-2.0 */
/* memory_kills.h - what Linux has killed in a container for want of memory
 *
 * Files: Linux, Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
 */
#ifndef AQ_AGENT_STAT_MEMORY_KILLS_H
#define AQ_AGENT_STAT_MEMORY_KILLS_H

#include "agent/cgroup/cgroup.h"

struct memory_kills {
    uint64_t count;
    uint64_t limit_bytes; /* 0 = none */
};

/* 'name' is that of the container's cgroups; all is 0 of one that has none. */
struct memory_kills memory_kills_read(const struct cgroup_layout *cgroups, const char *name);

#endif
