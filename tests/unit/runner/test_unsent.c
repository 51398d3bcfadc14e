/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "runner/unsent.h"

#define HEADING "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"
#define REST " 01:00000014 00000000     0        0 0 2 0000000000000000 20 0 0 10 -1\n"

static void which_connections_count(void **state)
{
    static const struct {
        const char *text;
        size_t count;
    } rows[] = {
        { "", 0 },
        { HEADING, 0 },
        { HEADING "   0: 0100D60A:1F90 0200D60A:9C40 04 00000001:00000000" REST, 1 },
        { HEADING "   0: 0100D60A:1F90 0200D60A:9C40 09 0000A001:00000000" REST
                  " 118: 0100D60A:1F91 0200D60A:9C41 0B 00000001:00000000" REST,
          2 },
        /* all is acknowledged; open; listening; in this container */
        { HEADING "   0: 0100D60A:1F90 0200D60A:9C40 04 00000000:00000000" REST
                  "   1: 0100D60A:1F90 0200D60A:9C40 01 00000001:00000000" REST
                  "   2: 00000000:1F90 00000000:0000 0A 00000000:00000000" REST
                  "   3: 0100007F:1F90 0100007F:9C40 04 00000001:00000000" REST,
          0 },
        { HEADING "   0: 000080FE000000000000000001000000:1F90 "
                  "000080FE000000000000000002000000:9C40 04 00000001:00000000" REST
                  "   1: 00000000000000000000000001000000:1F90 "
                  "00000000000000000000000001000000:9C40 04 00000001:00000000" REST,
          1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(unsent_count(rows[i].text) == rows[i].count, "row %zu", i);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_connections_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
