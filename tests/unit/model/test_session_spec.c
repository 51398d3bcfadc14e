/* SPDX-License-Identifier: Apache-2.0 */
/* What a session asks for: written, read, copied; also as managers of before have written it. */
#include "testing.h"

#include <errno.h>

#include "model/session_spec.h"

static struct text_pair variables[] = { { "PATH", "/bin" }, { "scheduling", "\"a\":{}" } };
static int64_t ports[] = { 8080, 9000 };
static const char *agents[] = { "i-1", "i-2" };

static struct folder_mount mounts[] = {
    { .name = "data", .host = "local:volume1", .target = "/home/work/data", .is_read_only = true },
    { .name = "out", .host = "local:volume1", .path = "a/b", .target = "/home/work/data/out" },
};

static const struct session_spec whole = { .image = "python:3.9",
                                           .architecture = "aarch64",
                                           .command = "echo 'x' && exit 3",
                                           .input = "stream",
                                           .bootstrap = "pip install x\n",
                                           .tag = "night",
                                           .callback_url = "https://example.com/",
                                           .environ = { variables, 2 },
                                           .shmem = "64m",
                                           .splitting = SPLITTING_FORBIDDEN,
                                           .ports = { ports, 2 },
                                           .mounts = { mounts, 2 },
                                           .agents = { agents, 2 },
                                           .agents_preferred = true,
                                           .session_group = "replicas",
                                           .packs = true,
                                           .group_is_strict = true,
                                           .batch_timeout_usec = 90000000,
                                           .job_priority = 7,
                                           .is_preemptible = true,
                                           .is_movable = true,
                                           .waits_for_capacity = true,
                                           .on_failure = "continue",
                                           .on_node_loss = "restart-all",
                                           .network_mode = "host" };

static char *written(const struct session_spec *spec, enum session_spec_part part)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    jsonw_object_begin(&w);
    session_spec_write(spec, part, &w);
    jsonw_object_end(&w);
    return strbuf_steal(&text);
}

/* The keys are those of the store and of kernel.create: others read them. */
static void test_written_form(void **state)
{
    AQ_CLEANUP(aq_freep) char *all = written(&whole, SESSION_SPEC_ALL);
    AQ_CLEANUP(aq_freep) char *agent = written(&whole, SESSION_SPEC_OF_AGENT);
    AQ_CLEANUP(aq_freep) char *least = written(&(struct session_spec){ .image = "sh" },
                                               SESSION_SPEC_ALL);

    (void)state;
    assert_string_equal(
        all, "{\"image\":\"python:3.9\",\"architecture\":\"aarch64\","
             "\"command\":\"echo 'x' && exit 3\",\"input\":\"stream\","
             "\"bootstrap\":\"pip install x\\n\",\"tag\":\"night\","
             "\"callback_url\":\"https://example.com/\","
             "\"environ\":{\"PATH\":\"/bin\",\"scheduling\":\"\\\"a\\\":{}\"},"
             "\"resource_opts\":{\"shmem\":\"64m\",\"allow_fractional_resource_fragmentation\":"
             "false},\"preopen_ports\":[8080,9000],"
             "\"mounts\":[{\"folder\":\"00000000-0000-0000-0000-000000000000\",\"name\":\"data\","
             "\"host\":\"local:volume1\",\"target\":\"/home/work/data\",\"mode\":\"ro\"},"
             "{\"folder\":\"00000000-0000-0000-0000-000000000000\",\"name\":\"out\","
             "\"host\":\"local:volume1\",\"path\":\"a/b\",\"target\":\"/home/work/data/out\","
             "\"mode\":\"rw\"}],"
             "\"batch_timeout_usec\":90000000,\"scheduling\":{\"agents\":[\"i-1\",\"i-2\"],"
             "\"agents_preferred\":true,\"group\":\"replicas\",\"packs\":true,"
             "\"group_strict\":true,\"job_priority\":7,\"preemptible\":true,\"movable\":true,"
             "\"wait_for_capacity\":true},"
             "\"on_failure\":\"continue\",\"on_node_loss\":\"restart-all\","
             "\"network_mode\":\"host\"}");
    assert_string_equal(
        agent, "{\"image\":\"python:3.9\",\"command\":\"echo 'x' && exit 3\",\"input\":\"stream\","
               "\"bootstrap\":\"pip install x\\n\","
               "\"environ\":{\"PATH\":\"/bin\",\"scheduling\":\"\\\"a\\\":{}\"},"
               "\"resource_opts\":{\"shmem\":\"64m\",\"allow_fractional_resource_fragmentation\":"
               "false},\"preopen_ports\":[8080,9000],"
               "\"mounts\":[{\"folder\":\"00000000-0000-0000-0000-000000000000\",\"name\":\"data\","
               "\"host\":\"local:volume1\",\"target\":\"/home/work/data\",\"mode\":\"ro\"},"
               "{\"folder\":\"00000000-0000-0000-0000-000000000000\",\"name\":\"out\","
               "\"host\":\"local:volume1\",\"path\":\"a/b\",\"target\":\"/home/work/data/out\","
               "\"mode\":\"rw\"}],"
               "\"batch_timeout_usec\":90000000,\"network_mode\":\"host\"}");
    assert_string_equal(least, "{\"image\":\"sh\"}");
}

static void test_round_trip(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(aq_freep) char *text = written(&whole, SESSION_SPEC_ALL);
    AQ_CLEANUP(aq_freep) char *again = NULL;
    struct session_spec got, *copy;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(session_spec_parse(text, &arena, &got, &err), 0);
    assert_true(session_spec_equals(&got, &whole));
    copy = session_spec_copy(&got);
    arena_done(&arena); /* the copy stands alone */
    again = written(copy, SESSION_SPEC_ALL);
    assert_string_equal(again, text);
    copy->is_movable = false;
    assert_false(session_spec_equals(copy, &whole));
    free(copy);
}

/* What managers have written that kept numbers and nothings. */
static void test_former_forms(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct session_spec got;
    struct aq_error err = { 0 };
    int64_t bytes;

    (void)state;
    assert_int_equal(session_spec_parse(NULL, &arena, &got, &err), 0);
    assert_null(got.image);
    assert_int_equal(
        session_spec_parse("{\"image\":\"sh\",\"cluster_mode\":\"single-node\",\"environ\":{},"
                           "\"cluster_size\":1,\"tag\":null,\"resource_opts\":{\"shmem\":67108864},"
                           "\"scheduling\":{\"job_priority\":0,\"preemptible\":false}}",
                           &arena, &got, &err),
        0);
    assert_string_equal(got.image, "sh");
    assert_null(got.tag);
    assert_int_equal(got.environ.count, 0);
    assert_int_equal(got.splitting, SPLITTING_UNSAID);
    assert_int_equal(session_spec_shmem(&got, &bytes, &err), 0);
    assert_int_equal(bytes, INT64_C(64) << 20);
    assert_int_equal(session_spec_parse("{\"resource_opts\":{\"shmem\":true,"
                                        "\"allow_fractional_resource_fragmentation\":\"yes\"}}",
                                        &arena, &got, &err),
                     0);
    assert_null(got.shmem);
    assert_int_equal(got.splitting, SPLITTING_UNSAID);
}

static void test_damaged(void **state)
{
    static const struct {
        const char *text, *field;
    } rows[] = {
        { "[]", "spec" },
        { "{\"image\":1}", "image" },
        { "{\"environ\":[]}", "environ" },
        { "{\"environ\":{\"A\":1}}", "environ" },
        { "{\"environ\":{\"A=B\":\"1\"}}", "environ" },
        { "{\"preopen_ports\":[\"1\"]}", "preopen_ports" },
        { "{\"scheduling\":{\"agents\":[1]}}", "agents" },
        { "{\"scheduling\":{\"movable\":\"yes\"}}", "movable" },
        { "{\"scheduling\":{\"job_priority\":\"7\"}}", "job_priority" },
        { "{\"batch_timeout_usec\":-1}", "batch_timeout_usec" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct aq_error err = { 0 };
        struct session_spec got;

        assert_row(session_spec_parse(rows[i].text, &arena, &got, &err) == -EINVAL, "%s",
                   rows[i].text);
        assert_row(strcmp(err.field, rows[i].field) == 0, "%s: %s", rows[i].text, err.field);
    }
}

static void check_refused(struct session_spec spec, const char *field, const char *why)
{
    struct aq_error err = { 0 };

    spec.image = spec.image ? spec.image : "sh";
    assert_row(session_spec_check(&spec, &err) == -EINVAL, "%s", field);
    assert_row(strcmp(err.field, field) == 0, "%s: %s", field, err.field);
    assert_row(strstr(err.text, why), "%s: %s", field, err.text);
}

static void test_bounds(void **state)
{
    static char command[(64 << 10) + 2];
    struct text_pair pair = { "A", command };
    struct aq_error err = { 0 };

    (void)state;
    memset(command, 'x', sizeof(command) - 1);
    assert_int_equal(session_spec_check(&whole, &err), 0);
    check_refused((struct session_spec){ .image = "" }, "image", "required");
    check_refused((struct session_spec){ .image = "a b" }, "image", "no spaces");
    check_refused((struct session_spec){ .command = command }, "startupCommand", "65536");
    check_refused((struct session_spec){ .command = "\xff" }, "startupCommand", "UTF-8");
    check_refused((struct session_spec){ .input = "pipe" }, "input", "not 'pipe'");
    check_refused((struct session_spec){ .environ = { &pair, 1 } }, "environ", "65536");
    pair = (struct text_pair){ "A=B", "1" };
    check_refused((struct session_spec){ .environ = { &pair, 1 } }, "environ", "name");
    check_refused((struct session_spec){ .ports = { (int64_t[]){ 80 }, 1 } }, "preopen_ports",
                  "larger");
    check_refused((struct session_spec){ .batch_timeout_usec = -1 }, "batch_timeout", "negative");
}

/* Long texts are left to the store, whatever they are. */
static void test_short(void **state)
{
    static char text[SESSION_SPEC_KEPT_MAX + 1];
    struct text_pair pair = { "A", text };
    struct session_spec spec = whole, *kept;

    (void)state;
    memset(text, 'x', SESSION_SPEC_KEPT_MAX);
    assert_false(session_spec_is_long(&spec));
    spec.bootstrap = text;
    assert_true(session_spec_is_long(&spec));
    spec = whole;
    spec.environ = (struct pair_list){ &pair, 1 };
    assert_true(session_spec_is_long(&spec));
    kept = session_spec_copy_short(&spec);
    assert_false(session_spec_is_long(kept));
    assert_null(kept->command);
    assert_null(kept->bootstrap);
    assert_int_equal(kept->environ.count, 0);
    assert_string_equal(kept->image, whole.image);
    assert_int_equal(kept->ports.count, 2);
    free(kept);
}

static void test_shmem(void **state)
{
    static const struct {
        const char *shmem;
        int64_t bytes; /* -1 = refused */
        const char *why;
    } rows[] = {
        { NULL, 0, NULL },
        { "64m", INT64_C(64) << 20, NULL },
        { "0.0625g", INT64_C(64) << 20, NULL },
        { "67108864", INT64_C(64) << 20, NULL },
        { "64q", -1, "shmem: '64q' has no known unit" },
        { "1.5", -1, "shmem: '1.5' is a fraction of a byte" },
        { "-1", -1, "shmem: '-1' cannot be negative" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct aq_error err = { 0 };
        int64_t bytes;
        int r = session_spec_shmem(&(struct session_spec){ .shmem = rows[i].shmem }, &bytes, &err);

        assert_row(r == (rows[i].why ? -EINVAL : 0), "%s", rows[i].shmem);
        assert_row(rows[i].why || bytes == rows[i].bytes, "%s", rows[i].shmem);
        if (!rows[i].why)
            continue;
        assert_row(strstr(err.text, rows[i].why), "%s: %s", rows[i].shmem, err.text);
        assert_string_equal(err.field, "config.resource_opts.shmem");
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_form), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_former_forms), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_bounds),       cmocka_unit_test(test_short),
        cmocka_unit_test(test_shmem),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
