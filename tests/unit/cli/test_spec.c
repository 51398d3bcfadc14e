/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/client.h"
#include "cli/admin/accounts.h"
#include "cli/amounts.h"
#include "cli/session/cluster_spec.h"
#include "cli/verbs.h"

static void test_resources(void **state)
{
    static const struct {
        const char *text, *want; /* NULL = refused */
    } rows[] = {
        { "cpu=1", "{\"cpu\":\"1\"}" },
        { "cpu=1,mem=2g", "{\"cpu\":\"1\",\"mem\":\"2g\"}" },
        { "cuda.shares=0.25", "{\"cuda.shares\":\"0.25\"}" },
        { "a=b=c", "{\"a\":\"b=c\"}" },
        { "mem=67108864", "{\"mem\":\"67108864\"}" },
        { "mem=0", "{\"mem\":\"0\"}" },
        { "mem=100", NULL },
        { "cpu=1,mem=4096,cuda.shares=1", NULL },
        { "cpu", NULL },
        { "cpu=", NULL },
        { "=1", NULL },
        { "cpu=1,cpu=2", NULL },
        { "cpu=1,,mem=1", NULL },
        { "cpu=\xff", NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        json_t *object = json_object();
        struct aq_error err = { 0 };
        int r = cli_amounts_add(rows[i].text, NULL, object, &err);
        char *text = json_dumps(object, JSON_COMPACT);

        assert_row(r == (rows[i].want ? 0 : -EINVAL), "%s: %s", rows[i].text, err.text);
        assert_row(!rows[i].want || strcmp(text, rows[i].want) == 0, "%s: %s", rows[i].text, text);
        free(text);
        json_decref(object);
    }
}

/* What --cluster and its like become in the request of a session that has an image, a command,
 * cores and a variable.
 */
static void test_cluster(void **state)
{
    static const struct {
        const char *cluster, *roles[3]; /* roles[2] is NULL */
        int mode;
        int64_t size;     /* 0 = not given */
        const char *want; /* a part of the body, or of the error */
        int64_t count;    /* kernels; 0 = refused */
    } rows[] = {
        { .want = "{\"image\":\"i\"", .count = 1 },
        { "4", .want = "\"clusterSize\":4,\"clusterMode\":\"multi-node\"}", .count = 4 },
        { "1", .want = "\"clusterSize\":1,", .count = 1 },
        { "2-8", .want = "\"clusterSize\":8,\"cluster_size_min\":2,\"clusterMode\":\"multi-node\"}",
          .count = 8 },
        { "3-3", .want = "\"clusterSize\":3,\"clusterMode\"", .count = 3 },
        { "4", .mode = 1, .want = "\"clusterMode\":\"single-node\"}", .count = 4 },
        { .size = 2, .want = "\"clusterSize\":2}", .count = 2 },
        { .size = 2, .mode = 2, .want = "\"clusterMode\":\"multi-node\"}", .count = 2 },
        { "8-2", .want = "the minimum comes first: --cluster 2-8" },
        { "10000", .want = "--cluster: a session has 1 to 1000 kernels, not 10000" },
        { "2-10000", .want = "--cluster: a session has 1 to 1000 kernels, not 2-10000" },
        { "0", .want = "--cluster: a session has 1 to 1000 kernels, not 0" },
        { "99999999999999999999", .want = "--cluster takes a number of kernels" },
        { "2-", .want = "--cluster takes a number of kernels" },
        { "four", .want = "not 'four'" },
        { "-2", .want = "not '-2'" },
        { .size = 2000, .want = "--cluster-size: a session has 1 to 1000 kernels, not 2000" },
        { "2", .size = 2, .want = "--cluster and --cluster-size exclude each other" },
        { NULL,
          { "worker=2" },
          .want = "\"clusterMode\":\"multi-node\",\"roles\":[{\"role\":\"worker\",\"count\":2,"
                  "\"resources\":{\"cpu\":\"1\"},\"environ\":{\"A\":\"b\"},\"image\":\"i\","
                  "\"startupCommand\":\"c\"}]}",
          .count = 3 },
        { NULL,
          { "ps=1,image=x:1,cpu=2,mem=1g,env.A=2,env.B=3,command=a, b=c" },
          .want = "{\"cpu\":\"2\",\"mem\":\"1g\"},\"environ\":{\"A\":\"2\",\"B\":\"3\"},"
                  "\"image\":\"x:1\",\"startupCommand\":\"a, b=c\"}]}",
          .count = 2 },
        { "4", { "worker=2", "ps=1" }, .want = "\"clusterSize\":4,", .count = 4 },
        { "2-3", { "worker=2" }, .want = "--cluster 2-3 and --role exclude each other" },
        { "4", { "worker=2" }, .want = "are 3 kernels, and --cluster says 4" },
        { NULL, { "worker=2", "worker=1" }, .want = "--role worker is given twice" },
        { NULL, { "main=2" }, .want = "main1 is the kernel that the session itself describes" },
        { NULL, { "Worker=2" }, .want = "--role Worker: a name is" },
        { NULL, { "worker=0" }, .want = "1 to 999 kernels, not 0" },
        { NULL, { "a=900", "b=900" }, .want = "are 1801 kernels; a session has 1 to 1000" },
        { NULL, { "worker" }, .want = "--role takes NAME=COUNT" },
        { NULL, { "worker=2x" }, .want = "not 'worker=2x'" },
        { NULL, { "worker=2,cuda.shares=0,5" }, .want = "not '5'" },
        { NULL, { "worker=2,image=" }, .want = "not 'image='" },
        { NULL, { "worker=2,cpu=1,cpu=2" }, .want = "--role worker: cpu is given twice" },
        { NULL, { "worker=2,env.1=2" }, .want = "--role worker: --env takes" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const char *roles[] = { rows[i].roles[0], rows[i].roles[1] };
        const struct spec_opts spec = {
            .cluster = rows[i].cluster,
            .cluster_mode = rows[i].mode,
            .cluster_size = { rows[i].size != 0, rows[i].size },
            .roles = { roles, (size_t) !!roles[0] + !!roles[1], 2 },
        };
        json_t *body = json_pack("{s:s, s:s, s:{s:{s:s}, s:{s:s}}}", "image", "i", "startupCommand",
                                 "c", "config", "resources", "cpu", "1", "environ", "A", "b");
        struct aq_error err = { 0 };
        int r = cluster_spec_to_json(&spec, body, &err);
        char *text = json_dumps(body, JSON_COMPACT);

        assert_row(r == (rows[i].count ? 0 : -EINVAL), "%zu: %s", i, r < 0 ? err.text : text);
        assert_row(strstr(r < 0 ? err.text : text, rows[i].want), "%zu: %s", i,
                   r < 0 ? err.text : text);
        assert_row(r < 0 || cluster_spec_count(&spec) == rows[i].count, "%zu: count", i);
        free(text);
        json_decref(body);
    }
}

/* A role has to have some image. */
static void test_role_without_image(void **state)
{
    const char *role = "worker=1";
    const struct spec_opts spec = { .roles = { &role, 1, 1 } };
    json_auto_t *body = json_object();
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(cluster_spec_to_json(&spec, body, &err), -EINVAL);
    assert_string_equal(err.text, "--role worker needs image=IMAGE, as the session names no image");
}

/* The shell gives the words back as they were. */
static void test_quoting(void **state)
{
    static const char *const words[] = { "echo", "a b", "",  "it's", "$HOME", "`id`",
                                         "a\nb", "\\",  "*", "~",    "--x=1", "\"",
                                         "a;b",  "#",   "'", "!",    "a=b c", "\xed\x95\x9c",
                                         "-",    "%d",  NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf want = STRBUF_INIT;
    int count = (int)AQ_COUNT(words) - 1;
    char got[512];
    size_t len;
    FILE *pipe;

    (void)state;
    strbuf_adds(&line, "printf '%s|' ");
    spec_quote_command(count, (char *const *)words, &line);
    for (int i = 0; i < count; i++)
        strbuf_addf(&want, "%s|", words[i]);
    pipe = popen(line.data, "r");
    assert_non_null(pipe);
    len = fread(got, 1, sizeof(got) - 1, pipe);
    got[len] = '\0';
    assert_int_equal(pclose(pipe), 0);
    assert_string_equal(got, want.data);
}

static void test_names(void **state)
{
    static const struct {
        const char *given;
        const char *command;
        const char *stem;
    } rows[] = {
        { "mine", "python3", "mine" },
        { NULL, "python3", "python3-" },
        { NULL, "/usr/bin/env python3", "env-" },
        { NULL, "./a_b.sh --x", "a_b.sh-" },
        { NULL, "A=1 B_2=x python3 y", "python3-" },
        { NULL, "A=1", "A1-" },
        { NULL, "$((1))", "1-" },
        { NULL, "...", "run-" },
        { NULL, "a-very-long-program-name", "a-very-long-prog-" },
        { NULL, NULL, "session-" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct spec_opts spec = { .name = rows[i].given };
        const char *argv[] = { rows[i].command };
        AQ_CLEANUP(aq_freep) char *name = spec_make_name(&spec, rows[i].command != NULL,
                                                         (char *const *)argv);

        assert_row(strncmp(name, rows[i].stem, strlen(rows[i].stem)) == 0, "%zu: %s", i, name);
        assert_row(strlen(name) <= 64 && strlen(name) >= 4, "%zu: %s", i, name);
    }
}

static void test_request(void **state)
{
    static const char *resources[] = { "cpu=2", "mem=1g" }, *environ[] = { "A=b=c", "SPEC_TEST" },
                      *after[] = { "first" };
    struct spec_opts spec = {
        .name = "job",
        .resources = { resources, 2, 2 },
        .environ = { environ, 2, 2 },
        .after = { after, 1, 1 },
        .timeout = { true, 90 * INT64_C(1000000) },
    };
    char echo[] = "echo", words[] = "a b", *argv[] = { echo, words, NULL };
    char image[] = "img", group[] = "team";
    struct cli cli = { .verb = NULL };
    struct aq_error err = { 0 };
    json_t *body = NULL, *want;

    (void)state;
    assert_int_equal(setenv("SPEC_TEST", "here", 1), 0);
    cli.config.values[SETTING_IMAGE] = image;
    cli.config.values[SETTING_GROUP] = group;
    assert_row(spec_to_json(&cli, &spec, true, 2, argv, 3, &body, &err) == 0, "%s", err.text);
    want = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:[s], s:b, s:b, s:s, s:{s:{s:s,s:s}, s:{s:s,s:s}}}", "name",
        "job-3", "type", "batch", "image", "img", "group", "team", "batch_timeout", 90,
        "dependencies", "first", "enqueueOnly", 1, "reuseIfExists", 0, "startupCommand",
        "exec echo 'a b'", "config", "resources", "cpu", "2", "mem", "1g", "environ", "A", "b=c",
        "SPEC_TEST", "here");
    assert_non_null(want);
    assert_true(json_equal(body, want));
    json_decref(body);
    json_decref(want);
    spec.timeout.value = INT64_C(1500000);
    assert_int_equal(spec_to_json(&cli, &spec, true, 2, argv, 3, &body, &err), 0);
    assert_true(json_real_value(json_object_get(body, "batch_timeout")) == 1.5);
    json_decref(body);
    assert_int_equal(unsetenv("SPEC_TEST"), 0);
}

static void test_environ(void **state)
{
    static const char *const rows[][4] = {
        { "{}", "SPEC_UNSET" },
        { "{\"SPEC_TEST\": \"here\"}", "SPEC_TEST" },
        { "{\"SPEC_TEST\": \"\"}", "SPEC_TEST=" },
        { "{\"A\": \"b=c\\n\"}", "A=1", "A=b=c\n" },
        { "{\"SPEC_TEST\": \"here\"}", "SPEC_TEST=1", "SPEC_TEST" },
        { "{}", "SPEC_UNSET=1", "SPEC_UNSET" },
        { "{\"_a1\": \"1\", \"node.name\": \"x\", \"A-B\": \"2\"}", "_a1=1", "node.name=x",
          "A-B=2" },
        { NULL, "=x" },
        { NULL, "" },
        { NULL, "1A=x" },
        { NULL, "1A" },
        { NULL, "A B=x" },
        { NULL, "$A=x" },
        { NULL, "A=\xff" },
        { NULL, "\xc3\xa4=x" },
    };

    (void)state;
    assert_int_equal(setenv("SPEC_TEST", "here", 1), 0);
    assert_int_equal(unsetenv("SPEC_UNSET"), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const char *items[3] = { rows[i][1], rows[i][2], rows[i][3] };
        const struct cli_list list = { items, items[2] ? 3 : items[1] ? 2 : 1, 3 };
        json_auto_t *object = json_object(), *want = NULL;
        struct aq_error err = { 0 };
        int r = spec_add_environ(&list, object, &err);

        want = rows[i][0] ? json_loads(rows[i][0], 0, NULL) : NULL;
        if (!rows[i][0])
            assert_row(r == -EINVAL && strcmp(err.kind, CLI_KIND_USAGE) == 0, "%zu", i);
        else
            assert_row(r == 0 && want && json_equal(object, want), "%zu: %s", i, err.text);
    }
    assert_int_equal(unsetenv("SPEC_TEST"), 0);
}

static void test_mounts(void **state)
{
    static const struct {
        const char *mount, *names, *targets, *options; /* JSON; NULL = refused */
    } rows[] = {
        { "data", "[\"data\"]", "{}", "{}" },
        { "data/a/b", "[\"data/a/b\"]", "{}", "{}" },
        { "data:ro", "[\"data\"]", "{}", "{\"data\": {\"permission\": \"ro\"}}" },
        { "data:/srv/x", "[\"data\"]", "{\"data\": \"/srv/x\"}", "{}" },
        { "data:x:rw", "[\"data\"]", "{\"data\": \"x\"}", "{\"data\": {\"permission\": \"rw\"}}" },
        { "", NULL, NULL, NULL },
        { ":x", NULL, NULL, NULL },
        { "data:", NULL, NULL, NULL },
        { "data:x:wd", NULL, NULL, NULL },
        { "data:a:b:ro", NULL, NULL, NULL },
        { "\xff", NULL, NULL, NULL },
    };
    static const char *const members[] = { "mounts", "mount_map", "mount_options" };
    char line[] = "true", *argv[] = { line, NULL };
    struct cli cli = { .verb = NULL };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const char *wanted[] = { rows[i].names, rows[i].targets, rows[i].options };
        const char *mount = rows[i].mount;
        const struct spec_opts spec = { .name = "job", .mounts = { &mount, 1, 1 } };
        json_auto_t *body = NULL;
        struct aq_error err = { 0 };
        int r = spec_to_json(&cli, &spec, true, 1, argv, 0, &body, &err);

        if (!rows[i].names) {
            assert_row(r == -EINVAL && strcmp(err.kind, CLI_KIND_USAGE) == 0, "%zu", i);
            continue;
        }
        assert_row(r == 0, "%zu: %s", i, err.text);
        for (size_t k = 0; k < AQ_COUNT(members); k++) {
            json_auto_t *want = json_loads(wanted[k], 0, NULL);

            assert_row(
                json_equal(json_object_get(json_object_get(body, "config"), members[k]), want),
                "%s: %s", mount, members[k]);
        }
    }
}

/* Each of several has its index, which a variable of the user's replaces. */
static void test_array(void **state)
{
    static const char *environ[] = { "SLURM_ARRAY_TASK_MIN=mine" };
    struct spec_opts spec = { .name = "job", .environ = { environ, 1, 1 }, .array_count = 12 };
    char line[] = "true", *argv[] = { line, NULL };
    struct cli cli = { .verb = NULL };
    json_t *body = NULL, *want;

    (void)state;
    assert_int_equal(spec_to_json(&cli, &spec, true, 1, argv, 12, &body, NULL), 0);
    want = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "ALIQUOT_ARRAY_INDEX", "11",
                     "ALIQUOT_ARRAY_COUNT", "12", "SLURM_ARRAY_TASK_ID", "11",
                     "SLURM_ARRAY_TASK_COUNT", "12", "SLURM_ARRAY_TASK_MIN", "mine",
                     "SLURM_ARRAY_TASK_MAX", "11", "SLURM_ARRAY_TASK_STEP", "1");
    assert_non_null(want);
    assert_true(json_equal(json_object_get(json_object_get(body, "config"), "environ"), want));
    json_decref(body);
    json_decref(want);
    spec.environ.count = 0;
    spec.array_count = 0;
    assert_int_equal(spec_to_json(&cli, &spec, true, 1, argv, 0, &body, NULL), 0);
    assert_int_equal(json_object_size(json_object_get(json_object_get(body, "config"), "environ")),
                     0);
    json_decref(body);
}

static void test_people_body(void **state)
{
    struct target {
        const char *text;
        struct cli_int number, span;
        int yes, word;
        struct cli_list slots, names;
        bool flag;
    };
    static const struct cli_opt opts[] = {
        { 0, "full-name", CLI_STR, offsetof(struct target, text), "TEXT", "" },
        { 0, "count", CLI_INT, offsetof(struct target, number), "N", "" },
        { 0, "idle-sec", CLI_DURATION, offsetof(struct target, span), "TIME", "" },
        { 0, "is-active", CLI_CHOICE, offsetof(struct target, yes), "yes|no", "" },
        { 0, "policy", CLI_CHOICE, offsetof(struct target, word), "wait|requeue", "" },
        { 0, "total-slots", CLI_LIST, offsetof(struct target, slots), "SLOT=AMOUNT", "" },
        { 0, "groups", CLI_LIST, offsetof(struct target, names), "PROJECT", "" },
        { 0, "flag", CLI_FLAG, offsetof(struct target, flag), NULL, "" },
        CLI_OPT_END,
    };
    static const char *slots[] = { "cpu=1" }, *names[] = { "a", "b" };
    struct target empty = { .text = NULL }, full = {
        "x",  { true, 0 }, { true, INT64_C(119500000) }, 2, 2, { slots, 1, 1 }, { names, 2, 2 },
        true,
    };
    json_t *body = NULL, *want;

    (void)state;
    assert_int_equal(accounts_request_body(opts, &empty, &body, NULL), 0);
    assert_int_equal(json_object_size(body), 0);
    json_decref(body);
    assert_int_equal(accounts_request_body(opts, &full, &body, NULL), 0);
    want = json_pack("{s:s, s:i, s:i, s:b, s:s, s:{s:s}, s:[s,s]}", "full_name", "x", "count", 0,
                     "idle_sec", 120, "is_active", 0, "policy", "requeue", "total_slots", "cpu",
                     "1", "groups", "a", "b");
    assert_true(json_equal(body, want));
    json_decref(body);
    json_decref(want);
    slots[0] = "cpu";
    assert_int_equal(accounts_request_body(opts, &full, &body, NULL), -EINVAL);
}

static void test_refusals(void **state)
{
    static const struct {
        int status;
        const char *body;
        enum cli_exit want;
        const char *says;
    } rows[] = {
        { 401,
          "{\"type\":\"https://api.backend.ai/probs/auth-failed\",\"title\":\"T\","
          "\"msg\":\"Signature mismatch\"}",
          CLI_EXIT_DENIED, "Signature mismatch" },
        { 404, "{\"type\":\"x/object-not-found\",\"title\":\"No such session.\"}",
          CLI_EXIT_NOT_FOUND, "No such session." },
        { 404, "{\"type\":\"x/object-not-found\",\"title\":\"No such user.\",\"msg\":\"no a\"}",
          CLI_EXIT_NOT_FOUND, "no a" },
        { 400,
          "{\"type\":\"https://api.backend.ai/probs/invalid-api-params\",\"title\":\"T\","
          "\"msg\":\"Input validation error\",\"data\":{\"name\":\"is required\"}}",
          CLI_EXIT_INVALID, "name: is required" },
        { 400, "{\"type\":\"x/session-already-exists\",\"title\":\"T\"}", CLI_EXIT_CONFLICT, "T" },
        { 412, "{}", CLI_EXIT_CONFLICT, "status 412" },
        { 429, "", CLI_EXIT_CONFLICT, "status 429" },
        { 500, "<html>", CLI_EXIT_FAILURE, "status 500" },
        { 503, "{\"title\":3}", CLI_EXIT_UNREACHABLE, "status 503" },
        { 504, "[]", CLI_EXIT_TIMEOUT, "status 504" },
        { 302, "", CLI_EXIT_FAILURE, "status 302" },
    };

    const struct cli cli = { .verb = NULL };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct aq_error err = { 0 };

        assert_row(cli_fail_status(&cli, rows[i].status, rows[i].body, strlen(rows[i].body), &err)
                       < 0,
                   "%zu", i);
        assert_row(cli_exit_for(&err) == rows[i].want, "%zu: %d", i, err.code);
        assert_row(strstr(err.text, rows[i].says), "%zu: %s", i, err.text);
    }
}

/* What the manager does not want is called as it was typed. */
static void test_options(void **state)
{
    static const struct {
        const struct cli_verb *verb;
        const char *data, *says;
    } rows[] = {
        { &verb_run, "\"config.resources.cpu\":\"too much\"", "-r cpu: too much" },
        { &verb_run, "\"config.resources.cpu\":\"cpu: odd\"", "-r cpu: odd" },
        { &verb_run, "\"[2].config.resources.mem\":\"odd\"", "-r mem: odd" },
        { &verb_run, "\"config.preopen_ports\":\"odd\"", "--port: odd" },
        { &verb_run, "\"batch_timeout\":\"odd\"", "--timeout: odd" },
        { &verb_run, "\"starts_at\":\"odd\"", "--starts-at: odd" },
        { &verb_run, "\"name\":\"odd\"", "--name: odd" },
        { &verb_run, "\"startupCommand\":\"odd\"", "startupCommand: odd" },
        { &verb_session_rename, "\"name\":\"odd\"", "name: odd" },
        { &verb_session_resize, "\"cuda.shares\":\"odd\"", "cuda.shares: odd" },
        { NULL, "\"config.resources.cpu\":\"odd\"", "config.resources.cpu: odd" },
    };
    char body[200];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct cli cli = { .verb = rows[i].verb };
        struct aq_error err = { 0 };

        (void)snprintf(body, sizeof(body), "{\"type\":\"x/invalid-api-params\",\"data\":{%s}}",
                       rows[i].data);
        assert_row(cli_fail_status(&cli, 400, body, strlen(body), &err) < 0, "%zu", i);
        assert_row(strcmp(err.text, rows[i].says) == 0, "%zu: %s", i, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resources),
        cmocka_unit_test(test_cluster),
        cmocka_unit_test(test_role_without_image),
        cmocka_unit_test(test_quoting),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_mounts),
        cmocka_unit_test(test_array),
        cmocka_unit_test(test_people_body),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_environ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
