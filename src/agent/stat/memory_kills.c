/* SPDX-License-Identifier: Apache-2.0 */
/* memory_kills.c - what Linux has killed in a container for want of memory */
#include "agent/stat/memory_kills.h"

#include "agent/stat/stat_file.h"

#define TEXT_MAX 1024
#define UNLIMITED 0x7fffffffffff0000 /* from here on version 1 means no limit */

static bool memory_kills_read_file(const struct cgroup_hierarchy *h, const char *name,
                                   const char *file, char text[TEXT_MAX])
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s/%s", h->parent, name, file);
    AQ_CLEANUP(aq_closep) int fd = stat_file_open(path);

    return fd >= 0 && stat_file_read(fd, text, TEXT_MAX);
}

static uint64_t memory_kills_count(const struct cgroup_hierarchy *h, const char *name,
                                   const char *file)
{
    uint64_t count = 0;
    char text[TEXT_MAX];

    if (memory_kills_read_file(h, name, file, text))
        (void)stat_file_find(text, "oom_kill", &count);
    return count;
}

struct memory_kills memory_kills_read(const struct cgroup_layout *cgroups, const char *name)
{
    const struct cgroup_hierarchy *h = cgroup_find(cgroups, CGROUP_MEMORY);
    struct memory_kills kills = { 0 };
    char text[TEXT_MAX];
    uint64_t limit;

    if (!h || !h->parent)
        return kills;
    if (h->is_v2)
        kills.count = memory_kills_count(h, name, "memory.events");
    else /* counted where the killed one was; runc has a cgroup of its own inside */
        kills.count = memory_kills_count(h, name, "memory.oom_control")
                      + memory_kills_count(h, name, "container/memory.oom_control");
    if (memory_kills_read_file(h, name, h->is_v2 ? "memory.max" : "memory.limit_in_bytes", text)
        && stat_file_number(text, &limit) && limit < UNLIMITED)
        kills.limit_bytes = limit;
    return kills;
}
