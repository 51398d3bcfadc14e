/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c - how long a kernel's devices take to be chosen and given back
 *
 *     bench/alloc [ROUNDS]
 *
 * Allocates and releases a kernel of 1.2 shares and 4 cpus (and 8 GiB) by
 * affinity, on an empty node and on one where half of everything is taken by
 * other kernels. Prints the median of each in nanoseconds, and as last line a
 * JSON object whose "median_us" is the slowest of the node's medians.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "alloc/alloc_map.h"

#define DEVICES_MAX 1024

static const struct node {
    const char *name;
    int gpus, cores, numa_nodes;
    double target_us;
} nodes[] = {
    { "8x128", 8, 128, 2, 10 },
    { "16x512", 16, 512, 8, 40 },
};

static const char *const order[] = { "cuda", "cpu", "mem", NULL };

static void die(const char *what, const struct aq_error *err)
{
    fprintf(stderr, "bench/alloc: %s: %s\n", what, err->text);
    exit(1);
}

static struct alloc_map *make_map(const struct node *node, enum alloc_affinity affinity)
{
    static const struct alloc_slot slots[] = {
        { .name = "cuda.shares", .quantum = AMOUNT_ONE / 10 },
        { .name = "cpu" },
        { .name = "mem", .type = SLOT_BYTES, .strategy = ALLOC_FILL }
    };
    static struct alloc_device devices[DEVICES_MAX];
    static char ids[DEVICES_MAX][16];
    struct alloc_config config = { .slots = slots,
                                   .slot_count = AQ_COUNT(slots),
                                   .devices = devices,
                                   .allocation_order = order,
                                   .affinity = affinity };
    struct aq_error err = { 0 };
    struct alloc_map *map = NULL;
    size_t n = 0;

    for (int i = 0; i < node->gpus; i++, n++) {
        (void)snprintf(ids[n], sizeof(ids[n]), "GPU-%04d", i);
        devices[n] = (struct alloc_device){ ids[n], "cuda.shares", AMOUNT_ONE,
                                            i * node->numa_nodes / node->gpus };
    }
    for (int i = 0; i < node->cores; i++, n++) {
        (void)snprintf(ids[n], sizeof(ids[n]), "%d", i);
        devices[n] = (struct alloc_device){ ids[n], "cpu", AMOUNT_ONE,
                                            i * node->numa_nodes / node->cores };
    }
    devices[n++] = (struct alloc_device){ "root", "mem", INT64_C(4) << 40, -1 };
    config.device_count = n;
    if (alloc_map_new(&config, &map, &err) < 0)
        die("map", &err);
    return map;
}

static void make_request(struct slots *slots, int64_t shares, int64_t cpus)
{
    if (slots_set(slots, "cuda.shares", shares) < 0
        || slots_set(slots, "cpu", cpus * AMOUNT_ONE) < 0
        || slots_set(slots, "mem", INT64_C(8) << 30) < 0)
        exit(1);
}

/* Other kernels, until half of the GPUs and cores are theirs. */
static void fill_half(struct alloc_map *map, const struct node *node)
{
    AQ_CLEANUP(slots_donep) struct slots slots = { 0 };
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { 0 };
    struct alloc_request request = { .slots = &slots };
    struct aq_error err = { 0 };

    make_request(&slots, AMOUNT_ONE / 2, node->cores / node->gpus / 2);
    for (int i = 0; i < node->gpus; i++)
        if (alloc_map_allocate(map, &request, &grant, &err) < 0)
            die("fill", &err);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t now_nsec(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t median_nsec(struct alloc_map *map, int64_t *samples, int rounds)
{
    AQ_CLEANUP(slots_donep) struct slots slots = { 0 };
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { 0 };
    struct alloc_request request = { .slots = &slots };
    struct aq_error err = { 0 };

    make_request(&slots, AMOUNT_ONE * 12 / 10, 4);
    for (int i = -rounds / 10; i < rounds; i++) {
        int64_t start = now_nsec();

        if (alloc_map_allocate(map, &request, &grant, &err) < 0
            || alloc_map_release(map, &grant, &err) < 0)
            die("kernel", &err);
        if (i >= 0)
            samples[i] = now_nsec() - start;
    }
    qsort(samples, (size_t)rounds, sizeof(*samples), compare);
    return samples[rounds / 2];
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20000;
    int64_t *samples = calloc(rounds > 0 ? (size_t)rounds : 1, sizeof(*samples));
    double worst[AQ_COUNT(nodes)] = { 0 };

    if (rounds < 1 || !samples) {
        fprintf(stderr, "usage: bench/alloc [ROUNDS]\n");
        return 2;
    }
    for (size_t i = 0; i < AQ_COUNT(nodes); i++) {
        for (int affinity = ALLOC_INTERLEAVED; affinity <= ALLOC_SINGLE_NODE; affinity++) {
            for (int half = 0; half <= 1; half++) {
                AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = make_map(
                    &nodes[i], (enum alloc_affinity)affinity);
                int64_t median;

                if (half)
                    fill_half(map, &nodes[i]);
                median = median_nsec(map, samples, rounds);
                worst[i] = AQ_MAX(worst[i], (double)median / 1000);
                printf("%s %s %s: %jd ns\n", nodes[i].name,
                       affinity == ALLOC_INTERLEAVED ? "interleaved" : "single-node",
                       half ? "half full" : "empty", (intmax_t)median);
            }
        }
    }
    free(samples);
    printf("{\"bench\": \"alloc\", \"rounds\": %d", rounds);
    for (size_t i = 0; i < AQ_COUNT(nodes); i++)
        printf(", \"%s\": {\"median_us\": %.3f, \"target_us\": %.0f, \"met\": %s}", nodes[i].name,
               worst[i], nodes[i].target_us, worst[i] < nodes[i].target_us ? "true" : "false");
    printf("}\n");
    return 0;
}
