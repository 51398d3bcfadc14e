/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the simgpu program: create, change and show simulated graphics cards
 *
 *   simgpu create FILE [KEY=VALUE...]   devices, processors, memory, context, module, slice_us,
 *                                       virtual
 *   simgpu set FILE KEY=VALUE...        alloc_every, launch_every, nvml_delay_us,
 *                                       hide_process_list, hidden_symbol
 *   simgpu show FILE                    who holds and does what, as JSON
 *   simgpu watch FILE WINDOW_US COUNT   the same at the begin, and after each window
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"

static int simgpu_usage(void)
{
    (void)fputs("usage: simgpu create FILE [devices=1] [processors=80] [memory=8G] [context=64M]\n"
                "              [module=2M] [slice_us=2000] [virtual=WAITERS]\n"
                "       simgpu set FILE [alloc_every=N] [launch_every=N] [nvml_delay_us=N]\n"
                "              [hide_process_list=0|1] [hidden_symbol=NAME]\n"
                "       simgpu show FILE\n"
                "       simgpu watch FILE WINDOW_US COUNT\n",
                stderr);
    return 2;
}

/* A number with K, M or G. */
static bool simgpu_number(const char *text, uint64_t *ret)
{
    char *end;
    int shift = 0;

    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (*end == 'K')
        shift = 10;
    else if (*end == 'M')
        shift = 20;
    else if (*end == 'G')
        shift = 30;
    *ret <<= shift;
    return end != text && !errno && end[shift != 0] == '\0';
}

/* KEY=VALUE for one of the keys; its place in 'keys', or -1. */
static int simgpu_read_pair(const char *pair, const char *const *keys, uint64_t *ret)
{
    for (int i = 0; keys[i]; i++) {
        size_t len = strlen(keys[i]);

        if (strncmp(pair, keys[i], len) == 0 && pair[len] == '=')
            return simgpu_number(pair + len + 1, ret) ? i : -1;
    }
    return -1;
}

static int simgpu_create(const char *path, char **pairs)
{
    static const char *const keys[] = { "devices", "processors", "memory",  "context",
                                        "module",  "slice_us",   "virtual", NULL };
    uint64_t values[] = {
        1, 80, (uint64_t)8 << 30, (uint64_t)64 << 20, (uint64_t)2 << 20, 2000, 0
    };
    uint64_t value;
    int r;

    for (; *pairs; pairs++) {
        int key = simgpu_read_pair(*pairs, keys, &value);

        if (key < 0) {
            (void)fprintf(stderr, "simgpu: '%s' is not a KEY=NUMBER\n", *pairs);
            return simgpu_usage();
        }
        values[key] = value;
    }
    r = sim_create(path, &(struct sim_options){ .devices = (uint32_t)values[0],
                                                .processors = (uint32_t)values[1],
                                                .memory = values[2],
                                                .context_bytes = values[3],
                                                .module_bytes = values[4],
                                                .slice_ns = (int64_t)values[5] * 1000,
                                                .expected = (uint32_t)values[6] });
    if (r < 0)
        (void)fprintf(stderr, "simgpu: create %s: %s\n", path, strerror(-r));
    return r < 0;
}

static int simgpu_set(struct sim_card *card, char **pairs)
{
    static const char *const keys[] = { "alloc_every", "launch_every", "nvml_delay_us",
                                        "hide_process_list", NULL };
    uint32_t *const places[] = { &card->faults.alloc_every, &card->faults.launch_every,
                                 &card->faults.nvml_delay_us, &card->faults.hide_process_list };
    uint64_t value;

    for (; *pairs; pairs++) {
        int key;

        if (strncmp(*pairs, "hidden_symbol=", 14) == 0) {
            (void)snprintf(card->faults.hidden_symbol, sizeof(card->faults.hidden_symbol), "%s",
                           *pairs + 14);
            continue;
        }
        key = simgpu_read_pair(*pairs, keys, &value);
        if (key < 0) {
            (void)fprintf(stderr, "simgpu: '%s' is not a KEY=VALUE\n", *pairs);
            return simgpu_usage();
        }
        *places[key] = (uint32_t)value;
    }
    return 0;
}

static int simgpu_show(struct sim_card *card, int fd)
{
    int64_t now = sim_now_ns();

    sim_lock(card);
    sim_reclaim(card, fd);
    (void)printf("{\"ns\": %lld, \"devices\": [", (long long)now);
    for (uint32_t d = 0; d < card->device_count; d++) {
        (void)sim_advance(card, d, now);
        (void)printf("%s{\"memory\": %llu, \"used\": %llu, \"shared\": %llu, \"utilization\": %u, "
                     "\"clients\": [",
                     d ? ", " : "", (unsigned long long)card->devices[d].memory,
                     (unsigned long long)sim_memory_used(card, d),
                     (unsigned long long)sim_shared_used(card, d),
                     sim_utilization(card, d, -1, now));
        for (uint32_t i = 0, shown = 0; i < SIM_CLIENTS_MAX; i++) {
            const struct sim_use *use = &card->clients[i].uses[d];

            if (card->clients[i].pid)
                (void)printf(
                    "%s{\"pid\": %d, \"memory\": %llu, \"contexts\": %llu, \"busy_ns\": %lld}",
                    shown++ ? ", " : "", sim_pid_of(card, fd, i), (unsigned long long)use->memory,
                    (unsigned long long)use->contexts, (long long)use->busy_ns);
        }
        (void)printf("], \"limits\": {");
        for (uint32_t i = 0, shown = 0; i < SIM_LIMITS_MAX; i++)
            if (card->limits[i].cgroup[0] && card->limits[i].device == d)
                (void)printf("%s\"%s\": %llu", shown++ ? ", " : "", card->limits[i].cgroup,
                             (unsigned long long)card->limits[i].hard);
        (void)printf("}}");
    }
    (void)printf("]}\n");
    sim_unlock(card);
    return 0;
}

static void simgpu_sleep_until(int64_t when)
{
    int64_t span = when - sim_now_ns();
    struct timespec pause = { .tv_sec = span / 1000000000, .tv_nsec = span % 1000000000 };

    if (span > 0)
        (void)nanosleep(&pause, NULL);
}

static int simgpu_watch(struct sim_card *card, int fd, char **words)
{
    uint64_t window_us, count;
    int64_t start;

    if (!words[0] || !words[1] || !simgpu_number(words[0], &window_us)
        || !simgpu_number(words[1], &count))
        return simgpu_usage();
    simgpu_sleep_until(sim_now_ns() + 1000); /* a virtual clock waits here for the others */
    start = sim_now_ns();
    for (uint64_t i = 0; i <= count; i++) {
        simgpu_sleep_until(start + (int64_t)(i * window_us) * 1000);
        (void)simgpu_show(card, fd);
        (void)fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct sim_card *card;
    int fd;

    if (argc < 3)
        return simgpu_usage();
    if (strcmp(argv[1], "create") == 0)
        return simgpu_create(argv[2], argv + 3);
    card = sim_open(argv[2], &fd);
    if (!card) {
        (void)fprintf(stderr, "simgpu: %s: %s\n", argv[2], strerror(errno));
        return 1;
    }
    if (strcmp(argv[1], "set") == 0)
        return simgpu_set(card, argv + 3);
    if (strcmp(argv[1], "watch") == 0)
        return simgpu_watch(card, fd, argv + 3);
    return strcmp(argv[1], "show") == 0 ? simgpu_show(card, fd) : simgpu_usage();
}
