/* SPDX-License-Identifier: Apache-2.0 */
/* manage.c - the agent's own cgroups: made at the start, swept of what is left */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cgroup/cgroup.h"
#include "base/fs.h"
#include "base/memory.h"
#include "base/vec.h"
#include "monitor/cgroup.h"

static int manage_write_file(const char *directory, const char *name, const char *value)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", directory, name);
    AQ_CLEANUP(aq_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

static int manage_read_file(const char *directory, const char *name, struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", directory, name);
    int r = fs_read(AT_FDCWD, path, 4096, out, NULL);

    while (out->len && out->data[out->len - 1] == '\n')
        strbuf_truncate(out, out->len - 1);
    return r;
}

/* ---- our parent ---- */

/* Cores and memory nodes of the directory above, unless it has its own already. */
static void manage_inherit(const char *above, const char *directory, const char *file)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf own = STRBUF_INIT, theirs = STRBUF_INIT;

    if (manage_read_file(directory, file, &own) == 0 && own.len == 0
        && manage_read_file(above, file, &theirs) == 0)
        (void)manage_write_file(directory, file, theirs.data);
}

/* Let the directories below 'directory' be limited; returns what is possible there. */
static unsigned manage_delegate(const struct cgroup_hierarchy *h, const char *directory)
{
    static const struct {
        const char *name;
        unsigned controllers;
    } wanted[] = {
        { "+cpu", 1u << CGROUP_CPU },       { "+cpuset", 1u << CGROUP_CPUSET },
        { "+memory", 1u << CGROUP_MEMORY }, { "+pids", 1u << CGROUP_PIDS },
        { "+io", 1u << CGROUP_BLKIO },
    };
    unsigned possible = h->controllers & (1u << CGROUP_CPUACCT | 1u << CGROUP_DEVICES);

    for (size_t i = 0; i < AQ_COUNT(wanted); i++)
        if ((h->controllers & wanted[i].controllers)
            && manage_write_file(directory, "cgroup.subtree_control", wanted[i].name) == 0)
            possible |= wanted[i].controllers;
    return possible;
}

/* One level of our path: 'above' exists, 'directory' is below it. */
static int manage_make_level(struct cgroup_hierarchy *h, const char *above, const char *directory)
{
    if (h->is_v2)
        h->controllers &= manage_delegate(h, above);
    if (mkdir(directory, 0755) < 0 && errno != EEXIST)
        return -errno;
    if (h->controllers & 1u << CGROUP_CPUSET && !h->is_v2) {
        manage_inherit(above, directory, "cpuset.cpus");
        manage_inherit(above, directory, "cpuset.mems");
        (void)manage_write_file(directory, "cgroup.clone_children", "1");
    }
    return 0;
}

static void manage_make_parent(struct cgroup_hierarchy *h, const char *path)
{
    AQ_CLEANUP(aq_freep) char *above = aq_strdup(h->mount);
    AQ_CLEANUP(aq_freep) char *parent = aq_format("%s%s", h->mount, path);
    int r = 0;

    for (char *slash = parent + strlen(h->mount); r == 0 && slash;) {
        char *next = strchr(slash + 1, '/');

        if (next)
            *next = '\0';
        r = manage_make_level(h, above, parent);
        free(above);
        above = aq_strdup(parent);
        if (next)
            *next = '/';
        slash = next;
    }
    if (r == 0 && h->is_v2)
        h->controllers &= manage_delegate(h, parent);
    if (r == 0)
        h->parent = AQ_TAKE(parent);
}

static void manage_name_missing(const struct cgroup_layout *layout, struct strbuf *missing)
{
    static const struct {
        enum cgroup_controller controller;
        const char *name;
    } needed[] = { { CGROUP_CPU, "processor time" },
                   { CGROUP_CPUSET, "cores" },
                   { CGROUP_MEMORY, "memory" },
                   { CGROUP_PIDS, "processes" },
                   { CGROUP_DEVICES, "devices" } };

    for (size_t i = 0; i < AQ_COUNT(needed); i++) {
        const struct cgroup_hierarchy *h = cgroup_find(layout, needed[i].controller);

        if (!h || !h->parent)
            strbuf_addf(missing, "%s%s", missing->len ? ", " : "", needed[i].name);
    }
}

void cgroup_prepare(struct cgroup_layout *layout, const char *path, struct strbuf *missing)
{
    for (size_t i = 0; i < layout->count; i++)
        manage_make_parent(&layout->items[i], path);
    manage_name_missing(layout, missing);
}

/* ---- kernels ---- */

struct manage_sweep {
    const struct cgroup_layout *layout;
    bool (*is_known)(void *data, const struct uuid *kernel);
    void *data;
    int count;
};

static void manage_add_directory(struct sandbox *sandbox, const char *parent, const char *name)
{
    struct texts *list = &sandbox->cgroups;

    vec_grow(&list->items, &list->cap, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = aq_format("%s/%s", parent, name);
}

/* In all hierarchies at once: what is killed in one may be in another still. */
static void manage_end_kernel(const struct manage_sweep *sweep, const char *name)
{
    struct sandbox sandbox = { .stage = NULL };

    for (size_t i = 0; i < sweep->layout->count; i++)
        if (sweep->layout->items[i].parent)
            manage_add_directory(&sandbox, sweep->layout->items[i].parent, name);
    cgroups_end(&sandbox);
    for (size_t i = 0; i < sandbox.cgroups.count; i++)
        free(sandbox.cgroups.items[i]);
    free(sandbox.cgroups.items);
}

static void manage_sweep_directory(struct manage_sweep *sweep, const char *parent)
{
    DIR *dir = opendir(parent);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct uuid id;

        if (uuid_parse(entry->d_name, &id) < 0 || sweep->is_known(sweep->data, &id))
            continue;
        manage_end_kernel(sweep, entry->d_name);
        sweep->count++;
    }
    if (dir)
        (void)closedir(dir);
}

int cgroup_sweep(const struct cgroup_layout *layout,
                 bool (*is_known)(void *data, const struct uuid *kernel), void *data)
{
    struct manage_sweep sweep = { .layout = layout, .is_known = is_known, .data = data };

    for (size_t i = 0; i < layout->count; i++)
        if (layout->items[i].parent)
            manage_sweep_directory(&sweep, layout->items[i].parent);
    return sweep.count;
}

void cgroup_leave(const struct cgroup_layout *layout)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct cgroup_hierarchy *h = &layout->items[i];
        AQ_CLEANUP(aq_freep) char *path = aq_strdup(h->parent);
        char *slash;

        /* the directories above are left to other agents, unless they are empty too */
        while (strlen(path) > strlen(h->mount) && rmdir(path) == 0 && (slash = strrchr(path, '/')))
            *slash = '\0';
    }
}
