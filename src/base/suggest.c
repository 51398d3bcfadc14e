/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c - "did you mean" */
#include "base/suggest.h"

#include <string.h>

#include "base/cleanup.h"

#define WORD_MAX 40

struct suggest suggest_for(const char *typed, size_t len)
{
    return (struct suggest){ .typed = typed, .len = len, .distance = (unsigned)-1 };
}

/* Optimal string alignment distance; both words at most WORD_MAX long. */
static unsigned suggest_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned rows[3][WORD_MAX + 1], *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_len; j++)
        above[j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned *oldest = before;

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);

            best = AQ_MIN(best, above[j] + 1);
            best = AQ_MIN(best, row[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = AQ_MIN(best, before[j - 2] + 1);
            row[j] = best;
        }
        before = above;
        above = row;
        row = oldest;
    }
    return above[b_len];
}

void suggest_offer(struct suggest *s, const char *word)
{
    size_t len = strlen(word);
    unsigned apart;

    if (s->len == 0 || s->len > WORD_MAX || len > WORD_MAX)
        return;
    apart = suggest_distance(s->typed, s->len, word, len);
    if (s->len >= 2 && len > s->len && memcmp(s->typed, word, s->len) == 0)
        apart = 1;
    if (apart < s->distance && apart <= AQ_MAX(1u, (unsigned)s->len / 3)) {
        s->distance = apart;
        s->best = word;
    }
}
