/* SPDX-License-Identifier: Apache-2.0 */
/* An accepted range begins inside of the whole, and its numbers are those of the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "registry/content_range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t first = 0, whole = 0;
    char text[128];

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (content_range_parse(text, &first, &whole) < 0) {
        if (first || whole)
            abort();
    } else if (first >= whole || strncmp(text, "bytes ", 6) != 0
               || strtoull(text + 6, NULL, 10) != first
               || strtoull(strchr(text, '/') + 1, NULL, 10) != whole) {
        abort();
    }
    return 0;
}
