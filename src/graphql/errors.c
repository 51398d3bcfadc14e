/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of one request, and how a reply shows them. */
#include "graphql/errors.h"

#include <stdarg.h>
#include <stdio.h>

struct error *error_new(struct errors *errors, const char *message, size_t len)
{
    struct error *error = arena_alloc(errors->arena, sizeof(*error));
    size_t kept = AQ_MIN(len, (size_t)MESSAGE_MAX);

    while (kept < len && kept > 0 && ((unsigned char)message[kept] & 0xc0) == 0x80)
        kept--; /* do not cut a character */
    error->message = arena_strndup(errors->arena, message, kept);
    error->len = (uint32_t)kept;
    return error;
}

void errors_append(struct errors *errors, struct error *error)
{
    if (errors->last)
        errors->last->next = error;
    else
        errors->first = error;
    errors->last = error;
    errors->count++;
}

struct error *errors_add_text(struct errors *errors, uint32_t at, const struct strbuf *text)
{
    struct error *error = error_new(errors, text->data, text->len);

    if (at != UINT32_MAX)
        error_add_place(errors, error, at);
    errors_append(errors, error);
    return error;
}

struct error *errors_add(struct errors *errors, uint32_t at, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&text, fmt, args);
    va_end(args);
    return errors_add_text(errors, at, &text);
}

void error_add_place(struct errors *errors, struct error *error, uint32_t at)
{
    (void)arena_append(errors->arena, &error->at, &error->at_count, &at, sizeof(at));
}

void error_set_path(struct errors *errors, struct error *error, const struct path *path)
{
    uint32_t count = 0;

    for (const struct path *p = path; p; p = p->parent)
        count++;
    error->path = arena_array(errors->arena, count, sizeof(*error->path));
    error->path_count = count;
    error->has_path = true;
    for (const struct path *p = path; p; p = p->parent)
        error->path[--count] = (struct error_step){ p->key, p->index };
}

/* Where a walk over the text has come to. */
struct errors_place {
    uint32_t at, line, column;
};

static void errors_walk_to(const char *text, size_t len, uint32_t at, struct errors_place *place)
{
    if (at < place->at)
        *place = (struct errors_place){ 0, 1, 1 };
    while (place->at < at && place->at < len) {
        unsigned char c = (unsigned char)text[place->at++];

        if (c == '\n' || (c == '\r' && !(place->at < len && text[place->at] == '\n'))) {
            place->line++;
            place->column = 1;
        } else if (c >= 0xf0) {
            place->column += 2; /* a pair of UTF-16 surrogates */
        } else if (c < 0x80 || c >= 0xc0) {
            place->column++;
        }
    }
}

static void errors_write_places(const struct error *error, const char *text, size_t len,
                                struct errors_place *place, struct jsonw *w)
{
    jsonw_key(w, "locations");
    jsonw_array_begin(w);
    for (size_t i = 0; i < error->at_count; i++) {
        errors_walk_to(text, len, error->at[i], place);
        jsonw_object_begin(w);
        jsonw_member_int(w, "line", place->line);
        jsonw_member_int(w, "column", place->column);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

void errors_write(const struct errors *errors, const char *text, size_t len, struct jsonw *w)
{
    struct errors_place place = { 0, 1, 1 };

    jsonw_key(w, "errors");
    jsonw_array_begin(w);
    for (const struct error *error = errors->first; error; error = error->next) {
        jsonw_object_begin(w);
        jsonw_key(w, "message");
        jsonw_strn(w, error->message, error->len);
        if (error->at_count)
            errors_write_places(error, text, len, &place, w);
        if (error->has_path) {
            jsonw_key(w, "path");
            jsonw_array_begin(w);
            for (uint32_t i = 0; i < error->path_count; i++) {
                if (error->path[i].key)
                    jsonw_str(w, error->path[i].key);
                else
                    jsonw_int(w, error->path[i].index);
            }
            jsonw_array_end(w);
        }
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}
