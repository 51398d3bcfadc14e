/* SPDX-License-Identifier: Apache-2.0 */
/* serving_figures_view.c - figures of model services as clients see them */
#include <math.h>

#include "base/clock.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_view.h"

#define RECENT_SEC 60

/* Three digits behind the point; NAN is null. */
static void figures_write_number(const char *key, double value, struct jsonw *w)
{
    jsonw_key(w, key);
    if (isnan(value))
        jsonw_null(w);
    else
        jsonw_double(w, round(value * 1000) / 1000);
}

static double figures_mean_ms(int64_t sum_usec, int64_t count)
{
    return count ? (double)sum_usec / USEC_PER_MSEC / (double)count : NAN;
}

static int64_t figures_answered(const struct serving_figures *f)
{
    return f->ok + f->client_errors + f->server_errors;
}

static void figures_write_classes(const struct serving_figures *f, struct jsonw *w)
{
    jsonw_member_int(w, "ok", f->ok);
    jsonw_member_int(w, "client_errors", f->client_errors);
    jsonw_member_int(w, "server_errors", f->server_errors);
    jsonw_member_int(w, "failures", f->failures);
    jsonw_member_int(w, "broken", f->broken);
}

static void figures_write_tokens(const struct serving_figures *f, struct jsonw *w)
{
    jsonw_member_int(w, "prompt_tokens", f->prompt_tokens);
    jsonw_member_int(w, "completion_tokens", f->completion_tokens);
    jsonw_member_int(w, "cached_tokens", f->cached_tokens);
}

static void figures_write_means(const struct serving_figures *f, struct jsonw *w)
{
    int64_t answered = figures_answered(f);

    figures_write_number("mean_ms", figures_mean_ms(f->duration_usec, answered), w);
    figures_write_number("mean_first_byte_ms", figures_mean_ms(f->first_byte_usec, answered), w);
}

static void figures_write_percentiles(const struct serving_figures *f, struct jsonw *w)
{
    figures_write_number("p50_ms", 1000 * latency_quantile(f->durations, 0.5), w);
    figures_write_number("p99_ms", 1000 * latency_quantile(f->durations, 0.99), w);
    figures_write_number("p50_first_byte_ms", 1000 * latency_quantile(f->first_bytes, 0.5), w);
    figures_write_number("p99_first_byte_ms", 1000 * latency_quantile(f->first_bytes, 0.99), w);
}

/* 'requests': that came; a replica has no histograms. */
static void figures_write_recent(const struct serving_summary *sum, int64_t requests,
                                 bool has_percentiles, struct jsonw *w)
{
    const struct serving_figures *f = &sum->recent;
    int64_t ended = figures_answered(f) + f->failures;

    jsonw_key(w, "recent");
    jsonw_object_begin(w);
    jsonw_member_int(w, "seconds", RECENT_SEC);
    figures_write_number("per_second", sum->per_second, w);
    figures_write_number("tokens_per_second", sum->tokens_per_second, w);
    jsonw_member_int(w, "requests", requests);
    figures_write_classes(f, w);
    figures_write_number("error_ratio",
                         ended ? (double)(f->server_errors + f->failures) / (double)ended : NAN, w);
    figures_write_means(f, w);
    if (has_percentiles)
        figures_write_percentiles(f, w);
    figures_write_tokens(f, w);
    jsonw_object_end(w);
}

void serving_view_write_figures(const struct api *api, const struct model_service *s,
                                struct jsonw *w)
{
    const struct serving_cold_starts cold = serving_use_sum_cold_starts(api->serving->use, &s->id);
    struct serving_summary sum;
    const struct serving_figures *f = &sum.total;

    serving_use_sum(api->serving->use, &s->id, &sum);
    jsonw_key(w, "figures");
    jsonw_object_begin(w);
    jsonw_member_int(w, "in_flight", sum.all.in_flight);
    jsonw_member_int(w, "queued", sum.all.queued);
    jsonw_member_int(w, "requests", f->arrived);
    figures_write_classes(f, w);
    jsonw_member_int(w, "refused", f->refused);
    jsonw_member_int(w, "waited", f->waited);
    figures_write_means(f, w);
    figures_write_number("mean_queue_ms", figures_mean_ms(f->queue_usec, f->waited), w);
    figures_write_tokens(f, w);
    jsonw_member_int(w, "cold_starts", cold.count);
    figures_write_number("mean_cold_start_ms", figures_mean_ms(cold.usec, cold.count), w);
    figures_write_recent(&sum, sum.recent.arrived, true, w);
    jsonw_object_end(w);
}

void serving_view_write_revision_figures(const struct api *api, const struct model_service *s,
                                         struct jsonw *w)
{
    jsonw_key(w, "revision_figures");
    jsonw_array_begin(w);
    for (size_t i = 0; i < s->revision_count; i++) {
        struct serving_summary sum;

        serving_use_sum_revision(api->serving->use, &s->id, s->revisions[i].number, &sum);
        if (!sum.total.requests && s->revisions[i].number != s->goal)
            continue;
        jsonw_object_begin(w);
        jsonw_member_int(w, "revision", s->revisions[i].number);
        jsonw_member_int(w, "in_flight", sum.all.in_flight);
        jsonw_member_int(w, "requests", sum.total.requests);
        figures_write_classes(&sum.total, w);
        figures_write_means(&sum.total, w);
        figures_write_tokens(&sum.total, w);
        figures_write_recent(&sum, sum.recent.requests, true, w);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

void serving_view_write_replica_figures(const struct api *api, const struct uuid *service_id,
                                        const struct uuid *session_id, struct jsonw *w)
{
    struct serving_summary sum;

    serving_use_sum_replica(api->serving->use, service_id, session_id, &sum);
    jsonw_member_int(w, "in_flight", sum.all.in_flight);
    jsonw_member_int(w, "requests", sum.all.requests);
    figures_write_classes(&sum.all, w);
    figures_write_means(&sum.all, w);
    figures_write_tokens(&sum.all, w);
    figures_write_recent(&sum, sum.recent.requests, false, w);
    jsonw_member_bool(w, "ejected", sum.is_ejected);
}

void serving_view_write_token_figures(const struct api *api, const struct uuid *service_id,
                                      const struct uuid *token_id, struct jsonw *w)
{
    const struct serving_token_figures f = serving_use_get_token(api->serving->use, service_id,
                                                                 token_id);

    jsonw_key(w, "figures");
    jsonw_object_begin(w);
    jsonw_member_int(w, "requests", f.requests);
    jsonw_member_int(w, "ok", f.ok);
    jsonw_member_int(w, "client_errors", f.client_errors);
    jsonw_member_int(w, "server_errors", f.server_errors);
    jsonw_member_int(w, "refused", f.refused);
    jsonw_member_int(w, "prompt_tokens", f.prompt_tokens);
    jsonw_member_int(w, "completion_tokens", f.completion_tokens);
    jsonw_member_int(w, "cached_tokens", f.cached_tokens);
    jsonw_object_end(w);
}
