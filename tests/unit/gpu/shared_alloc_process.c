/* SPDX-License-Identifier: Apache-2.0 */
/* shared_alloc_process.c - one process's calls, and the agent's answers as the test gives them */
#include "shared_alloc_process.h"

struct gpu_region gpu_region;
static shared_alloc_request_fn *request_fn;

bool gpu_region_request(const struct aq_gpu_loan_order *order, struct aq_gpu_loan_reply *ret)
{
    return request_fn(gpu_region.slot, order, ret);
}

bool gpu_region_is_alive(void)
{
    return true;
}

void gpu_region_renew(void)
{
}

/* Two seconds pass between any two looks, so nothing is put off. */
int64_t gpu_now_ns(void)
{
    static int64_t now;

    return now += 2000000000;
}

static void start(const struct aq_gpu_limits *limits, struct aq_gpu_usage *usage, uint32_t slot,
                  shared_alloc_request_fn *order)
{
    ledger_after_fork();
    shared_alloc_after_fork();
    gpu_region = (struct gpu_region){
        .limits = limits, .usage = usage, .slot = slot, .device_count = limits->device_count
    };
    request_fn = order;
}

__attribute__((visibility("default"))) const struct shared_alloc_process shared_alloc_process = {
    start,
    ledger_reserve,
    ledger_add,
    ledger_get,
    ledger_take,
    shared_alloc_export,
    shared_alloc_join,
    shared_alloc_charge,
    shared_alloc_leave,
    shared_alloc_release,
    shared_alloc_sync,
    shared_alloc_uncharged,
};
