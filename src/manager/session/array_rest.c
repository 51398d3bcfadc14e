/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of sessions: list, show, say why, cancel. They are made by POST /session. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/vec.h"
#include "manager/call/list.h"
#include "manager/session/session.h"
#include "manager/session/session_feature.h"
#include "manager/session/session_view.h"
#include "store/array_list.h"

/* ---- as JSON ---- */

static const char *array_find_status(const struct session_array *a, const struct core_array *live)
{
    if (a->ended_usec)
        return a->cancelled_usec ? "CANCELLED" : "TERMINATED";
    if (a->cancelled_usec)
        return "TERMINATING";
    return live->running || a->outcomes[ARRAY_SUCCEEDED] || a->outcomes[ARRAY_FAILED] ? "RUNNING"
                                                                                      : "PENDING";
}

static const char *array_find_result(const struct session_array *a)
{
    enum session_result result = !a->ended_usec                            ? RESULT_UNDEFINED
                                 : a->outcomes[ARRAY_FAILED]               ? RESULT_FAILURE
                                 : a->outcomes[ARRAY_SUCCEEDED] == a->size ? RESULT_SUCCESS
                                                                           : RESULT_UNDEFINED;

    return session_result_name(result);
}

/* "NAME[0-99%8]": the texts of long sets are cut. */
static void array_write_label(const struct array_row *row, struct jsonw *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf label = STRBUF_INIT;

    session_array_label(row->array.name, row->indices, row->array.limit, &label);
    jsonw_member_str(w, "label", label.data);
}

/* Where they are: of those not made, and of those made. */
static void array_write_counts(const struct session_array *a, const struct core_array *live,
                               struct jsonw *w)
{
    int64_t ended = a->skipped;

    for (int i = 0; i < ARRAY_OUTCOME_COUNT; i++)
        ended += a->outcomes[i];
    jsonw_member_int(w, "size", a->size);
    jsonw_member_int(w, "waiting", AQ_MAX(a->size - ended - live->running, 0));
    jsonw_member_int(w, "running", live->running);
    jsonw_member_int(w, "succeeded", a->outcomes[ARRAY_SUCCEEDED]);
    jsonw_member_int(w, "failed", a->outcomes[ARRAY_FAILED]);
    jsonw_member_int(w, "cancelled", a->outcomes[ARRAY_CANCELLED] + a->skipped);
    jsonw_member_int(w, "made", a->made);
}

/* What the elements wait for, until that is met; of one that has ended, if it was read. */
static void array_write_dependencies(const struct core *core, const struct array_row *row,
                                     const struct core_array *live, struct jsonw *w)
{
    const struct session_array *a = row->dependency_count ? NULL : live->array;

    struct dependency_row *rows = row->dependencies;
    size_t count = row->dependency_count;

    if (a) {
        count = a->element.dependency_count;
        rows = aq_alloc_array(count, sizeof(*rows));
    }
    for (size_t i = 0; a && i < count; i++)
        core_get_array_dependency(core, a, i, &rows[i].dependency, &rows[i].name, &rows[i].number);
    jsonw_key(w, "dependencies");
    session_view_dependencies(rows, count, w);
    if (a)
        free(rows);
}

/* Of a live array which indices have no session yet: those from 'next_index' on that are not in
 * 'removed'; and what each element asks for.
 */
static void array_write_rest(const struct core *core, const struct session_array *a,
                             struct jsonw *w)
{
    const struct session *element = &a->element;
    AQ_CLEANUP(strbuf_donep) struct strbuf removed = STRBUF_INIT;
    AQ_CLEANUP(slots_donep) struct slots requested = { .items = NULL };
    int64_t next = session_array_first_unmade(a);
    int r = 0;

    array_set_write(&a->removed, &removed);
    for (size_t i = 0; i < element->kernel_count && r == 0; i++)
        r = slots_add(&requested, &element->kernels[i].requested);
    if (next < INT64_MAX)
        jsonw_member_int(w, "next_index", next);
    else
        jsonw_member_null(w, "next_index");
    jsonw_member_str(w, "removed", removed.len ? removed.data : NULL);
    jsonw_key(w, "requested_slots");
    slots_write_json(&requested, core_slot_types(core), w);
    jsonw_member_str(w, "reservation", element->spec ? element->spec->reservation : NULL);
    jsonw_member_int(w, "cluster_size", (int64_t)element->kernel_count);
    if (element->spec && element->spec->batch_timeout_usec)
        jsonw_member_int(w, "timeout_sec", element->spec->batch_timeout_usec / USEC_PER_SEC);
    else
        jsonw_member_null(w, "timeout_sec");
}

/* The row, or memory where that is newer. */
static void array_write(const struct core *core, const struct array_row *row, struct jsonw *w)
{
    struct core_array live;
    const struct session_array *a = core_get_array(core, &row->array.id, &live) ? live.array
                                                                                : &row->array;

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &row->array.id);
    jsonw_member_str(w, "name", row->array.name);
    jsonw_member_int(w, "number", row->array.row);
    array_write_label(row, w);
    jsonw_member_str(w, "indices", row->indices);
    if (row->array.limit)
        jsonw_member_int(w, "limit", row->array.limit);
    else
        jsonw_member_null(w, "limit");
    jsonw_member_str(w, "type", session_type_name(row->type));
    jsonw_member_str(w, "status", array_find_status(a, &live));
    jsonw_member_str(w, "result", array_find_result(a));
    array_write_counts(a, &live, w);
    jsonw_member_int(w, "priority", row->priority);
    jsonw_member_str(w, "image", row->image);
    jsonw_member_str(w, "tag", row->tag);
    jsonw_member_str(w, "user", row->user_email);
    jsonw_member_str(w, "group", row->project_name);
    jsonw_member_str(w, "domain", row->domain);
    jsonw_member_str(w, "access_key", row->access_key);
    jsonw_member_str(w, "resource_group", row->resource_group);
    array_write_dependencies(core, row, &live, w);
    if (live.array)
        array_write_rest(core, live.array, w);
    api_write_time(w, "created_at", row->array.created_usec);
    api_write_time(w, "terminated_at", a->ended_usec);
    jsonw_object_end(w);
}

void session_array_view(const struct core *core, const struct core_array *live, struct jsonw *w)
{
    const struct session *element = &live->array->element;
    const struct user *user = core_find_user(core, &element->user_id);
    const struct project *project = core_find_project(core, &element->project_id);
    AQ_CLEANUP(strbuf_donep) struct strbuf indices = STRBUF_INIT;

    array_set_write(&live->array->indices, &indices);
    array_write(core,
                &(struct array_row){
                    .array = *live->array,
                    .indices = indices.data,
                    .access_key = element->access_key,
                    .domain = element->domain,
                    .resource_group = element->resource_group,
                    .image = element->image,
                    .tag = element->tag,
                    .user_email = user ? user->email : NULL,
                    .project_name = project ? project->name : NULL,
                    .type = element->type,
                    .priority = element->priority,
                },
                w);
}

/* ---- list ---- */

struct array_list_params {
    struct api_page page;
    const char *status, *owner_access_key;
    bool all;
};

static const struct field array_list_fields[] = {
    { "status", FIELD_STR, FIELD_NULLABLE, offsetof(struct array_list_params, status), 0, 512,
      .doc = "of sessions, with commas between: live arrays for those that live, ended ones for "
             "those that have ended" },
    { "all", FIELD_BOOL, 0, offsetof(struct array_list_params, all),
      .doc = "everybody's; administrators" },
    OWNER_FIELD(struct array_list_params, owner_access_key),
    API_PAGE_FIELDS(struct array_list_params),
    FIELD_END,
};

static void array_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                            struct jsonw *w)
{
    array_write(list->api->core, &((const struct array_row *)page->rows)[i], w);
}

static void array_on_list(struct request *req, void *data)
{
    struct array_list_params params = { .page.limit = API_LIST_DEFAULT };
    struct api_list *list = api_list_new(data, req);
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || session_list_narrow(data, req, params.all, params.owner_access_key, params.status,
                               &list->query, &err)
               < 0) {
        request_fail(req, &err);
        return;
    }
    api_page_apply(&params.page, &list->query);
    list->list = store_list_arrays;
    list->write = array_write_row;
    api_list_start(list);
}

/* ---- one ---- */

/* By id, or the last one of this name. */
static void array_find(struct api *api, struct request *req,
                       void (*write)(const struct api_list *list, const struct store_page *page,
                                     size_t i, struct jsonw *w))
{
    const char *name = request_get_param(req, "name");
    struct api_list *list = api_list_new(api, req);
    struct owner_params params = { 0 };
    const struct keypair *owner;
    struct aq_error err = { 0 };
    struct uuid *ids = arena_alloc(request_get_arena(req), 2 * sizeof(*ids));

    if (api_decode(req, &params, NULL, &err) < 0
        || api_owner(api, req, params.owner_access_key, &owner, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    ids[1] = owner->user_id;
    list->query.user_id = &ids[1];
    list->query.limit = 1;
    list->query.with_dependencies = true;
    if (uuid_parse(name, &ids[0]) == 0) {
        list->query.ids = &ids[0];
        list->query.id_count = 1;
    } else {
        list->query.name = name;
    }
    list->list = store_list_arrays;
    list->one_of = "array";
    list->write = write;
    api_list_start(list);
}

static void array_on_show(struct request *req, void *data)
{
    array_find(data, req, array_write_row);
}

/* ---- why ---- */

/* What its first element waits for, and how many are left. */
static void array_explain(struct core *core, const struct core_array *live, struct strbuf *text,
                          struct strbuf *json)
{
    const struct session_array *a = live->array;
    int64_t left = a->size - a->made - a->skipped;

    strbuf_addf(text, "%" PRId64 " of %" PRId64 " elements run, %" PRId64 " wait", live->running,
                a->size, live->waiting + left);
    if (a->limit)
        strbuf_addf(text, "; %" PRId64 " may run at once", a->limit);
    strbuf_adds(text, ".\n");
    if (live->stop_text)
        strbuf_addf(text, "No further ones are queued now: %s\n", live->stop_text);
    if (live->first) {
        strbuf_addf(text, "%s: ", live->first->name);
        (void)core_explain(core, &live->first->id, text, json, NULL);
    }
}

static void array_explain_end(const struct array_row *row, struct strbuf *text)
{
    const struct session_array *a = &row->array;

    strbuf_addf(text,
                "It has ended: %" PRId64 " elements succeeded, %" PRId64 " failed, %" PRId64
                " were cancelled.",
                a->outcomes[ARRAY_SUCCEEDED], a->outcomes[ARRAY_FAILED],
                a->outcomes[ARRAY_CANCELLED] + a->skipped);
    for (size_t i = 0; i < row->dependency_count; i++) {
        const struct dependency_row *on = &row->dependencies[i];

        if (dependency_state(&on->dependency) != DEPENDENCY_UNMET)
            continue;
        strbuf_addf(text, " It waited for the %s of '%s",
                    dependency_condition_name(on->dependency.condition),
                    on->name ? on->name : "a removed session");
        if (on->dependency.is_array && on->dependency.element != DEPENDENCY_ALL)
            strbuf_addf(text, "[%" PRId64 "]", on->dependency.element);
        strbuf_adds(text, "', which was not met.");
    }
}

static void array_write_why(const struct api_list *list, const struct store_page *page, size_t i,
                            struct jsonw *w)
{
    const struct session_array *a = &((const struct array_row *)page->rows)[i].array;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
    struct core_array live;

    if (core_get_array(list->api->core, &a->id, &live)) {
        a = live.array;
        array_explain(list->api->core, &live, &text, &json);
    } else {
        array_explain_end(&((const struct array_row *)page->rows)[i], &text);
    }
    jsonw_object_begin(w);
    jsonw_member_str(w, "status", array_find_status(a, &live));
    jsonw_member_str(w, "text", text.data);
    if (live.first)
        jsonw_member_str(w, "session", live.first->name);
    else
        jsonw_member_null(w, "session");
    api_write_raw(w, "explanation", json.len ? json.data : "null");
    jsonw_object_end(w);
}

static void array_on_why(struct request *req, void *data)
{
    array_find(data, req, array_write_why);
}

/* ---- cancel ---- */

struct array_cancel_params {
    const char *owner_access_key, *elements;
    bool forced, recursive;
};

static const struct field array_cancel_fields[] = {
    OWNER_FIELD(struct array_cancel_params, owner_access_key),
    { "elements", FIELD_STR, FIELD_NULLABLE, offsetof(struct array_cancel_params, elements), 1,
      ARRAY_TEXT_MAX, .doc = "indices, as in 0-9,12; default: all, and no others are made" },
    { "forced", FIELD_BOOL, 0, offsetof(struct array_cancel_params, forced),
      .doc = "without grace; administrators" },
    { "recursive", FIELD_BOOL, 0, offsetof(struct array_cancel_params, recursive),
      .doc = "also what waits for it or these elements, and for that" },
    FIELD_END,
};

/* Of the owner, by id or name. */
static const struct session_array *array_find_live(const struct core *core,
                                                   const struct keypair *owner, const char *name)
{
    struct core_array live;
    struct uuid id;

    if (uuid_parse(name, &id) < 0)
        return core_find_array_named(core, &owner->user_id, name);
    return core_get_array(core, &id, &live)
                   && uuid_equals(&live.array->element.user_id, &owner->user_id)
               ? live.array
               : NULL;
}

struct array_cancel {
    struct request *req;
    size_t waiting; /* answers: of the array, and of what depends on it */
    struct aq_error err;
};

static void array_on_cancelled(void *data, int r, const struct aq_error *err)
{
    struct array_cancel *cancel = data;

    if (r < 0 && !cancel->err.code)
        cancel->err = *err;
    if (--cancel->waiting)
        return;
    AQ_FAULT("api.array.cancelled");
    if (cancel->err.code)
        request_fail(cancel->req, &cancel->err);
    else
        request_reply_empty(cancel->req, 204);
}

/* What has ended meanwhile is as good as ended by us. */
static void array_on_dependent_ended(void *data, int r, const struct aq_error *err)
{
    array_on_cancelled(data, r == -ENOENT ? 0 : r, err);
}

/* The array as a whole, or each element that is named and exists. */
static void array_cancel_dependents(const struct api *api, struct array_cancel *cancel,
                                    const struct session_array *a, const struct array_set *elements,
                                    bool forced)
{
    struct array_cursor c = array_set_seek(elements, 0);
    struct session_dependency *roots = NULL;
    size_t count = 0, cap = 0;
    int64_t index = DEPENDENCY_ALL;

    if (elements->count)
        index = array_cursor_next(&c);
    do {
        if (index != DEPENDENCY_ALL && !array_set_has(&a->indices, index))
            continue;
        vec_grow(&roots, &cap, count + 1, sizeof(*roots));
        roots[count++] = (struct session_dependency){ .id = a->id,
                                                      .is_array = true,
                                                      .element = index };
    } while (elements->count && (index = array_cursor_next(&c)) >= 0);
    cancel->waiting += session_end_dependents(api, cancel->req, roots, count, forced,
                                              array_on_dependent_ended, cancel);
    free(roots);
}

static int array_read_cancel(const struct api *api, const struct request *req,
                             const struct array_cancel_params *params,
                             const struct session_array **ret, struct array_set *ret_elements,
                             struct aq_error *err)
{
    const char *name = request_get_param(req, "name");
    const struct keypair *owner;
    int r = api_owner(api, req, params->owner_access_key, &owner, err);

    if (r == 0 && params->forced && !principal_may(api_principal(req)->role, API_ADMIN))
        r = aq_fail_kind(err, EPERM, "insufficient-privilege",
                         "only administrators may end an array by force");
    if (r == 0 && params->elements)
        r = array_set_parse(params->elements, core_array_size_max(api->core), ret_elements, NULL,
                            err);
    if (r == 0 && !(*ret = array_find_live(api->core, owner, name)))
        r = problem_no_such(err, "array", "no live array is called '%.100s'", name);
    return r;
}

static void array_on_cancel(struct request *req, void *data)
{
    AQ_CLEANUP(array_set_done) struct array_set elements = { 0 };
    struct array_cancel_params params = { .forced = false };
    const struct session_array *a;
    struct array_cancel *cancel;
    struct aq_error err = { 0 };
    const struct api *api = data;

    if (api_decode(req, &params, NULL, &err) < 0
        || array_read_cancel(api, req, &params, &a, &elements, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    cancel = arena_alloc(request_get_arena(req), sizeof(*cancel));
    *cancel = (struct array_cancel){ .req = req, .waiting = 1 };
    if (params.recursive)
        array_cancel_dependents(api, cancel, a, &elements, params.forced);
    core_cancel_array(api->core, &a->id, params.elements ? &elements : NULL, params.forced,
                      api_who(api, req), array_on_cancelled, cancel);
}

static const struct route array_routes[] = {
    { METHOD_GET, "/aliquot/v1/arrays", API_USER, array_on_list, array_list_fields,
      "List arrays of sessions" },
    { METHOD_GET, "/aliquot/v1/arrays/{name}", API_USER, array_on_show, owner_fields,
      "Show an array" },
    { METHOD_GET, "/aliquot/v1/arrays/{name}/why", API_USER, array_on_why, owner_fields,
      "Why elements of an array wait" },
    { METHOD_DELETE, "/aliquot/v1/arrays/{name}", API_USER | API_FREEZABLE, array_on_cancel,
      array_cancel_fields, "Cancel an array, or elements of it", .answer = { 204 } },
};
API_ROUTES_END(array);
