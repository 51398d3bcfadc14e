/* SPDX-License-Identifier: Apache-2.0 */
/* fair.h - fair share: heavy recent usage lowers an account's claim
 *
 * Usage is kept in slot-seconds per day and counts half after every half-life.
 * Each slot's decayed usage is set against what the resource group has to give
 * in the days looked back on, the slots are averaged by weight, and the factor
 * falls from 1 (nothing used) by half for every full share: F = 2^(-U/weight).
 * Pure; formulas as in Backend.AI's fair share.
 */
#ifndef AQ_SCHED_FAIR_H
#define AQ_SCHED_FAIR_H

#include <stddef.h>

/* What was used of one slot on one day. */
struct fair_day {
    int days_ago; /* 0 = today; a day to come counts as today */
    double slot_seconds;
};

/* The sum, each day halved every 'half_life_days' (> 0). */
double fair_decayed(const struct fair_day *days, size_t count, double half_life_days);

struct fair_slot {
    double used;     /* decayed slot-seconds */
    double capacity; /* slots the group has; <= 0: not counted */
    double weight;   /* cpu 1, mem 0.001, accelerators 10, others 1 by default */
};

/* The weighted mean of used shares; 0 if nothing counts. */
double fair_usage(const struct fair_slot *slots, size_t count, double lookback_days);

/* In (0, 1]; 'weight' > 0: who weighs more may use more. */
double fair_factor(double usage, double weight);

/* The default weight of a slot by its name. */
double fair_default_weight(const char *slot_name);

#endif
