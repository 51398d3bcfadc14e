/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of triggers of pipelines. */
#include <errno.h>
#include <string.h>

#include "manager/pipeline/pipeline_clock.h"
#include "manager/pipeline/pipeline_feature.h"
#include "manager/pipeline/pipeline_trigger.h"

#define AT(member) offsetof(struct pipeline_params, member)
/* clang-format off */
#define TRIGGER_OWNER { "owner_access_key", FIELD_STR, FIELD_NULLABLE, AT(owner_access_key), 1, 64, \
                        .doc = "act for this key; administrators" }
/* clang-format on */
static const struct field trigger_list_fields[] = {
    { "all", FIELD_BOOL, 0, AT(all), .doc = "of all users that an administrator may see" },
    TRIGGER_OWNER,
    API_PAGE_FIELDS(struct pipeline_params),
    FIELD_END,
};
static const struct field trigger_enable_fields[] = {
    { "group", FIELD_STR, FIELD_NULLABLE, AT(group), 1, 64, .doc = "project of the sessions" },
    { "resource_group", FIELD_STR, FIELD_NULLABLE, AT(resource_group), 1, 64,
      .doc = "of sessions whose task names none" },
    TRIGGER_OWNER,
    FIELD_END,
};
static const struct field trigger_disable_fields[] = { TRIGGER_OWNER, FIELD_END };
#undef AT

/* ---- answers ---- */

static void trigger_write(const struct pipeline_trigger_row *row, struct jsonw *w)
{
    AQ_CLEANUP(aq_freep) char *text = row->cron ? aq_format("%s %s", row->cron, row->zone)
                                                : aq_format("after %s (%s)", row->after, row->ends);

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &row->id);
    jsonw_member_str(w, "pipeline", row->name);
    jsonw_member_str(w, "trigger", text);
    jsonw_member_str(w, "cron", row->cron);
    jsonw_member_str(w, "zone", row->zone);
    jsonw_member_str(w, "after", row->after);
    jsonw_member_str(w, "ends", row->ends);
    jsonw_member_str(w, "overlap", row->overlap);
    jsonw_member_str(w, "missed", row->missed);
    jsonw_member_bool(w, "is_enabled", row->is_enabled);
    jsonw_member_str(w, "reason", row->reason);
    api_write_time(w, "next_at", row->next_usec);
    api_write_time(w, "last_at", row->last_usec);
    jsonw_member_str(w, "last_result", row->last_result);
    jsonw_member_str(w, "user_email", row->user_email);
    jsonw_object_end(w);
}

static void trigger_reply(struct pipeline_call *call, const struct pipeline_trigger_row *rows,
                          size_t count, int64_t total)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < count; i++)
        trigger_write(&rows[i], &w);
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", total);
    jsonw_object_end(&w);
    request_reply_json(call->req, 200, &out);
}

static void trigger_reply_list(struct pipeline_call *call)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = AQ_TAKE(call->page);

    trigger_reply(call, page->rows, page->count, page->total);
}

static void trigger_reply_changed(struct pipeline_call *call)
{
    pipeline_clock_wake(pipeline_runs_clock(call->api->pipeline));
    trigger_reply(call, call->triggers.items, call->triggers.count, (int64_t)call->triggers.count);
}

/* ---- requests ---- */

static int trigger_read_list(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    struct store_query query = { .limit = API_LIST_DEFAULT };

    api_page_apply(&call->params.page, &query);
    return store_list_pipeline_triggers(tx, &call->who, call->params.all, &query, &call->page, err);
}

/* The same as is checked when a trigger is due, so that its user hears it now. */
static int trigger_check_owner(struct pipeline_call *call, struct aq_error *err)
{
    const struct user *user = core_find_user(call->api->core, &call->who.user_id);
    struct session_request request = { .access_key = call->access_key,
                                       .domain = user ? user->domain : NULL,
                                       .group = call->params.group };

    return core_check_owner(call->api->core, &request, err);
}

static void trigger_on_list(struct request *req, void *data)
{
    pipeline_start_call(
        req, data,
        &(struct pipeline_call){ .change = trigger_read_list, .reply = trigger_reply_list });
}

static void trigger_on_enable(struct request *req, void *data)
{
    pipeline_start_call(req, data,
                        &(struct pipeline_call){ .check = trigger_check_owner,
                                                 .change = pipeline_call_enable,
                                                 .reply = trigger_reply_changed });
}

static void trigger_on_disable(struct request *req, void *data)
{
    pipeline_start_call(
        req, data,
        &(struct pipeline_call){ .change = pipeline_call_disable, .reply = trigger_reply_changed });
}

static const struct route pipeline_trigger_routes[] = {
    { METHOD_GET, "/aliquot/v1/pipeline-triggers", API_USER, trigger_on_list, trigger_list_fields,
      "Triggers of pipelines, and when they are due" },
    { METHOD_POST, "/aliquot/v1/pipelines/{pipeline}/enable", API_USER, trigger_on_enable,
      trigger_enable_fields, "Start runs of a pipeline by its triggers" },
    { METHOD_POST, "/aliquot/v1/pipelines/{pipeline}/disable", API_USER, trigger_on_disable,
      trigger_disable_fields, "Stop the triggers of a pipeline" },
};
API_ROUTES_END(pipeline_trigger);
