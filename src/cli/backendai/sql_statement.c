/* SPDX-License-Identifier: Apache-2.0 */
/* What one statement of a dump, or one line of COPY, says. */
#include "cli/backendai/sql_statement.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

struct sql_columns {
    size_t count;
    char *names[SQL_DUMP_COLUMNS_MAX];
};

static void sql_columns_done(struct sql_columns *columns)
{
    for (size_t i = 0; i < columns->count; i++)
        free(columns->names[i]);
    columns->count = 0;
}

void sql_tables_done(struct sql_tables *tables)
{
    for (size_t i = 0; i < tables->columns.count; i++) {
        sql_columns_done(tables->columns.entries[i].value);
        free(tables->columns.entries[i].value);
    }
    map_done(&tables->columns);
}

/* ---- words and names ---- */

static char *sql_skip_space(char *at)
{
    for (;;) {
        while (isspace((unsigned char)*at))
            at++;
        if (at[0] != '-' || at[1] != '-')
            return at;
        at += strcspn(at, "\n");
    }
}

/* Past the words, if they come next; else NULL. */
static char *sql_take_words(char *at, const char *words)
{
    for (;;) {
        size_t len = strcspn(words, " ");

        at = sql_skip_space(at);
        if (strncasecmp(at, words, len) != 0 || isalnum((unsigned char)at[len]) || at[len] == '_')
            return NULL;
        at += len;
        if (!words[len])
            return at;
        words += len + 1;
    }
}

static char *sql_take_sign(char *at, char sign)
{
    at = sql_skip_space(at);
    return *at == sign ? at + 1 : NULL;
}

/* A name, perhaps in quotes; NULL if there is none, or it is too long. */
static char *sql_take_name(char *at, char ret[SQL_NAME_MAX + 1])
{
    size_t len = 0;
    bool is_quoted;

    at = sql_skip_space(at);
    is_quoted = *at == '"';
    at += is_quoted;
    while (*at && len < SQL_NAME_MAX) {
        if (is_quoted && at[0] == '"' && at[1] == '"')
            at++;
        else if (is_quoted ? *at == '"' : !isalnum((unsigned char)*at) && *at != '_')
            break;
        ret[len++] = is_quoted ? *at : (char)tolower((unsigned char)*at);
        at++;
    }
    ret[len] = '\0';
    if (!len || (is_quoted && *at != '"'))
        return NULL;
    return at + is_quoted;
}

/* Of a table, without schema "public". */
static char *sql_take_table(char *at, char ret[SQL_NAME_MAX + 1])
{
    char first[SQL_NAME_MAX + 1], second[SQL_NAME_MAX + 1];

    if (!(at = sql_take_name(at, first)))
        return NULL;
    if (*at != '.') {
        memcpy(ret, first, sizeof(first));
        return at;
    }
    if (!(at = sql_take_name(at + 1, second)))
        return NULL;
    if (strcmp(first, "public") == 0)
        memcpy(ret, second, sizeof(second));
    else
        (void)snprintf(ret, SQL_NAME_MAX + 1, "%.31s.%.31s", first, second);
    return at;
}

static int sql_columns_add(struct sql_columns *columns, const char *name, size_t line,
                           struct aq_error *err)
{
    if (columns->count == SQL_DUMP_COLUMNS_MAX)
        return aq_fail(err, EINVAL, "line %zu: a table has more than %d columns", line,
                       SQL_DUMP_COLUMNS_MAX);
    columns->names[columns->count++] = aq_strdup(name);
    return 0;
}

/* "(a, b)": 1, or 0 if there is no such list. */
static int sql_take_columns(char **at, struct sql_columns *columns, size_t line,
                            struct aq_error *err)
{
    char name[SQL_NAME_MAX + 1], *next = sql_take_sign(*at, '('), *end;
    int r = 0;

    if (!next)
        return 0;
    if ((end = sql_take_sign(next, ')'))) {
        *at = end;
        return 1;
    }
    do {
        if (!(next = sql_take_name(next, name)))
            return aq_fail(err, EINVAL, "line %zu: its list of columns is damaged", line);
        if ((r = sql_columns_add(columns, name, line, err)) < 0)
            return r;
        end = sql_take_sign(next, ')');
    } while (!end && (next = sql_take_sign(next, ',')));
    if (!end)
        return aq_fail(err, EINVAL, "line %zu: its list of columns is damaged", line);
    *at = end;
    return 1;
}

/* ---- CREATE TABLE ---- */

/* Past what describes a column: to the comma or parenthesis that ends it. */
static char *sql_skip_description(char *at)
{
    unsigned depth = 0;

    for (; *at; at++) {
        if (*at == '\'' || *at == '"')
            at = strchr(at + 1, *at);
        else if (depth == 0 && (*at == ',' || *at == ')'))
            return at;
        else if (*at == '(')
            depth++;
        else if (*at == ')')
            depth--;
        if (!at)
            return NULL;
    }
    return NULL;
}

static bool sql_is_constraint(char *at)
{
    static const char *const words[] = { "CONSTRAINT", "PRIMARY", "UNIQUE",
                                         "CHECK",      "FOREIGN", "EXCLUDE" };

    for (size_t i = 0; i < AQ_COUNT(words); i++)
        if (sql_take_words(at, words[i]))
            return true;
    return false;
}

static int sql_read_create(char *at, struct sql_tables *tables, size_t line, struct aq_error *err)
{
    char table[SQL_NAME_MAX + 1], name[SQL_NAME_MAX + 1], *next;
    struct sql_columns *columns;
    int r = 0;

    if ((next = sql_take_words(at, "IF NOT EXISTS")))
        at = next;
    if (!(at = sql_take_table(at, table)) || !(at = sql_take_sign(at, '('))
        || map_gets(&tables->columns, table))
        return 0; /* of no use to us */
    if (tables->columns.count == SQL_TABLES_MAX)
        return aq_fail(err, E2BIG,
                       "line %zu: the dump has more than %d tables; dump those of "
                       "Backend.AI alone",
                       line, SQL_TABLES_MAX);
    columns = aq_alloc(sizeof(*columns));
    map_sets(&tables->columns, table, columns);
    while (r == 0 && !sql_is_constraint(at) && (at = sql_take_name(at, name))) {
        r = sql_columns_add(columns, name, line, err);
        if (!(at = sql_skip_description(at)) || *at++ != ',')
            break;
    }
    return r;
}

/* ---- values ---- */

static bool sql_is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* The byte of an escape, whose letter is at 'at'; '*at' becomes what follows. */
static char sql_take_escape(const char **at)
{
    static const char letters[] = "bfnrtv", bytes[] = "\b\f\n\r\t\v";
    const char *found = **at ? strchr(letters, **at) : NULL;
    unsigned value = 0, digits = 0;

    if (found) {
        ++*at;
        return bytes[found - letters];
    }
    if (**at == 'x' && isxdigit((unsigned char)(*at)[1])) {
        for (++*at; digits < 2 && isxdigit((unsigned char)**at); digits++, ++*at)
            value = value * 16
                    + (unsigned)(isdigit((unsigned char)**at)
                                     ? **at - '0'
                                     : tolower((unsigned char)**at) - 'a' + 10);
        return (char)value;
    }
    if (sql_is_octal(**at)) {
        for (; digits < 3 && sql_is_octal(**at); digits++, ++*at)
            value = value * 8 + (unsigned)(**at - '0');
        return (char)value;
    }
    return **at ? *(*at)++ : '\\';
}

/* In place. */
static void sql_unescape(char *text)
{
    const char *from = text;
    char *to = text;

    while (*from) {
        if (*from == '\\') {
            from++;
            *to++ = sql_take_escape(&from);
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

int sql_copy_line(char *text, size_t len, size_t column_count, size_t line,
                  const struct sql_dump_ops *ops, void *data, struct aq_error *err)
{
    const char *values[SQL_DUMP_COLUMNS_MAX];
    size_t count = 0;

    if (strlen(text) != len)
        return aq_fail(err, EINVAL, "line %zu has a NUL byte: it is no plain SQL", line);
    for (char *at = text; at; count++) {
        char *end = strchr(at, '\t');

        if (count == column_count)
            break;
        if (end)
            *end++ = '\0';
        if (strcmp(at, "\\N") == 0)
            values[count] = NULL;
        else {
            sql_unescape(at);
            values[count] = at;
        }
        at = end;
        if (!at && count + 1 == column_count)
            return ops->row(data, values, count + 1, line, err);
    }
    return aq_fail(err, EINVAL, "line %zu: a row does not have %zu columns: it is damaged", line,
                   column_count);
}

/* '...', in place; NULL if it is not closed. */
static char *sql_take_quote(char *at, bool has_escapes, const char **ret)
{
    char *to = at;

    *ret = at;
    for (;;) {
        if (!*at)
            return NULL;
        if (*at == '\'' && at[1] != '\'')
            break;
        if (*at == '\'') {
            at++;
        } else if (*at == '\\' && has_escapes) {
            const char *from = at + 1;

            *to++ = sql_take_escape(&from);
            at += from - at;
            continue;
        }
        *to++ = *at++;
    }
    at++;
    *to = '\0';
    return at;
}

/* One value of an INSERT, up to the comma or parenthesis after it, which is '*ret_end'. */
static char *sql_take_value(char *at, const char **ret, char *ret_end)
{
    bool has_escapes;
    char *end;

    at = sql_skip_space(at);
    has_escapes = (*at == 'E' || *at == 'e') && at[1] == '\'';
    if (*at == '\'' || has_escapes) {
        at = sql_take_quote(at + 1 + has_escapes, has_escapes, ret);
        end = at ? sql_skip_description(at) : NULL; /* ::json */
        *ret_end = end ? *end : '\0';
        return end ? end + 1 : NULL;
    }
    *ret = at;
    if (!(end = sql_skip_description(at)))
        return NULL;
    *ret_end = *end;
    *end = '\0';
    for (char *last = end; last > at && isspace((unsigned char)last[-1]);)
        *--last = '\0';
    if (strcasecmp(at, "NULL") == 0)
        *ret = NULL;
    return end + 1;
}

/* "(...), (...)". */
static int sql_read_values(char *at, size_t line, size_t column_count,
                           const struct sql_dump_ops *ops, void *data, struct aq_error *err)
{
    const char *values[SQL_DUMP_COLUMNS_MAX];
    int r = 0;

    do {
        size_t count = 0;
        char end = ',';

        at = sql_take_sign(at, '(');
        while (at && end == ',' && count < column_count)
            if ((at = sql_take_value(at, &values[count], &end)))
                count++;
        if (!at || end != ')' || count != column_count)
            return aq_fail(err, EINVAL, "line %zu: an INSERT does not have %zu columns", line,
                           column_count);
        r = ops->row(data, values, count, line, err);
    } while (r == 0 && (at = sql_take_sign(at, ',')));
    return r;
}

/* How many rows of which nobody wants the values; at least one. */
static void sql_skip_values(char *at, const struct sql_dump_ops *ops, void *data)
{
    do {
        ops->skipped(data);
        at = sql_take_sign(at, '(');
        while (at && (at = sql_skip_description(at)) && *at++ == ',')
            ;
    } while (at && (at = sql_take_sign(at, ',')));
}

/* ---- statements ---- */

static int sql_begin_rows(const char *table, const struct sql_columns *given,
                          const struct sql_tables *tables, const struct sql_columns **ret,
                          size_t line, const struct sql_dump_ops *ops, void *data,
                          struct aq_error *err)
{
    const struct sql_columns *known = tables ? map_gets(&tables->columns, table) : NULL;

    *ret = given->count || !known ? given : known;
    return ops->begin(data, table, (const char *const *)(*ret)->names, (*ret)->count, line, err);
}

static int sql_read_insert(char *at, const struct sql_statement *statement,
                           const struct sql_tables *tables, const struct sql_dump_ops *ops,
                           void *data, struct aq_error *err)
{
    struct sql_columns columns = { 0 };
    const struct sql_columns *used;
    char table[SQL_NAME_MAX + 1], *next;
    int r = (at = sql_take_table(at, table)) ? sql_take_columns(&at, &columns, statement->line, err)
                                             : 0;

    if (at && r >= 0) {
        r = sql_begin_rows(table, &columns, tables, &used, statement->line, ops, data, err);
        if ((next = sql_take_words(at, "OVERRIDING SYSTEM VALUE")))
            at = next;
        next = sql_take_words(at, "VALUES");
        if (r == 0)
            sql_skip_values(next ? next : at, ops, data);
        else if (r > 0 && next)
            r = sql_read_values(next, statement->line, used->count, ops, data, err);
        else if (r > 0)
            r = aq_fail(err, EINVAL, "line %zu: an INSERT without VALUES", statement->line);
    }
    sql_columns_done(&columns);
    return AQ_MIN(r, 0);
}

static int sql_read_copy(char *at, struct sql_statement *statement, const struct sql_tables *tables,
                         const struct sql_dump_ops *ops, void *data, struct aq_error *err)
{
    struct sql_columns columns = { 0 };
    const struct sql_columns *used;
    int r = (at = sql_take_table(at, statement->table))
                ? sql_take_columns(&at, &columns, statement->line, err)
                : 0;

    if (at && r >= 0 && sql_take_words(at, "FROM stdin")) {
        r = sql_begin_rows(statement->table, &columns, tables, &used, statement->line, ops, data,
                           err);
        statement->is_copy = true;
        statement->is_wanted = r > 0;
        statement->column_count = used->count;
    }
    sql_columns_done(&columns);
    return AQ_MIN(r, 0);
}

int sql_statement_run(struct sql_statement *statement, struct sql_tables *tables,
                      const struct sql_dump_ops *ops, void *data, struct aq_error *err)
{
    char *at;

    if ((at = sql_take_words(statement->text, "COPY")))
        return sql_read_copy(at, statement, tables, ops, data, err);
    if ((at = sql_take_words(statement->text, "INSERT INTO")))
        return sql_read_insert(at, statement, tables, ops, data, err);
    if ((at = sql_take_words(statement->text, "CREATE TABLE"))
        || (at = sql_take_words(statement->text, "CREATE UNLOGGED TABLE")))
        return sql_read_create(at, tables, statement->line, err);
    return 0;
}

int sql_statement_may_matter(const char *text, size_t len, size_t line,
                             const struct sql_dump_ops *ops, void *data, struct aq_error *err)
{
    char beginning[4 * SQL_NAME_MAX], table[SQL_NAME_MAX + 1], *at;
    int r;

    len = AQ_MIN(len, sizeof(beginning) - 1);
    memcpy(beginning, text, len);
    beginning[len] = '\0';
    if (sql_take_words(beginning, "CREATE"))
        return 1;
    if (!(at = sql_take_words(beginning, "INSERT INTO")) || !sql_take_table(at, table))
        return 0;
    r = ops->begin(data, table, NULL, 0, line, err);
    if (r == 0)
        ops->skipped(data);
    return r;
}
