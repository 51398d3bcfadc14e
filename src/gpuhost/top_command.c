/* SPDX-License-Identifier: Apache-2.0 */
/* top_command.c - "aliquot gpu top": who has which slice, and what of it is in use */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/screen.h"
#include "gpu/charge.h"
#include "gpu/uuid.h"
#include "gpuhost/discovery.h"
#include "gpuhost/commands.h"

#define INTERVAL_USEC USEC_PER_SEC
#define ANSWER_USEC (100 * USEC_PER_MSEC) /* `aliquot gpu run` answers so often */

#define BAR_WIDTH 16

struct top {
    bool once, json, colour;
    struct screen screen;
    struct gpu_peer peers[GPU_PEERS_MAX];
    int64_t used_ns[GPU_PEERS_MAX][AQ_GPU_DEVICES_MAX];
    int64_t at_ns;
};

static int64_t top_used_ns(const struct gpu_peer *peer, uint32_t device)
{
    return __atomic_load_n(&peer->view.usage->devices[device].used_ns, __ATOMIC_RELAXED);
}

static void top_remember(struct top *top)
{
    for (int i = 0; i < GPU_PEERS_MAX; i++)
        for (uint32_t d = 0;
             top->peers[i].view.limits && d < top->peers[i].view.limits->device_count; d++)
            top->used_ns[i][d] = top_used_ns(&top->peers[i], d);
    top->at_ns = gpu_monotonic_ns();
}

static unsigned int top_count_processes(const struct gpu_peer *peer, uint32_t device)
{
    unsigned int count = 0;

    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++)
        count += peer->view.limits->owners[slot].host_pid
                 && charge_of_slot(peer->view.usage, slot, device) > 0;
    return count;
}

/* Percent of the device's time since the last scan. */
static double top_busy(const struct top *top, int i, uint32_t device)
{
    int64_t span = gpu_monotonic_ns() - top->at_ns;
    double part = span > 0 ? (double)(top_used_ns(&top->peers[i], device) - top->used_ns[i][device])
                                 / (double)span
                           : 0;

    return part < 0 ? 0 : part * 100;
}

struct top_line {
    int run; /* pid of its "aliquot gpu run" */
    const struct aq_gpu_limits_device *limits;
    unsigned long long used_bytes, memory_bytes, refused;
    double busy;
    unsigned int processes;
};

static void top_write_json(const struct top_line *line, bool is_first, struct strbuf *out)
{
    char device[GPU_UUID_TEXT_MAX];

    strbuf_addf(out,
                "%s{\"run\": %d, \"device\": \"%s\", \"memory_bytes\": %llu, \"used_bytes\": %llu, "
                "\"share\": %.6f, \"busy\": %.4f, \"processes\": %u, \"refused\": %llu}",
                is_first ? "" : ", ", line->run, gpu_uuid_write(line->limits->uuid, device),
                line->memory_bytes, line->used_bytes, (double)line->limits->share / AQ_GPU_WHOLE,
                line->busy / 100, line->processes, line->refused);
}

/* Memory as a bar: green, yellow from 70 %, red from 90 %. */
static void top_write_row(const struct top_line *line, bool has_colour, struct strbuf *out)
{
    char device[GPU_UUID_TEXT_MAX], bar[BAR_WIDTH + 1] = "";
    double part = line->memory_bytes ? (double)line->used_bytes / (double)line->memory_bytes : 0;
    const char *colour = part >= 0.9 ? "\033[31m" : part >= 0.7 ? "\033[33m" : "\033[32m";

    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < part * BAR_WIDTH ? '#' : '.';
    strbuf_addf(out, "%8d  %.12s  [%s%s%s]  %7llu / %-7llu  %6.1f %%  %6.1f %%  %9u  %7llu\n",
                line->run, gpu_uuid_write(line->limits->uuid, device), has_colour ? colour : "",
                bar, has_colour ? "\033[0m" : "", line->used_bytes >> 20, line->memory_bytes >> 20,
                (double)line->limits->share * 100 / AQ_GPU_WHOLE, line->busy, line->processes,
                line->refused);
}

static struct top_line top_line_of(const struct top *top, int i, uint32_t device)
{
    const struct gpu_peer *peer = &top->peers[i];
    const struct aq_gpu_limits_device *limits = &peer->view.limits->devices[device];

    return (struct top_line){
        .run = atoi(peer->name),
        .limits = limits,
        .used_bytes = charge_sum(peer->view.usage, device) << AQ_GPU_GRANULE_SHIFT,
        .memory_bytes = limits->memory_bytes,
        .refused = __atomic_load_n(&peer->view.usage->devices[device].refused, __ATOMIC_RELAXED),
        .busy = top_busy(top, i, device),
        .processes = top_count_processes(peer, device),
    };
}

static void top_write_table(const struct top *top, struct strbuf *out)
{
    bool is_first = true;

    for (int i = 0; i < GPU_PEERS_MAX; i++)
        for (uint32_t d = 0;
             top->peers[i].view.limits && d < top->peers[i].view.limits->device_count; d++) {
            const struct top_line line = top_line_of(top, i, d);

            if (is_first && !top->json)
                strbuf_addf(out, "%8s  %-12s  %-*s  %7s / %-7s  %8s  %8s  %9s  %7s\n", "RUN",
                            "DEVICE", BAR_WIDTH + 2, "MEMORY", "USED", "MIB", "SHARE", "BUSY",
                            "PROCESSES", "REFUSED");
            if (top->json)
                top_write_json(&line, is_first, out);
            else
                top_write_row(&line, top->colour, out);
            is_first = false;
        }
    if (is_first && !top->json)
        strbuf_adds(out,
                    "Nothing runs on a slice. Begin: aliquot gpu run --memory 8g -- PROGRAM\n");
}

static void top_show(struct top *top)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    strbuf_adds(&out, top->json ? "[" : "");
    top_write_table(top, &out);
    strbuf_adds(&out, top->json ? "]\n" : "");
    if (top->screen.is_open)
        strbuf_adds(&out, "\nq quit");
    if (top->screen.is_open)
        screen_draw(&top->screen, &out);
    else
        (void)fputs(out.data, stdout);
    (void)fflush(stdout);
}

static void top_sleep(int64_t usec)
{
    (void)nanosleep(
        &(struct timespec){ .tv_sec = usec / USEC_PER_SEC, .tv_nsec = usec % USEC_PER_SEC * 1000 },
        NULL);
}

/* False when a key says to leave. */
static bool top_wait(struct top *top, int64_t interval_usec)
{
    int64_t until_usec = clock_monotonic_usec() + interval_usec;

    while (top->screen.is_open && clock_monotonic_usec() < until_usec) {
        uint32_t key = screen_wait(&top->screen, -1, until_usec);

        if (key == 'q' || key == KEY_ESCAPE || key == KEY_INTERRUPT)
            return false;
        if (key)
            top_show(top);
    }
    if (!top->screen.is_open)
        top_sleep(interval_usec);
    return true;
}

static int top_read_options(struct top *top, int argc, char **argv, struct aq_error *err)
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

int top_command(int argc, char **argv, struct aq_error *err)
{
    static struct top top;
    AQ_CLEANUP(aq_freep) char *directory = NULL;
    int r = top_read_options(&top, argc, argv, err);

    if (r < 0)
        return r;
    if (!(directory = gpu_discovery_directory(err)))
        return -err->code;
    top.once |= !top.json && !screen_is_possible(); /* programs read on as long as they like */
    gpu_discovery_scan(directory, NULL, top.peers);
    top_sleep(ANSWER_USEC);
    if (!top.once && !top.json)
        r = screen_open(&top.screen, err);
    for (bool is_first = true; r == 0; is_first = false) {
        gpu_discovery_scan(directory, NULL, top.peers);
        top_remember(&top);
        if (!top_wait(&top, is_first ? INTERVAL_USEC / 4 : INTERVAL_USEC))
            break;
        top_show(&top);
        if (top.once)
            break;
    }
    screen_close(&top.screen);
    for (int i = 0; i < GPU_PEERS_MAX; i++)
        gpu_peer_close(&top.peers[i]);
    return r;
}
