/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as a table. */
#include "cli/output/table.h"

#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "cli/output/resource_usage.h"

#define SHRUNK_MIN 8
#define GAP 2

/* The text of all cells, one after the other; cell i ends at ends[i]. */
struct grid {
    struct strbuf text;
    size_t *ends;
    size_t columns, rows; /* the header is row 0 */
    size_t *widths;       /* per column, as shown */
};

static void table_grid_done(struct grid *grid)
{
    strbuf_done(&grid->text);
    free(grid->ends);
    free(grid->widths);
}

static const char *table_grid_cell(const struct grid *grid, size_t row, size_t column,
                                   size_t *ret_len)
{
    size_t i = row * grid->columns + column, start = i ? grid->ends[i - 1] : 0;

    *ret_len = grid->ends[i] - start;
    return grid->text.data + start;
}

static bool table_grid_fill(const struct output *o, const struct column *const *columns,
                            size_t count, const json_t *rows, struct grid *grid)
{
    *grid = (struct grid){ .columns = count, .rows = json_array_size(rows) + 1 };
    strbuf_init(&grid->text);
    grid->ends = calloc(grid->rows * count + 1, sizeof(*grid->ends));
    grid->widths = calloc(count + 1, sizeof(*grid->widths));
    if (!grid->ends || !grid->widths)
        return false;
    for (size_t r = 0; r < grid->rows; r++) {
        const json_t *row = r ? json_array_get(rows, r - 1) : NULL;

        for (size_t c = 0; c < count; c++) {
            size_t start = grid->text.len, width;

            if (r)
                cell_write(o, columns[c], json_object_get(row, columns[c]->key), &grid->text);
            else if (!o->no_header)
                strbuf_adds(&grid->text, columns[c]->title);
            grid->ends[r * count + c] = grid->text.len;
            width = utf8_width(grid->text.data + start, grid->text.len - start);
            grid->widths[c] = AQ_MAX(grid->widths[c], width);
        }
    }
    return strbuf_ok(&grid->text);
}

static void table_shrink(const struct output *o, const struct column *const *columns,
                         struct grid *grid)
{
    size_t total = grid->columns ? (grid->columns - 1) * GAP : 0;

    for (size_t c = 0; c < grid->columns; c++)
        total += grid->widths[c];
    while (o->width > 0 && total > (size_t)o->width) {
        size_t widest = grid->columns;

        for (size_t c = 0; c < grid->columns; c++) {
            if (!(columns[c]->flags & COLUMN_MAY_SHRINK) || grid->widths[c] <= SHRUNK_MIN)
                continue;
            if (widest == grid->columns || grid->widths[c] > grid->widths[widest])
                widest = c;
        }
        if (widest == grid->columns)
            return;
        grid->widths[widest]--;
        total--;
    }
}

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

static void table_pad(size_t width, struct strbuf *out)
{
    while (width--)
        strbuf_addc(out, ' ');
}

static void table_write_padded(const struct output *o, const struct column *column,
                               const char *colour, const char *text, size_t len, size_t width,
                               bool last, struct strbuf *out)
{
    size_t taken = utf8_width(text, len);
    const char *mark = "";

    if (taken > width) {
        len = utf8_fit(text, len, width - 1);
        taken = utf8_width(text, len) + 1;
        mark = o->ascii ? "~" : "\xe2\x80\xa6";
    }
    if (column->kind == COLUMN_NUMBER || column->kind == COLUMN_BYTES)
        table_pad(width - taken, out);
    strbuf_adds(out, colour ? colour : "");
    strbuf_add(out, text, len);
    strbuf_adds(out, mark);
    strbuf_adds(out, colour ? TABLE_COLOUR_END : "");
    if (!last && column->kind != COLUMN_NUMBER && column->kind != COLUMN_BYTES)
        table_pad(width - taken, out);
    table_pad(last ? 0 : GAP, out);
}

static const char *table_load_colour(const json_t *load)
{
    double part = json_number_value(json_object_get(load, "part"));

    return json_is_object(load) && part >= 0 ? usage_colour(part) : NULL;
}

static const char *table_cell_colour(const struct output *o, const struct column *column,
                                     const json_t *row)
{
    if (!o->colour)
        return NULL;
    if (!row)
        return "\033[1m";
    if (column->kind == COLUMN_LOAD)
        return table_load_colour(json_object_get(row, column->key));
    if (column->kind != COLUMN_STATUS)
        return NULL;
    return table_status_colour(json_string_value(json_object_get(row, column->key)));
}

void table_write(const struct output *o, const struct column *const *columns, size_t count,
                 const json_t *rows, struct strbuf *out)
{
    AQ_CLEANUP(table_grid_done) struct grid grid;

    if (!table_grid_fill(o, columns, count, rows, &grid)) {
        out->failed = true;
        return;
    }
    table_shrink(o, columns, &grid);
    for (size_t r = o->no_header ? 1 : 0; r < grid.rows; r++) {
        const json_t *row = r ? json_array_get(rows, r - 1) : NULL;

        for (size_t c = 0; c < count; c++) {
            size_t len;
            const char *text = table_grid_cell(&grid, r, c, &len);

            table_write_padded(o, columns[c], table_cell_colour(o, columns[c], row), text, len,
                               grid.widths[c], c + 1 == count, out);
        }
        strbuf_addc(out, '\n');
    }
}

void table_write_record(const struct output *o, const struct column *const *columns, size_t count,
                        const json_t *row, struct strbuf *out)
{
    size_t width = 0;

    for (size_t c = 0; c < count; c++)
        width = AQ_MAX(width, strlen(columns[c]->title));
    for (size_t c = 0; c < count; c++) {
        const json_t *value = json_object_get(row, columns[c]->key);
        const char *colour = table_cell_colour(o, columns[c], row);

        if (!o->no_header)
            strbuf_addf(out, "%-*s  ", (int)width, columns[c]->title);
        strbuf_adds(out, colour ? colour : "");
        cell_write(o, columns[c], value, out);
        strbuf_adds(out, colour ? TABLE_COLOUR_END : "");
        strbuf_addc(out, '\n');
    }
}
