/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - GET requests that answer with a page of rows
 *
 * The store reads the page on one of its threads; the reply is written on the
 * loop's thread, a large one in several turns, each sent as it is written. One
 * list of a user is made at a time.
 */
#ifndef AQ_MANAGER_CALL_LIST_H
#define AQ_MANAGER_CALL_LIST_H

#include "manager/call/api.h"
#include "manager/call/turns.h"
#include "store/query.h"

#define API_LIST_DEFAULT 100
#define API_LIST_MAX 1000
#define API_SEARCH_DEFAULT 50 /* as Backend.AI's */

struct api_page {
    const char *filter, *order;
    int64_t limit, offset;
};

/* For a struct with a member 'page'. */
#define API_PAGE_FIELDS(type) API_PAGE_FIELDS_UP_TO(type, API_LIST_MAX)
/* clang-format off */
#define API_PAGE_FIELDS_UP_TO(type, limit_max)                                                     \
    { "limit", FIELD_INT, 0, offsetof(type, page.limit), 1, (limit_max) },                         \
    { "offset", FIELD_INT, 0, offsetof(type, page.offset), 0, INT64_C(1000000000) },               \
    { "filter", FIELD_STR, FIELD_NULLABLE, offsetof(type, page.filter), 0, 4096 },                 \
    { "order", FIELD_STR, FIELD_NULLABLE, offsetof(type, page.order), 0, 256 }
/* clang-format on */

void api_page_apply(const struct api_page *page, struct store_query *query);

/* Rows of 'list', which reads on a worker thread, or if it is not NULL of 'make',
 * which has them from memory and takes a few milliseconds of the loop at most.
 * 'write' writes a row, or nothing if it is gone by then.
 */
struct api_list;

/* Another form of the reply than {"items": [...], "total": N}. */
struct api_list_form {
    const char *type; /* media type */
    /* What comes before the rows, or a refusal: -EINVAL. */
    int (*begin)(const struct api_list *list, struct strbuf *out, struct aq_error *err);
};

struct api_list {
    const struct api *api;
    struct request *req;
    struct store_query query;
    int (*list)(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                struct aq_error *err);
    int (*make)(const struct api_list *list, struct store_page **ret, struct aq_error *err);
    void (*write)(const struct api_list *list, const struct store_page *page, size_t i,
                  struct jsonw *w);
    const char *one_of; /* "agent instance": the reply is the first row, or 404 without one */
    int status;         /* 0 = 200 */
    bool is_answer;     /* to a change that is saved: also where it took the caller's own right */
    const struct api_list_form *form; /* NULL = JSON; else 'write' appends to w->out */
    bool is_search;  /* the total is a member of "pagination", with limit and offset */
    uint64_t fields; /* members that 'write' writes; its own bits */
    struct store_page *page;

    struct turn turn;
    struct strbuf out; /* rows that are not sent yet */
    struct jsonw writer;
    size_t written;  /* rows */
    bool is_begun;   /* the first of them are sent */
    bool is_waiting; /* for the client to read */
};

/* Read a page on a worker thread and answer {"items": [...], "total": N}. 'list' is in
 * the request's arena, and so is what its query points to.
 */
void api_list_start(struct api_list *list);

/* A zeroed list in the request's arena. */
struct api_list *api_list_new(const struct api *api, struct request *req);

#endif
