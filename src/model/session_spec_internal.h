/* SPDX-License-Identifier: Apache-2.0 */
/* session_spec_internal.h - the table of a spec's members, for what is done by it */
#ifndef AQ_MODEL_SESSION_SPEC_INTERNAL_H
#define AQ_MODEL_SESSION_SPEC_INTERNAL_H

#include "model/session_spec.h"

enum spec_kind {
    SPEC_TEXT,   /* const char * */
    SPEC_AMOUNT, /* const char *; a number is read as text */
    SPEC_FLAG,   /* bool */
    SPEC_CHOICE, /* an enum of unsaid, no, yes */
    SPEC_NUMBER, /* int64_t */
    SPEC_TEXTS,  /* struct str_list */
    SPEC_PORTS,  /* struct int_list */
    SPEC_PAIRS,  /* struct pair_list */
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

/* Members of one group are neighbours; the last has no key. */
extern const struct spec_field spec_fields[];

#define SPEC_RESOURCE_OPTS "resource_opts" /* a group */

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
};

static inline union spec_place spec_place(const struct session_spec *spec,
                                          const struct spec_field *field)
{
    return (union spec_place){ .any = (char *)(uintptr_t)spec + field->offset };
}

#endif
