/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - reports that administrators fetch as CSV: what one is, and what a request for one says
 *
 * Searches of Backend.AI 26, which answer with JSON, have the same filters and orders: they are
 * reports with these alone.
 */
#ifndef AQ_MANAGER_CALL_EXPORT_H
#define AQ_MANAGER_CALL_EXPORT_H

#include "manager/call/list.h"

/* How the text of a field is made from its place in a row. */
enum export_kind {
    EXPORT_STRING,   /* const char *, NULL is empty */
    EXPORT_CHARS,    /* char[] */
    EXPORT_UUID,     /* nil is empty */
    EXPORT_TIME,     /* int64_t, microseconds, 0 is empty */
    EXPORT_BOOL,     /* bool */
    EXPORT_INT,      /* int64_t */
    EXPORT_FUNCTION, /* 'text' */
    EXPORT_HIDDEN,   /* not in the report, which can be filtered by it */
};

enum export_test {
    EXPORT_NONE,  /* reports are not filtered by it */
    EXPORT_TEXT,  /* {"contains": "a"}: the tests of a text */
    EXPORT_ANY,   /* ["a", "b"]: one of these */
    EXPORT_RANGE, /* {"after": date, "before": date}, both included */
    EXPORT_FLAG,  /* true or false */
};

/* A column. What it has that a struct field has not: its name in the languages of lists, how it is
 * filtered there, and texts that are made by a function.
 */
struct export_field {
    const char *key, *name, *description; /* of EXPORT_HIDDEN "user.email" is 'email' of 'user' */
    enum export_kind kind;
    size_t offset;
    void (*text)(const struct api *api, const void *row, struct strbuf *out);
    const char *field; /* of the lists' languages; NULL = neither ordered nor filtered by */
    enum export_test test;
};

struct export_report {
    const char *key, *name, *description;
    const struct export_field *fields;
    size_t field_count;
    size_t row_size;
    int (*list)(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                struct aq_error *err);
};

/* The request's 'filter' and 'order' in the languages of lists; NULL = none. What is not known
 * or of a wrong type is -EINVAL and named ("filter.email.contains").
 */
int export_read_filter(const struct export_report *report, const json_t *filter, struct strbuf *out,
                       struct aq_error *err) AQ_UNTRUSTED;
int export_read_order(const struct export_report *report, const json_t *order, struct strbuf *out,
                      struct aq_error *err) AQ_UNTRUSTED;
/* Both into the query, as texts in the arena. */
int export_read_query(const struct export_report *report, const json_t *filter, const json_t *order,
                      struct arena *arena, struct store_query *query, struct aq_error *err);

#endif
