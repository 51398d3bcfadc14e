/* SPDX-License-Identifier: Apache-2.0 */
/* Comma-separated values as spreadsheets write them. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/strbuf.h"
#include "cli/admin/csv_reader.h"
#include "cli/admin/user_csv.h"

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

/* What an export has written is read back as it was; passwords, which none has, are taken as typed. */
static void test_marks_of_exports(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf errors = STRBUF_INIT, text = STRBUF_INIT;
    static const char *const names[] = { "=HYPERLINK(\"http://a\")", "-5", "'=1", "'-5", "plain" };
    json_t *list = NULL;
    size_t wrong = 0;

    (void)state;
    strbuf_adds(&text, "email,full_name,password\n");
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        strbuf_addf(&text, "a%zu@example.com,", i);
        csv_write_field(names[i], strlen(names[i]), &text);
        strbuf_adds(&text, ",'=password\n");
    }
    assert_int_equal(user_csv_read(text.data, text.len, "", &list, &errors, &wrong, NULL), 0);
    assert_int_equal(json_array_size(list), AQ_COUNT(names));
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        const json_t *user = json_object_get(json_array_get(list, i), "user");

        assert_string_equal(json_string_value(json_object_get(user, "full_name")), names[i]);
        assert_string_equal(json_string_value(json_object_get(user, "password")), "'=password");
    }
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_records),
                                        cmocka_unit_test(test_marks_of_exports) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
