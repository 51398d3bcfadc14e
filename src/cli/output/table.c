/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as a table. */
#include "cli/output/table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/output/prose.h"
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
        const char *colour, *words[22];
    } kinds[] = {
        { "\033[32m", { "RUNNING", "ALIVE", "SUCCESS", "ACTIVE", "READY" } },
        { "\033[33m",
          { "PENDING", "DEPRIORITIZING", "RESERVED", "SCHEDULED", "PREPARING", "PULLING",
            "PREPARED", "CREATING", "RUNNING_DEGRADED", "RESTARTING", "PREEMPTED", "RESCHEDULING",
            "TERMINATING", "BEFORE-VERIFICATION", "SCALING", "DEGRADED", "STARTING", "DRAINING",
            "ENDING" } },
        { "\033[31m", { "ERROR", "LOST", "FAILURE", "FAILED", "FAILING", "UNHEALTHY" } },
        { "\033[2m", { "TERMINATED", "CANCELLED", "INACTIVE", "DELETED", "SLEEPING", "ENDED" } },
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
    size_t rows, room;  /* room in cells */
    size_t *widths;     /* per column, as shown */
    size_t *least;      /* per column: the width of what must stay in one line */
    struct table_repeat *repeats;
    struct json_span *values; /* of the row that is being added */
};

void table_free(struct table *t)
{
    if (!t)
        return;
    for (size_t c = 0; c < t->count; c++)
        strbuf_done(&t->repeats[c].value);
    strbuf_done(&t->text);
    free(t->columns);
    free(t->keys);
    free(t->cells);
    free(t->widths);
    free(t->least);
    free(t->repeats);
    free(t->values);
    free(t);
}

/* ---- rows ---- */

/* Room for the cells of one more row. */
static struct cell *table_add_row(struct table *t)
{
    vec_grow(&t->cells, &t->room, (t->rows + 1) * AQ_MAX(t->count, (size_t)1), sizeof(*t->cells));
    return &t->cells[t->rows++ * t->count];
}

/* Does the column take several lines when the terminal is too narrow? */
static bool table_wraps(const struct table *t, size_t c)
{
    const struct column *column = t->columns[c];

    return column->flags & COLUMN_MAY_SHRINK || column->kind == COLUMN_SLOTS
           || column->kind == COLUMN_NAMES;
}

/* The longest part of a reason, "no-available-instances", that stays on one line. */
static size_t table_longest_part(const char *text, size_t len)
{
    size_t longest = 0, part = 0;

    for (size_t at = 0; at < len; at++) {
        part = text[at] == ' ' ? 0 : part + 1;
        longest = AQ_MAX(longest, part);
        if (text[at] == '-')
            part = 0;
    }
    return longest;
}

/* The fewest columns that a cell of several lines takes. */
static size_t table_least_width(const struct table *t, size_t c, const char *text, size_t len)
{
    return t->columns[c]->kind == COLUMN_REASON ? table_longest_part(text, len)
                                                : prose_longest_word(text, len);
}

/* Bytes for one line of a cell; a reason that is too long is broken after a hyphen. */
static size_t table_fit(const struct table *t, size_t c, const char *text, size_t len,
                        size_t *ret_next)
{
    size_t fits = prose_fit(text, len, t->widths[c], ret_next);

    if (t->columns[c]->kind != COLUMN_REASON || fits <= t->widths[c])
        return fits;
    for (size_t at = t->widths[c]; at > 0; at--)
        if (text[at - 1] == '-')
            return *ret_next = at;
    return fits;
}

/* The cell of what was added to the text since 'start'. */
static struct cell table_make_cell(struct table *t, size_t c, size_t start, const char *colour)
{
    const char *text = t->text.data + start;
    size_t len = t->text.len - start, width = utf8_width(text, len);
    size_t least = t->output->is_screen && table_wraps(t, c)   ? AQ_MIN(width, (size_t)SHRUNK_MIN)
                   : table_wraps(t, c) && t->output->width > 0 ? table_least_width(t, c, text, len)
                                                               : width;

    t->widths[c] = AQ_MAX(t->widths[c], width);
    t->least[c] = AQ_MAX(t->least[c], least);
    return (struct cell){ start, (uint32_t)len, (uint32_t)width,
                          t->output->colour ? colour : NULL };
}

static void table_add_header(struct table *t)
{
    struct cell *cells = table_add_row(t);

    for (size_t c = 0; c < t->count; c++) {
        size_t start = t->text.len;

        strbuf_adds(&t->text, t->output->no_header ? "" : t->columns[c]->title);
        cells[c] = table_make_cell(t, c, start, "\033[1m");
    }
}

struct table *table_new(const struct output *o, const struct column *const *columns, size_t count)
{
    struct table *t = aq_alloc(sizeof(*t));

    t->output = o;
    t->count = count;
    strbuf_init(&t->text);
    t->columns = aq_alloc_array(count + 1, sizeof(struct column *));
    t->keys = aq_alloc_array(count + 1, sizeof(*t->keys));
    t->widths = aq_alloc_array(count + 1, sizeof(*t->widths));
    t->least = aq_alloc_array(count + 1, sizeof(*t->least));
    t->repeats = aq_alloc_array(count + 1, sizeof(*t->repeats));
    t->values = aq_alloc_array(count + 1, sizeof(*t->values));
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

static void table_add(struct table *t, const json_t *row)
{
    struct cell *cells = table_add_row(t);

    for (size_t c = 0; c < t->count; c++)
        cells[c] = table_write_cell(t, c, json_object_get(row, t->columns[c]->key));
}

/* A value from its text; NULL if it is none. */
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
    }
    *ret = repeat->cell;
    return true;
}

bool table_add_text(struct table *t, struct json_span row)
{
    struct json_scan scan = json_scan_make(row.text, row.len);
    struct json_span key, value;
    struct cell *cells = table_add_row(t);

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

/* Take columns from the widest that has more than it needs. Does the table fit then? */
static bool table_shrink(struct table *t)
{
    size_t total = t->count ? (t->count - 1) * GAP : 0;

    if (t->output->width == 0 || (t->output->format == OUTPUT_WIDE && !t->output->is_screen))
        return true;
    for (size_t c = 0; c < t->count; c++)
        total += t->widths[c];
    while (total > (size_t)t->output->width) {
        size_t widest = t->count;

        for (size_t c = 0; c < t->count; c++)
            if (t->widths[c] > t->least[c]
                && (widest == t->count || t->widths[c] > t->widths[widest]))
                widest = c;
        if (widest == t->count)
            return false;
        t->widths[widest]--;
        total--;
    }
    return true;
}

static void table_pad(size_t width, struct strbuf *out)
{
    static const char blanks[] = "                                ";

    for (; width >= sizeof(blanks); width -= sizeof(blanks) - 1)
        strbuf_add(out, blanks, sizeof(blanks) - 1);
    strbuf_add(out, blanks, width);
}

/* A piece of a cell that takes 'taken' columns; 'mark' says that the rest is cut off. */
static void table_write_piece(const struct table *t, size_t c, const struct cell *cell,
                              const char *text, size_t len, const char *mark, struct strbuf *out)
{
    enum column_kind kind = t->columns[c]->kind;
    bool is_right = kind == COLUMN_NUMBER || kind == COLUMN_BYTES
                    || (kind == COLUMN_LOAD && len && isdigit((unsigned char)text[0])); /* no bar */
    size_t taken = utf8_width(text, len) + (mark[0] != '\0');
    size_t rest = t->widths[c] > taken ? t->widths[c] - taken : 0;
    const char *colour = len ? cell->colour : NULL;

    if (is_right)
        table_pad(rest, out);
    strbuf_adds(out, colour ? colour : "");
    strbuf_add(out, text, len);
    strbuf_adds(out, mark);
    strbuf_adds(out, colour ? TABLE_COLOUR_END : "");
    if (c + 1 < t->count)
        table_pad((is_right ? 0 : rest) + GAP, out);
}

/* One line of a row: of each cell what follows its 'done' bytes. False when all is written. */
static bool table_write_line(const struct table *t, const struct cell *cells, size_t *done,
                             struct strbuf *out)
{
    const char *cut = t->output->ascii ? "~" : "\xe2\x80\xa6";
    bool is_more = false, is_first = true;

    for (size_t c = 0; c < t->count; c++) {
        const char *text = t->text.data + cells[c].at + done[c], *mark = "";
        size_t len = cells[c].len - done[c], shown = len, next = len;

        if (t->output->is_screen && cells[c].width > t->widths[c]) {
            shown = utf8_fit(text, len, t->widths[c] - 1);
            mark = cut;
        } else if (done[c] || cells[c].width > t->widths[c]) {
            shown = len ? table_fit(t, c, text, len, &next) : 0;
        }
        is_first = is_first && !done[c];
        table_write_piece(t, c, &cells[c], text, shown, mark, out);
        done[c] += next;
        is_more = is_more || done[c] < cells[c].len;
    }
    while ((is_more || !is_first) && out->data[out->len - 1] == ' ')
        strbuf_truncate(out, out->len - 1);
    strbuf_addc(out, '\n');
    return is_more;
}

static void table_write_row(const struct table *t, size_t r, size_t *done, struct strbuf *out)
{
    memset(done, 0, t->count * sizeof(*done));
    while (table_write_line(t, &t->cells[r * t->count], done, out))
        ;
}

/* Where not even the words fit beside each other: a line for each cell, as records have it. */
static void table_write_block(const struct table *t, size_t r, struct strbuf *out)
{
    size_t width = 0;

    for (size_t c = 0; c < t->count; c++)
        width = AQ_MAX(width, strlen(t->columns[c]->title));
    for (size_t c = 0; c < t->count; c++) {
        const struct cell *cell = &t->cells[r * t->count + c];

        if (!t->output->no_header)
            strbuf_addf(out, "%-*s  ", (int)width, t->columns[c]->title);
        strbuf_adds(out, cell->colour ? cell->colour : "");
        strbuf_add(out, t->text.data + cell->at, cell->len);
        strbuf_adds(out, cell->colour ? TABLE_COLOUR_END : "");
        strbuf_addc(out, '\n');
    }
}

void table_end(struct table *t, struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) size_t *done = aq_alloc_array(t->count + 1, sizeof(*done));
    bool fits;

    fits = table_shrink(t) || t->output->is_screen;
    for (size_t r = t->output->no_header || !fits ? 1 : 0; r < t->rows; r++) {
        if (fits) {
            table_write_row(t, r, done, out);
            continue;
        }
        strbuf_adds(out, r > 1 ? "\n" : "");
        table_write_block(t, r, out);
    }
}

void table_write(const struct output *o, const struct column *const *columns, size_t count,
                 const json_t *rows, struct strbuf *out)
{
    AQ_CLEANUP(table_freep) struct table *t = table_new(o, columns, count);
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
        table_add(t, row);
    table_end(t, out);
}

static bool table_is_empty(const json_t *value)
{
    return !value || json_is_null(value) || (json_is_string(value) && !json_string_length(value))
           || ((json_is_array(value) || json_is_object(value)) && !json_array_size(value)
               && !json_object_size(value));
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

        if (!o->columns && table_is_empty(value))
            continue;
        if (!o->no_header)
            strbuf_addf(out, "%-*s  ", (int)width, columns[c]->title);
        strbuf_adds(out, colour ? colour : "");
        cell_write(o, columns[c], value, out);
        strbuf_adds(out, colour ? TABLE_COLOUR_END : "");
        strbuf_addc(out, '\n');
    }
}
