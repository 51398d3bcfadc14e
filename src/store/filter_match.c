/* SPDX-License-Identifier: Apache-2.0 */
/* filter_match.c - filters and orders of rows in memory, as the SQL of filter.c would have it */
#include <assert.h>
#include <string.h>

#include "store/filter_program.h"

static struct filter_value filter_value_of(const struct filter_field *field, const void *row)
{
    const char *at = (const char *)row + field->offset;
    struct filter_value value = { 0 };

    if (field->type == FILTER_INT || field->type == FILTER_BOOL || field->type == FILTER_TIME)
        memcpy(&value.number, at, sizeof(value.number));
    else
        memcpy(&value.text, at, sizeof(value.text));
    return value;
}

static int filter_compare(const struct filter_value *a, const struct filter_value *b)
{
    return a->text ? strcmp(a->text, b->text) : (a->number > b->number) - (a->number < b->number);
}

/* ---- patterns ---- */

static char filter_fold(char c, bool ignores_case)
{
    return ignores_case && c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static const char *filter_skip_character(const char *text)
{
    for (text++; ((unsigned char)*text & 0xc0) == 0x80; text++)
        ;
    return text;
}

/* LIKE: '%' is any text, '_' a character, and what comes after a backslash itself. Where a text
 * does not go on as the pattern, what the last '%' stands for becomes longer.
 */
static bool filter_is_like(const char *text, const char *pattern, bool ignores_case)
{
    const char *after_any = NULL, *any = NULL;

    for (;;) {
        const char *c = pattern + (pattern[0] == '\\' && pattern[1]);

        if (*pattern == '%') {
            after_any = ++pattern;
            any = text;
        } else if (!*text) {
            return !*pattern;
        } else if (*pattern == '_') {
            pattern++;
            text = filter_skip_character(text);
        } else if (*pattern && filter_fold(*c, ignores_case) == filter_fold(*text, ignores_case)) {
            pattern = c + 1;
            text++;
        } else if (after_any) {
            pattern = after_any;
            text = any = filter_skip_character(any);
        } else {
            return false;
        }
    }
}

/* As if '%' were before and after it. */
static bool filter_contains(const char *text, const char *pattern)
{
    char whole[FILTER_TEXT_MAX + 3];
    size_t len = strlen(pattern);

    assert(len <= FILTER_TEXT_MAX);
    whole[0] = '%';
    memcpy(whole + 1, pattern, len);
    memcpy(whole + 1 + len, "%", 2);
    return filter_is_like(text, whole, false);
}

/* ---- steps ---- */

static bool filter_is_among(const struct filter_value *value, const struct filter_value *values,
                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (filter_compare(value, &values[i]) == 0)
            return true;
    return false;
}

static bool filter_match_step(const struct filter_step *step, const struct filter_value *values,
                              const void *row)
{
    struct filter_value value = filter_value_of(step->field, row);
    const struct filter_value *with = &values[step->first];

    switch (step->op) {
    case FILTER_EQUAL:
        return filter_compare(&value, with) == 0;
    case FILTER_UNEQUAL:
        return filter_compare(&value, with) != 0;
    case FILTER_ABOVE:
        return filter_compare(&value, with) > 0;
    case FILTER_ABOVE_OR_EQUAL:
        return filter_compare(&value, with) >= 0;
    case FILTER_BELOW:
        return filter_compare(&value, with) < 0;
    case FILTER_BELOW_OR_EQUAL:
        return filter_compare(&value, with) <= 0;
    case FILTER_IN:
        return filter_is_among(&value, with, step->count);
    case FILTER_IS_NULL:
        return false;
    case FILTER_IS_NOT_NULL:
        return true;
    case FILTER_CONTAINS:
        return filter_contains(value.text, with->text);
    default:
        return filter_is_like(value.text, with->text, step->op == FILTER_ILIKE);
    }
}

bool filter_match(const struct filter_program *program, const void *row)
{
    bool found[FILTER_DEPTH_MAX + 2]; /* each level of parentheses has one that waits */
    size_t count = 0;

    for (size_t i = 0; i < program->count; i++) {
        const struct filter_step *step = &program->steps[i];

        if (step->op == FILTER_NOT) {
            found[count - 1] = !found[count - 1];
        } else if (step->op == FILTER_AND || step->op == FILTER_OR) {
            count--;
            found[count - 1] = step->op == FILTER_AND ? found[count - 1] && found[count]
                                                      : found[count - 1] || found[count];
        } else {
            assert(count < AQ_COUNT(found));
            found[count++] = filter_match_step(step, program->values.items, row);
        }
    }
    return found[0];
}

int order_compare(const struct order *order, const void *a, const void *b)
{
    for (size_t i = 0; i < order->count; i++) {
        const struct filter_value left = filter_value_of(order->items[i].field, a);
        const struct filter_value right = filter_value_of(order->items[i].field, b);
        int r = filter_compare(&left, &right);

        if (r)
            return order->items[i].is_descending ? -r : r;
    }
    return 0;
}
