/* SPDX-License-Identifier: Apache-2.0 */
/* Model services: what requests may say, states, caps, and what proxies hear. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "manager/serving/serving_params.h"
#include "manager/serving/serving_routes.h"
#include "manager/serving/serving_view.h"

/* Decode 'text', whose quotes are written as ', and change 's' and 'spec' by it. */
struct asked {
    struct arena arena;
    struct model_service s;
    struct model_service_spec spec;
    struct aq_error err;
};

static int ask(struct asked *a, const struct field *fields, const char *text)
{
    struct serving_params params = { .name = NULL };
    json_auto_t *tree = NULL;
    char *copy = arena_strdup(&a->arena, text);
    int r;

    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    tree = json_load_string(copy, 0);
    assert_row(tree, "%s", text);
    a->err = (struct aq_error){ 0 };
    params.spec.priority = SERVING_PRIORITY_DEFAULT;
    if ((r = decode_object(fields, tree, &a->arena, &params, &a->err)) < 0
        || (r = serving_params_apply(&params, tree, &a->s, &a->err)) < 0)
        return r;
    return serving_params_apply_spec(&params, tree, NULL, &a->arena, &a->spec, &a->err);
}

static void asked_done(struct asked *a)
{
    model_service_done(&a->s);
    arena_done(&a->arena);
}

static void test_bad_requests_name_the_field(void **state)
{
    static const struct {
        const char *text, *field;
    } wrong[] = {
        { "{'replicas': 'many'}", "replicas" },
        { "{'replicas': '-1'}", "replicas" },
        { "{'replicas': '3-'}", "replicas" },
        { "{'replicas': '3--4'}", "replicas" },
        { "{'replicas': '8-2'}", "replicas" },
        { "{'replicas': '0-257'}", "replicas" },
        { "{'replicas': '99999999999999'}", "replicas" },
        { "{'limits': {'cap': -1}}", "limits.cap" },
        { "{'limits': {'queue_bytes': 'much'}}", "limits.queue_bytes" },
        { "{'limits': {'queue_timeout': '2y'}}", "limits.queue_timeout" },
        { "{'limits': {'kap': 1}}", "limits.kap" },
        { "{'public': 'perhaps'}", "public" },
        { "{'tag': 1}", "tag" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(wrong); i++) {
        struct asked a = { .arena = ARENA_INIT };
        int r = ask(&a, serving_change_fields, wrong[i].text);

        assert_row(r == -EINVAL && strcmp(a.err.field, wrong[i].field) == 0, "%s: %d %s (%s)",
                   wrong[i].text, r, a.err.text, a.err.field);
        asked_done(&a);
    }
}

static void test_bad_revisions_name_the_field(void **state)
{
    static const struct {
        const char *text, *field;
    } wrong[] = {
        { "{'image': null}", "image" },
        { "{'port': 0}", "port" },
        { "{'port': 70000}", "port" },
        { "{'health': {'status': 99}}", "health.status" },
        { "{'health': 'GET /'}", "health" },
        { "{'resources': {'cpu': 'two'}}", "resources.cpu" },
        { "{'resources': {'cpu': [1]}}", "resources.cpu" },
        { "{'environ': {'A': 1}}", "environ" },
        { "{'cluster_mode': 'both'}", "cluster_mode" },
        { "{'priority': 101}", "priority" },
        { "{'imgae': 'x'}", "imgae" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(wrong); i++) {
        struct asked a = { .arena = ARENA_INIT };
        int r = ask(&a, serving_revision_fields, wrong[i].text);

        assert_row(r == -EINVAL && strcmp(a.err.field, wrong[i].field) == 0, "%s: %d %s (%s)",
                   wrong[i].text, r, a.err.text, a.err.field);
        asked_done(&a);
    }
}

static void test_changes_keep_what_they_do_not_name(void **state)
{
    struct asked a = { .arena = ARENA_INIT, .s = { .replicas = 5 } };

    (void)state;
    assert_int_equal(ask(&a, serving_change_fields,
                         "{'replicas': '0-3', 'tag': 'x', 'public': true, 'limits': {'cap': 4, "
                         "'queue_bytes': '1m', 'affinity': 'header:X-User'}}"),
                     0);
    assert_int_equal(a.s.replicas, 3);
    assert_int_equal(a.s.replicas_min, 0);
    assert_int_equal(a.s.replicas_max, 3);
    assert_int_equal(a.s.limits.queue_bytes, 1 << 20);
    assert_string_equal(a.s.limits.affinity, "header:X-User");
    assert_int_equal(ask(&a, serving_change_fields, "{'limits': {'queue': 7, 'affinity': 'none'}}"),
                     0);
    assert_int_equal(a.s.limits.cap, 4);
    assert_int_equal(a.s.limits.queue_max, 7);
    assert_null(a.s.limits.affinity);
    assert_true(a.s.is_public);
    assert_string_equal(a.s.tag, "x");
    assert_int_equal(ask(&a, serving_change_fields, "{'replicas': 2, 'limits': null, 'tag': null}"),
                     0);
    assert_int_equal(a.s.replicas_min, 2);
    assert_int_equal(a.s.limits.cap, 0);
    assert_null(a.s.tag);
    asked_done(&a);
}

static void test_revisions_keep_what_they_do_not_name(void **state)
{
    struct asked a = { .arena = ARENA_INIT };

    (void)state;
    assert_int_equal(
        ask(&a, serving_revision_fields,
            "{'image': 'img', 'port': 8000, 'command': 'serve', 'environ': {'A': '1'}, "
            "'health': {'path': '/health', 'retries': 3}, 'resources': {'cpu': 2, "
            "'mem': '1g', 'cuda.shares': '0', 'cuda.device': 0}, 'priority': null}"),
        0);
    assert_int_equal(a.spec.resources.count, 2);
    assert_string_equal(a.spec.resources.items[0].value, "2");
    assert_int_equal(a.spec.priority, SERVING_PRIORITY_DEFAULT);
    assert_int_equal(
        ask(&a, serving_revision_fields, "{'health': {'retries': 5}, 'command': null}"), 0);
    assert_string_equal(a.spec.health_path, "/health");
    assert_int_equal(a.spec.health_retries, 5);
    assert_null(a.spec.session.command);
    assert_int_equal(a.spec.port, 8000);
    assert_string_equal(a.spec.session.image, "img");
    assert_int_equal(a.spec.session.environ.count, 1);
    assert_int_equal(ask(&a, serving_revision_fields, "{'health': null, 'port': null}"), 0);
    assert_null(a.spec.health_path);
    assert_int_equal(a.spec.port, 0);
    asked_done(&a);
}

/* ---- states ---- */

static void test_states(void **state)
{
    static const struct {
        int64_t wanted;
        struct serving_counts counts;
        bool is_failing;
        const char *status;
    } rows[] = {
        { 2, { .ready = 2 }, false, "ready" },
        { 2, { .ready = 2, .draining = 1 }, false, "ready" },
        { 2, { .ready = 3, .outdated = 1 }, false, "scaling" },
        { 2, { .ready = 1, .starting = 1 }, false, "scaling" },
        { 2, { .ready = 1, .starting = 1 }, true, "degraded" },
        { 2, { .ready = 1, .unhealthy = 1 }, false, "degraded" },
        { 2, { .unhealthy = 2 }, false, "failing" },
        { 2, { .starting = 1 }, true, "failing" },
        { 2, { 0 }, false, "scaling" },
        { 0, { 0 }, false, "sleeping" },
        { 0, { .draining = 1 }, false, "scaling" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct model_service s = { .replicas = rows[i].wanted };
        const char *status = serving_view_status(&s, &rows[i].counts, rows[i].is_failing);

        assert_row(strcmp(status, rows[i].status) == 0, "%zu: %s", i, status);
    }
    assert_string_equal(serving_view_status(&(struct model_service){ .is_ending = true },
                                            &(struct serving_counts){ 0 }, false),
                        "ending");
    assert_string_equal(serving_view_status(&(struct model_service){ .ended_usec = 1 },
                                            &(struct serving_counts){ 0 }, false),
                        "ended");
}

/* ---- caps ---- */

static void test_caps_are_divided_by_demand(void **state)
{
    static const struct {
        int64_t cap, demand[4];
        size_t count;
        int64_t want[4];
    } rows[] = {
        { 8, { 0 }, 1, { 8 } },
        { 8, { 0, 0 }, 2, { 4, 4 } },
        { 7, { 0, 0 }, 2, { 4, 3 } },
        { 8, { 30, 10 }, 2, { 6, 2 } },
        { 8, { 5, 0 }, 2, { 7, 1 } },
        { 2, { 9, 1, 1 }, 3, { 1, 1, 1 } },
        { 10, { 1, 1, 0, 0 }, 4, { 4, 4, 1, 1 } },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t got[4] = { 0 };

        serving_routes_divide(rows[i].cap, rows[i].demand, rows[i].count, got);
        for (size_t k = 0; k < rows[i].count; k++)
            assert_row(got[k] == rows[i].want[k], "%zu: proxy %zu gets %lld", i, k,
                       (long long)got[k]);
    }
}

static void test_divided_caps_add_up(void **state)
{
    uint32_t chance = 1;

    (void)state;
    for (size_t round = 0; round < 10000; round++) {
        int64_t demand[16], got[16], sum = 0, cap;
        size_t count;

#define NEXT(n) ((chance = chance * 1664525 + 1013904223) >> 8) % (n)
        count = 1 + NEXT(16);
        cap = 1 + (int64_t)(NEXT(1000));
        for (size_t i = 0; i < count; i++)
            demand[i] = NEXT(3) ? (int64_t)(NEXT(500)) : 0;
#undef NEXT
        serving_routes_divide(cap, demand, count, got);
        for (size_t i = 0; i < count; i++) {
            assert_true(got[i] >= 1);
            sum += got[i];
        }
        assert_int_equal(sum, AQ_MAX(cap, (int64_t)count));
    }
}

/* ---- tokens ---- */

static int make(struct arena *arena, const char *text, struct model_service_token *ret, char *token,
                struct aq_error *err)
{
    struct serving_token_params params = { .label = NULL };
    char *copy = arena_strdup(arena, text);
    json_t *tree;
    int r;

    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    tree = json_load_string(copy, 0);
    assert_row(tree, "%s", text);
    *err = (struct aq_error){ 0 };
    r = decode_object(serving_token_fields, tree, arena, &params, err);
    if (r == 0)
        r = serving_token_make(&params, INT64_C(1000000), ret, token, err);
    json_decref(tree);
    return r;
}

static void test_tokens(void **state)
{
    static const struct {
        const char *text, *field;
    } wrong[] = {
        { "{'rate': -1}", "rate" },
        { "{'rate': 'fast'}", "rate" },
        { "{'rate': 0.0001}", "rate" },
        { "{'rate': true}", "rate" },
        { "{'paths': ['v1']}", "paths" },
        { "{'paths': ['/a?b']}", "paths" },
        { "{'expires_at': '1970-01-01'}", "expires_at" },
        { "{'expires_at': 'soon'}", "expires_at" },
        { "{'expires_at': '2036-01-01', 'duration': '3d'}", "expires_at" },
        { "{'duration': '-3d'}", "duration" },
        { "{'budget': -1}", "budget" },
    };
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct model_service_token one = { .label = NULL }, other = { .label = NULL };
    char text[SERVING_TOKEN_TEXT_MAX], second[SERVING_TOKEN_TEXT_MAX];
    struct aq_error err;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(wrong); i++)
        assert_row(make(&arena, wrong[i].text, &one, text, &err) == -EINVAL
                       && strcmp(err.field, wrong[i].field) == 0,
                   "%s: %s (%s)", wrong[i].text, err.text, err.field);
    assert_int_equal(make(&arena,
                          "{'label': 'ci', 'duration': '3d', 'paths': ['/v1/chat', '/v1/models'], "
                          "'rate': '0.5', 'budget': 1000}",
                          &one, text, &err),
                     0);
    assert_int_equal(one.rate_milli, 500);
    assert_int_equal(one.expires_usec, 1000000 + INT64_C(3) * 86400 * 1000000);
    assert_int_equal(one.paths.count, 2);
    assert_int_equal(strlen(text), 47);
    assert_int_equal(
        strspn(text + 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), 43);
    assert_int_equal(strlen(one.hash), MODEL_SERVICE_TOKEN_HASH);
    assert_int_equal(make(&arena, "{}", &other, second, &err), 0);
    assert_string_not_equal(text, second);
    assert_string_not_equal(one.hash, other.hash);
    assert_int_equal(other.expires_usec, 0);
    model_service_token_done(&one);
    model_service_token_done(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_requests_name_the_field),
        cmocka_unit_test(test_bad_revisions_name_the_field),
        cmocka_unit_test(test_changes_keep_what_they_do_not_name),
        cmocka_unit_test(test_revisions_keep_what_they_do_not_name),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_caps_are_divided_by_demand),
        cmocka_unit_test(test_divided_caps_add_up),
        cmocka_unit_test(test_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
