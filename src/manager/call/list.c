/* SPDX-License-Identifier: Apache-2.0 */
/* Answer a request with a page of rows that the store reads on its threads. */
#include "manager/call/list.h"

#include <errno.h>

#define PAGE_BYTES_MAX (128 << 20)
/* Of one turn of the loop: a few milliseconds. */
#define TURN_ROWS 500
#define TURN_BYTES (64 << 10)
/* Sent and not read yet: no more is written then. */
#define QUEUED_MAX ((size_t)1 << 20)

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
        problem_no_such(&err, list->one_of, "it does not exist, or you may not see it");
        request_fail(list->req, &err);
        return;
    }
    list->write(list, list->page, 0, &w);
    request_reply_json(list->req, list->status ? list->status : 200, &out);
}

/* ---- a list whose rows are sent as they are written ---- */

/* What is written so far; false if the client will not get it. */
static bool api_list_send(struct api_list *list)
{
    bool is_sent = request_write(list->req, list->out.data, list->out.len) == 0;

    strbuf_truncate(&list->out, 0);
    return is_sent;
}

/* A status was sent already: what goes wrong now breaks it off. */
static void api_list_end(struct api_list *list, const struct aq_error *err)
{
    if (!err && !request_is_gone(list->req) && api_list_send(list))
        request_end(list->req);
    else
        request_abort(list->req);
}

static void api_list_on_drain(struct request *req, void *data)
{
    struct api_list *list = data;

    (void)req;
    if (!list->is_waiting)
        return;
    list->is_waiting = false;
    turns_wait(list->api->turns, &list->turn);
}

static void api_list_finish(struct api_list *list, const struct aq_error *err);

static void api_list_on_gone(struct request *req, void *data)
{
    struct api_list *list = data;

    (void)req;
    if (list->is_waiting)
        api_list_finish(list, NULL);
}

/* More rows are to come: in a later turn, or when the client has read some. */
static void api_list_pause(struct api_list *list)
{
    if (!list->is_begun) {
        list->is_begun = true;
        request_begin(list->req, 200, list->form ? list->form->type : "application/json",
                      api_list_on_drain, list);
        request_set_gone(list->req, api_list_on_gone, list);
    }
    if (!api_list_send(list)) {
        api_list_finish(list, &(struct aq_error){ .code = EPIPE });
        return;
    }
    list->is_waiting = request_get_queued(list->req) > QUEUED_MAX;
    if (!list->is_waiting)
        turns_wait(list->api->turns, &list->turn);
}

/* The end: the list goes with its request, and the user's next one may begin. */
static void api_list_finish(struct api_list *list, const struct aq_error *err)
{
    struct turn_queue *turns = list->api->turns;
    struct uuid user_id = api_principal(list->req)->user_id;
    struct store_page *page = list->page;
    struct strbuf out = list->out;

    request_set_gone(list->req, NULL, NULL);
    if (list->is_begun)
        api_list_end(list, err);
    else if (err)
        request_fail(list->req, err);
    else if (list->one_of)
        api_list_answer_one(list);
    else if (list->form)
        request_reply(list->req, 200, list->form->type, out.data, out.len);
    else
        request_reply_json(list->req, 200, &out);
    strbuf_done(&out);
    if (page)
        store_page_free(page);
    turns_leave(turns, &user_id);
}

static void api_list_write_end(struct api_list *list)
{
    struct jsonw *w = &list->writer;

    jsonw_array_end(w);
    if (list->is_search) {
        jsonw_key(w, "pagination");
        jsonw_object_begin(w);
        jsonw_member_int(w, "offset", list->query.offset);
        jsonw_member_int(w, "limit", list->query.limit);
    }
    jsonw_member_int(w, "total", list->page->total);
    if (list->is_search)
        jsonw_object_end(w);
    jsonw_object_end(w);
}

/* As many rows as fit into a turn of the loop. */
static void api_list_write_rows(struct turn *turn)
{
    struct api_list *list = LIST_ENTRY(&turn->link, struct api_list, turn.link);
    size_t bytes = list->out.len, rows = list->written;

    while (list->written < list->page->count && !request_is_gone(list->req)) {
        if (list->written - rows >= TURN_ROWS || list->out.len - bytes >= TURN_BYTES) {
            api_list_pause(list);
            return;
        }
        list->write(list, list->page, list->written++, &list->writer);
    }
    if (!list->form)
        api_list_write_end(list);
    api_list_finish(list, NULL);
}

static void api_list_on_page(void *data, int result, const struct aq_error *err)
{
    struct api_list *list = data;
    struct aq_error refusal = { 0 };

    if (result < 0 || list->one_of) {
        api_list_finish(list, result < 0 ? err : NULL);
        return;
    }
    if (list->form && list->form->begin(list, &list->out, &refusal) < 0) {
        api_list_finish(list, &refusal);
        return;
    }
    if (!list->form) {
        jsonw_object_begin(&list->writer);
        jsonw_key(&list->writer, "items");
        jsonw_array_begin(&list->writer);
    }
    list->turn.fn = api_list_write_rows;
    api_list_write_rows(&list->turn);
}

static void api_list_read(struct turn *turn)
{
    struct api_list *list = LIST_ENTRY(&turn->link, struct api_list, turn.link);
    struct aq_error err = { 0 };

    if (!list->is_answer && api_check_caller(list->api, list->req, &err) < 0) {
        api_list_finish(list, &err);
        return;
    }
    if (list->make) {
        api_list_on_page(list, list->make(list, &list->page, &err), &err);
        return;
    }
    store_read(core_store(list->api->core), api_list_read_page, api_list_on_page, list);
}

void api_list_start(struct api_list *list)
{
    struct aq_error err = { 0 };

    strbuf_init(&list->out);
    list->writer = jsonw_make(&list->out);
    list->query.bytes_max = PAGE_BYTES_MAX;
    list->turn.fn = api_list_read;
    if (turns_enter(list->api->turns, request_get_loop(list->req),
                    &api_principal(list->req)->user_id, &list->turn, &err)
        < 0)
        request_fail(list->req, &err);
}
