/* SPDX-License-Identifier: Apache-2.0 */
/* node_stat.c - what the whole machine uses: cores, memory, disks, network */
#include "agent/stat/node_stat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/stat/stat_file.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strbuf.h"

#define DISKS_MAX 64
#define DISK_NAME_MAX 64
#define CORES_MAX 4096
#define LOOK_FOR_DISKS_USEC (60 * USEC_PER_SEC)

struct disk_stat {
    char device[DISK_NAME_MAX], mount[256];
    double used, total;
};

struct node_stat {
    int stat, meminfo, net, mounts;
    double ticks_per_msec;
    struct disk_stat disks[DISKS_MAX];
    size_t disk_count;
    int64_t disks_usec; /* monotonic: when they were looked for */
    double core_msec[CORES_MAX];
    char core_names[CORES_MAX][8];
    size_t core_count;
    char text[STAT_TEXT_MAX];
};

static int node_stat_open_below(const char *root, const char *path)
{
    AQ_CLEANUP(aq_freep) char *whole = aq_format("%s%s", root, path);

    return stat_file_open(whole);
}

struct node_stat *node_stat_new(const char *root)
{
    struct node_stat *node = aq_alloc(sizeof(*node));

    node->stat = node_stat_open_below(root, "/proc/stat");
    node->meminfo = node_stat_open_below(root, "/proc/meminfo");
    node->net = node_stat_open_below(root, "/proc/self/net/dev");
    node->mounts = node_stat_open_below(root, "/proc/self/mounts");
    node->ticks_per_msec = (double)sysconf(_SC_CLK_TCK) / 1000;
    return node;
}

void node_stat_free(struct node_stat *node)
{
    if (!node)
        return;
    aq_closep(&node->stat);
    aq_closep(&node->meminfo);
    aq_closep(&node->net);
    aq_closep(&node->mounts);
    free(node);
}

/* ---- cores ---- */

/* "cpu0 USER NICE SYSTEM IDLE ..." */
static bool node_stat_read_core(struct node_stat *node, const char *line)
{
    unsigned long long user, nice, system;
    unsigned number;

    if (node->core_count == CORES_MAX
        || sscanf(line, "cpu%u %llu %llu %llu", &number, &user, &nice, &system) != 4
        || number > 9999999)
        return false;
    (void)snprintf(node->core_names[node->core_count], sizeof(node->core_names[0]), "%u", number);
    node->core_msec[node->core_count++] = (double)(user + nice + system) / node->ticks_per_msec;
    return true;
}

static void node_stat_read_cores(struct node_stat *node)
{
    node->core_count = 0;
    if (!stat_file_read(node->stat, node->text, sizeof(node->text)))
        return;
    for (const char *line = stat_file_next_line(node->text); line; line = stat_file_next_line(line))
        if (strncmp(line, "cpu", 3) != 0 || !node_stat_read_core(node, line))
            return;
}

/* ---- disks ---- */

/* Space that is the machine's own: not that of other machines, which may
 * leave us waiting, nor of images and firmware.
 */
static bool node_stat_is_disk(const char *device, const char *type)
{
    static const char *const others[] = { "vfat", "squashfs", "iso9660", "udf",     "erofs",
                                          "cifs", "nfs",      "nfs4",    "fuseblk", "fuse" };

    for (size_t i = 0; i < AQ_COUNT(others); i++)
        if (strcmp(type, others[i]) == 0)
            return false;
    return strncmp(device, "/dev/", 5) == 0 && strncmp(device, "/dev/loop", 9) != 0;
}

static void node_stat_add_disk(struct node_stat *node, const char *device, const char *mount)
{
    for (size_t i = 0; i < node->disk_count; i++)
        if (strcmp(node->disks[i].device, device) == 0)
            return;
    if (node->disk_count == DISKS_MAX || strchr(mount, '\\'))
        return;
    (void)snprintf(node->disks[node->disk_count].device, DISK_NAME_MAX, "%s", device);
    (void)snprintf(node->disks[node->disk_count].mount, sizeof(node->disks[0].mount), "%s", mount);
    node->disk_count++;
}

static void node_stat_find_disks(struct node_stat *node)
{
    int64_t now = clock_monotonic_usec();

    if (node->disks_usec && now - node->disks_usec < LOOK_FOR_DISKS_USEC)
        return;
    node->disks_usec = now;
    node->disk_count = 0;
    if (!stat_file_read(node->mounts, node->text, sizeof(node->text)))
        return;
    for (const char *line = node->text; line; line = stat_file_next_line(line)) {
        char device[DISK_NAME_MAX], mount[256], type[32];

        if (sscanf(line, "%63s %255s %31s", device, mount, type) == 3
            && node_stat_is_disk(device, type))
            node_stat_add_disk(node, device, mount);
    }
}

static void node_stat_measure_disks(struct node_stat *node)
{
    for (size_t i = 0; i < node->disk_count; i++) {
        struct disk_stat *disk = &node->disks[i];
        struct statvfs st = { .f_frsize = 0 };

        (void)statvfs(disk->mount, &st);
        disk->total = (double)st.f_frsize * (double)st.f_blocks;
        disk->used = (double)st.f_frsize * (double)(st.f_blocks - st.f_bavail);
    }
}

/* ---- memory, network ---- */

static bool node_stat_read_memory(struct node_stat *node, double *ret_used, double *ret_total)
{
    uint64_t total, available;

    if (!stat_file_read(node->meminfo, node->text, sizeof(node->text))
        || !stat_file_find(node->text, "MemTotal", &total)
        || !stat_file_find(node->text, "MemAvailable", &available))
        return false;
    *ret_total = (double)total * 1024;
    *ret_used = *ret_total - (double)available * 1024;
    return true;
}

/* What goes to and from containers goes through the node's own links too. */
static bool node_stat_is_own_link(const char *name)
{
    static const char *const others[] = { "lo", "aq", "veth", "docker", "br-", "virbr", "cni" };

    for (size_t i = 0; i < AQ_COUNT(others); i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

static bool node_stat_read_network(struct node_stat *node, double *ret_rx, double *ret_tx)
{
    bool has_any = false;

    *ret_rx = *ret_tx = 0;
    if (!stat_file_read(node->net, node->text, sizeof(node->text)))
        return false;
    for (const char *line = node->text; line; line = stat_file_next_line(line)) {
        unsigned long long rx, tx;
        char name[32];

        if (sscanf(line, " %31[^: ]: %llu %*u %*u %*u %*u %*u %*u %*u %llu", name, &rx, &tx) != 3
            || !node_stat_is_own_link(name))
            continue;
        *ret_rx += (double)rx;
        *ret_tx += (double)tx;
        has_any = true;
    }
    return has_any;
}

/* ---- the sample ---- */

static void node_stat_add_node(const struct node_stat *node, struct sample *sample)
{
    double msec = 0, used = 0, total = 0;

    for (size_t i = 0; i < node->core_count; i++)
        msec += node->core_msec[i];
    for (size_t i = 0; i < node->disk_count; i++) {
        used += node->disks[i].used;
        total += node->disks[i].total;
    }
    if (node->core_count)
        sample_add(sample, SAMPLE_NODE_CPU_UTIL, msec, 1000);
    if (node->disk_count)
        sample_add(sample, SAMPLE_NODE_DISK, used, total);
}

static void node_stat_add_devices(const struct node_stat *node, struct sample *sample)
{
    for (size_t i = 0; i < node->core_count; i++) {
        sample_begin_device(sample, node->core_names[i]);
        sample_add(sample, SAMPLE_NODE_CPU_UTIL, node->core_msec[i], 1000);
    }
    for (size_t i = 0; i < node->disk_count; i++) {
        sample_begin_device(sample, node->disks[i].device);
        sample_add(sample, SAMPLE_NODE_DISK, node->disks[i].used, node->disks[i].total);
    }
}

void node_stat_sample(struct node_stat *node, struct sample *sample)
{
    double used, total, rx, tx;
    bool has_memory = node_stat_read_memory(node, &used, &total),
         has_network = node_stat_read_network(node, &rx, &tx);

    node_stat_read_cores(node);
    node_stat_find_disks(node);
    node_stat_measure_disks(node);
    node_stat_add_node(node, sample);
    if (has_memory)
        sample_add(sample, SAMPLE_NODE_MEM, used, total);
    if (has_network) {
        sample_add(sample, SAMPLE_NET_RX, rx, -1);
        sample_add(sample, SAMPLE_NET_TX, tx, -1);
    }
    node_stat_add_devices(node, sample);
    if (has_memory) {
        sample_begin_device(sample, "root");
        sample_add(sample, SAMPLE_NODE_MEM, used, total);
    }
    if (has_network) {
        sample_begin_device(sample, "node");
        sample_add(sample, SAMPLE_NET_RX, rx, -1);
        sample_add(sample, SAMPLE_NET_TX, tx, -1);
    }
}
