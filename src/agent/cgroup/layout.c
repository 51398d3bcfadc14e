/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - which cgroup versions and controllers this machine has, and where they are mounted */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/cgroup/cgroup.h"
#include "base/fs.h"
#include "base/memory.h"
#include "base/mountinfo.h"

/* Their names in version 1 and in version 2 (NULL = needs no controller there). */
static const struct {
    const char *v1, *v2;
} controllers[CGROUP_CONTROLLERS] = {
    [CGROUP_CPU] = { "cpu", "cpu" },          [CGROUP_CPUACCT] = { "cpuacct", NULL },
    [CGROUP_CPUSET] = { "cpuset", "cpuset" }, [CGROUP_MEMORY] = { "memory", "memory" },
    [CGROUP_PIDS] = { "pids", "pids" },       [CGROUP_DEVICES] = { "devices", NULL },
    [CGROUP_BLKIO] = { "blkio", "io" },
};

/* Is 'word' one of the words between the separators? */
static bool layout_has_word(const char *text, const char *separators, const char *word)
{
    size_t len = strlen(word);

    for (text += strspn(text, separators); *text; text += strspn(text, separators)) {
        size_t part = strcspn(text, separators);

        if (part == len && memcmp(text, word, len) == 0)
            return true;
        text += part;
    }
    return false;
}

static unsigned layout_find_v1_controllers(const char *options)
{
    unsigned found = 0;

    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        if (layout_has_word(options, ",", controllers[c].v1))
            found |= 1u << c;
    return found;
}

static unsigned layout_find_v2_controllers(const char *mount)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/cgroup.controllers", mount);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    unsigned found = 0;

    if (fs_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
        return 0;
    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        if (controllers[c].v2 && layout_has_word(text.data, " \n", controllers[c].v2))
            found |= 1u << c;
    return found;
}

/* Version 2 accounts time and filters devices without a controller. */
static void layout_add_inherent(struct cgroup_layout *layout)
{
    static const enum cgroup_controller inherent[] = { CGROUP_CPUACCT, CGROUP_DEVICES };

    for (size_t i = 0; i < AQ_COUNT(inherent); i++) {
        bool is_found = cgroup_find(layout, inherent[i]) != NULL;

        for (size_t j = 0; !is_found && j < layout->count; j++)
            if (layout->items[j].is_v2)
                layout->items[j].controllers |= 1u << inherent[i];
    }
}

static void layout_read_line(char *line, const char *root, struct cgroup_layout *layout)
{
    struct cgroup_hierarchy *h = &layout->items[layout->count];
    struct mountinfo mount;

    if (layout->count == CGROUP_HIERARCHIES_MAX || !mountinfo_parse(line, &mount)
        || (strcmp(mount.type, "cgroup") != 0 && strcmp(mount.type, "cgroup2") != 0))
        return;
    *h = (struct cgroup_hierarchy){ .mount = aq_format("%s%s", root, mount.path),
                                    .is_v2 = strcmp(mount.type, "cgroup2") == 0 };
    h->controllers = h->is_v2 ? layout_find_v2_controllers(h->mount)
                              : layout_find_v1_controllers(mount.options);
    layout->count++;
}

int cgroup_layout_read(const char *mountinfo, const char *root, struct cgroup_layout *ret,
                       struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *copy = aq_strdup(mountinfo);
    struct cgroup_layout layout = { .count = 0 };
    char *at = copy, *line;

    while ((line = strsep(&at, "\n")))
        layout_read_line(line, root, &layout);
    if (layout.count == 0)
        return aq_fail(err, ENOENT, "no cgroups are mounted");
    layout_add_inherent(&layout);
    *ret = layout;
    return 0;
}

void cgroup_layout_done(struct cgroup_layout *layout)
{
    for (size_t i = 0; i < layout->count; i++) {
        free(layout->items[i].mount);
        free(layout->items[i].parent);
    }
    *layout = (struct cgroup_layout){ .count = 0 };
}

const struct cgroup_hierarchy *cgroup_find(const struct cgroup_layout *layout,
                                           enum cgroup_controller controller)
{
    for (size_t i = 0; i < layout->count; i++)
        if (layout->items[i].controllers & 1u << controller)
            return &layout->items[i];
    return NULL;
}

const struct cgroup_hierarchy *cgroup_find_v2(const struct cgroup_layout *layout)
{
    for (size_t i = 0; i < layout->count; i++)
        if (layout->items[i].is_v2)
            return &layout->items[i];
    return NULL;
}

const char *cgroup_layout_name(const struct cgroup_layout *layout)
{
    bool has_v1 = false, has_v2 = cgroup_find_v2(layout) != NULL;

    for (size_t i = 0; i < layout->count; i++)
        has_v1 |= !layout->items[i].is_v2;
    return has_v1 && has_v2 ? "hybrid" : has_v2 ? "version 2" : "version 1";
}
