/* SPDX-License-Identifier: Apache-2.0 */
/* spec_fields.h - tables of a spec's members, and JSON by them */
#ifndef AQ_MODEL_SPEC_FIELDS_H
#define AQ_MODEL_SPEC_FIELDS_H

#include "model/session_spec.h"

enum spec_kind {
    SPEC_TEXT,   /* const char * */
    SPEC_AMOUNT, /* const char *; a number is read as text */
    SPEC_JSON,   /* const char *: the text of an object or a list */
    SPEC_FLAG,   /* bool */
    SPEC_CHOICE, /* an enum of unsaid, no, yes */
    SPEC_NUMBER, /* int64_t, never negative */
    SPEC_TEXTS,  /* struct str_list */
    SPEC_PORTS,  /* struct int_list */
    SPEC_PAIRS,  /* struct pair_list */
    SPEC_MOUNTS, /* struct folder_mounts */
};

struct spec_field {
    const char *key;   /* in the store and in kernel.create */
    const char *group; /* the object there that has it; NULL = none */
    enum spec_kind kind;
    size_t offset;
    const char *name; /* in a request, for errors */
    size_t max;       /* bytes of a text, elements of a list */
    bool is_for_agent;
};

/* A member's place, of each kind. */
union spec_place {
    void *any;
    const char **text;
    bool *flag;
    int *choice;
    int64_t *number;
    struct str_list *texts;
    struct int_list *ports;
    struct pair_list *pairs;
    struct folder_mounts *mounts;
};

static inline union spec_place spec_place(const void *spec, const struct spec_field *field)
{
    return (union spec_place){ .any = (char *)(uintptr_t)spec + field->offset };
}

/* Whether there is anything to write. */
bool spec_field_is_said(const struct spec_field *field, const void *spec);

/* A key and its value. A SPEC_JSON is written as it is. */
void spec_field_write(const struct spec_field *field, const void *spec, struct jsonw *w);

/* As session_spec_write() and session_spec_read(), of any spec. The last of the fields has no key;
 * members of one group are neighbours.
 */
void spec_fields_write(const struct spec_field *fields, const void *spec,
                       enum session_spec_part part, struct jsonw *w);
int spec_fields_read(const struct spec_field *fields, const struct json_t *object,
                     enum session_spec_part part, struct arena *arena, void *ret,
                     struct aq_error *err) AQ_UNTRUSTED;

#endif
