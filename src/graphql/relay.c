/* SPDX-License-Identifier: Apache-2.0 */
/* Global ids, cursors and pages of Relay's specifications. */
#include "graphql/relay.h"

#include <errno.h>

#include "base/utf8.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const char *relay_global_id(struct arena *arena, const char *type, const char *id)
{
    size_t type_len = strlen(type), id_len = strlen(id), len = type_len + 1 + id_len;
    char *out = arena_alloc(arena, (len + 2) / 3 * 4 + 1), *at = out;
    char *text = arena_alloc(arena, len + 3); /* zeroes behind it, to encode in threes */

    memcpy(text, type, type_len);
    text[type_len] = ':';
    memcpy(text + type_len + 1, id, id_len);
    for (size_t i = 0; i < len; i += 3) {
        const unsigned char *p = (const unsigned char *)text + i;
        uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];

        *at++ = digits[bits >> 18];
        *at++ = digits[bits >> 12 & 63];
        *at++ = i + 1 < len ? digits[bits >> 6 & 63] : '=';
        *at++ = i + 2 < len ? digits[bits & 63] : '=';
    }
    return out;
}

/* Standard or URL-safe base64, with or without padding, into 'out', which is
 * as long as 'text'. Returns the length, or -1.
 */
static ssize_t relay_decode(const char *text, char *out)
{
    size_t len = strlen(text), n = 0;
    uint32_t bits = 0;
    unsigned have = 0;

    while (len > 0 && text[len - 1] == '=')
        len--;
    for (size_t i = 0; i < len; i++) {
        const char *found = text[i] == '-'   ? digits + 62
                            : text[i] == '_' ? digits + 63
                                             : strchr(digits, text[i]);

        if (!found)
            return -1;
        bits = bits << 6 | (uint32_t)(found - digits);
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[n++] = (char)(bits >> have & 0xff);
        }
    }
    return len % 4 == 1 ? -1 : (ssize_t)n;
}

static bool relay_is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'
              || (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return len > 0;
}

const char *relay_global_id_parse(struct arena *arena, const char *text, const char **ret_type)
{
    char *out = arena_alloc(arena, strlen(text) + 1);
    ssize_t len;
    char *colon;

    *ret_type = "";
    len = relay_decode(text, out);
    colon = len > 0 ? memchr(out, ':', (size_t)len) : NULL;
    if (!colon || !relay_is_name(out, (size_t)(colon - out)) || colon + 1 == out + len
        || memchr(out, '\0', (size_t)len) || !utf8_is_valid(out, (size_t)len))
        return arena_strdup(arena, text);
    out[len] = '\0';
    *colon = '\0';
    *ret_type = out;
    return colon + 1;
}

const struct gql_type *relay_node_type(const struct gql_schema *schema, const char *name)
{
    const struct gql_type *node = gql_type_find(schema, "Node", 4);
    const struct gql_type *type = gql_type_find(schema, name, strlen(name));

    return node && type && type->kind == GQL_TYPE_OBJECT && gql_type_is_subtype(type, node) ? type
                                                                                            : NULL;
}

static int relay_read_count(struct gql_value value, const char *name, int64_t max,
                            int64_t otherwise, int64_t *ret, struct aq_error *err)
{
    *ret = otherwise;
    if (!gql_is_given(value))
        return 0;
    if (value.integer < 0)
        return aq_fail_field(err, EINVAL, name, "%s must not be negative", name);
    if (value.integer > max)
        return aq_fail_field(err, EINVAL, name, "%s must not be above %lld", name, (long long)max);
    *ret = value.integer;
    return 0;
}

/* NULL = not given */
static const char *relay_read_cursor(struct arena *arena, struct gql_value value)
{
    const char *type;

    return gql_is_given(value) ? relay_global_id_parse(arena, value.text, &type) : NULL;
}

int relay_part_parse(struct arena *arena, struct gql_value first, struct gql_value after,
                     struct gql_value last, struct gql_value before, struct gql_value offset,
                     int64_t max, struct relay_part *ret, struct aq_error *err)
{
    struct relay_part part = { .is_from_end = gql_is_given(last) || gql_is_given(before) };
    int64_t most[2];
    int r;

    if ((r = relay_read_count(first, "first", max, max, &most[0], err)) < 0
        || (r = relay_read_count(last, "last", max, max, &most[1], err)) < 0
        || (r = relay_read_count(offset, "offset", INT64_MAX, 0, &part.offset, err)) < 0)
        return r;
    part.after = relay_read_cursor(arena, after);
    part.before = relay_read_cursor(arena, before);
    if (gql_is_given(first) && gql_is_given(last))
        return aq_fail_field(err, EINVAL, "last", "first and last cannot be used together");
    if (part.before && (gql_is_given(first) || part.after))
        return aq_fail_field(err, EINVAL, "before",
                             "before goes with last, not with first or after");
    if (part.after && gql_is_given(last))
        return aq_fail_field(err, EINVAL, "after", "after goes with first, not with last");
    part.limit = most[part.is_from_end];
    *ret = part;
    return 0;
}

struct relay_connection *relay_connection_new(struct arena *arena, const char *type,
                                              relay_id_fn *id_of, const void *rows, size_t size,
                                              uint32_t count, int64_t first, int64_t total)
{
    struct relay_connection *connection = arena_alloc(arena, sizeof(*connection));
    struct relay_edge *edges = arena_array(arena, AQ_MAX(count, 1u), sizeof(*edges));
    char scratch[64];

    for (uint32_t i = 0; i < count; i++) {
        edges[i].node = (const char *)rows + i * size;
        edges[i].cursor = relay_global_id(arena, type, id_of(edges[i].node, scratch));
    }
    *connection = (struct relay_connection){
        .edges = gql_rows_of(arena, edges, count, sizeof(*edges)),
        .has_next = total > first + count,
        .has_previous = first > 0,
        .start_cursor = count ? edges[0].cursor : NULL,
        .end_cursor = count ? edges[count - 1].cursor : NULL,
        .count = total,
    };
    return connection;
}
