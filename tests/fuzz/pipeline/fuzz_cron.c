/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: one that is accepted is due at some time, at whole minutes and later each time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

/* Version 1 of the format: one type, UTC. */
static struct time_zone *open_utc(void)
{
    static const uint8_t file[44 + 7] = { 'T', 'Z', 'i', 'f', [39] = 1, [43] = 1 };
    struct time_zone *zone = NULL;

    require(time_zone_parse(file, sizeof(file), &zone, NULL) == 0);
    return zone;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct time_zone *utc;
    AQ_CLEANUP(aq_freep) char *text = strndup((const char *)data, size);
    struct aq_error err = { 0 };
    struct cron cron;
    int64_t at = INT64_C(1800000000);

    if (!utc)
        utc = open_utc();
    if (cron_parse(text, &cron, &err) < 0) {
        require(err.text[0]);
        return 0;
    }
    for (int i = 0; i < 5; i++) {
        int64_t next = cron_next(&cron, utc, at);

        require(next > at && next != CRON_NEVER && next % 60 == 0);
        require(cron_last(&cron, utc, at, next) == next);
        at = next;
    }
    return 0;
}
