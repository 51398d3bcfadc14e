/* SPDX-License-Identifier: Apache-2.0 */
/* range.c - see range.h */
#include "http/range.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Digits at the front of *text; false = there are none, or too many. */
static bool range_take_number(const char **text, uint64_t *ret)
{
    size_t len = strspn(*text, "0123456789");

    if (len == 0 || len > 18)
        return false;
    for (*ret = 0; len; len--, (*text)++)
        *ret = *ret * 10 + (uint64_t)(**text - '0');
    return true;
}

int range_parse(const char *text, uint64_t size, struct range *ret)
{
    uint64_t first = 0, last = 0;
    bool has_first, has_last;

    if (strncmp(text, "bytes=", 6) != 0)
        return 0;
    text += 6;
    has_first = range_take_number(&text, &first);
    if (*text++ != '-')
        return 0;
    has_last = range_take_number(&text, &last);
    if (*text || (!has_first && !has_last) || (has_first && has_last && first > last))
        return 0;
    if (!has_first) { /* so many at the end */
        ret->length = AQ_MIN(last, size);
        ret->from = size - ret->length;
        return ret->length ? 1 : -ERANGE;
    }
    if (first >= size)
        return -ERANGE;
    ret->from = first;
    ret->length = (has_last ? AQ_MIN(last, size - 1) : size - 1) - first + 1;
    return 1;
}
