/* SPDX-License-Identifier: Apache-2.0 */
/* quantity.h - whole numbers as Kubernetes writes amounts: "8", "8k", "2Gi", "3e3", 8 */
#ifndef AQ_K8S_QUANTITY_H
#define AQ_K8S_QUANTITY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define QUANTITY_MAX INT64_C(1000000000000)

/* False if it is no amount, not whole, negative, or more than QUANTITY_MAX. */
bool quantity_read(const json_t *value, int64_t *ret) AQ_UNTRUSTED;

#endif
