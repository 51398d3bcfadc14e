/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h - parameters of a request into a struct, by a field table
 *
 * A request's parameters are its JSON body if it has one, else its query
 * string, in which all values are text. A table says what an object may hold;
 * a name that is not in it, a wrong type, a value out of its bounds, a name
 * given twice (also by an alias), text that is not UTF-8, nesting deeper than
 * DECODE_DEPTH_MAX and more values than DECODE_VALUES_MAX are refused with -EINVAL, err->kind
 * "invalid-api-params" and err->field the path of the member
 * ("config.preopen_ports"), or "body" where the text is no JSON at all.
 *
 * The caller puts defaults into the struct first: a member that is not given,
 * or null where that is allowed, leaves its target as it is. Pure; texts are
 * copied into the arena, JSON values are borrowed from the parsed tree.
 */
#ifndef AQ_MANAGER_CALL_DECODE_H
#define AQ_MANAGER_CALL_DECODE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/lists.h"
#include "base/uuid.h"
#include "http/url.h"

#define DECODE_DEPTH_MAX 64
#define DECODE_VALUES_MAX 50000 /* of one text: some 10 MB once parsed */
#define DECODE_TEXT_MAX 65536   /* bytes of a FIELD_STR or FIELD_SCALAR with max 0 */
#define DECODE_LIST_MAX 1000 /* elements of a FIELD_STR_LIST with max 0, and of FIELD_PORT_LIST */

enum field_type {
    FIELD_STR,         /* const char *; min..max bytes (max 0 = DECODE_TEXT_MAX) */
    FIELD_SCALAR,      /* const char *: a text, or an integer as text; as FIELD_STR */
    FIELD_WORD,        /* bool: which of the two of 'words', "first|second" */
    FIELD_BOOL,        /* bool; true, false, 0, 1, "t", "yes", "on", ... */
    FIELD_MAYBE,       /* enum maybe; the same, for "not given" to differ from false */
    FIELD_INT,         /* int64_t; min..max; also as decimal text */
    FIELD_DURATION,    /* int64_t microseconds; min..max seconds; a number of seconds, or text
                          of base/clock.h */
    FIELD_UUID,        /* struct uuid */
    FIELD_STR_LIST,    /* struct str_list; at most max elements (0 = DECODE_LIST_MAX) */
    FIELD_PORT_LIST,   /* struct int_list of min..max */
    FIELD_PAIRS,       /* struct pair_list: an object of texts, at most max members */
    FIELD_OBJECT,      /* const json_t *, any object, borrowed */
    FIELD_JSON,        /* const json_t *, any value, borrowed */
    FIELD_STRUCT,      /* members of 'sub', offsets from the outer struct */
    FIELD_IGNORED,     /* known from clients, has no meaning here: any value */
    FIELD_UNSUPPORTED, /* known from clients; null, "", 0, [] and {} are fine,
                          anything else is refused as not supported */
};

#define FIELD_REQUIRED (1u << 0)
#define FIELD_NULLABLE (1u << 1)
#define FIELD_SECRET (1u << 2) /* documented as such; errors never repeat a value anyway */
#define FIELD_LINE (1u << 3)   /* FIELD_STR, a name: every character is shown (utf8_is_shown()) */
#define FIELD_LINES (1u << 4)  /* FIELD_STR, a text: no control characters but line ends and tabs */
#define FIELD_FILLED (1u << 5) /* with FIELD_REQUIRED: a template may have it instead */

struct field {
    const char *names; /* "name|clientSessionToken": the first is the one we say */
    enum field_type type;
    unsigned flags;
    size_t offset;
    int64_t min, max;
    const struct field *sub;
    const char *doc;
    const char *words;
};

#define FIELD_END     \
    {                 \
        .names = NULL \
    }

enum maybe { MAYBE_UNSET, MAYBE_FALSE, MAYBE_TRUE };

/* A JSON text within the limits above: *ret is the caller's (json_decref). A text in it that holds
 * NUL is refused by the path of its member.
 */
int decode_json(const char *text, size_t len, json_t **ret, struct aq_error *err) AQ_UNTRUSTED;

/* The same of so many values, for a thread that may take its time. */
int decode_large_json(const char *text, size_t len, size_t values_max, json_t **ret,
                      struct aq_error *err) AQ_UNTRUSTED;

/* The same for what a session's program wrote: its texts may hold NUL (json_string_length()). */
int decode_output_json(const char *text, size_t len, json_t **ret,
                       struct aq_error *err) AQ_UNTRUSTED;

/* A query string as an object of texts; a name given several times becomes an
 * array of its values.
 */
int decode_query(const struct url_query *query, json_t **ret, struct aq_error *err) AQ_UNTRUSTED;

/* The members of 'object' into 'target'. A single value stands for a list of
 * one where a list is wanted.
 */
int decode_object(const struct field *table, const json_t *object, struct arena *arena,
                  void *target, struct aq_error *err) AQ_UNTRUSTED;

/* The field that has the name; NULL = none. */
const struct field *decode_find(const struct field *table, const char *name);

/* The name in the table, of *ret_len bytes, that is nearest to a mistyped one; NULL = none is near.
 */
const char *decode_find_near(const struct field *table, const char *key, size_t *ret_len);

/* May the text be shown to others? A name: utf8_is_shown(). A text ('lines') may also have line
 * ends, tabs and marks of direction. *ret_code gets the first character that it must not have, and
 * is undefined else.
 */
bool decode_is_plain(const char *text, size_t len, bool lines, uint32_t *ret_code) AQ_UNTRUSTED;

/* The table as JSON, for the documentation: [{"name", "aliases", "type", ...}]. */
void decode_describe(const struct field *table, struct jsonw *w);

/* "t", "true", "y", "yes", "on", "1" and their opposites, any case. */
int decode_bool_text(const char *text, bool *ret) AQ_UNTRUSTED;

#endif
