/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h - ways to choose an agent, by name
 *
 * Those of src/sched, and three that published experiments compare with:
 *   random   any agent where it fits, any device where it fits
 *   bestfit  the agent with the least CPU and devices left, by size of the
 *            largest node; the fullest device where it fits
 *   fgd      fragmentation gradient descent as published (USENIX ATC 2023):
 *            the typical tasks are those of the whole list, known before;
 *            scores are rounded to whole numbers and ties go to the first
 */
#ifndef AQ_SIM_POLICY_H
#define AQ_SIM_POLICY_H

#include "sched/fragmentation.h"
#include "sim/random.h"

struct policy {
    const struct selector_ops *ops;
    /* of those below */
    struct random random;
    struct request_mix typical; /* fgd */
    size_t typical_count;
    double typical_total;
    double cpu_max, devices_max; /* bestfit: the largest node */
};

/* -EINVAL names the known ones. */
int policy_find(const char *name, const struct selector_ops **ret, struct aq_error *err);

extern const struct selector_ops policy_random, policy_bestfit, policy_fgd;

#endif
