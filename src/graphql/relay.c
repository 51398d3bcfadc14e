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

    if (!out || !text)
        return NULL;
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

    if (!out)
        return NULL;
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

static int relay_read_count(struct gql_value value, const char *name, int64_t max, int64_t *ret,
                            struct aq_error *err)
{
    *ret = -1;
    if (!gql_is_given(value))
        return 0;
    if (value.integer < 0)
        return aq_fail_field(err, EINVAL, name, "%s must not be negative", name);
    if (max && value.integer > max)
        return aq_fail_field(err, EINVAL, name, "%s must not be above %lld", name, (long long)max);
    *ret = value.integer;
    return 0;
}

static int relay_read_cursor(struct arena *arena, struct gql_value value, const char **ret,
                             struct aq_error *err)
{
    const char *type;

    *ret = NULL;
    if (!gql_is_given(value))
        return 0;
    *ret = relay_global_id_parse(arena, value.text, &type);
    return *ret ? 0 : aq_fail_oom(err);
}

int relay_args_parse(struct arena *arena, struct gql_value first, struct gql_value after,
                     struct gql_value last, struct gql_value before, struct gql_value offset,
                     int64_t max, struct relay_args *ret, struct aq_error *err)
{
    struct relay_args args;
    int r;

    if ((r = relay_read_count(first, "first", max, &args.first, err)) < 0
        || (r = relay_read_count(last, "last", max, &args.last, err)) < 0
        || (r = relay_read_count(offset, "offset", 0, &args.offset, err)) < 0
        || (r = relay_read_cursor(arena, after, &args.after, err)) < 0
        || (r = relay_read_cursor(arena, before, &args.before, err)) < 0)
        return r;
    if (args.first >= 0 && args.last >= 0)
        return aq_fail_field(err, EINVAL, "last", "first and last cannot be used together");
    if (args.before && (args.first >= 0 || args.after))
        return aq_fail_field(err, EINVAL, "before",
                             "before goes with last, not with first or "
                             "after");
    if (args.after && args.last >= 0)
        return aq_fail_field(err, EINVAL, "after", "after goes with first, not with last");
    if (args.before && args.last < 0)
        args.last = max;
    else if (args.first < 0 && args.last < 0)
        args.first = max;
    *ret = args;
    return 0;
}

struct relay_page relay_page_of(const struct relay_args *args)
{
    bool backward = args->last >= 0;

    return (struct relay_page){
        .backward = backward,
        .cursor = backward ? args->before : args->after,
        .limit = (backward ? args->last : args->first) + 1,
        .offset = args->offset < 0 ? 0 : args->offset,
    };
}

struct relay_connection *relay_connection_new(struct arena *arena, const struct relay_page *page,
                                              const char *type, const void *const *rows,
                                              uint32_t count, int64_t total,
                                              const char *(*id_of)(const void *row))
{
    uint32_t shown = (uint32_t)AQ_MIN((int64_t)count, page->limit - 1);
    bool more = count > shown, beyond = page->cursor || page->offset > 0;
    struct relay_connection *connection = arena_alloc(arena, sizeof(*connection));
    struct relay_edge *edges = arena_array(arena, shown, sizeof(*edges));

    if (!connection || !edges)
        return NULL;
    for (uint32_t i = 0; i < shown; i++) {
        struct relay_edge *edge = &edges[page->backward ? shown - 1 - i : i];

        edge->node = rows[i];
        edge->cursor = relay_global_id(arena, type, id_of(rows[i]));
        if (!edge->cursor)
            return NULL;
    }
    *connection = (struct relay_connection){
        .edges = gql_rows_of(arena, edges, shown, sizeof(*edges)),
        .has_next = page->backward ? beyond : more,
        .has_previous = page->backward ? more : beyond,
        .start_cursor = shown ? edges[0].cursor : NULL,
        .end_cursor = shown ? edges[shown - 1].cursor : NULL,
        .count = total,
    };
    return connection->edges.kind == GQL_ERROR ? NULL : connection;
}

struct gql_value relay_get_count(struct gql_get *get, const void *connection)
{
    int64_t count = ((const struct relay_connection *)connection)->count;

    (void)get;
    return count < 0 ? gql_null() : gql_int(count);
}
