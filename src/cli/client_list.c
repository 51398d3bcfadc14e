/* SPDX-License-Identifier: Apache-2.0 */
/* Lists from the manager: pages, one after another, while they come. */
#include <string.h>

#include "cli/client.h"

/* A page while it comes. */
struct client_list_page {
    struct strbuf text;
    cli_page_fn *take;
    void *data;
    size_t *rows, *total;
    int result; /* of 'take' */
    struct aq_error err;
};

static int client_list_on_page(void *data, const char *bytes, size_t len)
{
    struct client_list_page *page = data;

    strbuf_add(&page->text, bytes, len);
    if (page->result == 0)
        page->result = page->take(page->data, page->text.data, page->text.len, false, page->rows,
                                  page->total, &page->err);
    return 0;
}

static int client_list_finish_page(struct client_list_page *page, struct aq_error *err)
{
    if (page->result == 0)
        return page->take(page->data, page->text.data, page->text.len, true, page->rows,
                          page->total, err);
    *err = page->err;
    return page->result;
}

/* The page that begins at 'offset', to 'take'. */
static int client_list_fetch_page(struct cli *cli, const char *path, size_t wanted, size_t offset,
                                  cli_page_fn *take, void *data, size_t *ret_rows,
                                  size_t *ret_total, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf full = STRBUF_INIT;
    struct client_list_page page = { STRBUF_INIT, take, data, ret_rows, ret_total, 0, { 0 } };
    struct client_reply reply = CLIENT_REPLY_INIT;
    int r;

    strbuf_addf(&full, "%s%climit=%zu&offset=%zu", path, strchr(path, '?') ? '&' : '?', wanted,
                offset);
    r = cli_fetch_body(cli, METHOD_GET, full.data, NULL, client_list_on_page, &page, &reply, err);
    if (r == 0)
        r = cli_check_status(cli, &reply, err);
    if (r == 0)
        r = client_list_finish_page(&page, err);
    client_reply_done(&reply);
    strbuf_done(&page.text);
    return r;
}

int cli_call_pages(struct cli *cli, const char *path, size_t page, size_t limit, cli_page_fn *take,
                   void *data, size_t *ret_total, struct aq_error *err)
{
    size_t have = 0, total = 0, rows = 0, wanted;
    int r;

    do {
        wanted = limit ? AQ_MIN(limit - have, page) : page;
        r = client_list_fetch_page(cli, path, wanted, have, take, data, &rows, &total, err);
        if (r < 0)
            return r;
        have += rows;
    } while (rows == wanted && have < total && (!limit || have < limit));
    if (ret_total)
        *ret_total = total;
    return 0;
}

struct client_list_rows {
    const struct cli *cli;
    json_t *rows;
};

static int client_list_take_rows(void *data, const char *text, size_t len, bool is_whole,
                                 size_t *ret_rows, size_t *ret_total, struct aq_error *err)
{
    struct client_list_rows *all = data;
    json_error_t where;
    json_t *page = is_whole ? json_loadb(text, len, JSON_DECODE_ANY, &where) : NULL;
    json_t *items = json_object_get(page, "items");

    if (!is_whole)
        return 0;
    if (!page)
        return cli_fail_answer(all->cli, where.text, err);
    *ret_rows = json_array_size(items);
    *ret_total = (size_t)json_integer_value(json_object_get(page, "total"));
    (void)json_array_extend(all->rows, items);
    json_decref(page);
    return 0;
}

int cli_call_list(struct cli *cli, const char *path, size_t page, size_t limit, json_t **ret,
                  size_t *ret_total, struct aq_error *err)
{
    struct client_list_rows all = { cli, json_array() };
    int r = cli_call_pages(cli, path, page, limit, client_list_take_rows, &all, ret_total, err);

    if (r < 0)
        json_decref(all.rows);
    else
        *ret = all.rows;
    return r;
}
