/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to etcd. */
#include "manager/etcd/etcd_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/secret_file.h"
#include "base/memory.h"
#include "http/client.h"
#include "http/tls.h"
#include "http/url.h"
#include "manager/etcd/etcd_wire.h"

#define CONNECT_MSEC 3000
#define ANSWER_MSEC 5000
#define CONNECTIONS_MAX 4
#define WATCH_LINE_MAX (16u << 20) /* bytes: the changes of one transaction */

struct etcd_client {
    const struct etcd_settings *settings;
    struct client *http;
    struct tls_context *tls;
    size_t endpoint; /* in use */
    char *token;     /* NULL = none */

    struct exchange *call;
    int64_t call_begun_usec; /* monotonic */
    etcd_done_fn *call_done;
    void *call_data;
    etcd_login_fn *login_done; /* the call is a login */
    void *login_data;

    struct exchange *watch;
    int watch_status;
    struct strbuf watch_line; /* what was read and not given */
    size_t watch_searched;    /* bytes at its beginning without the end of a line */
    bool is_watch_held;
    const struct etcd_watch_ops *watch_ops;
    void *watch_data;
};

/* ---- begin and end ---- */

static int etcd_check_endpoint(const char *text, struct aq_error *err)
{
    struct url url;

    if ((strncasecmp(text, "http://", 7) != 0 && strncasecmp(text, "https://", 8) != 0)
        || strpbrk(text, "?#@") || url_parse(text, &url, NULL) < 0 || strcmp(url.target, "/") != 0)
        return aq_fail_field(
            err, EINVAL, "etcd.endpoints",
            "'%.200s' must be a URL such as http://etcd.example.org:2379; the user "
            "is given by user and password-file",
            text);
    return 0;
}

static int etcd_check_settings(const struct etcd_settings *settings, struct aq_error *err)
{
    const char *name = settings->namespace;
    size_t len = strlen(name);
    int r = 0;

    for (size_t i = 0; r == 0 && i < settings->endpoints.count; i++)
        r = etcd_check_endpoint(settings->endpoints.items[i], err);
    if (r < 0)
        return r;
    if (!len || len > 64
        || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") != len)
        return aq_fail_field(err, EINVAL, "etcd.namespace",
                             "'%.64s' must have 1 to 64 letters, digits, '-', '.' or '_'", name);
    if (!settings->user != !settings->password_file)
        return aq_fail_field(err, EINVAL, "etcd.user",
                             "user and password-file belong together: set both or neither");
    if (!settings->tls_cert != !settings->tls_key)
        return aq_fail_field(err, EINVAL, "etcd.tls-cert",
                             "tls-cert and tls-key belong together: set both or neither");
    return 0;
}

int etcd_client_new(uv_loop_t *loop, const struct etcd_settings *settings, struct etcd_client **ret,
                    struct aq_error *err)
{
    struct client_options options = { .connect_msec = CONNECT_MSEC,
                                      .answer_msec = ANSWER_MSEC,
                                      .connections_max = CONNECTIONS_MAX };
    const struct tls_options tls = { .ca_file = settings->tls_ca,
                                     .cert_file = settings->tls_cert,
                                     .key_file = settings->tls_key };
    struct tls_context *context = NULL;
    struct etcd_client *client;
    int r = etcd_check_settings(settings, err);

    if (r == 0 && (settings->tls_ca || settings->tls_cert)
        && (r = tls_context_new(&tls, &context, err)) < 0)
        (void)aq_error_wrap(err, "[etcd] of manager.toml");
    if (r < 0)
        return r;
    options.tls = context;
    client = aq_alloc(sizeof(*client));
    client->settings = settings;
    client->tls = context;
    client->http = client_new(loop, &options);
    strbuf_init(&client->watch_line);
    *ret = client;
    return 0;
}

static void etcd_client_forget_line(struct etcd_client *client)
{
    strbuf_clear(&client->watch_line);
    client->watch_searched = 0;
}

static void etcd_client_break_off(struct etcd_client *client)
{
    exchange_cancel(AQ_TAKE(client->call));
    exchange_cancel(AQ_TAKE(client->watch));
    client->login_done = NULL;
    etcd_client_forget_line(client);
    free(AQ_TAKE(client->token));
}

void etcd_client_free(struct etcd_client *client)
{
    if (!client)
        return;
    etcd_client_break_off(client);
    client_free(client->http);
    tls_context_free(client->tls);
    strbuf_done(&client->watch_line);
    free(client);
}

const char *etcd_client_get_endpoint(const struct etcd_client *client)
{
    return client->settings->endpoints.items[client->endpoint];
}

void etcd_client_leave(struct etcd_client *client)
{
    etcd_client_break_off(client);
    client->endpoint = (client->endpoint + 1) % client->settings->endpoints.count;
}

/* ---- requests ---- */

/* The parts that all requests have; url and headers are to be freed. */
static struct client_request etcd_request_make(const struct etcd_client *client, const char *path,
                                               const struct strbuf *body)
{
    const char *endpoint = etcd_client_get_endpoint(client);
    size_t len = strlen(endpoint);
    struct client_request request = { .method = METHOD_POST,
                                      .body = body->data,
                                      .body_len = body->len };

    len -= endpoint[len - 1] == '/';
    request.url = aq_format("%.*s%s", (int)len, endpoint, path);
    request.headers = aq_format("Content-Type: application/json\r\nUser-Agent: aliquot-manager\r\n"
                                "%s%s%s",
                                client->token ? "Authorization: " : "",
                                client->token ? client->token : "", client->token ? "\r\n" : "");
    return request;
}

static void etcd_request_done(struct client_request *request)
{
    free((char *)(uintptr_t)request->url);
    free((char *)(uintptr_t)request->headers);
}

/* client_done_fn */
static void etcd_call_on_answer(void *data, const struct client_response *response,
                                const struct aq_error *err)
{
    struct etcd_client *client = data;

    client->call = NULL;
    if (response)
        client->call_done(client->call_data, response->head->status, response->body,
                          response->body_len, err);
    else
        client->call_done(client->call_data, 0, NULL, 0, err);
}

int etcd_client_call(struct etcd_client *client, const char *path, const struct strbuf *body,
                     etcd_done_fn *done, void *data, struct aq_error *err)
{
    struct client_request request = etcd_request_make(client, path, body);
    int r;

    request.body_max = ETCD_ANSWER_MAX;
    client->call_done = done;
    client->call_data = data;
    client->call_begun_usec = clock_monotonic_usec();
    r = client_fetch(client->http, &request, etcd_call_on_answer, client, &client->call, err);
    etcd_request_done(&request);
    return r;
}

bool etcd_client_is_calling(const struct etcd_client *client)
{
    return client->call;
}

void etcd_client_end_late(struct etcd_client *client)
{
    struct aq_error err = { 0 };

    if (!client->call || clock_monotonic_usec() - client->call_begun_usec <= ETCD_CALL_USEC)
        return;
    exchange_cancel(AQ_TAKE(client->call));
    (void)aq_fail(&err, ETIMEDOUT, "etcd did not answer within %d s",
                  (int)(ETCD_CALL_USEC / USEC_PER_SEC));
    client->call_done(client->call_data, 0, NULL, 0, &err);
}

/* ---- login ---- */

static void etcd_login_on_answer(void *data, int status, const char *text, size_t len,
                                 const struct aq_error *failure)
{
    struct etcd_client *client = data;
    struct aq_error err = *failure;
    int r = err.code ? -err.code : etcd_read_login(status, text, len, &client->token, &err);

    if (r < 0 && err.kind && strcmp(err.kind, ETCD_NO_USERS) == 0)
        err = (struct aq_error){ .code = 0 }; /* every client may do everything there */
    AQ_TAKE(client->login_done)(client->login_data, &err);
}

int etcd_client_login(struct etcd_client *client, etcd_login_fn *done, void *data,
                      struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT, password = STRBUF_INIT;
    int r;

    if (!client->settings->user)
        return -ENODATA;
    if ((r = secret_file_read(client->settings->password_file, &password, err)) < 0)
        return r;
    free(AQ_TAKE(client->token));
    etcd_write_login(&body, client->settings->user, password.data);
    client->login_done = done;
    client->login_data = data;
    r = etcd_client_call(client, "/v3/auth/authenticate", &body, etcd_login_on_answer, client, err);
    explicit_bzero(password.data, password.len);
    explicit_bzero(body.data, body.len);
    return r;
}

/* ---- the watch ---- */

static void etcd_watch_on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct etcd_client *client = data;

    (void)ex;
    client->watch_status = head->status;
}

static void etcd_watch_end(struct etcd_client *client, const struct aq_error *err)
{
    etcd_client_forget_line(client);
    client->watch_ops->on_end(client->watch_data, err);
}

/* Give whole lines. A callback may leave the endpoint, and then nothing is left to give. */
static void etcd_watch_give(struct etcd_client *client)
{
    size_t begin = 0, searched = client->watch_searched;

    while (client->watch && !client->is_watch_held && client->watch_status == 200) {
        const char *line = client->watch_line.data + begin;
        const char *end = memchr(line + searched, '\n', client->watch_line.len - begin - searched);

        searched = end ? 0 : client->watch_line.len - begin;
        if (!end)
            break;
        begin += (size_t)(end - line) + 1;
        client->watch_ops->on_line(client->watch_data, line, (size_t)(end - line));
    }
    if (!client->watch)
        return;
    strbuf_consume(&client->watch_line, begin);
    client->watch_searched = searched;
}

static void etcd_watch_on_body(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct etcd_client *client = data;
    struct aq_error err = { 0 };

    (void)ex;
    strbuf_add(&client->watch_line, bytes, len);
    etcd_watch_give(client);
    if (!client->watch || client->watch_line.len <= WATCH_LINE_MAX)
        return;
    exchange_cancel(AQ_TAKE(client->watch));
    (void)aq_fail(&err, EMSGSIZE, "etcd sent a line of more than %u bytes", WATCH_LINE_MAX);
    etcd_watch_end(client, &err);
}

static void etcd_watch_on_end(struct exchange *ex, const struct aq_error *failure, void *data)
{
    struct etcd_client *client = data;
    struct aq_error err = *failure;
    struct etcd_watch_answer answer = { .is_created = false };

    (void)ex;
    client->watch = NULL;
    if (!err.code && client->watch_line.len
        && etcd_read_watch(client->watch_line.data, client->watch_line.len, &answer, &err) == 0)
        etcd_pairs_done(&answer.pairs);
    if (!err.code)
        (void)aq_fail(&err, ECONNRESET, "it closed the connection");
    (void)aq_error_wrap(&err, "the watch for changes ended");
    etcd_watch_end(client, &err);
}

int etcd_client_watch(struct etcd_client *client, const struct strbuf *body,
                      const struct etcd_watch_ops *ops, void *data, struct aq_error *err)
{
    static const struct exchange_ops watch_ops = { .on_head = etcd_watch_on_head,
                                                   .on_body = etcd_watch_on_body,
                                                   .on_end = etcd_watch_on_end };
    struct client_request request = etcd_request_make(client, "/v3/watch", body);
    int r;

    request.body_max = UINT64_MAX;
    client->watch_status = 0;
    client->watch_ops = ops;
    client->watch_data = data;
    client->is_watch_held = false;
    etcd_client_forget_line(client);
    r = client_send(client->http, &request, &watch_ops, client, &client->watch, err);
    etcd_request_done(&request);
    return r;
}

void etcd_client_hold_watch(struct etcd_client *client, bool is_held)
{
    client->is_watch_held = is_held;
    if (client->watch && is_held)
        exchange_pause(client->watch);
    if (!client->watch || is_held)
        return;
    exchange_resume(client->watch);
    etcd_watch_give(client);
}
