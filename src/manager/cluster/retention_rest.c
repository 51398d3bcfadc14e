/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/retention: how long rows are kept, what is older, removing it now */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/cluster/cluster_feature.h"

#define ALL_ENTITIES ((1u << RETENTION_ENTITY_COUNT) - 1)
#define KEEP_TEXT_MAX 24

struct retention_params {
    struct str_list entities;
    const char *keep;
    bool count, dry_run;
};

static const struct field list_fields[] = {
    { "count", FIELD_BOOL, 0, offsetof(struct retention_params, count),
      .doc = "count rows, which takes a while where there are millions; default true" },
    FIELD_END,
};

static const struct field run_fields[] = {
    { "entities|entity", FIELD_STR_LIST, 0, offsetof(struct retention_params, entities), 0,
      RETENTION_ENTITY_COUNT, .doc = "default: all that are not kept forever" },
    { "dry_run", FIELD_BOOL, 0, offsetof(struct retention_params, dry_run),
      .doc = "say what would be removed, and remove nothing" },
    { "keep", FIELD_STR, FIELD_NULLABLE, offsetof(struct retention_params, keep), 1, 32,
      .doc = "with dry_run: as if they were kept for so long, e.g. 30d, whatever the settings" },
    FIELD_END,
};

/* An answer, which lists entities as they are when it is read. */
struct retention_view {
    struct request *req;
    unsigned entities;
    bool count;
    int status;
    struct core_retention settings[RETENTION_ENTITY_COUNT];
    struct retention_report reports[RETENTION_ENTITY_COUNT];
};

/* "forever", "90d", "36h", "90s" */
static const char *retention_format_keep(int64_t usec, char buf[KEEP_TEXT_MAX])
{
    static const struct {
        int64_t sec;
        char unit;
    } units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
    int64_t sec = usec / USEC_PER_SEC;
    size_t i = 0;

    if (!usec)
        return "forever";
    while (sec % units[i].sec)
        i++;
    (void)snprintf(buf, KEEP_TEXT_MAX, "%" PRId64 "%c", sec / units[i].sec, units[i].unit);
    return buf;
}

static void retention_write_entity(const struct retention_view *view, enum retention_entity e,
                                   struct jsonw *w)
{
    const struct core_retention *setting = &view->settings[e];
    const struct retention_report *report = &view->reports[e];
    char keep[KEEP_TEXT_MAX];

    jsonw_object_begin(w);
    jsonw_member_str(w, "entity", retention_entity_name(e));
    jsonw_member_str(w, "keep", retention_format_keep(setting->keep_usec, keep));
    if (view->count) {
        jsonw_member_int(w, "rows", report->rows);
        jsonw_member_int(w, "removable", report->removable);
        api_write_time(w, "oldest_at", report->oldest_usec);
    }
    jsonw_member_bool(w, "running", setting->is_running);
    api_write_time(w, "last_run_at", report->started_usec);
    api_write_time(w, "last_run_ended_at", report->ended_usec);
    if (report->started_usec)
        jsonw_member_int(w, "last_removed", report->removed);
    else
        jsonw_member_null(w, "last_removed");
    jsonw_object_end(w);
}

/* store_tx_fn */
static int retention_read_view(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct retention_view *view = data;
    int r = 0;

    for (enum retention_entity e = RETENTION_SESSIONS; r == 0 && e < RETENTION_ENTITY_COUNT; e++)
        if (view->entities & 1u << e)
            r = retention_read(tx, e, view->settings[e].before_usec, view->count, &view->reports[e],
                               err);
    return r;
}

/* store_done_fn */
static void retention_on_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct retention_view *view = data;

    if (r < 0) {
        request_fail(view->req, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (enum retention_entity e = RETENTION_SESSIONS; e < RETENTION_ENTITY_COUNT; e++)
        if (view->entities & 1u << e)
            retention_write_entity(view, e, &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(view->req, view->status, &out);
}

/* 'keep_usec' is in place of the settings, if it is not 0. */
static void retention_reply(const struct api *api, struct request *req, unsigned entities,
                            int64_t keep_usec, bool count, int status)
{
    struct retention_view *view = arena_alloc(request_get_arena(req), sizeof(*view));

    *view = (struct retention_view){
        .req = req, .entities = entities, .count = count, .status = status
    };
    for (enum retention_entity e = RETENTION_SESSIONS; e < RETENTION_ENTITY_COUNT; e++)
        view->settings[e] = core_get_retention(api->core, e);
    for (size_t i = 0; keep_usec && i < RETENTION_ENTITY_COUNT; i++) {
        view->settings[i].keep_usec = keep_usec;
        view->settings[i].before_usec = AQ_MAX(clock_realtime_usec() - keep_usec, 1);
    }
    store_read(core_store(api->core), retention_read_view, retention_on_read, view);
}

static void retention_on_list(struct request *req, void *data)
{
    struct retention_params params = { .count = true };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0)
        request_fail(req, &err);
    else
        retention_reply(data, req, ALL_ENTITIES, 0, params.count, 200);
}

/* Those that are named, else all that are not kept forever, or of which that is not asked. */
static int retention_choose_entities(const struct core *core, const struct str_list *names,
                                     bool forever_too, unsigned *ret, struct aq_error *err)
{
    *ret = 0;
    for (size_t i = 0; i < names->count; i++) {
        enum retention_entity e;

        if (retention_entity_parse(names->items[i], &e) < 0)
            return api_fail_param(err, "entities",
                                  "'%.40s' is none of sessions, history, usage, agent-history, "
                                  "series, audit-log, error-logs, events",
                                  names->items[i]);
        if (!forever_too && !core_get_retention(core, e).keep_usec)
            return api_fail_param(err, "entities",
                                  "'%s' is kept forever, unless [retention] %s of manager.toml "
                                  "says for how long",
                                  names->items[i], names->items[i]);
        *ret |= 1u << e;
    }
    for (enum retention_entity e = RETENTION_SESSIONS;
         names->count == 0 && e < RETENTION_ENTITY_COUNT; e++)
        *ret |= forever_too || core_get_retention(core, e).keep_usec ? 1u << e : 0;
    return 0;
}

/* What a dry run is to take for the setting; 0 = nothing is given. */
static int retention_read_keep(const struct retention_params *params, int64_t *ret,
                               struct aq_error *err)
{
    *ret = 0;
    if (params->keep && !params->dry_run)
        return api_fail_param(err, "keep",
                              "only a dry run takes it; how long rows are kept is said by "
                              "[retention] of manager.toml");
    if (params->keep && (clock_parse_duration(params->keep, ret) < 0 || *ret < USEC_PER_SEC))
        return api_fail_param(err, "keep", "'%.32s' is not a duration like 30d", params->keep);
    return 0;
}

struct retention_start {
    struct api *api;
    struct request *req;
    unsigned entities;
};

static void retention_on_begun(void *data, int r, const struct aq_error *err)
{
    const struct retention_start *run = data;

    if (r < 0) {
        request_fail(run->req, err);
        return;
    }
    log_info("old rows are removed now, as %s wants it", api_principal(run->req)->access_key);
    retention_reply(run->api, run->req, run->entities, 0, false, 202);
}

static void retention_on_run(struct request *req, void *data)
{
    struct retention_params params = { .keep = NULL };
    struct api *api = data;
    struct aq_error err = { 0 };
    struct retention_start *run;
    int64_t keep_usec;
    unsigned entities;

    if (api_decode(req, &params, NULL, &err) < 0
        || retention_read_keep(&params, &keep_usec, &err) < 0
        || retention_choose_entities(api->core, &params.entities, keep_usec, &entities, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    if (params.dry_run) {
        retention_reply(api, req, entities, keep_usec, true, 200);
        return;
    }
    run = arena_alloc(request_get_arena(req), sizeof(*run));
    *run = (struct retention_start){ api, req, entities };
    core_run_retention(api->core, entities, api_who(api, req), retention_on_begun, run);
}

static const struct route retention_routes[] = {
    { METHOD_GET, "/aliquot/v1/retention", API_SUPERADMIN, retention_on_list, list_fields,
      "How long rows are kept, how many are older, and what the last run removed" },
    { METHOD_POST, "/aliquot/v1/retention/run", API_SUPERADMIN, retention_on_run, run_fields,
      "Remove old rows now, or say what would be removed", .answer = { 202, 200 } },
};
API_ROUTES_END(retention);
