/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of Slurm's commands, and the lines that they make of jobs or nodes. */
#include "cli/slurm/line.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/opt.h"

/* ---- formats ---- */

const struct slurm_field *slurm_field_find_letter(const struct slurm_field *fields, char letter)
{
    for (const struct slurm_field *f = fields; letter && f->name; f++)
        if (f->letter == letter)
            return f;
    return NULL;
}

static const struct slurm_field *slurm_field_find(const struct slurm_field *fields,
                                                  const char *name, size_t len)
{
    for (const struct slurm_field *f = fields; f->name; f++)
        if (strlen(f->name) == len && strncasecmp(f->name, name, len) == 0)
            return f;
    return NULL;
}

static struct slurm_cell *slurm_line_add(struct slurm_line *line, struct aq_error *err)
{
    if (line->count == SLURM_CELLS_MAX) {
        (void)aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "a format has at most %d fields",
                           SLURM_CELLS_MAX);
        return NULL;
    }
    return &line->cells[line->count++];
}

static int slurm_line_read_width(const char *text, const char **ret_end)
{
    long width = strtol(text, (char **)ret_end, 10);

    return (int)AQ_MIN(AQ_MAX(width, 0), SLURM_WIDTH_MAX);
}

/* "[.][WIDTH]LETTER" behind a "%". */
static int slurm_line_read_letter(const char **at, const struct slurm_field *fields,
                                  struct slurm_cell *cell, struct aq_error *err)
{
    const char *text = *at;

    cell->is_right = *text == '.';
    text += cell->is_right;
    if (isdigit((unsigned char)*text))
        cell->width = slurm_line_read_width(text, &text);
    cell->field = slurm_field_find_letter(fields, *text);
    if (!cell->field)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            *text ? "Invalid format specification: %%%c"
                                  : "Invalid format specification: %% at the end",
                            *text);
    *at = text + 1;
    return 0;
}

static int slurm_line_parse_letters(const char *format, const struct slurm_field *fields,
                                    struct slurm_line *ret, struct aq_error *err)
{
    const char *at = format, *before = format;
    struct slurm_cell *cell = NULL;
    int r = 0;

    while (r == 0 && (at = strchr(at, '%'))) {
        size_t before_len = (size_t)(at - before);

        cell = slurm_line_add(ret, err);
        if (!cell)
            return -EINVAL;
        cell->before = before;
        cell->before_len = before_len;
        at++;
        r = slurm_line_read_letter(&at, fields, cell, err);
        before = at;
    }
    if (r == 0 && !cell)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "Invalid format specification: '%.60s' names no field", format);
    if (r == 0) {
        cell->after = before;
        cell->after_len = strlen(before);
    }
    return r;
}

/* "[.][WIDTH]" of squeue behind ":", or "[-]WIDTH" of sacct behind "%". */
static void slurm_line_read_size(const char *text, enum slurm_line_style style,
                                 struct slurm_cell *cell)
{
    char sign = style == SLURM_LINE_SACCT ? '-' : '.';
    bool is_signed = *text == sign;

    text += is_signed;
    cell->is_right = style == SLURM_LINE_SACCT ? !is_signed : is_signed;
    if (isdigit((unsigned char)*text))
        cell->width = slurm_line_read_width(text, &text);
}

static int slurm_line_parse_names(const char *format, enum slurm_line_style style,
                                  const struct slurm_field *fields, struct slurm_line *ret,
                                  struct aq_error *err)
{
    char mark = style == SLURM_LINE_SACCT ? '%' : ':';

    for (const char *at = format; *at;) {
        size_t len = strcspn(at, ","), name_len = 0;
        struct slurm_cell *cell = slurm_line_add(ret, err);

        if (!cell)
            return -EINVAL;
        while (name_len < len && at[name_len] != mark)
            name_len++;
        cell->field = slurm_field_find(fields, at, name_len);
        if (!cell->field)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "Invalid field requested: \"%.*s\"",
                                (int)AQ_MIN(name_len, (size_t)60), at);
        cell->width = style == SLURM_LINE_SACCT ? cell->field->width : 20;
        cell->is_right = style == SLURM_LINE_SACCT;
        if (name_len < len)
            slurm_line_read_size(at + name_len + 1, style, cell);
        at += len + (at[len] == ',');
    }
    return 0;
}

int slurm_line_parse(const char *format, enum slurm_line_style style,
                     const struct slurm_field *fields, struct slurm_line *ret, struct aq_error *err)
{
    ret->style = style;
    return style == SLURM_LINE_LETTERS ? slurm_line_parse_letters(format, fields, ret, err)
                                       : slurm_line_parse_names(format, style, fields, ret, err);
}

unsigned slurm_line_needs(const struct slurm_line *line)
{
    unsigned needs = 0;

    for (size_t i = 0; i < line->count; i++)
        needs |= line->cells[i].field->needs;
    return needs;
}

/* ---- lines ---- */

/* Of a value that is too long sacct shows so with a '+'. */
static void slurm_line_write_padded(const struct slurm_line *line, const struct slurm_cell *cell,
                                    const struct strbuf *value, struct strbuf *out)
{
    size_t width = (size_t)cell->width, cells = utf8_width(value->data, value->len);
    bool is_cut = cells > width;
    size_t fit = utf8_fit(value->data, value->len,
                          width - (is_cut && line->style == SLURM_LINE_SACCT ? 1 : 0));

    for (size_t i = cells; cell->is_right && i < width; i++)
        strbuf_addc(out, ' ');
    strbuf_add(out, value->data, is_cut ? fit : value->len);
    if (is_cut && line->style == SLURM_LINE_SACCT)
        strbuf_addc(out, '+');
    for (size_t i = cells; !cell->is_right && i < width; i++)
        strbuf_addc(out, ' ');
}

static void slurm_line_write_cell(const struct slurm_line *line, size_t i,
                                  const struct strbuf *value, struct strbuf *out)
{
    const struct slurm_cell *cell = &line->cells[i];
    bool is_last = i + 1 == line->count;

    strbuf_add(out, cell->before, cell->before_len);
    if (line->delimiter || !cell->width)
        strbuf_add(out, value->data, value->len);
    else
        slurm_line_write_padded(line, cell, value, out);
    strbuf_add(out, cell->after, cell->after_len);
    if (line->delimiter && (!is_last || line->ends_with_delimiter))
        strbuf_adds(out, line->delimiter);
    else if (line->style == SLURM_LINE_SACCT && !line->delimiter)
        strbuf_addc(out, ' ');
    if (is_last)
        strbuf_addc(out, '\n');
}

static void slurm_line_write_rule(const struct slurm_line *line, struct strbuf *out)
{
    for (size_t i = 0; i < line->count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf rule = STRBUF_INIT;

        for (int k = 0; k < line->cells[i].width; k++)
            strbuf_addc(&rule, '-');
        slurm_line_write_cell(line, i, &rule, out);
    }
}

void slurm_line_write_header(const struct slurm_line *line, struct strbuf *out)
{
    for (size_t i = 0; i < line->count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf title = STRBUF_INIT;
        const struct slurm_field *field = line->cells[i].field;

        strbuf_adds(&title, line->style == SLURM_LINE_SACCT ? field->name : field->title);
        slurm_line_write_cell(line, i, &title, out);
    }
    if (line->style == SLURM_LINE_SACCT && !line->delimiter)
        slurm_line_write_rule(line, out);
}

void slurm_line_write(const struct slurm_line *line, const void *row, struct strbuf *out)
{
    for (size_t i = 0; i < line->count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf value = STRBUF_INIT;

        line->cells[i].field->write(row, &value);
        slurm_line_write_cell(line, i, &value, out);
    }
}

int slurm_line_print(const struct slurm_line *line, bool has_header, const void *rows, size_t count,
                     size_t size, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    if (has_header)
        slurm_line_write_header(line, &out);
    for (size_t i = 0; i < count; i++)
        slurm_line_write(line, (const char *)rows + i * size, &out);
    return cli_print(&out, err);
}
