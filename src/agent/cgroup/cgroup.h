/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - where the cgroups of kernels are, and what is written there
 *
 * Version 1, version 2 and both together ("hybrid": version 2 without or with
 * few controllers beside version 1) look the same to callers: a layout is
 * found once, a plan turns limits into directories and files, and the monitor
 * carries it out (monitor/sandbox.h). Each kernel has one cgroup below one
 * parent of the agent's, "PARENT/INSTANCE/KERNEL", in every hierarchy.
 * Files and values: Linux, Documentation/admin-guide/cgroup-v1/ and cgroup-v2.rst.
 */
#ifndef AQ_AGENT_CGROUP_CGROUP_H
#define AQ_AGENT_CGROUP_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/uuid.h"

enum cgroup_controller {
    CGROUP_CPU,
    CGROUP_CPUACCT,
    CGROUP_CPUSET,
    CGROUP_MEMORY,
    CGROUP_PIDS,
    CGROUP_DEVICES, /* version 2 has a filter instead, which is always there */
    CGROUP_BLKIO,   /* "io" in version 2 */
    CGROUP_CONTROLLERS
};

#define CGROUP_HIERARCHIES_MAX 24

struct cgroup_hierarchy {
    char *mount; /* absolute path */
    bool is_v2;
    unsigned controllers; /* 1u << enum cgroup_controller */
    char *parent; /* our directory in it; NULL before cgroup_prepare(), or if it cannot be */
};

struct cgroup_layout {
    struct cgroup_hierarchy items[CGROUP_HIERARCHIES_MAX];
    size_t count;
};

/* Read the text of /proc/self/mountinfo. 'root' is put before every mount
 * point ("" = none; tests have a tree of their own). -ENOENT if no cgroups
 * are mounted.
 */
int cgroup_layout_read(const char *mountinfo, const char *root, struct cgroup_layout *ret,
                       struct aq_error *err);
void cgroup_layout_done(struct cgroup_layout *layout);

/* The hierarchy that has the controller, or NULL. */
const struct cgroup_hierarchy *cgroup_find(const struct cgroup_layout *layout,
                                           enum cgroup_controller controller);
/* The hierarchy of version 2, with or without controllers, or NULL. */
const struct cgroup_hierarchy *cgroup_find_v2(const struct cgroup_layout *layout);

/* "version 1", "version 2" or "hybrid". */
const char *cgroup_layout_name(const struct cgroup_layout *layout);

/* Make 'path' ("/aliquot/1a2b3c4d") in every hierarchy and let kernels below
 * it be limited. What cannot be limited is named in 'missing' ("memory, pids").
 */
void cgroup_prepare(struct cgroup_layout *layout, const char *path, struct strbuf *missing);

/* Kernels that have a cgroup below our parent: kill and remove those for which
 * is_known() is false. Returns how many there were.
 */
int cgroup_sweep(const struct cgroup_layout *layout,
                 bool (*is_known)(void *data, const struct uuid *kernel), void *data);

/* Remove our parents if nothing is below them. */
void cgroup_leave(const struct cgroup_layout *layout);

/* ---- a kernel ---- */

struct cgroup_limits {
    const char *cpus;           /* "0,2-3"; NULL = all */
    int64_t cpu_micro;          /* millionths of a core; 0 = no limit */
    int64_t memory_bytes;       /* without swap beyond it; 0 = no limit */
    uint64_t pids_max;          /* 0 = no limit */
    const char *const *devices; /* NULL-terminated "c 1:3 rwm"; NULL = no limit */
};

/* Append "cgroup=", "limit=" and "device=" entries of a monitor's 'program'
 * for the kernel named 'name'.
 */
void cgroup_plan(const struct cgroup_layout *layout, const char *name,
                 const struct cgroup_limits *limits, struct strbuf *out);

/* "/aliquot/1a2b3c4d/NAME" as it is named in all hierarchies; caller frees.
 * NULL if there is none.
 */
char *cgroup_path(const struct cgroup_layout *layout, const char *name);

#endif
