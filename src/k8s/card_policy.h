/* SPDX-License-Identifier: Apache-2.0 */
/* card_policy.h - how a card is chosen, as settings and annotations name it */
#ifndef AQ_K8S_CARD_POLICY_H
#define AQ_K8S_CARD_POLICY_H

enum card_policy {
    POLICY_BIN_PACKING,
    POLICY_HIGH_PERFORMANCE,
    POLICY_FRAGMENTATION,
    POLICY_COUNT
};

/* -1 for a name that is not known. */
int card_policy_find(const char *name);

#endif
