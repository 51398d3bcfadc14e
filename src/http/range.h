/* SPDX-License-Identifier: Apache-2.0 */
/* range.h - which bytes of a file a request wants (RFC 9110, 14) */
#ifndef AQ_HTTP_RANGE_H
#define AQ_HTTP_RANGE_H

#include <stdint.h>

#include "base/cleanup.h"

struct range {
    uint64_t from, length;
};

/* 1 = *ret is the range of "bytes=..."; 0 = it is none, or several: the whole file is sent; -ERANGE
 * = nothing of it is in a file of this size.
 */
int range_parse(const char *text, uint64_t size, struct range *ret) AQ_UNTRUSTED;

#endif
