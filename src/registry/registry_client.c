/* SPDX-License-Identifier: Apache-2.0 */
/* Reading from one container registry. */
#include "registry/registry_client.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json_load.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/client_sync.h"
#include "http/network.h"
#include "http/tls.h"
#include "registry/registry_challenge.h"

#define CONNECT_MSEC 10000
#define ANSWER_MSEC 30000
#define POLL_MSEC 200 /* between two looks at 'stop' */
#define REQUEST_MSEC 120000
#define REDIRECTS_MAX 5
#define TRIES_MAX 4           /* of one request */
#define REPEATS_MAX 200       /* of all requests of one client */
#define PAUSE_MSEC 1000       /* before the second try; doubled before each further one */
#define PAUSE_MAX_MSEC 60000u /* however long the registry wants */
#define TOKEN_MAX 16384
#define TOKEN_BODY_MAX (4 * TOKEN_MAX)

enum reach { REACH_PUBLIC, REACH_PRIVATE, REACH_OWN, REACH_LOOPBACK, REACH_NEVER };

struct registry_client {
    struct registry_client_conf conf;
    struct url url;
    struct tls_context *tls;
    struct client_sync *sync;
    uv_timer_t poll;
    char *authorization; /* the header's value; NULL = none was wanted yet */
    bool is_own_host;    /* of the request under way */
    enum reach own;      /* of the registry's own address */
    unsigned repeats;    /* tries after the first, of all requests */
    unsigned wait_sec;   /* Retry-After of the last answer; 0 = none */
};

/* The headers of a request, and where its answer goes. */
struct registry_wish {
    const char *accept, *range; /* values of headers; NULL = none */
    size_t body_max;
    const struct registry_reader *reader; /* NULL = the body is collected */
};

/* One request and its answer. */
struct registry_fetch {
    struct registry_client *rc;
    struct registry_answer *answer;
    const struct registry_reader *reader;
    struct exchange *exchange;
    char *challenge, *location;
    uint64_t until_msec;
    bool is_over;
    struct aq_error err;
};

void registry_answer_done(struct registry_answer *answer)
{
    strbuf_done(&answer->body);
    *answer = (struct registry_answer){ .body = STRBUF_INIT };
}

/* ---- where it may connect to ---- */

static bool registry_client_is_in(const struct sockaddr *addr, const char *const *networks,
                                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct network network;

        if (network_parse(networks[i], &network) == 0 && network_has(&network, addr))
            return true;
    }
    return false;
}

static enum reach registry_client_reach_of(const struct sockaddr *addr)
{
    static const char *const never[] = { "169.254.0.0/16",  "fe80::/10",   "fd00:ec2::/32",
                                         "100.100.100.200", "224.0.0.0/4", "ff00::/8" };
    static const char *const loopback[] = { "127.0.0.0/8", "::1", "0.0.0.0/8", "::" };
    struct sockaddr_in four;
    /* An IPv6 address may lead to the IPv4 address that it carries. */
    const struct sockaddr *both[2] = { addr, addr };
    struct aq_error err = { 0 };
    bool is_own;

    if (network_get_four(addr, &four))
        both[1] = (const struct sockaddr *)&four;
    for (size_t i = 0; i < AQ_COUNT(both); i++)
        if (registry_client_is_in(both[i], never, AQ_COUNT(never)))
            return REACH_NEVER;
    for (size_t i = 0; i < AQ_COUNT(both); i++)
        if (registry_client_is_in(both[i], loopback, AQ_COUNT(loopback)))
            return REACH_LOOPBACK;
    if (network_is_own(addr, &is_own, &err) < 0) {
        log_error("not connecting to a registry: %s", err.text);
        return REACH_NEVER;
    }
    if (is_own)
        return REACH_OWN;
    return network_is_private(addr) ? REACH_PRIVATE : REACH_PUBLIC;
}

static bool registry_client_may_reach(void *data, const struct sockaddr *addr)
{
    struct registry_client *rc = data;
    enum reach reach = registry_client_reach_of(addr);

    if (rc->is_own_host && reach != REACH_NEVER)
        rc->own = reach;
    return reach != REACH_NEVER && reach <= rc->own;
}

/* ---- one request ---- */

/* A date is not read: the pause is ours then. */
static unsigned registry_client_read_wait(const struct message_head *head)
{
    const char *text = message_get_header(head, "Retry-After");
    unsigned sec = 0;

    for (; text && *text >= '0' && *text <= '9' && sec <= PAUSE_MAX_MSEC / 1000; text++)
        sec = 10 * sec + (unsigned)(*text - '0');
    return sec;
}

static bool registry_client_is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void registry_client_break_off(struct registry_fetch *fetch)
{
    exchange_cancel(AQ_TAKE(fetch->exchange));
    fetch->is_over = true;
}

static void registry_client_on_head(struct exchange *ex, const struct message_head *head,
                                    void *data)
{
    struct registry_fetch *fetch = data;
    const char *challenge = message_get_header(head, "WWW-Authenticate");
    const char *location = message_get_header(head, "Location");
    bool is_last = head->status != 401 && !registry_client_is_redirect(head->status);

    (void)ex;
    fetch->answer->status = head->status;
    fetch->rc->wait_sec = registry_client_read_wait(head);
    fetch->answer->has_next = message_get_header(head, "Link") != NULL;
    fetch->challenge = aq_strdup(challenge);
    fetch->location = aq_strdup(location);
    /* the bodies of redirects and refusals are not read */
    if (fetch->reader
        && (!is_last || fetch->reader->on_head(fetch->reader->data, head, &fetch->err) < 0))
        registry_client_break_off(fetch);
}

static void registry_client_on_body(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct registry_fetch *fetch = data;

    (void)ex;
    if (!fetch->reader) {
        strbuf_add(&fetch->answer->body, bytes, len);
        return;
    }
    fetch->until_msec = uv_now(client_sync_get_loop(fetch->rc->sync)) + REQUEST_MSEC;
    if (fetch->reader->on_body(fetch->reader->data, bytes, len, &fetch->err) < 0)
        registry_client_break_off(fetch);
}

static void registry_client_on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct registry_fetch *fetch = data;

    (void)ex;
    fetch->is_over = true;
    fetch->exchange = NULL;
    if (err->code)
        fetch->err = *err;
}

static void registry_client_on_poll(uv_timer_t *poll)
{
    struct registry_fetch *fetch = poll->data;
    bool is_late = uv_now(poll->loop) > fetch->until_msec;

    if (fetch->is_over || (!atomic_load(fetch->rc->conf.stop) && !is_late))
        return;
    registry_client_break_off(fetch);
    if (is_late)
        aq_fail(&fetch->err, ETIMEDOUT, "it has not answered in whole after %d seconds",
                REQUEST_MSEC / 1000);
    else
        aq_fail(&fetch->err, ECANCELED, "the program ends");
}

static int registry_client_wait(struct registry_client *rc, const struct client_request *request,
                                struct registry_fetch *fetch, struct aq_error *err)
{
    static const struct exchange_ops ops = { .on_head = registry_client_on_head,
                                             .on_body = registry_client_on_body,
                                             .on_end = registry_client_on_end };
    struct client *client = client_sync_get_client(rc->sync);
    uv_loop_t *loop = client_sync_get_loop(rc->sync);
    int r = client_send(client, request, &ops, fetch, &fetch->exchange, err);

    if (r < 0)
        return r;
    uv_update_time(loop);
    fetch->until_msec = uv_now(loop) + REQUEST_MSEC;
    rc->poll.data = fetch;
    (void)uv_timer_start(&rc->poll, registry_client_on_poll, 0, POLL_MSEC);
    while (!fetch->is_over)
        (void)uv_run(loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&rc->poll);
    if (fetch->err.code)
        *err = fetch->err;
    return -fetch->err.code;
}

static bool registry_client_is_own(const struct registry_client *rc, const struct url *url)
{
    return url->tls == rc->url.tls && strcasecmp(url->address.host, rc->url.address.host) == 0
           && url->address.port == rc->url.address.port;
}

static int registry_client_send(struct registry_client *rc, const char *url,
                                const struct registry_wish *wish, const char *authorization,
                                struct registry_fetch *fetch, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    struct url parsed;
    int r = url_parse(url, &parsed, err);

    if (r < 0)
        return r;
    if (parsed.address.is_unix || (rc->url.tls && !parsed.tls))
        return aq_fail(err, EPROTO, "it sends clients to an address without TLS");
    rc->is_own_host = registry_client_is_own(rc, &parsed);
    strbuf_adds(&headers, "User-Agent: aliquot\r\n");
    if (wish->accept)
        strbuf_addf(&headers, "Accept: %s\r\n", wish->accept);
    if (wish->range)
        strbuf_addf(&headers, "Range: %s\r\n", wish->range);
    if (wish->reader)
        strbuf_adds(&headers, "Accept-Encoding: identity\r\n");
    if (authorization)
        strbuf_addf(&headers, "Authorization: %s\r\n", authorization);
    fetch->reader = wish->reader;
    r = registry_client_wait(rc,
                             &(struct client_request){
                                 .method = METHOD_GET,
                                 .url = url,
                                 .headers = headers.data,
                                 .body_max = wish->body_max,
                             },
                             fetch, err);
    if (headers.data)
        explicit_bzero(headers.data, headers.len);
    return r;
}

static void registry_fetch_done(struct registry_fetch *fetch)
{
    free(fetch->challenge);
    free(fetch->location);
}

/* ---- logging in ---- */

int registry_client_fail_status(const char *who, int status, struct aq_error *err)
{
    if (status == 429)
        return aq_fail(err, EAGAIN, "%s limits the rate of requests (status 429); try again later",
                       who);
    if (status == 408 || status >= 500)
        return aq_fail(err, EREMOTEIO, "%s answers with status %d", who, status);
    if (status == 401 || status == 403)
        return aq_fail(err, EACCES, "%s refuses the login (status %d)", who, status);
    return aq_fail(err, EPROTO, "%s answers with status %d", who, status);
}

static int registry_client_set_basic(struct registry_client *rc, char **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *pair = NULL, *text = NULL;
    size_t size;

    if (!rc->conf.username || !rc->conf.password)
        return aq_fail(err, EACCES, "it wants a login, and none is kept for it");
    pair = aq_format("%s:%s", rc->conf.username, rc->conf.password);
    size = sodium_base64_encoded_len(strlen(pair), sodium_base64_VARIANT_ORIGINAL);
    text = aq_alloc(size);
    sodium_bin2base64(text, size, (const unsigned char *)pair, strlen(pair),
                      sodium_base64_VARIANT_ORIGINAL);
    explicit_bzero(pair, strlen(pair));
    *ret = aq_format("Basic %s", text);
    return 0;
}

/* It goes into a header: nothing but visible characters. */
static int registry_client_read_token(const struct registry_answer *answer, char **ret,
                                      struct aq_error *err)
{
    json_auto_t *body = json_load_text(answer->body.data ? answer->body.data : "", answer->body.len,
                                       0, NULL);
    const char *token = json_string_value(json_object_get(body, "token"));

    if (!token)
        token = json_string_value(json_object_get(body, "access_token"));
    if (!token || strlen(token) > TOKEN_MAX)
        return aq_fail(err, EPROTO, "its token service gives no token");
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return aq_fail(err, EPROTO, "its token service gives a token that is none");
    *ret = aq_format("Bearer %s", token);
    return 0;
}

static int registry_client_fetch_token(struct registry_client *rc,
                                       const struct registry_challenge *challenge, char **ret,
                                       struct aq_error *err)
{
    static const struct registry_wish wish = { .accept = "application/json",
                                               .body_max = TOKEN_BODY_MAX };
    AQ_CLEANUP(aq_freep) char *url = registry_challenge_url(challenge), *basic = NULL;
    struct registry_answer answer = { .body = STRBUF_INIT };
    struct registry_fetch fetch = { .rc = rc, .answer = &answer };
    int r = 0;

    if (rc->conf.username && rc->conf.password)
        r = registry_client_set_basic(rc, &basic, err);
    if (r == 0)
        r = registry_client_send(rc, url, &wish, basic, &fetch, err);
    if (r == 0 && answer.status != 200)
        r = registry_client_fail_status("its token service", answer.status, err);
    if (r == 0)
        r = registry_client_read_token(&answer, ret, err);
    if (basic)
        explicit_bzero(basic, strlen(basic));
    registry_fetch_done(&fetch);
    registry_answer_done(&answer);
    return r;
}

static int registry_client_log_in(struct registry_client *rc, const char *text,
                                  struct aq_error *err)
{
    struct registry_challenge challenge = { 0 };
    char *fresh = NULL;
    int r = text ? registry_challenge_parse(text, &challenge, err)
                 : aq_fail(err, EACCES, "it refuses (status 401)");

    if (r < 0)
        return r;
    r = challenge.is_bearer ? registry_client_fetch_token(rc, &challenge, &fresh, err)
                            : registry_client_set_basic(rc, &fresh, err);
    registry_challenge_done(&challenge);
    if (r == 0) {
        free(rc->authorization);
        rc->authorization = fresh;
    }
    return r;
}

/* ---- requests ---- */

/* Where the answer says that it is: of the registry's host, or a whole URL. */
static int registry_client_follow(const struct registry_client *rc, const char *location,
                                  char **url, struct aq_error *err)
{
    char *next;

    if (!location)
        return aq_fail(err, EPROTO, "it says that a thing is elsewhere, and not where");
    next = *location == '/'
               ? aq_format("%s://%s%s", rc->url.tls ? "https" : "http", rc->url.authority, location)
               : aq_strdup(location);
    free(*url);
    *url = next;
    return 0;
}

/* One try: 1 = once more, with what '*url' and the login are now. */
static int registry_client_try(struct registry_client *rc, char **url,
                               const struct registry_wish *wish, struct registry_answer *answer,
                               struct aq_error *err)
{
    struct registry_fetch fetch = { .rc = rc, .answer = answer };
    struct url parsed;
    bool is_own = url_parse(*url, &parsed, NULL) == 0 && registry_client_is_own(rc, &parsed);
    int r = registry_client_send(rc, *url, wish, is_own ? rc->authorization : NULL, &fetch, err);

    if (r == 0 && answer->status == 401 && is_own)
        r = registry_client_log_in(rc, fetch.challenge, err) < 0 ? -err->code : 1;
    else if (r == 0 && registry_client_is_redirect(answer->status))
        r = registry_client_follow(rc, fetch.location, url, err) < 0 ? -err->code : 1;
    registry_fetch_done(&fetch);
    return r;
}

/* With redirects and a login. */
static int registry_client_get_once(struct registry_client *rc, const char *path,
                                    const struct registry_wish *wish, struct registry_answer *ret,
                                    struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *url = aq_format("%s://%s%s", rc->url.tls ? "https" : "http",
                                               rc->url.authority, path);
    struct registry_answer answer = { .body = STRBUF_INIT };
    unsigned logins = 0;
    int r = 1;

    for (unsigned tries = 0; r == 1 && tries <= REDIRECTS_MAX && logins < 2; tries++) {
        registry_answer_done(&answer);
        r = registry_client_try(rc, &url, wish, &answer, err);
        logins += r == 1 && answer.status == 401;
    }
    if (r >= 0
        && (r == 1 || answer.status == 401
            || (!wish->reader && answer.status != 200 && answer.status != 404)))
        r = registry_client_fail_status("it", answer.status, err);
    if (r < 0)
        registry_answer_done(&answer);
    else
        *ret = answer;
    return r;
}

/* ---- once more ---- */

static bool registry_client_is_temporary(int code)
{
    switch (code) {
    case EPIPE:
    case ECONNRESET:
    case ECONNREFUSED:
    case ETIMEDOUT:
    case EAGAIN:
    case EREMOTEIO:
        return true;
    default:
        return false;
    }
}

static int registry_client_pause(const struct registry_client *rc, unsigned msec,
                                 struct aq_error *err)
{
    for (unsigned slept = 0; slept < msec; slept += POLL_MSEC) {
        if (atomic_load(rc->conf.stop))
            return aq_fail(err, ECANCELED, "the program ends");
        uv_sleep(POLL_MSEC);
    }
    return 0;
}

/* Repeats the request after failures that 'is_temporary' says are. */
static int registry_client_repeat(struct registry_client *rc, const char *path,
                                  const struct registry_wish *wish, bool (*is_temporary)(int code),
                                  struct registry_answer *ret, struct aq_error *err)
{
    for (unsigned tries = 1;; tries++) {
        unsigned pause_msec = PAUSE_MSEC << (tries - 1);
        struct aq_error why = { 0 };
        int r;

        rc->wait_sec = 0;
        r = registry_client_get_once(rc, path, wish, ret, &why);
        if (r >= 0)
            return r;
        if (!is_temporary(-r)) {
            *err = why;
            return r;
        }
        if (tries == TRIES_MAX || rc->repeats++ == REPEATS_MAX)
            return aq_fail(err, why.code, "%.300s; %u tries", why.text, tries);
        pause_msec = AQ_MIN(AQ_MAX(pause_msec, rc->wait_sec * 1000), PAUSE_MAX_MSEC);
        log_info("registry %s: %s; trying again in %u seconds", rc->url.authority, why.text,
                 pause_msec / 1000);
        if ((r = registry_client_pause(rc, pause_msec, err)) < 0)
            return r;
    }
}

int registry_client_get(struct registry_client *rc, const char *path, const char *accept,
                        size_t body_max, struct registry_answer *ret, struct aq_error *err)
{
    const struct registry_wish wish = { .accept = accept, .body_max = body_max };

    return registry_client_repeat(rc, path, &wish, registry_client_is_temporary, ret, err);
}

/* Nothing of a body has come then. */
static bool registry_client_is_limited(int code)
{
    return code == EAGAIN;
}

int registry_client_read(struct registry_client *rc, const char *path, uint64_t from,
                         const struct registry_reader *reader, struct aq_error *err)
{
    struct registry_answer answer = { .body = STRBUF_INIT };
    struct registry_wish wish = { .body_max = SIZE_MAX, .reader = reader };
    char range[40];
    int r;

    (void)snprintf(range, sizeof(range), "bytes=%llu-", (unsigned long long)from);
    wish.range = from ? range : NULL;
    r = registry_client_repeat(rc, path, &wish, registry_client_is_limited, &answer, err);
    registry_answer_done(&answer);
    return r;
}

/* ---- begin and end ---- */

static int registry_client_open(struct registry_client *rc, struct aq_error *err)
{
    const struct tls_options tls = { .skip_verify = rc->conf.skip_verify };
    struct client_options options = { .connect_msec = CONNECT_MSEC,
                                      .answer_msec = ANSWER_MSEC,
                                      .may_reach = registry_client_may_reach,
                                      .reach_data = rc };
    int r = url_parse(rc->conf.url, &rc->url, err);

    if (r == 0 && (rc->url.address.is_unix || strcmp(rc->url.target, "/") != 0))
        return aq_fail(err, EINVAL, "its address is not http[s]://HOST[:PORT]");
    if (r == 0)
        r = tls_context_new(&tls, &rc->tls, err);
    options.tls = rc->tls;
    if (r == 0)
        r = client_sync_new(&options, &rc->sync, err);
    if (r == 0)
        (void)uv_timer_init(client_sync_get_loop(rc->sync), &rc->poll);
    return r;
}

int registry_client_new(const struct registry_client_conf *conf, struct registry_client **ret,
                        struct aq_error *err)
{
    AQ_CLEANUP(registry_client_freep) struct registry_client *rc = aq_alloc(sizeof(*rc));
    int r;

    rc->conf = *conf;
    if ((r = registry_client_open(rc, err)) < 0)
        return r;
    *ret = AQ_TAKE(rc);
    return 0;
}

void registry_client_free(struct registry_client *rc)
{
    if (!rc)
        return;
    if (rc->sync)
        uv_close((uv_handle_t *)&rc->poll, NULL);
    client_sync_free(rc->sync);
    tls_context_free(rc->tls);
    if (rc->authorization)
        explicit_bzero(rc->authorization, strlen(rc->authorization));
    free(rc->authorization);
    free(rc);
}
