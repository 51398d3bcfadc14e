/* SPDX-License-Identifier: Apache-2.0 */
/* When a session was in which state. */
#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/session/session_feature.h"
#include "manager/session/session.h"
#include "manager/session/session_view.h"
#include "store/query.h"

struct history {
    struct request *req;
    struct uuid id;
    void (*write)(const struct history *history, struct jsonw *w);
    struct store_page *page, *attempts;
};

static int session_history_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct history *history = data;
    int r = store_list_history(tx, &history->id, &history->page, err);

    if (r == 0 && (r = store_list_attempts(tx, &history->id, &history->attempts, err)) < 0)
        store_page_free(AQ_TAKE(history->page));
    return r;
}

/* {"preparing": when it was last entered, ...}. States that this client takes
 * for one and that follow each other count as one.
 */
static json_t *session_history_write_object(const struct principal *who,
                                            const struct store_page *page)
{
    json_t *object = json_object();
    const char *before = "";

    for (size_t i = 0; i < page->count; i++) {
        const struct history_row *row = &page->history[i];
        char lower[32] = "", iso[CLOCK_ISO_MAX];
        enum session_status status;
        const char *name;

        if (row->is_kernel || session_status_parse(row->status, &status) < 0)
            continue;
        name = session_view_status(who, status);
        for (size_t c = 0; name[c] && c + 1 < sizeof(lower); c++)
            lower[c] = (char)tolower((unsigned char)name[c]);
        if (strcmp(name, before) != 0)
            json_object_set_new(object, lower, json_string(clock_format_iso(row->at_usec, iso)));
        before = name;
    }
    /* Clients reckon from "preparing"; a session that was quick never showed it. */
    if (!json_object_get(object, "preparing"))
        json_object_set(object, "preparing", json_object_get(object, "scheduled"));
    return object;
}

static void session_history_write_statuses(const struct history *history, struct jsonw *w)
{
    json_auto_t *object = session_history_write_object(api_principal(history->req), history->page);
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(object, JSON_COMPACT);

    jsonw_object_begin(w);
    api_write_raw(w, "result", text);
    jsonw_object_end(w);
}

static void session_history_write_change(const struct history_row *row, struct jsonw *w)
{
    jsonw_object_begin(w);
    api_write_time(w, "at", row->at_usec);
    jsonw_member_str(w, "status", row->status);
    jsonw_member_str(w, "reason", row->reason);
    if (row->is_kernel)
        jsonw_member_int(w, "kernel", row->kernel_rank);
    else
        jsonw_member_null(w, "kernel");
    jsonw_object_end(w);
}

static void session_history_write_attempt(const struct attempt_row *row, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "kind", row->kind);
    api_write_time(w, "first_at", row->first_usec);
    api_write_time(w, "last_at", row->last_usec);
    jsonw_member_int(w, "attempts", row->count);
    api_write_raw(w, "detail", row->detail);
    jsonw_object_end(w);
}

/* Every change, also of the kernels, in our own form, and what the scheduler made of it. */
static void session_history_write_changes(const struct history *history, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_key(w, "items");
    jsonw_array_begin(w);
    for (size_t i = 0; i < history->page->count; i++)
        session_history_write_change(&history->page->history[i], w);
    jsonw_array_end(w);
    jsonw_key(w, "scheduling");
    jsonw_array_begin(w);
    for (size_t i = 0; i < history->attempts->count; i++)
        session_history_write_attempt(&history->attempts->attempts[i], w);
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static void session_history_on_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct history *history = data;

    if (r < 0) {
        request_fail(history->req, err);
        return;
    }
    history->write(history, &w);
    store_page_free(history->page);
    store_page_free(history->attempts);
    request_reply_json(history->req, 200, &out);
}

static void session_history_start(const struct api *api, struct request *req,
                                  const struct session_row *row,
                                  void (*write)(const struct history *, struct jsonw *))
{
    struct history *history = arena_alloc(request_get_arena(req), sizeof(*history));

    *history = (struct history){ .req = req, .id = row->session.id, .write = write };
    store_read(core_store(api->core), session_history_read, session_history_on_read, history);
}

static void session_history_on_found(struct request *req, const struct session_row *row, void *data)
{
    session_history_start(data, req, row, session_history_write_statuses);
}

static void session_history_on_found_own(struct request *req, const struct session_row *row,
                                         void *data)
{
    session_history_start(data, req, row, session_history_write_changes);
}

static void session_history_on_statuses(struct request *req, void *data)
{
    session_find_by_owner(data, req, session_history_on_found);
}

static void session_history_on_list(struct request *req, void *data)
{
    session_find_by_owner(data, req, session_history_on_found_own);
}

static const struct route session_history_routes[] = {
    { METHOD_GET, "/session/{name}/status-history", API_USER, session_history_on_statuses,
      owner_fields, "When a session entered each of its states" },
    { METHOD_GET, "/aliquot/v1/sessions/{name}/history", API_USER, session_history_on_list,
      owner_fields,
      "Every change of a session and its kernels, and what the scheduler made of it" },
};
API_ROUTES_END(session_history);
