/* SPDX-License-Identifier: Apache-2.0 */
/* errors.h - the errors of one request, and how a reply shows them
 *
 * {"message": ..., "locations": [{"line", "column"}], "path": [...]}. Lines
 * end at \n, \r\n or \r; columns count UTF-16 code units, from 1, as
 * graphql-js does. Messages are cut at MESSAGE_MAX bytes.
 */
#ifndef AQ_GRAPHQL_ERRORS_H
#define AQ_GRAPHQL_ERRORS_H

#include "base/jsonw.h"
#include "graphql/ast.h"

#define MESSAGE_MAX 16384

/* One step of a response path; a list of them grows on the stack of the writer. */
struct path {
    const struct path *parent;
    const char *key; /* NULL = a list index */
    uint32_t index;
};

struct error_step {
    const char *key;
    uint32_t index;
};

struct error {
    const char *message;
    uint32_t len;
    uint32_t *at; /* offsets */
    size_t at_count;
    struct error_step *path;
    uint32_t path_count;
    bool has_path;
    struct error *next;
};

struct errors {
    struct arena *arena;
    struct error *first, *last;
    uint32_t count;
};

/* A new error that is not in any list yet. */
struct error *error_new(struct errors *errors, const char *message, size_t len);

/* Append a formatted error with one place; UINT32_MAX = none. */
struct error *errors_add(struct errors *errors, uint32_t at, const char *fmt, ...) AQ_PRINTF(3, 4);
/* The same with the text of a buffer. */
struct error *errors_add_text(struct errors *errors, uint32_t at, const struct strbuf *text);

void errors_append(struct errors *errors, struct error *error);

/* A further place. */
void error_add_place(struct errors *errors, struct error *error, uint32_t at);
void error_set_path(struct errors *errors, struct error *error, const struct path *path);

/* "errors":[...] into an open object. */
void errors_write(const struct errors *errors, const char *text, size_t len, struct jsonw *w);

#endif
