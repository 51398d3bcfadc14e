/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of another version of the interface. */
#include "aliquot/accelerator.h"

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = { .abi = AQ_ACCELERATOR_ABI + 1, .name = "old" };
