/* SPDX-License-Identifier: Apache-2.0 */
/* A table of users. */
#include "cli/admin/user_csv.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "cli/admin/csv_reader.h"
#include "model/user.h"

#define COLUMN_NAME_MAX 40
#define LIST_BYTES_MAX 4096 /* of a value that is a list */

/* The first of the column's names. */
static int user_csv_name_len(const struct field *column)
{
    return (int)strcspn(column->csv, "|");
}

static bool user_csv_is_one_of(const char *names, const char *name)
{
    size_t len = strlen(name), all;

    for (; *names; names += names[all] ? all + 1 : all) {
        all = strcspn(names, "|");
        if (all == len && memcmp(names, name, len) == 0)
            return true;
    }
    return false;
}

void user_csv_add_column_of(const char *member, struct strbuf *out)
{
    const struct field *column = field_find(user_csv_columns, member);

    if (column)
        strbuf_add(out, column->csv, (size_t)user_csv_name_len(column));
    else
        strbuf_adds(out, member);
}

/* ---- the first line ---- */

static int user_csv_find_column(const char *title, size_t *ret)
{
    char name[COLUMN_NAME_MAX];
    size_t len = strlen(title);

    if (len >= sizeof(name))
        return -ENOENT;
    for (size_t i = 0; i <= len; i++)
        name[i] = (char)(title[i] == ' ' || title[i] == '-' ? '_'
                                                            : tolower((unsigned char)title[i]));
    for (*ret = 0; user_csv_columns[*ret].names; ++*ret)
        if (user_csv_is_one_of(user_csv_columns[*ret].csv, name))
            return 0;
    return -ENOENT;
}

static int user_csv_fail_title(const struct csv_record *titles, const char *title,
                               struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf names = STRBUF_INIT;

    for (const struct field *column = user_csv_columns; column->names; column++)
        strbuf_addf(&names, "%s%.*s", names.len ? ", " : "", user_csv_name_len(column),
                    column->csv);
    return aq_fail(err, EINVAL, "line %zu: there is no column '%.40s'; columns are %s",
                   titles->line, title, names.data);
}

/* Which field each column is, -1 = none. */
static int user_csv_read_titles(const struct csv_record *titles, int fields[ENTITY_FIELDS_MAX],
                                struct aq_error *err)
{
    for (size_t i = 0; i < ENTITY_FIELDS_MAX; i++)
        fields[i] = -1;
    for (size_t i = 0; i < titles->count; i++) {
        size_t column;

        if (user_csv_find_column(titles->fields[i], &column) < 0)
            return user_csv_fail_title(titles, titles->fields[i], err);
        if (fields[column] >= 0)
            return aq_fail(err, EINVAL, "line %zu: '%.40s' and '%.40s' are the same column",
                           titles->line, titles->fields[fields[column]], titles->fields[i]);
        fields[column] = (int)i;
    }
    if (fields[0] < 0)
        return aq_fail(err, EINVAL, "line %zu: a column 'email' is missing", titles->line);
    return 0;
}

/* ---- the other lines ---- */

struct user_csv {
    const char *domain;
    int fields[ENTITY_FIELDS_MAX];
    size_t title_count;
    json_t *rows;
    struct strbuf *errors;
    size_t error_count;
};

static void user_csv_fail(struct user_csv *csv, const struct csv_record *record, const char *column,
                          const char *fmt, ...) AQ_PRINTF(4, 5);

static void user_csv_fail(struct user_csv *csv, const struct csv_record *record, const char *column,
                          const char *fmt, ...)
{
    va_list args;

    if (csv->error_count++ >= USER_CSV_ERRORS_MAX)
        return;
    strbuf_addf(csv->errors, "line %zu%s%s: ", record->line, column ? ", " : "",
                column ? column : "");
    va_start(args, fmt);
    strbuf_vaddf(csv->errors, fmt, args);
    va_end(args);
    strbuf_addc(csv->errors, '\n');
}

/* "a; b" as ["a", "b"]. */
static json_t *user_csv_split(const char *text)
{
    json_t *list = json_array();

    for (;;) {
        size_t len, all;

        text += strspn(text, " ;,");
        if (!*text)
            return list;
        all = len = strcspn(text, ";,");
        while (len && text[len - 1] == ' ')
            len--;
        (void)json_array_append_new(list, json_stringn(text, len));
        text += all;
    }
}

static int user_csv_add_value(struct user_csv *csv, const struct csv_record *record, size_t i,
                              json_t *row, json_t *user)
{
    const struct field *column = &user_csv_columns[i];
    const char *text = csv->fields[i] >= 0 ? record->fields[csv->fields[i]] : "";
    bool is_list = column->type == FIELD_STR_LIST;
    size_t len, min = is_list ? 1 : (size_t)column->min;
    size_t max = is_list ? LIST_BYTES_MAX : (size_t)column->max;
    json_t *to = strcmp(column->names, "policy") == 0 ? row : user;
    char name[FIELD_NAME_MAX];

    if (!(column->flags & FIELD_SECRET)) /* people write these: no export has them */
        text = csv_field_text(text);
    len = strlen(text);
    (void)snprintf(name, sizeof(name), "%.*s", user_csv_name_len(column), column->csv);
    if (!len && strcmp(column->names, "domain") == 0)
        len = strlen(text = csv->domain);
    if (!len && i == 0)
        user_csv_fail(csv, record, name, "it is empty; write the e-mail address");
    if (!len)
        return 0;
    if (len < min || len > max) {
        user_csv_fail(csv, record, name, "must have %zu to %zu bytes", min, max);
        return 0;
    }
    return json_object_set_new(to, column->names,
                               is_list ? user_csv_split(text) : json_string(text));
}

static int user_csv_add_row(struct user_csv *csv, const struct csv_record *record,
                            struct aq_error *err)
{
    json_t *row, *user;

    if (record->count != csv->title_count) {
        user_csv_fail(csv, record, NULL,
                      "%zu values for %zu columns; quote values with separators in them",
                      record->count, csv->title_count);
        return 0;
    }
    if (json_array_size(csv->rows) == USER_CSV_ROWS_MAX)
        return aq_fail(err, EINVAL, "it has more than %d users; import it in several files",
                       USER_CSV_ROWS_MAX);
    row = json_pack("{s:I, s:{}}", "line", (json_int_t)record->line, "user");
    user = json_object_get(row, "user");
    (void)json_array_append_new(csv->rows, row);
    for (size_t i = 0; user_csv_columns[i].names; i++)
        if (user_csv_add_value(csv, record, i, row, user) < 0)
            return aq_fail_field(err, EINVAL, "domain", "the domain is not UTF-8");
    return 0;
}

int user_csv_read(char *text, size_t len, const char *domain, json_t **ret, struct strbuf *errors,
                  size_t *ret_count, struct aq_error *err)
{
    struct user_csv csv = { .domain = domain, .errors = errors };
    struct csv_reader reader;
    struct csv_record record;
    int r;

    if (len > USER_CSV_BYTES_MAX)
        return aq_fail(err, EINVAL, "it has more than 512 KiB; import it in several files");
    if ((r = csv_reader_begin(&reader, text, len, err)) < 0
        || (r = csv_reader_next(&reader, &record, err)) < 0)
        return r;
    if (r == 0)
        return aq_fail(err, EINVAL, "it is empty: the first line must name the columns");
    if ((r = user_csv_read_titles(&record, csv.fields, err)) < 0)
        return r;
    csv.title_count = record.count;
    csv.rows = json_array();
    while ((r = csv_reader_next(&reader, &record, err)) > 0)
        if ((r = user_csv_add_row(&csv, &record, err)) < 0)
            break;
    if (r == 0 && json_array_size(csv.rows) == 0 && csv.error_count == 0)
        r = aq_fail(err, EINVAL, "it has no users, only the line that names the columns");
    if (r < 0) {
        json_decref(csv.rows);
        return r;
    }
    *ret = csv.rows;
    *ret_count = csv.error_count;
    return 0;
}
