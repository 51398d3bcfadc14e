/* SPDX-License-Identifier: Apache-2.0 */
/* POST /scheduling-history/sessions/search: what scheduling made of all sessions, as Backend.AI's
 * administrators ask it from 26 on.
 */
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "manager/call/export.h"
#include "manager/scheduling/scheduling_feature.h"

/* ---- rows ---- */

/* What is said to a user: of an attempt's detail its text, or that of its error. */
static void scheduling_history_write_message(const struct scheduling_row *row, struct jsonw *w)
{
    json_auto_t *detail = row->is_attempt && row->message ? json_load_string(row->message, 0)
                                                          : NULL;
    const char *text = json_string_value(json_object_get(detail, "text"));

    if (!text)
        text = json_string_value(json_object_get(json_object_get(detail, "error"), "repr"));
    jsonw_member_str(w, "message", text || row->is_attempt ? text : row->message);
}

static void scheduling_history_write(const struct api_list *list, const struct store_page *page,
                                     size_t i, struct jsonw *w)
{
    const struct scheduling_row *row = &page->scheduling[i];
    char id[UUID_TEXT_MAX], text[UUID_TEXT_MAX + 32];
    struct uuid own;

    (void)list;
    (void)snprintf(text, sizeof(text), "%s/%d/%lld", uuid_format(&row->session_id, id),
                   row->is_attempt, (long long)row->number);
    own = uuid_of_text(text);
    jsonw_object_begin(w);
    api_write_uuid(w, "id", &own);
    api_write_uuid(w, "session_id", &row->session_id);
    jsonw_member_str(w, "phase", row->phase);
    jsonw_member_str(w, "from_status", row->from_status);
    jsonw_member_str(w, "to_status", row->to_status);
    jsonw_member_str(w, "result", row->result);
    jsonw_member_str(w, "error_code", row->error_code);
    scheduling_history_write_message(row, w);
    jsonw_key(w, "sub_steps");
    jsonw_array_begin(w);
    jsonw_array_end(w);
    jsonw_member_int(w, "attempts", row->attempts);
    api_write_time(w, "created_at", row->first_usec);
    api_write_time(w, "updated_at", row->last_usec);
    jsonw_object_end(w);
}

/* ---- what is asked for ---- */

/* clang-format off */
#define FILTER(key, how) { key, .kind = EXPORT_HIDDEN, .field = (key), .test = EXPORT_##how }
/* clang-format on */

static const struct export_field scheduling_history_columns[] = {
    { "created_at", .field = "created_at" },
    { "updated_at", .field = "updated_at" },
    FILTER("session_id", TEXT),
    FILTER("phase", TEXT),
    FILTER("from_status", ANY),
    FILTER("to_status", ANY),
    FILTER("result", ANY),
    FILTER("error_code", TEXT),
    FILTER("message", TEXT),
};

static const struct export_report scheduling_history_report = {
    .fields = scheduling_history_columns,
    .field_count = AQ_COUNT(scheduling_history_columns),
};

struct scheduling_history_params {
    const json_t *filter, *order;
    int64_t limit, offset;
};

static const struct field scheduling_history_fields[] = {
    { "filter", FIELD_OBJECT, FIELD_NULLABLE, offsetof(struct scheduling_history_params, filter),
      .doc = "e.g. {\"session_id\": {\"equals\": id}, \"phase\": {\"contains\": text}, "
             "\"to_status\": [status, ...]}; also from_status, result, error_code, message" },
    { "order", FIELD_JSON, FIELD_NULLABLE, offsetof(struct scheduling_history_params, order),
      .doc =
          "[{\"field\": \"created_at\" or \"updated_at\", \"direction\": \"asc\" or \"desc\"}]" },
    { "limit", FIELD_INT, 0, offsetof(struct scheduling_history_params, limit), 1, API_LIST_MAX },
    { "offset", FIELD_INT, 0, offsetof(struct scheduling_history_params, offset), 0,
      INT64_C(1000000000) },
    FIELD_END,
};

static int scheduling_history_read(struct api_list *list, struct aq_error *err)
{
    struct scheduling_history_params params = { .limit = API_SEARCH_DEFAULT };
    json_auto_t *tree = NULL; /* of filter and order */
    int r = api_decode(list->req, &params, &tree, err);

    list->query.limit = params.limit;
    list->query.offset = params.offset;
    return r < 0 ? r
                 : export_read_query(&scheduling_history_report, params.filter, params.order,
                                     request_get_arena(list->req), &list->query, err);
}

static void scheduling_history_on_search(struct request *req, void *data)
{
    struct api_list *list = api_list_new(data, req);
    struct aq_error err = { 0 };

    if (scheduling_history_read(list, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    list->list = store_list_scheduling;
    list->write = scheduling_history_write;
    list->is_search = true;
    api_list_start(list);
}

static const struct route scheduling_history_routes[] = {
    { METHOD_POST, "/scheduling-history/sessions/search", API_SUPERADMIN,
      scheduling_history_on_search, scheduling_history_fields,
      "What scheduling made of sessions: their changes of status and failed attempts" },
};
API_ROUTES_END(scheduling_history);
