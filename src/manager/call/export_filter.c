/* SPDX-License-Identifier: Apache-2.0 */
/* Filters and orders of reports, in the words of Backend.AI 26, as those of our lists. */
#include <string.h>
#include <strings.h>

#include "manager/call/export.h"

#define TESTS_MAX 100 /* of one request */

/* ---- values ---- */

static int export_filter_refuse(struct aq_error *err, const char *path, const char *what)
{
    char field[sizeof(err->field)];

    (void)snprintf(field, sizeof(field), "%.70s", path);
    return api_fail_param(err, field, "%s", what);
}

/* In double quotes; 'is_pattern' also keeps what means something in a pattern. */
static void export_filter_quote(const char *text, bool is_pattern, const char *before,
                                const char *after, struct strbuf *out)
{
    strbuf_addf(out, "\"%s", before);
    for (; *text; text++) {
        if (is_pattern && strchr("%_\\", *text))
            strbuf_adds(out, "\\\\");
        if (strchr("\"\\", *text))
            strbuf_addc(out, '\\');
        strbuf_addc(out, *text);
    }
    strbuf_addf(out, "%s\"", after);
}

/* 'field in ["a", "b"]' */
static int export_filter_any(const char *path, const char *field, const json_t *list,
                             struct strbuf *out, struct aq_error *err)
{
    size_t i;
    json_t *one;

    if (!json_is_array(list) || json_array_size(list) == 0)
        return export_filter_refuse(err, path, "is a list of texts");
    strbuf_addf(out, "%s in [", field);
    json_array_foreach((json_t *)(uintptr_t)list, i, one) {
        if (!json_is_string(one))
            return export_filter_refuse(err, path, "is a list of texts");
        strbuf_adds(out, i ? "," : "");
        export_filter_quote(json_string_value(one), false, "", "", out);
    }
    strbuf_addc(out, ']');
    return 0;
}

/* ---- tests ---- */

/* The rest of a name after a word that it begins with; NULL = it does not. */
static const char *export_filter_after(const char *name, const char *word)
{
    size_t len = strlen(word);

    return strncmp(name, word, len) == 0 ? name + len : NULL;
}

/* "i_not_starts_with": in any case, the opposite. */
static int export_filter_text(const char *path, const char *field, const char *name,
                              const json_t *value, struct strbuf *out, struct aq_error *err)
{
    static const struct {
        const char *name, *before, *after;
    } tests[] = { { "equals", "", "" },
                  { "contains", "%", "%" },
                  { "starts_with", "", "%" },
                  { "ends_with", "%", "" } };
    const char *rest = export_filter_after(name, "i_"), *positive;
    bool any_case = rest;
    size_t i = 0;

    rest = rest ? rest : name;
    positive = export_filter_after(rest, "not_");
    if (positive)
        strbuf_addc(out, '!');
    rest = positive ? positive : rest;
    strbuf_addc(out, '(');
    while (i < AQ_COUNT(tests) && strcmp(tests[i].name, rest) != 0)
        i++;
    if (i == AQ_COUNT(tests))
        return export_filter_refuse(err, path,
                                    "is no test: equals, contains, starts_with and ends_with are, "
                                    "with not_ and i_ before them");
    if (!json_is_string(value))
        return export_filter_refuse(err, path, "is a text");
    if (i == 0 && !any_case) {
        strbuf_addf(out, "%s == ", field);
        export_filter_quote(json_string_value(value), false, "", "", out);
    } else {
        strbuf_addf(out, "%s %s ", field, any_case ? "ilike" : "like");
        export_filter_quote(json_string_value(value), true, tests[i].before, tests[i].after, out);
    }
    strbuf_addc(out, ')');
    return 0;
}

static int export_filter_bound(const char *path, const char *field, const char *name,
                               const json_t *value, struct strbuf *out, struct aq_error *err)
{
    bool is_after = strcmp(name, "after") == 0;

    if (!is_after && strcmp(name, "before") != 0)
        return export_filter_refuse(err, path, "is neither after nor before");
    if (!json_is_string(value))
        return export_filter_refuse(err, path, "is a date");
    strbuf_addf(out, "%s %s ", field, is_after ? ">=" : "<=");
    export_filter_quote(json_string_value(value), false, "", "", out);
    return 0;
}

/* ---- all of a filter ---- */

struct export_filter_reader {
    const struct export_report *report;
    struct strbuf *out;
    size_t tests;
};

/* Before each test but the first. */
static int export_filter_begin_test(struct export_filter_reader *reader, struct aq_error *err)
{
    if (reader->tests++ >= TESTS_MAX)
        return api_fail_param(err, "filter", "has more than %d tests", TESTS_MAX);
    strbuf_adds(reader->out, reader->tests > 1 ? " & " : "");
    return 0;
}

/* {"contains": "a", ...} or {"after": date, ...} */
static int export_filter_read_tests(struct export_filter_reader *reader, const char *path,
                                    const struct export_field *filter, const json_t *value,
                                    struct aq_error *err)
{
    const char *name;
    json_t *operand;

    if (!json_is_object(value))
        return export_filter_refuse(err, path, "is an object of tests");
    json_object_foreach((json_t *)(uintptr_t)value, name, operand) {
        AQ_CLEANUP(aq_freep) char *inner = aq_format("%s.%s", path, name);
        int r;

        if (json_is_null(operand))
            continue;
        r = export_filter_begin_test(reader, err);
        if (r == 0)
            r = (filter->test == EXPORT_TEXT ? export_filter_text : export_filter_bound)(
                inner, filter->field, name, operand, reader->out, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int export_filter_read_one(struct export_filter_reader *reader, const char *path,
                                  const struct export_field *filter, const json_t *value,
                                  struct aq_error *err)
{
    if (filter->test == EXPORT_TEXT || filter->test == EXPORT_RANGE)
        return export_filter_read_tests(reader, path, filter, value, err);
    if (export_filter_begin_test(reader, err) < 0)
        return -err->code;
    if (filter->test == EXPORT_ANY)
        return export_filter_any(path, filter->field, value, reader->out, err);
    if (!json_is_boolean(value))
        return export_filter_refuse(err, path, "is true or false");
    strbuf_addf(reader->out, "%s == %s", filter->field, json_is_true(value) ? "true" : "false");
    return 0;
}

static bool export_filter_has_group(const struct export_report *report, const char *key)
{
    for (size_t i = 0; i < report->field_count; i++) {
        const char *rest = export_filter_after(report->fields[i].key, key);

        if (rest && *rest == '.')
            return true;
    }
    return false;
}

/* NULL = the report is not filtered by it. */
static const struct export_field *export_filter_find(const struct export_report *report,
                                                     const char *key)
{
    for (size_t i = 0; i < report->field_count; i++)
        if (report->fields[i].test != EXPORT_NONE && strcmp(report->fields[i].key, key) == 0)
            return &report->fields[i];
    return NULL;
}

/* Members of 'object'; 'outer' is "" or "user." */
static int export_filter_read_members(struct export_filter_reader *reader, const char *outer,
                                      const json_t *object, struct aq_error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        AQ_CLEANUP(aq_freep) char *key = aq_format("%s%s", outer, name);
        AQ_CLEANUP(aq_freep) char *path = aq_format("filter.%s%s", outer, name);
        AQ_CLEANUP(aq_freep) char *inside = aq_format("%s%s.", outer, name);
        const struct export_field *filter = export_filter_find(reader->report, key);
        int r;

        if (json_is_null(value))
            continue;
        if (filter)
            r = export_filter_read_one(reader, path, filter, value, err);
        else if (!*outer && json_is_object(value) && export_filter_has_group(reader->report, key))
            r = export_filter_read_members(reader, inside, value, err);
        else
            r = export_filter_refuse(err, path, "is nothing that this report is filtered by");
        if (r < 0)
            return r;
    }
    return 0;
}

int export_read_filter(const struct export_report *report, const json_t *filter, struct strbuf *out,
                       struct aq_error *err)
{
    struct export_filter_reader reader = { report, out, 0 };

    return export_filter_read_members(&reader, "", filter, err);
}

/* ---- order ---- */

static const char *export_order_of(const struct export_report *report, const char *key)
{
    for (size_t i = 0; key && i < report->field_count; i++)
        if (strcmp(report->fields[i].key, key) == 0)
            return report->fields[i].kind == EXPORT_HIDDEN ? NULL : report->fields[i].field;
    return NULL;
}

int export_read_order(const struct export_report *report, const json_t *order, struct strbuf *out,
                      struct aq_error *err)
{
    size_t i;
    json_t *one;

    if (order && !json_is_array(order))
        return api_fail_param(err, "order", "is a list of {\"field\", \"direction\"}");
    json_array_foreach((json_t *)(uintptr_t)order, i, one) {
        const char *field = export_order_of(report,
                                            json_string_value(json_object_get(one, "field")));
        const char *direction = json_string_value(json_object_get(one, "direction"));
        bool is_down = direction && strcasecmp(direction, "desc") == 0;

        if (!field)
            return api_fail_param(err, "order", "this report is not ordered by that field");
        if (direction && !is_down && strcasecmp(direction, "asc") != 0)
            return api_fail_param(err, "order", "a direction is asc or desc");
        strbuf_addf(out, "%s%s%s", i ? "," : "", is_down ? "-" : "", field);
    }
    return 0;
}

int export_read_query(const struct export_report *report, const json_t *filter, const json_t *order,
                      struct arena *arena, struct store_query *query, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf filter_text = STRBUF_INIT, order_text = STRBUF_INIT;
    int r = export_read_filter(report, filter, &filter_text, err);

    if (r == 0)
        r = export_read_order(report, order, &order_text, err);
    if (r < 0)
        return r;
    query->filter = filter_text.len ? arena_strdup(arena, filter_text.data) : NULL;
    query->order = order_text.len ? arena_strdup(arena, order_text.data) : NULL;
    return 0;
}
