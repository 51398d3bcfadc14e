/* SPDX-License-Identifier: Apache-2.0 */
/* rate_limit.c - the container's bucket of device time, and the clocks it runs on */
#include "gpu/rate_limit.h"

#define SILENT_NS 1000000000

/* Scaled without overflow for any pair of words that a region may hold. */
static int64_t rate_limit_scale(int64_t ns, uint32_t rate)
{
    return ns / AQ_GPU_WHOLE * rate + ns % AQ_GPU_WHOLE * rate / AQ_GPU_WHOLE;
}

/* What a container writes may be anything: sums stop at the ends. */
static int64_t rate_limit_add(int64_t a, int64_t b)
{
    int64_t sum;

    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b < 0 ? INT64_MIN : INT64_MAX;
}

static void rate_limit_read_clock(const struct aq_gpu_clock *clock, struct aq_gpu_clock *ret)
{
    uint32_t before, after;

    for (int tries = 0; tries < 1000; tries++) { /* an agent that died while writing */
        before = __atomic_load_n(&clock->seq, __ATOMIC_ACQUIRE);
        ret->rate = __atomic_load_n(&clock->rate, __ATOMIC_RELAXED);
        ret->at_ns = __atomic_load_n(&clock->at_ns, __ATOMIC_RELAXED);
        ret->value_ns = __atomic_load_n(&clock->value_ns, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        after = __atomic_load_n(&clock->seq, __ATOMIC_RELAXED);
        if (before == after && !(before & 1))
            return;
    }
}

int64_t rate_limit_clock(const struct aq_gpu_clock *clock, int64_t now_ns, int64_t alive_ns,
                         uint32_t share)
{
    struct aq_gpu_clock at = { 0 };
    int64_t silent = alive_ns + SILENT_NS;

    rate_limit_read_clock(clock, &at);
    if (now_ns < at.at_ns)
        return at.value_ns;
    if (at.rate > share && now_ns > silent) {
        if (silent < at.at_ns)
            silent = at.at_ns;
        return at.value_ns + rate_limit_scale(silent - at.at_ns, at.rate)
               + rate_limit_scale(now_ns - silent, share);
    }
    return at.value_ns + rate_limit_scale(now_ns - at.at_ns, at.rate);
}

void rate_limit_charge(struct aq_gpu_usage_device *usage, int64_t grant_ns, int64_t ns,
                       int64_t keep_ns)
{
    int64_t old = __atomic_load_n(&usage->paid_ns, __ATOMIC_RELAXED), new;

    do {
        new = old < grant_ns - keep_ns ? grant_ns - keep_ns : old;
        new = rate_limit_add(new, ns);
    } while (!__atomic_compare_exchange_n(&usage->paid_ns, &old, new, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    (void)__atomic_fetch_add(&usage->used_ns, ns, __ATOMIC_RELAXED);
}

int64_t rate_limit_debt(const struct aq_gpu_usage_device *usage, int64_t grant_ns)
{
    return rate_limit_add(__atomic_load_n(&usage->paid_ns, __ATOMIC_RELAXED), -grant_ns);
}

int64_t rate_limit_wait_ns(int64_t debt_ns, uint32_t rate)
{
    if (debt_ns <= 0)
        return 0;
    if (rate == 0 || debt_ns > INT64_MAX / AQ_GPU_WHOLE)
        return INT64_MAX / 4;
    return debt_ns * AQ_GPU_WHOLE / rate;
}
