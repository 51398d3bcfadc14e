/* SPDX-License-Identifier: Apache-2.0 */
/* GET /aliquot/v1/sessions: lists, also of what has ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/session/session_feature.h"
#include "manager/session/session.h"
#include "manager/call/list.h"
#include "manager/session/session_live.h"
#include "manager/session/session_view.h"
#include "store/query.h"

/* Rows without texts of any length take 2 KiB of memory each, their part of the answer
 * included: so many are bounded. A list of all sessions is then one page, which is
 * sorted once.
 */
#define SHORT_ROWS_MAX 20000

struct session_list_params {
    struct api_page page;
    const char *status, *owner_access_key, *fields, *array;
    bool all;
};

static const struct field list_fields[] = {
    { "status", FIELD_STR, FIELD_NULLABLE, offsetof(struct session_list_params, status), 0, 512,
      .doc = "names with commas between" },
    { "all", FIELD_BOOL, 0, offsetof(struct session_list_params, all),
      .doc = "everybody's; administrators" },
    OWNER_FIELD(struct session_list_params, owner_access_key),
    { "fields", FIELD_STR, FIELD_NULLABLE, offsetof(struct session_list_params, fields), 0, 512,
      .doc = "names with commas between: rows have only these members" },
    { "array", FIELD_STR, FIELD_NULLABLE, offsetof(struct session_list_params, array), 1, 64,
      .doc = "id of an array: its elements alone; none: no elements of arrays" },
    API_PAGE_FIELDS_UP_TO(struct session_list_params, SHORT_ROWS_MAX),
    FIELD_END,
};

static void session_list_write_row(const struct api_list *list, const struct store_page *page,
                                   size_t i, struct jsonw *w)
{
    session_view_own(api_principal(list->req), list->api->core, &page->sessions[i], list->fields,
                     w);
}

/* ---- those that live, from memory ---- */

static int session_list_make_live(const struct api_list *list, struct store_page **ret,
                                  struct aq_error *err)
{
    struct store_page *page = aq_alloc(sizeof(*page));
    struct session_live *items;

    (void)err;
    session_live_list(list->api->core, &list->query, &page->arena, &items, &page->count,
                      &page->total); /* the arena has no limit */
    page->rows = items;
    *ret = page;
    return 0;
}

static void session_list_write_live(const struct api_list *list, const struct store_page *page,
                                    size_t i, struct jsonw *w)
{
    const struct core *core = list->api->core;
    const struct session_live *item = &((const struct session_live *)page->rows)[i];
    const struct session *s = core_find_session(core, &item->id);
    struct kernel_row main;
    struct session_row row;

    if (!s)
        return;
    session_view_fill_live(s, &main, &row);
    session_view_own(api_principal(list->req), core, &row, list->fields, w);
    if (row.kernels != &main)
        free(row.kernels);
}

/* Memory has all that is asked for. */
static bool session_list_is_live(const struct api *api, const struct store_query *q)
{
    return !q->with_scheduled
           && (q->detail == STORE_SESSION_BRIEF || q->detail == STORE_SESSION_BARE)
           && session_live_is_known(api->core, q);
}

/* ---- the request ---- */

static int session_list_read_fields(const struct session_list_params *params, struct api_list *list,
                                    struct aq_error *err)
{
    int r;

    list->fields = SESSION_FIELDS_ALL;
    if (params->fields && (r = session_view_read_fields(params->fields, &list->fields, err)) < 0)
        return r;
    if (params->page.limit > API_LIST_MAX && !session_view_is_short(list->fields))
        return api_fail_param(err, "limit",
                              "at most %d, unless 'fields' leaves out text, wait_for_capacity, "
                              "timeout_sec, ends_by and kernels",
                              API_LIST_MAX);
    session_view_apply_fields(list->fields, &list->query);
    return 0;
}

int session_list_narrow(const struct api *api, struct request *req, bool all,
                        const char *owner_access_key, const char *status, struct store_query *query,
                        struct aq_error *err)
{
    const struct principal *who = api_principal(req);
    const struct keypair *owner;
    int r;

    if (all && !principal_may(who->role, API_ADMIN))
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "only administrators may list everybody's sessions");
    if (all && !owner_access_key) {
        query->domain = principal_is_superadmin(who) ? NULL : who->domain;
    } else {
        if ((r = api_owner(api, req, owner_access_key, &owner, err)) < 0)
            return r;
        query->access_key = arena_strdup(request_get_arena(req), owner->access_key);
    }
    return status ? session_view_read_statuses(who, status, &query->statuses, err) : 0;
}

/* Those of one array, or of none. */
static int session_list_choose_elements(struct request *req,
                                        const struct session_list_params *params,
                                        struct store_query *query, struct aq_error *err)
{
    struct uuid *id;

    if (!params->array)
        return 0;
    query->no_elements = strcmp(params->array, "none") == 0;
    if (query->no_elements)
        return 0;
    id = arena_alloc(request_get_arena(req), sizeof(*id));
    if (uuid_parse(params->array, id) < 0)
        return api_fail_param(err, "array", "must be the id of an array, or none");
    query->array_id = id;
    return 0;
}

static void session_list_on_list(struct request *req, void *data)
{
    struct session_list_params params = { .page.limit = API_LIST_DEFAULT };
    struct api_list *list = api_list_new(data, req);
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || session_list_read_fields(&params, list, &err) < 0
        || session_list_narrow(data, req, params.all, params.owner_access_key, params.status,
                               &list->query, &err)
               < 0
        || session_list_choose_elements(req, &params, &list->query, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    api_page_apply(&params.page, &list->query);
    list->list = store_list_sessions;
    list->write = session_list_write_row;
    if (session_list_is_live(data, &list->query)) {
        list->make = session_list_make_live;
        list->write = session_list_write_live;
    }
    api_list_start(list);
}

static const struct route session_list_routes[] = {
    { METHOD_GET, "/aliquot/v1/sessions", API_USER, session_list_on_list, list_fields,
      "List sessions" },
};
API_ROUTES_END(session_list);
