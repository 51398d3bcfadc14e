/* suggest.h - "Did you mean ...?" as graphql-js says it */
#ifndef AQ_GRAPHQL_SUGGEST_H
#define AQ_GRAPHQL_SUGGEST_H

#include "base/strbuf.h"

/* Candidates are offered one after the other; the best five are kept. */
#define SUGGEST_MAX 5

struct suggest {
    const char *input;
    size_t len;
    unsigned count; /* of all that are near */
    struct {
        const char *name;
        unsigned distance;
    } best[SUGGEST_MAX];
};

static inline struct suggest suggest_make(const char *input, size_t len)
{
    return (struct suggest){ .input = input, .len = len };
}

/* 'name' must outlive 'suggest'. */
void suggest_offer(struct suggest *suggest, const char *name);

/* Append ' Did you mean WHAT "a" or "b"?' if anything was near; 'what' may be "". */
void suggest_print(const struct suggest *suggest, const char *what, struct strbuf *out);

/* The same for names that are already chosen and in order. */
void suggest_print_names(const char *const *names, size_t count, const char *what,
                         struct strbuf *out);

/* Order of names in which digits count as numbers: <0, 0, >0. */
int suggest_compare(const char *a, const char *b);

#endif
