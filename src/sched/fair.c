/* SPDX-License-Identifier: Apache-2.0 */
/* fair.c - fair share: heavy recent usage lowers an account's claim */
#include "sched/fair.h"

#include <math.h>
#include <string.h>

#define SECONDS_PER_DAY 86400.0
#define EXPONENT_MAX 10.0

double fair_decayed(const struct fair_day *days, size_t count, double half_life_days)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += days[i].slot_seconds
               * (days[i].days_ago > 0 ? exp2(-days[i].days_ago / half_life_days) : 1);
    return sum;
}

double fair_usage(const struct fair_slot *slots, size_t count, double lookback_days)
{
    double sum = 0, weights = 0;

    for (size_t i = 0; i < count; i++) {
        if (slots[i].capacity <= 0 || lookback_days <= 0)
            continue;
        sum += slots[i].used / (slots[i].capacity * lookback_days * SECONDS_PER_DAY)
               * slots[i].weight;
        weights += slots[i].weight;
    }
    return weights > 0 ? sum / weights : 0;
}

double fair_factor(double usage, double weight)
{
    double exponent = weight > 0 ? -usage / weight : -EXPONENT_MAX;

    return fmin(exp2(fmax(fmin(exponent, EXPONENT_MAX), -EXPONENT_MAX)), 1);
}

double fair_default_weight(const char *slot_name)
{
    static const char *const accelerators[] = { "cuda.", "rocm.", "tpu.", "ipu." };

    if (strcmp(slot_name, "mem") == 0)
        return 0.001;
    for (size_t i = 0; i < sizeof(accelerators) / sizeof(accelerators[0]); i++)
        if (strncmp(slot_name, accelerators[i], strlen(accelerators[i])) == 0)
            return 10;
    return 1;
}
