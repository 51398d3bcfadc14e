/* SPDX-License-Identifier: Apache-2.0 */
/* field.h - one member of a struct, as a row of a table
 *
 * A table of fields ends with FIELD_END. Requests are decoded into a struct by
 * such a table (manager's decode.h). An entity (entity.h) has one row for each
 * member, and everything that handles the member reads that row: SQL, REST,
 * GraphQL, the audit log, imports and the command line. Pure.
 */
#ifndef AQ_MODEL_FIELD_H
#define AQ_MODEL_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    FIELD_TEXT,        /* char *, the entity's own; NULL = none; bounds as FIELD_STR; one of
                          'words' unless that is NULL */
    FIELD_INT32,       /* int; min..max; also as decimal text */
    FIELD_SLOTS,       /* struct slots, an object; decoding only checks that it is one */
    FIELD_OWN,         /* char *, as FIELD_TEXT; requests give another JSON value, which the
                          entity's code makes the text of: a decoded struct points to it there */
    FIELD_JSON_TEXT,   /* char *, the text of an object, as FIELD_TEXT; a decoded struct points to
                          the object there, borrowed */
    FIELD_USEC,        /* int64_t microseconds; min..max whole seconds, also as decimal text */
    FIELD_SIZE,        /* char *, as FIELD_TEXT: bytes as decimal text; requests give a size such as
                          64m, a text of min..max bytes */
    FIELD_CHARS,       /* char[max + 1], a text within the struct; not given by requests */
    FIELD_SEALED,      /* the same of a secret: only the store has it, sealed, and memory */
    FIELD_ENUM,        /* an enum, its words in 'values'; not given by requests */
    FIELD_UUIDS,       /* struct uuid_list, the entity's own: rows of another table; likewise */
    FIELD_TIME,        /* a column of the command line: the time of a record */
    FIELD_IGNORED,     /* known from clients, has no meaning here: any value */
    FIELD_UNSUPPORTED, /* known from clients; null, "", 0, [] and {} are fine,
                          anything else is refused as not supported */
};

/* What a request may say. */
#define FIELD_REQUIRED (1u << 0)
#define FIELD_NULLABLE (1u << 1)
#define FIELD_SECRET (1u << 2) /* documented as such; errors never repeat a value anyway */
#define FIELD_LINE (1u << 3)   /* FIELD_STR, a name: every character is shown (utf8_is_shown()) */
#define FIELD_LINES (1u << 4)  /* FIELD_STR, a text: no control characters but line ends and tabs */
#define FIELD_FILLED (1u << 5) /* with FIELD_REQUIRED: a template may have it instead */

/* Members of entities. */
#define FIELD_KEY (1u << 8)        /* primary key of the table */
#define FIELD_NAME (1u << 9)       /* people name the row by it */
#define FIELD_UNAUDITED (1u << 10) /* not in entries of the audit log */
#define FIELD_OURS (1u << 11)      /* Backend.AI has no such column: not imported */
#define FIELD_FILTER (1u << 12)    /* lists may be filtered and ordered by it */
#define FIELD_NO_LIMIT (1u << 13)  /* GraphQL says null where there is no limit, 0 or less */
#define FIELD_SECONDS (1u << 14)   /* the command line takes a duration */
#define FIELD_WIDE (1u << 15)      /* its column is in wide lists only */
#define FIELD_UNSHOWN (1u << 17)   /* REST shows it in a form of its own */
#define FIELD_SHRINKS (1u << 16)   /* its column may be cut, and is last but in entity.columns */
#define FIELD_EXTRA (1u << 18)     /* its column is in records, and where it is named */
#define FIELD_STATUS (1u << 19)    /* its column is a status */

struct field {
    const char *names; /* "name|clientSessionToken": the first is the one we say */
    enum field_type type;
    unsigned flags;
    size_t offset;
    int64_t min, max;
    const struct field *sub;
    const char *doc;
    const char *words;
    const char *const *values; /* of a FIELD_ENUM, in its order, up to NULL */

    /* ---- of members of entities ---- */

    int64_t initial;          /* number or bool of a new row */
    const char *initial_text; /* of a FIELD_TEXT or FIELD_JSON_TEXT; NULL = none */
    const char *column;       /* of the table; NULL = the first name */
    const char *backendai;    /* its name in GraphQL, filters and imports; NULL = the first name */
    const char *title;        /* of its column on the command line; NULL = it has none */
    const char *help;         /* of its option there; NULL = it has none */
    const char *option;       /* its letter and name, "r|resource"; NULL = the first name */
    const char *arg;          /* what help calls the value; NULL = by the type */
    const char *csv;          /* of its column in files, "name|other"; NULL = it has none */
    unsigned place; /* of column and option, counted from 1; 0 = after those that have one */
};

#define FIELD_END     \
    {                 \
        .names = NULL \
    }

enum maybe { MAYBE_UNSET, MAYBE_FALSE, MAYBE_TRUE };

/* Bytes of the first of the names. */
size_t field_name_len(const struct field *field);

/* The first of the names, copied into 'buf'. */
#define FIELD_NAME_MAX 64
const char *field_name(const struct field *field, char buf[FIELD_NAME_MAX]);

/* The name in SQL, or the one that Backend.AI's clients use. */
const char *field_column(const struct field *field, char buf[FIELD_NAME_MAX]);
const char *field_backendai_name(const struct field *field, char buf[FIELD_NAME_MAX]);

/* Is the text one of field.words, or field.words NULL? */
bool field_has_word(const struct field *field, const char *text);

/* The index of the field that has the name, or -1. */
long field_index(const struct field *table, const char *name);
/* The field that has the name; NULL = none. */
const struct field *field_find(const struct field *table, const char *name);

/* The object's member under one of the field's names; NULL = none. */
const json_t *field_get(const struct field *field, const json_t *object);

#endif
