/* SPDX-License-Identifier: Apache-2.0 */
/* What a container says for hello, and what it writes into the memory it shares. */
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu/charge.h"
#include "gpuhost/time_share.h"
#include "gpuhost/region_host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gpu_region_host *make(void)
{
    const struct gpu_grant grant = { .uuid = { 1 },
                                     .memory_bytes = (uint64_t)1 << 30,
                                     .share = AQ_GPU_WHOLE / 4 };
    struct gpu_region_host *region = NULL;

    if (gpu_region_host_new(&grant, 1, &region, NULL) < 0)
        __builtin_trap();
    return region;
}

/* Orders, while there are any: how many bytes they were. */
static size_t order(struct gpu_region_host *region, int socket, const uint8_t *data, size_t size)
{
    static const uint32_t magic = AQ_GPU_MAGIC;
    const size_t len = sizeof(struct aq_gpu_loan_order);
    size_t used = 0;

    (void)charge_reserve(gpu_region_host_usage(region), 1, 0, 100, 200);
    for (; size - used >= len && memcmp(data + used, &magic, sizeof(magic)) == 0; used += len)
        (void)gpu_region_host_answer(region, socket, data + used, len);
    return used;
}

/* The rest of the input lies in the slots and in the device's words. */
static void scribble(struct aq_gpu_usage *usage, const uint8_t *data, size_t size)
{
    size_t half = size / 2;

    memcpy(&usage->slots[1], data, half < sizeof(usage->slots[0]) ? half : sizeof(usage->slots[0]));
    memcpy(&usage->devices[0], data + half,
           size - half < sizeof(usage->devices[0]) ? size - half : sizeof(usage->devices[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gpu_region_host *region;
    size_t hello = size < sizeof(struct aq_gpu_hello) ? size : sizeof(struct aq_gpu_hello);
    struct gpu_region_view view;
    int pair[2], r;

    if (!region)
        region = make();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return 0;
    r = gpu_region_host_answer(region, pair[0], data, hello);
    if (r > 0 && r >= AQ_GPU_SLOTS_MAX)
        __builtin_trap();
    hello += order(region, pair[0], data + hello, size - hello);
    scribble(gpu_region_host_usage(region), data + hello, size - hello);
    view = (struct gpu_region_view){ .limits = gpu_region_host_limits(region),
                                     .usage = gpu_region_host_usage(region) };
    (void)gpu_time_share_tick(gpu_region_host_limits(region), &view, 1, 0, true,
                              gpu_monotonic_ns());
    charge_reclaim(gpu_region_host_usage(region), 1, 0);
    (void)close(pair[0]);
    (void)close(pair[1]);
    return 0;
}
