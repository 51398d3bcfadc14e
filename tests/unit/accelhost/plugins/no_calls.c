/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that lacks what it must have. */
#include "aliquot/accelerator.h"

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = { .abi = AQ_ACCELERATOR_ABI,
                                               .size = sizeof(struct aq_accelerator),
                                               .name = "none" };
