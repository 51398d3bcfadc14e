/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_live_stat.c - what endpoints and routings do now, in the form of Backend.AI's statistics
 *
 * Upstream has here the metrics of the model's server; ours are those that proxies count.
 */
#include "manager/call/graphql/node.h"
#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/serving_feature.h"
#include "model/metric.h"

static void live_stat_write(const char *key, double value, const char *unit, struct jsonw *w)
{
    char text[METRIC_NUMBER_MAX];

    jsonw_key(w, key);
    jsonw_object_begin(w);
    jsonw_member_str(w, "current", metric_format(value, 3, text));
    jsonw_member_str(w, "capacity", NULL);
    jsonw_member_str(w, "pct", "0.00");
    jsonw_member_str(w, "unit_hint", unit);
    jsonw_object_end(w);
}

static struct gql_value live_stat_make(struct gql_get *get, const struct serving_summary *sum)
{
    const struct serving_figures *f = &sum->recent;
    int64_t answered = f->ok + f->client_errors + f->server_errors;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    jsonw_object_begin(&w);
    live_stat_write("in_flight", (double)sum->all.in_flight, "count", &w);
    live_stat_write("requests_per_second", sum->per_second, "count", &w);
    live_stat_write("errors", (double)(f->server_errors + f->failures), "count", &w);
    live_stat_write("duration",
                    answered ? (double)f->duration_usec / USEC_PER_MSEC / (double)answered : 0,
                    "msec", &w);
    live_stat_write("first_byte",
                    answered ? (double)f->first_byte_usec / USEC_PER_MSEC / (double)answered : 0,
                    "msec", &w);
    live_stat_write("tokens_per_second", sum->tokens_per_second, "count", &w);
    jsonw_object_end(&w);
    return gql_copy(get, text.data);
}

static const struct serving_use *live_stat_use(const struct gql_get *get)
{
    return ((const struct gql_context *)get->context)->api->serving->use;
}

struct gql_value endpoint_get_live_stat(struct gql_get *get, const void *parent)
{
    const struct endpoint_row *row = parent;
    struct serving_summary sum;

    if (row->destroyed_usec)
        return gql_null();
    serving_use_sum(live_stat_use(get), &row->id, &sum);
    return live_stat_make(get, &sum);
}

struct gql_value endpoint_route_get_live_stat(struct gql_get *get, const void *parent)
{
    const struct endpoint_route *route = parent;
    struct serving_summary sum;

    serving_use_sum_replica(live_stat_use(get), &route->endpoint_id, &route->id, &sum);
    return live_stat_make(get, &sum);
}
