/* SPDX-License-Identifier: Apache-2.0 */
/* Text that may be JSON: a walk stays within it and comes to an end. */
#include <stdint.h>

#include "base/json_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_within(struct json_span span, const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;

    if (span.text < text || span.text + span.len > text + size)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_scan scan = json_scan_make((const char *)data, size), inner;
    struct json_span key, value;

    while (json_scan_member(&scan, &key)) {
        value = json_scan_value(&scan);
        expect_within(key, data, size);
        expect_within(value, data, size);
        inner = json_scan_make(value.text, value.len);
        while (json_scan_item(&inner))
            expect_within(json_scan_value(&inner), data, size);
    }
    return 0;
}
