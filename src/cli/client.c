/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to a manager: which one of several, and what signs a request. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/client_internal.h"
#include "http/sign.h"
#include "http/version.h"

#define CONNECTIONS_MAX 256
#define AWAY_USEC (300 * USEC_PER_SEC) /* without the manager before giving up */

void cli_client_free(struct cli_client *client)
{
    if (!client)
        return;
    defer_cancel(client->breaking);
    client_sync_free(client->sync);
    endpoints_done(&client->endpoints);
    free(client);
}

static bool client_is_true(const char *text)
{
    static const char *const words[] = { "1", "yes", "true", "on", "t", "y" };

    for (size_t i = 0; text && i < AQ_COUNT(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

static unsigned client_seconds_to_msec(const char *text)
{
    double seconds = text ? strtod(text, NULL) : 0;

    return seconds > 0 && seconds < 1e6 ? (unsigned)(seconds * 1000) : 0;
}

/* ---- endpoints ---- */

bool client_is_gateway_status(int status)
{
    return status == 502 || status == 503 || status == 504;
}

/* A manager that has stopped ends no connection: what is read of it goes on with the next one. */
static void client_on_breaking(void *data)
{
    struct cli_client *client = data;
    struct aq_error err = { 0 };

    client->breaking = NULL;
    (void)aq_fail(&err, ECONNRESET, "the manager has stopped answering");
    client_break(client_sync_get_client(client->sync), &client->broken, &err);
}

/* client_options.on_outcome: what is asked from now on is asked of the next manager. */
static void client_on_outcome(void *data, const struct client_outcome *outcome)
{
    struct cli_client *client = data;

    if (!endpoints_is_current(&client->endpoints, outcome->address))
        return;
    client->was_sent = outcome->was_sent;
    if (outcome->status && !client_is_gateway_status(outcome->status))
        return;
    if (!outcome->status && client->endpoints.count > 1 && !client->breaking) {
        client->broken = *outcome->address;
        client->breaking = defer_call(client_sync_get_loop(client->sync), 0, client_on_breaking,
                                      client);
    }
    endpoints_next(&client->endpoints);
}

static bool client_needs_tls(const struct endpoints *endpoints)
{
    for (size_t i = 0; i < endpoints->count; i++)
        if (endpoints->items[i].tls)
            return true;
    return false;
}

static int client_make_tls(const struct cli_config *config, struct tls_context **ret,
                           struct aq_error *err)
{
    struct tls_options options = {
        .ca_file = cli_config_get(config, SETTING_CA_FILE),
        .skip_verify = client_is_true(cli_config_get(config, SETTING_SKIP_VERIFY)),
    };

    if (!options.ca_file && !options.skip_verify)
        return 0;
    return tls_context_new(&options, ret, err);
}

static int client_make(struct cli *cli, struct aq_error *err)
{
    const struct cli_config *config = &cli->config;
    struct cli_client *client = aq_alloc(sizeof(*client));
    struct client_options options = {
        .connect_msec = client_seconds_to_msec(cli_config_get(config, SETTING_CONNECT_TIMEOUT)),
        .answer_msec = client_seconds_to_msec(cli_config_get(config, SETTING_READ_TIMEOUT)),
        .connections_max = CONNECTIONS_MAX,
        .on_outcome = client_on_outcome,
        .outcome_data = client,
    };
    AQ_CLEANUP(tls_context_freep) struct tls_context *tls = NULL;
    int r = endpoints_read(cli_config_get(config, SETTING_ENDPOINT), &client->endpoints, err);

    cli->client = client;
    if (r == 0 && client_needs_tls(&client->endpoints))
        r = client_make_tls(config, &tls, err);
    options.tls = tls;
    return r < 0 ? r : client_sync_new(&options, &client->sync, err);
}

int client_need(struct cli *cli, struct aq_error *err)
{
    if (cli->client && cli->client->sync)
        return 0;
    cli_client_free(cli->client);
    cli->client = NULL;
    return client_make(cli, err);
}

const char *cli_client_endpoint(const struct cli *cli)
{
    return endpoints_get(&cli->client->endpoints)->url;
}

int cli_client_open(struct cli *cli, uv_loop_t **ret_loop, struct client **ret_client,
                    struct aq_error *err)
{
    int r = client_need(cli, err);

    if (r < 0)
        return r;
    *ret_loop = client_sync_get_loop(cli->client->sync);
    if (ret_client)
        *ret_client = client_sync_get_client(cli->client->sync);
    return 0;
}

static int client_write_signature(struct cli *cli, enum method method, const char *url,
                                  const char *content_type, struct strbuf *headers,
                                  struct aq_error *err)
{
    const char *access_key = cli_config_get(&cli->config, SETTING_ACCESS_KEY);
    const char *secret_key = cli_config_get(&cli->config, SETTING_SECRET_KEY);
    struct sign_input input = {
        .method = method_name(method),
        .content_type = content_type,
        .version = API_VERSION_ANNOUNCED,
    };
    struct url parsed;
    int r;

    if (!access_key || !secret_key) {
        strbuf_adds(headers, "X-BackendAI-Version: " API_VERSION_ANNOUNCED "\r\n");
        return 0;
    }
    r = url_parse(url, &parsed, err);
    if (r < 0)
        return aq_error_wrap(err, "endpoint '%s'", cli_client_endpoint(cli));
    input.target = parsed.target;
    input.host = parsed.authority;
    return sign_write_headers(&input, access_key, secret_key, clock_realtime_usec(), sign_tag(),
                              headers, err);
}

/* 'content_type' NULL: no such header, as for WebSockets and event streams. */
int client_prepare(struct cli *cli, enum method method, const char *path, const char *content_type,
                   struct strbuf *url, struct strbuf *headers, struct aq_error *err)
{
    const char *domain = cli_config_get(&cli->config, SETTING_DOMAIN);

    strbuf_addf(url, "%s%s", cli_client_endpoint(cli), path);
    strbuf_addf(headers, "User-Agent: aliquot/%s\r\n", ALIQUOT_VERSION);
    if (content_type)
        strbuf_addf(headers, "Content-Type: %s\r\n", content_type);
    if (cli->client->once)
        strbuf_addf(headers, "Idempotency-Key: %s\r\n", cli->client->once);
    if (domain && !strpbrk(domain, "\r\n"))
        strbuf_addf(headers, "X-BackendAI-Domain: %s\r\n", domain);
    return client_write_signature(cli, method, url->data, content_type, headers, err);
}

int cli_request_prepare(struct cli *cli, const char *path, bool is_websocket,
                        struct client_request *request, struct strbuf *url, struct strbuf *headers,
                        struct aq_error *err)
{
    int r = client_need(cli, err);

    if (r == 0)
        r = client_prepare(cli, request->method, path, NULL, url, headers, err);
    if (r == 0 && is_websocket && strncasecmp(url->data, "http", 4) == 0) {
        AQ_CLEANUP(aq_freep) char *rest = aq_strdup(url->data + 4);

        strbuf_clear(url);
        strbuf_addf(url, "ws%s", rest);
    }
    request->url = url->data;
    request->headers = headers->data;
    return r;
}

int cli_begin_websocket(struct cli *cli, const char *path, const struct websocket_options *options,
                        const struct websocket_ops *ops, void *data, struct websocket **ret,
                        struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT, headers = STRBUF_INIT;
    struct client_request request = { .method = METHOD_GET };
    int r = cli_request_prepare(cli, path, true, &request, &url, &headers, err);

    return r < 0 ? r
                 : websocket_connect(client_sync_get_client(cli->client->sync), &request, options,
                                     ops, data, ret, err);
}

int cli_begin_send(struct cli *cli, const char *path, struct client_request request,
                   const struct exchange_ops *ops, void *data, struct exchange **ret,
                   struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT, headers = STRBUF_INIT;
    int r = cli_request_prepare(cli, path, false, &request, &url, &headers, err);

    return r < 0 ? r
                 : client_send(client_sync_get_client(cli->client->sync), &request, ops, data, ret,
                               err);
}

int cli_begin_fetch(struct cli *cli, const char *path, struct client_request request,
                    client_done_fn *on_done, void *data, struct exchange **ret,
                    struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT, headers = STRBUF_INIT;
    int r = cli_request_prepare(cli, path, false, &request, &url, &headers, err);

    return r < 0 ? r
                 : client_fetch(client_sync_get_client(cli->client->sync), &request, on_done, data,
                                ret, err);
}

/* ---- failures ---- */

bool client_is_lost(int r)
{
    static const int codes[] = { ECONNREFUSED, ECONNRESET,  ECONNABORTED, EPIPE,
                                 EHOSTUNREACH, ENETUNREACH, ETIMEDOUT };

    for (size_t i = 0; i < AQ_COUNT(codes); i++)
        if (r == -codes[i])
            return true;
    return false;
}

static bool client_is_unreachable(int r)
{
    return r == -ECONNREFUSED || r == -EHOSTUNREACH || r == -ENETUNREACH || r == -ETIMEDOUT;
}

int cli_fail_connection(struct cli *cli, struct aq_error *err)
{
    const struct endpoints *endpoints = &cli->client->endpoints;
    AQ_CLEANUP(strbuf_donep) struct strbuf all = STRBUF_INIT;
    int r;

    for (size_t i = 0; i < endpoints->count; i++)
        strbuf_addf(&all, "%s%s", i ? ", " : "", endpoints->items[i].url);
    r = aq_error_wrap(err,
                      endpoints->count > 1 ? "cannot reach any manager of %s"
                                           : "cannot reach the manager at %s",
                      all.data);
    if (err && !err->kind && client_is_unreachable(r))
        err->kind = CLI_KIND_UNREACHABLE;
    return r;
}

bool cli_awaits_manager(struct cli *cli, const struct aq_error *err, bool has_answered,
                        int64_t *lost_usec)
{
    int64_t now = clock_monotonic_usec();

    if (!has_answered || cli_exit_for(err) != CLI_EXIT_UNREACHABLE)
        return false;
    if (!*lost_usec) {
        *lost_usec = now;
        cli_note(cli, "aliquot: the manager does not answer (%s); waiting for it", err->text);
    }
    return now - *lost_usec < AWAY_USEC;
}

void cli_path_query(struct strbuf *path, const char *name, const char *value)
{
    if (!value)
        return;
    strbuf_addf(path, "%c%s=", strchr(path->data, '?') ? '&' : '?', name);
    url_encode(path, value);
}
