/* SPDX-License-Identifier: Apache-2.0 */
/* Answer a request with a page of rows that the store reads on its threads. */
#include "manager/request/list.h"

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

        aq_fail_oom(&err);
        request_fail(req, &err);
        return NULL;
    }
    list->api = api;
    list->req = req;
    return list;
}

static int api_list_read_page(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct api_list *list = data;

    return list->list(tx, &list->query, &list->page, err);
}

static void api_list_answer_one(struct api_list *list)
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

static void api_list_answer_items(struct api_list *list)
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

static void api_list_on_page(void *data, int result, const struct aq_error *err)
{
    struct api_list *list = data;
    struct store_page *page = list->page; /* the list goes with the request */

    if (result < 0)
        request_fail(list->req, err);
    else if (list->one_of)
        api_list_answer_one(list);
    else
        api_list_answer_items(list);
    if (page)
        store_page_free(page);
}

void api_list_start(struct api_list *list)
{
    struct aq_error err = { 0 };

    if (store_read(core_store(list->api->core), api_list_read_page, api_list_on_page, list) < 0) {
        aq_fail_oom(&err);
        request_fail(list->req, &err);
    }
}
