/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and watches, against a server that says what each test has written down. */
#include "http/net.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "kube/object.h"
#include "kube/watch.h"

/* An answer: to the first request whose query has 'asks'; each is given once, in their order. */
struct step {
    const char *asks;
    int status;
    const char *body;
    bool stays_open;
};

#define LAST         \
    {                \
        .asks = NULL \
    }

static const struct step *next_step;
static struct strbuf told; /* what the watch said, in short */
static char authorization[100], asked[600];
static struct request *open_request;
static char token_path[64];

static struct net net;
static struct kube_api *api;
static struct kube_watch *watch;

static void on_gone_request(struct request *req, void *data)
{
    (void)data;
    if (open_request == req)
        open_request = NULL;
    request_end(req);
}

static void on_pods(struct request *req, void *data)
{
    const struct step *step = next_step;
    const char *header = request_get_header(req, "authorization");

    (void)data;
    (void)snprintf(authorization, sizeof(authorization), "%s", header ? header : "");
    (void)snprintf(asked, sizeof(asked), "%s", request_get_target(req));
    if (!step->asks || !strstr(asked, step->asks)) {
        request_reply(req, 500, "text/plain", "unexpected", 10);
        return;
    }
    next_step++;
    if (step->status != 200) {
        request_reply(req, step->status, "application/json", step->body, strlen(step->body));
        return;
    }
    request_set_gone(req, on_gone_request, NULL);
    request_begin(req, 200, "application/json", NULL, NULL);
    assert_int_equal(request_write(req, step->body, strlen(step->body)), 0);
    if (step->stays_open)
        open_request = req;
    else
        request_end(req);
}

static void on_patch(struct request *req, void *data)
{
    size_t len;
    const char *body = request_get_body(req, &len);

    (void)data;
    (void)snprintf(asked, sizeof(asked), "%s %.*s", request_get_header(req, "content-type"),
                   (int)len, body);
    if (strstr(asked, "conflict"))
        request_reply(req, 409, "application/json",
                      "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"modified\"}", 58);
    else
        request_reply(req, 200, "application/json", "{\"metadata\":{\"name\":\"a\"}}", 25);
}

static const struct route routes[] = {
    { METHOD_GET, "/api/v1/pods", 0, on_pods, NULL, "List", 0, 0 },
    { METHOD_PATCH, "/api/v1/pods", 0, on_patch, NULL, "Patch", 0, 0 },
};

static void on_object(void *data, const char *key, const json_t *object)
{
    (void)data;
    strbuf_addf(&told, "+%s@%s ", key, kube_object_version(object));
}

static void on_gone(void *data, const char *key)
{
    (void)data;
    strbuf_addf(&told, "-%s ", key);
}

static void on_synced(void *data)
{
    (void)data;
    strbuf_adds(&told, "synced ");
}

static void on_failed(void *data, const struct aq_error *err)
{
    (void)data;
    strbuf_addf(&told, "(%s) ", err->text);
}

static void write_token(const char *text)
{
    assert_int_equal(fs_write_atomic(AT_FDCWD, token_path, text, strlen(text), 0600, NULL), 0);
}

static int set_up(void **state)
{
    struct kube_api_conf conf = { .token_file = token_path };

    (void)state;
    strbuf_init(&told);
    open_request = NULL;
    (void)snprintf(token_path, sizeof(token_path), "/tmp/aliquot-token-%d", (int)getpid());
    write_token("first\n");
    net_up(&net, routes, AQ_COUNT(routes), NULL, NULL, NULL);
    conf.url = net.base;
    assert_int_equal(kube_api_new(&net.loop, &conf, &api, NULL), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kube_watch_free(AQ_TAKE(watch));
    kube_api_free(api);
    net_down(&net);
    strbuf_done(&told);
    (void)unlink(token_path);
    return 0;
}

/* Follow the steps until the watch has said this. */
static void run(const struct step *steps, const char *expected)
{
    const struct kube_watch_conf conf = { .api = api,
                                          .path = "/api/v1/pods",
                                          .selector = "fieldSelector=spec.nodeName%3Dn1",
                                          .on_object = on_object,
                                          .on_gone = on_gone,
                                          .on_synced = on_synced,
                                          .on_failed = on_failed };

    next_step = steps;
    watch = kube_watch_new(&conf);
    RUN_UNTIL(&net, strlen(told.data) >= strlen(expected) && !next_step->asks);
    assert_string_equal(told.data, expected);
    assert_non_null(strstr(asked, "fieldSelector=spec.nodeName%3Dn1"));
}

#define POD(name, version) \
    "{\"metadata\":{\"namespace\":\"s\",\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define LIST(version, more, items)                                            \
    "{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" more \
    "\"},\"items\":[" items "]}"

static void test_pages_then_changes(void **state)
{
    static const struct step steps[] = {
        { "?limit=250&field", 200, LIST("7", "a+b", POD("p1", "3") "," POD("p2", "4")), false },
        { "&continue=a%2Bb", 200, LIST("7", "", POD("p3", "5")), false },
        { "resourceVersion=7&", 200,
          EVENT("ADDED", POD("p4", "8")) EVENT("MODIFIED", POD("p1", "9"))
              EVENT("DELETED", POD("p2", "10")) EVENT("DELETED", POD("p9", "11"))
                  EVENT("NEW", POD("p9", "12"))
                      EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"20\"}}"),
          false },
        { "resourceVersion=20&", 200, EVENT("ADDED", POD("p5", "21")), true },
        LAST,
    };

    (void)state;
    run(steps, "+s/p1@3 +s/p2@4 +s/p3@5 synced +s/p4@8 +s/p1@9 -s/p2 +s/p5@21 ");
    assert_string_equal(authorization, "Bearer first");
}

static void test_what_is_too_old_is_listed_anew(void **state)
{
    static const struct step steps[] = {
        { "?limit", 200, LIST("7", "", POD("p1", "3") "," POD("p2", "4")), false },
        { "resourceVersion=7&", 200,
          EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410}") "{\"rest\":", true },
        { "?limit", 200, LIST("9", "", POD("p2", "4")), false },
        { "resourceVersion=9&", 410, "{\"message\":\"too old\"}", false },
        { "?limit", 200, LIST("12", "", POD("p3", "11")), false },
        { "resourceVersion=12&", 200, "", true },
        LAST,
    };

    (void)state;
    run(steps, "+s/p1@3 +s/p2@4 synced +s/p2@4 -s/p1 synced +s/p3@11 -s/p2 synced ");
}

static void test_what_goes_wrong_is_told_and_tried_again(void **state)
{
    static const struct step steps[] = {
        { "?limit", 403, "{\"message\":\"pods is forbidden\"}", false },
        { "?limit", 200, LIST("7", "", ""), false },
        { "resourceVersion=7&", 200, EVENT("ADDED", "{\"metadata\":{}}"), true },
        { "?limit", 200, LIST("8", "", ""), false },
        { "resourceVersion=8&", 429, "busy", false },
        { "resourceVersion=8&", 200, EVENT("ADDED", POD("p1", "9")), true },
        LAST,
    };

    (void)state;
    run(steps, "(the API server says 403: pods is forbidden) synced "
               "(a watch: an object without a name) synced "
               "(the API server says 429: nothing more) +s/p1@9 ");
}

/* ---- one request ---- */

struct answer_seen {
    bool is_done, has_answer;
    struct aq_error err;
};

static void on_done(void *data, const json_t *answer, const struct aq_error *err)
{
    struct answer_seen *seen = data;

    seen->is_done = true;
    seen->has_answer = answer != NULL;
    seen->err = *err;
}

static void test_a_patch(void **state)
{
    struct kube_ask ask = { METHOD_PATCH, "/api/v1/pods", "{\"a\":1}", KUBE_MERGE_PATCH };
    struct answer_seen seen = { .is_done = false };
    struct kube_call *call;

    (void)state;
    assert_int_equal(kube_api_ask(api, &ask, on_done, &seen, &call, NULL), 0);
    RUN_UNTIL(&net, seen.is_done);
    assert_true(seen.has_answer);
    assert_string_equal(asked, "application/merge-patch+json {\"a\":1}");

    seen.is_done = false;
    ask.body = "conflict";
    assert_int_equal(kube_api_ask(api, &ask, on_done, &seen, &call, NULL), 0);
    RUN_UNTIL(&net, seen.is_done);
    assert_int_equal(seen.err.code, ESTALE);
    assert_string_equal(seen.err.text, "the API server says 409: modified");

    seen.is_done = false;
    assert_int_equal(kube_api_ask(api, &ask, on_done, &seen, &call, NULL), 0);
    kube_call_cancel(call);
    (void)uv_run(&net.loop, UV_RUN_NOWAIT);
    assert_false(seen.is_done);
}

static void test_a_token_is_read_for_each_request(void **state)
{
    static const struct step steps[] = { { "pods", 200, "{}", false },
                                         { "pods", 200, "[]", false },
                                         LAST };
    const struct kube_ask ask = { .method = METHOD_GET, .path = "/api/v1/pods" };
    struct answer_seen seen = { .is_done = false };
    struct aq_error err = { 0 };
    struct kube_call *call;

    (void)state;
    next_step = steps;
    write_token("second");
    assert_int_equal(kube_api_ask(api, &ask, on_done, &seen, &call, NULL), 0);
    RUN_UNTIL(&net, seen.is_done);
    assert_true(seen.has_answer);
    assert_string_equal(authorization, "Bearer second");
    seen.is_done = false;
    assert_int_equal(kube_api_ask(api, &ask, on_done, &seen, &call, NULL), 0);
    RUN_UNTIL(&net, seen.is_done);
    assert_int_equal(seen.err.code, EPROTO);
    write_token("two words");
    assert_int_equal(kube_api_ask(api, &ask, on_done, &seen, &call, &err), -EINVAL);
    assert_null(strstr(err.text, "words"));
    assert_int_equal(unlink(token_path), 0);
    assert_int_equal(kube_api_ask(api, &ask, on_done, &seen, &call, &err), -ENOENT);
}

static void test_statuses(void **state)
{
    static const struct {
        int status, code;
        const char *body;
    } rows[] = {
        { 400, EINVAL, "{}" },
        { 401, EACCES, "" },
        { 403, EPERM, "[1]" },
        { 404, ENOENT, "{\"message\":3}" },
        { 409, EEXIST, "{\"reason\":\"AlreadyExists\"}" },
        { 409, ESTALE, "{\"reason\":\"Conflict\"}" },
        { 410, EKEYEXPIRED, "{" },
        { 422, EINVAL, "{}" },
        { 503, EAGAIN, "{}" },
        { 500, EIO, "{}" },
        { 302, EIO, "{}" },
    };
    struct aq_error err;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(kube_status_read(rows[i].status, rows[i].body, strlen(rows[i].body), &err)
                       == -rows[i].code,
                   "%zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages_then_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_too_old_is_listed_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_goes_wrong_is_told_and_tried_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_patch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_token_is_read_for_each_request, set_up, tear_down),
        cmocka_unit_test(test_statuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
