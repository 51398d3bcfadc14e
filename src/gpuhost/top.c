/* top.c - "aliquot gpu top": who has which slice, and what of it is in use */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/charge.h"
#include "gpu/uuid.h"
#include "gpuhost/look.h"
#include "gpuhost/program.h"

#define INTERVAL_NS 1000000000
#define ANSWER_NS 100000000 /* those who run look up so often */

#define BAR_WIDTH 16

struct top {
    bool once, json, colour;
    struct gpu_look looks[GPU_LOOK_MAX];
    int64_t used_ns[GPU_LOOK_MAX][AQ_GPU_DEVICES_MAX];
    int64_t at_ns;
};

static int64_t used_of(const struct gpu_look *look, uint32_t device)
{
    return __atomic_load_n(&look->view.usage->devices[device].used_ns, __ATOMIC_RELAXED);
}

static void remember(struct top *top)
{
    for (int i = 0; i < GPU_LOOK_MAX; i++)
        for (uint32_t d = 0; top->looks[i].view.limits && d < top->looks[i].view.limits->device_count;
             d++)
            top->used_ns[i][d] = used_of(&top->looks[i], d);
    top->at_ns = gpu_clocks_now_ns();
}

static unsigned int processes_on(const struct gpu_look *look, uint32_t device)
{
    unsigned int count = 0;

    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++)
        count += look->view.limits->owners[slot].host_pid
                 && charge_of_slot(look->view.usage, slot, device) > 0;
    return count;
}

/* Percent of the device's time since the last look. */
static double busy(const struct top *top, int i, uint32_t device)
{
    int64_t span = gpu_clocks_now_ns() - top->at_ns;
    double part = span > 0 ? (double)(used_of(&top->looks[i], device) - top->used_ns[i][device])
                                 / (double)span
                           : 0;

    return part < 0 ? 0 : part * 100;
}

struct line {
    int run; /* pid of its "aliquot gpu run" */
    const struct aq_gpu_limits_device *limits;
    unsigned long long used_bytes, memory_bytes, refused;
    double busy;
    unsigned int processes;
};

static void write_json(const struct line *line, bool is_first)
{
    char device[GPU_UUID_TEXT_MAX];

    (void)printf("%s{\"run\": %d, \"device\": \"%s\", \"memory_bytes\": %llu, \"used_bytes\": %llu, "
                 "\"share\": %.6f, \"busy\": %.4f, \"processes\": %u, \"refused\": %llu}",
                 is_first ? "" : ", ", line->run, gpu_uuid_write(line->limits->uuid, device),
                 line->memory_bytes, line->used_bytes, (double)line->limits->share / AQ_GPU_WHOLE,
                 line->busy / 100, line->processes, line->refused);
}

/* Memory as a bar: green, yellow from 70 %, red from 90 %. */
static void write_row(const struct line *line, bool has_colour)
{
    char device[GPU_UUID_TEXT_MAX], bar[BAR_WIDTH + 1] = "";
    double part = line->memory_bytes ? (double)line->used_bytes / (double)line->memory_bytes : 0;
    const char *colour = part >= 0.9 ? "\033[31m" : part >= 0.7 ? "\033[33m" : "\033[32m";

    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < part * BAR_WIDTH ? '#' : '.';
    (void)printf("%8d  %.12s  [%s%s%s]  %7llu / %-7llu  %6.1f %%  %6.1f %%  %9u  %7llu\n", line->run,
                 gpu_uuid_write(line->limits->uuid, device), has_colour ? colour : "", bar,
                 has_colour ? "\033[0m" : "", line->used_bytes >> 20, line->memory_bytes >> 20,
                 (double)line->limits->share * 100 / AQ_GPU_WHOLE, line->busy, line->processes,
                 line->refused);
}

static struct line line_of(const struct top *top, int i, uint32_t device)
{
    const struct gpu_look *look = &top->looks[i];
    const struct aq_gpu_limits_device *limits = &look->view.limits->devices[device];

    return (struct line){
        .run = atoi(look->name),
        .limits = limits,
        .used_bytes = charge_sum(look->view.usage, device) << AQ_GPU_GRANULE_SHIFT,
        .memory_bytes = limits->memory_bytes,
        .refused = __atomic_load_n(&look->view.usage->devices[device].refused, __ATOMIC_RELAXED),
        .busy = busy(top, i, device),
        .processes = processes_on(look, device),
    };
}

static void show(const struct top *top)
{
    bool is_first = true;

    (void)printf("%s", top->json ? "[" : top->once ? "" : "\033[H\033[J");
    for (int i = 0; i < GPU_LOOK_MAX; i++)
        for (uint32_t d = 0; top->looks[i].view.limits && d < top->looks[i].view.limits->device_count;
             d++) {
            const struct line line = line_of(top, i, d);

            if (is_first && !top->json)
                (void)printf("%8s  %-12s  %-*s  %7s / %-7s  %8s  %8s  %9s  %7s\n", "RUN", "DEVICE",
                             BAR_WIDTH + 2, "MEMORY", "USED", "MIB", "SHARE", "BUSY", "PROCESSES",
                             "REFUSED");
            if (top->json)
                write_json(&line, is_first);
            else
                write_row(&line, top->colour);
            is_first = false;
        }
    if (top->json)
        (void)printf("]\n");
    else if (is_first)
        (void)printf("Nothing runs on a slice. Begin: aliquot gpu run --memory 8g -- PROGRAM\n");
    (void)fflush(stdout);
}

static int read_options(struct top *top, int argc, char **argv, struct aq_error *err)
{
    static const struct option options[] = {
        { "once", no_argument, NULL, 'o' },
        { "json", no_argument, NULL, 'j' },
        { "colour", no_argument, NULL, 'c' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == '?')
            return aq_fail(err, EINVAL, "unknown option '%s'", argv[optind - 1]);
        top->json |= option == 'j';
        top->once |= option == 'o';
        top->colour |= option == 'c';
    }
    return 0;
}

int program_top(int argc, char **argv, struct aq_error *err)
{
    static struct top top;
    AQ_CLEANUP(aq_freep) char *folder = NULL;
    int r = read_options(&top, argc, argv, err);

    if (r < 0)
        return r;
    if (!(folder = gpu_look_folder(err)))
        return -err->code;
    gpu_look_scan(folder, NULL, top.looks);
    (void)nanosleep(&(struct timespec){ .tv_nsec = ANSWER_NS }, NULL);
    do {
        gpu_look_scan(folder, NULL, top.looks);
        remember(&top);
        (void)nanosleep(&(struct timespec){ .tv_sec = top.once ? 0 : 1,
                                            .tv_nsec = top.once ? INTERVAL_NS / 4 : 0 },
                        NULL);
        show(&top);
    } while (!top.once);
    for (int i = 0; i < GPU_LOOK_MAX; i++)
        gpu_look_close(&top.looks[i]);
    return 0;
}
