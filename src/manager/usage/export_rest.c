/* SPDX-License-Identifier: Apache-2.0 */
/* /export: reports as CSV, as Backend.AI's administrators fetch them from 26 on
 *
 * A report is a list in other words and another form: read by the store at once, sent as it is
 * written. Of a domain's administrator it has that domain.
 */
#include "manager/usage/export_reports.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/csv.h"
#include "manager/usage/usage_feature.h"

#define EXPORT_ROWS_MAX 100000
#define EXPORT_FIELDS_MAX 64
#define EXPORT_TYPE "text/csv; charset=utf-8"

/* ---- which there are ---- */

static const char *export_type_name(enum export_kind kind)
{
    switch (kind) {
    case EXPORT_UUID:
        return "uuid";
    case EXPORT_TIME:
        return "datetime";
    case EXPORT_BOOL:
        return "boolean";
    case EXPORT_INT:
        return "integer";
    default:
        return "string";
    }
}

static void export_write_report(const struct export_report *report, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "report_key", report->key);
    jsonw_member_str(w, "name", report->name);
    jsonw_member_str(w, "description", report->description);
    jsonw_key(w, "fields");
    jsonw_array_begin(w);
    for (size_t i = 0; i < report->field_count; i++) {
        if (report->fields[i].kind == EXPORT_HIDDEN)
            continue;
        jsonw_object_begin(w);
        jsonw_member_str(w, "key", report->fields[i].key);
        jsonw_member_str(w, "name", report->fields[i].name);
        jsonw_member_str(w, "description", report->fields[i].description);
        jsonw_member_str(w, "field_type", export_type_name(report->fields[i].kind));
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static void export_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    (void)data;
    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    jsonw_key(&w, "reports");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < export_report_count; i++)
        export_write_report(&export_reports[i], &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* The report of the path, or NULL with 'err'. */
static const struct export_report *export_choose(struct request *req, struct aq_error *err)
{
    const char *key = request_get_param(req, "report");
    const struct export_report *report = export_find_report(key);

    if (!report)
        problem_no_such(err, "report", "there is no report '%.64s': GET /export/reports says which",
                        key);
    return report;
}

static void export_on_show(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct export_report *report;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };

    (void)data;
    if (!api_has_no_params(req))
        return;
    if (!(report = export_choose(req, &err))) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "report");
    export_write_report(report, &w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* ---- rows ---- */

struct export
{
    struct api_list list; /* first */
    const struct export_report *report;
    const struct export_field *fields[EXPORT_FIELDS_MAX]; /* as they are asked for */
    size_t field_count;
};

static void export_write_value(const struct api *api, const struct export_field *field,
                               const void *row, struct strbuf *out)
{
    const void *at = (const char *)row + field->offset;
    char text[CLOCK_ISO_MAX + UUID_TEXT_MAX];
    int64_t usec;

    switch (field->kind) {
    case EXPORT_STRING:
        strbuf_adds(out, *(const char *const *)at ? *(const char *const *)at : "");
        break;
    case EXPORT_CHARS:
        strbuf_adds(out, at);
        break;
    case EXPORT_UUID:
        strbuf_adds(out, uuid_is_nil(at) ? "" : uuid_format(at, text));
        break;
    case EXPORT_TIME:
        usec = *(const int64_t *)at;
        strbuf_adds(out, usec ? clock_format_iso(usec, text) : "");
        break;
    case EXPORT_BOOL:
        strbuf_adds(out, *(const bool *)at ? "true" : "false");
        break;
    case EXPORT_INT:
        strbuf_addf(out, "%lld", (long long)*(const int64_t *)at);
        break;
    case EXPORT_FUNCTION:
        field->text(api, row, out);
        break;
    case EXPORT_HIDDEN:
        break;
    }
}

static void export_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                             struct jsonw *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf cell = STRBUF_INIT;
    const struct export *export = (const struct export *)list;
    const void *row = (const char *)page->rows + i * export->report->row_size;

    for (size_t f = 0; f < export->field_count; f++) {
        strbuf_truncate(&cell, 0);
        export_write_value(list->api, export->fields[f], row, &cell);
        strbuf_adds(w->out, f ? "," : "");
        csv_write_field(cell.data, cell.len, w->out);
    }
    strbuf_adds(w->out, "\r\n");
}

/* The names of the columns, unless there are more rows than are sent: then nothing is. */
static int export_begin(const struct api_list *list, struct strbuf *out, struct aq_error *err)
{
    const struct export *export = (const struct export *)list;

    if (list->page->total > EXPORT_ROWS_MAX)
        return api_fail_param(err, "filter", "lets through %lld rows of %d at most; narrow it",
                              (long long)list->page->total, EXPORT_ROWS_MAX);
    for (size_t f = 0; f < export->field_count; f++) {
        strbuf_adds(out, f ? "," : "");
        csv_write_field(export->fields[f]->name, strlen(export->fields[f]->name), out);
    }
    strbuf_adds(out, "\r\n");
    return 0;
}

static const struct api_list_form export_form = { EXPORT_TYPE, export_begin };

/* ---- what is asked for ---- */

struct export_params {
    struct str_list fields;
    const json_t *filter, *order;
    const char *encoding;
};

static const struct field export_params_fields[] = {
    { "fields", FIELD_STR_LIST, FIELD_NULLABLE, offsetof(struct export_params, fields), 0,
      EXPORT_FIELDS_MAX, .doc = "keys of the columns, in order; default: all" },
    { "filter", FIELD_OBJECT, FIELD_NULLABLE, offsetof(struct export_params, filter),
      .doc = "e.g. {\"email\": {\"contains\": \"a\"}, \"created_at\": {\"after\": date}}" },
    { "order", FIELD_JSON, FIELD_NULLABLE, offsetof(struct export_params, order),
      .doc = "[{\"field\", \"direction\": \"asc\" or \"desc\"}]" },
    { "encoding", FIELD_STR, FIELD_NULLABLE, offsetof(struct export_params, encoding), 1, 32,
      .doc = "utf-8" },
    FIELD_END,
};

static int export_choose_fields(struct export *export, const struct str_list *keys,
                                struct aq_error *err)
{
    const struct export_report *report = export->report;

    for (size_t i = 0; !keys->count && i < report->field_count; i++)
        if (report->fields[i].kind != EXPORT_HIDDEN)
            export->fields[export->field_count++] = &report->fields[i];
    for (size_t i = 0; i < keys->count; i++) {
        size_t f = 0;

        while (f < report->field_count
               && (report->fields[f].kind == EXPORT_HIDDEN
                   || strcmp(report->fields[f].key, keys->items[i]) != 0))
            f++;
        if (f == report->field_count)
            return api_fail_param(err, "fields", "'%.64s' is no field of this report",
                                  keys->items[i]);
        export->fields[export->field_count++] = &report->fields[f];
    }
    return 0;
}

static int export_prepare(struct export *export, const struct export_params *params,
                          struct aq_error *err)
{
    struct store_query *query = &export->list.query;
    int r = export_choose_fields(export, &params->fields, err);

    if (r == 0 && params->encoding && strcasecmp(params->encoding, "utf-8") != 0)
        r = api_fail_param(err, "encoding", "is utf-8");
    if (r == 0)
        r = export_read_query(export->report, params->filter, params->order,
                              request_get_arena(export->list.req), query, err);
    query->limit = EXPORT_ROWS_MAX;
    query->with_kernels = true; /* of sessions, for their slots */
    return r;
}

static void export_on_fetch(struct request *req, void *data)
{
    struct export *export = arena_alloc(request_get_arena(req), sizeof(*export));
    const struct principal *who = api_principal(req);
    struct export_params params = { .encoding = NULL };
    json_auto_t *tree = NULL; /* of filter and order */
    struct aq_error err = { 0 };

    *export = (struct export){ .list = { .api = data, .req = req } };
    if (api_decode(req, &params, &tree, &err) < 0 || !(export->report = export_choose(req, &err))
        || export_prepare(export, &params, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    if (!principal_is_superadmin(who))
        export->list.query.domain = who->domain ? who->domain : "";
    export->list.list = export->report->list;
    export->list.write = export_write_row;
    export->list.form = &export_form;
    api_list_start(&export->list);
}

static const struct route export_routes[] = {
    { METHOD_GET, "/export/reports", API_ADMIN, export_on_list, NULL,
      "Reports that can be fetched as CSV, with their fields" },
    { METHOD_GET, "/export/reports/{report}", API_ADMIN, export_on_show, NULL,
      "One report with its fields" },
    { METHOD_POST, "/export/{report}/csv", API_ADMIN, export_on_fetch, export_params_fields,
      "A report as CSV, of the caller's domain or all", .answer = { .types = EXPORT_TYPE } },
};
API_ROUTES_END(export);
