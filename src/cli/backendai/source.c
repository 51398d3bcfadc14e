/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - rows of Backend.AI as the manager wants them */
#include "cli/backendai/source.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/backendai/dotfiles.h"

#define UNKNOWN "Aliquot does not know this table"

void source_init(struct source *source)
{
    *source = (struct source){ .tables = json_object(),
                               .left = json_object(),
                               .kept = json_object() };
}

void source_done(struct source *source)
{
    json_decref(source->tables);
    json_decref(source->left);
    json_decref(source->kept);
    *source = (struct source){ .tables = NULL };
}

/* ---- values ---- */

static json_t *source_read_bool(const char *text)
{
    if (strcasecmp(text, "t") == 0 || strcasecmp(text, "true") == 0)
        return json_true();
    if (strcasecmp(text, "f") == 0 || strcasecmp(text, "false") == 0)
        return json_false();
    return NULL;
}

static json_t *source_read_number(const char *text)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || end == text || (*end && *end != '.')
        || (*end == '.' && end[1 + strspn(end + 1, "0")]))
        return NULL;
    return json_integer(value);
}

/* Words of an enumeration, whichever way they are kept. */
static json_t *source_read_word(const char *text)
{
    char word[64];
    size_t len = strlen(text);

    if (len >= sizeof(word))
        return NULL;
    for (size_t i = 0; i <= len; i++)
        word[i] = (char)(text[i] == '_' ? '-' : tolower((unsigned char)text[i]));
    return json_string(word);
}

static json_t *source_read_json(const char *text)
{
    return text[0] ? json_loads(text, JSON_DECODE_ANY, NULL) : json_object();
}

/* A value of PostgreSQL, or of a fixture that is text; NULL if it is none of its kind. */
static json_t *source_convert_text(enum source_kind kind, const char *text, struct aq_error *err)
{
    json_t *made = NULL;

    switch (kind) {
    case SOURCE_TEXT:
        return json_string(text);
    case SOURCE_BOOL:
        return source_read_bool(text);
    case SOURCE_NUMBER:
        return source_read_number(text);
    case SOURCE_WORD:
        return source_read_word(text);
    case SOURCE_JSON:
        return source_read_json(text);
    case SOURCE_DOTFILES:
        return text[0] && dotfiles_read(text, &made, err) < 0 ? NULL : made ? made : json_array();
    }
    return NULL;
}

static bool source_is_of_kind(enum source_kind kind, const json_t *value)
{
    switch (kind) {
    case SOURCE_BOOL:
        return json_is_boolean(value);
    case SOURCE_NUMBER:
        return json_is_integer(value);
    case SOURCE_JSON:
        return json_is_object(value);
    case SOURCE_DOTFILES:
        return json_is_array(value);
    case SOURCE_TEXT:
    case SOURCE_WORD:
        break;
    }
    return false;
}

static json_t *source_convert(const struct source_column *column, const json_t *value,
                              struct aq_error *err)
{
    json_t *made = NULL;

    if (json_is_string(value))
        made = source_convert_text(column->kind, json_string_value(value), err);
    else if (source_is_of_kind(column->kind, value))
        made = json_incref((json_t *)(uintptr_t)value);
    else if (json_is_real(value) && column->kind == SOURCE_NUMBER)
        made = json_integer((json_int_t)json_real_value(value));
    else if (json_is_number(value) && column->kind == SOURCE_TEXT)
        made = json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (made && column->kind == SOURCE_JSON && !json_is_object(made)) {
        json_decref(made);
        made = NULL;
    }
    return made;
}

/* ---- tables ---- */

/* The list of an object's member, made if there is none; borrowed. */
static json_t *source_open_list(json_t *object, const char *name)
{
    if (!json_object_get(object, name))
        (void)json_object_set_new(object, name, json_array());
    return json_object_get(object, name);
}

static int source_open_left(struct source *source, struct aq_error *err)
{
    const struct source_table *table = source->table;

    if (json_object_get(source->left, source->table_name))
        return 0;
    return json_object_set_new(
               source->left, source->table_name,
               json_pack("{s:i, s:s}", "rows", 0, "why", table ? table->why : UNKNOWN))
                   < 0
               ? aq_fail(err, EINVAL, "the name of a table is not UTF-8")
               : 0;
}

int source_begin_table(struct source *source, const char *table, struct aq_error *err)
{
    const struct source_table *found = source_table_find(table);
    bool is_same = strcmp(source->table_name, table) == 0;

    (void)snprintf(source->table_name, sizeof(source->table_name), "%s", table);
    source->table = found;
    source->row_count = is_same ? source->row_count : 0;
    source->rows = NULL;
    if (!found || found->use != SOURCE_TAKEN) {
        if (source_open_left(source, err) < 0)
            return -err->code;
        if (!found || found->use == SOURCE_COUNTED)
            return 0;
    }
    source->rows = source_open_list(found->use == SOURCE_TAKEN ? source->tables : source->kept,
                                    table);
    return 1;
}

int source_set_columns(struct source *source, const char *const *columns, size_t count, size_t line,
                       struct aq_error *err)
{
    if (count > SOURCE_COLUMNS_MAX)
        return aq_fail(err, EINVAL, "line %zu: '%s' has more than %d columns", line,
                       source->table_name, SOURCE_COLUMNS_MAX);
    memset(source->columns, 0, sizeof(source->columns));
    source->column_count = count;
    source_table_columns(source->table, source->wanted);
    for (const struct source_column *column = source->wanted; column->name[0]; column++) {
        size_t i = 0;

        while (i < count && strcmp(columns[i], column->name) != 0)
            i++;
        if (i < count)
            source->columns[i] = column;
        else if (column->flags & SOURCE_MUST)
            return aq_fail(err, EINVAL,
                           "table '%s' has no column '%s': it is not of Backend.AI 22.03",
                           source->table_name, column->name);
    }
    return 0;
}

static int source_add_value(struct source *source, json_t *row, const struct source_column *column,
                            const json_t *value, size_t line, struct aq_error *err)
{
    struct aq_error why = { 0 };
    json_t *made;

    if (json_is_null(value))
        return 0;
    if (!(made = source_convert(column, value, &why)))
        return aq_fail(err, EINVAL,
                       "table '%s', %s %zu: column '%s' has a value that it cannot "
                       "have%s%s",
                       source->table_name, source->is_rows ? "row" : "line", line, column->name,
                       why.code ? ": " : "", why.text);
    if (json_is_string(made))
        source->bytes += json_string_length(made);
    else if (json_is_string(value))
        source->bytes += json_string_length(value);
    source->bytes += 32; /* its name, and what is around it */
    (void)json_object_set_new(row, column->name, made);
    return 0;
}

int source_add_row(struct source *source, const json_t *const *values, size_t count, size_t line,
                   struct aq_error *err)
{
    json_auto_t *row = NULL;
    int r = 0;

    source->row_count++;
    if (source->is_rows)
        line = source->row_count;
    row = json_pack("{s:I}", "line", (json_int_t)line);
    if (source->table->use == SOURCE_KEPT)
        (void)source_skip_row(source);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (source->columns[i])
            r = source_add_value(source, row, source->columns[i], values[i], line, err);
    if (r == 0 && source->bytes > SOURCE_BYTES_MAX)
        r = aq_fail(err, EFBIG, "what is to be taken over has more than %u MiB",
                    SOURCE_BYTES_MAX >> 20);
    if (r == 0)
        (void)json_array_append(source->rows, row);
    return r;
}

int source_skip_row(struct source *source)
{
    json_t *rows = json_object_get(json_object_get(source->left, source->table_name), "rows");

    return rows ? json_integer_set(rows, json_integer_value(rows) + 1) : 0;
}

/* ---- the end ---- */

/* id -> name. */
static json_t *source_index_images(const struct source *source)
{
    json_t *names = json_object(), *image;
    size_t i;

    json_array_foreach(json_object_get(source->kept, "images"), i, image) {
        const char *id = json_string_value(json_object_get(image, "id"));

        if (id && json_object_get(image, "name"))
            (void)json_object_set(names, id, json_object_get(image, "name"));
    }
    return names;
}

/* An alias names its image by an id. */
static int source_name_images(struct source *source, struct aq_error *err)
{
    json_auto_t *names = source_index_images(source);
    json_t *alias;
    size_t i;

    json_array_foreach(json_object_get(source->tables, "image_aliases"), i, alias) {
        const char *id = json_string_value(json_object_get(alias, "image"));
        json_t *name = id ? json_object_get(names, id) : NULL;

        if (name)
            (void)json_object_set(alias, "image", name);
        if (!name && id && strlen(id) == 36 && !strchr(id, '/'))
            return aq_fail(err, EINVAL, "table 'image_aliases', %s %lld: there is no image %s",
                           source->is_rows ? "row" : "line",
                           (long long)json_integer_value(json_object_get(alias, "line")), id);
    }
    return 0;
}

int source_finish(struct source *source, bool is_database, struct aq_error *err)
{
    for (const struct source_table *table = source_tables; is_database && table->name; table++)
        if ((table->flags & SOURCE_MUST) && !json_object_get(source->tables, table->name))
            return aq_fail(err, EINVAL,
                           "it has no table '%s': it is no dump of a Backend.AI 22.03 database, or "
                           "not of all of it",
                           table->name);
    return source_name_images(source, err);
}
