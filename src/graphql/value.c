/* SPDX-License-Identifier: Apache-2.0 */
/* One value on its way into or out of a resolver. */
#include "graphql/value.h"

#include <stdarg.h>
#include <stdio.h>

struct gql_value gql_error(struct arena *arena, const char *fmt, ...)
{
    va_list args;
    int len;
    char *text;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    text = arena_alloc(arena, (size_t)AQ_MAX(len, 0) + 1);
    va_start(args, fmt);
    (void)vsnprintf(text, (size_t)AQ_MAX(len, 0) + 1, fmt, args);
    va_end(args);
    return (struct gql_value){ .kind = GQL_ERROR, .text = text, .count = (uint32_t)strlen(text) };
}

struct gql_value gql_rows_of(struct arena *arena, const void *array, uint32_t count, size_t size)
{
    const void **rows = arena_array(arena, count, sizeof(*rows));

    for (uint32_t i = 0; i < count; i++)
        rows[i] = (const char *)array + i * size;
    return gql_rows(rows, count);
}
