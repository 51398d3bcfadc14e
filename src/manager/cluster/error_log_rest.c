/* SPDX-License-Identifier: Apache-2.0 */
/* /logs/error: clients report what went wrong in them; users see their own reports,
 * administrators those of whom they look after.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/cluster/cluster_feature.h"
#include "manager/call/turns.h"
#include "store/error_log.h"

/* ---- a new one ---- */

struct error_log_params {
    const char *severity, *source, *message, *context_lang, *request_url, *traceback;
    const json_t *context_env;
    int64_t request_status;
};

#define AT(member) offsetof(struct error_log_params, member)

static const struct field error_log_fields[] = {
    { "severity", FIELD_STR, FIELD_REQUIRED, AT(severity), 1, 16,
      .doc = "critical, error or warning" },
    { "source", FIELD_STR, FIELD_REQUIRED, AT(source), 1, 64 },
    { "message", FIELD_STR, FIELD_REQUIRED, AT(message), 1, 4096 },
    { "context_lang", FIELD_STR, FIELD_REQUIRED, AT(context_lang), 1, 64 },
    { "context_env", FIELD_JSON, FIELD_REQUIRED, AT(context_env), .doc = "4 KiB at most" },
    { "request_url", FIELD_STR, FIELD_NULLABLE, AT(request_url), 0, 2048 },
    { "request_status", FIELD_INT, FIELD_NULLABLE, AT(request_status), 100, 999 },
    { "traceback", FIELD_STR, FIELD_NULLABLE, AT(traceback), 0, 16384 },
    FIELD_END,
};

#define ENV_MAX 4096
#define BODY_MAX (64 << 10)

struct error_log_new {
    struct request *req;
    struct error_log entry;
};

/* store_tx_fn */
static int error_log_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    return error_log_add(tx, &((struct error_log_new *)data)->entry, err);
}

static void error_log_reply_success(struct request *req)
{
    static const char success[] = "{\"success\":true}";

    request_reply(req, 200, "application/json", success, sizeof(success) - 1);
}

static void error_log_on_written(void *data, int r, const struct aq_error *err)
{
    struct error_log_new *fresh = data;

    if (r < 0)
        request_fail(fresh->req, err);
    else
        error_log_reply_success(fresh->req);
}

/* In lower case, as clients show it; -EINVAL. */
static int error_log_read_severity(const char *text, const char **ret, struct aq_error *err)
{
    static const char *const severities[] = { "critical", "error", "warning" };

    for (size_t i = 0; i < AQ_COUNT(severities); i++)
        if (strcasecmp(text, severities[i]) == 0) {
            *ret = severities[i];
            return 0;
        }
    return api_fail_param(err, "severity", "must be critical, error or warning");
}

static int error_log_read_env(struct request *req, const json_t *env, const char **ret,
                              struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(env, JSON_COMPACT | JSON_ENCODE_ANY);

    if (strlen(text) > ENV_MAX)
        return api_fail_param(err, "context_env", "has more than %d bytes", ENV_MAX);
    *ret = arena_strdup(request_get_arena(req), text);
    return 0;
}

static void error_log_on_append(struct request *req, void *data)
{
    struct error_log_new *fresh = arena_alloc(request_get_arena(req), sizeof(*fresh));
    struct error_log_params params = { .severity = NULL };
    const struct api *api = data;
    json_auto_t *tree = NULL;
    struct aq_error err = { 0 };
    struct error_log *entry;

    if (api_decode(req, &params, &tree, &err) < 0
        || error_log_read_severity(params.severity, &fresh->entry.severity, &err) < 0
        || error_log_read_env(req, params.context_env, &fresh->entry.context_env, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    fresh->req = req;
    entry = &fresh->entry;
    entry->id = uuid_random();
    entry->user_id = api_principal(req)->user_id;
    entry->at_usec = clock_realtime_usec();
    entry->source = params.source;
    entry->message = params.message;
    entry->context_lang = params.context_lang;
    entry->request_url = params.request_url;
    entry->request_status = params.request_status;
    entry->traceback = params.traceback;
    store_write(core_store(api->core), error_log_write, error_log_on_written, fresh);
}

/* ---- the list ---- */

struct list_params {
    bool mark_read;
    int64_t page_size, page_no;
};

static const struct field list_fields[] = {
    { "mark_read", FIELD_BOOL, 0, offsetof(struct list_params, mark_read),
      .doc = "those that are shown are read from now on" },
    { "page_size", FIELD_INT, 0, offsetof(struct list_params, page_size), 1, 100 },
    { "page_no", FIELD_INT, 0, offsetof(struct list_params, page_no), 1, 1000000, .doc = "from 1" },
    FIELD_END,
};

struct error_log_list {
    const struct api *api;
    struct request *req;
    struct turn turn;
    struct store_query query;
    bool marks;
    struct store_page *page;
};

/* Own ones; of a domain's administrator that domain's, of a superadmin all. */
static void error_log_narrow(const struct principal *who, const struct uuid **ret_user,
                             const char **ret_domain)
{
    if (who->role == ROLE_ADMIN)
        *ret_domain = who->domain ? who->domain : "-";
    else if (who->role != ROLE_SUPERADMIN)
        *ret_user = &who->user_id;
}

/* store_tx_fn */
static int error_log_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct error_log_list *list = data;
    int r = store_list_error_logs(tx, &list->query, &list->page, err);

    return r == 0 && list->marks ? error_log_mark_read(tx, list->page, err) : r;
}

static void error_log_write_row(const struct error_log *e, struct jsonw *w)
{
    jsonw_object_begin(w);
    api_write_uuid(w, "log_id", &e->id);
    jsonw_key(w, "created_at");
    jsonw_double(w, (double)e->at_usec / (double)USEC_PER_SEC);
    jsonw_member_str(w, "severity", e->severity);
    jsonw_member_str(w, "source", e->source);
    api_write_uuid(w, "user", &e->user_id);
    jsonw_member_bool(w, "is_read", e->is_read);
    jsonw_member_str(w, "message", e->message);
    jsonw_member_str(w, "context_lang", e->context_lang);
    api_write_raw(w, "context_env", e->context_env);
    jsonw_member_str(w, "request_url", e->request_url);
    if (e->request_status)
        jsonw_member_int(w, "request_status", e->request_status);
    else
        jsonw_member_null(w, "request_status");
    jsonw_member_str(w, "traceback", e->traceback);
    jsonw_object_end(w);
}

static void error_log_on_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct error_log_list *list = data;
    struct turn_queue *turns = list->api->turns;
    struct uuid user_id = api_principal(list->req)->user_id;
    const struct error_log *rows = list->page ? list->page->rows : NULL;
    struct store_page *page = list->page;
    struct jsonw w = jsonw_make(&out);

    if (r < 0) {
        request_fail(list->req, err);
    } else {
        jsonw_object_begin(&w);
        jsonw_key(&w, "logs");
        jsonw_array_begin(&w);
        for (size_t i = 0; i < page->count; i++)
            error_log_write_row(&rows[i], &w);
        jsonw_array_end(&w);
        jsonw_member_int(&w, "count", page->total);
        jsonw_object_end(&w);
        request_reply_json(list->req, 200, &out);
    }
    store_page_free(page);
    turns_leave(turns, &user_id);
}

static void error_log_on_turn(struct turn *turn)
{
    struct error_log_list *list = AQ_CONTAINER_OF(turn, struct error_log_list, turn);
    struct store *store = core_store(list->api->core);
    struct aq_error err = { 0 };

    if (api_check_caller(list->api, list->req, &err) < 0)
        error_log_on_read(list, -err.code, &err);
    else if (list->marks)
        store_write(store, error_log_read, error_log_on_read, list);
    else
        store_read(store, error_log_read, error_log_on_read, list);
}

static void error_log_on_list(struct request *req, void *data)
{
    struct error_log_list *list = arena_alloc(request_get_arena(req), sizeof(*list));
    struct list_params params = { .page_size = 20, .page_no = 1 };
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    list->api = api;
    list->req = req;
    list->marks = params.mark_read;
    list->turn.fn = error_log_on_turn;
    list->query.limit = params.page_size;
    list->query.offset = (params.page_no - 1) * params.page_size;
    error_log_narrow(api_principal(req), &list->query.user_id, &list->query.domain);
    if (turns_enter(api->turns, request_get_loop(req), &api_principal(req)->user_id, &list->turn,
                    &err)
        < 0)
        request_fail(req, &err);
}

/* ---- clearing one ---- */

struct error_log_clearing {
    struct request *req;
    struct uuid id;
    const struct uuid *user_id;
    const char *domain;
};

/* store_tx_fn */
static int error_log_write_clear(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct error_log_clearing *clearing = data;
    int r = error_log_clear(tx, &clearing->id, clearing->user_id, clearing->domain, err);

    return r == 0 ? problem_no_such(err, "error log", "there is no such error log") : AQ_MIN(r, 0);
}

static void error_log_on_cleared(void *data, int r, const struct aq_error *err)
{
    struct error_log_clearing *clearing = data;

    if (r < 0)
        request_fail(clearing->req, err);
    else
        error_log_reply_success(clearing->req);
}

static void error_log_on_clear(struct request *req, void *data)
{
    struct error_log_clearing *clearing = arena_alloc(request_get_arena(req), sizeof(*clearing));
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    if (uuid_parse(request_get_param(req, "log_id"), &clearing->id) < 0) {
        problem_no_such(&err, "error log", "there is no such error log");
        request_fail(req, &err);
        return;
    }
    clearing->req = req;
    error_log_narrow(api_principal(req), &clearing->user_id, &clearing->domain);
    store_write(core_store(api->core), error_log_write_clear, error_log_on_cleared, clearing);
}

static const struct route error_log_routes[] = {
    { METHOD_POST, "/logs/error", API_USER, error_log_on_append, error_log_fields,
      "Report what went wrong in a client", 0, BODY_MAX },
    { METHOD_GET, "/logs/error", API_USER, error_log_on_list, list_fields,
      "What went wrong in clients, the newest first" },
    { METHOD_POST, "/logs/error/{log_id}/clear", API_USER, error_log_on_clear, NULL,
      "Clear an error report" },
};
API_ROUTES_END(error_log);
