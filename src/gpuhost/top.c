/* top.c - "aliquot gpu top": who has which slice, and what of it is in use */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/charge.h"
#include "gpuhost/look.h"
#include "gpuhost/program.h"

#define INTERVAL_NS 1000000000
#define ANSWER_NS 100000000 /* those who run look up so often */

struct top {
    bool once, json;
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

static void show_line(const struct top *top, int i, uint32_t device, bool first)
{
    const struct gpu_look *look = &top->looks[i];
    const struct aq_gpu_limits_device *limits = &look->view.limits->devices[device];
    unsigned long long used = charge_sum(look->view.usage, device) << AQ_GPU_GRANULE_SHIFT;
    unsigned long long refused =
        __atomic_load_n(&look->view.usage->devices[device].refused, __ATOMIC_RELAXED);

    if (top->json)
        (void)printf("%s{\"run\": %d, \"device\": \"GPU-%02x%02x%02x%02x…%02x\", "
                     "\"memory_bytes\": %llu, \"used_bytes\": %llu, \"share\": %.6f, "
                     "\"busy\": %.4f, \"processes\": %u, \"refused\": %llu}",
                     first ? "" : ", ", atoi(look->name), limits->uuid[0], limits->uuid[1],
                     limits->uuid[2], limits->uuid[3], limits->uuid[15],
                     (unsigned long long)limits->memory_bytes, used,
                     (double)limits->share / AQ_GPU_WHOLE, busy(top, i, device) / 100,
                     processes_on(look, device), refused);
    else
        (void)printf("%8d  GPU-%02x%02x%02x%02x  %7llu / %-7llu  %6.1f %%  %6.1f %%  %9u  %7llu\n",
                     atoi(look->name), limits->uuid[0], limits->uuid[1], limits->uuid[2],
                     limits->uuid[3], used >> 20, (unsigned long long)limits->memory_bytes >> 20,
                     (double)limits->share * 100 / AQ_GPU_WHOLE, busy(top, i, device),
                     processes_on(look, device), refused);
}

static void show(const struct top *top)
{
    bool first = true;

    if (top->json)
        (void)printf("[");
    else
        (void)printf("%s     RUN  DEVICE        MEMORY (MiB)          SHARE      BUSY  PROCESSES  REFUSED\n",
                     top->once ? "" : "\033[H\033[J");
    for (int i = 0; i < GPU_LOOK_MAX; i++)
        for (uint32_t d = 0; top->looks[i].view.limits && d < top->looks[i].view.limits->device_count;
             d++) {
            show_line(top, i, d, first);
            first = false;
        }
    (void)printf("%s", top->json ? "]\n" : "");
    (void)fflush(stdout);
}

static int read_options(struct top *top, int argc, char **argv, struct aq_error *err)
{
    static const struct option options[] = {
        { "once", no_argument, NULL, 'o' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option != 'o' && option != 'j')
            return aq_fail(err, EINVAL, "unknown option '%s'", argv[optind - 1]);
        top->json |= option == 'j';
        top->once |= option == 'o';
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
