/* SPDX-License-Identifier: Apache-2.0 */
/* Model services: bounds, copies, and what the store keeps as JSON. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/model_service.h"

static const char *const paths[] = { "/v1/", "/health" };

static struct model_service_spec full_spec(void)
{
    static struct text_pair slots[] = { { "cuda.shares", "0.25" }, { "mem", "8g" } };
    static struct text_pair variables[] = { { "MODE", "fast" } };
    static const char *mounts[] = { "data:/data:ro" };
    static int64_t ports[] = { 9000 };

    return (struct model_service_spec){
        .session = { .image = "vllm:1",
                     .command = "serve",
                     .environ = { variables, 1 },
                     .shmem = "1g",
                     .ports = { ports, 1 } },
        .resources = { slots, 2 },
        .cluster_size = 2,
        .is_multi_node = true,
        .priority = 20,
        .runtime = "vllm",
        .model = "6f2f5a8e-0000-4000-8000-000000000001",
        .model_name = "digits",
        .model_target = "/models",
        .definition_path = "model.yaml",
        .mounts = { mounts, 1 },
        .port = 8000,
        .health_path = "/health?deep=1",
        .health_status = 204,
        .health_interval_usec = 1000000,
        .health_timeout_usec = 2000000,
        .health_retries = 3,
        .ready_usec = 60000000,
    };
}

static char *spec_text(const struct model_service_spec *spec)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    model_service_spec_write(spec, &w);
    return strbuf_steal(&text);
}

static void spec_is_kept(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct model_service_spec spec = full_spec(), read;
    AQ_CLEANUP(aq_freep) char *text = spec_text(&spec);
    AQ_CLEANUP(aq_freep) char *again = NULL, *copied = NULL;
    AQ_CLEANUP(aq_freep) struct model_service_spec *copy = model_service_spec_copy(&spec);
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(model_service_spec_check(&spec, &err), 0);
    assert_int_equal(model_service_spec_parse(text, &arena, &read, &err), 0);
    again = spec_text(&read);
    copied = spec_text(copy);
    assert_string_equal(again, text);
    assert_string_equal(copied, text);
    assert_ptr_not_equal(copy->session.environ.items, spec.session.environ.items);
    assert_ptr_not_equal(copy->health_path, spec.health_path);
    assert_string_equal(read.mounts.items[0], "data:/data:ro");
    assert_int_equal(model_service_spec_parse("[1]", &arena, &read, &err), -EINVAL);
    assert_int_equal(model_service_spec_parse("{\"port\": \"x\"}", &arena, &read, &err), -EINVAL);
    assert_string_equal(err.field, "port");
}

static void no_image(struct model_service_spec *spec)
{
    spec->session.image = NULL;
}

static void no_port(struct model_service_spec *spec)
{
    spec->port = 0;
}

static void high_port(struct model_service_spec *spec)
{
    spec->port = 65536;
}

static void host_network(struct model_service_spec *spec)
{
    spec->session.network_mode = "host";
}

static void relative_health(struct model_service_spec *spec)
{
    spec->health_path = "health";
}

static void split_health(struct model_service_spec *spec)
{
    spec->health_path = "/a\r\nHost: b";
}

static void odd_status(struct model_service_spec *spec)
{
    spec->health_status = 99;
}

static void hasty(struct model_service_spec *spec)
{
    spec->health_interval_usec = 1;
}

static void relative_target(struct model_service_spec *spec)
{
    spec->model_target = "models";
}

static void reserved_target(struct model_service_spec *spec)
{
    spec->model_target = "/proc";
}

static void odd_model(struct model_service_spec *spec)
{
    spec->model = "digits";
}

static void odd_amount(struct model_service_spec *spec)
{
    static struct text_pair slots[] = { { "cpu", "many" } };

    spec->resources = (struct pair_list){ slots, 1 };
}

static void odd_runtime(struct model_service_spec *spec)
{
    spec->runtime = "vLLM";
}

static const struct {
    const char *field, *why;
    void (*edit)(struct model_service_spec *spec);
} spec_cases[] = {
    { "image", "no image", no_image },
    { "port", "no port", no_port },
    { "port", "a port beyond the last", high_port },
    { "network", "the network of the node", host_network },
    { "health.path", "a path that is relative", relative_health },
    { "health.path", "a path with a line break", split_health },
    { "health.status", "no status of HTTP", odd_status },
    { "health.interval", "a probe each microsecond", hasty },
    { "model_target", "a target that is relative", relative_target },
    { "model_target", "a target of the container's own", reserved_target },
    { "model", "a name in place of an id", odd_model },
    { "resources", "no amount", odd_amount },
    { "runtime", "a runtime with capitals", odd_runtime },
};

static void spec_is_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(spec_cases); i++) {
        struct model_service_spec spec = full_spec();
        struct aq_error err = { 0 };

        spec_cases[i].edit(&spec);
        if (model_service_spec_check(&spec, &err) != -EINVAL
            || strcmp(err.field, spec_cases[i].field) != 0)
            fail_msg("%s: field '%s': %s", spec_cases[i].why, err.field, err.text);
    }
}

static void names(void **state)
{
    static const char *const good[] = { "digits", "a_b-c", "1234", "abcdefghijklmnopqrstuvwx" };
    static const char *const bad[] = { "",       "abc",   "-abc", "abc-",
                                       "ab c d", "ab/cd", "äöüß", "abcdefghijklmnopqrstuvwxy" };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(good); i++)
        assert_int_equal(model_service_check_name(good[i], NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(bad); i++) {
        struct aq_error err = { 0 };

        if (model_service_check_name(bad[i], &err) != -EINVAL)
            fail_msg("'%s' was accepted", bad[i]);
        assert_string_equal(err.field, "name");
    }
}

static struct model_service full_service(void)
{
    struct model_service_spec spec = full_spec();
    struct model_service s = { .id = uuid_random(),
                               .name = "digits",
                               .version = 3,
                               .domain = aq_strdup("default"),
                               .tag = aq_strdup("demo"),
                               .replicas = 2,
                               .replicas_max = 4,
                               .goal = 1,
                               .last_number = 1,
                               .limits = { .cap = 4, .affinity = aq_strdup("header:X-User") } };

    s.revisions = aq_alloc_array(1, sizeof(*s.revisions));
    s.revisions[0] = (struct model_service_revision){ .number = 1,
                                                      .spec = model_service_spec_copy(&spec),
                                                      .note = aq_strdup("the first") };
    s.revision_count = 1;
    s.tokens = aq_alloc_array(1, sizeof(*s.tokens));
    s.tokens[0].label = aq_strdup("ann");
    memset(s.tokens[0].hash, 'b', MODEL_SERVICE_TOKEN_HASH);
    s.tokens[0].paths.items = aq_alloc_array(AQ_COUNT(paths), sizeof(*s.tokens[0].paths.items));
    for (size_t i = 0; i < AQ_COUNT(paths); i++)
        s.tokens[0].paths.items[i] = aq_strdup(paths[i]);
    s.tokens[0].paths.count = AQ_COUNT(paths);
    s.token_count = 1;
    return s;
}

static void copied(void **state)
{
    AQ_CLEANUP(model_service_donep) struct model_service s = full_service();
    AQ_CLEANUP(model_service_donep) struct model_service copy = { .name = "" };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(model_service_check(&s, &err), 0);
    model_service_copy(&copy, &s);
    assert_true(model_service_equals(&s, &copy));
    assert_ptr_not_equal(copy.revisions[0].spec, s.revisions[0].spec);
    copy.tokens[0].used = 1;
    assert_false(model_service_equals(&s, &copy));
    copy.tokens[0].used = 0;
    copy.is_forced = true;
    assert_false(model_service_equals(&s, &copy));
    copy.is_forced = false;
    copy.revisions[0].spec->port = 1;
    assert_false(model_service_equals(&s, &copy));
    assert_int_equal(model_service_find_revision(&s, 1)->number, 1);
    assert_null(model_service_find_revision(&s, 2));
    assert_ptr_equal(model_service_find_token(&s, &s.tokens[0].id), &s.tokens[0]);
}

static int check_after(void (*edit)(struct model_service *s), struct aq_error *err)
{
    AQ_CLEANUP(model_service_donep) struct model_service s = full_service();

    edit(&s);
    return model_service_check(&s, err);
}

static void too_many(struct model_service *s)
{
    s->replicas_max = MODEL_SERVICE_REPLICAS_MAX + 1;
}

static void out_of_bounds(struct model_service *s)
{
    s->replicas = 5;
}

static void no_goal(struct model_service *s)
{
    s->goal = 2;
}

static void odd_affinity(struct model_service *s)
{
    free(s->limits.affinity);
    s->limits.affinity = aq_strdup("header:X User");
}

static void odd_rollout(struct model_service *s)
{
    s->rollout = aq_strdup("[]");
}

static void long_drain(struct model_service *s)
{
    s->limits.drain_usec = INT64_MAX;
}

static void checked(void **state)
{
    static const struct {
        void (*edit)(struct model_service *s);
        const char *field;
    } edits[] = { { too_many, "replicas" },   { out_of_bounds, "replicas" },
                  { no_goal, "revision" },    { odd_affinity, "limits.affinity" },
                  { odd_rollout, "rollout" }, { long_drain, "limits.drain_timeout" } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(edits); i++) {
        struct aq_error err = { 0 };

        assert_true(check_after(edits[i].edit, &err) < 0);
        assert_string_equal(err.field, edits[i].field);
    }
}

static void limits_are_kept(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct model_service_limits limits = { 1, 2, 3, 4, 5, 6, (char *)(uintptr_t) "prompt" }, read;
    struct jsonw w = jsonw_make(&text);

    (void)state;
    model_service_limits_write(&limits, &w);
    assert_int_equal(model_service_limits_parse(text.data, &read, NULL), 0);
    assert_int_equal(read.queue_bytes, 3);
    assert_int_equal(read.drain_usec, 6);
    assert_string_equal(read.affinity, "prompt");
    free(read.affinity);
    assert_int_equal(model_service_limits_parse("{\"cap\": -1}", &read, NULL), -EINVAL);
    assert_int_equal(model_service_limits_parse("no", &read, NULL), -EINVAL);
}

static void tokens_are_checked(void **state)
{
    AQ_CLEANUP(model_service_donep) struct model_service s = full_service();
    struct model_service_token *token = &s.tokens[0];
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(model_service_token_check(token, 10, &err), 0);
    model_service_token_write_paths(token, &w);
    assert_int_equal(model_service_token_parse_paths(text.data, token, &err), 0);
    assert_int_equal(token->paths.count, 2);
    assert_string_equal(token->paths.items[1], "/health");
    token->expires_usec = 10;
    assert_int_equal(model_service_token_check(token, 10, &err), -EINVAL);
    assert_string_equal(err.field, "expires_at");
    token->expires_usec = 11;
    token->budget = -1;
    assert_int_equal(model_service_token_check(token, 10, &err), -EINVAL);
    assert_string_equal(err.field, "budget");
    token->budget = 0;
    token->hash[3] = 'B';
    assert_int_equal(model_service_token_check(token, 10, &err), -EINVAL);
    assert_int_equal(model_service_token_parse_paths("[\"v1\"]", token, &err), 0);
    token->hash[3] = 'b';
    assert_int_equal(model_service_token_check(token, 10, &err), -EINVAL);
    assert_string_equal(err.field, "paths");
    assert_int_equal(model_service_token_parse_paths("[1]", token, &err), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spec_is_kept),
        cmocka_unit_test(spec_is_checked),
        cmocka_unit_test(names),
        cmocka_unit_test(copied),
        cmocka_unit_test(checked),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(tokens_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
