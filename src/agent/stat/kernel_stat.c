/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_stat.c - what one container uses, by its cgroups and its network */
#include "agent/stat/kernel_stat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/stat/stat_file.h"
#include "base/memory.h"

#define TEXT_MAX 8192 /* of the files of one cgroup */
#define PIDS_TEXT_MAX (32u << 10)
#define UNLIMITED 0x7fffffffffff0000 /* from here on version 1 means no limit */

enum kernel_file {
    FILE_CPU,
    FILE_MEMORY,
    FILE_MEMORY_STAT,
    FILE_IO,
    FILE_RX, /* as the container sees it: what the node's end sends */
    FILE_TX,
    FILE_SCRATCH,
    FILE_PROCS,
    FILE_INNER_PROCS, /* runc has a cgroup of its own inside */
    FILES
};

struct kernel_stat {
    int fds[FILES];
    bool is_v2_cpu, is_v2_memory, is_v2_io;
    double memory_max; /* negative = no limit */
    double scratch_max;
};

void kernel_stat_free(struct kernel_stat *stat)
{
    for (size_t i = 0; stat && i < FILES; i++)
        aq_closep(&stat->fds[i]);
    free(stat);
}

static int kernel_stat_open_file(const struct cgroup_hierarchy *h, const char *name,
                                 const char *file)
{
    AQ_CLEANUP(aq_freep) char *path = h && h->parent ? aq_format("%s/%s/%s", h->parent, name, file)
                                                     : NULL;

    return path ? stat_file_open(path) : -1;
}

static double kernel_stat_read_limit(const struct cgroup_hierarchy *h, const char *name)
{
    AQ_CLEANUP(aq_closep) int fd = kernel_stat_open_file(
        h, name, h && h->is_v2 ? "memory.max" : "memory.limit_in_bytes");
    char text[64];
    uint64_t bytes;

    return stat_file_read(fd, text, sizeof(text)) && stat_file_number(text, &bytes)
                   && bytes < UNLIMITED
               ? (double)bytes
               : -1;
}

static int kernel_stat_open_link(const struct kernel_stat_conf *conf, const char *counter)
{
    AQ_CLEANUP(aq_freep) char *path = conf->link ? aq_format("%s/sys/class/net/%s/statistics/%s",
                                                             conf->root, conf->link, counter)
                                                 : NULL;

    return path ? stat_file_open(path) : -1;
}

static void kernel_stat_open_procs(struct kernel_stat *stat, const struct cgroup_layout *layout,
                                   const char *name)
{
    const struct cgroup_hierarchy *h = cgroup_find(layout, CGROUP_MEMORY);

    for (size_t i = 0; i < layout->count && (!h || !h->parent); i++)
        h = &layout->items[i];
    stat->fds[FILE_PROCS] = kernel_stat_open_file(h, name, "cgroup.procs");
    stat->fds[FILE_INNER_PROCS] = kernel_stat_open_file(h, name, "container/cgroup.procs");
}

static void kernel_stat_open_io(struct kernel_stat *stat, const struct cgroup_hierarchy *h,
                                const char *name)
{
    stat->is_v2_io = h && h->is_v2;
    if (stat->is_v2_io) {
        stat->fds[FILE_IO] = kernel_stat_open_file(h, name, "io.stat");
        return;
    }
    stat->fds[FILE_IO] = kernel_stat_open_file(h, name,
                                               "blkio.throttle.io_service_bytes_recursive");
    if (stat->fds[FILE_IO] < 0)
        stat->fds[FILE_IO] = kernel_stat_open_file(h, name, "blkio.throttle.io_service_bytes");
}

static void kernel_stat_open_files(struct kernel_stat *stat, const struct kernel_stat_conf *conf)
{
    const struct cgroup_hierarchy *cpu = cgroup_find(conf->cgroups, CGROUP_CPUACCT);
    const struct cgroup_hierarchy *memory = cgroup_find(conf->cgroups, CGROUP_MEMORY);

    if (!cpu)
        cpu = cgroup_find_v2(conf->cgroups);
    stat->is_v2_cpu = cpu && cpu->is_v2;
    stat->is_v2_memory = memory && memory->is_v2;
    stat->fds[FILE_CPU] = kernel_stat_open_file(cpu, conf->name,
                                                stat->is_v2_cpu ? "cpu.stat" : "cpuacct.usage");
    stat->fds[FILE_MEMORY] = kernel_stat_open_file(
        memory, conf->name, stat->is_v2_memory ? "memory.current" : "memory.usage_in_bytes");
    stat->fds[FILE_MEMORY_STAT] = kernel_stat_open_file(memory, conf->name, "memory.stat");
    stat->memory_max = kernel_stat_read_limit(memory, conf->name);
    kernel_stat_open_io(stat, cgroup_find(conf->cgroups, CGROUP_BLKIO), conf->name);
    stat->fds[FILE_RX] = kernel_stat_open_link(conf, "tx_bytes");
    stat->fds[FILE_TX] = kernel_stat_open_link(conf, "rx_bytes");
    stat->fds[FILE_SCRATCH] = conf->scratch ? stat_file_open(conf->scratch) : -1;
    stat->scratch_max = (double)conf->scratch_bytes;
    kernel_stat_open_procs(stat, conf->cgroups, conf->name);
}

int kernel_stat_open(const struct kernel_stat_conf *conf, struct kernel_stat **ret,
                     struct aq_error *err)
{
    AQ_CLEANUP(kernel_stat_freep) struct kernel_stat *stat = aq_alloc(sizeof(*stat));

    for (size_t i = 0; i < FILES; i++)
        stat->fds[i] = -1;
    kernel_stat_open_files(stat, conf);
    if (stat->fds[FILE_CPU] < 0 && stat->fds[FILE_MEMORY] < 0)
        return aq_fail(err, ENOENT, "kernel %s has no cgroup", conf->name);
    *ret = AQ_TAKE(stat);
    return 0;
}

/* ---- reading ---- */

static bool kernel_stat_read_number(int fd, uint64_t *ret)
{
    char text[64];

    return stat_file_read(fd, text, sizeof(text)) && stat_file_number(text, ret);
}

static bool kernel_stat_read_cpu_msec(const struct kernel_stat *stat, double *ret)
{
    char text[TEXT_MAX];
    uint64_t used;

    if (!stat->is_v2_cpu) {
        if (!kernel_stat_read_number(stat->fds[FILE_CPU], &used))
            return false;
        *ret = (double)used / 1e6;
        return true;
    }
    if (!stat_file_read(stat->fds[FILE_CPU], text, sizeof(text))
        || !stat_file_find(text, "usage_usec", &used))
        return false;
    *ret = (double)used / 1e3;
    return true;
}

/* Without what the system would give up at once. */
static bool kernel_stat_read_memory(const struct kernel_stat *stat, double *ret)
{
    const char *key = stat->is_v2_memory ? "inactive_file" : "total_inactive_file";
    uint64_t used, inactive = 0;
    char text[TEXT_MAX];

    if (!kernel_stat_read_number(stat->fds[FILE_MEMORY], &used))
        return false;
    if (stat_file_read(stat->fds[FILE_MEMORY_STAT], text, sizeof(text)))
        (void)stat_file_find(text, key, &inactive);
    *ret = (double)(used - AQ_MIN(used, inactive));
    return true;
}

/* Version 2: "8:0 rbytes=1 wbytes=2 rios=..."; version 1: "8:0 Read 1". */
static bool kernel_stat_read_io(const struct kernel_stat *stat, double *ret_read,
                                double *ret_written)
{
    char text[TEXT_MAX];

    *ret_read = *ret_written = 0;
    if (stat->fds[FILE_IO] < 0)
        return false;
    if (!stat_file_read(stat->fds[FILE_IO], text, sizeof(text)))
        return true; /* nothing was read or written yet */
    for (const char *line = text; line; line = stat_file_next_line(line)) {
        unsigned long long got = 0, put = 0;

        if (stat->is_v2_io) {
            if (sscanf(line, "%*u:%*u rbytes=%llu wbytes=%llu", &got, &put) != 2)
                continue;
        } else if (sscanf(line, "%*u:%*u Read %llu", &got) != 1
                   && sscanf(line, "%*u:%*u Write %llu", &put) != 1) {
            continue;
        }
        *ret_read += (double)got;
        *ret_written += (double)put;
    }
    return true;
}

void kernel_stat_sample(const struct kernel_stat *stat, struct sample *sample)
{
    double value, written;
    struct stat scratch;
    uint64_t bytes;

    if (kernel_stat_read_cpu_msec(stat, &value)) {
        sample_add(sample, SAMPLE_CPU_UTIL, value, 1000);
        sample_add(sample, SAMPLE_CPU_USED, value, -1);
    }
    if (kernel_stat_read_memory(stat, &value))
        sample_add(sample, SAMPLE_MEM, value, stat->memory_max);
    if (kernel_stat_read_io(stat, &value, &written)) {
        sample_add(sample, SAMPLE_IO_READ, value, -1);
        sample_add(sample, SAMPLE_IO_WRITE, written, -1);
    }
    if (kernel_stat_read_number(stat->fds[FILE_RX], &bytes))
        sample_add(sample, SAMPLE_NET_RX, (double)bytes, -1);
    if (kernel_stat_read_number(stat->fds[FILE_TX], &bytes))
        sample_add(sample, SAMPLE_NET_TX, (double)bytes, -1);
    if (stat->fds[FILE_SCRATCH] >= 0 && fstat(stat->fds[FILE_SCRATCH], &scratch) == 0)
        sample_add(sample, SAMPLE_IO_SCRATCH, (double)scratch.st_blocks * 512, stat->scratch_max);
}

size_t kernel_stat_pids(const struct kernel_stat *stat, int32_t *pids, size_t max)
{
    char text[PIDS_TEXT_MAX];
    size_t count = 0;

    for (int f = FILE_PROCS; f <= FILE_INNER_PROCS; f++) {
        if (!stat_file_read(stat->fds[f], text, sizeof(text)))
            continue;
        for (const char *line = text; line && count < max; line = stat_file_next_line(line)) {
            long pid = strtol(line, NULL, 10);

            if (pid > 0 && pid <= INT32_MAX && strchr(line, '\n'))
                pids[count++] = (int32_t)pid;
        }
    }
    return count;
}
