/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean ...?" as graphql-js says it. */
#include "graphql/hint.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* Names longer than this get no suggestions: the distance takes length times length. */
#define NAME_MAX_LEN 128

static bool hint_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static uint64_t hint_take_number(const char **at)
{
    uint64_t value = 0;

    /* a zero ends a number, so that leading zeros count */
    do
        value = value * 10 + (uint64_t)(*(*at)++ - '0');
    while (hint_is_digit(**at) && value > 0);
    return value;
}

int hint_compare(const char *a, const char *b)
{
    while (*a && *b) {
        if (hint_is_digit(*a) && hint_is_digit(*b)) {
            uint64_t x = hint_take_number(&a), y = hint_take_number(&b);

            if (x != y)
                return x < y ? -1 : 1;
        } else {
            if (*a != *b)
                return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
            a++;
            b++;
        }
    }
    return *a ? 1 : *b ? -1 : 0;
}

static char hint_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned hint_min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;

    return least < c ? least : c;
}

/* Edits (insert, delete, substitute, swap of neighbours) between the two in
 * lower case; anything above 'threshold' if there are more.
 */
static unsigned hint_edit_distance(const char *a, size_t a_len, const char *b, size_t b_len,
                                   unsigned threshold)
{
    unsigned rows[3][NAME_MAX_LEN + 1];

    for (unsigned j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= a_len; i++) {
        unsigned *up = rows[(i - 1) % 3], *row = rows[i % 3], smallest = row[0] = i;

        for (unsigned j = 1; j <= b_len; j++) {
            unsigned cost = hint_lower(a[i - 1]) == hint_lower(b[j - 1]) ? 0 : 1;

            row[j] = hint_min3(up[j] + 1, row[j - 1] + 1, up[j - 1] + cost);
            if (i > 1 && j > 1 && hint_lower(a[i - 1]) == hint_lower(b[j - 2])
                && hint_lower(a[i - 2]) == hint_lower(b[j - 1])) {
                unsigned swapped = rows[(i - 2) % 3][j - 2] + 1;

                row[j] = swapped < row[j] ? swapped : row[j];
            }
            smallest = row[j] < smallest ? row[j] : smallest;
        }
        if (smallest > threshold)
            return smallest;
    }
    return rows[a_len % 3][b_len];
}

static bool hint_is_near(const struct hint *hint, const char *name, unsigned *ret_distance)
{
    size_t len = strlen(name), longer = len > hint->len ? len : hint->len;
    unsigned threshold = (unsigned)(hint->len * 2 / 5) + 1;

    if (len == hint->len && memcmp(name, hint->input, len) == 0) {
        *ret_distance = 0;
        return true;
    }
    if (len == hint->len && strncasecmp(name, hint->input, len) == 0) {
        *ret_distance = 1;
        return true;
    }
    if (longer > NAME_MAX_LEN || longer - (len + hint->len - longer) > threshold)
        return false;
    *ret_distance = len < hint->len
                        ? hint_edit_distance(hint->input, hint->len, name, len, threshold)
                        : hint_edit_distance(name, len, hint->input, hint->len, threshold);
    return *ret_distance <= threshold;
}

void hint_offer(struct hint *hint, const char *name)
{
    unsigned distance, at;

    if (!hint_is_near(hint, name, &distance))
        return;
    at = hint->count < HINT_MAX ? hint->count : HINT_MAX;
    hint->count++;
    while (at > 0
           && (distance < hint->best[at - 1].distance
               || (distance == hint->best[at - 1].distance
                   && hint_compare(name, hint->best[at - 1].name) < 0))) {
        if (at < HINT_MAX)
            hint->best[at] = hint->best[at - 1];
        at--;
    }
    if (at < HINT_MAX) {
        hint->best[at].name = name;
        hint->best[at].distance = distance;
    }
}

void hint_print_names(const char *const *names, size_t count, const char *what, struct strbuf *out)
{
    count = count < HINT_MAX ? count : HINT_MAX;
    if (count == 0)
        return;
    strbuf_addf(out, " Did you mean %s%s", what, *what ? " " : "");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            strbuf_adds(out, count == 2 ? " or " : i + 1 == count ? ", or " : ", ");
        strbuf_addf(out, "\"%s\"", names[i]);
    }
    strbuf_addc(out, '?');
}

void hint_print(const struct hint *hint, const char *what, struct strbuf *out)
{
    const char *names[HINT_MAX];
    size_t count = hint->count < HINT_MAX ? hint->count : HINT_MAX;

    for (size_t i = 0; i < count; i++)
        names[i] = hint->best[i].name;
    hint_print_names(names, count, what, out);
}

void hint_print_inputs(const char *name, size_t len, const struct gql_input_def *defs,
                       uint32_t count, struct strbuf *out)
{
    struct hint hint = hint_make(name, len);

    for (uint32_t i = 0; i < count; i++)
        hint_offer(&hint, defs[i].name);
    hint_print(&hint, "", out);
}
