/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a manager, one at a time: which are repeated, to which manager, and when. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"
#include "base/uuid.h"
#include "cli/client_internal.h"
#include "cli/silence.h"
#include "http/problem.h"

#define ANSWER_MAX (UINT64_C(64) << 20)
#define EVENT_MAX (64u << 10)
#define ASK_AGAIN_USEC (60 * USEC_PER_SEC)
#define QUERY_PATH "/admin/gql" /* our commands send only queries there */
#define SILENT_MSEC 60000 /* without an answer, before the next of several managers is asked */

/* Note once that the manager answers from memory, as its database cannot be reached. */
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
             "aliquot: the manager has not reached its database since %.19sZ; it answers from "
             "memory, and changes wait",
             clock_format_utc(usec, since));
}

/* ---- choice of the manager ---- */

/* A request, and the state of its answer. */
struct client_ask {
    enum method method;
    const char *path, *body;
    uint64_t body_max;
    unsigned answer_msec;
    client_sync_body_fn *on_body;
    void *data;
    struct silence *silence; /* of a stream; NULL = none */
    bool has_begun;          /* 'on_body' has received bytes of an answer */
};

static int client_on_bytes(void *data, const char *bytes, size_t len)
{
    struct client_ask *ask = data;

    ask->has_begun = true;
    if (ask->silence)
        silence_broken(ask->silence);
    return ask->on_body(ask->data, bytes, len);
}

static int client_ask_one(struct cli *cli, struct client_ask *ask, struct client_reply *reply,
                          struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    struct client_request request = { .method = ask->method,
                                      .body = ask->body,
                                      .body_len = ask->body ? strlen(ask->body) : 0,
                                      .body_max = ask->body_max,
                                      .answer_msec = ask->answer_msec };
    int r = client_prepare(cli, ask->method, ask->path,
                           ask->body ? "application/json" : "text/plain", &url, &headers, err);

    if (r < 0)
        return r;
    request.url = url.data;
    request.headers = headers.data;
    cli->client->was_sent = false;
    r = client_sync_stream(cli->client->sync, &request, ask->on_body ? client_on_bytes : NULL, ask,
                           reply, err);
    if (r >= 0)
        client_note_stale(cli, reply);
    return r;
}

/* True if the answer says that the request was not processed: a manager without a leader, or
 * without room for the request, answers service-unavailable with Retry-After.
 */
static bool client_is_undone(const struct client_reply *reply)
{
    json_auto_t *problem = json_loadb(reply->body.data, reply->body.len, 0, NULL);
    const char *type = json_string_value(json_object_get(problem, "type"));
    const char *slug = type ? strrchr(type, '/') : NULL;

    return reply->status == 503 && slug && strcmp(slug, "/service-unavailable") == 0
           && strstr(reply->headers.data, "Retry-After: ");
}

/* True if processing the request twice has the same effect as once. */
static bool client_is_harmless(const struct cli *cli, const struct client_ask *ask)
{
    return ask->method == METHOD_GET || ask->method == METHOD_HEAD || cli->client->once
           || strcmp(ask->path, QUERY_PATH) == 0;
}

/* Another manager may be asked if the request was not processed, or if repeating it is harmless. */
static bool client_may_ask_next(struct cli *cli, const struct client_ask *ask, int r,
                                const struct client_reply *reply)
{
    bool is_gateway = r == 0 && client_is_gateway_status(reply->status);

    if (r >= 0 && !is_gateway)
        cli->client->is_in_doubt = false;
    if (ask->has_begun || (!is_gateway && (r >= 0 || r == -EINVAL)))
        return false;
    if (is_gateway ? client_is_undone(reply) : !cli->client->was_sent)
        return true;
    cli->client->is_in_doubt |= is_gateway ? reply->status != 503 : client_is_lost(r);
    return client_is_harmless(cli, ask);
}

/* Ask the managers in turn, each at most once. */
static int client_ask(struct cli *cli, struct client_ask *ask, struct client_reply *reply,
                      struct aq_error *err)
{
    size_t tries = 0;
    bool goes_on;
    int r;

    cli->client->is_in_doubt = false;
    do {
        client_reply_done(reply);
        r = client_ask_one(cli, ask, reply, err);
        goes_on = client_may_ask_next(cli, ask, r, reply);
    } while (goes_on && ++tries < cli->client->endpoints.count);
    if (r >= 0 || r == -EINVAL)
        return r;
    if (cli->client->is_in_doubt && !client_is_harmless(cli, ask))
        cli_hint(cli, "the request may have been processed; check before you repeat it");
    return cli_fail_connection(cli, err);
}

/* ---- requests ---- */

int cli_fetch_body(struct cli *cli, enum method method, const char *path, const char *body,
                   client_sync_body_fn *on_body, void *data, struct client_reply *reply,
                   struct aq_error *err)
{
    struct client_ask ask = { .method = method,
                              .path = path,
                              .body = body,
                              .body_max = ANSWER_MAX,
                              .on_body = on_body,
                              .data = data };
    int r = client_need(cli, err);

    if (r < 0)
        return r;
    if (cli->client->endpoints.count > 1 && (method == METHOD_GET || cli->client->once))
        ask.answer_msec = SILENT_MSEC;
    return client_ask(cli, &ask, reply, err);
}

int cli_fetch(struct cli *cli, enum method method, const char *path, const char *body,
              struct client_reply *reply, struct aq_error *err)
{
    return cli_fetch_body(cli, method, path, body, NULL, NULL, reply, err);
}

int cli_fail_answer(const struct cli *cli, const char *why, struct aq_error *err)
{
    return aq_fail(err, EPROTO, "unexpected answer of %s, perhaps not a manager: %s",
                   cli_client_endpoint(cli), why);
}

int cli_check_status(const struct cli *cli, const struct client_reply *reply, struct aq_error *err)
{
    return reply->status < 200 || reply->status > 299
               ? cli_fail_status(cli, reply->status, reply->body.data, reply->body.len, err)
               : 0;
}

/* Fetch, and fail unless the status is 2xx. */
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

/* ---- requests that must be processed once ---- */

/* True while it is unknown whether the request was processed, or no manager has answered since. */
static bool client_may_ask_again(const struct cli *cli, int r, bool was_lost)
{
    return cli->client->is_in_doubt || (was_lost && (client_is_lost(r) || r == -EAGAIN));
}

static int client_call_until_answered(struct cli *cli, const char *path, const json_t *body,
                                      json_t **ret, struct aq_error *err)
{
    int64_t end = clock_monotonic_usec() + ASK_AGAIN_USEC, pause = 100 * USEC_PER_MSEC;
    bool was_lost = false;
    int r;

    while (client_may_ask_again(cli, r = cli_call(cli, METHOD_POST, path, body, ret, err), was_lost)
           && clock_monotonic_usec() < end) {
        if (!was_lost)
            cli_note(cli, "aliquot: no answer from the manager (%s); asking again", err->text);
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
    struct aq_error own = { 0 };
    char key[UUID_TEXT_MAX];
    int r = client_need(cli, err);

    if (r < 0)
        return r;
    cli->client->once = uuid_format(&id, key);
    r = client_call_until_answered(cli, path, body, ret, &own);
    cli->client->once = NULL;
    /* A manager of an earlier version rejects the key for this route, and has done nothing. */
    if (r == -EINVAL && strcmp(own.field, "Idempotency-Key") == 0)
        return cli_call(cli, METHOD_POST, path, body, ret, err);
    if (r < 0 && err)
        *err = own;
    return r;
}

/* ---- streams ---- */

int cli_stream(struct cli *cli, enum method method, const char *path, const json_t *body,
               client_sync_body_fn *on_body, void *data, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct client_reply reply = CLIENT_REPLY_INIT;
    struct silence silence;
    struct client_ask ask = { .method = method,
                              .path = path,
                              .body = text,
                              .body_max = UINT64_MAX,
                              .on_body = on_body,
                              .data = data,
                              .silence = &silence };
    int r = client_need(cli, err);

    if (r < 0)
        return r;
    silence_begin(&silence, cli, client_sync_get_loop(cli->client->sync));
    r = client_ask(cli, &ask, &reply, err);
    silence_end(&silence);
    if (r == 0)
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

static int client_on_copy(void *data, const char *bytes, size_t len)
{
    (void)data;
    return fs_write_all(STDOUT_FILENO, bytes, len);
}

int cli_copy(struct cli *cli, const char *path, struct aq_error *err)
{
    return cli_stream(cli, METHOD_GET, path, NULL, client_on_copy, NULL, err);
}
