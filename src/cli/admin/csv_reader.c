/* SPDX-License-Identifier: Apache-2.0 */
/* Comma-separated values by RFC 4180. */
#include "cli/admin/csv_reader.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

static char csv_find_separator(const char *at, const char *end)
{
    bool is_quoted = false;

    for (; at < end && (is_quoted || (*at != '\n' && *at != '\r')); at++) {
        if (*at == '"')
            is_quoted = !is_quoted;
        else if (!is_quoted && (*at == ',' || *at == ';' || *at == '\t'))
            return *at;
    }
    return ',';
}

int csv_reader_begin(struct csv_reader *reader, char *text, size_t len, struct aq_error *err)
{
    size_t mark = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    *reader = (struct csv_reader){ .at = text + mark, .end = text + len, .line = 1 };
    if (memchr(text, '\0', len) || !utf8_is_valid(text, len))
        return aq_fail(err, EINVAL, "it is not UTF-8; save it as \"CSV UTF-8\"");
    reader->separator = csv_find_separator(reader->at, reader->end);
    return 0;
}

/* Past the end of the line at 'at'. */
static char *csv_skip_line_end(struct csv_reader *reader, char *at)
{
    if (at < reader->end) {
        at += *at == '\r' && at + 1 < reader->end && at[1] == '\n' ? 2 : 1;
        reader->line++;
    }
    return at;
}

static bool csv_is_field_end(const struct csv_reader *reader, const char *at)
{
    return at == reader->end || *at == reader->separator || *at == '\n' || *at == '\r';
}

/* The text within quotes, moved together; reader->at is then where the field ends. */
static int csv_read_quoted(struct csv_reader *reader, const struct csv_record *record, char **ret,
                           struct aq_error *err)
{
    char *from = reader->at + 1, *to = from;

    *ret = to;
    for (;; from++) {
        if (from == reader->end)
            return aq_fail(err, EINVAL, "line %zu: a quote is never closed", record->line);
        if (*from == '"' && (from + 1 == reader->end || from[1] != '"'))
            break;
        if (*from == '\n' || (*from == '\r' && from[1] != '\n'))
            reader->line++;
        *to++ = *from;
        if (*from == '"')
            from++;
    }
    *to = '\0';
    for (from++; from < reader->end && *from == ' ';)
        from++;
    if (!csv_is_field_end(reader, from))
        return aq_fail(err, EINVAL,
                       "line %zu: text follows a quoted value; double the quotes within it",
                       record->line);
    reader->at = from;
    return 0;
}

static int csv_read_plain(struct csv_reader *reader, const struct csv_record *record, char **ret,
                          struct aq_error *err)
{
    char *from = reader->at;

    while (!csv_is_field_end(reader, reader->at))
        if (*reader->at++ == '"')
            return aq_fail(err, EINVAL,
                           "line %zu: a quote within a value; quote the whole value and double "
                           "the quotes within it",
                           record->line);
    *ret = from;
    return 0;
}

static void csv_trim(char *text, size_t len)
{
    while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    text[len] = '\0';
}

/* 1 if another field follows in the record, 0 at its end. */
static int csv_read_field(struct csv_reader *reader, struct csv_record *record,
                          struct aq_error *err)
{
    char *text = NULL, *stop;
    bool is_quoted, is_last;
    int r;

    if (record->count == CSV_FIELDS_MAX)
        return aq_fail(err, EINVAL, "line %zu: more than %d columns", record->line, CSV_FIELDS_MAX);
    while (reader->at < reader->end && *reader->at == ' ')
        reader->at++;
    is_quoted = reader->at < reader->end && *reader->at == '"';
    r = is_quoted ? csv_read_quoted(reader, record, &text, err)
                  : csv_read_plain(reader, record, &text, err);
    if (r < 0)
        return r;
    stop = reader->at;
    is_last = stop == reader->end || *stop != reader->separator;
    reader->at = is_last ? csv_skip_line_end(reader, stop) : stop + 1;
    *stop = '\0';
    if (!is_quoted)
        csv_trim(text, (size_t)(stop - text));
    if (strlen(text) > CSV_FIELD_MAX)
        return aq_fail(err, EINVAL, "line %zu: a value of more than %d bytes", record->line,
                       CSV_FIELD_MAX);
    record->fields[record->count++] = text;
    return !is_last;
}

static bool csv_is_empty(const struct csv_record *record)
{
    for (size_t i = 0; i < record->count; i++)
        if (record->fields[i][0])
            return false;
    return true;
}

int csv_reader_next(struct csv_reader *reader, struct csv_record *ret, struct aq_error *err)
{
    int r;

    while (reader->at < reader->end) {
        ret->line = reader->line;
        ret->count = 0;
        while ((r = csv_read_field(reader, ret, err)) > 0)
            ;
        if (r < 0)
            return r;
        if (!csv_is_empty(ret))
            return 1;
    }
    return 0;
}
