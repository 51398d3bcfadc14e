/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and records in the format that was asked for. */
#include "cli/output/output.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "cli/opt.h"
#include "base/csv.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "cli/output/row_order.h"
#include "cli/output/table.h"

#define KNOWN_MAX 220 /* bytes of a list of columns in an error */

struct chosen {
    const struct column *columns[OUTPUT_COLUMNS_MAX];
    size_t count;
};

/* Whether a column is shown unless --columns says which. */
static bool output_wants(const struct output *o, const struct column *column, bool record)
{
    if (o->format == OUTPUT_NAME)
        return column->flags & COLUMN_IS_NAME;
    if (record)
        return !(output_is_human(o) && (column->flags & COLUMN_IS_NESTED));
    if (o->format == OUTPUT_TABLE)
        return !(column->flags & (COLUMN_IS_WIDE | COLUMN_IS_EXTRA));
    return !(column->flags & COLUMN_IS_EXTRA);
}

int output_fail_unknown_column(const struct column *columns, const char *option, const char *name,
                               size_t len, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf known = STRBUF_INIT;
    struct suggest suggest = suggest_for(name, len);
    size_t left = 0;

    for (const struct column *c = columns; c->title; c++) {
        suggest_offer(&suggest, c->key);
        if (known.len + strlen(c->key) < KNOWN_MAX)
            strbuf_addf(&known, "%s%s", c == columns ? "" : ", ", c->key);
        else
            left++;
    }
    if (left)
        strbuf_addf(&known, " and %zu more, all members of -o json", left);
    if (suggest.best)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "%s: there is no column '%.*s'; did you mean '%s'?", option, (int)len,
                            name, suggest.best);
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s: there is no column '%.*s'; there are: %s",
                        option, (int)AQ_MIN(len, (size_t)40), name, known.data);
}

/* "access-key", "access_key" and "ACCESS-KEY" are the same. */
static bool output_title_is(const char *title, const char *name, size_t len)
{
    size_t i = 0;

    for (; i < len && title[i]; i++)
        if (tolower((unsigned char)title[i]) != tolower((unsigned char)name[i])
            && !(strchr("-_ ", title[i]) && strchr("-_", name[i])))
            return false;
    return i == len && title[i] == '\0';
}

const struct column *output_find_column(const struct column *columns, const char *name, size_t len)
{
    for (const struct column *c = columns; c->title; c++)
        if (strlen(c->key) == len && memcmp(c->key, name, len) == 0)
            return c;
    for (const struct column *c = columns; c->title; c++)
        if (output_title_is(c->title, name, len))
            return c;
    return NULL;
}

bool output_is_age(const struct column *column, const char *name, size_t len)
{
    return column->kind == COLUMN_TIME && len == 3 && strcmp(column->title, "AGE") == 0
           && strncasecmp(name, "age", 3) == 0;
}

/* The columns to show: in the order of --columns, or of the table. */
static int output_choose(const struct output *o, const struct column *columns, bool record,
                         struct chosen *ret, struct aq_error *err)
{
    ret->count = 0;
    for (const char *at = o->columns; at;) {
        size_t len = strcspn(at, ",");
        const struct column *column = output_find_column(columns, at, len);

        if (!column || ret->count == OUTPUT_COLUMNS_MAX)
            return output_fail_unknown_column(columns, "--columns", at, len, err);
        ret->columns[ret->count++] = column;
        at = at[len] ? at + len + 1 : NULL;
    }
    if (o->columns)
        return 0;
    for (const struct column *c = columns; c->title && ret->count < OUTPUT_COLUMNS_MAX; c++)
        if (output_wants(o, c, record))
            ret->columns[ret->count++] = c;
    return 0;
}

/* ---- machine formats ---- */

/* The chosen members in their order; a missing one is null. */
static json_t *output_project_row(const struct chosen *chosen, const json_t *row)
{
    json_t *object = json_object();

    for (size_t i = 0; i < chosen->count; i++) {
        json_t *value = json_object_get(row, chosen->columns[i]->key);

        (void)json_object_set_new(object, chosen->columns[i]->key,
                                  value ? json_incref(value) : json_null());
    }
    return object;
}

static void output_add_json(const json_t *value, size_t flags, struct strbuf *out)
{
    char *text = json_dumps(value, flags | OUTPUT_JSON_FLAGS);

    utf8_write_json(text, strlen(text), out);
    strbuf_addc(out, '\n');
    free(text);
}

void output_json(const json_t *value, struct strbuf *out)
{
    output_add_json(value, JSON_INDENT(2), out);
}

void output_document(const struct output *o, const json_t *value, struct strbuf *out)
{
    if (o->format == OUTPUT_YAML)
        yaml_write(value, out);
    else
        output_json(value, out);
}

static void output_write_csv_row(const struct chosen *chosen, const json_t *row, struct strbuf *out)
{
    for (size_t i = 0; i < chosen->count; i++) {
        const json_t *value = json_object_get(row, chosen->columns[i]->key);
        char *text = NULL;

        if (i)
            strbuf_addc(out, ',');
        if (json_is_string(value)) {
            csv_write_field(json_string_value(value), json_string_length(value), out);
        } else if (value && !json_is_null(value)) {
            text = json_dumps(value, OUTPUT_JSON_FLAGS | JSON_COMPACT);
            csv_write_field(text, strlen(text), out);
            free(text);
        }
    }
    strbuf_addc(out, '\n');
}

static void output_write_csv(const struct output *o, const struct chosen *chosen,
                             const json_t *rows, struct strbuf *out)
{
    json_t *row;
    size_t i;

    for (i = 0; !o->no_header && i < chosen->count; i++) {
        strbuf_adds(out, i ? "," : "");
        strbuf_adds(out, chosen->columns[i]->key);
    }
    if (!o->no_header)
        strbuf_addc(out, '\n');
    json_array_foreach(rows, i, row)
        output_write_csv_row(chosen, row, out);
}

static void output_write_names(const struct chosen *chosen, const json_t *rows, struct strbuf *out)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row) {
        for (size_t c = 0; c < chosen->count; c++) {
            const json_t *value = json_object_get(row, chosen->columns[c]->key);

            strbuf_adds(out, c ? "\t" : "");
            cell_write(&(struct output){ .ascii = false }, chosen->columns[c], value, out);
        }
        strbuf_addc(out, '\n');
    }
}

/* json and yaml: the whole as one document; jsonl: a line for each row. */
static void output_write_documents(const struct output *o, const struct chosen *chosen,
                                   const json_t *rows, bool record, struct strbuf *out)
{
    json_t *list = json_array(), *row;
    size_t i;

    json_array_foreach(rows, i, row)
        (void)json_array_append_new(list, output_project_row(chosen, row));
    row = record ? json_array_get(list, 0) : list;
    if (o->format == OUTPUT_JSON || (o->format == OUTPUT_YAML && row))
        output_document(o, row, out);
    else
        json_array_foreach(list, i, row)
            output_add_json(row, JSON_COMPACT, out);
    json_decref(list);
}

static void output_write_rows(const struct output *o, const struct chosen *chosen,
                              const json_t *rows, bool record, struct strbuf *out)
{
    switch (o->format) {
    case OUTPUT_TABLE:
    case OUTPUT_WIDE:
        if (record)
            table_write_record(o, chosen->columns, chosen->count, json_array_get(rows, 0), out);
        else
            table_write(o, chosen->columns, chosen->count, rows, out);
        break;
    case OUTPUT_CSV:
        output_write_csv(o, chosen, rows, out);
        break;
    case OUTPUT_NAME:
        output_write_names(chosen, rows, out);
        break;
    case OUTPUT_JSON:
    case OUTPUT_YAML:
    case OUTPUT_JSONL:
        output_write_documents(o, chosen, rows, record, out);
        break;
    }
}

int output_list(const struct output *o, const struct column *columns, const json_t *rows,
                struct strbuf *out, struct aq_error *err)
{
    struct chosen chosen;
    json_t *sorted = NULL;
    int r = output_choose(o, columns, false, &chosen, err);

    if (r == 0)
        r = row_order_sort(o, columns, rows, &sorted, err);
    if (r == 0)
        output_write_rows(o, &chosen, sorted, false, out);
    json_decref(sorted);
    return r;
}

int output_begin_table(const struct output *o, const struct column *columns, struct table **ret,
                       struct aq_error *err)
{
    struct chosen chosen;
    int r = output_choose(o, columns, false, &chosen, err);

    if (r == 0)
        *ret = table_new(o, chosen.columns, chosen.count);
    return r;
}

int output_list_needs(const struct output *o, const struct column *columns, uint64_t *ret,
                      struct aq_error *err)
{
    uint64_t needs = 0;
    struct chosen chosen;
    int r = output_choose(o, columns, false, &chosen, err);

    if (r == 0)
        r = row_order_needs(o, columns, &needs, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < chosen.count; i++)
        needs |= UINT64_C(1) << (chosen.columns[i] - columns);
    *ret = needs;
    return 0;
}

int output_record(const struct output *o, const struct column *columns, const json_t *row,
                  struct strbuf *out, struct aq_error *err)
{
    struct chosen chosen;
    json_t *rows;
    int r = output_choose(o, columns, true, &chosen, err);

    if (r < 0)
        return r;
    if (!row)
        return aq_fail(err, EPROTO, "the manager's answer lacks the object to show");
    rows = json_pack("[O]", row);
    output_write_rows(o, &chosen, rows, true, out);
    json_decref(rows);
    return 0;
}
