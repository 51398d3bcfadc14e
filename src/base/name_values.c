/* SPDX-License-Identifier: Apache-2.0 */
/* name_values.c - a file of values by name */
#include "base/name_values.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/utf8.h"

#define NAME_VALUES_SHOWN 40 /* bytes of a line in an error */

/* A part of the file. */
struct name_values_span {
    const char *at;
    size_t len;
};

struct name_values_reader {
    const char *at, *end; /* what is left */
    size_t line;          /* of the span that was read last, from 1 */
    struct aq_error *err;
    struct {
        struct name_values_span name, value;
    } items[NAME_VALUES_MAX];
    size_t count;
};

bool name_values_is_name(const char *name, size_t len)
{
    if (len == 0 || len > NAME_VALUES_NAME_MAX
        || (!isalpha((unsigned char)name[0]) && name[0] != '_'))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
            return false;
    return true;
}

/* False at the end of the file. */
static bool name_values_next_line(struct name_values_reader *in, struct name_values_span *ret)
{
    const char *newline;

    if (in->at == in->end)
        return false;
    newline = memchr(in->at, '\n', (size_t)(in->end - in->at));
    *ret = (struct name_values_span){ in->at, (size_t)((newline ? newline : in->end) - in->at) };
    in->at = newline ? newline + 1 : in->end;
    in->line++;
    return true;
}

/* An error of the present line may quote it: it is printable then. */
static int name_values_check_line(const struct name_values_reader *in,
                                  const struct name_values_span *line)
{
    for (size_t i = 0; i < line->len; i++) {
        unsigned char c = (unsigned char)line->at[i];

        if (c == '\0')
            return aq_fail(in->err, EINVAL, "line %zu: byte %zu is NUL; values are text", in->line,
                           i + 1);
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return aq_fail(in->err, EINVAL,
                           "line %zu: byte %zu is the control character 0x%02x; only tabs and line "
                           "ends are allowed",
                           in->line, i + 1, c);
    }
    if (!utf8_is_valid(line->at, line->len))
        return aq_fail(in->err, EINVAL, "line %zu: the text is not valid UTF-8", in->line);
    return 0;
}

static int name_values_put(struct name_values_reader *in, size_t line,
                           const struct name_values_span *name,
                           const struct name_values_span *value)
{
    size_t i = 0;

    while (i < in->count
           && (in->items[i].name.len != name->len
               || memcmp(in->items[i].name.at, name->at, name->len) != 0))
        i++;
    if (i == NAME_VALUES_MAX)
        return aq_fail(in->err, EINVAL, "line %zu: '%.*s' is value %d; at most %d are allowed",
                       line, (int)name->len, name->at, NAME_VALUES_MAX + 1, NAME_VALUES_MAX);
    in->items[i].name = *name;
    in->items[i].value = *value;
    in->count += i == in->count;
    return 0;
}

/* The lines up to the marker; 'first' is the line of NAME<<MARKER. */
static int name_values_read_lines(struct name_values_reader *in,
                                  const struct name_values_span *name,
                                  const struct name_values_span *marker)
{
    size_t first = in->line;
    const char *begin = in->at;
    struct name_values_span line, value;
    int r;

    if (marker->len == 0)
        return aq_fail(in->err, EINVAL, "line %zu: '%.*s<<' is not followed by a marker", first,
                       (int)name->len, name->at);
    while (name_values_next_line(in, &line)) {
        if ((r = name_values_check_line(in, &line)) < 0)
            return r;
        if (line.len != marker->len || memcmp(line.at, marker->at, marker->len) != 0)
            continue;
        value = (struct name_values_span){ begin, (size_t)(line.at - begin) };
        value.len -= value.len > 0; /* the end of the last line */
        return name_values_put(in, first, name, &value);
    }
    return aq_fail(in->err, EINVAL, "line %zu: no later line is the marker '%.*s' of '%.*s'", first,
                   (int)AQ_MIN(marker->len, (size_t)NAME_VALUES_SHOWN), marker->at, (int)name->len,
                   name->at);
}

static int name_values_read_line(struct name_values_reader *in, const struct name_values_span *line)
{
    const char *at = line->at, *end = at + line->len;
    struct name_values_span name, rest;

    while (at < end && *at != '=' && *at != '<')
        at++;
    name = (struct name_values_span){ line->at, (size_t)(at - line->at) };
    if (at == end || (*at == '<' && (end - at < 2 || at[1] != '<')))
        return aq_fail(in->err, EINVAL, "line %zu: expected NAME=VALUE or NAME<<MARKER, not '%.*s'",
                       in->line, (int)AQ_MIN(line->len, (size_t)NAME_VALUES_SHOWN), line->at);
    if (!name_values_is_name(name.at, name.len))
        return aq_fail(in->err, EINVAL,
                       "line %zu: name '%.*s' must have 1 to %d letters, digits, '_' and '-', and "
                       "begin with a letter or '_'",
                       in->line, (int)AQ_MIN(name.len, (size_t)NAME_VALUES_SHOWN), name.at,
                       NAME_VALUES_NAME_MAX);
    at += *at == '=' ? 1 : 2;
    rest = (struct name_values_span){ at, (size_t)(end - at) };
    return at[-1] == '=' ? name_values_put(in, in->line, &name, &rest)
                         : name_values_read_lines(in, &name, &rest);
}

int name_values_read(const char *text, size_t len, struct strbuf *out, struct aq_error *err)
{
    struct name_values_reader in = { .at = text, .end = text + len, .err = err };
    struct name_values_span line;
    struct jsonw w = jsonw_make(out);
    int r;

    if (len > NAME_VALUES_BYTES_MAX)
        return aq_fail(err, EINVAL,
                       "the file has more than %d bytes; hand on large data by a folder",
                       NAME_VALUES_BYTES_MAX);
    while (name_values_next_line(&in, &line))
        if ((r = name_values_check_line(&in, &line)) < 0
            || (line.len > 0 && (r = name_values_read_line(&in, &line)) < 0))
            return r;
    jsonw_object_begin(&w);
    for (size_t i = 0; i < in.count; i++) {
        jsonw_keyn(&w, in.items[i].name.at, in.items[i].name.len);
        jsonw_strn(&w, in.items[i].value.at, in.items[i].value.len);
    }
    jsonw_object_end(&w);
    return 0;
}
