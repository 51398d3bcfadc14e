/* SPDX-License-Identifier: Apache-2.0 */
/* content_range.c - which bytes an answer with status 206 has */
#include "registry/content_range.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int content_range_parse(const char *text, uint64_t *ret_first, uint64_t *ret_size)
{
    char numbers[3][19]; /* of digits: less than 2^63 */
    uint64_t first, last, size;
    int end = 0;

    if (strncmp(text, "bytes ", 6) != 0
        || sscanf(text + 6, "%18[0-9]-%18[0-9]/%18[0-9]%n", numbers[0], numbers[1], numbers[2],
                  &end)
               != 3
        || text[6 + end])
        return -EINVAL;
    first = strtoull(numbers[0], NULL, 10);
    last = strtoull(numbers[1], NULL, 10);
    size = strtoull(numbers[2], NULL, 10);
    if (first > last || last >= size)
        return -EINVAL;
    *ret_first = first;
    *ret_size = size;
    return 0;
}
