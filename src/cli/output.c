#include "cli/output.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "cli/opt.h"
#include "base/suggest.h"
#include "cli/table.h"

#define COLUMNS_MAX 48

struct chosen {
    const struct column *columns[COLUMNS_MAX];
    size_t count;
};

static bool names_list_has(const char *list, const char *name)
{
    size_t len = strlen(name);

    while (list) {
        size_t size = strcspn(list, ",");

        if (size == len && memcmp(list, name, len) == 0)
            return true;
        list = list[size] ? list + size + 1 : NULL;
    }
    return false;
}

bool output_wants(const struct output *o, const struct column *column, bool record)
{
    if (o->sort && strstr(o->sort, column->key))
        return true;
    if (o->columns)
        return names_list_has(o->columns, column->key);
    if (o->format == OUTPUT_NAME)
        return column->flags & COLUMN_IS_NAME;
    if (record)
        return !(output_is_human(o) && (column->flags & COLUMN_IS_NESTED));
    if (o->format == OUTPUT_TABLE)
        return !(column->flags & (COLUMN_IS_WIDE | COLUMN_IS_EXTRA));
    return !(column->flags & COLUMN_IS_EXTRA);
}

static int unknown_column(const struct column *columns, const char *option, const char *name,
                          size_t len, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf known = STRBUF_INIT;
    struct suggest suggest = suggest_for(name, len);

    for (const struct column *c = columns; c->title; c++) {
        suggest_offer(&suggest, c->key);
        strbuf_addf(&known, "%s%s", c == columns ? "" : ", ", c->key);
    }
    if (suggest.best)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "%s: there is no column '%.*s'; did you mean '%s'?", option, (int)len,
                            name, suggest.best);
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s: there is no column '%.*s'; there are: %s",
                        option, (int)len, name, known.data);
}

static const struct column *find_column(const struct column *columns, const char *name, size_t len)
{
    for (const struct column *c = columns; c->title; c++)
        if (strlen(c->key) == len && memcmp(c->key, name, len) == 0)
            return c;
    return NULL;
}

/* The columns to show: in the order of --columns, or of the table. */
static int choose(const struct output *o, const struct column *columns, bool record,
                  struct chosen *ret, struct aq_error *err)
{
    ret->count = 0;
    for (const char *at = o->columns; at; ) {
        size_t len = strcspn(at, ",");
        const struct column *column = find_column(columns, at, len);

        if (!column || ret->count == COLUMNS_MAX)
            return unknown_column(columns, "--columns", at, len, err);
        ret->columns[ret->count++] = column;
        at = at[len] ? at + len + 1 : NULL;
    }
    if (o->columns)
        return 0;
    for (const struct column *c = columns; c->title && ret->count < COLUMNS_MAX; c++) {
        struct output plain = *o;

        plain.sort = NULL;
        if (output_wants(&plain, c, record))
            ret->columns[ret->count++] = c;
    }
    return 0;
}

/* ---- sorting ---- */

static int compare_values(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);

        return (x > y) - (x < y);
    }
    if (json_is_string(a) && json_is_string(b))
        return strcmp(json_string_value(a), json_string_value(b));
    /* null and what else cannot be compared goes last */
    return (!a || json_is_null(a)) - (!b || json_is_null(b));
}

struct sorted_row {
    json_t *row;
    size_t index;
};

static int compare_rows(const void *a, const void *b, void *data)
{
    const struct sorted_row *x = a, *y = b;
    const char *at = data;

    while (at) {
        bool descending = at[0] == '-';
        size_t len = strcspn(at += descending, ",");
        int c = compare_values(json_object_getn(x->row, at, len), json_object_getn(y->row, at, len));

        if (c)
            return descending ? -c : c;
        at = at[len] ? at + len + 1 : NULL;
    }
    return (x->index > y->index) - (x->index < y->index);
}

static int sort_rows(const struct output *o, const struct column *columns, const json_t *rows,
                     json_t **ret, struct aq_error *err)
{
    size_t count = json_array_size(rows);
    AQ_CLEANUP(aq_freep) struct sorted_row *sorted = calloc(count + 1, sizeof(*sorted));
    json_t *list = json_array();

    for (const char *at = o->sort; at; ) {
        size_t len = strcspn(at += at[0] == '-', ",");

        if (!find_column(columns, at, len)) {
            json_decref(list);
            return unknown_column(columns, "--sort", at, len, err);
        }
        at = at[len] ? at + len + 1 : NULL;
    }
    for (size_t i = 0; sorted && i < count; i++)
        sorted[i] = (struct sorted_row){ json_array_get(rows, i), i };
    if (sorted && o->sort)
        qsort_r(sorted, count, sizeof(*sorted), compare_rows, (void *)o->sort);
    for (size_t i = 0; sorted && i < count; i++) {
        if (json_array_append(list, sorted[i].row) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    if (!sorted || !list) {
        json_decref(list);
        return aq_fail(err, ENOMEM, "sorting %zu rows", count);
    }
    *ret = list;
    return 0;
}

/* ---- machine formats ---- */

/* The chosen members in their order; a missing one is null. NULL = no memory. */
static json_t *project(const struct chosen *chosen, const json_t *row)
{
    json_t *object = json_object();

    for (size_t i = 0; object && i < chosen->count; i++) {
        json_t *value = json_object_get(row, chosen->columns[i]->key);

        if (json_object_set_new(object, chosen->columns[i]->key,
                                value ? json_incref(value) : json_null()) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static void add_json(const json_t *value, size_t flags, struct strbuf *out)
{
    char *text = value ? json_dumps(value, flags | JSON_ENCODE_ANY) : NULL;

    if (text) {
        strbuf_adds(out, text);
        strbuf_addc(out, '\n');
    } else {
        out->failed = true;
    }
    free(text);
}

void output_json(const json_t *value, struct strbuf *out)
{
    add_json(value, JSON_INDENT(2), out);
}

static void write_csv_row(const struct chosen *chosen, const json_t *row, struct strbuf *out)
{
    for (size_t i = 0; i < chosen->count; i++) {
        const json_t *value = json_object_get(row, chosen->columns[i]->key);
        char *text = NULL;

        if (i)
            strbuf_addc(out, ',');
        if (json_is_string(value)) {
            csv_write_field(json_string_value(value), json_string_length(value), out);
        } else if (value && !json_is_null(value)) {
            text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
            if (text)
                csv_write_field(text, strlen(text), out);
            else
                out->failed = true;
            free(text);
        }
    }
    strbuf_addc(out, '\n');
}

static void write_csv(const struct output *o, const struct chosen *chosen, const json_t *rows,
                      struct strbuf *out)
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
        write_csv_row(chosen, row, out);
}

static void write_names(const struct chosen *chosen, const json_t *rows, struct strbuf *out)
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
static void write_documents(const struct output *o, const struct chosen *chosen,
                            const json_t *rows, bool record, struct strbuf *out)
{
    json_t *list = json_array(), *row;
    size_t i;

    json_array_foreach(rows, i, row) {
        if (json_array_append_new(list, project(chosen, row)) < 0)
            out->failed = true;
    }
    row = record ? json_array_get(list, 0) : list;
    if (o->format == OUTPUT_JSON)
        output_json(row, out);
    else if (o->format == OUTPUT_YAML && row)
        yaml_write(row, out);
    else
        json_array_foreach(list, i, row)
            add_json(row, JSON_COMPACT, out);
    json_decref(list);
}

static int write_rows(const struct output *o, const struct chosen *chosen, const json_t *rows,
                      bool record, struct strbuf *out, struct aq_error *err)
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
        write_csv(o, chosen, rows, out);
        break;
    case OUTPUT_NAME:
        write_names(chosen, rows, out);
        break;
    case OUTPUT_JSON:
    case OUTPUT_YAML:
    case OUTPUT_JSONL:
        write_documents(o, chosen, rows, record, out);
        break;
    }
    return strbuf_ok(out) ? 0 : aq_fail(err, ENOMEM, "output");
}

int output_list(const struct output *o, const struct column *columns, const json_t *rows,
                struct strbuf *out, struct aq_error *err)
{
    struct chosen chosen;
    json_t *sorted = NULL;
    int r = choose(o, columns, false, &chosen, err);

    if (r == 0)
        r = sort_rows(o, columns, rows, &sorted, err);
    if (r == 0)
        r = write_rows(o, &chosen, sorted, false, out, err);
    json_decref(sorted);
    return r;
}

int output_record(const struct output *o, const struct column *columns, const json_t *row,
                  struct strbuf *out, struct aq_error *err)
{
    struct chosen chosen;
    json_t *rows;
    int r = choose(o, columns, true, &chosen, err);

    if (r < 0)
        return r;
    rows = json_pack("[O]", row);
    r = rows ? write_rows(o, &chosen, rows, true, out, err) : aq_fail(err, ENOMEM, "output");
    json_decref(rows);
    return r;
}
