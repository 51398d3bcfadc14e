/* SPDX-License-Identifier: Apache-2.0 */
/* rdma.c - InfiniBand and RoCE devices of this node that sessions may use */
#include "agent/net/rdma.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"
#include "model/cluster_network.h"

#define VERBS_CLASS "/sys/class/infiniband_verbs"
#define NODES "/dev/infiniband"

static void rdma_add_text(struct rdma_devices *devices, struct str_list *list, const char *text)
{
    const char *copy = arena_strdup(&devices->arena, text);

    (void)arena_append(&devices->arena, &list->items, &list->count, &copy, sizeof(copy));
}

static bool rdma_has(const struct str_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], name) == 0)
            return true;
    return false;
}

static int rdma_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Entries of a directory that are valid device names, sorted; empty if the directory is missing. */
static void rdma_list(struct rdma_devices *devices, const char *path, struct str_list *ret)
{
    DIR *dir = opendir(path);

    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && cluster_network_is_device(entry->d_name))
            rdma_add_text(devices, ret, entry->d_name);
    if (dir)
        (void)closedir(dir);
    if (ret->count)
        qsort(ret->items, ret->count, sizeof(*ret->items), rdma_compare);
}

static int rdma_add_node(struct rdma_devices *devices, const char *root, const char *name,
                         struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *node = aq_format("%s" NODES "/%s", root, name);

    if (access(node, F_OK) < 0)
        return aq_fail(err, ENODEV, "'%s' does not exist; load the module ib_uverbs or rdma_ucm",
                       node);
    rdma_add_text(devices, &devices->nodes, node);
    rdma_add_text(devices, &devices->inside, node + strlen(root));
    return 0;
}

/* Finds the uverbs file of the device. */
static int rdma_add_verbs(struct rdma_devices *devices, const char *root, const char *name,
                          const struct str_list *verbs, struct aq_error *err)
{
    for (size_t i = 0; i < verbs->count; i++) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s" VERBS_CLASS "/%s/ibdev", root,
                                                    verbs->items[i]);
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        if (fs_read(AT_FDCWD, path, 256, &text, NULL) < 0)
            continue;
        text.data[strcspn(text.data, "\n")] = '\0';
        if (strcmp(text.data, name) == 0)
            return rdma_add_node(devices, root, verbs->items[i], err);
    }
    return aq_fail(err, ENODEV, "RDMA device '%s' has no verbs; load the module ib_uverbs", name);
}

static int rdma_choose(struct rdma_devices *devices, const struct str_list *found,
                       const char *const *wanted, size_t wanted_count, struct aq_error *err)
{
    for (size_t i = 0; i < wanted_count; i++) {
        bool is_all = strcmp(wanted[i], RDMA_ALL) == 0;

        if (is_all ? found->count == 0 : !rdma_has(found, wanted[i]))
            return aq_fail(err, ENODEV, "'%s' of [network] rdma: " RDMA_CLASS " has %s", wanted[i],
                           is_all ? "no device" : "no device of that name");
        for (size_t k = 0; k < found->count; k++)
            if ((is_all || strcmp(found->items[k], wanted[i]) == 0)
                && !rdma_has(&devices->names, found->items[k]))
                rdma_add_text(devices, &devices->names, found->items[k]);
    }
    return 0;
}

int rdma_find(const char *root, const char *const *wanted, size_t wanted_count,
              struct rdma_devices *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *class = aq_format("%s" RDMA_CLASS, root);
    AQ_CLEANUP(aq_freep) char *verbs_class = aq_format("%s" VERBS_CLASS, root);
    struct rdma_devices devices = { .arena = ARENA_INIT };
    struct str_list found = { .count = 0 }, verbs = { .count = 0 };
    int r;

    rdma_list(&devices, class, &found);
    rdma_list(&devices, verbs_class, &verbs);
    r = rdma_choose(&devices, &found, wanted, wanted_count, err);
    for (size_t i = 0; r == 0 && i < devices.names.count; i++)
        r = rdma_add_verbs(&devices, root, devices.names.items[i], &verbs, err);
    if (r == 0 && devices.names.count)
        r = rdma_add_node(&devices, root, "rdma_cm", err);
    if (r < 0)
        rdma_devices_done(&devices);
    else
        *ret = devices;
    return r;
}

void rdma_devices_done(struct rdma_devices *devices)
{
    arena_done(&devices->arena);
    *devices = (struct rdma_devices){ .arena = ARENA_INIT };
}
