/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as a table. */
#include "cli/output/table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "cli/output/resource_usage.h"

#define SHRUNK_MIN 8
#define GAP 2

/* ---- colours ---- */

const char *table_status_colour(const char *status)
{
    /* What works is green, what is not yet (or no longer) as it shall be yellow,
     * what went wrong red, what is over dim.
     */
    static const struct {
        const char *colour, *words[18];
    } kinds[] = {
        { "\033[32m", { "RUNNING", "ALIVE", "SUCCESS", "ACTIVE", "READY" } },
        { "\033[33m",
          { "PENDING", "DEPRIORITIZING", "RESERVED", "SCHEDULED", "PREPARING", "PULLING",
            "PREPARED", "CREATING", "RUNNING_DEGRADED", "RESTARTING", "PREEMPTED", "RESCHEDULING",
            "TERMINATING", "BEFORE-VERIFICATION" } },
        { "\033[31m", { "ERROR", "LOST", "FAILURE", "FAILED" } },
        { "\033[2m", { "TERMINATED", "CANCELLED", "INACTIVE", "DELETED" } },
    };

    for (size_t i = 0; status && i < AQ_COUNT(kinds); i++)
        for (const char *const *word = kinds[i].words; *word; word++)
            if (strcasecmp(status, *word) == 0)
                return kinds[i].colour;
    return NULL;
}

static const char *table_load_colour(const json_t *load)
{
    double part = json_number_value(json_object_get(load, "part"));

    return json_is_object(load) && part >= 0 ? usage_colour(part) : NULL;
}

static const char *table_value_colour(const struct column *column, const json_t *value)
{
    if (column->kind == COLUMN_LOAD)
        return table_load_colour(value);
    return column->kind == COLUMN_STATUS ? table_status_colour(json_string_value(value)) : NULL;
}

/* ---- cells ---- */

/* What is shown in one place of the table; equal ones may share their text. */
struct cell {
    size_t at; /* in the table's text */
    uint32_t len, width;
    const char *colour; /* NULL = none */
};

/* The last value of a column that came as text: rows repeat most of theirs. */
struct table_repeat {
    struct strbuf value;
    struct cell cell;
};

struct table {
    const struct output *output;
    const struct column **columns;
    struct json_span *keys; /* of the columns */
    size_t count;           /* of columns */
    struct strbuf text;
    struct cell *cells; /* by row, of which the header is the first */
    size_t rows, room;
    size_t *widths; /* per column, as shown */
    struct table_repeat *repeats;
    struct json_span *values; /* of the row that is being added */
    bool failed;
};

void table_free(struct table *t)
{
    if (!t)
        return;
    for (size_t c = 0; t->repeats && c < t->count; c++)
        strbuf_done(&t->repeats[c].value);
    strbuf_done(&t->text);
    free(t->columns);
    free(t->keys);
    free(t->cells);
    free(t->widths);
    free(t->repeats);
    free(t->values);
    free(t);
}

/* ---- rows ---- */

/* Room for the cells of one more row; NULL = no memory. */
static struct cell *table_add_row(struct table *t)
{
    if (t->rows == t->room) {
        size_t room = AQ_MAX(t->room * 2, (size_t)16);
        struct cell *grown = reallocarray(t->cells, room * AQ_MAX(t->count, 1), sizeof(*grown));

        if (!grown) {
            t->failed = true;
            return NULL;
        }
        t->cells = grown;
        t->room = room;
    }
    return &t->cells[t->rows++ * t->count];
}

/* The cell of what was added to the text since 'start'. */
static struct cell table_make_cell(struct table *t, size_t c, size_t start, const char *colour)
{
    size_t len = t->text.len - start, width = utf8_width(t->text.data + start, len);

    t->widths[c] = AQ_MAX(t->widths[c], width);
    return (struct cell){ start, (uint32_t)len, (uint32_t)width,
                          t->output->colour ? colour : NULL };
}

static void table_add_header(struct table *t)
{
    struct cell *cells = table_add_row(t);

    for (size_t c = 0; cells && c < t->count; c++) {
        size_t start = t->text.len;

        strbuf_adds(&t->text, t->output->no_header ? "" : t->columns[c]->title);
        cells[c] = table_make_cell(t, c, start, "\033[1m");
    }
}

struct table *table_new(const struct output *o, const struct column *const *columns, size_t count)
{
    struct table *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->output = o;
    t->count = count;
    strbuf_init(&t->text);
    t->columns = calloc(count + 1, sizeof(struct column *));
    t->keys = calloc(count + 1, sizeof(*t->keys));
    t->widths = calloc(count + 1, sizeof(*t->widths));
    t->repeats = calloc(count + 1, sizeof(*t->repeats));
    t->values = calloc(count + 1, sizeof(*t->values));
    if (!t->columns || !t->keys || !t->widths || !t->repeats || !t->values) {
        table_free(t);
        return NULL;
    }
    for (size_t c = 0; c < count; c++) {
        t->columns[c] = columns[c];
        t->keys[c] = (struct json_span){ columns[c]->key, strlen(columns[c]->key) };
        strbuf_init(&t->repeats[c].value);
    }
    table_add_header(t);
    return t;
}

static struct cell table_write_cell(struct table *t, size_t c, const json_t *value)
{
    size_t start = t->text.len;

    cell_write(t->output, t->columns[c], value, &t->text);
    return table_make_cell(t, c, start, table_value_colour(t->columns[c], value));
}

void table_add(struct table *t, const json_t *row)
{
    struct cell *cells = table_add_row(t);

    for (size_t c = 0; cells && c < t->count; c++)
        cells[c] = table_write_cell(t, c, json_object_get(row, t->columns[c]->key));
}

/* A value from its text; NULL if it is none, or there is no memory. */
static json_t *table_read_value(struct json_span span)
{
    size_t plain = 1;

    while (plain + 1 < span.len && span.text[plain] >= 0x20 && span.text[plain] < 0x7f
           && span.text[plain] != '\\')
        plain++;
    if (span.len > 1 && span.text[0] == '"' && plain + 1 == span.len)
        return json_stringn_nocheck(span.text + 1, span.len - 2);
    return json_loadb(span.text, span.len, JSON_DECODE_ANY, NULL);
}

static bool table_repeat_is(const struct table_repeat *repeat, struct json_span span)
{
    return json_span_equals(span, (struct json_span){ repeat->value.data, repeat->value.len });
}

/* The column's cell of this value: the last one's if it says the same. */
static bool table_add_value(struct table *t, size_t c, struct json_span span, struct cell *ret)
{
    struct table_repeat *repeat = &t->repeats[c];
    json_t *value;

    if (!span.len)
        span = (struct json_span){ "null", 4 };
    if (!table_repeat_is(repeat, span)) {
        if (!(value = table_read_value(span)))
            return false;
        repeat->cell = table_write_cell(t, c, value);
        json_decref(value);
        strbuf_clear(&repeat->value);
        strbuf_add(&repeat->value, span.text, span.len);
        t->failed |= !strbuf_ok(&repeat->value);
    }
    *ret = repeat->cell;
    return true;
}

bool table_add_text(struct table *t, struct json_span row)
{
    struct json_scan scan = json_scan_make(row.text, row.len);
    struct json_span key, value;
    struct cell *cells = table_add_row(t);

    if (!cells)
        return true;
    memset(t->values, 0, t->count * sizeof(*t->values));
    while (json_scan_member(&scan, &key)) {
        value = json_scan_value(&scan);
        for (size_t c = 0; c < t->count; c++)
            if (json_span_equals(key, t->keys[c]))
                t->values[c] = value;
    }
    for (size_t c = 0; c < t->count; c++)
        if (scan.failed || !table_add_value(t, c, t->values[c], &cells[c])) {
            t->rows--;
            return false;
        }
    return true;
}

/* ---- the whole ---- */

static void table_shrink(struct table *t)
{
    size_t total = t->count ? (t->count - 1) * GAP : 0;

    for (size_t c = 0; c < t->count; c++)
        total += t->widths[c];
    while (t->output->width > 0 && total > (size_t)t->output->width) {
        size_t widest = t->count;

        for (size_t c = 0; c < t->count; c++) {
            if (!(t->columns[c]->flags & COLUMN_MAY_SHRINK) || t->widths[c] <= SHRUNK_MIN)
                continue;
            if (widest == t->count || t->widths[c] > t->widths[widest])
                widest = c;
        }
        if (widest == t->count)
            return;
        t->widths[widest]--;
        total--;
    }
}

static void table_pad(size_t width, struct strbuf *out)
{
    static const char blanks[] = "                                ";

    for (; width >= sizeof(blanks); width -= sizeof(blanks) - 1)
        strbuf_add(out, blanks, sizeof(blanks) - 1);
    strbuf_add(out, blanks, width);
}

static void table_write_padded(const struct table *t, size_t c, const struct cell *cell,
                               struct strbuf *out)
{
    bool is_right = t->columns[c]->kind == COLUMN_NUMBER || t->columns[c]->kind == COLUMN_BYTES;
    size_t width = t->widths[c], taken = cell->width, len = cell->len;
    const char *text = t->text.data + cell->at, *mark = "";
    bool is_last = c + 1 == t->count;

    if (taken > width) {
        len = utf8_fit(text, len, width - 1);
        taken = utf8_width(text, len) + 1;
        mark = t->output->ascii ? "~" : "\xe2\x80\xa6";
    }
    if (is_right)
        table_pad(width - taken, out);
    if (cell->colour)
        strbuf_adds(out, cell->colour);
    strbuf_add(out, text, len);
    strbuf_adds(out, mark);
    if (cell->colour)
        strbuf_adds(out, TABLE_COLOUR_END);
    if (!is_last)
        table_pad((is_right ? 0 : width - taken) + GAP, out);
}

void table_end(struct table *t, struct strbuf *out)
{
    if (t->failed || !strbuf_ok(&t->text)) {
        out->failed = true;
        return;
    }
    table_shrink(t);
    for (size_t r = t->output->no_header ? 1 : 0; r < t->rows; r++) {
        for (size_t c = 0; c < t->count; c++)
            table_write_padded(t, c, &t->cells[r * t->count + c], out);
        strbuf_addc(out, '\n');
    }
}

void table_write(const struct output *o, const struct column *const *columns, size_t count,
                 const json_t *rows, struct strbuf *out)
{
    AQ_CLEANUP(table_freep) struct table *t = table_new(o, columns, count);
    json_t *row;
    size_t i;

    if (!t) {
        out->failed = true;
        return;
    }
    json_array_foreach(rows, i, row)
        table_add(t, row);
    table_end(t, out);
}

void table_write_record(const struct output *o, const struct column *const *columns, size_t count,
                        const json_t *row, struct strbuf *out)
{
    size_t width = 0;

    for (size_t c = 0; c < count; c++)
        width = AQ_MAX(width, strlen(columns[c]->title));
    for (size_t c = 0; c < count; c++) {
        const json_t *value = json_object_get(row, columns[c]->key);
        const char *colour = o->colour ? table_value_colour(columns[c], value) : NULL;

        if (!o->no_header)
            strbuf_addf(out, "%-*s  ", (int)width, columns[c]->title);
        strbuf_adds(out, colour ? colour : "");
        cell_write(o, columns[c], value, out);
        strbuf_adds(out, colour ? TABLE_COLOUR_END : "");
        strbuf_addc(out, '\n');
    }
}
