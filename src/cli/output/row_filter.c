/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that match "status=running", by any column that is shown. */
#include "cli/output/row_filter.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/opt.h"
#include "model/slot.h"

#define CONDITIONS_MAX 32

enum row_filter_op {
    ROW_FILTER_EQUAL,
    ROW_FILTER_UNEQUAL,
    ROW_FILTER_CONTAINS,
    ROW_FILTER_GREATER,
    ROW_FILTER_AT_LEAST,
    ROW_FILTER_LESS,
    ROW_FILTER_AT_MOST,
};

struct row_filter_text {
    const char *name, *value;
    size_t name_len;
    enum row_filter_op op;
};

struct row_filter_condition {
    const struct column *column;
    const char *member; /* of a column of slots, or NULL */
    const char *value;
    enum row_filter_op op;
    bool is_age;
    double number; /* NAN = the value is none; times in microseconds */
};

struct row_filter {
    const struct output *output;
    struct row_filter_condition conditions[CONDITIONS_MAX];
    size_t count;
};

/* ---- reading ---- */

static bool row_filter_split(const char *text, struct row_filter_text *ret)
{
    static const struct {
        const char *text;
        enum row_filter_op op;
    } ops[] = {
        { "==", ROW_FILTER_EQUAL },   { "!=", ROW_FILTER_UNEQUAL }, { ">=", ROW_FILTER_AT_LEAST },
        { "<=", ROW_FILTER_AT_MOST }, { "=", ROW_FILTER_EQUAL },    { "~", ROW_FILTER_CONTAINS },
        { ">", ROW_FILTER_GREATER },  { "<", ROW_FILTER_LESS },
    };

    ret->name = text;
    ret->name_len = 0;
    while (isalnum((unsigned char)text[ret->name_len])
           || (text[ret->name_len] && strchr("_.-", text[ret->name_len])))
        ret->name_len++;
    for (size_t i = 0; i < AQ_COUNT(ops); i++) {
        size_t len = strlen(ops[i].text);

        if (strncmp(text + ret->name_len, ops[i].text, len) != 0)
            continue;
        ret->op = ops[i].op;
        ret->value = text + ret->name_len + len;
        return ret->name_len > 0 && !isspace((unsigned char)ret->value[0])
               && !strpbrk(ret->value, "\"&|");
    }
    return false;
}

bool row_filter_is_ours(const char *text)
{
    struct row_filter_text split;

    return row_filter_split(text, &split);
}

const char *row_filter_wanted(const struct column *columns, const char *text, const char *key)
{
    struct row_filter_text split;
    const struct column *column;

    if (!row_filter_split(text, &split) || split.op != ROW_FILTER_EQUAL)
        return NULL;
    column = output_find_column(columns, split.name, split.name_len);
    return column && strcmp(column->key, key) == 0 && !strchr(split.value, '*') ? split.value
                                                                                : NULL;
}

/* "1.5", "2g"; NAN if it is neither. */
static double row_filter_parse_amount(const char *text)
{
    int64_t bytes;
    char *end;
    double number = strtod(text, &end);

    if (end > text && *end == '\0')
        return number;
    return slot_amount_parse(text, strlen(text), SLOT_BYTES, false, "mem", &bytes, NULL) == 0
               ? (double)bytes
               : NAN;
}

/* A number, a size, a date or a span of time, as the column has them. */
static int row_filter_read_number(struct row_filter_condition *c, struct aq_error *err)
{
    bool is_time = c->column->kind == COLUMN_TIME;
    int64_t usec;

    c->number = NAN;
    if (!is_time) {
        c->number = row_filter_parse_amount(c->value);
    } else if (clock_parse_duration(c->value, &usec) == 0) {
        c->is_age = true;
        c->number = (double)usec;
    } else if (clock_parse_local_date(c->value, &usec) == 0) {
        c->number = (double)usec;
    }
    if (c->op >= ROW_FILTER_GREATER && isnan(c->number))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--filter: '%.60s' is no %s", c->value,
                            is_time ? "date, and no span of time such as 2h" : "number or size");
    return 0;
}

static int row_filter_read(const struct column *columns, const char *text,
                           struct row_filter_condition *ret, struct aq_error *err)
{
    struct row_filter_text split;
    const char *point;

    (void)row_filter_split(text, &split);
    *ret = (struct row_filter_condition){
        .column = output_find_column(columns, split.name, split.name_len),
        .value = split.value,
        .op = split.op,
    };
    point = memchr(split.name, '.', split.name_len);
    if (!ret->column && point) {
        ret->column = output_find_column(columns, split.name, (size_t)(point - split.name));
        ret->member = point + 1;
        if (ret->column && ret->column->kind != COLUMN_SLOTS)
            ret->column = NULL;
    }
    if (!ret->column)
        return output_fail_unknown_column(columns, "--filter", split.name, split.name_len, err);
    return row_filter_read_number(ret, err);
}

const struct column *row_filter_column(const struct column *columns, const char *text)
{
    struct row_filter_condition condition;

    return row_filter_is_ours(text) && row_filter_read(columns, text, &condition, NULL) == 0
               ? condition.column
               : NULL;
}

/* ---- matching ---- */

/* Does one of the words of "a,b" match? */
static bool row_filter_equals(const char *wanted, const char *text)
{
    char pattern[256];

    for (const char *at = wanted; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t len = AQ_MIN(strcspn(at, ","), sizeof(pattern) - 1);

        memcpy(pattern, at, len);
        pattern[len] = '\0';
        if (fnmatch(pattern, text, FNM_CASEFOLD) == 0)
            return true;
    }
    return false;
}

static bool row_filter_compares(enum row_filter_op op, double value, double wanted)
{
    switch (op) {
    case ROW_FILTER_GREATER:
        return value > wanted;
    case ROW_FILTER_AT_LEAST:
        return value >= wanted;
    case ROW_FILTER_LESS:
        return value < wanted;
    default:
        return value <= wanted;
    }
}

/* The value as a number for the condition's; NAN if it is none. */
static double row_filter_number(const struct row_filter *f, const struct row_filter_condition *c,
                                const json_t *value)
{
    const char *text = json_string_value(value);
    int64_t usec;

    if (json_is_number(value))
        return json_number_value(value);
    if (!text)
        return NAN;
    if (c->column->kind == COLUMN_TIME) {
        if (clock_parse_date(text, &usec) < 0)
            return NAN;
        return (double)(c->is_age ? f->output->now_usec - usec : usec);
    }
    return row_filter_parse_amount(text);
}

static bool row_filter_matches_text(const struct row_filter *f,
                                    const struct row_filter_condition *c, const json_t *value)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf shown = STRBUF_INIT;
    const char *raw = json_string_value(value);

    if (json_is_boolean(value))
        raw = json_is_true(value) ? "true" : "false";
    if (c->member && raw)
        strbuf_adds(&shown, raw);
    else
        cell_write(f->output, c->column, value, &shown);
    if (c->op == ROW_FILTER_CONTAINS)
        return strcasestr(shown.data, c->value) || (raw && strcasestr(raw, c->value));
    return row_filter_equals(c->value, shown.data) || (raw && row_filter_equals(c->value, raw));
}

static bool row_filter_matches(const struct row_filter *f, const struct row_filter_condition *c,
                               const json_t *row)
{
    const json_t *value = json_object_get(row, c->column->key), *item;
    bool is_equal;
    size_t i;

    if (c->member)
        value = json_object_getn(value, c->member, strcspn(c->member, "=!~<>"));
    if (c->op >= ROW_FILTER_GREATER) {
        double number = row_filter_number(f, c, value);

        return !isnan(number) && !isnan(c->number) && row_filter_compares(c->op, number, c->number);
    }
    is_equal = row_filter_matches_text(f, c, value)
               || (c->op != ROW_FILTER_CONTAINS && !isnan(c->number) && !c->is_age
                   && row_filter_number(f, c, value) == c->number);
    json_array_foreach(value, i, item)
        is_equal = is_equal || row_filter_matches_text(f, c, item);
    return is_equal != (c->op == ROW_FILTER_UNEQUAL);
}

static bool row_filter_keeps(const struct row_filter *f, const json_t *row)
{
    for (size_t i = 0; i < f->count; i++) {
        const struct row_filter_condition *c = &f->conditions[i];
        bool matches = row_filter_matches(f, c, row);

        for (size_t j = 0; !matches && c->op == ROW_FILTER_EQUAL && j < f->count; j++)
            if (j != i && f->conditions[j].op == ROW_FILTER_EQUAL
                && f->conditions[j].column == c->column && !c->member && !f->conditions[j].member)
                matches = row_filter_matches(f, &f->conditions[j], row);
        if (!matches)
            return false;
    }
    return true;
}

int row_filter_apply(const struct output *o, const struct column *columns, const char *const *texts,
                     size_t count, json_t *rows, struct aq_error *err)
{
    struct row_filter f = { .output = o };

    for (size_t i = 0; i < count; i++) {
        int r;

        if (!row_filter_is_ours(texts[i]))
            continue;
        if (f.count == CONDITIONS_MAX)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "more than %d of --filter",
                                CONDITIONS_MAX);
        r = row_filter_read(columns, texts[i], &f.conditions[f.count++], err);
        if (r < 0)
            return r;
    }
    for (size_t i = json_array_size(rows); i-- > 0;)
        if (!row_filter_keeps(&f, json_array_get(rows, i)))
            (void)json_array_remove(rows, i);
    return 0;
}
