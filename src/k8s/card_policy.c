/* SPDX-License-Identifier: Apache-2.0 */
/* card_policy.c - see card_policy.h */
#include "k8s/card_policy.h"

#include <string.h>

int card_policy_find(const char *name)
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
