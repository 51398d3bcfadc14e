/* SPDX-License-Identifier: Apache-2.0 */
/* Comma-separated values as spreadsheets write them. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cli/admin/csv_reader.h"

static void test_records(void **state)
{
    static const struct {
        const char *text;
        const char *records; /* fields with '|', lines with ';'; NULL = refused */
    } rows[] = {
        { "a,b\nc,d", "1|a|b;2|c|d;" },
        { "\xef\xbb\xbf"
          "a;b\r\nc,c;d\r\n",
          "1|a|b;2|c,c|d;" },
        { "a\tb\rc\td\r", "1|a|b;2|c|d;" },
        { " a , b \n\n,,\n \"c \" ,d\n", "1|a|b;4|c |d;" },
        { "a,b\n\"c\"\"c\",\"d\r\ne\"\nf,\n", "1|a|b;2|c\"c|d\r\ne;4|f|;" },
        { "\"a,a\";b\nc;d\n", "1|a,a|b;2|c|d;" },
        { "", "" },
        { "a,b\nc,\"d", NULL },
        { "a,b\nc,\"d\"d\n", NULL },
        { "a,b\nc,d\"d\n", NULL },
        { "a,\xff\n", NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        AQ_CLEANUP(aq_freep) char *text = strdup(rows[i].text);
        struct csv_reader reader;
        struct csv_record record;
        struct aq_error err = { 0 };
        int r = csv_reader_begin(&reader, text, strlen(text), &err);

        while (r >= 0 && (r = csv_reader_next(&reader, &record, &err)) > 0) {
            strbuf_addf(&out, "%zu", record.line);
            for (size_t k = 0; k < record.count; k++)
                strbuf_addf(&out, "|%s", record.fields[k]);
            strbuf_addc(&out, ';');
        }
        assert_int_equal(r < 0, !rows[i].records);
        if (rows[i].records)
            assert_string_equal(out.data, rows[i].records);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_records) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
