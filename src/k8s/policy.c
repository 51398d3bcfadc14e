/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - see policy.h */
#include "k8s/policy.h"

#include <string.h>

int policy_find(const char *name)
{
    static const char *const names[POLICY_COUNT] = {
        [POLICY_BIN_PACKING] = "bin-packing",
        [POLICY_HIGH_PERFORMANCE] = "high-performance",
        [POLICY_FRAGMENTATION] = "fragmentation",
    };

    for (int i = 0; i < POLICY_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}
