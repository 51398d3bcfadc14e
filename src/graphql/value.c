/* SPDX-License-Identifier: Apache-2.0 */
/* One value on its way into or out of a resolver. */
#include "graphql/value.h"

#include <stdarg.h>
#include <stdio.h>

struct gql_value gql_error(struct arena *arena, const char *fmt, ...)
{
    struct gql_value value = { .kind = GQL_ERROR, .text = "out of memory", .count = 13 };
    va_list args;
    int len;
    char *text;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    text = len < 0 ? NULL : arena_alloc(arena, (size_t)len + 1);
    if (!text)
        return value;
    va_start(args, fmt);
    (void)vsnprintf(text, (size_t)len + 1, fmt, args);
    va_end(args);
    value.text = text;
    value.count = (uint32_t)len;
    return value;
}

struct gql_value gql_rows_of(struct arena *arena, const void *array, uint32_t count, size_t size)
{
    const void **rows = arena_array(arena, count, sizeof(*rows));

    if (!rows)
        return gql_error(arena, "out of memory");
    for (uint32_t i = 0; i < count; i++)
        rows[i] = (const char *)array + i * size;
    return gql_rows(rows, count);
}
