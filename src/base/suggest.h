/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - "did you mean" */
#ifndef AQ_BASE_SUGGEST_H
#define AQ_BASE_SUGGEST_H

#include <stddef.h>

/* The closest of the words offered so far. */
struct suggest {
    const char *typed;
    size_t len;
    const char *best; /* NULL = nothing close enough; borrowed */
    unsigned distance;
};

struct suggest suggest_for(const char *typed, size_t len);

/* Offer a word: kept if it is nearer than the best so far and at most a third
 * of the typed letters (at least one) differ. A swap of neighbours counts as
 * one; a word that merely continues what was typed counts as one, too.
 */
void suggest_offer(struct suggest *s, const char *word);

#endif
