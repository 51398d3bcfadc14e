/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of bookings. Live ones are in memory; finished ones are read from the store. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "manager/booking/booking_feature.h"
#include "manager/booking/booking_params.h"
#include "manager/booking/booking_view.h"
#include "manager/call/repeat.h"
#include "manager/core/bookings.h"
#include "store/booking.h"
#include "store/resource_group_access.h"

struct booking_list_params {
    bool all;
    int64_t limit, offset;
};

struct booking_cancel_params {
    const char *reason;
};

static const struct field booking_list_fields[] = {
    { "all", FIELD_BOOL, 0, offsetof(struct booking_list_params, all),
      .doc = "also those that have ended, were released or canceled" },
    { "limit", FIELD_INT, 0, offsetof(struct booking_list_params, limit), 1, 1000 },
    { "offset", FIELD_INT, 0, offsetof(struct booking_list_params, offset), 0, 1000000 },
    FIELD_END,
};

static const struct field booking_cancel_fields[] = {
    { "reason", FIELD_STR, FIELD_NULLABLE | FIELD_LINE,
      offsetof(struct booking_cancel_params, reason), 0, 256, .doc = "for people" },
    FIELD_END,
};

/* A request that waits for the store; in the request's arena. */
struct booking_call {
    struct api *api;
    struct request *req;
    struct booking_list_params list;
    const char *name;         /* the one that is wanted; NULL = all */
    struct booking_rows rows; /* that have finished */
    struct booking made;      /* to be created or changed; empty = none */
    bool is_new;
    struct core_answered answered; /* of a new one */
    const char *answer;
    struct aq_error err; /* why it was refused */
    char id[UUID_TEXT_MAX], resource_group[65];
};

static struct booking_call *booking_call_new(struct api *api, struct request *req)
{
    struct booking_call *call = arena_alloc(request_get_arena(req), sizeof(*call));

    *call = (struct booking_call){ .api = api, .req = req, .list = { .limit = 1000 } };
    return call;
}

static void booking_set_unknown(const char *name, struct aq_error *ret)
{
    problem_no_such(ret, "reservation", "there is no reservation '%.64s'", name);
}

static void booking_fail_unknown(struct request *req, const char *name)
{
    struct aq_error err = { 0 };

    booking_set_unknown(name, &err);
    request_fail(req, &err);
}

/* ---- lists ---- */

static int booking_compare(const void *a, const void *b)
{
    const struct booking *x = *(const struct booking *const *)a;
    const struct booking *y = *(const struct booking *const *)b;
    int r = (x->starts_usec > y->starts_usec) - (x->starts_usec < y->starts_usec);

    return r ? r : uuid_compare(&x->id, &y->id);
}

static void booking_reply_list(struct booking_call *call)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct booking **found = arena_array(request_get_arena(call->req),
                                               BOOKING_LIVE_MAX + call->rows.count + 1,
                                               sizeof(const struct booking *));
    const struct booking *b = NULL;
    size_t count = 0;

    while (count < BOOKING_LIVE_MAX && (b = core_next_booking(call->api->core, b)))
        if (booking_view_may_see(call->api, call->req, b))
            found[count++] = b;
    for (size_t i = 0; i < call->rows.count; i++)
        if (booking_view_may_see(call->api, call->req, &call->rows.items[i]))
            found[count++] = &call->rows.items[i];
    if (count)
        qsort(found, count, sizeof(const struct booking *), booking_compare);
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = (size_t)call->list.offset, left = (size_t)call->list.limit; i < count && left;
         i++, left--)
        booking_view_write(call->api, call->req, found[i], false, &w);
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", (int64_t)count);
    jsonw_object_end(&w);
    request_reply_json(call->req, 200, &out);
}

/* store_tx_fn */
static int booking_read_finished(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct booking_call *call = data;

    booking_rows_done(&call->rows); /* of a try before */
    return store_read_finished_bookings(tx, call->name, &call->rows, err);
}

static void booking_on_list_read(void *data, int r, const struct aq_error *err)
{
    struct booking_call *call = data; /* gone with the request once that is answered */
    struct booking_rows rows = call->rows;

    if (r < 0)
        request_fail(call->req, err);
    else
        booking_reply_list(call);
    booking_rows_done(&rows);
}

static void booking_on_list(struct request *req, void *data)
{
    struct booking_call *call = booking_call_new(data, req);
    struct aq_error err = { 0 };

    if (api_decode(req, &call->list, NULL, &err) < 0)
        request_fail(req, &err);
    else if (call->list.all)
        store_read(core_store(call->api->core), booking_read_finished, booking_on_list_read, call);
    else
        booking_reply_list(call);
}

/* ---- one ---- */

static void booking_reply_one(const struct api *api, struct request *req, const struct booking *b,
                              int status)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    booking_view_write(api, req, b, true, &w);
    request_reply_json(req, status, &out);
}

static void booking_on_one_read(void *data, int r, const struct aq_error *err)
{
    struct booking_call *call = data; /* as above */
    AQ_CLEANUP(booking_rows_donep) struct booking_rows rows = call->rows;
    const struct booking *b = rows.count ? rows.items : NULL;

    if (r < 0)
        request_fail(call->req, err);
    else if (!b || !booking_view_may_see(call->api, call->req, b))
        booking_fail_unknown(call->req, call->name);
    else
        booking_reply_one(call->api, call->req, b, 200);
}

static void booking_on_show(struct request *req, void *data)
{
    struct booking_call *call = booking_call_new(data, req);
    const struct booking *b;

    if (!api_has_no_params(req))
        return;
    call->name = request_get_param(req, "reservation");
    b = core_find_booking(call->api->core, call->name);
    if (b && booking_view_may_see(call->api, req, b))
        booking_reply_one(call->api, req, b, 200);
    else
        store_read(core_store(call->api->core), booking_read_finished, booking_on_one_read, call);
}

/* ---- creating and changing ---- */

/* store_tx_fn: what was committed before is durable once this has had its turn. */
static int booking_wait_for_commits(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)tx;
    (void)data;
    (void)err;
    return 0;
}

static void booking_on_waited(void *data, int r, const struct aq_error *err)
{
    struct booking_call *call = data;

    repeat_fail(call->api, call->req, r < 0 ? err : &call->err, NULL);
}

/* A new one that finds its name or its amounts taken may be in its own way: an earlier copy of the
 * request may be on its way to the store.
 */
static void booking_refuse(struct booking_call *call, const struct aq_error *err)
{
    booking_done(&call->made);
    call->err = *err;
    if (!call->is_new)
        request_fail(call->req, err);
    else if (err->code == EBUSY || err->code == EEXIST)
        store_write(core_store(call->api->core), booking_wait_for_commits, booking_on_waited, call);
    else
        repeat_fail(call->api, call->req, err, NULL);
}

/* core_booking_write_fn */
static int booking_write_answer(void *data, const struct booking *b, struct strbuf *out)
{
    struct booking_call *call = data;
    struct jsonw w = jsonw_make(out);

    booking_view_write(call->api, call->req, b, true, &w);
    call->answer = arena_strdup(request_get_arena(call->req), out->data);
    return 201;
}

static void booking_on_saved(void *data, int r, const struct aq_error *err)
{
    struct booking_call *call = data;
    const struct booking *b = r < 0 ? NULL : core_find_booking(call->api->core, call->name);

    AQ_FAULT("booking.saved");
    if (r < 0) {
        booking_refuse(call, err);
    } else if (call->is_new) {
        repeat_note_answered(call->api, call->req);
        request_reply(call->req, 201, "application/json", call->answer, strlen(call->answer));
    } else if (!b) { /* its end came at once */
        booking_fail_unknown(call->req, call->name);
    } else {
        booking_reply_one(call->api, call->req, b, 200);
    }
}

static void booking_save(struct booking_call *call)
{
    struct core *core = call->api->core;
    const struct audit_who *by = api_who(call->api, call->req);

    call->name = arena_strdup(request_get_arena(call->req), call->made.name);
    if (call->is_new)
        core_create_booking(core, &call->made, &call->answered, booking_write_answer, by,
                            booking_on_saved, call);
    else
        core_change_booking(core, &call->made, by, booking_on_saved, call);
}

/* store_tx_fn: a domain's administrators keep amounts of resource groups of the domain. */
static int booking_check_access(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct booking_call *call = data;
    const char *domain = api_principal(call->req)->domain;
    int r = resource_group_is_allowed(tx, call->resource_group, ALLOW_DOMAIN, domain, err);

    if (r < 0)
        return r;
    return r > 0 ? 0
                 : api_fail_param(err, "resource_group",
                                  "your domain '%s' may not use the resource group '%s'", domain,
                                  call->resource_group);
}

static void booking_on_access_checked(void *data, int r, const struct aq_error *err)
{
    struct booking_call *call = data;
    struct aq_error gone = { 0 };

    if (r == 0 && api_check_caller(call->api, call->req, &gone) < 0) {
        r = -gone.code;
        err = &gone;
    }
    if (r == 0) {
        booking_save(call);
        return;
    }
    booking_refuse(call, err);
}

/* The one that the path names, if the caller may change it; NULL with an error. */
static const struct booking *booking_find_own(struct api *api, struct request *req,
                                              struct aq_error *err)
{
    const char *name = request_get_param(req, "reservation");
    const struct booking *b = core_find_booking(api->core, name);

    if (b && booking_view_may_change(api, req, b))
        return b;
    booking_set_unknown(name, err);
    return NULL;
}

static int booking_prepare(struct booking_call *call, struct aq_error *err)
{
    struct booking_params params = { .name = NULL };
    const struct booking *b;
    json_auto_t *tree = NULL;
    int r = api_decode(call->req, &params, &tree, err);

    if (r < 0)
        return r;
    if (!call->is_new) {
        if (!(b = booking_find_own(call->api, call->req, err)))
            return -ENOENT;
        booking_copy(&call->made, b);
    }
    r = booking_params_apply(call->api, call->req, &params, tree, &call->made, err);
    if (r == 0 && !booking_view_may_change(call->api, call->req, &call->made))
        r = api_fail_param(err, "for",
                           "all projects and users must be of your domain; leave the others out");
    return r;
}

static void booking_start_save(struct booking_call *call)
{
    struct aq_error err = { 0 };

    if (booking_prepare(call, &err) < 0) {
        booking_refuse(call, &err);
        return;
    }
    (void)snprintf(call->resource_group, sizeof(call->resource_group), "%s",
                   call->made.resource_group);
    if (principal_is_superadmin(api_principal(call->req)))
        booking_save(call);
    else
        store_read(core_store(call->api->core), booking_check_access, booking_on_access_checked,
                   call);
}

static void booking_make(struct request *req, void *data)
{
    struct booking_call *call = booking_call_new(data, req);

    call->is_new = true;
    repeat_fill(req, &call->answered);
    call->made.creator_id = api_principal(req)->user_id;
    booking_start_save(call);
}

static void booking_on_create(struct request *req, void *data)
{
    static const struct repeat_handler handler = { booking_make, NULL };

    repeat_start(data, req, &handler);
}

static void booking_on_change(struct request *req, void *data)
{
    booking_start_save(booking_call_new(data, req));
}

/* ---- canceling ---- */

static void booking_on_cancel(struct request *req, void *data)
{
    struct api *api = data;
    const struct booking *b;
    struct booking_cancel_params params = { .reason = NULL };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0 || !(b = booking_find_own(api, req, &err))) {
        request_fail(req, &err);
        return;
    }
    core_cancel_booking(api->core, &b->id, params.reason, api_who(api, req), api_reply_done, req);
}

static const struct route booking_routes[] = {
    { METHOD_GET, "/aliquot/v1/reservations", API_USER, booking_on_list, booking_list_fields,
      "Reservations for the caller, or that the caller administers, by their start" },
    { METHOD_POST, "/aliquot/v1/reservations", API_ADMIN | API_FREEZABLE | API_ANSWERED_ONCE,
      booking_on_create, booking_create_fields, "Keep amounts for projects and users during a time",
      .answer = { 201 } },
    { METHOD_GET, "/aliquot/v1/reservations/{reservation}", API_USER, booking_on_show, NULL,
      "A reservation, by id or name, with its places and sessions" },
    { METHOD_PATCH, "/aliquot/v1/reservations/{reservation}", API_ADMIN | API_FREEZABLE,
      booking_on_change, booking_change_fields, "Change a reservation" },
    { METHOD_POST, "/aliquot/v1/reservations/{reservation}/cancel", API_ADMIN, booking_on_cancel,
      booking_cancel_fields, "Cancel a reservation: its sessions that wait end, others run on",
      .answer = { 204 } },
};
API_ROUTES_END(booking);
