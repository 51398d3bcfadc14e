/* SPDX-License-Identifier: Apache-2.0 */
/* The filter and order mini language of list queries, as SQL and as steps. */
#include "store/filter_program.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/uuid.h"

enum token_kind {
    TOKEN_END,
    TOKEN_WORD, /* field, word operator, null, true, false */
    TOKEN_STRING,
    TOKEN_NUMBER,
    TOKEN_SIGN /* everything else */
};

struct filter_token {
    enum token_kind kind;
    const char *text; /* of a string: without quotes and escapes */
    size_t len;
};

struct filter_parser {
    const char *start, *at;
    struct filter_token token; /* the next one */
    const struct filter_field *fields;
    size_t field_count;
    struct arena *arena;
    struct strbuf *sql;
    struct filter_values *values;
    struct filter_program *program; /* NULL = it is SQL alone */
    int depth;
    struct aq_error *err;
};

static int filter_fail(struct filter_parser *p, const char *fmt, ...) AQ_PRINTF(2, 3);

static int filter_fail(struct filter_parser *p, const char *fmt, ...)
{
    char text[200];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return aq_fail_field(p->err, EINVAL, "filter", "Query filter parsing error: %s (character %zu)",
                         text, (size_t)(p->at - p->start) + 1);
}

/* ---- tokens ---- */

static bool filter_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool filter_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int filter_read_string(struct filter_parser *p)
{
    size_t len = 1; /* with the opening quote */
    char *out, *to;

    while (p->at[len] && p->at[len] != '"')
        len += p->at[len] == '\\' && p->at[len + 1] ? 2 : 1;
    out = to = arena_alloc(p->arena, len);
    for (p->at++; *p->at && *p->at != '"'; p->at++) {
        if (*p->at == '\\' && p->at[1])
            p->at++;
        *to++ = *p->at;
    }
    if (!*p->at)
        return filter_fail(p, "a text has no closing quote");
    p->at++;
    p->token = (struct filter_token){ TOKEN_STRING, out, (size_t)(to - out) };
    return 0;
}

static int filter_next(struct filter_parser *p)
{
    static const char *const doubles[] = { "==", "!=", ">=", "<=" };
    const char *from;

    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')
        p->at++;
    from = p->at;
    if (*from == '"')
        return filter_read_string(p);
    p->token = (struct filter_token){ *from ? TOKEN_SIGN : TOKEN_END, from, *from ? 1 : 0 };
    for (size_t i = 0; i < AQ_COUNT(doubles); i++)
        if (strncmp(from, doubles[i], 2) == 0)
            p->token.len = 2;
    if (filter_is_letter(*from)) {
        p->token.kind = TOKEN_WORD;
        while (filter_is_letter(from[p->token.len]) || filter_is_digit(from[p->token.len]))
            p->token.len++;
    } else if (filter_is_digit(*from) || (*from == '-' && filter_is_digit(from[1]))) {
        p->token.kind = TOKEN_NUMBER;
        while (filter_is_digit(from[p->token.len]) || from[p->token.len] == '.')
            p->token.len++;
    }
    p->at += p->token.len;
    return 0;
}

static bool filter_is(const struct filter_parser *p, const char *text)
{
    return p->token.kind != TOKEN_STRING && p->token.len == strlen(text)
           && memcmp(p->token.text, text, p->token.len) == 0;
}

/* If the next token is 'text', take it: 1, else 0, or an error. */
static int filter_take(struct filter_parser *p, const char *text)
{
    int r;

    if (!filter_is(p, text))
        return 0;
    r = filter_next(p);
    return r < 0 ? r : 1;
}

/* ---- values ---- */

static void filter_change_case(char *text, char first, char last)
{
    for (; *text; text++)
        if (*text >= first && *text <= last)
            *text = (char)(*text ^ 0x20);
}

/* A quoted text for this field, in the form that the column has. */
static int filter_read_text(struct filter_parser *p, const struct filter_field *field,
                            bool is_pattern, struct filter_value *ret)
{
    char *text = arena_alloc(p->arena, AQ_MAX(p->token.len + 1, (size_t)UUID_TEXT_MAX));
    struct uuid id;

    memcpy(text, p->token.text, p->token.len); /* the rest is zero */
    switch (field->type) {
    case FILTER_TIME:
        if (clock_parse_date(text, &ret->number) < 0)
            return filter_fail(p, "'%.60s' is not a date for '%s'", text, field->name);
        return 0;
    case FILTER_UUID:
        if (is_pattern)
            filter_change_case(text, 'A', 'Z');
        else if (uuid_parse(text, &id) < 0)
            return filter_fail(p, "'%.60s' is not an id for '%s'", text, field->name);
        else
            (void)uuid_format(&id, text);
        break;
    case FILTER_UPPER:
        filter_change_case(text, 'a', 'z');
        break;
    case FILTER_LOWER:
        filter_change_case(text, 'A', 'Z');
        break;
    case FILTER_STRING:
        break;
    default:
        return filter_fail(p, "'%s' is not compared with text", field->name);
    }
    ret->text = text;
    return 0;
}

static int filter_read_number(struct filter_parser *p, const struct filter_field *field,
                              struct filter_value *ret)
{
    char *end;

    if (field->type != FILTER_INT)
        return filter_fail(p, "'%s' is not compared with a number", field->name);
    errno = 0;
    ret->number = strtoll(p->token.text, &end, 10);
    if (errno || end != p->token.text + p->token.len)
        return filter_fail(p, "'%.*s' is not a whole number", (int)AQ_MIN(p->token.len, 40),
                           p->token.text);
    return 0;
}

/* A value other than null or a list becomes "?" and a bound value. */
static int filter_read_value(struct filter_parser *p, const struct filter_field *field,
                             bool is_pattern)
{
    struct filter_value value = { 0 };
    int r = 0;

    if (p->token.kind == TOKEN_STRING)
        r = filter_read_text(p, field, is_pattern, &value);
    else if (is_pattern)
        r = filter_fail(p, "expected a text in quotes");
    else if (p->token.kind == TOKEN_NUMBER)
        r = filter_read_number(p, field, &value);
    else if (field->type != FILTER_BOOL || !(filter_is(p, "true") || filter_is(p, "false")))
        r = filter_fail(p, "expected a value for '%s'", field->name);
    else
        value.number = filter_is(p, "true");
    if (r < 0)
        return r;
    if (p->values->count == FILTER_VALUES_MAX)
        return filter_fail(p, "more than %d values", FILTER_VALUES_MAX);
    p->values->items[p->values->count++] = value;
    return filter_next(p);
}

/* ---- comparisons ---- */

/* Of the values since 'first'. */
static int filter_add_step(struct filter_parser *p, enum filter_operator op,
                           const struct filter_field *field, size_t first)
{
    struct filter_program *program = p->program;

    if (!program)
        return 0;
    if (program->count == FILTER_STEPS_MAX)
        return filter_fail(p, "more than %d comparisons and operators", FILTER_STEPS_MAX);
    program->steps[program->count++] = (struct filter_step){ op, field, first,
                                                             p->values->count - first };
    return 0;
}

static int filter_compile_list(struct filter_parser *p, const struct filter_field *field)
{
    int r = filter_take(p, "[");

    if (r <= 0)
        return r < 0 ? r : filter_fail(p, "expected a [list] after 'in'");
    strbuf_addf(p->sql, "%s IN (", field->column);
    do {
        r = filter_read_value(p, field, false);
        strbuf_adds(p->sql, "?,");
    } while (r == 0 && (r = filter_take(p, ",")) > 0);
    if (r < 0)
        return r;
    strbuf_truncate(p->sql, p->sql->len - 1);
    strbuf_addc(p->sql, ')');
    r = filter_take(p, "]");
    return r == 0 ? filter_fail(p, "expected ',' or ']'") : AQ_MIN(r, 0);
}

static int filter_check_pattern(struct filter_parser *p, const struct filter_field *field)
{
    size_t wildcards = 0;

    if (field->type == FILTER_INT || field->type == FILTER_BOOL || field->type == FILTER_TIME)
        return filter_fail(p, "'%s' is not text", field->name);
    for (size_t i = 0; p->token.kind == TOKEN_STRING && i < p->token.len; i++)
        wildcards += p->token.text[i] == '%';
    if (wildcards > FILTER_WILDCARDS_MAX)
        return filter_fail(p, "more than %d '%%' in a pattern", FILTER_WILDCARDS_MAX);
    return 0;
}

static int filter_compile_null(struct filter_parser *p, const struct filter_field *field, bool is)
{
    int r = filter_add_step(p, is ? FILTER_IS_NULL : FILTER_IS_NOT_NULL, field, p->values->count);

    strbuf_addf(p->sql, "%s IS %sNULL", field->column, is ? "" : "NOT ");
    return r < 0 ? r : filter_next(p);
}

static int filter_compile_operator(struct filter_parser *p, const struct filter_field *field)
{
    static const struct {
        const char *name, *before, *after;
        enum filter_operator op;
    } ops[] = {
        { "==", "", " = ?", FILTER_EQUAL },
        { "is", "", " = ?", FILTER_EQUAL },
        { "!=", "", " <> ?", FILTER_UNEQUAL },
        { "isnot", "", " <> ?", FILTER_UNEQUAL },
        { ">", "", " > ?", FILTER_ABOVE },
        { ">=", "", " >= ?", FILTER_ABOVE_OR_EQUAL },
        { "<", "", " < ?", FILTER_BELOW },
        { "<=", "", " <= ?", FILTER_BELOW_OR_EQUAL },
        { "like", "", " LIKE ? ESCAPE '\\'", FILTER_LIKE },
        { "ilike", "LOWER(", ") LIKE LOWER(?) ESCAPE '\\'", FILTER_ILIKE },
        { "contains", "", " LIKE '%' || ? || '%' ESCAPE '\\'", FILTER_CONTAINS },
        { "in", NULL, NULL, FILTER_IN },
    };
    size_t i = 0, first = p->values->count;
    bool is_pattern;
    int r = 0;

    while (i < AQ_COUNT(ops) && (r = filter_take(p, ops[i].name)) == 0)
        i++;
    if (i == AQ_COUNT(ops))
        return filter_fail(p, "expected an operator after '%s'", field->name);
    if (r < 0)
        return r;
    if (ops[i].op == FILTER_IN) {
        r = filter_compile_list(p, field);
        return r < 0 ? r : filter_add_step(p, FILTER_IN, field, first);
    }
    if (filter_is(p, "null") && ops[i].op <= FILTER_UNEQUAL)
        return filter_compile_null(p, field, ops[i].op == FILTER_EQUAL);
    is_pattern = ops[i].op >= FILTER_LIKE;
    if (is_pattern && (r = filter_check_pattern(p, field)) < 0)
        return r;
    strbuf_addf(p->sql, "%s%s%s", ops[i].before, field->column, ops[i].after);
    r = filter_read_value(p, field, is_pattern);
    return r < 0 ? r : filter_add_step(p, ops[i].op, field, first);
}

static const struct filter_field *filter_find_field(const struct filter_field *fields, size_t count,
                                                    const char *name, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(fields[i].name) == len && memcmp(fields[i].name, name, len) == 0)
            return &fields[i];
    return NULL;
}

/* ---- expressions ---- */

static int filter_compile_expr(struct filter_parser *p);

static int filter_compile_term(struct filter_parser *p)
{
    const struct filter_field *field;
    int r;

    if (++p->depth > FILTER_DEPTH_MAX)
        return filter_fail(p, "nested deeper than %d", FILTER_DEPTH_MAX);
    if ((r = filter_take(p, "!")) != 0) {
        strbuf_adds(p->sql, "NOT ");
        r = r < 0 ? r : filter_compile_term(p);
        r = r < 0 ? r : filter_add_step(p, FILTER_NOT, NULL, p->values->count);
    } else if ((r = filter_take(p, "(")) != 0) {
        strbuf_addc(p->sql, '(');
        r = r < 0 ? r : filter_compile_expr(p);
        strbuf_addc(p->sql, ')');
        if (r == 0 && (r = filter_take(p, ")")) == 0)
            r = filter_fail(p, "expected ')'");
        r = AQ_MIN(r, 0);
    } else if (p->token.kind != TOKEN_WORD) {
        return filter_fail(p, "expected a field");
    } else {
        field = filter_find_field(p->fields, p->field_count, p->token.text, p->token.len);
        if (!field)
            return filter_fail(p, "there is no field '%.*s' here", (int)AQ_MIN(p->token.len, 40),
                               p->token.text);
        p->values->fields |= UINT64_C(1) << (field - p->fields);
        if (field->within)
            strbuf_addf(p->sql, "EXISTS (SELECT 1 %s AND ", field->within);
        else
            strbuf_addc(p->sql, '(');
        r = filter_next(p);
        r = r < 0 ? r : filter_compile_operator(p, field);
        strbuf_addc(p->sql, ')');
    }
    p->depth--;
    return r;
}

/* Put "(" before what was written since 'start'. */
static void filter_open_before(struct strbuf *sql, size_t start)
{
    strbuf_addc(sql, '(');
    memmove(sql->data + start + 1, sql->data + start, sql->len - start - 1);
    sql->data[start] = '(';
}

/* Terms from left to right; SQL's AND binds closer than its OR, so a change of
 * operator closes what stands to the left.
 */
static int filter_compile_expr(struct filter_parser *p)
{
    const char *last = NULL;
    size_t start = p->sql->len;
    int r = filter_compile_term(p);

    while (r == 0 && (filter_is(p, "&") || filter_is(p, "|"))) {
        bool is_and = filter_is(p, "&");
        const char *op = is_and ? " AND " : " OR ";

        if (last && strcmp(last, op) != 0) {
            filter_open_before(p->sql, start);
            strbuf_addc(p->sql, ')');
        }
        last = op;
        strbuf_adds(p->sql, op);
        r = filter_next(p);
        if (r == 0)
            r = filter_compile_term(p);
        if (r == 0)
            r = filter_add_step(p, is_and ? FILTER_AND : FILTER_OR, NULL, p->values->count);
    }
    return r;
}

static int filter_parse(struct filter_parser *p)
{
    int r;

    assert(p->field_count <= FILTER_FIELDS_MAX);
    if (strnlen(p->start, FILTER_TEXT_MAX + 1) > FILTER_TEXT_MAX)
        return filter_fail(p, "longer than %d bytes", FILTER_TEXT_MAX);
    strbuf_addc(p->sql, '(');
    r = filter_next(p);
    if (r == 0)
        r = filter_compile_expr(p);
    strbuf_addc(p->sql, ')');
    if (r == 0 && p->token.kind != TOKEN_END)
        r = filter_fail(p, "expected '&', '|' or the end");
    return r;
}

int filter_compile(const char *text, const struct filter_field *fields, size_t field_count,
                   struct arena *arena, struct strbuf *sql, struct filter_values *values,
                   struct aq_error *err)
{
    struct filter_parser p = { .start = text,
                               .at = text,
                               .fields = fields,
                               .field_count = field_count,
                               .arena = arena,
                               .sql = sql,
                               .values = values,
                               .err = err };

    return filter_parse(&p);
}

int filter_read(const char *text, const struct filter_field *fields, size_t field_count,
                struct arena *arena, const struct filter_program **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    struct filter_program *program = arena_alloc(arena, sizeof(*program));
    struct filter_parser p = { .start = text,
                               .at = text,
                               .fields = fields,
                               .field_count = field_count,
                               .arena = arena,
                               .sql = &sql,
                               .values = &program->values,
                               .program = program,
                               .err = err };

    *ret = program;
    return filter_parse(&p);
}

/* ---- order ---- */

static size_t filter_skip_blanks(const char *text)
{
    return strspn(text, " \t\r\n");
}

int order_read(const char *text, const struct filter_field *fields, size_t field_count,
               struct order *ret, struct aq_error *err)
{
    ret->count = 0;
    for (const char *at = text;; at++) {
        const struct filter_field *field;
        const char *name;
        bool is_descending;
        size_t len;

        at += filter_skip_blanks(at);
        is_descending = *at == '-';
        at += *at == '-' || *at == '+';
        name = at += filter_skip_blanks(at);
        while (filter_is_letter(*at) || filter_is_digit(*at))
            at++;
        len = (size_t)(at - name);
        field = filter_find_field(fields, field_count, name, len);
        at += filter_skip_blanks(at);
        if (!field || field->within || (*at && *at != ','))
            return aq_fail_field(err, EINVAL, "order",
                                 "Query order parsing error: expected known "
                                 "fields with '+' or '-' before and ',' between them "
                                 "(character %zu)",
                                 (size_t)(name - text) + 1);
        if (ret->count == ORDER_FIELDS_MAX)
            return aq_fail_field(err, EINVAL, "order",
                                 "Query order parsing error: more than %d "
                                 "fields",
                                 ORDER_FIELDS_MAX);
        ret->items[ret->count].field = field;
        ret->items[ret->count++].is_descending = is_descending;
        if (!*at)
            return 0;
    }
}

void order_write(const struct order *order, struct strbuf *sql)
{
    for (size_t i = 0; i < order->count; i++) {
        const struct filter_field *field = order->items[i].field;
        bool is_descending = order->items[i].is_descending;

        strbuf_addf(sql, "%s%s %s%s", i ? ", " : "", field->column, is_descending ? "DESC" : "ASC",
                    field->is_never_null ? ""
                    : is_descending      ? " NULLS LAST"
                                         : " NULLS FIRST");
    }
}
