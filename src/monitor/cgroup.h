/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - the cgroups of a container: made, joined, emptied, removed
 *
 * Nothing here knows how a limit is called in which version of cgroups: the
 * agent names directories and the files to write. Only what the kernel reports of
 * memory is read in both forms (Linux, Documentation/admin-guide/cgroup-v1/
 * memory.rst and cgroup-v2.rst).
 */
#ifndef AQ_MONITOR_CGROUP_H
#define AQ_MONITOR_CGROUP_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "monitor/sandbox.h"

/* Make the directories, those of a former try included, and write the limits. */
int cgroups_make(const struct sandbox *sandbox, struct aq_error *err);

/* fork(), with the child in the directory of version 2 from its first moment, if
 * the kernel can do that: *ret_is_inside then. The other directories wait for
 * cgroups_join(). The caller has one thread.
 */
pid_t cgroups_fork(const struct sandbox *sandbox, bool *ret_is_inside);

/* Move the calling process, which has one thread, into all of them but that of
 * version 2 if it 'is_inside', and forbid all devices but those of the
 * container from then on. After cgroups_fork().
 */
int cgroups_join(const struct sandbox *sandbox, bool is_inside, struct aq_error *err);

/* SIGKILL to every process in them until there is none. */
void cgroups_kill(const struct sandbox *sandbox);

/* The same, and remove the directories with what is below them. */
void cgroups_end(const struct sandbox *sandbox);

struct memory_use {
    int64_t peak_bytes, limit_bytes; /* -1 = not known */
    bool was_short;                  /* the kernel killed for want of memory */
};

/* A descriptor that becomes readable when memory is short, or -1: then
 * memory.events tells afterwards.
 */
int cgroups_watch_memory(const struct sandbox *sandbox);
/* 'watch' is the descriptor. */
struct memory_use cgroups_get_memory(const struct sandbox *sandbox, int watch);

#endif
