/* SPDX-License-Identifier: Apache-2.0 */
/* hint.h - "Did you mean ...?" as graphql-js says it */
#ifndef AQ_GRAPHQL_HINT_H
#define AQ_GRAPHQL_HINT_H

#include "graphql/schema.h"

/* Candidates are offered one after the other; the best five are kept. */
#define HINT_MAX 5

struct hint {
    const char *input;
    size_t len;
    unsigned count; /* of all that are near */
    struct {
        const char *name;
        unsigned distance;
    } best[HINT_MAX];
};

static inline struct hint hint_make(const char *input, size_t len)
{
    return (struct hint){ .input = input, .len = len };
}

/* 'name' must outlive 'hint'. */
void hint_offer(struct hint *hint, const char *name);

/* Append ' Did you mean WHAT "a" or "b"?' if anything was near; 'what' may be "". */
void hint_print(const struct hint *hint, const char *what, struct strbuf *out);

/* The same for the arguments or fields that a name may mean. */
void hint_print_inputs(const char *name, size_t len, const struct gql_input_def *defs,
                       uint32_t count, struct strbuf *out);

/* The same for names that are already chosen and in order. */
void hint_print_names(const char *const *names, size_t count, const char *what, struct strbuf *out);

/* Order of names in which digits count as numbers: <0, 0, >0. */
int hint_compare(const char *a, const char *b);

#endif
