/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from the store into the one result of a root field. */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "manager/call/graphql/node.h"
#include "store/folder.h"

struct gql_fetch *gql_fetch_new(struct gql_call *call, enum gql_shape shape, gql_list_fn *list,
                                size_t row_size)
{
    struct gql_fetch *fetch = arena_alloc(call->arena, sizeof(*fetch));

    fetch->call = call;
    fetch->shape = shape;
    fetch->list = list;
    fetch->row_size = row_size;
    fetch->total = -1;
    return fetch;
}

int gql_fetch_page_args(struct gql_fetch *fetch, int64_t limit_max, struct aq_error *err)
{
    const struct gql_call *call = fetch->call;
    int64_t limit = call->args[0].integer, offset = call->args[1].integer;
    const char *order = gql_arg_text(call, 3);

    if (limit < 1 || limit > limit_max)
        return aq_fail_field(err, EINVAL, "limit", "limit must be within 1..%lld",
                             (long long)limit_max);
    if (offset < 0)
        return aq_fail_field(err, EINVAL, "offset", "offset must not be negative");
    fetch->query.limit = limit;
    fetch->query.offset = offset;
    fetch->query.filter = gql_arg_text(call, 2);
    if (order && *order)
        fetch->query.order = order;
    return 0;
}

int gql_fetch_fail(struct gql_fetch *fetch, const struct aq_error *err)
{
    return gql_call_fail(fetch->call, "%s", err->text);
}

static struct gql_value gql_fetch_rows_of(const struct gql_fetch *fetch, const void *rows,
                                          size_t count)
{
    return gql_rows_of(fetch->call->arena, rows, (uint32_t)count, fetch->row_size);
}

static struct gql_value gql_fetch_page_of(const struct gql_fetch *fetch, const void *rows,
                                          size_t count, int64_t total)
{
    struct gql_rows_page *page = arena_alloc(fetch->call->arena, sizeof(*page));

    page->items = gql_fetch_rows_of(fetch, rows, count);
    page->total = total;
    return gql_object(page);
}

static void gql_fetch_fill(struct gql_fetch *fetch, const void *rows, size_t count, int64_t first,
                           int64_t total)
{
    switch (fetch->shape) {
    case GQL_ONE:
        fetch->call->results[0] = gql_object_of(fetch->type, count ? rows : NULL);
        break;
    case GQL_MANY:
        fetch->call->results[0] = gql_fetch_rows_of(fetch, rows, count);
        break;
    case GQL_PAGE:
        fetch->call->results[0] = gql_fetch_page_of(fetch, rows, count, total);
        break;
    case GQL_CONNECTION:
        fetch->call->results[0] = gql_node_connect_page(fetch, rows, count, first, total);
        break;
    }
}

static int gql_fetch_read_rows(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct gql_fetch *fetch = data;
    int r = gql_set_room(fetch->call->context, &fetch->query, err);

    if (r < 0)
        return r;
    if (fetch->find)
        return store_find_sessions(tx, &fetch->query, fetch->find, &fetch->page, err);
    if (fetch->folders)
        return store_list_folders(tx, fetch->folders, &fetch->query, &fetch->page, err);
    return fetch->list(tx, &fetch->query, &fetch->page, err);
}

static void gql_fetch_on_read(void *data, int r, const struct aq_error *err)
{
    struct gql_fetch *fetch = data;

    if (r == 0 && fetch->on_read)
        fetch->on_read(fetch);
    if (r < 0) {
        gql_call_fail(fetch->call, "%s", err->text);
    } else {
        gql_keep(fetch->call->context, fetch->call->arena, fetch->page);
        gql_fetch_fill(fetch, fetch->page->rows, fetch->page->count, fetch->page->first,
                       fetch->total >= 0 ? fetch->total : fetch->page->total);
    }
    gql_call_done(fetch->call);
}

int gql_fetch_start(struct gql_fetch *fetch)
{
    if (fetch->nothing) {
        gql_fetch_fill(fetch, NULL, 0, 0, AQ_MAX(fetch->total, 0));
        return GQL_DONE;
    }
    return gql_read(fetch->call, gql_fetch_read_rows, gql_fetch_on_read, fetch);
}

/* ---- who may see what ---- */

void gql_scope(const struct gql_context *context, struct store_query *query)
{
    if (!principal_may(context->who->role, API_ADMIN))
        query->access_key = context->who->access_key;
    else if (!principal_is_superadmin(context->who))
        query->domain = context->who->domain;
}

int gql_need(const struct gql_context *context, enum api_role role, struct aq_error *err)
{
    if (principal_may(context->who->role, role))
        return 0;
    return aq_fail_kind(err, EPERM, "generic-forbidden",
                        "Forbidden operation. (%s privilege required)", api_role_name(role));
}

/* ---- arguments and values ---- */

const char *gql_arg_text(const struct gql_call *call, unsigned index)
{
    return gql_is_given(call->args[index]) ? call->args[index].text : NULL;
}

struct gql_value gql_arg_member(const struct gql_call *call, const char *arg, const char *member)
{
    const struct gql_field_def *field = call->field;
    const struct gql_input_def *def = gql_input_find(field->args, field->arg_count, arg,
                                                     strlen(arg));
    const struct gql_type *type = def ? def->type.type : NULL;
    const struct gql_value *given = def ? &call->args[def - field->args] : NULL;
    const struct gql_input_def *inner = type ? gql_input_find(type->inputs, type->input_count,
                                                              member, strlen(member))
                                             : NULL;

    return inner && gql_is_given(*given) && gql_is_given(given->items[inner - type->inputs])
               ? given->items[inner - type->inputs]
               : gql_null();
}

int gql_arg_active(const struct gql_call *call, unsigned index)
{
    if (!gql_is_given(call->args[index]))
        return 0;
    return call->args[index].boolean ? 1 : -1;
}

struct gql_value gql_words(struct arena *arena, const char *text, const char *separators)
{
    struct gql_value *items = arena_array(arena, strlen(text) / 2 + 1, sizeof(*items));
    uint32_t count = 0;

    while (*(text += strspn(text, separators))) {
        size_t len = strcspn(text, separators);

        items[count++] = gql_textn(arena_strndup(arena, text, len), len);
        text += len;
    }
    return gql_list(items, count);
}

struct uuid gql_uuid_of_name(const char *name)
{
    struct uuid id;

    (void)crypto_generichash(id.bytes, sizeof(id.bytes), (const unsigned char *)name, strlen(name),
                             NULL, 0);
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x80);
    id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3f) | 0x80);
    return id;
}

struct gql_value gql_copy(struct gql_get *get, const char *text)
{
    return gql_text(text ? arena_strdup(get->arena, text) : NULL);
}

struct gql_value gql_slots(struct gql_get *get, const struct slots *slots)
{
    const struct gql_context *context = get->context;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    slots_write_json(slots, context->types, &w);
    return gql_copy(get, text.data);
}
