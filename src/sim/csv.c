/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - lines of plain comma-separated values with a line of names before them */
#include "sim/csv.h"

#include <errno.h>
#include <string.h>

int csv_fail(const struct csv *csv, int column, struct aq_error *err, const char *text)
{
    if (column < 0 || (size_t)column >= csv->columns)
        return aq_fail(err, EINVAL, "line %zu: %s", csv->line, text);
    return aq_fail(err, EINVAL, "line %zu, %.*s: %s", csv->line,
                   (int)AQ_MIN(csv->names[column].len, (size_t)40), csv->names[column].text, text);
}

/* Split one line. The count of values, or -EINVAL. */
static int csv_split(struct csv *csv, struct csv_value *ret, struct aq_error *err)
{
    const char *end = memchr(csv->at, '\n', (size_t)(csv->end - csv->at));
    const char *stop = end ? end : csv->end, *from = csv->at;
    size_t count = 0;

    csv->at = end ? end + 1 : csv->end;
    csv->line++;
    if (stop > from && stop[-1] == '\r')
        stop--;
    if (memchr(from, '"', (size_t)(stop - from)) || memchr(from, '\0', (size_t)(stop - from)))
        return csv_fail(csv, -1, err, "quotes are not read; write values without commas");
    for (;;) {
        const char *comma = memchr(from, ',', (size_t)(stop - from));
        const char *to = comma ? comma : stop;

        if (count == CSV_COLUMNS_MAX)
            return csv_fail(csv, -1, err, "more than 64 columns");
        ret[count++] = (struct csv_value){ from, (size_t)(to - from) };
        if (!comma)
            return (int)count;
        from = comma + 1;
    }
}

int csv_begin(struct csv *csv, const char *text, size_t len, struct aq_error *err)
{
    int count;

    *csv = (struct csv){ .at = text, .end = text + len };
    if (len == 0)
        return aq_fail(err, EINVAL, "it is empty: the first line must name the columns");
    if ((count = csv_split(csv, csv->names, err)) < 0)
        return count;
    csv->columns = (size_t)count;
    return 0;
}

int csv_next(struct csv *csv, struct aq_error *err)
{
    int count;

    while (csv->at < csv->end) {
        count = csv_split(csv, csv->values, err);
        if (count < 0)
            return count;
        if (count == 1 && csv->values[0].len == 0)
            continue;
        if ((size_t)count != csv->columns)
            return aq_fail(err, EINVAL, "line %zu: %d values for %zu columns", csv->line, count,
                           csv->columns);
        return 1;
    }
    return 0;
}

int csv_find(const struct csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->columns; i++)
        if (csv->names[i].len == strlen(name)
            && memcmp(csv->names[i].text, name, csv->names[i].len) == 0)
            return (int)i;
    return -1;
}

int csv_number(const struct csv *csv, int column, int64_t min, int64_t max, int64_t missing,
               int64_t *ret, struct aq_error *err)
{
    const struct csv_value *v = column < 0 ? NULL : &csv->values[column];
    size_t i = 0;
    int64_t value = 0;
    bool is_negative;

    if ((!v || v->len == 0) && missing != INT64_MIN) {
        *ret = missing;
        return 0;
    }
    if (!v || v->len == 0)
        return csv_fail(csv, column, err, "a number is missing");
    is_negative = v->text[0] == '-';
    for (i = is_negative; i < v->len && v->text[i] >= '0' && v->text[i] <= '9'; i++)
        if (__builtin_mul_overflow(value, 10, &value)
            || __builtin_add_overflow(value, v->text[i] - '0', &value))
            return csv_fail(csv, column, err, "the number is too large");
    if (i == (size_t)is_negative)
        return csv_fail(csv, column, err, "not a number");
    if (i < v->len && v->text[i] == '.')
        for (i++; i < v->len && v->text[i] >= '0' && v->text[i] <= '9';)
            i++;
    if (i < v->len)
        return csv_fail(csv, column, err, "not a number");
    value = is_negative ? -value : value;
    if (value < min || value > max)
        return csv_fail(csv, column, err, "the number is out of range");
    *ret = value;
    return 0;
}

size_t csv_count_lines(const char *text, size_t len)
{
    size_t count = 1;

    for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + len - at))); at++)
        count++;
    return count;
}
