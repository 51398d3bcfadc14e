/* What all handlers do: decode parameters, answer, list. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/api/api.h"

static const struct field no_fields[] = { FIELD_END };

int api_parse(struct request *req, json_t **ret, struct aq_error *err)
{
    const char *body;
    size_t len;

    body = request_get_body(req, &len);
    if (len)
        return decode_json(body, len, ret, err);
    return decode_query(request_get_queries(req), ret, err);
}

int api_decode(struct request *req, void *target, json_t **ret_tree, struct aq_error *err)
{
    const struct field *table = request_get_route(req)->body;
    json_auto_t *tree = NULL;
    char nothing;
    int r;

    if ((r = api_parse(req, &tree, err)) < 0
        || (r = decode_object(table ? table : no_fields, tree, request_get_arena(req),
                              target ? target : &nothing, err)) < 0)
        return r;
    if (ret_tree)
        *ret_tree = AQ_TAKE(tree);
    return 0;
}

bool api_has_no_params(struct request *req)
{
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) == 0)
        return true;
    request_fail(req, &err);
    return false;
}

int api_fail_param(struct aq_error *err, const char *field, const char *fmt, ...)
{
    char text[sizeof(err->text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    aq_fail_field(err, EINVAL, field, "%s", text);
    if (err)
        err->kind = "invalid-api-params";
    return -EINVAL;
}

void api_reply_done(void *req, int r, const struct aq_error *err)
{
    if (r < 0)
        request_fail(req, err);
    else
        request_reply_empty(req, 204);
}

void api_write_time(struct jsonw *w, const char *key, int64_t usec)
{
    char iso[CLOCK_ISO_MAX];

    jsonw_member_str(w, key, usec ? clock_format_iso(usec, iso) : NULL);
}

void api_write_raw(struct jsonw *w, const char *key, const char *json)
{
    jsonw_key(w, key);
    if (json && *json)
        jsonw_raw(w, json, strlen(json));
    else
        jsonw_null(w);
}

void api_write_uuid(struct jsonw *w, const char *key, const struct uuid *id)
{
    char text[UUID_TEXT_MAX];

    jsonw_member_str(w, key, uuid_is_nil(id) ? NULL : uuid_format(id, text));
}

/* ---- lists ---- */

void api_page_apply(const struct api_page *page, struct store_query *query)
{
    query->filter = page->filter && *page->filter ? page->filter : NULL;
    query->order = page->order && *page->order ? page->order : NULL;
    query->limit = page->limit;
    query->offset = page->offset;
}

struct api_list *api_list_new(const struct api *api, struct request *req)
{
    struct api_list *list = arena_alloc(request_get_arena(req), sizeof(*list));

    if (!list) {
        struct aq_error err = { 0 };

        aq_fail(&err, ENOMEM, "list");
        request_fail(req, &err);
        return NULL;
    }
    list->api = api;
    list->req = req;
    return list;
}

static int read_page(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct api_list *list = data;

    return list->list(tx, &list->query, &list->page, err);
}

static void answer_one(struct api_list *list)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };

    if (list->page->count == 0) {
        problem_no_such(&err, list->one_of, "it does not exist, or not for you");
        request_fail(list->req, &err);
        return;
    }
    list->write(list, list->page, 0, &w);
    request_reply_json(list->req, list->status ? list->status : 200, &out);
}

static void answer_items(struct api_list *list)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < list->page->count; i++)
        list->write(list, list->page, i, &w);
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", list->page->total);
    jsonw_object_end(&w);
    request_reply_json(list->req, 200, &out);
}

static void on_page(void *data, int result, const struct aq_error *err)
{
    struct api_list *list = data;
    struct store_page *page = list->page; /* the list goes with the request */

    if (result < 0)
        request_fail(list->req, err);
    else if (list->one_of)
        answer_one(list);
    else
        answer_items(list);
    if (page)
        store_page_free(page);
}

void api_list_start(struct api_list *list)
{
    struct aq_error err = { 0 };

    if (store_read(core_store(list->api->core), read_page, on_page, list) < 0) {
        aq_fail(&err, ENOMEM, "list");
        request_fail(list->req, &err);
    }
}
