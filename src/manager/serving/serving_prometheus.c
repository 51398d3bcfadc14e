/* SPDX-License-Identifier: Apache-2.0 */
/* serving_prometheus.c - see serving_prometheus.h */
#include "manager/serving/serving_prometheus.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/secret_file.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "http/client.h"
#include "http/tls.h"
#include "http/url.h"
#include "serving/prometheus_answer.h"

#define INTERVAL_USEC (15 * USEC_PER_SEC)
#define ANSWER_USEC (10 * USEC_PER_SEC)
#define AGE_USEC (60 * USEC_PER_SEC) /* an older value is not known */
#define AT_ONCE 8
#define ANSWER_MAX (1u << 20)

struct prometheus_query {
    struct serving_prometheus *of;
    struct uuid user_id; /* on whose behalf it is sent */
    char *text;
    struct exchange *exchange; /* NULL = not under way */
    int64_t begun_usec;        /* monotonic; 0 = never yet */
    double value;
    int64_t at_usec; /* when 'value' came; 0 = never yet */
    char *problem;   /* of the last answer; NULL = none */
    bool is_wanted;
};

struct serving_prometheus {
    const struct prometheus_settings *settings;
    struct client *client;
    struct tls_context *tls;
    char *url;          /* of queries */
    struct map queries; /* text -> struct prometheus_query */
    const struct prometheus_query *under_way[AT_ONCE];
    size_t under_way_count;
};

static void prometheus_start_due(struct serving_prometheus *prometheus);

/* ---- one query ---- */

static void prometheus_query_settle(struct prometheus_query *query, const struct aq_error *err)
{
    free(query->problem);
    query->problem = err->code ? aq_strdup(err->text) : NULL;
    if (query->problem)
        utf8_make_printable(query->problem); /* parts of it are the server's */
}

static void prometheus_query_leave(const struct prometheus_query *query)
{
    struct serving_prometheus *prometheus = query->of;
    size_t i = 0;

    while (prometheus->under_way[i] != query)
        i++;
    prometheus->under_way[i] = prometheus->under_way[--prometheus->under_way_count];
}

static int prometheus_fail_late(struct aq_error *err)
{
    return aq_fail(err, ETIMEDOUT, "Prometheus did not answer within %d s",
                   (int)(ANSWER_USEC / USEC_PER_SEC));
}

/* client_done_fn */
static void prometheus_query_on_answer(void *data, const struct client_response *response,
                                       const struct aq_error *failure)
{
    struct prometheus_query *query = data;
    struct aq_error err = { 0 };
    double value;

    query->exchange = NULL;
    prometheus_query_leave(query);
    if (!response && failure->code == ETIMEDOUT)
        (void)prometheus_fail_late(&err);
    else if (!response)
        (void)aq_fail(&err, EIO, "Prometheus does not answer: %s", failure->text);
    else if (prometheus_answer_read(response->head->status, response->body, response->body_len,
                                    &value, &err)
             == 0) {
        query->value = value;
        query->at_usec = clock_monotonic_usec();
        if (!isfinite(value))
            (void)aq_fail(&err, EINVAL, "the query results in %g, which is not a number", value);
    }
    prometheus_query_settle(query, &err);
    prometheus_start_due(query->of);
}

/* Files are read for each query, so that they can be replaced. */
static int prometheus_write_headers(const struct prometheus_settings *settings, struct strbuf *out,
                                    struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf secret = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *pair = NULL;
    AQ_CLEANUP(aq_freep) char *coded = NULL;
    size_t size;
    int r = 0;

    strbuf_adds(out, "Content-Type: application/x-www-form-urlencoded\r\n"
                     "Accept: application/json\r\nUser-Agent: aliquot-manager\r\n");
    if (settings->token_file) {
        if ((r = secret_file_read(settings->token_file, &secret, err)) == 0)
            strbuf_addf(out, "Authorization: Bearer %s\r\n", secret.len ? secret.data : "");
    } else if (settings->user) {
        if (settings->password_file)
            r = secret_file_read(settings->password_file, &secret, err);
        pair = aq_format("%s:%s", settings->user, secret.len ? secret.data : "");
        size = sodium_base64_encoded_len(strlen(pair), sodium_base64_VARIANT_ORIGINAL);
        coded = aq_alloc(size);
        (void)sodium_bin2base64(coded, size, (const unsigned char *)pair, strlen(pair),
                                sodium_base64_VARIANT_ORIGINAL);
        strbuf_addf(out, "Authorization: Basic %s\r\n", coded);
    }
    return r;
}

static void prometheus_query_send(struct prometheus_query *query)
{
    struct serving_prometheus *prometheus = query->of;
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct aq_error err = { 0 };
    int r = prometheus_write_headers(prometheus->settings, &headers, &err);

    query->begun_usec = clock_monotonic_usec();
    strbuf_adds(&body, "timeout=10s&limit=2&query=");
    url_encode(&body, query->text);
    if (r == 0)
        r = client_fetch(prometheus->client,
                         &(struct client_request){ .method = METHOD_POST,
                                                   .url = prometheus->url,
                                                   .headers = headers.data,
                                                   .body = body.data,
                                                   .body_len = body.len,
                                                   .body_max = ANSWER_MAX },
                         prometheus_query_on_answer, query, &query->exchange, &err);
    if (r < 0)
        prometheus_query_settle(query, &err);
    else
        prometheus->under_way[prometheus->under_way_count++] = query;
}

static void prometheus_query_stop(struct prometheus_query *query)
{
    if (!query->exchange)
        return;
    exchange_cancel(AQ_TAKE(query->exchange));
    prometheus_query_leave(query);
}

static void prometheus_query_free(struct prometheus_query *query)
{
    prometheus_query_stop(query);
    free(query->text);
    free(query->problem);
    free(query);
}

/* ---- all ---- */

void serving_prometheus_want(struct serving_prometheus *prometheus, const char *text,
                             const struct uuid *user_id)
{
    struct prometheus_query *query = map_gets(&prometheus->queries, text);

    if (!query) {
        query = aq_alloc(sizeof(*query));
        query->of = prometheus;
        query->text = aq_strdup(text);
        (void)map_sets(&prometheus->queries, text, query);
    }
    query->user_id = *user_id;
    query->is_wanted = true;
}

static void prometheus_end_late(struct prometheus_query *query, int64_t now_usec)
{
    struct aq_error err = { 0 };

    if (!query->exchange || now_usec - query->begun_usec <= ANSWER_USEC)
        return;
    prometheus_query_stop(query);
    (void)prometheus_fail_late(&err);
    prometheus_query_settle(query, &err);
}

static size_t prometheus_count_of_user(const struct serving_prometheus *prometheus,
                                       const struct uuid *user_id)
{
    size_t count = 0;

    for (size_t i = 0; i < prometheus->under_way_count; i++)
        count += uuid_equals(&prometheus->under_way[i]->user_id, user_id);
    return count;
}

/* The query that has waited longest of the user with the fewest under way, so that one user's slow
 * queries do not delay those of others. NULL = none is due.
 */
static struct prometheus_query *prometheus_find_due(const struct serving_prometheus *prometheus,
                                                    int64_t now_usec)
{
    struct prometheus_query *found = NULL;
    size_t fewest = 0;

    for (size_t i = 0; i < prometheus->queries.count; i++) {
        struct prometheus_query *query = prometheus->queries.entries[i].value;
        size_t count;

        if (query->exchange || (query->begun_usec && now_usec - query->begun_usec < INTERVAL_USEC))
            continue;
        count = prometheus_count_of_user(prometheus, &query->user_id);
        if (found
            && (count > fewest || (count == fewest && query->begun_usec >= found->begun_usec)))
            continue;
        found = query;
        fewest = count;
    }
    return found;
}

static void prometheus_start_due(struct serving_prometheus *prometheus)
{
    int64_t now_usec = clock_monotonic_usec();
    struct prometheus_query *query;

    while (prometheus->under_way_count < AT_ONCE
           && (query = prometheus_find_due(prometheus, now_usec)))
        prometheus_query_send(query);
}

void serving_prometheus_run(struct serving_prometheus *prometheus)
{
    int64_t now_usec = clock_monotonic_usec();

    for (size_t i = prometheus->queries.count; i-- > 0;) {
        const struct map_entry *entry = &prometheus->queries.entries[i];
        struct prometheus_query *query = entry->value;

        prometheus_end_late(query, now_usec);
        if (!query->is_wanted)
            prometheus_query_free(map_remove(&prometheus->queries, entry->key, entry->key_len));
        else
            query->is_wanted = false;
    }
    if (prometheus->client)
        prometheus_start_due(prometheus);
}

double serving_prometheus_get(const struct serving_prometheus *prometheus, const char *text,
                              const char **ret_problem)
{
    const struct prometheus_query *query = map_gets(&prometheus->queries, text);
    const char *problem = query ? query->problem : NULL;
    bool is_known = query && query->at_usec && isfinite(query->value)
                    && clock_monotonic_usec() - query->at_usec <= AGE_USEC;

    if (!prometheus->client)
        problem = "there is no Prometheus server: set 'prometheus' in [serving] of manager.toml";
    if (ret_problem)
        *ret_problem = problem;
    return is_known ? query->value : (double)NAN;
}

/* ---- begin and end ---- */

static int prometheus_check(const struct prometheus_settings *settings, struct aq_error *err)
{
    struct url url;

    if ((strncasecmp(settings->url, "http://", 7) != 0
         && strncasecmp(settings->url, "https://", 8) != 0)
        || strpbrk(settings->url, "?#@") || url_parse(settings->url, &url, NULL) < 0)
        return aq_fail_field(err, EINVAL, "serving.prometheus",
                             "'%.200s' must be a URL such as http://prometheus.example.org:9090; "
                             "credentials are given by prometheus-token-file or prometheus-user",
                             settings->url);
    if (settings->token_file && settings->user)
        return aq_fail_field(err, EINVAL, "serving.prometheus-user",
                             "is set beside prometheus-token-file; leave one of them out");
    return 0;
}

static int prometheus_open(struct serving_prometheus *prometheus, uv_loop_t *loop,
                           struct aq_error *err)
{
    const struct prometheus_settings *settings = prometheus->settings;
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    struct client_options options = { .connections_max = AT_ONCE,
                                      .answer_msec = ANSWER_USEC / USEC_PER_MSEC };
    size_t len;
    int r = prometheus_check(settings, err);

    if (r == 0 && (r = prometheus_write_headers(settings, &headers, err)) < 0)
        (void)aq_error_wrap(err, "[serving] of manager.toml");
    if (r == 0 && settings->ca) {
        r = tls_context_new(&(struct tls_options){ .ca_file = settings->ca }, &prometheus->tls,
                            err);
        if (r < 0)
            (void)aq_error_wrap(err, "serving.prometheus-ca");
    }
    if (r < 0)
        return r;
    for (len = strlen(settings->url); len && settings->url[len - 1] == '/'; len--)
        ;
    prometheus->url = aq_format("%.*s/api/v1/query", (int)len, settings->url);
    options.tls = prometheus->tls;
    prometheus->client = client_new(loop, &options);
    return 0;
}

int serving_prometheus_new(uv_loop_t *loop, const struct prometheus_settings *settings,
                           struct serving_prometheus **ret, struct aq_error *err)
{
    struct serving_prometheus *prometheus = aq_alloc(sizeof(*prometheus));
    int r;

    prometheus->settings = settings;
    r = settings->url && *settings->url ? prometheus_open(prometheus, loop, err) : 0;
    if (r < 0)
        serving_prometheus_free(prometheus);
    else
        *ret = prometheus;
    return r;
}

void serving_prometheus_free(struct serving_prometheus *prometheus)
{
    if (!prometheus)
        return;
    for (size_t i = 0; i < prometheus->queries.count; i++)
        prometheus_query_free(prometheus->queries.entries[i].value);
    map_done(&prometheus->queries);
    client_free(prometheus->client);
    tls_context_free(prometheus->tls);
    free(prometheus->url);
    free(prometheus);
}

int serving_prometheus_try(const struct prometheus_settings *settings, struct aq_error *err)
{
    static const char query[] = "vector(1)";
    struct serving_prometheus *prometheus = NULL;
    const char *problem = NULL;
    uv_loop_t loop;
    int r;

    (void)uv_loop_init(&loop);
    if ((r = serving_prometheus_new(&loop, settings, &prometheus, err)) == 0) {
        serving_prometheus_want(prometheus, query, &(struct uuid){ .bytes = { 0 } });
        serving_prometheus_run(prometheus);
        while (isnan(serving_prometheus_get(prometheus, query, &problem)) && !problem)
            (void)uv_run(&loop, UV_RUN_ONCE);
        if (problem)
            r = aq_fail(err, EIO, "%s", problem);
        serving_prometheus_free(prometheus);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    return r;
}
