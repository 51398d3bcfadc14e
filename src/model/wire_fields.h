/* SPDX-License-Identifier: Apache-2.0 */
/* wire_fields.h - tables of a struct's members, and JSON by them
 *
 * Messages of the link, and specs in messages and in the store, are read and written by such
 * tables. A member that is unsaid (NULL, false, 0, empty) is left out. What a row has that a
 * struct field (field.h) has not: lists of structs, structs whose members stand beside the others,
 * and objects that group members of one struct. Pure.
 */
#ifndef AQ_MODEL_WIRE_FIELDS_H
#define AQ_MODEL_WIRE_FIELDS_H

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/lists.h"

enum wire_kind {
    WIRE_END,
    WIRE_TEXT,    /* const char * */
    WIRE_AMOUNT,  /* const char *; a number is read as text */
    WIRE_JSON,    /* const char *: the text of an object or a list */
    WIRE_FLAG,    /* bool */
    WIRE_CHOICE,  /* an enum of unsaid, no, yes */
    WIRE_NUMBER,  /* int64_t, never negative */
    WIRE_UUID,    /* struct uuid; nil is unsaid */
    WIRE_TEXTS,   /* struct str_list */
    WIRE_NUMBERS, /* struct int_list */
    WIRE_PAIRS,   /* struct pair_list */
    WIRE_MOUNTS,  /* struct folder_mounts */
    WIRE_LIST,    /* a pointer to structs of 'of', followed by its size_t count */
    WIRE_BESIDE,  /* a struct of 'of', whose members stand beside the others */
    WIRE_OWN,     /* as 'own' does it */
};

#define WIRE_REQUIRED (1u << 0)  /* refused when absent, nil, empty or 0 */
#define WIRE_FOR_AGENT (1u << 1) /* of a spec: what an agent is told; WIRE_BESIDE: only these */

struct wire_field {
    const char *key;
    enum wire_kind kind;
    size_t offset;
    unsigned flags;
    const char *group; /* the object that has it, of neighbours; NULL = none */
    const char *name;  /* in a request, for errors */
    size_t max;        /* bytes of a text, elements of a list, in a request */
    const struct wire_shape *of;
    const struct wire_own *own;
};

#define WIRE_FIELDS_END  \
    {                    \
        .kind = WIRE_END \
    }

/* A struct, or elements of a list, which is left out if it is empty unless 'is_always_there'. */
struct wire_shape {
    const struct wire_field *fields;
    size_t size, max; /* of an element; how many, 0 = as many as fit into a message */
    bool is_always_there;
};

struct wire_own {
    void (*write)(const char *key, const void *at, struct jsonw *w); /* key and value, or nothing */
    int (*read)(const char *key, const json_t *value, struct arena *arena, void *at,
                struct aq_error *err);
};

/* A member's place, of each kind. */
union wire_place {
    void *any;
    const char **text;
    bool *flag;
    int *choice;
    int64_t *number;
    struct uuid *id;
    struct str_list *texts;
    struct int_list *numbers;
    struct pair_list *pairs;
    struct folder_mounts *mounts;
};

static inline union wire_place wire_place(const void *from, const struct wire_field *field)
{
    return (union wire_place){ .any = (char *)(uintptr_t)from + field->offset };
}

/* The count that follows the pointer of a list. */
size_t *wire_list_count(const void *place);

/* The members with all flags of 'only', into an object that is open. -EINVAL (the key as field) for
 * a WIRE_JSON that is none, which would poison the whole connection.
 */
int wire_fields_write(const struct wire_field *fields, const void *from, unsigned only,
                      struct jsonw *w, struct aq_error *err);

/* One member, if it is said. */
int wire_field_write(const struct wire_field *field, const void *from, struct jsonw *w,
                     struct aq_error *err);

/* The same from members of 'object', the others of which are skipped; texts are copied into the
 * arena. -EINVAL (the key as field) for what is missing or of another type.
 */
int wire_fields_read(const struct wire_field *fields, const json_t *object, unsigned only,
                     struct arena *arena, void *ret, struct aq_error *err) AQ_UNTRUSTED;

/* "'KEY' must be WHAT" */
int wire_refuse(const char *key, const char *what, struct aq_error *err);

#endif
