/* SPDX-License-Identifier: Apache-2.0 */
/* content_range.h - which bytes an answer with status 206 has (RFC 9110, 14.4). Pure. */
#ifndef AQ_REGISTRY_CONTENT_RANGE_H
#define AQ_REGISTRY_CONTENT_RANGE_H

#include <stdint.h>

#include "base/cleanup.h"

/* "bytes FIRST-LAST/SIZE", with FIRST <= LAST < SIZE. -EINVAL for anything else, also for a size
 * that is not known ("*").
 */
int content_range_parse(const char *text, uint64_t *ret_first, uint64_t *ret_size) AQ_UNTRUSTED;

#endif
