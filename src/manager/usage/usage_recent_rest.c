/* SPDX-License-Identifier: Apache-2.0 */
/* /resource/stats: the last 30 days in quarters of an hour, the caller's or everybody's.
 *
 * A kernel counts in each quarter in which it held something. What it read and wrote is known
 * when it has ended, and spread evenly over its time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/usage/usage_feature.h"
#include "manager/call/turns.h"
#include "store/kernel_usage.h"

#define BIN_USEC (INT64_C(900) * USEC_PER_SEC)
#define BINS 2880 /* 30 days */

enum usage_recent_series { SESSIONS, CPU, MEM, GPU, IO_READ, IO_WRITE, DISK, SERIES_COUNT };

static const struct {
    const char *name, *unit;
} usage_recent_series[SERIES_COUNT] = {
    [SESSIONS] = { "num_sessions", "count" }, [CPU] = { "cpu_allocated", "count" },
    [MEM] = { "mem_allocated", "bytes" },     [GPU] = { "gpu_allocated", "count" },
    [IO_READ] = { "io_read_bytes", "bytes" }, [IO_WRITE] = { "io_write_bytes", "bytes" },
    [DISK] = { "disk_used", "bytes" },
};

struct usage_recent {
    const struct api *api;
    struct request *req;
    struct turn turn;
    struct kernel_usage_query query;
    int64_t now_usec;
    /* By how much each bin is above the one before: a kernel costs two additions. */
    double steps[SERIES_COUNT][BINS + 1];
};

static void usage_recent_add(struct usage_recent *month, enum usage_recent_series series,
                             size_t first, size_t last, double value)
{
    month->steps[series][first] += value;
    month->steps[series][last + 1] -= value;
}

static double usage_recent_stat(const json_t *stats, const char *metric, const char *member)
{
    const char *text = json_string_value(json_object_get(json_object_get(stats, metric), member));

    return text ? strtod(text, NULL) : 0;
}

/* Once for each time that a kernel held processors, as all do. */
static void usage_recent_add_kernel(struct usage_recent *month, const struct kernel_usage *row,
                                    size_t first, size_t last)
{
    json_auto_t *stats = row->last_stat ? json_load_string(row->last_stat, 0) : NULL;
    double bins = (double)(last - first + 1);

    usage_recent_add(month, SESSIONS, first, last, 1);
    usage_recent_add(month, IO_READ, first, last,
                     usage_recent_stat(stats, "io_read", "current") / bins);
    usage_recent_add(month, IO_WRITE, first, last,
                     usage_recent_stat(stats, "io_write", "current") / bins);
    usage_recent_add(month, DISK, first, last,
                     usage_recent_stat(stats, "io_scratch_size", "stats.max"));
}

static int usage_recent_on_row(void *data, const struct kernel_usage *row)
{
    struct usage_recent *month = data;
    int64_t begin = month->query.from_usec, until = row->until_usec;
    size_t first, last;

    until = until ? AQ_MIN(until, month->now_usec) : month->now_usec;
    if (!row->slot || until < begin || row->from_usec > month->now_usec)
        return 0;
    first = (size_t)((AQ_MAX(row->from_usec, begin) - begin) / BIN_USEC);
    last = (size_t)((AQ_MAX(until, begin + 1) - 1 - begin) / BIN_USEC);
    first = AQ_MIN(first, BINS - 1);
    last = AQ_MAX(AQ_MIN(last, BINS - 1), first);
    if (strcmp(row->slot, "cpu") == 0) {
        usage_recent_add(month, CPU, first, last, (double)row->amount / (double)AMOUNT_ONE);
        usage_recent_add_kernel(month, row, first, last);
    } else if (strcmp(row->slot, "mem") == 0) {
        usage_recent_add(month, MEM, first, last, (double)row->amount);
    } else if (slot_name_is_accelerator(row->slot)) {
        usage_recent_add(month, GPU, first, last, (double)row->amount / (double)AMOUNT_ONE);
    }
    return 0;
}

/* store_tx_fn */
static int usage_recent_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct usage_recent *month = data;

    return store_read_kernel_usage(tx, &month->query, usage_recent_on_row, month, err);
}

/* Sums of differences: what is that near to nothing is nothing. */
static double usage_recent_round(double value)
{
    if (value < 1e-7)
        return 0;
    return value < 1e9 ? (double)(int64_t)(value * 1e6 + 0.5) / 1e6 : value;
}

static void usage_recent_write(const struct usage_recent *month, struct jsonw *w)
{
    double values[SERIES_COUNT] = { 0 };

    jsonw_array_begin(w);
    for (size_t bin = 0; bin < BINS; bin++) {
        jsonw_object_begin(w);
        jsonw_member_int(w, "date",
                         (month->query.from_usec + (int64_t)bin * BIN_USEC) / USEC_PER_SEC);
        for (size_t i = 0; i < SERIES_COUNT; i++) {
            values[i] += month->steps[i][bin];
            jsonw_key(w, usage_recent_series[i].name);
            jsonw_object_begin(w);
            jsonw_key(w, "value");
            jsonw_double(w, usage_recent_round(values[i]));
            jsonw_member_str(w, "unit_hint", usage_recent_series[i].unit);
            jsonw_object_end(w);
        }
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void usage_recent_on_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct usage_recent *month = data;
    struct turn_queue *turns = month->api->turns;
    struct uuid user_id = api_principal(month->req)->user_id;
    struct jsonw w = jsonw_make(&out);

    if (r < 0) {
        request_fail(month->req, err);
    } else {
        usage_recent_write(month, &w);
        request_reply_json(month->req, 200, &out);
    }
    turns_leave(turns, &user_id);
}

static void usage_recent_on_turn(struct turn *turn)
{
    struct usage_recent *month = AQ_CONTAINER_OF(turn, struct usage_recent, turn);
    struct aq_error err = { 0 };

    if (api_check_caller(month->api, month->req, &err) < 0)
        usage_recent_on_read(month, -err.code, &err);
    else
        store_read(core_store(month->api->core), usage_recent_read, usage_recent_on_read, month);
}

static void usage_recent_start(const struct api *api, struct request *req, bool is_own)
{
    const struct principal *who = api_principal(req);
    struct usage_recent *month;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    month = arena_alloc(request_get_arena(req), sizeof(*month));
    month->api = api;
    month->req = req;
    month->now_usec = clock_realtime_usec();
    month->query.until_usec = (month->now_usec / BIN_USEC + 1) * BIN_USEC;
    month->query.from_usec = month->query.until_usec - BINS * BIN_USEC;
    month->query.user_id = is_own ? &who->user_id : NULL;
    if (!is_own && !principal_is_superadmin(who))
        month->query.domain = who->domain ? who->domain : "";
    month->turn.fn = usage_recent_on_turn;
    if (turns_enter(api->turns, request_get_loop(req), &who->user_id, &month->turn, &err) < 0)
        request_fail(req, &err);
}

static void usage_recent_on_own(struct request *req, void *data)
{
    usage_recent_start(data, req, true);
}

static void usage_recent_on_all(struct request *req, void *data)
{
    usage_recent_start(data, req, false);
}

static const struct route usage_recent_routes[] = {
    { METHOD_GET, "/resource/stats/user/month", API_USER, usage_recent_on_own, NULL,
      "What the caller's sessions held in the last 30 days, for each quarter of an hour" },
    { METHOD_GET, "/resource/stats/admin/month", API_ADMIN, usage_recent_on_all, NULL,
      "What everybody's sessions held in the last 30 days, or those of an administrator's domain" },
};
API_ROUTES_END(usage_recent);
