/* SPDX-License-Identifier: Apache-2.0 */
/* The whole HTTP interface over a real core in a temporary directory, without sockets. */
#include "testing.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "http/loopback.h"
#include "http/sign.h"
#include "manager/call/api.h"
#include "manager/http_api.h"
#include "manager/session/session_view.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/nodes/inventory.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define HOST "127.0.0.1:8081"
#define JSON "application/json"

struct key {
    const char *access_key, *secret_key;
    int role; /* -1 = nobody */
};

static const struct key anonymous = { NULL, NULL, -1 };
static const struct key admin = { "AKIAIOSFODNN7EXAMPLE",
                                  "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ROLE_SUPERADMIN };
static const struct key domain_admin = { "AKIAHUKCHDEZGEXAMPLE",
                                         "cWbsM_vBB4CzTW7JdORRMx8SjGI3-wEXAMPLEKEY", ROLE_ADMIN };
static const struct key user = { "AKIANABBDUSEREXAMPLE", "C8qnIo29EZvXkPK_MXcuAakYTy4NYrxwmCEyNPlf",
                                 ROLE_USER };

static struct fixture {
    char dir[64];
    uv_loop_t loop;
    struct core *core;
    struct api *api;
    struct server *server;
    bool stopped;
    int64_t skew_usec; /* of the clock that signs */
} f;

/* ---- requests ---- */

struct answer {
    int status;
    char *head;
    json_t *json; /* NULL = none */
    struct strbuf raw;
};

static void answer_done(struct answer *answer)
{
    json_decref(answer->json);
    strbuf_done(&answer->raw);
}

static const char *slug(const struct answer *answer)
{
    const char *type = json_string_value(json_object_get(answer->json, "type"));

    return type && strrchr(type, '/') ? strrchr(type, '/') + 1 : "";
}

/* The whole answer has come, or the head of one without end. */
static bool is_complete(const struct strbuf *out)
{
    const char *end = strstr(out->data, "\r\n\r\n"),
               *length = strcasestr(out->data, "content-length:");

    if (!end)
        return false;
    if (!length || length > end)
        return true;
    return out->len >= (size_t)(end + 4 - out->data) + strtoul(length + 15, NULL, 10);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static struct answer exchange(const struct strbuf *request)
{
    struct answer answer = { .raw = STRBUF_INIT };
    struct loopback *lb;
    uv_timer_t tick;

    lb = loopback_new(f.server);
    uv_timer_init(&f.loop, &tick);
    uv_timer_start(&tick, on_tick, 1, 1);
    loopback_send(lb, request->data, request->len);
    for (int i = 0; i < 20000 && !is_complete(loopback_get_output(lb)); i++)
        uv_run(&f.loop, UV_RUN_ONCE);
    assert_true(is_complete(loopback_get_output(lb)));
    strbuf_add(&answer.raw, loopback_get_output(lb)->data, loopback_get_output(lb)->len);
    loopback_hang_up(lb);
    uv_close((uv_handle_t *)&tick, NULL);
    for (int i = 0; i < 3; i++)
        uv_run(&f.loop, UV_RUN_NOWAIT);
    loopback_free(lb);
    answer.status = atoi(answer.raw.data + 9);
    answer.json = json_loads(strstr(answer.raw.data, "\r\n\r\n") + 4, JSON_DISABLE_EOF_CHECK, NULL);
    return answer;
}

/* The head lines that sign a request. */
static void add_signature(struct strbuf *out, const char *method, const char *target,
                          const struct key *who)
{
    const struct sign_input input = { .method = method,
                                      .target = target,
                                      .host = HOST,
                                      .content_type = JSON,
                                      .version = "v9.20250722" };

    if (who->access_key)
        assert_int_equal(sign_write_headers(&input, who->access_key, who->secret_key,
                                            clock_realtime_usec() + f.skew_usec, 0, out, NULL),
                         0);
}

static void build(struct strbuf *out, const char *method, const char *target, const struct key *who,
                  const char *body)
{
    strbuf_addf(out, "%s %s HTTP/1.1\r\nHost: " HOST "\r\nContent-Type: " JSON "\r\n", method,
                target);
    add_signature(out, method, target, who);
    strbuf_addf(out, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
}

static struct answer call(const char *method, const char *target, const struct key *who,
                          const char *body)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf request = STRBUF_INIT;

    build(&request, method, target, who, body);
    assert_true(strbuf_ok(&request));
    return exchange(&request);
}

/* ---- the fixture ---- */

static int setup(void **state)
{
    const struct core_conf conf = { .loop = &f.loop, .state_dir = f.dir, .dev = true };
    struct server_options options = { 0 };
    struct aq_error err = { 0 };

    (void)state;
    strcpy(f.dir, "/tmp/aliquot-api-XXXXXX");
    if (!mkdtemp(f.dir) || uv_loop_init(&f.loop) < 0)
        return -1;
    if (core_new(&conf, &f.core, &err) < 0 || api_new(f.core, &f.api, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    options.app.router = api_get_router(f.api);
    options.app.guard = api_guard;
    options.app.guard_data = f.api;
    f.server = server_new(&f.loop, &options);
    if (core_start(f.core, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    return 0;
}

static void on_stopped(void *data)
{
    *(bool *)data = true;
}

static void close_all(uv_handle_t *handle, void *data)
{
    (void)data;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static int teardown(void **state)
{
    (void)state;
    server_stop(f.server, 100, on_stopped, &f.stopped);
    while (!f.stopped)
        uv_run(&f.loop, UV_RUN_ONCE);
    core_stop(f.core);
    uv_run(&f.loop, UV_RUN_NOWAIT);
    server_free(f.server);
    api_free(f.api);
    core_free(f.core);
    uv_walk(&f.loop, close_all, NULL);
    uv_run(&f.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&f.loop) < 0)
        return -1;
    return fs_remove_tree(AT_FDCWD, f.dir, NULL);
}

/* ---- every route, every role ---- */

/* "/session/{name}/logs" -> "/session/nobody-has-this/logs" */
static void fill_path(const char *path, struct strbuf *out)
{
    for (; *path; path++) {
        if (*path == '{') {
            strbuf_adds(out, "nobody-has-this");
            path = strchr(path, '}');
        } else {
            strbuf_addc(out, *path);
        }
    }
}

/* Without a signature there is no date either, which is what is said first. */
static bool is_refused(const struct answer *answer)
{
    return strcmp(slug(answer), "auth-failed") == 0
           || strcmp(slug(answer), "invalid-auth-params") == 0;
}

static void check_route(const struct route *route, const struct key *who)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    enum api_role need = (enum api_role)(route->role & API_ROLE_MASK);
    bool may = need == API_PUBLIC
               || (who->role >= 0 && principal_may((enum user_role)who->role, need));
    struct answer answer;

    fill_path(route->path, &path);
    answer = call(method_name(route->method), path.data, who, "");
    assert_row(is_refused(&answer) == !may, "%s %s as %s gives %d %s", method_name(route->method),
               path.data, who->access_key ? who->access_key : "nobody", answer.status,
               answer.raw.data);
    assert_row(answer.status != 500, "%s %s: %s", method_name(route->method), path.data,
               answer.raw.data);
    answer_done(&answer);
}

static void test_roles(void **state)
{
    static const struct key *const everyone[] = { &anonymous, &user, &domain_admin, &admin };
    const struct route *const *routes;
    size_t count;

    (void)state;
    routes = router_list(api_get_router(f.api), &count);
    assert_true(count > 50);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < AQ_COUNT(everyone); k++)
            if (strcmp(routes[i]->path, "/auth/authorize") != 0) /* answers 401 itself */
                check_route(routes[i], everyone[k]);
}

/* ---- signatures ---- */

static void expect(struct answer answer, int status, const char *want, const char *row)
{
    assert_row(answer.status == status && strcmp(slug(&answer), want) == 0, "%s: %s", row,
               answer.raw.data);
    answer_done(&answer);
}

static void test_signatures(void **state)
{
    static const struct key wrong = { "AKIANABBDUSEREXAMPLE", "nonsense", ROLE_USER };
    static const struct key stranger = { "AKIAAAAAAAAAAAAAAAAA", "nonsense", ROLE_USER };
    AQ_CLEANUP(strbuf_donep) struct strbuf request = STRBUF_INIT;

    (void)state;
    expect(call("GET", "/auth?echo=x", &user, ""), 200, "", "a good one");
    expect(call("GET", "/auth?echo=x", &anonymous, ""), 400, "invalid-auth-params", "no date");
    expect(call("GET", "/auth?echo=x", &wrong, ""), 401, "auth-failed", "another secret");
    expect(call("GET", "/auth?echo=x", &stranger, ""), 401, "auth-failed", "unknown key");
    f.skew_usec = INT64_C(880) * USEC_PER_SEC;
    expect(call("GET", "/auth?echo=x", &user, ""), 200, "", "a clock 880 s ahead");
    f.skew_usec = INT64_C(-920) * USEC_PER_SEC;
    expect(call("GET", "/auth?echo=x", &user, ""), 400, "invalid-auth-params", "920 s behind");
    f.skew_usec = 0;
    build(&request, "POST", "/auth", &user, "{\"echo\":\"x\"}");
    expect(exchange(&request), 200, "", "the first time");
    expect(exchange(&request), 401, "auth-failed", "a replay");
    strbuf_clear(&request);
    strbuf_adds(&request,
                "GET /auth/role HTTP/1.1\r\nHost: " HOST "\r\nContent-Type: " JSON "\r\n");
    add_signature(&request, "GET", "/auth?echo=x", &user);
    strbuf_adds(&request, "\r\n");
    expect(exchange(&request), 401, "auth-failed", "signed for another path");
}

/* ---- bodies of POST /session ---- */

#define BATCH                                                                           \
    "{\"name\":\"%s\",\"image\":\"sh\",\"type\":\"batch\",\"startupCommand\":\"true\"," \
    "\"enqueueOnly\":true"

/* field NULL = accepted; "%s" becomes a fresh name */
static const struct {
    const char *body, *field;
} creations[] = {
    { BATCH "}", NULL },
    { BATCH ",\"config\":{\"resources\":{\"cpu\":\"1\",\"mem\":\"1g\"}}}", NULL },
    { BATCH ",\"config\":{\"resources\":{\"cpu\":1,\"cuda.shares\":0}}}", NULL },
    { BATCH ",\"config\":{\"mount_ids\":[],\"mount_map\":{},\"agentList\":[],"
            "\"preopen_ports\":null}}",
      NULL },
    { BATCH ",\"config\":{\"preopen_ports\":[8080,65535]}}", NULL },
    { BATCH ",\"config\":{\"preopen_ports\":[8080,8080]}}", "preopen_ports" },
    { BATCH ",\"config\":{\"preopen_ports\":[7681]}}", "preopen_ports" },
    { BATCH ",\"config\":{\"preopen_ports\":[1023]}}", "config.preopen_ports" },
    { BATCH ",\"owner_access_key\":null,\"callback_url\":null,\"dependencies\":null}", NULL },
    { BATCH ",\"starts_at\":\"10m\"}", NULL },
    { "{\"name\":\"%s\"}", "image" },
    { "{\"image\":\"sh\"}", "name" },
    { "{\"name\":\"x\",\"image\":\"sh\"}", "name" },
    { "{\"name\":\"-bad-\",\"image\":\"sh\"}", "name" },
    { "{\"name\":\"%s\",\"image\":\"sh\",\"type\":\"batch\"}", "startupCommand" },
    { "{\"name\":\"%s\",\"image\":\"sh\",\"type\":\"odd\"}", "type" },
    { "{\"name\":\"%s\",\"image\":\"sh\",\"starts_at\":\"10m\"}", "starts_at" },
    { BATCH ",\"starts_at\":\"yesterday\"}", "starts_at" },
    { BATCH ",\"clusterSize\":0}", "clusterSize" },
    { BATCH ",\"clusterSize\":-1}", "clusterSize" },
    { BATCH ",\"clusterSize\":99999999999}", "clusterSize" },
    { BATCH ",\"clusterMode\":\"odd\"}", "clusterMode" },
    { BATCH ",\"priority\":101}", "priority" },
    { BATCH ",\"group\":\"nobody\"}", "group" },
    { BATCH ",\"owner_access_key\":\"AKIAX\"}", "owner_access_key" },
    { BATCH ",\"config\":{\"resources\":{\"cpu\":\"-1\"}}}", "config.resources.cpu" },
    { BATCH ",\"config\":{\"resources\":{\"cpu\":\"1e3\"}}}", "config.resources.cpu" },
    { BATCH ",\"config\":{\"resources\":{\"mem\":\"99999999999g\"}}}", "config.resources.mem" },
    { BATCH ",\"config\":{\"resources\":{\"tpu\":\"1\"}}}", "config.resources.tpu" },
    { BATCH ",\"config\":{\"mounts\":[7]}}", "config.mounts" },
    { BATCH ",\"config\":{\"whatever\":1}}", "config.whatever" },
    { BATCH ",\"callback_url\":\"http://127.0.0.1/\"}", "callback_url" },
    { BATCH ",\"nmae\":1}", "nmae" },
};

static void test_creations(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(creations); i++) {
        char name[32], body[512];
        struct answer answer;

        snprintf(name, sizeof(name), "made-%zu", i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(body, sizeof(body), creations[i].body, name);
#pragma GCC diagnostic pop
        answer = call("POST", "/session", &admin, body);
        if (creations[i].field) {
            assert_row(answer.status == 400 && strcmp(slug(&answer), "invalid-api-params") == 0,
                       "%s: %s", body, answer.raw.data);
            assert_row(json_object_get(json_object_get(answer.json, "data"), creations[i].field),
                       "%s: %s", body, answer.raw.data);
        } else {
            assert_row(answer.status == 201, "%s: %s", body, answer.raw.data);
            assert_row(strcmp(json_string_value(json_object_get(answer.json, "sessionName")), name)
                           == 0,
                       "%s", body);
        }
        answer_done(&answer);
    }
}

static void test_reuse(void **state)
{
    static const char body[] = "{\"name\":\"twice\",\"image\":\"sh\",\"enqueueOnly\":true}";
    static const char other[] = "{\"name\":\"twice\",\"image\":\"bash\",\"enqueueOnly\":true}";
    static const char fresh[] =
        "{\"name\":\"twice\",\"image\":\"sh\",\"enqueueOnly\":true,\"reuseIfExists\":false}";
    struct answer first, again;

    (void)state;
    first = call("POST", "/session", &user, body);
    assert_int_equal(first.status, 201);
    again = call("POST", "/session", &user, body);
    assert_int_equal(again.status, 200);
    assert_true(json_equal(json_object_get(first.json, "sessionId"),
                           json_object_get(again.json, "sessionId")));
    assert_true(json_is_false(json_object_get(again.json, "created")));
    answer_done(&again);
    again = call("POST", "/session", &user, fresh);
    assert_int_equal(again.status, 400);
    assert_string_equal(slug(&again), "session-already-exists");
    assert_true(
        json_equal(json_object_get(first.json, "sessionId"),
                   json_object_get(json_object_get(again.json, "data"), "existingSessionId")));
    answer_done(&again);
    expect(call("POST", "/session", &user, other), 400, "session-already-exists", "other image");
    expect(call("GET", "/session/twi", &user, ""), 200, "", "by a prefix");
    expect(call("GET", "/session/twi", &domain_admin, ""), 404, "object-not-found", "not hers");
    expect(call("GET", "/session/twi?owner_access_key=AKIANABBDUSEREXAMPLE", &domain_admin, ""),
           200, "", "on behalf");
    expect(call("GET", "/session/twi?owner_access_key=AKIAIOSFODNN7EXAMPLE", &user, ""), 403,
           "generic-forbidden", "a user on behalf");
    expect(call("DELETE", "/session/twice?forced=true", &user, ""), 403, "insufficient-privilege",
           "by force");
    expect(call("DELETE", "/session/twice", &user, ""), 200, "", "ended");
    expect(call("DELETE", "/session/twice", &user, ""), 404, "object-not-found", "ended twice");
    answer_done(&first);
}

/* ---- states as old and new clients say them ---- */

static const struct {
    uint32_t major;
    const char *text;
    int64_t want; /* -1 = refused */
} status_lists[] = {
    { 9, "PENDING", 1 << SESSION_PENDING },
    { 9, "running,PENDING", 1 << SESSION_PENDING | 1 << SESSION_RUNNING },
    { 9, "PREPARING", 1 << SESSION_PREPARING },
    { 6, "PREPARING", 1 << SESSION_PREPARING | 1 << SESSION_PREPARED | 1 << SESSION_CREATING },
    { 6, "RUNNING", 1 << SESSION_RUNNING | 1 << SESSION_RUNNING_DEGRADED },
    { 6, "PENDING", 1 << SESSION_PENDING | 1 << SESSION_RESERVED | 1 << SESSION_DEPRIORITIZING },
    { 6, "TERMINATED", 1 << SESSION_TERMINATED },
    { 6, "", 0 },
    { 6, "RESIZING", INT64_C(1) << 31 },
    { 6, "NONSENSE", -1 },
    { 6, "RUNNING,NONSENSENONSENSENONSENSENONSENSENONSENSENONSENSE", -1 },
};

static void test_status_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(status_lists); i++) {
        const struct principal who = { .version = { .major = status_lists[i].major } };
        struct aq_error err = { 0 };
        uint32_t bits = 0;
        int r = session_view_read_statuses(&who, status_lists[i].text, &bits, &err);

        if (status_lists[i].want < 0)
            assert_row(r == -EINVAL && strcmp(err.field, "status") == 0, "%s",
                       status_lists[i].text);
        else
            assert_row(r == 0 && bits == (uint32_t)status_lists[i].want, "v%u %s gives %x",
                       status_lists[i].major, status_lists[i].text, bits);
    }
}

/* ---- GraphQL: keys in the order of the query ---- */

static void test_gql(void **state)
{
    static const char body[] =
        "{\"query\":\"query($limit:Int!, $offset:Int!, ) { "
        "compute_session_list(limit:$limit, offset:$offset) { items { status name type } "
        "total_count } keypair { is_admin access_key user_id } }\","
        "\"variables\":{\"limit\":20,\"offset\":0}}";
    struct answer answer;

    (void)state;
    answer = call("POST", "/admin/gql", &user, body);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.raw.data, "{\"data\":{\"compute_session_list\":{\"items\":["));
    assert_non_null(strstr(answer.raw.data,
                           "\"keypair\":{\"is_admin\":false,\"access_key\":"
                           "\"AKIANABBDUSEREXAMPLE\",\"user_id\":\"user@lablup.com\"}}}"));
    answer_done(&answer);
    answer = call("POST", "/admin/gql", &user, "{\"query\":\"{ agents { id } }\"}");
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.raw.data, "privilege required"));
    answer_done(&answer);
    answer = call("POST", "/admin/graphql", &admin, "{\"query\":\"{ keypair { is_active } }\"}");
    assert_non_null(strstr(answer.raw.data, "\r\n\r\n{\"keypair\":{\"is_active\":true}}"));
    answer_done(&answer);
    expect(call("POST", "/admin/graphql", &admin, "{\"query\":\"{ nothing }\"}"), 400,
           "graphql-error", "legacy");
}

/* ---- an agent that joins in the middle of a request ---- */

/* Reading threads of the store wait as long as this is locked. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static int read_held(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)tx;
    (void)data;
    (void)err;
    (void)pthread_mutex_lock(&held);
    (void)pthread_mutex_unlock(&held);
    return 0;
}

static void on_held(void *data, int result, const struct aq_error *err)
{
    (void)err;
    assert_int_equal(result, 0);
    ++*(int *)data;
}

static bool knows(const char *name)
{
    enum slot_type type;

    return slot_types_find(core_slot_types(f.core), name, &type) == 0;
}

static void save_domain(void)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_DOMAIN_SAVED, clock_realtime_usec());
    int saved = 0;

    e->domain.name = strdup("mixed");
    e->domain.is_active = true;
    assert_int_equal(slots_set(&e->domain.total_slots, slot_name_intern("xpu.memory", 10), 1500000),
                     0);
    core_save(f.core, batch, NULL, on_held, &saved);
    while (!saved)
        uv_run(&f.loop, UV_RUN_ONCE);
}

static void agent_joins(const char *slots)
{
    const struct uuid incarnation = uuid_random();
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = "i-late",
                               .incarnation = incarnation,
                               .version = "1",
                               .architecture = "x86_64",
                               .slots = slots };
    struct msg_welcome welcome = { 0 };
    struct aq_error err = { 0 };
    int64_t retry = 0;

    assert_int_equal(inventory_link_ops.on_hello(f.core, &hello, &welcome, &retry, &err), 0);
    inventory_link_ops.on_connected(f.core, "i-late", &incarnation);
}

/* "xpu.memory" is taken for bytes until an agent says that it is counted: the
 * request that came before the agent is answered in bytes to its end, the next
 * one in counts.
 */
static void test_types_stay_for_a_request(void **state)
{
    static const char query[] =
        "{\"query\":\"{ domain(name: \\\"mixed\\\") { total_resource_slots } }\"}";
    AQ_CLEANUP(strbuf_donep) struct strbuf request = STRBUF_INIT;
    struct loopback *lb;
    struct answer next;
    uv_timer_t tick;
    int freed = 0;

    (void)state;
    save_domain();
    (void)pthread_mutex_lock(&held);
    for (int i = 0; i < 2; i++) /* every reader of the store */
        store_read(core_store(f.core), read_held, on_held, &freed);
    build(&request, "POST", "/admin/gql", &admin, query);
    lb = loopback_new(f.server);
    uv_timer_init(&f.loop, &tick);
    uv_timer_start(&tick, on_tick, 1, 1);
    loopback_send(lb, request.data, request.len);
    for (int i = 0; i < 20; i++)
        uv_run(&f.loop, UV_RUN_ONCE);
    assert_false(is_complete(loopback_get_output(lb)));
    agent_joins(
        "{\"cpu\":[\"count\",\"1\"],\"mem\":[\"bytes\",\"1\"],\"xpu.memory\":[\"count\",\"2\"]}");
    while (!knows("xpu.memory"))
        uv_run(&f.loop, UV_RUN_ONCE);
    assert_false(is_complete(loopback_get_output(lb)));
    (void)pthread_mutex_unlock(&held);
    while (freed < 2 || !is_complete(loopback_get_output(lb)))
        uv_run(&f.loop, UV_RUN_ONCE);
    assert_non_null(strstr(loopback_get_output(lb)->data, "{\\\"xpu.memory\\\":\\\"1500000\\\"}"));
    loopback_hang_up(lb);
    uv_close((uv_handle_t *)&tick, NULL);
    for (int i = 0; i < 3; i++)
        uv_run(&f.loop, UV_RUN_NOWAIT);
    loopback_free(lb);
    next = call("POST", "/admin/gql", &admin, query);
    assert_non_null(strstr(next.raw.data, "{\\\"xpu.memory\\\":\\\"1.5\\\"}"));
    answer_done(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_creations),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_status_lists),
        cmocka_unit_test(test_gql),
        cmocka_unit_test(test_types_stay_for_a_request),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
