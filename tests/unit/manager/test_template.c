/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "base/json_load.h"
#include "base/yaml_load.h"
#include "manager/session/session_params.h"
#include "manager/template/template.h"
#include "manager/template/template_git.h"

#define HEAD "kind: task_template\nmetadata:\n  name: one\nspec:\n  kernel:\n"
#define CLUSTER "kind: cluster_template\nmetadata: {name: c}\nspec:\n  nodes:\n"

/* ---- what is refused, and where ---- */

static const struct {
    const char *text, *why;
    enum template_kind kind;
} wrong[] = {
    { "", "it is empty", TEMPLATE_ANY },
    { "a", "a template is a mapping", TEMPLATE_ANY },
    { HEAD "    imge: x\n", "line 6, column 5: unknown key 'imge'; did you mean 'image'?",
      TEMPLATE_SESSION },
    { HEAD "    image: x\n    zzzzzzz: 1\n", "line 7, column 5: unknown key 'zzzzzzz'",
      TEMPLATE_SESSION },
    { HEAD "    environ: {}\n", "line 5, column 3: spec.kernel.image: is required",
      TEMPLATE_SESSION },
    { HEAD "    image: [x]\n", "line 6, column 5: spec.kernel.image: not a text",
      TEMPLATE_SESSION },
    { HEAD "    image: x\n    environ:\n      A: [1]\n",
      "line 8, column 7: spec.kernel.environ.A: not a text", TEMPLATE_SESSION },
    { HEAD "    image: x\n  resources:\n    cuda.shares: {}\n",
      "line 8, column 5: spec.resources.cuda.shares: not an amount", TEMPLATE_SESSION },
    { HEAD "    image: x\n    git: {repository: 'ext::sh -c id'}\n",
      "line 7, column 11: spec.kernel.git.repository: must be https://", TEMPLATE_SESSION },
    { HEAD "    image: x\n    git: {repository: 'https://h/r', branch: --upload-pack=x}\n",
      "spec.kernel.git.branch: must not begin with '-'", TEMPLATE_SESSION },
    { HEAD "    image: x\n  type: serving\n", "line 7, column 3: spec.type: 'serving' is no",
      TEMPLATE_SESSION },
    { HEAD "    image: x\n    image: y\n", "line 7, column 5: a key is there twice",
      TEMPLATE_SESSION },
    { HEAD "    image: &x y\n", "line 6, column 12: it has an anchor, alias or tag",
      TEMPLATE_SESSION },
    { HEAD "    image: !!python/object:os.system y\n", "it has an anchor, alias or tag",
      TEMPLATE_SESSION },
    { "a: [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]", "nested too deeply", TEMPLATE_ANY },
    { HEAD "    image: x\n---\n" HEAD, "second document", TEMPLATE_SESSION },
    { HEAD "    image: x\n   bad: x\n", "line 7, column", TEMPLATE_SESSION },
    { HEAD "    image: x\n", "kind: must be cluster_template", TEMPLATE_CLUSTER },
    { "{\"kind\": \"task_template\", \"metadata\": {\"name\": \"x\"},\n \"spec\": {\"kernel\": "
      "{\"image\": \"\\ud83d\\ude00\",\n  \"imge\": 1}}}",
      "line 3, column 3: unknown key 'imge'", TEMPLATE_ANY },
    { "{\"kind\": }", "line 1 column", TEMPLATE_ANY },
    { CLUSTER "  - {role: main, session_template: a, replicas: 2}\n",
      "line 5, column 39: spec.nodes.0.replicas: must be 1", TEMPLATE_ANY },
    { CLUSTER "  - {role: sub, session_template: a}\n", "spec.nodes: must have one role main",
      TEMPLATE_ANY },
    { CLUSTER "  - {role: main, session_template: a}\n  - {role: main, session_template: a}\n",
      "line 6, column 6: spec.nodes.1.role: there is a role 'main' already", TEMPLATE_ANY },
    { CLUSTER "  - {role: main, session_template: a}\n  - {role: sub1, session_template: a}\n",
      "spec.nodes.1.role: 'sub1' is no role", TEMPLATE_ANY },
    { "- template: {kind: task_template, metadata: {name: a}, spec: {kernel: {image: x}}}\n"
      "- template: {kind: task_template, metadata: {name: a}, spec: {kernel: {imag: x}}}\n",
      "line 2, column 72: unknown key 'imag'; did you mean 'image'?", TEMPLATE_SESSION },
    { "{\"session_templates\": []}", "session_templates: must be a list of 1 to 100 templates",
      TEMPLATE_SESSION },
    { "[]", "a template is a mapping", TEMPLATE_CLUSTER },
    { CLUSTER "  - {role: main, session_tmplate: a}\n",
      "line 5, column 18: unknown key 'session_tmplate'; did you mean 'session_template'?",
      TEMPLATE_ANY },
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(wrong); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct template_parsed *parsed;
        struct aq_error err = { 0 };
        size_t count;
        int r = template_parse(wrong[i].kind, wrong[i].text, strlen(wrong[i].text), &arena, &parsed,
                               &count, &err);

        assert_row(r == -EINVAL && strstr(err.text, wrong[i].why)
                       && strcmp(err.field, "payload") == 0,
                   "%s: %d %s", wrong[i].text, r, err.text);
    }
}

static void test_too_long(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    static char text[TEMPLATE_BYTES_MAX + 2];
    struct template_parsed *parsed;
    struct aq_error err = { 0 };
    size_t count;

    (void)state;
    memset(text, ' ', sizeof(text) - 1);
    assert_int_equal(
        template_parse(TEMPLATE_ANY, text, strlen(text), &arena, &parsed, &count, &err), -EINVAL);
    assert_non_null(strstr(err.text, "longer than 65536 bytes"));
}

/* ---- what it asks for ---- */

static json_t *parse(const char *text)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct template_parsed *parsed = NULL;
    struct aq_error err = { 0 };
    size_t count;

    if (template_parse(TEMPLATE_ANY, text, strlen(text), &arena, &parsed, &count, &err) < 0)
        fail_msg("%s", err.text);
    return parsed->json;
}

static void assert_json(json_t *value, const char *text)
{
    AQ_CLEANUP(aq_freep) char *got = json_dump_text(value, JSON_COMPACT | JSON_SORT_KEYS);

    assert_string_equal(got, text);
    json_decref(value);
}

static void test_request(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clone = STRBUF_INIT;
    json_t *parsed = parse("apiVersion: 6\nkind: taskTemplate\n"
                           "metadata: {name: n, tag: t}\n"
                           "spec:\n"
                           "  sessionType: batch\n"
                           "  kernel:\n"
                           "    image: i\n"
                           "    environ: {A: 1, B: true, C: '02', D: 1.50}\n"
                           "    run: {bootstrap: b, startup_command: s}\n"
                           "    git: {repository: 'git@h:o''s/r.git', commit: abc}\n"
                           "  scaling_group: g\n"
                           "  mounts: {data: /data, code: }\n"
                           "  resources: {cpu: 2, mem: 4g, cuda.shares: 0.5}\n");

    (void)state;
    assert_json(template_request(parsed, &clone, NULL),
                "{\"bootstrap_script\":\"b\",\"config\":{\"environ\":{\"A\":\"1\",\"B\":\"true\","
                "\"C\":\"02\",\"D\":\"1.50\"},\"mount_map\":{\"data\":\"/data\"},"
                "\"mounts\":[\"data\",\"code\"],\"resources\":{\"cpu\":2,\"cuda.shares\":\"0.5\","
                "\"mem\":\"4g\"},\"scaling_group\":\"g\"},\"image\":\"i\",\"startupCommand\":\"s\","
                "\"tag\":\"t\",\"type\":\"batch\"}");
    assert_string_equal(clone.data, "if [ ! -e 'r' ]; then\n"
                                    "  git clone -- 'git@h:o'\\''s/r.git' 'r' || exit\n"
                                    "  git -C 'r' checkout 'abc' -- || exit\n"
                                    "fi\n");
    json_decref(parsed);
}

/* ---- a request over it ---- */

#define BASE                                                                                  \
    "{\"config\":{\"environ\":{\"A\":\"1\"},\"mount_map\":{\"d\":\"/d\"},\"mounts\":[\"d\"]," \
    "\"resources\":{\"cpu\":1,\"mem\":\"1g\"}},\"image\":\"i\"}"

static void test_overlay(void **state)
{
    static const struct {
        const char *over, *result;
    } rows[] = {
        { "{}", BASE },
        { "{\"image\":null,\"config\":{\"environ\":null,\"mounts\":[]}}", BASE },
        { "{\"lang\":\"j\",\"config\":{}}",
          "{\"config\":{\"environ\":{\"A\":\"1\"},\"mount_map\":{\"d\":\"/d\"},\"mounts\":[\"d\"],"
          "\"resources\":{\"cpu\":1,\"mem\":\"1g\"}},\"image\":\"j\"}" },
        { "{\"config\":{\"environ\":{\"B\":\"2\"},\"resources\":{\"cpu\":4},"
          "\"mounts\":[\"e\",\"d\"],\"mountMap\":{\"d\":\"/x\"}}}",
          "{\"config\":{\"environ\":{\"A\":\"1\",\"B\":\"2\"},\"mount_map\":{\"d\":\"/x\"},"
          "\"mounts\":[\"d\",\"e\"],\"resources\":{\"cpu\":4,\"mem\":\"1g\"}},\"image\":\"i\"}" },
        { "{\"config\":{\"environ\":{},\"resources\":{},\"mounts\":[],\"mount_map\":{}}}",
          "{\"config\":{\"environ\":{},\"mount_map\":{},\"mounts\":[],\"resources\":{}},"
          "\"image\":\"i\"}" },
        { "{\"nonsense\":1,\"name\":\"n\"}",
          "{\"config\":{\"environ\":{\"A\":\"1\"},\"mount_map\":{\"d\":\"/d\"},\"mounts\":[\"d\"],"
          "\"resources\":{\"cpu\":1,\"mem\":\"1g\"}},\"image\":\"i\",\"name\":\"n\","
          "\"nonsense\":1}" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        json_t *base = json_load_string(BASE, 0), *over = json_load_string(rows[i].over, 0);

        template_overlay(session_fields, base, over);
        assert_json(base, rows[i].result);
        json_decref(over);
    }
}

/* ---- places ---- */

static void test_places(void **state)
{
    static const char text[] = "a:\n  b.c: 1\n  d:\n  - x: 1\n  - {y: 2}\n";
    static const struct {
        const char *path;
        size_t line, column;
    } rows[] = { { "a", 1, 1 },     { "a.b.c", 2, 3 },     { "a.d.1.y", 5, 6 },
                 { "a.d.7", 3, 3 }, { "a.nothing", 1, 1 }, { "z", 0, 0 } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct yaml_place place = yaml_find(text, strlen(text), rows[i].path);

        assert_row(place.line == rows[i].line && place.column == rows[i].column, "%s: %zu %zu",
                   rows[i].path, place.line, place.column);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong),   cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_request), cmocka_unit_test(test_overlay),
        cmocka_unit_test(test_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
