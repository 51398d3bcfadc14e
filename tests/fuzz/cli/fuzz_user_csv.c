/* SPDX-License-Identifier: Apache-2.0 */
/* A table of users as a spreadsheet writes it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/admin/csv_reader.h"
#include "cli/admin/user_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *copy_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* Records lie within the text, in order, and say where they begin. */
static void read_records(char *text, size_t size)
{
    struct csv_reader reader;
    struct csv_record record;
    struct aq_error err = { 0 };
    size_t line = 0;
    int r = csv_reader_begin(&reader, text, size, &err);

    while (r >= 0 && (r = csv_reader_next(&reader, &record, &err)) > 0) {
        if (record.line <= line || record.count == 0 || record.count > CSV_FIELDS_MAX)
            __builtin_trap();
        line = record.line;
        for (size_t i = 0; i < record.count; i++)
            if (record.fields[i] < text || record.fields[i] > text + size
                || strlen(record.fields[i]) > CSV_FIELD_MAX)
                __builtin_trap();
    }
    if (r < 0 && !err.text[0])
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct strbuf errors = STRBUF_INIT;
    struct aq_error err = { 0 };
    json_t *rows = NULL;
    size_t count = 0;
    char *text = copy_text(data, size);

    if (user_csv_read(text, size, "default", &rows, &errors, &count, &err) == 0) {
        if (json_array_size(rows) > USER_CSV_ROWS_MAX || (count && !errors.len))
            __builtin_trap();
    } else if (!err.text[0]) {
        __builtin_trap();
    }
    json_decref(rows);
    strbuf_done(&errors);
    free(text);

    text = copy_text(data, size);
    read_records(text, size);
    free(text);
    return 0;
}
