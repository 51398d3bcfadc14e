/* SPDX-License-Identifier: Apache-2.0 */
/* Files and names of time zones: what is accepted has spans that follow each other. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(time_zone_freep) struct time_zone *zone = NULL;
    AQ_CLEANUP(aq_freep) char *name = strndup((const char *)data, size);
    struct aq_error err = { 0 };
    int64_t at = -TIME_ZONE_NEVER;

    if (time_zone_check_name(name, &err) == 0)
        require(!strchr(name, '.') && name[0] != '/');
    else
        require(err.text[0]);
    if (time_zone_parse(data, size, &zone, &err) < 0)
        return 0;
    for (int i = 0; i < 200 && at < TIME_ZONE_NEVER; i++) {
        struct time_zone_span span = time_zone_find(zone, at);

        require(span.from <= at && at < span.until);
        require(span.offset >= -26 * 3600 && span.offset <= 26 * 3600);
        at = span.until;
    }
    return 0;
}
