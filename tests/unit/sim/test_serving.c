/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a model service: reading them, and replaying them under policies. */
#include "testing.h"

#include <errno.h>

#include "sim/serving_replay.h"

/* ---- reading ---- */

static void requests_come_from_csv_and_json(void **state)
{
    static const char *const texts[] = {
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:47.5000000,374,44\n"
        "2023-11-16 18:15:46.0000000,396,109\n",
        "other,output_tokens,time,prompt_tokens\nx,44,11.5,374\r\n\ny,109,1e1,396\n",
        "{\"time\": 11.5, \"prompt_tokens\": 374, \"output_tokens\": 44}\n\n"
        "{\"time\": \"10\", \"ContextTokens\": 396, \"GeneratedTokens\": 109}",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct request_trace trace;
        struct aq_error err = { 0 };

        assert_int_equal(request_trace_read(texts[i], strlen(texts[i]), &arena, &trace, &err), 0);
        assert_int_equal(trace.count, 2);
        assert_int_equal(trace.items[0].usec, 0);
        assert_int_equal(trace.items[0].prompt_tokens, 396);
        assert_int_equal(trace.items[1].usec, 1500000);
        assert_int_equal(trace.items[1].output_tokens, 44);
    }
}

static void bad_requests_are_refused(void **state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "", "" },
        { "time\n", "there are no requests" },
        { "when\n1\n", "there is no column 'time'" },
        { "time\nsoon\n", "line 2, time: expected seconds or a date" },
        { "time\n1e300\n", "line 2, time: expected" },
        { "time,prompt_tokens\n1,-1\n", "line 2, prompt_tokens" },
        { "time,output_tokens\n1,x\n", "line 2, output_tokens" },
        { "time\n0\n1e9\n", "span more than a year" },
        { "{\"time\": 1}\n[1]\n", "line 2: expected a JSON object" },
        { "{}\n", "line 1: 'time' must be seconds or a date" },
        { "{\"time\": true}\n", "line 1: 'time' must be" },
        { "{\"time\": 1, \"prompt_tokens\": 1.5}\n", "line 1: expected numbers of tokens" },
        { "{\"time\": 1, \"output_tokens\": -1}\n", "line 1: expected numbers of tokens" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct request_trace trace;
        struct aq_error err = { 0 };

        assert_int_equal(
            request_trace_read(rows[i].text, strlen(rows[i].text), &arena, &trace, &err), -EINVAL);
        if (!strstr(err.text, rows[i].expected))
            fail_msg("expected '%s' in: %s", rows[i].expected, err.text);
    }
}

/* ---- replaying ---- */

/* One slot; a request of 1000 output tokens takes 5 s; a replica starts for 10 s. */
static const struct serving_model model = { 1, 10000000, 0, 5000000, 1, 10 };

static struct serving_result replay(const char *requests, const char *rules, const char *policy,
                                    const struct serving_model *of)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct serving_policy_ops *ops = NULL;
    struct request_trace trace;
    struct autoscale scaling;
    struct serving_result result;
    struct aq_error err = { 0 };

    assert_int_equal(request_trace_read(requests, strlen(requests), &arena, &trace, &err), 0);
    assert_int_equal(autoscale_parse(rules, strlen(rules), &arena, &scaling, &err), 0);
    assert_int_equal(serving_policy_find(policy, &ops, &err), 0);
    serving_replay(&trace, of, &scaling, ops, &result);
    return result;
}

#define ONE_RULE "{\"rules\": [{\"signal\": \"in_flight\", \"target\": 1, \"fill\": 1}]}"

static void a_replica_answers_as_many_as_it_has_slots(void **state)
{
    struct serving_model fixed = model;
    struct serving_result r;

    (void)state;
    fixed.replicas_max = 1;
    r = replay("time,output_tokens\n0,1000\n0,1000\n1,1000\n", ONE_RULE, "aliquot", &fixed);
    assert_int_equal(r.requests, 3);
    assert_int_equal(r.waited, 2); /* 0, 5 and 9 s */
    assert_true(r.wait_max_sec > 8.999 && r.wait_max_sec < 9.001);
    assert_true(r.replica_seconds > 14.999 && r.replica_seconds < 15.001);
    assert_int_equal(r.replicas_max, 1);
    assert_int_equal(r.decision_count, 0);
    serving_result_done(&r);
}

static void replicas_start_and_drain(void **state)
{
    struct serving_result r = replay("time,output_tokens\n0.5,1000\n0.6,6000\n400,1000\n", ONE_RULE,
                                     "aliquot", &model);

    (void)state;
    /* Asked at 1 s, a second replica would be ready at 11 s; the first one is free at 5.5 s. */
    assert_int_equal(r.replicas_max, 2);
    assert_true(r.wait_max_sec > 4.899 && r.wait_max_sec < 4.901);
    assert_int_equal(r.decisions_in_all, 2);
    assert_int_equal(r.decisions[0].usec, 1000000);
    assert_int_equal(r.decisions[0].replicas, 2);
    assert_int_equal(r.decisions[1].replicas, 1); /* a window later */
    assert_true(r.decisions[1].usec > 300000000 && r.decisions[1].usec < 312000000);
    assert_non_null(strstr(r.decisions[0].reason, "requests in flight: 2"));
    serving_result_done(&r);
}

static void a_sleeping_service_is_woken(void **state)
{
    struct serving_model sleeping = model;
    struct serving_result r;

    (void)state;
    sleeping.replicas_min = 0;
    r = replay(
        "time,output_tokens\n0,1000\n1000,1000\n",
        "{\"idle\": 60, \"rules\": [{\"signal\": \"in_flight\", \"target\": 1, \"fill\": 1}]}",
        "aliquot", &sleeping);
    assert_int_equal(r.waited, 1);
    assert_true(r.wait_max_sec >= 10 && r.wait_max_sec <= 11.001);
    assert_true(r.replica_seconds < 100);
    serving_result_done(&r);
}

static void a_share_costs_its_part(void **state)
{
    struct serving_result r = replay("time,output_tokens\n0,1000\n",
                                     "{\"share\": {\"min\": 0.25, \"max\": 1}, \"rules\": "
                                     "[{\"signal\": \"in_flight\", \"target\": 8, \"fill\": 1}]}",
                                     "aliquot", &model);

    (void)state;
    assert_true(r.replica_seconds > 1.249 && r.replica_seconds < 1.251);
    serving_result_done(&r);
}

/* As many requests a second as four busy replicas answer, for ten minutes, from a sudden start on. */
static void policies_differ(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct serving_model eight = { 8, 10000000, 0, 5000000, 1, 50 };
    struct serving_result ours, hpa, knative;

    (void)state;
    strbuf_adds(&text, "time,output_tokens\n0,1\n");
    for (int i = 0; i < 3840; i++)
        strbuf_addf(&text, "%.4f,1000\n", 100 + i / 6.4);
    ours = replay(text.data, "{\"rules\": [{\"signal\": \"in_flight\", \"target\": 8}]}", "aliquot",
                  &eight);
    hpa = replay(text.data, ONE_RULE, "hpa", &eight);
    knative = replay(text.data, ONE_RULE, "knative", &eight);
    assert_true(ours.waited < hpa.waited);
    assert_true(ours.waited < knative.waited);
    assert_true(ours.replicas_max < 16);
    assert_int_equal(hpa.decisions[0].usec % 15000000, 0);
    assert_int_equal((knative.decisions[0].usec + 1000000) % 2000000, 0);
    serving_result_done(&ours);
    serving_result_done(&hpa);
    serving_result_done(&knative);
}

static void an_unknown_policy_is_refused(void **state)
{
    const struct serving_policy_ops *ops;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(serving_policy_find("keda", &ops, &err), -EINVAL);
    assert_non_null(strstr(err.text, "unknown policy 'keda'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_from_csv_and_json),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(a_replica_answers_as_many_as_it_has_slots),
        cmocka_unit_test(replicas_start_and_drain),
        cmocka_unit_test(a_sleeping_service_is_woken),
        cmocka_unit_test(a_share_costs_its_part),
        cmocka_unit_test(policies_differ),
        cmocka_unit_test(an_unknown_policy_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
