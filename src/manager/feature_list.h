/* SPDX-License-Identifier: Apache-2.0 */
/* feature_list.h - the features that this manager has */
#ifndef AQ_MANAGER_FEATURE_LIST_H
#define AQ_MANAGER_FEATURE_LIST_H

#include "manager/call/feature.h"

/* In the order in which they are opened; ends with NULL. */
extern const struct feature *const manager_features[];

#endif
