/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "serving/runtime.h"

static const char *find(const struct pair_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].key, name) == 0)
            return list->items[i].value;
    return NULL;
}

static void ports_and_health_paths_are_those_of_backend_ai(void **state)
{
    static const struct {
        const char *name, *health;
        int64_t port;
    } rows[] = {
        { "vllm", "/health", 8000 },          { "nim", "/v1/health/ready", 8000 },
        { "huggingface-tgi", "/info", 3000 }, { "sglang", "/health", 9001 },
        { "modular-max", "/health", 8000 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct model_service_spec spec = { .runtime = rows[i].name, .model = "m" };
        struct aq_error err = { 0 };

        assert_int_equal(serving_runtime_apply(&spec, &arena, &err), 0);
        assert_int_equal(spec.port, rows[i].port);
        assert_string_equal(spec.health_path, rows[i].health);
    }
    assert_null(serving_runtime_find("custom")->health_path);
    assert_null(serving_runtime_find("cmd")->command);
    assert_null(serving_runtime_find("VLLM"));
}

static void a_runtime_completes_and_does_not_replace(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct model_service_spec spec = { .runtime = "vllm", .model = "id", .model_name = "llama" };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(serving_runtime_apply(&spec, &arena, &err), 0);
    assert_string_equal(spec.session.command,
                        "cd -- '/models' || exit; s=/bin/bash; [ -x $s ] || s=/bin/sh; exec $s -c "
                        "'vllm serve /models --host 0.0.0.0 --port 8000'");
    assert_string_equal(find(&spec.session.environ, "BACKEND_MODEL_NAME"), "llama");
    assert_string_equal(find(&spec.session.environ, "BACKEND_MODEL_PATH"), "/models");

    spec = (struct model_service_spec){
        .runtime = "nim", .port = 9000, .health_path = "/up", .session = { .command = "mine" }
    };
    assert_int_equal(serving_runtime_apply(&spec, &arena, &err), 0);
    assert_int_equal(spec.port, 9000);
    assert_string_equal(spec.health_path, "/up");
    assert_string_equal(spec.session.command, "mine");
    assert_string_equal(find(&spec.session.environ, "NIM_HTTP_API_PORT"), "9000");
    assert_null(find(&spec.session.environ, "BACKEND_MODEL_PATH"));
}

static void a_given_command_starts_in_the_model_folder(void **state)
{
    static const struct {
        struct model_service_spec spec;
        const char *expected;
    } rows[] = {
        { { .session = { .command = "serve {model_path} {port}" }, .model = "id", .port = 80 },
          "cd -- '/models' || exit; s=/bin/bash; [ -x $s ] || s=/bin/sh; exec $s -c "
          "'serve /models 80'" },
        { { .session = { .command = "serve {model_path}" },
            .model = "id",
            .model_target = "/a b",
            .port = 80 },
          "cd -- '/a b' || exit; s=/bin/bash; [ -x $s ] || s=/bin/sh; exec $s -c "
          "'serve '\\''/a b'\\'''" },
        { { .session = { .command = "by definition" },
            .model = "id",
            .definition_path = "model-definition.yaml",
            .port = 80 },
          "by definition" },
        { { .session = { .command = "model in the image" }, .port = 80 }, "model in the image" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct model_service_spec spec = rows[i].spec;
        struct aq_error err = { 0 };

        assert_int_equal(serving_runtime_apply(&spec, &arena, &err), 0);
        assert_string_equal(spec.session.command, rows[i].expected);
    }
}

static void errors_name_the_field(void **state)
{
    static const struct {
        struct model_service_spec spec;
        const char *field, *text;
    } rows[] = {
        { { .runtime = "vlm" }, "runtime", "did you mean 'vllm'?" },
        { { .runtime = "triton" }, "runtime", "expected one of custom, cmd, vllm" },
        { { .runtime = "" }, "runtime", "expected one of" },
        { { .runtime = NULL }, "port", "runtime 'custom' has no default" },
        { { .runtime = "sglang", .model = "m", .model_target = "/data" },
          "model_target",
          "requires the model at '/models', not '/data'" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct model_service_spec spec = rows[i].spec;
        struct aq_error err = { 0 };

        assert_int_equal(serving_runtime_apply(&spec, &arena, &err), -EINVAL);
        assert_string_equal(err.field, rows[i].field);
        if (!strstr(err.text, rows[i].text))
            fail_msg("expected '%s' in: %s", rows[i].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_and_health_paths_are_those_of_backend_ai),
        cmocka_unit_test(a_runtime_completes_and_does_not_replace),
        cmocka_unit_test(a_given_command_starts_in_the_model_folder),
        cmocka_unit_test(errors_name_the_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
