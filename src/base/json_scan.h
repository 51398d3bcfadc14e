/* SPDX-License-Identifier: Apache-2.0 */
/* json_scan.h - walk through JSON text without making a tree of it
 *
 * Objects and arrays are entered one member at a time; a value that is not of
 * interest, or is read by other means, is a span of the text. What is inside of
 * such a value is only followed to its end, not checked. Text that is not JSON
 * ends the walk, and the scan has failed.
 *
 *     while (json_scan_member(&scan, &key))
 *         value = json_scan_value(&scan);
 */
#ifndef AQ_BASE_JSON_SCAN_H
#define AQ_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

struct json_span {
    const char *text; /* borrowed, without an end of its own */
    size_t len;
};

struct json_scan {
    const char *at, *end;
    bool failed;
};

static inline struct json_scan json_scan_make(const char *text, size_t len)
{
    return (struct json_scan){ .at = text, .end = text + len };
}

/* The key of the next member, without its quotes and as it is written: its value is
 * to be taken next. False after the last. The first call takes the brace.
 */
bool json_scan_member(struct json_scan *scan, struct json_span *ret_key) AQ_UNTRUSTED;

/* Whether an item follows, to be taken next. The first call takes the bracket. */
bool json_scan_item(struct json_scan *scan) AQ_UNTRUSTED;

/* The next value, whatever it is; empty if there is none. */
struct json_span json_scan_value(struct json_scan *scan) AQ_UNTRUSTED;

static inline bool json_span_equals(struct json_span a, struct json_span b)
{
    return a.len == b.len && memcmp(a.text, b.text, a.len) == 0;
}

static inline bool json_span_is(struct json_span span, const char *text)
{
    return json_span_equals(span, (struct json_span){ text, strlen(text) });
}

#endif
