/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <math.h>

#include "base/clock.h"
#include "serving/autoscale.h"

#define SEC USEC_PER_SEC

/* A service that follows each wish at once, unless the test says otherwise. */
struct service {
    struct arena arena;
    struct autoscale scaling;
    struct autoscale_state state;
    struct autoscale_sample sample;
    struct autoscale_wish wish;
};

static struct service service(const char *json, int64_t min, int64_t max, int64_t replicas)
{
    struct service s = { .arena = ARENA_INIT };
    struct aq_error err = { 0 };
    int r = autoscale_parse(json, strlen(json), &s.arena, &s.scaling, &err);

    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    s.sample = (struct autoscale_sample){ .now_usec = 1000 * SEC,
                                          .replicas_min = min,
                                          .replicas_max = max,
                                          .wanted = replicas,
                                          .ready = replicas };
    return s;
}

static void service_donep(struct service *s)
{
    arena_done(&s->arena);
}

/* A sample 'sec' later, with this value of the only rule; what is wanted then. */
static int64_t step(struct service *s, double sec, double value)
{
    s->sample.now_usec += llround(sec * SEC);
    s->sample.values[0] = value;
    if (s->scaling.rule_count && s->scaling.rules[0].signal == AUTOSCALE_IN_FLIGHT)
        s->sample.in_flight = value;
    autoscale_decide(&s->scaling, &s->state, &s->sample, &s->wish);
    s->sample.wanted = s->wish.replicas;
    s->sample.share_micro = s->wish.share_micro;
    return s->wish.replicas;
}

#define IN_FLIGHT "{\"rules\": [{\"signal\": \"in_flight\", \"target\": 8}]}"
#define USE "{\"rules\": [{\"signal\": \"use\", \"target\": 0.5}]}"

static void more_at_once_and_fewer_after_the_window(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(IN_FLIGHT, 1, 100, 1);

    (void)state;
    assert_int_equal(step(&s, 0, 7.6), 1); /* 7.6 = 0.95 * 8 */
    assert_int_equal(step(&s, 1, 7.7), 2);
    assert_int_equal(step(&s, 1, 76.1), 11);
    assert_non_null(strstr(s.wish.reason, "requests in flight: 76.1 at a target of 7.6"));
    for (int i = 0; i < 29; i++)
        assert_int_equal(step(&s, 10, 1), 11);
    assert_non_null(strstr(s.wish.reason, "up to 10.01 replicas were needed in the last 300 s"));
    assert_int_equal(step(&s, 16, 1), 1);
    assert_int_equal(step(&s, 1, 0), 1); /* at least the service's bound */
    assert_int_equal(step(&s, 1, 1e9), 100);
}

static void replicas_that_start_do_not_make_it_want_more(void **state)
{
    AQ_CLEANUP(service_donep) struct service total = service(IN_FLIGHT, 1, 100, 2);
    AQ_CLEANUP(service_donep) struct service mean = service(USE, 1, 100, 2);

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(step(&total, 1, 30), 4);
        assert_int_equal(step(&mean, 1, 1.0),
                         4); /* 2 ready ones work twice as much as they should */
    }
    mean.sample.ready = 4;
    assert_int_equal(step(&mean, 1, 0.5), 4);
    assert_int_equal(step(&mean, 1, 0.54), 4); /* within 10 % */
    assert_int_equal(step(&mean, 1, 0.46), 4);
    assert_int_equal(step(&mean, 1, 0.56), 5);
}

static void values_that_are_missing_change_nothing(void **state)
{
    static const double missing[] = { NAN, INFINITY, -INFINITY, -1 };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(missing); i++) {
        AQ_CLEANUP(service_donep) struct service s = service(USE, 1, 100, 5);

        for (int k = 0; k < 100; k++)
            assert_int_equal(step(&s, 10, missing[i]), 5);
        assert_string_equal(s.wish.reason, "a rule has no value");
    }
    {
        AQ_CLEANUP(service_donep) struct service s = service(USE, 1, 100, 5);

        s.sample.ready = 0; /* no mean over nothing */
        for (int k = 0; k < 100; k++)
            assert_int_equal(step(&s, 10, 0.1), 5);
    }
}

static void one_missing_value_prevents_fewer_but_not_more(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(
        "{\"rules\": [{\"signal\": \"in_flight\", \"target\": 10, \"fill\": 1},"
        "{\"signal\": \"prometheus\", \"query\": \"q\", \"target\": 5}]}",
        1, 100, 5);

    (void)state;
    s.sample.values[1] = NAN;
    for (int k = 0; k < 100; k++)
        assert_int_equal(step(&s, 10, 10), 5);
    assert_int_equal(step(&s, 1, 80), 8);
    s.sample.values[1] = 60;
    assert_int_equal(step(&s, 1, 80), 12);
}

static void clocks_may_jump(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(IN_FLIGHT, 1, 100, 1);

    (void)state;
    assert_int_equal(step(&s, 0, 76), 10);
    s.sample.now_usec = 5 * SEC; /* back: what was needed keeps its age */
    for (int i = 0; i < 29; i++)
        assert_int_equal(step(&s, 10, 1), 10);
    assert_int_equal(step(&s, 30, 1), 1);
    assert_int_equal(step(&s, 1, 76), 10);
    /* Forward, by more than is between samples: nobody has seen that it needs fewer. */
    assert_int_equal(step(&s, 100000, 1), 10);
    for (int i = 0; i < 29; i++)
        assert_int_equal(step(&s, 10, 1), 10);
    assert_int_equal(step(&s, 30, 1), 1);
    assert_int_equal(step(&s, INT64_C(1) << 40, 1), 1);
}

static void a_first_sample_lowers_nothing(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(IN_FLIGHT, 0, 100, 30);

    (void)state;
    for (int i = 0; i < 30; i++)
        assert_int_equal(step(&s, 9.9, 1), 30);
    assert_int_equal(step(&s, 20, 1), 1);
}

static void an_idle_service_has_no_replica_until_a_request_comes(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(
        "{\"idle\": 100, \"rules\": [{\"signal\": \"in_flight\", \"target\": 8}]}", 0, 100, 1);

    (void)state;
    assert_int_equal(step(&s, 0, 1), 1);
    s.sample.arrived = 1; /* a request between two samples */
    assert_int_equal(step(&s, 50, 0), 1);
    s.sample.arrived = 0;
    for (int i = 0; i < 9; i++)
        assert_int_equal(step(&s, 10, 0), 1);
    assert_int_equal(step(&s, 10, 0), 0);
    assert_string_equal(s.wish.reason, "no request for 100 s");
    s.sample.ready = 0;
    assert_int_equal(step(&s, 10, 0), 0);
    assert_int_equal(step(&s, 1, 1), 1);
    for (int i = 0; i < 9; i++)
        assert_int_equal(step(&s, 10, 0), 1);
    assert_int_equal(step(&s, 10, NAN), 1); /* not known to be idle */
    assert_int_equal(step(&s, 10, 0), 1);
}

static void loading_is_not_idle(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(
        "{\"idle\": 100, \"rules\": [{\"signal\": \"in_flight\", \"target\": 8}]}", 0, 100, 1);

    (void)state;
    s.sample.ready = 0;
    s.sample.is_loading = true;
    for (int i = 0; i < 60; i++)
        assert_int_equal(step(&s, 50, 0), 1);
    s.sample.ready = 1;
    s.sample.is_loading = false;
    assert_int_equal(step(&s, 50, 0), 1);
    assert_int_equal(step(&s, 50, 0), 0);
}

static void rules_of_means_wake_by_a_request_too(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(USE, 0, 10, 0);

    (void)state;
    assert_int_equal(step(&s, 0, NAN), 0);
    s.sample.in_flight = 1;
    assert_int_equal(step(&s, 1, NAN), 1);
}

static void without_rules_only_zero_is_decided(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service("{\"idle\": 60}", 0, 10, 3);

    (void)state;
    assert_int_equal(step(&s, 0, 0), 3);
    assert_int_equal(step(&s, 30, 0), 3);
    assert_int_equal(step(&s, 30, 0), 0);
    s.sample.in_flight = 2;
    assert_int_equal(step(&s, 1, 0), 1);
}

/* ---- shares ---- */

static void shares_grow_before_replicas_and_shrink_after_them(void **state)
{
    static const struct {
        double value;
        int64_t replicas, share_micro;
    } rows[] = {
        { 0, 1, 250000 },  { 2, 1, 250000 },   { 3, 1, 500000 },   { 6.1, 1, 750000 },
        { 9, 1, 1000000 }, { 10, 1, 1000000 }, { 11, 2, 1000000 }, { 25, 3, 1000000 },
    };
    AQ_CLEANUP(service_donep) struct service s = service(
        "{\"window\": 0, \"share\": {\"min\": 0.25, \"max\": 1, \"quantum\": 0.25},"
        "\"rules\": [{\"signal\": \"in_flight\", \"target\": 10, \"fill\": 1}]}",
        1, 3, 1);

    (void)state;
    s.sample.share_micro = 250000;
    for (int back = 0; back < 2; back++)
        for (size_t i = 0; i < AQ_COUNT(rows); i++) {
            size_t k = back ? AQ_COUNT(rows) - 1 - i : i;

            assert_int_equal(step(&s, 1, rows[k].value), rows[k].replicas);
            assert_int_equal(s.wish.share_micro, rows[k].share_micro);
        }
    (void)step(&s, 1, 1000);
    assert_int_equal(s.wish.replicas, 3);
    assert_int_equal(s.wish.share_micro, 1000000);
}

static void means_are_of_the_present_share(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(
        "{\"share\": {\"min\": 0.25, \"max\": 1, \"quantum\": 0.05},"
        "\"rules\": [{\"signal\": \"use\", \"target\": 0.5}]}",
        1, 3, 1);

    (void)state;
    s.sample.share_micro = 250000;
    assert_int_equal(step(&s, 1, 0.8), 1);
    assert_int_equal(s.wish.share_micro, 400000); /* 0.25 * 0.8 / 0.5 */
    (void)step(&s, 1, NAN);
    assert_int_equal(s.wish.share_micro, 400000);
}

/* A replica whose card is full counts as what it has: another one comes, and goes once what the first
 * one has is enough.
 */
static void replicas_come_where_shares_cannot_grow(void **state)
{
    static const struct {
        double value;
        size_t count;
        int64_t limits[3];
        int64_t replicas, share_micro;
    } rows[] = {
        { 6, 1, { 1000000 }, 1, 750000 },
        { 6, 1, { 500000 }, 2, 1000000 },          /* the card of the first is full */
        { 6, 2, { 500000, 1000000 }, 2, 1000000 }, /* the second one has room: it stays */
        { 6, 2, { 500000, 250000 }, 2, 1000000 },
        { 9, 2, { 500000, 250000 }, 3, 1000000 },
        { 6, 2, { 500000, 50000 }, 3, 1000000 },
        { 4, 2, { 500000, 1000000 }, 1, 500000 },
        { 2.5, 1, { 500000 }, 1, 250000 },
        { 6, 1, { 1000000 }, 1, 750000 }, /* and there is room again */
    };
    AQ_CLEANUP(service_donep) struct service s = service(
        "{\"window\": 0, \"share\": {\"min\": 0.25, \"max\": 1, \"quantum\": 0.25},"
        "\"rules\": [{\"signal\": \"in_flight\", \"target\": 10, \"fill\": 1}]}",
        1, 8, 1);

    (void)state;
    s.sample.share_micro = 250000;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        s.sample.limits_micro = rows[i].limits;
        s.sample.limit_count = rows[i].count;
        assert_row(step(&s, 1, rows[i].value) == rows[i].replicas, "row %zu: %d replicas", i,
                   (int)s.wish.replicas);
        assert_row(s.wish.share_micro == rows[i].share_micro, "row %zu: share %d", i,
                   (int)s.wish.share_micro);
    }
}

/* ---- steps ---- */

#define STEPS                                                                                \
    "{\"rules\": [{\"signal\": \"metric\", \"source\": \"kernel\", \"name\": \"cuda_util\"," \
    "\"min_threshold\": 20, \"max_threshold\": 80, \"step\": 2, \"max_replicas\": 5,"        \
    "\"min_replicas\": 1}]}"

static void steps_follow_thresholds_and_rest(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(STEPS, 0, 10, 2);

    (void)state;
    s.sample.in_flight = 1;
    assert_int_equal(step(&s, 0, 80), 2);
    assert_int_equal(step(&s, 1, 81), 4);
    assert_non_null(strstr(s.wish.reason, "metric cuda_util is 81: step of +2"));
    for (int i = 0; i < 29; i++)
        assert_int_equal(step(&s, 10, 90), 4);
    assert_int_equal(step(&s, 10, 90), 5); /* 6, clamped */
    assert_int_equal(step(&s, 301, 90), 5);
    assert_int_equal(step(&s, 1, 10), 3); /* what changed nothing does not rest */
    assert_int_equal(step(&s, 301, 10), 1);
    assert_int_equal(step(&s, 301, 10), 1);
    assert_int_equal(step(&s, 1, NAN), 1);
}

static void a_step_never_goes_the_other_way(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(STEPS, 0, 10, 8);

    (void)state;
    s.sample.in_flight = 1;
    assert_int_equal(step(&s, 0, 99), 8); /* the rule goes to 5 only */
    assert_int_equal(step(&s, 1, 10), 5); /* 6, clamped */
}

static void the_first_rule_that_changes_something_wins(void **state)
{
    AQ_CLEANUP(service_donep) struct service s = service(
        "{\"rules\": ["
        "{\"signal\": \"use\", \"comparator\": \"GREATER_THAN\", \"threshold\": \"0.9\", \"step\": "
        "1, \"max_replicas\": 3, \"cooldown\": 10},"
        "{\"signal\": \"latency\", \"comparator\": \"greater_than_or_equal\", \"threshold\": 2, "
        "\"step\": 3, \"cooldown\": 10},"
        "{\"signal\": \"rate\", \"comparator\": \"less_than\", \"threshold\": 1, \"step\": -1, "
        "\"cooldown\": 10}]}",
        1, 10, 2);

    (void)state;
    s.sample.values[1] = 2;
    s.sample.values[2] = 0;
    assert_int_equal(step(&s, 0, 0.95), 3);
    assert_int_equal(s.wish.rule, 0);
    assert_int_equal(step(&s, 1, 0.95), 6);
    assert_int_equal(s.wish.rule, 1);
    assert_int_equal(step(&s, 1, 0.95), 5);
    assert_int_equal(s.wish.rule, 2);
    assert_int_equal(step(&s, 1, 0.95), 5); /* all rest */
}

/* ---- JSON ---- */

static void what_is_written_reads_back(void **state)
{
    static const char *const texts[] = {
        "{\"window\":120,\"idle\":0.5,\"share\":{\"min\":0.25,\"max\":1,\"quantum\":0.25},\"rules\":"
        "[{\"signal\":\"in_flight\",\"target\":8,\"fill\":0.95},{\"id\":\"x\",\"signal\":"
        "\"metric\",\"source\":\"kernel\",\"name\":\"m\",\"target\":4,\"fill\":1},{\"signal\":"
        "\"prometheus\",\"query\":\"sum(x)\",\"per\":\"service\",\"target\":1.5,\"fill\":1}]}",
        "{\"window\":300,\"idle\":600,\"rules\":[{\"signal\":\"use\",\"min_threshold\":1,"
        "\"max_threshold\":2,\"step\":3,\"cooldown\":10,\"min_replicas\":0,\"max_replicas\":4},{"
        "\"signal\":\"rate\",\"comparator\":\"less_than_or_equal\",\"threshold\":-1,\"step\":2,"
        "\"cooldown\":300},{\"signal\":\"latency\",\"comparator\":\"greater_than\",\"threshold\":1,"
        "\"step\":-2,\"cooldown\":0}]}",
        "{\"window\":300,\"idle\":600,\"rules\":[{\"signal\":\"metric\",\"source\":"
        "\"inference_framework\",\"name\":\"a:b\",\"path\":\"/stats?x=1\",\"port\":9000,"
        "\"target\":4,\"fill\":1}]}",
        "{\"window\":300,\"idle\":600,\"rules\":[]}",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct jsonw w = jsonw_make(&out);
        AQ_CLEANUP(service_donep) struct service s = service(texts[i], 0, 1, 1);

        autoscale_write(&s.scaling, &w);
        assert_string_equal(out.data, texts[i]);
    }
}

static void errors_name_the_member(void **state)
{
    static const struct {
        const char *text, *field, *expected;
    } rows[] = {
        { "{", "scaling", "is not valid JSON" },
        { "[]", "scaling", "scaling: expected an object" },
        { "{\"windw\": 1}", "scaling.windw", "did you mean 'window'?" },
        { "{\"window\": -1}", "scaling.window", "expected seconds from 0 to 86400" },
        { "{\"window\": \"soon\"}", "scaling.window", "got \"soon\"" },
        { "{\"idle\": []}", "scaling.idle", "expected seconds" },
        { "{\"rules\": 1}", "scaling.rules", "expected a list" },
        { "{\"rules\": [1]}", "scaling.rules[0]", "expected an object" },
        { "{\"rules\": [{}]}", "scaling.rules[0].signal", "expected in_flight, rate, latency" },
        { "{\"rules\": [{\"signal\": 3}]}", "scaling.rules[0].signal", "expected a text" },
        { "{\"rules\": [{\"signal\": \"cpu\"}]}", "scaling.rules[0].signal", "got 'cpu'" },
        { "{\"rules\": [{\"signal\": \"rate\"}]}", "scaling.rules[0].target", "is missing" },
        { "{\"rules\": [{\"signal\": \"rate\", \"target\": 0}]}", "scaling.rules[0].target",
          "expected a number from 1e-06" },
        { "{\"rules\": [{\"signal\": \"rate\", \"target\": \"x\"}]}", "scaling.rules[0].target",
          "got \"x\"" },
        { "{\"rules\": [{\"signal\": \"use\", \"target\": 1.5}]}", "scaling.rules[0].target",
          "expected a part of the GPU share from 0 to 1, got 1.5" },
        { "{\"rules\": [{\"signal\": \"rate\", \"target\": 1, \"fill\": 1.5}]}",
          "scaling.rules[0].fill", "expected a number from 0.01 to 1" },
        { "{\"rules\": [{\"signal\": \"metric\", \"target\": 1}]}", "scaling.rules[0].name",
          "is missing; give the metric's name" },
        { "{\"rules\": [{\"signal\": \"rate\", \"name\": \"a\", \"target\": 1}]}",
          "scaling.rules[0].name", "is only for the signal 'metric'" },
        { "{\"rules\": [{\"signal\": \"rate\", \"source\": \"kernel\", \"target\": 1}]}",
          "scaling.rules[0].source", "is only for" },
        { "{\"rules\": [{\"signal\": \"metric\", \"source\": \"x\", \"target\": 1}]}",
          "scaling.rules[0].source", "expected kernel or inference_framework, got \"x\"" },
        { "{\"rules\": [{\"signal\": \"metric\", \"name\": \"a\", \"path\": \"x\", \"target\": 1}]}",
          "scaling.rules[0].path", "begin with '/'" },
        { "{\"rules\": [{\"signal\": \"metric\", \"name\": \"a\", \"path\": \"/\\r\\n\", \"target\": "
          "1}]}",
          "scaling.rules[0].path", "%XX" },
        { "{\"rules\": [{\"signal\": \"metric\", \"name\": \"a\", \"port\": 0, \"target\": 1}]}",
          "scaling.rules[0].port", "from 1 to 65535" },
        { "{\"rules\": [{\"signal\": \"use\", \"port\": 1, \"target\": 1}]}",
          "scaling.rules[0].port", "is only for metrics of the source 'inference_framework'" },
        { "{\"rules\": [{\"signal\": \"prometheus\", \"target\": 1}]}", "scaling.rules[0].query",
          "is missing; give a query" },
        { "{\"rules\": [{\"signal\": \"rate\", \"query\": \"x\", \"target\": 1}]}",
          "scaling.rules[0].query", "is only for" },
        { "{\"rules\": [{\"signal\": \"rate\", \"per\": \"replica\", \"target\": 1}]}",
          "scaling.rules[0].per", "is only for the signal 'prometheus'" },
        { "{\"rules\": [{\"signal\": \"rate\", \"threshold\": 1}]}", "scaling.rules[0].comparator",
          "is missing beside" },
        { "{\"rules\": [{\"signal\": \"rate\", \"comparator\": \"eq\", \"threshold\": 1}]}",
          "scaling.rules[0].comparator", "expected less_than, less_than_or_equal" },
        { "{\"rules\": [{\"signal\": \"rate\", \"comparator\": \"less_than\"}]}",
          "scaling.rules[0].threshold", "is missing beside" },
        { "{\"rules\": [{\"signal\": \"rate\", \"comparator\": \"less_than\", \"threshold\": 1}]}",
          "scaling.rules[0].step", "is missing or 0" },
        { "{\"rules\": [{\"signal\": \"rate\", \"max_threshold\": 1, \"step\": -1}]}",
          "scaling.rules[0].step", "expected an integer from 1 to 256, got -1" },
        { "{\"rules\": [{\"signal\": \"rate\", \"max_threshold\": 1, \"min_threshold\": 2}]}",
          "scaling.rules[0].min_threshold", "2 is above the max_threshold of 1" },
        { "{\"rules\": [{\"signal\": \"rate\", \"max_threshold\": 1, \"comparator\": "
          "\"less_than\"}]}",
          "scaling.rules[0].max_threshold", "unknown member" },
        { "{\"rules\": [{\"signal\": \"rate\", \"max_threshold\": 1, \"target\": 2}]}",
          "scaling.rules[0].target", "unknown member" },
        { "{\"rules\": [{\"signal\": \"rate\", \"max_threshold\": 1, \"cooldown\": 1e9}]}",
          "scaling.rules[0].cooldown", "expected seconds" },
        { "{\"rules\": [{\"signal\": \"rate\", \"max_threshold\": 1, \"max_replicas\": 257}]}",
          "scaling.rules[0].max_replicas", "got 257" },
        { "{\"rules\": [{\"signal\": \"rate\", \"max_threshold\": 1, \"max_replicas\": 1, "
          "\"min_replicas\": 2}]}",
          "scaling.rules[0].min_replicas", "2 is more than the max_replicas of 1" },
        { "{\"rules\": [{\"signal\": \"rate\", \"target\": 1}, {\"signal\": \"rate\", "
          "\"max_threshold\": 1}]}",
          "scaling.rules[1]", "rules with targets or with steps, not both" },
        { "{\"share\": 1}", "scaling.share", "expected an object" },
        { "{\"share\": {\"max\": 1}}", "scaling.share.min", "is missing" },
        { "{\"share\": {\"min\": 1}}", "scaling.share.max", "is missing" },
        { "{\"share\": {\"min\": 2, \"max\": 1}}", "scaling.share.min", "more than the max of 1" },
        { "{\"share\": {\"min\": 1, \"max\": 1, \"quantum\": 0}}", "scaling.share.quantum",
          "expected a number" },
        { "{\"share\": {\"min\": 1, \"max\": 1}, \"rules\": [{\"signal\": \"rate\", "
          "\"max_threshold\": 1}]}",
          "scaling.share", "needs rules with targets" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct autoscale ignored;
        struct aq_error err = { 0 };

        if (autoscale_parse(rows[i].text, strlen(rows[i].text), &arena, &ignored, &err) != -EINVAL)
            fail_msg("accepted: %s", rows[i].text);
        assert_string_equal(err.field, rows[i].field);
        if (!strstr(err.text, rows[i].expected))
            fail_msg("expected '%s' in: %s", rows[i].expected, err.text);
    }
}

static void rules_have_limits(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct autoscale ignored;
    struct aq_error err = { 0 };

    (void)state;
    strbuf_adds(&text, "{\"rules\":[");
    for (int i = 0; i <= AUTOSCALE_RULES_MAX; i++)
        strbuf_addf(&text, "%s{\"signal\":\"rate\",\"target\":1}", i ? "," : "");
    strbuf_adds(&text, "]}");
    assert_int_equal(autoscale_parse(text.data, text.len, &arena, &ignored, &err), -EINVAL);
    assert_non_null(strstr(err.text, "scaling.rules: expected at most 16 rules, got 17"));
    for (int i = 0; i <= AUTOSCALE_BYTES_MAX; i++)
        strbuf_addc(&text, ' ');
    assert_int_equal(autoscale_parse(text.data, text.len, &arena, &ignored, &err), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_at_once_and_fewer_after_the_window),
        cmocka_unit_test(replicas_that_start_do_not_make_it_want_more),
        cmocka_unit_test(values_that_are_missing_change_nothing),
        cmocka_unit_test(one_missing_value_prevents_fewer_but_not_more),
        cmocka_unit_test(clocks_may_jump),
        cmocka_unit_test(a_first_sample_lowers_nothing),
        cmocka_unit_test(an_idle_service_has_no_replica_until_a_request_comes),
        cmocka_unit_test(loading_is_not_idle),
        cmocka_unit_test(rules_of_means_wake_by_a_request_too),
        cmocka_unit_test(without_rules_only_zero_is_decided),
        cmocka_unit_test(shares_grow_before_replicas_and_shrink_after_them),
        cmocka_unit_test(means_are_of_the_present_share),
        cmocka_unit_test(replicas_come_where_shares_cannot_grow),
        cmocka_unit_test(steps_follow_thresholds_and_rest),
        cmocka_unit_test(a_step_never_goes_the_other_way),
        cmocka_unit_test(the_first_rule_that_changes_something_wins),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(errors_name_the_member),
        cmocka_unit_test(rules_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
