#include "loan_process.h"

struct gpu_region gpu_region;
static loan_order_fn *order_fn;

bool gpu_region_order(const struct aq_gpu_loan_order *order, struct aq_gpu_loan_reply *ret)
{
    return order_fn(gpu_region.slot, order, ret);
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
                  loan_order_fn *order)
{
    ledger_forget();
    loan_forget();
    gpu_region = (struct gpu_region){ .limits = limits, .usage = usage, .slot = slot,
                                      .device_count = limits->device_count };
    order_fn = order;
}

__attribute__((visibility("default"))) const struct loan_process loan_process = {
    start,     ledger_reserve, ledger_add,   ledger_get,      ledger_take,  loan_lend,
    loan_join, loan_pay,       loan_leave,   loan_release,    loan_settle,  loan_borrowed,
};
