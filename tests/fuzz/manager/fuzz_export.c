/* SPDX-License-Identifier: Apache-2.0 */
/* The filter and order of a report, of each report, and what lists make of them. */
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "manager/call/export.h"
#include "manager/usage/export_reports.h"
#include "store/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIELDS_MAX 32

/* Whatever its values are, they stay values. */
static bool is_about_syntax(const char *text)
{
    static const char *const starts[] = { "a text has", "expected", "there is no", "nested" };
    const char *said = strchr(text, ':');

    for (size_t i = 0; said && i < AQ_COUNT(starts); i++)
        if (strncmp(said + 2, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* What is accepted is a filter of the fields that the report names, and of no others. */
static void compile(const struct export_report *report, const char *text)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    struct filter_field fields[FIELDS_MAX];
    struct filter_values values = { .count = 0 };
    struct aq_error err = { 0 };
    size_t count = 0;

    if (report->field_count > FIELDS_MAX)
        __builtin_trap();
    for (size_t i = 0; i < report->field_count; i++)
        if (report->fields[i].test != EXPORT_NONE)
            fields[count++] = (struct filter_field){ .name = report->fields[i].field,
                                                     .column = "c",
                                                     .type = report->fields[i].test == EXPORT_RANGE
                                                                 ? FILTER_TIME
                                                             : report->fields[i].test == EXPORT_FLAG
                                                                 ? FILTER_BOOL
                                                                 : FILTER_STRING };
    if (filter_compile(text, fields, count, &arena, &sql, &values, &err) < 0
        && is_about_syntax(err.text))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_auto_t *body = NULL;

    if (decode_json((const char *)data, size, &body, NULL) < 0)
        return 0;
    for (size_t i = 0; i < export_report_count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT, order = STRBUF_INIT;
        const json_t *given = json_object_get(body, "filter");
        struct aq_error err = { 0 };

        if (json_is_object(given)
            && export_read_filter(&export_reports[i], given, &filter, &err) == 0 && filter.len)
            compile(&export_reports[i], filter.data);
        (void)export_read_order(&export_reports[i], json_object_get(body, "order"), &order, &err);
    }
    return 0;
}
