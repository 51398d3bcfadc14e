/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "manager/call/decode.h"

struct params {
    const char *name, *tag;
    bool reuse;
    enum maybe active;
    int64_t size, limit;
    struct uuid id;
    struct str_list deps;
    struct int_list ports;
    const json_t *resources, *any;
};

static const struct field config_fields[] = {
    { "ports|preopenPorts", FIELD_PORT_LIST, FIELD_NULLABLE, offsetof(struct params, ports), 1024,
      65535 },
    { "resources", FIELD_OBJECT, 0, offsetof(struct params, resources) },
    { "mount_ids", FIELD_IGNORED },
    { "agent_list|agentList", FIELD_UNSUPPORTED },
    FIELD_END,
};

static const struct field fields[] = {
    { "name|clientSessionToken", FIELD_STR, FIELD_REQUIRED, offsetof(struct params, name), 4, 8 },
    { "tag", FIELD_STR, FIELD_NULLABLE, offsetof(struct params, tag) },
    { "reuse", FIELD_BOOL, 0, offsetof(struct params, reuse) },
    { "active", FIELD_MAYBE, FIELD_NULLABLE, offsetof(struct params, active) },
    { "size|clusterSize", FIELD_INT, 0, offsetof(struct params, size), 1, 64 },
    { "limit", FIELD_DURATION, FIELD_NULLABLE, offsetof(struct params, limit), 0, 7200 },
    { "id", FIELD_UUID, 0, offsetof(struct params, id) },
    { "deps", FIELD_STR_LIST, FIELD_NULLABLE, offsetof(struct params, deps), 0, 2 },
    { "any", FIELD_JSON, 0, offsetof(struct params, any) },
    { "config", FIELD_STRUCT, 0, 0, 0, 0, config_fields },
    FIELD_END,
};

/* field NULL = accepted */
static const struct {
    const char *json, *field;
} bodies[] = {
    { "{\"name\":\"abcd\"}", NULL },
    { "{\"clientSessionToken\":\"abcdefgh\"}", NULL },
    { "{}", "name" },
    { "{\"name\":null}", "name" },
    { "{\"name\":5}", "name" },
    { "{\"name\":\"abc\"}", "name" },
    { "{\"name\":\"abcdefghi\"}", "name" },
    { "{\"name\":\"abcd\",\"clientSessionToken\":\"abcd\"}", "clientSessionToken" },
    { "{\"name\":\"abcd\",\"name\":\"abcd\"}", "body" },
    { "{\"name\":\"abcd\",\"nme\":1}", "nme" },
    { "{\"name\":\"abcd\",\"name|clientSessionToken\":1}", "name|clientSessionToken" },
    { "{\"name\":\"abcd\",\"\":1}", "\"\"" },
    { "{\"name\":\"ab\\u0000cd\"}", "name" },
    { "{\"name\":\"abcd\",\"config\":{\"size\":1,\"x\":[{\"y\":[\"a\",\"\\u0000\"]}]}}",
      "config.x.y" },
    { "{\"name\":\"abcd\",\"na\\u0000me\":1}", "body" },
    { "\"\\u0000\"", "body" },
    { "{\"name\":\"abcd\",\"resources\":{\"cpu\":1e-400}}", "resources.cpu" },
    { "{\"name\":\"abcd\",\"any\":[0.1e-5, -10.5E-0310]}", "any" },
    { "{\"name\":\"abcd\",\"any\":\"1e-400\"}", NULL },
    { "{\"name\":\"abcd\",\"any\":[1e-200, 0e-400, 0.0, 1e10, 100e-302, 12345, \"\\\"\", true]}",
      NULL },
    { "{\"name\":\"ab\xff"
      "cd\"}",
      "body" },
    { "{\"name\":\"abcd\",\"tag\":null}", NULL },
    { "{\"name\":\"abcd\",\"tag\":[]}", "tag" },
    { "{\"name\":\"abcd\",\"reuse\":\"Yes\"}", NULL },
    { "{\"name\":\"abcd\",\"reuse\":0}", NULL },
    { "{\"name\":\"abcd\",\"reuse\":2}", "reuse" },
    { "{\"name\":\"abcd\",\"reuse\":\"maybe\"}", "reuse" },
    { "{\"name\":\"abcd\",\"reuse\":null}", "reuse" },
    { "{\"name\":\"abcd\",\"active\":null}", NULL },
    { "{\"name\":\"abcd\",\"active\":\"x\"}", "active" },
    { "{\"name\":\"abcd\",\"size\":64}", NULL },
    { "{\"name\":\"abcd\",\"size\":\"64\"}", NULL },
    { "{\"name\":\"abcd\",\"size\":65}", "size" },
    { "{\"name\":\"abcd\",\"size\":-1}", "size" },
    { "{\"name\":\"abcd\",\"size\":1.0}", "size" },
    { "{\"name\":\"abcd\",\"size\":\"\"}", "size" },
    { "{\"name\":\"abcd\",\"size\":\" 4\"}", "size" },
    { "{\"name\":\"abcd\",\"size\":\"4x\"}", "size" },
    { "{\"name\":\"abcd\",\"size\":\"99999999999999999999\"}", "size" },
    { "{\"name\":\"abcd\",\"size\":99999999999999999999}", "body" },
    { "{\"name\":\"abcd\",\"clusterSize\":0}", "size" },
    { "{\"name\":\"abcd\",\"id\":\"2de2b969-1d04-48a6-af16-0bc8adb3c831\"}", NULL },
    { "{\"name\":\"abcd\",\"id\":\"2de2b969\"}", "id" },
    { "{\"name\":\"abcd\",\"id\":7}", "id" },
    { "{\"name\":\"abcd\",\"limit\":null}", NULL },
    { "{\"name\":\"abcd\",\"limit\":7201}", "limit" },
    { "{\"name\":\"abcd\",\"limit\":1e300}", "limit" },
    { "{\"name\":\"abcd\",\"limit\":-1}", "limit" },
    { "{\"name\":\"abcd\",\"limit\":-0.5}", "limit" },
    { "{\"name\":\"abcd\",\"limit\":true}", "limit" },
    { "{\"name\":\"abcd\",\"limit\":\"\"}", "limit" },
    { "{\"name\":\"abcd\",\"limit\":\"-1s\"}", "limit" },
    { "{\"name\":\"abcd\",\"limit\":\"nan\"}", "limit" },
    { "{\"name\":\"abcd\",\"limit\":\"00:30:00\"}", "limit" },
    { "{\"name\":\"abcd\",\"limit\":\"2h1s\"}", "limit" },
    { "{\"name\":\"abcd\",\"limit\":\"99999999999999999999\"}", "limit" },
    { "{\"name\":\"abcd\",\"deps\":[\"a\",\"b\"]}", NULL },
    { "{\"name\":\"abcd\",\"deps\":\"a\"}", NULL },
    { "{\"name\":\"abcd\",\"deps\":[]}", NULL },
    { "{\"name\":\"abcd\",\"deps\":[\"a\",\"b\",\"c\"]}", "deps" },
    { "{\"name\":\"abcd\",\"deps\":[1]}", "deps" },
    { "{\"name\":\"abcd\",\"deps\":[\"\"]}", "deps" },
    { "{\"name\":\"abcd\",\"any\":[{}]}", NULL },
    { "{\"name\":\"abcd\",\"config\":{}}", NULL },
    { "{\"name\":\"abcd\",\"config\":null}", "config" },
    { "{\"name\":\"abcd\",\"config\":[]}", "config" },
    { "{\"name\":\"abcd\",\"config\":{\"ports\":null}}", NULL },
    { "{\"name\":\"abcd\",\"config\":{\"ports\":[1024,\"65535\"]}}", NULL },
    { "{\"name\":\"abcd\",\"config\":{\"ports\":[1023]}}", "config.ports" },
    { "{\"name\":\"abcd\",\"config\":{\"ports\":{}}}", "config.ports" },
    { "{\"name\":\"abcd\",\"config\":{\"resources\":{\"cpu\":1}}}", NULL },
    { "{\"name\":\"abcd\",\"config\":{\"resources\":[]}}", "config.resources" },
    { "{\"name\":\"abcd\",\"config\":{\"mount_ids\":{\"a\":[1]}}}", NULL },
    { "{\"name\":\"abcd\",\"config\":{\"agentList\":[]}}", NULL },
    { "{\"name\":\"abcd\",\"config\":{\"agentList\":null}}", NULL },
    { "{\"name\":\"abcd\",\"config\":{\"agentList\":[\"i-1\"]}}", "config.agent_list" },
    { "{\"name\":\"abcd\",\"config\":{\"x\":1}}", "config.x" },
    { "[]", "body" },
    { "5", "body" },
    { "", "body" },
    { "{\"name\":\"abcd\"", "body" },
    { "{\"name\":\"abcd\"} x", "body" },
};

static int decode_text(const char *text, struct arena *arena, struct params *params,
                       struct aq_error *err)
{
    json_auto_t *json = NULL;
    int r;

    *params = (struct params){ .size = 1, .reuse = true };
    if ((r = decode_json(text, strlen(text), &json, err)) < 0)
        return r;
    r = decode_object(fields, json, arena, params, err);
    params->resources = params->any = NULL; /* borrowed from what goes away here */
    return r;
}

static void test_bodies(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(bodies); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct aq_error err = { 0 };
        struct params params;
        int r = decode_text(bodies[i].json, &arena, &params, &err);

        if (!bodies[i].field) {
            assert_row(r == 0, "%s: %s", bodies[i].json, err.text);
            continue;
        }
        assert_row(r == -EINVAL && err.code == EINVAL, "%s gives %d", bodies[i].json, r);
        assert_row(strcmp(err.field, bodies[i].field) == 0, "%s names '%s'", bodies[i].json,
                   err.field);
        assert_row(err.kind && strcmp(err.kind, "invalid-api-params") == 0, "%s", bodies[i].json);
    }
}

static void test_values(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct aq_error err = { 0 };
    struct params params;
    char id[UUID_TEXT_MAX];

    (void)state;
    assert_int_equal(
        decode_text("{\"clientSessionToken\":\"abcd\",\"reuse\":\"off\",\"size\":\"7\","
                    "\"active\":true,\"id\":\"2DE2B9691D0448A6AF160BC8ADB3C831\","
                    "\"deps\":[\"x\",\"y\"],\"config\":{\"preopenPorts\":[2000]}}",
                    &arena, &params, &err),
        0);
    assert_string_equal(params.name, "abcd");
    assert_false(params.reuse);
    assert_int_equal(params.active, MAYBE_TRUE);
    assert_int_equal(params.size, 7);
    assert_string_equal(uuid_format(&params.id, id), "2de2b969-1d04-48a6-af16-0bc8adb3c831");
    assert_int_equal(params.deps.count, 2);
    assert_string_equal(params.deps.items[1], "y");
    assert_int_equal(params.ports.count, 1);
    assert_int_equal(params.ports.items[0], 2000);
    assert_null(params.tag);
    assert_int_equal(decode_text("{\"name\":\"abcd\"}", &arena, &params, &err), 0);
    assert_true(params.reuse);
    assert_int_equal(params.active, MAYBE_UNSET);
    assert_int_equal(params.size, 1);
}

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t usec;
    } rows[] = { { "0", 0 },
                 { "90", 90 * USEC_PER_SEC },
                 { "1.5", 1500 * USEC_PER_MSEC },
                 { "0.1", 100 * USEC_PER_MSEC },
                 { "7200", 7200 * USEC_PER_SEC },
                 { "\"0\"", 0 },
                 { "\"90\"", 90 * USEC_PER_SEC },
                 { "\"1.5s\"", 1500 * USEC_PER_MSEC },
                 { "\"1h30m\"", 5400 * USEC_PER_SEC } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        AQ_CLEANUP(aq_freep)
        char *text = aq_format("{\"name\":\"abcd\",\"limit\":%s}", rows[i].text);
        struct aq_error err = { 0 };
        struct params params;

        assert_non_null(text);
        assert_row(decode_text(text, &arena, &params, &err) == 0, "%s: %s", text, err.text);
        assert_row(params.limit == rows[i].usec, "%s: %lld", text, (long long)params.limit);
    }
}

/* {"any":[[[...]]]} */
static char *nested(size_t depth)
{
    static const char head[] = "{\"name\":\"abcd\",\"any\":";
    char *text = malloc(sizeof(head) + 2 * depth + 1), *p = text;

    assert_non_null(text);
    p = mempcpy(p, head, sizeof(head) - 1);
    memset(p, '[', depth - 1);
    memset(p + depth - 1, ']', depth - 1);
    strcpy(p + 2 * (depth - 1), "}");
    return text;
}

static void test_plain_texts(void **state)
{
    static const struct {
        const char *text;
        bool is_line, has_lines;
    } rows[] = {
        { "", true, true },
        { "plain \xc3\xa9 \xc2\xa0 \xe2\x82\xac", true, true },
        { "a\tb\r\nc", false, true },
        { "a\x1b[31m", false, false },
        { "a\x7f", false, false },
        { "a\x01", false, false },
        { "a\xc2\x9b"
          "31m",
          false, false },
        { "a\xe2\x80\xae"
          "b",
          false, true },
        { "a\xe2\x80\x8b"
          "b",
          false, true },
    };

    uint32_t code = 0;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        size_t len = strlen(rows[i].text);

        assert_int_equal(decode_is_plain(rows[i].text, len, false, &code), rows[i].is_line);
        assert_int_equal(decode_is_plain(rows[i].text, len, true, &code), rows[i].has_lines);
    }
    assert_int_equal(decode_is_plain("a\xe2\x80\xae", 4, false, &code), false);
    assert_int_equal(code, 0x202e);
    assert_false(decode_is_plain("a\0b", 3, true, &code));
}

static void test_depth(void **state)
{
    static const struct {
        size_t depth;
        int want;
    } rows[] = { { 2, 0 }, { 64, 0 }, { 65, -EINVAL }, { 10000, -EINVAL } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        AQ_CLEANUP(aq_freep) char *text = nested(rows[i].depth);
        struct aq_error err = { 0 };
        struct params params;

        assert_row(decode_text(text, &arena, &params, &err) == rows[i].want, "depth %zu",
                   rows[i].depth);
        assert_row(rows[i].want == 0 || strcmp(err.field, "body") == 0, "depth %zu", rows[i].depth);
    }
}

static void test_output_of_programs(void **state)
{
    static const char text[] = "{\"console\":[[\"stdout\",\"a\\u0000b\"]]}";
    json_auto_t *json = NULL;
    const json_t *said;

    (void)state;
    assert_int_equal(decode_json(text, strlen(text), &json, NULL), -EINVAL);
    assert_int_equal(decode_output_json(text, strlen(text), &json, NULL), 0);
    said = json_array_get(json_array_get(json_object_get(json, "console"), 0), 1);
    assert_int_equal(json_string_length(said), 3);
}

static void test_query(void **state)
{
    struct url_pair pairs[] = { { "a", "1" }, { "files", "x" }, { "files", "y" }, { "files", "" } };
    struct url_query query = { pairs, AQ_COUNT(pairs) };
    json_auto_t *json = decode_query(&query);

    (void)state;

    AQ_CLEANUP(aq_freep) char *text = json_dumps(json, JSON_COMPACT);

    assert_string_equal(text, "{\"a\":\"1\",\"files\":[\"x\",\"y\",\"\"]}");
}

static void test_describe(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    json_auto_t *json = NULL;

    (void)state;
    decode_describe(fields, &w);
    json = json_loads(out.data, 0, NULL);
    assert_int_equal(json_array_size(json), AQ_COUNT(fields) - 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json, 0), "name")),
                        "name");
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(json_array_get(json, 0), "aliases"), 0)),
        "clientSessionToken");
    assert_int_equal(json_array_size(json_object_get(json_array_get(json, 9), "fields")), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_output_of_programs),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_plain_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
