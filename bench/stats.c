/* SPDX-License-Identifier: Apache-2.0 */
/* What a sample of many containers and devices costs the agent: real cgroups,
 * made for the purpose, the machine's own /proc, and the message to the
 * manager. "bench/bench-stats [KERNELS [ROUNDS]]", as root.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/stat/kernel_stat.h"
#include "agent/stat/node_stat.h"
#include "agent/stat/sample.h"
#include "base/fs.h"
#include "base/uuid.h"
#include "model/metric.h"

#define PARENT "/aliquot-bench-stats"
#define DEVICES 16
#define INTERVAL_SEC 5

struct bench {
    struct cgroup_layout layout;
    size_t count;
    struct uuid *ids;
    struct kernel_stat **kernels;
    struct node_stat *node;
    struct sample *sample;
    size_t bytes; /* of a message */
};

static _Noreturn void die(const char *what, const struct aq_error *err)
{
    fprintf(stderr, "bench/stats: %s: %s\n", what, err->text);
    exit(1);
}

/* Make or remove the kernel's cgroups. */
static void each_cgroup(const struct bench *b, size_t kernel, int (*act)(const char *path))
{
    char id[UUID_TEXT_MAX];

    for (size_t i = 0; i < b->layout.count; i++) {
        AQ_CLEANUP(aq_freep) char *path = b->layout.items[i].parent
                                              ? aq_format("%s/%s", b->layout.items[i].parent,
                                                          uuid_format(&b->ids[kernel], id))
                                              : NULL;

        if (path)
            (void)act(path);
    }
}

static int make(const char *path)
{
    return mkdir(path, 0755);
}

static void set_up(struct bench *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf mounts = STRBUF_INIT, missing = STRBUF_INIT;
    struct aq_error err = { 0 };

    b->ids = calloc(b->count, sizeof(*b->ids));
    b->kernels = calloc(b->count, sizeof(*b->kernels));
    if (!b->ids || !b->kernels)
        exit(1);
    if (fs_read(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &mounts, &err) < 0
        || cgroup_layout_read(mounts.data, "", &b->layout, &err) < 0)
        die("cgroups", &err);
    cgroup_prepare(&b->layout, PARENT, &missing);
    b->node = node_stat_new("");
    b->sample = sample_new();
    for (size_t i = 0; i < b->count; i++) {
        char id[UUID_TEXT_MAX];
        struct kernel_stat_conf conf = { .cgroups = &b->layout, .root = "", .link = "lo" };

        b->ids[i] = uuid_random();
        conf.name = uuid_format(&b->ids[i], id);
        each_cgroup(b, i, make);
        if (kernel_stat_open(&conf, &b->kernels[i], &err) < 0)
            die("a kernel", &err);
    }
}

static void tear_down(struct bench *b)
{
    for (size_t i = 0; i < b->count; i++) {
        kernel_stat_free(b->kernels[i]);
        each_cgroup(b, i, rmdir);
    }
    cgroup_leave(&b->layout);
    cgroup_layout_done(&b->layout);
    node_stat_free(b->node);
    sample_free(b->sample);
    free(b->ids);
    free(b->kernels);
}

static void sample_devices(struct bench *b)
{
    static const char *const keys[] = { "cuda_mem", "cuda_util", "cuda_power", "cuda_temperature" };
    static char names[DEVICES][8];

    for (int d = 0; d < DEVICES; d++) {
        (void)snprintf(names[d], sizeof(names[d]), "GPU-%d", d);
        sample_begin_device(b->sample, names[d]);
        for (size_t k = 0; k < AQ_COUNT(keys); k++)
            sample_add_accel(b->sample, keys[k], METRIC_PERCENT, METRIC_MAX, d, 100);
    }
}

static void take(struct bench *b, int round)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct message msg = { .type = MSG_STATISTICS };
    struct aq_error err = { 0 };

    sample_begin(b->sample, round + 1, INTERVAL_SEC * 1000000);
    node_stat_sample(b->node, b->sample);
    for (size_t i = 0; i < b->count; i++) {
        sample_begin_kernel(b->sample, &b->ids[i], &b->ids[i], 1);
        kernel_stat_sample(b->kernels[i], b->sample);
    }
    sample_devices(b);
    msg.statistics = *sample_end(b->sample);
    if (message_encode(&msg, &text, &err) < 0)
        die("message", &err);
    b->bytes = text.len;
}

static double cpu_msec(void)
{
    struct rusage use;

    (void)getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3
           + (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

int main(int argc, char **argv)
{
    struct bench b = { .count = argc > 1 ? (size_t)atoi(argv[1]) : 200 };
    int rounds = argc > 2 ? atoi(argv[2]) : 100;
    double before, msec, percent;

    if (argc > 3 || b.count < 1 || b.count > 10000 || rounds < 1) {
        fprintf(stderr, "usage: bench/stats [KERNELS [ROUNDS]]\n");
        return 2;
    }
    set_up(&b);
    take(&b, 0);
    before = cpu_msec();
    for (int i = 1; i <= rounds; i++)
        take(&b, i);
    msec = (cpu_msec() - before) / rounds;
    percent = msec / (INTERVAL_SEC * 10.0);
    tear_down(&b);
    printf("{\"bench\": \"stats\", \"kernels\": %zu, \"devices\": %d, \"cpu_ms_per_sample\": %.3f, "
           "\"core_pct_at_5_s\": %.3f, \"message_bytes\": %zu, \"target_pct\": 2, \"met\": %s}\n",
           b.count, DEVICES, msec, percent, b.bytes, percent < 2 ? "true" : "false");
    return 0;
}
