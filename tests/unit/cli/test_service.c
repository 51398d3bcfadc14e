/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/service/service.h"
#include "cli/service/service_rollout.h"
#include "cli/service/service_spec.h"

static void test_replicas(void **state)
{
    static const struct {
        const char *text, *want; /* NULL = refused */
    } rows[] = {
        { "2", "2" },    { "0", "0" },        { "1-8", "\"1-8\"" }, { "0-0", "\"0-0\"" },
        { "", NULL },    { "-", NULL },       { "1-", NULL },       { "-1", NULL },
        { "1-x", NULL }, { "1-2-3", NULL },   { "two", NULL },      { "2 ", NULL },
        { "1.5", NULL }, { "1234567", NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        json_t *value = service_parse_replicas(rows[i].text);
        char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

        assert_row((text == NULL) == (rows[i].want == NULL), "'%s'", rows[i].text);
        assert_row(!text || strcmp(text, rows[i].want) == 0, "'%s': %s", rows[i].text, text);
        free(text);
        json_decref(value);
    }
}

struct target {
    struct service_spec_opts spec;
};

static const struct cli_opt opts[] = { SERVICE_SPEC_ROWS(struct target), CLI_OPT_END };

#define WORDS_MAX 12

/* The body that options and a command become, with the spec of the present revision. */
static void test_body(void **state)
{
    static const struct {
        const char *words[WORDS_MAX], *goal, *want; /* want: NULL = refused */
    } rows[] = {
        { { "--image", "python", "-r", "cpu=1,mem=2g", "--port", "80" },
          NULL,
          "{\"image\":\"python\",\"port\":80,\"resources\":{\"cpu\":\"1\",\"mem\":\"2g\"}}" },
        { { "--model", "digits:/m", "--health", "/up", "--health-interval", "5s" },
          NULL,
          "{\"health\":{\"interval\":5,\"path\":\"/up\"},\"model\":\"digits\","
          "\"model_target\":\"/m\"}" },
        { { "--", "python3 x && y" }, NULL, "{\"command\":\"python3 x && y\"}" },
        { { "--", "python3", "a b", "--port" }, NULL, "{\"command\":\"python3 'a b' --port\"}" },
        { { "-r", "mem=4g", "-e", "B=2", "--health-status", "204" },
          "{\"resources\":{\"cpu\":\"1\",\"mem\":\"2g\"},\"environ\":{\"A\":\"1\",\"B\":\"1\"},"
          "\"health\":{\"path\":\"/up\"},\"port\":80}",
          "{\"environ\":{\"A\":\"1\",\"B\":\"2\"},\"health\":{\"status\":204},"
          "\"resources\":{\"cpu\":\"1\",\"mem\":\"4g\"}}" },
        { { "--note", "again" },
          "{\"environ\":{\"A\":\"1\"},\"port\":80}",
          "{\"note\":\"again\"}" },
        { { "--model", "/home/me/model" }, NULL, NULL },
        { { "--model", "digits:m" }, NULL, NULL },
        { { "--model", ":/m" }, NULL, NULL },
        { { "--image", "\xff" }, NULL, NULL },
        { { "--env", "1=2" }, NULL, NULL },
        { { "--bootstrap", "/nonexistent" }, NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct target target = { .spec = { .image = NULL } };
        struct cli_opt_set set = { opts, &target };
        json_t *goal = rows[i].goal ? json_loads(rows[i].goal, 0, NULL) : NULL;
        json_t *body = json_object();
        char *argv[WORDS_MAX], *text;
        struct aq_error err = { 0 };
        int argc = 0, count, r;

        for (; argc < WORDS_MAX && rows[i].words[argc]; argc++)
            argv[argc] = (char *)rows[i].words[argc];
        assert_int_equal(cli_opts_parse(&set, 1, false, argc, argv, &count, &err), 0);
        r = service_spec_add(opts, &target, &target.spec, goal, count, argv, body, &err);
        text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
        assert_row((r == 0) == (rows[i].want != NULL), "row %zu: %s", i, err.text);
        assert_row(r < 0 || strcmp(text, rows[i].want) == 0, "row %zu: %s", i, text);
        free(text);
        json_decref(body);
        json_decref(goal);
        cli_opts_done(opts, &target);
    }
}

#define REPLICA(revision, health, draining) \
    "{\"revision\":" revision ",\"health\":\"" health "\",\"draining\":" draining "}"
#define ROLLOUT(phase, more)                                                        \
    "\"rollout\":{\"abort\":{\"failures\":3}," more "\"state\":{\"phase\":\"" phase \
    "\",\"from\":1,"                                                                \
    "\"to\":2,\"promoted\":false}},"
#define SERVICE(wanted, more, replicas)                                       \
    "{\"replicas\":{\"wanted\":" wanted "},\"revision\":{\"number\":2}," more \
    "\"replica_list\":[" replicas "]}"

static void test_stage(void **state)
{
    static const struct {
        const char *service, *what;
        enum service_stage want;
        int64_t revision; /* that was deployed; 0 = any */
    } rows[] = {
        { SERVICE("1", "", ""), "no replica yet", SERVICE_COMES },
        { SERVICE("0", "", ""), "asleep", SERVICE_IS_READY },
        { SERVICE("1", "", REPLICA("2", "starting", "false")), "starting", SERVICE_COMES },
        { SERVICE("1", "", REPLICA("2", "ready", "false")), "ready", SERVICE_IS_READY },
        { SERVICE("2", "", REPLICA("2", "ready", "false")), "one of two", SERVICE_COMES },
        { SERVICE("1", "", REPLICA("1", "ready", "false")), "only an old one", SERVICE_COMES },
        { SERVICE("1", "", REPLICA("2", "ready", "false") "," REPLICA("1", "ready", "false")),
          "an old one takes requests", SERVICE_COMES },
        { SERVICE("1", "", REPLICA("2", "ready", "false") "," REPLICA("1", "ready", "true")),
          "an old one drains", SERVICE_IS_READY },
        { SERVICE("1", "", REPLICA("2", "unhealthy", "false")), "unhealthy", SERVICE_COMES },
        { SERVICE("1", "\"status\":\"failing\",", ""), "failing", SERVICE_FAILS },
        { SERVICE("2", "\"retry_at\":\"2026-11-30T10:00:00Z\",", REPLICA("1", "ready", "false")),
          "held back", SERVICE_FAILS },
        { SERVICE("1", "\"retry_at\":null,", REPLICA("2", "starting", "false")), "not held back",
          SERVICE_COMES },
        { SERVICE("1", "\"status\":\"ending\",", REPLICA("2", "ready", "true")), "ending",
          SERVICE_ENDS },
        { SERVICE("1", ROLLOUT("running", ""), REPLICA("1", "ready", "false")), "a rollout runs",
          SERVICE_COMES, 2 },
        { SERVICE("1", ROLLOUT("running", "") "\"retry_at\":\"2026-11-30T10:00:00Z\",",
                  REPLICA("1", "ready", "false")),
          "failures will abort it", SERVICE_COMES, 2 },
        { SERVICE("1", ROLLOUT("done", "") "\"status\":\"failing\",", ""),
          "failing after the rollout", SERVICE_FAILS, 2 },
        { SERVICE("1", ROLLOUT("ready", ""),
                  REPLICA("1", "ready", "false") "," REPLICA("2", "ready", "false")),
          "blue-green waits for people", SERVICE_AWAITS_PROMOTION, 2 },
        { SERVICE("1", ROLLOUT("ready", "\"auto_promote\":true,"),
                  REPLICA("1", "ready", "false") "," REPLICA("2", "ready", "false")),
          "blue-green promotes itself", SERVICE_COMES, 2 },
        { SERVICE("1", "\"rollout\":{\"state\":{\"phase\":\"running\",\"promoted\":true}},",
                  REPLICA("1", "ready", "false") "," REPLICA("2", "ready", "false")),
          "promoted, and the old group is kept", SERVICE_IS_READY, 2 },
        { SERVICE("1", ROLLOUT("aborted", ""), REPLICA("2", "ready", "false")),
          "another revision is the goal", SERVICE_ABANDONED, 3 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        json_t *service = json_loads(rows[i].service, 0, NULL);

        assert_non_null(service);
        assert_row(service_get_stage(service, rows[i].revision) == rows[i].want, "%s",
                   rows[i].what);
        json_decref(service);
    }
}

/* ---- rollouts ---- */

static void test_rollout_options(void **state)
{
    const struct service_rollout_opts good = { .max_surge = "25%",
                                               .max_unavailable = "1",
                                               .steps = "5,25,50",
                                               .abort_errors = "5%",
                                               .abort_latency = "1.5",
                                               .abort_failures = { true, 2 },
                                               .promote_after = { true, 90 * USEC_PER_SEC } };
    static const struct {
        struct service_rollout_opts opts;
        const char *named;
    } wrong[] = {
        { { .max_surge = "x" }, "--max-surge" },
        { { .max_surge = "5%%" }, "--max-surge" },
        { { .max_unavailable = "" }, "--max-unavailable" },
        { { .steps = "5," }, "--steps" },
        { { .steps = "5;6" }, "--steps" },
        { { .abort_errors = "-1" }, "--abort-errors" },
        { { .abort_latency = "5%" }, "--abort-latency" },
        { { .promote_manually = true, .promote_after = { true, 1 } }, "exclude each other" },
    };
    json_auto_t *body = json_object(), *wanted = json_loads("{\"rollout\":{\"max_surge\":\"25%\","
                                                            "\"max_unavailable\":1,"
                                                            "\"steps\":[5,25,50],"
                                                            "\"auto_promote\":true,"
                                                            "\"promote_delay\":90.0,\"abort\":"
                                                            "{\"error_ratio\":0.05,"
                                                            "\"latency_ratio\":1.5,"
                                                            "\"failures\":2}}}",
                                                            0, NULL);
    struct aq_error err;

    (void)state;
    assert_int_equal(service_rollout_add(&good, body, &err), 0);
    service_nest(body);
    assert_true(json_equal(body, wanted));
    for (size_t i = 0; i < AQ_COUNT(wrong); i++) {
        json_auto_t *none = json_object();

        assert_int_equal(service_rollout_add(&wrong[i].opts, none, &err), -EINVAL);
        assert_non_null(strstr(err.text, wrong[i].named));
    }
}

static void test_rollout_picture(void **state)
{
    const struct output o = { .now_usec = 1796083200 * USEC_PER_SEC }; /* 2026-12-01 00:00 */
    static const struct {
        const char *state, *picture;
    } rows[] = {
        { "null", "digits has had no rollout; the next one is canary\n" },
        { "{\"phase\":\"running\",\"from\":3,\"to\":4,\"step\":2,\"steps\":4,\"percent\":25,"
          "\"next_at\":\"2026-12-01T00:07:12Z\",\"reason\":\"new replicas get 25 % of requests\","
          "\"old\":{\"replicas\":7,\"ready\":6},\"new\":{\"replicas\":2,\"ready\":2}}",
          "canary rollout of digits: revision 4 takes the place of 3\n"
          "step 2 of 4, the next one in 7m12s\n"
          "from revision 3    [######+.]  6 of 7 ready, 75 % of requests\n"
          "to   revision 4    [##......]  2 of 2 ready, 25 % of requests\n"
          "last event: new replicas get 25 % of requests\n" },
        { "{\"phase\":\"ready\",\"from\":3,\"to\":4,\"percent\":0,\"next_at\":null,"
          "\"old\":{\"replicas\":8,\"ready\":8},\"new\":{\"replicas\":8,\"ready\":8}}",
          "canary rollout of digits: revision 4 takes the place of 3\n"
          "all new replicas are ready; 'aliquot service promote digits' gives them the requests\n"
          "from revision 3    [########]  8 of 8 ready, 100 % of requests\n"
          "to   revision 4    [########]  8 of 8 ready, 0 % of requests\n" },
        { "{\"phase\":\"aborting\",\"from\":4,\"to\":3,\"percent\":null,"
          "\"reason\":\"3 replicas of revision 4 failed\","
          "\"old\":{\"replicas\":1,\"ready\":0},\"new\":{\"replicas\":7,\"ready\":0}}",
          "rollout of digits aborted: going back from revision 4 to 3\n"
          "from revision 4    [+.......]  0 of 1 ready\n"
          "to   revision 3    [+++++++.]  0 of 7 ready\n"
          "last event: 3 replicas of revision 4 failed\n" },
        { "{\"phase\":\"done\",\"from\":3,\"to\":4,\"percent\":100,"
          "\"old\":{\"replicas\":0,\"ready\":0},\"new\":{\"replicas\":8,\"ready\":8}}",
          "rollout of digits complete: revision 4 took the place of 3\n"
          "from revision 3    [........]  0 of 0 ready, 0 % of requests\n"
          "to   revision 4    [########]  8 of 8 ready, 100 % of requests\n" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
        json_auto_t *service = NULL;

        strbuf_addf(&text,
                    "{\"name\":\"digits\",\"replicas\":{\"wanted\":8},"
                    "\"rollout\":{\"strategy\":\"canary\",\"state\":%s}}",
                    rows[i].state);
        service = json_loads(text.data, 0, NULL);
        assert_non_null(service);
        service_write_rollout(&o, service, &out);
        assert_string_equal(out.data, rows[i].picture);
    }
}

static void test_find_replica(void **state)
{
    json_t *service = json_loads(
        "{\"name\":\"digits\",\"replica_list\":["
        "{\"number\":7,\"session\":\"s7\",\"session_name\":\"digits-7\"},"
        "{\"number\":3,\"session\":\"s3\",\"session_name\":\"digits-3\"}]}",
        0, NULL);
    json_t *none = json_loads("{\"name\":\"digits\",\"problem\":\"no agent has room\"}", 0, NULL);
    const json_t *found = NULL;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(service_find_replica(service, NULL, &found, &err), 0);
    assert_string_equal(output_text(found, "session"), "s7");
    assert_int_equal(service_find_replica(service, "3", &found, &err), 0);
    assert_string_equal(output_text(found, "session"), "s3");
    assert_int_equal(service_find_replica(service, "digits-7", &found, &err), 0);
    assert_string_equal(output_text(found, "session"), "s7");
    assert_int_equal(service_find_replica(service, "4", &found, &err), -ENOENT);
    assert_non_null(strstr(err.text, "7, 3"));
    assert_int_equal(service_find_replica(none, NULL, &found, &err), -ENOENT);
    assert_non_null(strstr(err.text, "no agent has room"));
    json_decref(service);
    json_decref(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas),        cmocka_unit_test(test_body),
        cmocka_unit_test(test_stage),           cmocka_unit_test(test_rollout_options),
        cmocka_unit_test(test_rollout_picture), cmocka_unit_test(test_find_replica),
    };

    return cmocka_run_group_tests_name("cli/service", tests, NULL, NULL);
}
