/* SPDX-License-Identifier: Apache-2.0 */
/* Signed requests to the manager. */
#include "cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"
#include "base/uuid.h"
#include "cli/silence.h"
#include "http/sign.h"
#include "http/version.h"

#define ANSWER_MAX (UINT64_C(64) << 20)
#define CONNECTIONS_MAX 256
#define EVENT_MAX (64u << 10)
#define ASK_AGAIN_USEC (60 * USEC_PER_SEC)
#define AWAY_USEC (300 * USEC_PER_SEC) /* without the manager before giving up */

struct cli_client {
    struct client_sync *sync;
    char *endpoint;   /* the one in use, without a slash at its end */
    const char *rest; /* of the configured list: what has not been tried */
    const char *once; /* Idempotency-Key of the requests that are made; NULL = none */
    bool was_stale;   /* and was told so */
};

void cli_client_free(struct cli_client *client)
{
    if (!client)
        return;
    client_sync_free(client->sync);
    free(client->endpoint);
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

/* Take the next endpoint of the list; -ENOENT when there is none. */
static int client_next_endpoint(struct cli_client *client)
{
    size_t len;

    while (client->rest && (client->rest[0] == ',' || client->rest[0] == ' '))
        client->rest++;
    if (!client->rest || !client->rest[0])
        return -ENOENT;
    len = strcspn(client->rest, ", ");
    free(client->endpoint);
    client->endpoint = aq_strndup(client->rest, len);
    client->rest += len;
    while (len && client->endpoint[len - 1] == '/')
        client->endpoint[--len] = '\0';
    return 0;
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
    struct client_options options = {
        .connect_msec = client_seconds_to_msec(cli_config_get(config, SETTING_CONNECT_TIMEOUT)),
        .answer_msec = client_seconds_to_msec(cli_config_get(config, SETTING_READ_TIMEOUT)),
        .connections_max = CONNECTIONS_MAX,
    };
    AQ_CLEANUP(tls_context_freep) struct tls_context *tls = NULL;
    struct cli_client *client = aq_alloc(sizeof(*client));
    int r;

    cli->client = client;
    client->rest = cli_config_get(config, SETTING_ENDPOINT);
    r = client_next_endpoint(client);
    if (r == -ENOENT)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the endpoint is empty");
    if (r == 0 && strncasecmp(client->endpoint, "https:", 6) == 0)
        r = client_make_tls(config, &tls, err);
    options.tls = tls;
    return r < 0 ? r : client_sync_new(&options, &client->sync, err);
}

static int client_need(struct cli *cli, struct aq_error *err)
{
    if (cli->client && cli->client->sync)
        return 0;
    cli_client_free(cli->client);
    cli->client = NULL;
    return client_make(cli, err);
}

const char *cli_client_endpoint(const struct cli *cli)
{
    return cli->client->endpoint;
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
        return aq_error_wrap(err, "endpoint '%s'", cli->client->endpoint);
    input.target = parsed.target;
    input.host = parsed.authority;
    return sign_write_headers(&input, access_key, secret_key, clock_realtime_usec(), sign_tag(),
                              headers, err);
}

/* 'content_type' NULL: no such header, as for WebSockets and event streams. */
static int client_prepare(struct cli *cli, enum method method, const char *path,
                          const char *content_type, struct strbuf *url, struct strbuf *headers,
                          struct aq_error *err)
{
    const char *domain = cli_config_get(&cli->config, SETTING_DOMAIN);

    strbuf_addf(url, "%s%s", cli->client->endpoint, path);
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

/* ---- requests ---- */

static bool client_is_unreachable(int r)
{
    return r == -ECONNREFUSED || r == -EHOSTUNREACH || r == -ENETUNREACH || r == -ETIMEDOUT;
}

int cli_fail_connection(struct cli *cli, struct aq_error *err)
{
    int r = aq_error_wrap(err, "cannot reach the manager at %s", cli->client->endpoint);

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

/* The manager answers from memory, as its database's server is away: say so once. */
static void client_note_stale(struct cli *cli, const struct client_reply *reply)
{
    static const char name[] = "Aliquot-Stale: ";
    const char *at = reply->status < 300 ? strstr(reply->headers.data, name) : NULL;
    char text[64], since[CLOCK_ISO_MAX];
    int64_t usec;

    if (!at || cli->client->was_stale)
        return;
    at += strlen(name);
    (void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\r\n"), at);
    if (clock_parse_date(text, &usec) < 0)
        return;
    cli->client->was_stale = true;
    cli_note(cli,
             "aliquot: the manager's database cannot be reached since %.19sZ: this is what the "
             "manager has in memory, and changes wait",
             clock_format_utc(usec, since));
}

static int client_fetch_once(struct cli *cli, enum method method, const char *path,
                             const char *body, client_sync_body_fn *on_body, void *data,
                             struct client_reply *reply, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    struct client_request request = { .method = method, .body_max = ANSWER_MAX };
    int r = client_prepare(cli, method, path, body ? "application/json" : "text/plain", &url,
                           &headers, err);

    if (r < 0)
        return r;
    request.url = url.data;
    request.headers = headers.data;
    request.body = body;
    request.body_len = body ? strlen(body) : 0;
    r = client_sync_stream(cli->client->sync, &request, on_body, data, reply, err);
    if (r >= 0)
        client_note_stale(cli, reply);
    return r;
}

int cli_fetch_body(struct cli *cli, enum method method, const char *path, const char *body,
                   client_sync_body_fn *on_body, void *data, struct client_reply *reply,
                   struct aq_error *err)
{
    int r = client_need(cli, err);

    if (r < 0)
        return r;
    do
        r = client_fetch_once(cli, method, path, body, on_body, data, reply, err);
    while (client_is_unreachable(r) && client_next_endpoint(cli->client) == 0);
    cli->client->rest = NULL;
    return r < 0 && r != -EINVAL ? cli_fail_connection(cli, err) : r;
}

int cli_fetch(struct cli *cli, enum method method, const char *path, const char *body,
              struct client_reply *reply, struct aq_error *err)
{
    return cli_fetch_body(cli, method, path, body, NULL, NULL, reply, err);
}

int cli_fail_answer(const struct cli *cli, const char *why, struct aq_error *err)
{
    return aq_fail(err, EPROTO, "%s does not speak this protocol: its answer is not JSON (%s)",
                   cli->client->endpoint, why);
}

int cli_check_status(const struct cli *cli, const struct client_reply *reply, struct aq_error *err)
{
    return reply->status < 200 || reply->status > 299
               ? cli_fail_status(cli, reply->status, reply->body.data, reply->body.len, err)
               : 0;
}

/* The text of an answer that is a success. */
static int client_fetch_success(struct cli *cli, enum method method, const char *path,
                                const json_t *body, struct client_reply *reply,
                                struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    int r = cli_fetch(cli, method, path, text, reply, err);

    return r < 0 ? r : cli_check_status(cli, reply, err);
}

int cli_call(struct cli *cli, enum method method, const char *path, const json_t *body,
             json_t **ret, struct aq_error *err)
{
    struct client_reply reply = CLIENT_REPLY_INIT;
    int r = client_fetch_success(cli, method, path, body, &reply, err);
    json_error_t where;
    json_t *answer;

    if (r == 0 && ret) {
        answer = json_loadb(reply.body.data, reply.body.len, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                            &where);
        if (answer)
            *ret = answer;
        else
            r = cli_fail_answer(cli, where.text, err);
    }
    client_reply_done(&reply);
    return r;
}

/* ---- once ---- */

/* The request may have come through; or, after that, the manager is not back yet. */
static bool client_is_lost(int r, bool was_lost)
{
    return r == -ECONNRESET || r == -EPIPE
           || (was_lost && (client_is_unreachable(r) || r == -ECONNABORTED || r == -EAGAIN));
}

static int client_call_until_answered(struct cli *cli, const char *path, const json_t *body,
                                      json_t **ret, struct aq_error *err)
{
    int64_t end = clock_monotonic_usec() + ASK_AGAIN_USEC, pause = 100 * USEC_PER_MSEC;
    bool was_lost = false;
    int r;

    while (client_is_lost(r = cli_call(cli, METHOD_POST, path, body, ret, err), was_lost)
           && clock_monotonic_usec() < end) {
        if (!was_lost)
            cli_note(cli, "aliquot: no answer came (%s); asking again", err->text);
        was_lost = true;
        (void)usleep((useconds_t)pause);
        pause = AQ_MIN(2 * pause, USEC_PER_SEC);
    }
    return r;
}

int cli_call_once(struct cli *cli, const char *path, const json_t *body, json_t **ret,
                  struct aq_error *err)
{
    const struct uuid id = uuid_ordered();
    char key[UUID_TEXT_MAX];
    int r = client_need(cli, err);

    if (r < 0)
        return r;
    cli->client->once = uuid_format(&id, key);
    r = client_call_until_answered(cli, path, body, ret, err);
    cli->client->once = NULL;
    return r;
}

/* ---- streams ---- */

static int client_on_copy(void *data, const char *bytes, size_t len)
{
    (void)data;
    return fs_write_all(STDOUT_FILENO, bytes, len);
}

/* A body on its way to the caller. */
struct client_flow {
    client_sync_body_fn *on_body;
    void *data;
    struct silence silence;
};

static int client_on_flow(void *data, const char *bytes, size_t len)
{
    struct client_flow *flow = data;

    silence_broken(&flow->silence);
    return flow->on_body(flow->data, bytes, len);
}

int cli_stream(struct cli *cli, enum method method, const char *path, const json_t *body,
               client_sync_body_fn *on_body, void *data, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    struct client_request request = { .method = method, .body_max = UINT64_MAX };
    struct client_flow flow = { .on_body = on_body, .data = data };
    struct client_reply reply = CLIENT_REPLY_INIT;
    int r = client_need(cli, err);

    if (r == 0)
        r = client_prepare(cli, method, path, body ? "application/json" : "text/plain", &url,
                           &headers, err);
    if (r < 0)
        return r;
    request.url = url.data;
    request.headers = headers.data;
    request.body = text;
    request.body_len = text ? strlen(text) : 0;
    silence_begin(&flow.silence, cli, client_sync_get_loop(cli->client->sync));
    r = client_sync_stream(cli->client->sync, &request, client_on_flow, &flow, &reply, err);
    silence_end(&flow.silence);
    if (r >= 0)
        client_note_stale(cli, &reply);
    if (r < 0)
        r = cli_fail_connection(cli, err);
    else if (r == 0)
        r = cli_check_status(cli, &reply, err);
    client_reply_done(&reply);
    return r;
}

struct client_events {
    struct sse_reader *reader;
    struct aq_error err;
};

static int client_on_events(void *data, const char *bytes, size_t len)
{
    struct client_events *events = data;

    return sse_reader_feed(events->reader, bytes, len, &events->err);
}

int cli_stream_events(struct cli *cli, enum method method, const char *path, const json_t *body,
                      sse_event_fn *on_event, void *data, struct aq_error *err)
{
    struct client_events events = { .reader = sse_reader_new(EVENT_MAX, on_event, data) };
    int r = cli_stream(cli, method, path, body, client_on_events, &events, err);

    sse_reader_free(events.reader);
    return r;
}

int cli_copy(struct cli *cli, const char *path, struct aq_error *err)
{
    return cli_stream(cli, METHOD_GET, path, NULL, client_on_copy, NULL, err);
}

void cli_path_query(struct strbuf *path, const char *name, const char *value)
{
    if (!value)
        return;
    strbuf_addf(path, "%c%s=", strchr(path->data, '?') ? '&' : '?', name);
    url_encode(path, value);
}
