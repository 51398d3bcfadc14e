/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler answers which request. */
#include "http/router.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "http/url.h"

/* One segment of the path. Literals are children sorted by name; the
 * parameter, if there is one, is tried after them.
 */
struct router_node {
    const char *name; /* literal text; NULL for a parameter; borrowed from the table */
    size_t name_len;
    struct router_node **children;
    size_t count, cap;
    struct router_node *param;
    const struct route *routes[METHOD_COUNT];
    void *data[METHOD_COUNT];
    unsigned allowed;
};

struct router {
    struct router_node root;
    const char *alias, *aliased;  /* a segment that stands for another; NULL = none */
    const struct route *fallback; /* NULL = none */
    void *fallback_data;
    const struct route **list;
    size_t count, cap;
};

struct segment {
    const char *text;
    size_t len;
};

struct router *router_new(void)
{
    return aq_alloc(sizeof(struct router));
}

static void router_node_done(struct router_node *node)
{
    for (size_t i = 0; i < node->count; i++) {
        router_node_done(node->children[i]);
        free(node->children[i]);
    }
    free(node->children);
    if (node->param)
        router_node_done(node->param);
    free(node->param);
}

void router_free(struct router *router)
{
    if (!router)
        return;
    router_node_done(&router->root);
    free(router->list);
    free(router);
}

/* Split "/a/b" after its first '/': one more segment than further slashes. */
static int router_split(const char *path, size_t len, struct segment *segments, size_t *ret_count)
{
    const char *end = path + len;
    size_t n = 0;

    if (!len || *path != '/')
        return -EINVAL;
    for (path++;; path++) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        const char *stop = slash ? slash : end;

        if (n == ROUTER_SEGMENTS_MAX)
            return -EINVAL;
        segments[n++] = (struct segment){ path, (size_t)(stop - path) };
        path = stop;
        if (!slash)
            break;
    }
    *ret_count = n;
    return 0;
}

static int router_compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, AQ_MIN(a_len, b_len));

    return order ? order : (a_len > b_len) - (a_len < b_len);
}

void router_alias(struct router *router, const char *alias, const char *segment)
{
    router->alias = alias;
    router->aliased = segment;
}

void router_set_fallback(struct router *router, const struct route *route, void *data)
{
    router->fallback = route;
    router->fallback_data = data;
}

/* The child of that name, or where it would have to go. */
static struct router_node *router_find_child(const struct router_node *node, const char *name,
                                             size_t len, size_t *ret_place)
{
    size_t low = 0, high = node->count;

    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = router_compare_names(name, len, node->children[mid]->name,
                                         node->children[mid]->name_len);

        if (!order)
            return node->children[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    *ret_place = low;
    return NULL;
}

static struct router_node *router_add_child(struct router_node *node, const struct segment *s)
{
    bool is_param = s->len && s->text[0] == '{';
    size_t place = 0;
    struct router_node *child = is_param ? node->param
                                         : router_find_child(node, s->text, s->len, &place);

    if (child)
        return child;
    child = aq_alloc(sizeof(*child));
    if (is_param)
        return node->param = child;
    vec_grow(&node->children, &node->cap, node->count + 1, sizeof(struct router_node *));
    child->name = s->text;
    child->name_len = s->len;
    memmove(node->children + place + 1, node->children + place,
            (node->count - place) * sizeof(struct router_node *));
    node->children[place] = child;
    node->count++;
    return child;
}

/* Plain text, or "{name}" as a whole; an empty one only in "/" or at the end. */
static bool router_is_good_segment(const struct segment *s, bool is_last)
{
    bool is_param = s->len && s->text[0] == '{';

    if (!s->len)
        return is_last;
    if (is_param && (s->len < 3 || s->text[s->len - 1] != '}'))
        return false;
    for (size_t i = is_param; i < s->len - is_param; i++)
        if (strchr("{}?#%", s->text[i]))
            return false;
    return true;
}

static int router_check_row(const struct route *row, struct segment *segments, size_t *ret_count,
                            struct aq_error *err)
{
    size_t params = 0;

    if (!row->path || row->method >= METHOD_COUNT || !row->handler || !row->doc || !*row->doc)
        return aq_fail(err, EINVAL, "route '%s' lacks a path, method, handler or doc line",
                       row->path ? row->path : "");
    if (router_split(row->path, strlen(row->path), segments, ret_count) < 0)
        return aq_fail(err, EINVAL, "route '%s' is not a path of at most %d segments", row->path,
                       ROUTER_SEGMENTS_MAX);
    for (size_t i = 0; i < *ret_count; i++) {
        params += segments[i].len && segments[i].text[0] == '{';
        if (!router_is_good_segment(&segments[i], i + 1 == *ret_count)
            || params > ROUTER_PARAMS_MAX)
            return aq_fail(err, EINVAL, "route '%s' has a malformed segment or over %d parameters",
                           row->path, ROUTER_PARAMS_MAX);
    }
    return 0;
}

static int router_add_row(struct router *router, const struct route *row, void *data,
                          struct aq_error *err)
{
    struct segment segments[ROUTER_SEGMENTS_MAX];
    struct router_node *node = &router->root;
    size_t count = 0;
    int r;

    r = router_check_row(row, segments, &count, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        node = router_add_child(node, &segments[i]);
    vec_grow(&router->list, &router->cap, router->count + 1, sizeof(*router->list));
    if (node->routes[row->method])
        return aq_fail(err, EINVAL, "routes '%s' and '%s' answer the same %s", row->path,
                       node->routes[row->method]->path, method_name(row->method));
    node->routes[row->method] = row;
    node->data[row->method] = data;
    node->allowed |= 1u << row->method;
    router->list[router->count++] = row;
    return 0;
}

static int router_compare_rows(const void *a, const void *b)
{
    const struct route *x = *(const struct route *const *)a;
    const struct route *y = *(const struct route *const *)b;
    int order = strcmp(x->path, y->path);

    return order ? order : (int)x->method - (int)y->method;
}

int router_add(struct router *router, const struct route *routes, size_t count, void *data,
               struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++)
        r = router_add_row(router, &routes[i], data, err);
    if (router->count)
        qsort(router->list, router->count, sizeof(*router->list), router_compare_rows);
    return r;
}

const struct route *const *router_list(const struct router *router, size_t *ret_count)
{
    *ret_count = router->count;
    return router->list;
}

/* Depth first, literals before parameters; a node is visited once at most.
 * 'values' collects which segments the parameters on the way took.
 */
static const struct router_node *router_walk(const struct router *router,
                                             const struct router_node *node,
                                             const struct segment *segments, size_t count,
                                             const struct segment **values, size_t *depth)
{
    const struct router_node *found = NULL;
    const struct router_node *child;
    size_t place;

    if (!count)
        return node->allowed ? node : NULL;
    child = router_find_child(node, segments->text, segments->len, &place);
    if (!child && router->alias && segments->len == strlen(router->alias)
        && memcmp(segments->text, router->alias, segments->len) == 0)
        child = router_find_child(node, router->aliased, strlen(router->aliased), &place);
    if (child)
        found = router_walk(router, child, segments + 1, count - 1, values, depth);
    if (found || !node->param || !segments->len)
        return found;
    values[(*depth)++] = segments;
    found = router_walk(router, node->param, segments + 1, count - 1, values, depth);
    if (!found)
        (*depth)--;
    return found;
}

/* Parameter names differ between rows of one node, so they come from the row. */
static void router_name_params(struct route_match *match, struct arena *arena)
{
    const char *p = match->route->path;

    for (size_t i = 0; i < match->param_count; i++) {
        const char *open = strchr(p, '{'), *close = strchr(open, '}');

        match->params[i].name = arena_strndup(arena, open + 1, (size_t)(close - open - 1));
        p = close;
    }
}

static int router_decode_segments(struct arena *arena, struct segment *segments, size_t count,
                                  struct aq_error *err)
{
    for (size_t i = 0; i < count; i++) {
        int r;

        if (!memchr(segments[i].text, '%', segments[i].len))
            continue;
        r = url_decode(arena, segments[i].text, segments[i].len, false, &segments[i].text, err);
        if (r < 0)
            return r;
        segments[i].len = strlen(segments[i].text);
    }
    return 0;
}

static void router_fill_params(struct route_match *match, const struct segment *const *values,
                               size_t count, struct arena *arena)
{
    for (size_t i = 0; i < count; i++)
        match->params[i].value = arena_strndup(arena, values[i]->text, values[i]->len);
    match->param_count = count;
    router_name_params(match, arena);
}

int router_match(const struct router *router, enum method method, const char *path, size_t len,
                 struct arena *arena, struct route_match *ret, struct aq_error *err)
{
    struct segment segments[ROUTER_SEGMENTS_MAX];
    const struct segment *values[ROUTER_SEGMENTS_MAX];
    const struct router_node *node = NULL;
    size_t count = 0, depth = 0;
    int r;

    ret->allowed = 0;
    if (router_split(path, len, segments, &count) == 0) {
        r = router_decode_segments(arena, segments, count, err);
        if (r < 0)
            return r;
        node = router_walk(router, &router->root, segments, count, values, &depth);
    }
    if (!node && router->fallback) {
        ret->route = router->fallback;
        ret->data = router->fallback_data;
        ret->param_count = 0;
        return 0;
    }
    if (!node)
        return aq_fail_kind(err, ENOENT, "url-not-found", "Unknown URL path: %.*s",
                            (int)AQ_MIN(len, 200), path);
    ret->allowed = node->allowed;
    if (ret->allowed & 1u << METHOD_GET)
        ret->allowed |= 1u << METHOD_HEAD;
    if (method == METHOD_HEAD && !node->routes[METHOD_HEAD])
        method = METHOD_GET;
    if (method == METHOD_OTHER || !node->routes[method])
        return aq_fail_kind(err, EOPNOTSUPP, "method-not-allowed", "%.*s does not answer %s",
                            (int)AQ_MIN(len, 200), path, method_name(method));
    ret->route = node->routes[method];
    ret->data = node->data[method];
    router_fill_params(ret, values, depth, arena);
    return 0;
}

void router_format_allow(unsigned allowed, struct strbuf *out)
{
    size_t start = out->len;

    for (unsigned i = 0; i < METHOD_COUNT; i++)
        if (allowed & 1u << i) {
            if (out->len > start)
                strbuf_adds(out, ", ");
            strbuf_adds(out, method_name((enum method)i));
        }
}
