/* SPDX-License-Identifier: Apache-2.0 */
/* cron-next: for each line "ZONE AFTER UNTIL SCHEDULE" of standard input, the due times in
 * (AFTER, UNTIL] on one line; Unix time in seconds. For test_cron.py.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/cron.h"

static int answer(char *line)
{
    AQ_CLEANUP(time_zone_freep) struct time_zone *zone = NULL;
    struct aq_error err = { 0 };
    struct cron cron;
    char name[TIME_ZONE_NAME_MAX + 1];
    int64_t at, until;
    int read = 0;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%64s %" SCNd64 " %" SCNd64 " %n", name, &at, &until, &read) < 3
        || cron_parse(line + read, &cron, &err) < 0 || time_zone_open(name, &zone, &err) < 0) {
        (void)fprintf(stderr, "cron-next: %s: %s\n", line, err.text);
        return 1;
    }
    while ((at = cron_next(&cron, zone, at)) <= until)
        (void)printf("%" PRId64 " ", at);
    (void)printf("\n");
    return 0;
}

int main(void)
{
    char line[512];
    int r = 0;

    while (r == 0 && fgets(line, sizeof(line), stdin))
        r = answer(line);
    return r;
}
