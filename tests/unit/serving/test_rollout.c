/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "base/clock.h"
#include "serving/rollout.h"

/* A service whose replicas do at once what is decided, but for what a test holds back. */
struct service {
    struct rollout rollout;
    struct rollout_state state;
    struct rollout_sample sample;
    struct rollout_actions actions;
};

static struct service service(const char *json, int64_t goal)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct service s = { .state = { 0 } };
    struct aq_error err = { 0 };
    int r = rollout_parse(json, strlen(json), &arena, &s.rollout, &s.state, &err);

    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    s.sample.now_usec = 1000 * USEC_PER_SEC;
    s.state = rollout_begin(1, 2, s.sample.now_usec);
    s.sample.goal = goal;
    s.sample.old = (struct rollout_side){ .live = goal, .ready = goal };
    return s;
}

static void decide(struct service *s)
{
    rollout_decide(&s->rollout, &s->state, &s->sample, &s->actions);
    if (s->actions.event == ROLLOUT_ABORTS) { /* sides are those of the state */
        struct rollout_side side = s->sample.old;

        s->sample.old = s->sample.new;
        s->sample.new = side;
    }
}

/* Old replicas drain, and new ones begin, until nothing is decided but waiting for new ones. */
static void settle(struct service *s)
{
    for (int i = 0; i < 50; i++) {
        int64_t old = s->sample.old.live, new = s->sample.new.live;

        decide(s);
        s->sample.old.live = AQ_MIN(s->sample.old.live, s->actions.old_wanted);
        s->sample.old.ready = AQ_MIN(s->sample.old.ready, s->sample.old.live);
        s->sample.new.live = s->actions.new_wanted;
        s->sample.new.ready = AQ_MIN(s->sample.new.ready, s->sample.new.live);
        if (s->sample.old.live == old && s->sample.new.live == new)
            return;
        assert_true(s->sample.new.live <= s->sample.goal);
    }
    fail_msg("it does not settle");
}

/* The numbers of old and new replicas, each time that they have changed and all new ones are ready:
 * "4,0 4,2 2,4 0,4".
 */
static void assert_trace(const char *json, int64_t goal, const char *expected)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf trace = STRBUF_INIT;
    struct service s = service(json, goal);
    int64_t old = -1, new = -1;

    for (int i = 0; i < 50; i++) {
        if (s.sample.old.live != old || s.sample.new.live != new)
            strbuf_addf(&trace, "%s%d,%d", i ? " " : "", (int)s.sample.old.live,
                        (int)s.sample.new.live);
        old = s.sample.old.live;
        new = s.sample.new.live;
        settle(&s);
        s.sample.new.ready = s.sample.new.live;
    }
    assert_string_equal(trace.data, expected);
    assert_int_equal(s.state.phase, ROLLOUT_DONE);
}

static void rolling_replaces_within_surge_and_unavailable(void **state)
{
    (void)state;
    assert_trace("{\"max_surge\": 2}", 4, "4,0 4,2 2,4 0,4");
    assert_trace("{\"max_surge\": \"50%\"}", 4, "4,0 4,2 2,4 0,4");
    assert_trace("{\"max_surge\": 1, \"max_unavailable\": 1}", 3, "3,0 2,2 0,3");
    assert_trace("{}", 2, "2,0 2,1 1,2 0,2");
    assert_trace("{}", 1, "1,0 1,1 0,1");
    assert_trace("{\"max_surge\": 0, \"max_unavailable\": 1}", 2, "2,0 1,1 0,2");
    assert_trace("{\"max_surge\": 0, \"max_unavailable\": \"10%\"}", 2, "2,0 1,1 0,2");
    assert_trace("{\"max_surge\": \"100%\"}", 3, "3,0 3,3 0,3");
    assert_trace("{}", 0, "0,0");
}

static void replicas_that_drain_count_as_surge(void **state)
{
    struct service s = service("{}", 2);

    (void)state;
    s.sample.new = (struct rollout_side){ .live = 1, .ready = 1 };
    s.state.target = 1;
    decide(&s);
    assert_int_equal(s.actions.old_wanted, 1);
    assert_int_equal(s.actions.new_wanted, 1);
    s.sample.old = (struct rollout_side){ .live = 2, .draining = 1, .ready = 1 };
    decide(&s);
    assert_int_equal(s.actions.old_wanted, 1);
    assert_int_equal(s.actions.new_wanted, 1); /* 2 old ones still hold their resources */
    s.sample.old = (struct rollout_side){ .live = 1, .ready = 1 };
    decide(&s);
    assert_int_equal(s.actions.new_wanted, 2);
}

static void old_replicas_are_not_replaced(void **state)
{
    struct service s = service("{}", 4);

    (void)state;
    s.sample.old.live = s.sample.old.ready = 2; /* two have died */
    decide(&s);
    assert_int_equal(s.actions.old_wanted, 2);
    assert_int_equal(s.actions.new_wanted, 3);
}

static void the_goal_may_change_meanwhile(void **state)
{
    struct service s = service("{\"max_surge\": 2}", 4);

    (void)state;
    settle(&s);
    s.sample.goal = 2;
    settle(&s);
    assert_int_equal(s.actions.old_wanted, 2);
    assert_int_equal(s.actions.new_wanted, 2);
    s.sample.new.ready = 2;
    settle(&s);
    assert_int_equal(s.state.phase, ROLLOUT_DONE);
    decide(&s);
    assert_int_equal(s.actions.new_wanted, 2);
    assert_int_equal(s.actions.old_wanted, 0);
    assert_int_equal(s.actions.event, ROLLOUT_NOTHING);
}

/* ---- blue-green ---- */

static void a_second_group_waits_to_be_promoted(void **state)
{
    struct service s = service("{\"strategy\": \"blue-green\", \"keep\": 60}", 3);

    (void)state;
    settle(&s);
    assert_int_equal(s.sample.new.live, 3);
    assert_int_equal(s.sample.old.live, 3);
    assert_int_equal(s.actions.old_ratio_ppm, ROLLOUT_FULL_PPM);
    assert_int_equal(s.actions.new_ratio_ppm, 0);
    s.sample.promote = true; /* not all are ready yet */
    settle(&s);
    assert_int_equal(s.actions.new_ratio_ppm, 0);
    s.sample.promote = false;
    s.sample.new.ready = 3;
    decide(&s);
    assert_int_equal(s.actions.event, ROLLOUT_IS_READY);
    assert_int_equal(s.state.phase, ROLLOUT_READY);
    settle(&s);
    assert_int_equal(s.sample.old.live, 3);
    s.sample.promote = true;
    decide(&s);
    assert_int_equal(s.actions.event, ROLLOUT_PROMOTED);
    assert_int_equal(s.actions.old_ratio_ppm, 0);
    assert_int_equal(s.actions.new_ratio_ppm, ROLLOUT_FULL_PPM);
    assert_int_equal(s.actions.old_wanted, 3); /* kept, to go back at once */
    s.sample.now_usec += 60 * USEC_PER_SEC;
    settle(&s);
    assert_int_equal(s.state.phase, ROLLOUT_DONE);
}

static void a_second_group_is_promoted_after_a_delay(void **state)
{
    struct service s = service(
        "{\"strategy\": \"blue-green\", \"auto_promote\": true, \"promote_delay\": 30}", 1);

    (void)state;
    settle(&s);
    s.sample.new.ready = 1;
    settle(&s);
    assert_int_equal(s.state.phase, ROLLOUT_READY);
    s.sample.now_usec -= 500 * USEC_PER_SEC; /* the clock was set */
    settle(&s);
    assert_int_equal(s.state.phase, ROLLOUT_READY);
    s.sample.now_usec += 530 * USEC_PER_SEC;
    settle(&s);
    assert_int_equal(s.state.phase, ROLLOUT_DONE);
}

/* The group that answers stays whole: replicas that have died are there again, and more if wanted. */
static void the_old_group_is_kept_until_the_switch(void **state)
{
    struct service s = service("{\"strategy\": \"blue-green\", \"keep\": 60}", 3);

    (void)state;
    settle(&s);
    s.sample.new.ready = 3;
    decide(&s);
    s.sample.old.live = s.sample.old.ready = 2;
    decide(&s);
    assert_int_equal(s.actions.old_wanted, 3);
    s.sample.goal = 4;
    decide(&s);
    assert_int_equal(s.actions.old_wanted, 4);
    assert_int_equal(s.actions.new_wanted, 4);
    s.sample.promote = true;
    decide(&s);
    assert_int_equal(s.actions.event, ROLLOUT_NOTHING); /* the second group is not ready again */
    s.sample.new.live = s.sample.new.ready = 4;
    decide(&s);
    assert_int_equal(s.actions.event, ROLLOUT_PROMOTED);
    assert_int_equal(s.actions.old_wanted, 2); /* not needed any longer, so not replaced */
    assert_int_equal(s.actions.wake_usec, s.sample.now_usec + 60 * USEC_PER_SEC);
    s.state.from = 0; /* revision is not known: nothing to make them of */
    s.state.is_promoted = false;
    s.state.phase = ROLLOUT_READY;
    s.sample.promote = false;
    decide(&s);
    assert_int_equal(s.actions.old_wanted, 2);
}

/* ---- canary ---- */

static void a_canary_grows_in_steps(void **state)
{
    struct service s = service(
        "{\"strategy\": \"canary\", \"steps\": [10, 50], \"step_interval\": 60}", 4);

    (void)state;
    settle(&s);
    assert_int_equal(s.sample.new.live, 1);
    assert_int_equal(s.sample.old.live, 4);
    s.sample.new.ready = 1;
    settle(&s);
    /* One new and four old ones: 10 % to one, 22.5 % to each other. */
    assert_int_equal(s.actions.new_ratio_ppm, 444444);
    assert_int_equal(s.actions.old_ratio_ppm, ROLLOUT_FULL_PPM);
    assert_int_equal(s.state.step, 0);
    s.sample.now_usec += 60 * USEC_PER_SEC;
    decide(&s);
    assert_int_equal(s.actions.event, ROLLOUT_STEPPED);
    assert_string_equal(s.state.reason, "new replicas get 50 % of requests");
    settle(&s);
    s.sample.new.ready = s.sample.new.live;
    settle(&s);
    assert_int_equal(s.sample.new.live, 2);
    s.sample.new.ready = 2;
    settle(&s);
    assert_int_equal(s.sample.old.live, 2);
    assert_int_equal(s.actions.new_ratio_ppm, s.actions.old_ratio_ppm);
    s.sample.now_usec += 60 * USEC_PER_SEC;
    for (int i = 0; i < 9; i++) {
        settle(&s);
        s.sample.new.ready = s.sample.new.live;
    }
    assert_int_equal(s.state.phase, ROLLOUT_DONE);
}

/* People need not wait for the time of a step, but for its replicas. */
static void a_canary_is_promoted_to_its_next_step(void **state)
{
    struct service s = service(
        "{\"strategy\": \"canary\", \"steps\": [25, 50], \"step_interval\": 600}", 4);

    (void)state;
    settle(&s);
    s.sample.promote = true;
    decide(&s);
    assert_int_equal(s.actions.event, ROLLOUT_NOTHING);
    s.sample.new.ready = 1;
    decide(&s);
    assert_int_equal(s.actions.event, ROLLOUT_STEPPED);
    assert_int_equal(s.state.step, 1);
    s.sample.promote = false;
    s.sample.old.live = s.sample.old.ready = 1; /* two have died: half of four are to stay */
    decide(&s);
    assert_int_equal(s.actions.old_wanted, 2);
}

static void a_canary_of_one_replica_keeps_the_old_one(void **state)
{
    struct service s = service(
        "{\"strategy\": \"canary\", \"max_surge\": 0, \"max_unavailable\": 1,"
        "\"step_weight\": 50, \"step_interval\": 10}",
        1);

    (void)state;
    settle(&s);
    s.sample.new.ready = 1;
    settle(&s);
    assert_int_equal(s.sample.old.live, 1);
    assert_int_equal(s.sample.new.live, 1);
    assert_int_equal(s.actions.new_ratio_ppm, s.actions.old_ratio_ppm);
    s.sample.now_usec += 10 * USEC_PER_SEC;
    settle(&s);
    settle(&s);
    assert_int_equal(s.state.phase, ROLLOUT_DONE);
}

/* ---- aborting ---- */

#define ABORTS "\"abort\": {\"error_ratio\": 0.05, \"latency_ratio\": 2, \"stalled\": 600}"

static void reasons_to_abort(void **state)
{
    static const struct {
        struct rollout_side old, new;
        int64_t sec;
        bool by_hand;
        const char *expected; /* NULL = goes on */
    } rows[] = {
        { { 0 }, { .failures = 2 }, 0, false, NULL },
        { { 0 }, { .failures = 3 }, 0, false, "3 replicas of revision 2 failed" },
        { { 0 }, { .requests = 19, .errors = 19 }, 0, false, NULL },
        { { 0 }, { .requests = 20, .errors = 1 }, 0, false, NULL },
        { { 0 },
          { .requests = 20, .errors = 2 },
          0,
          false,
          "10.0 % of requests to revision 2 failed, 0.0 % to revision 1" },
        { { .requests = 10, .errors = 1 }, { .requests = 20, .errors = 2 }, 0, false, NULL },
        { { .requests = 20, .latency_sec = 1 },
          { .requests = 20, .latency_sec = 2 },
          0,
          false,
          NULL },
        { { .requests = 20, .latency_sec = 1 },
          { .requests = 20, .latency_sec = 2.5 },
          0,
          false,
          "revision 2 answers in 2.5 s, revision 1 in 1 s" },
        { { .requests = 19, .latency_sec = 1 },
          { .requests = 20, .latency_sec = 9 },
          0,
          false,
          NULL },
        { { 0 }, { 0 }, 599, false, NULL },
        { { 0 }, { 0 }, 600, false, "no progress for 600 s" },
        { { 0 }, { 0 }, 0, true, "aborted by request" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct service s = service("{" ABORTS "}", 2);

        settle(&s);
        s.sample.old.requests = rows[i].old.requests;
        s.sample.old.errors = rows[i].old.errors;
        s.sample.old.latency_sec = rows[i].old.latency_sec;
        s.sample.new.failures = rows[i].new.failures;
        s.sample.new.requests = rows[i].new.requests;
        s.sample.new.errors = rows[i].new.errors;
        s.sample.new.latency_sec = rows[i].new.latency_sec;
        s.sample.abort = rows[i].by_hand;
        s.sample.now_usec += rows[i].sec * USEC_PER_SEC;
        decide(&s);
        if ((s.actions.event == ROLLOUT_ABORTS) != (rows[i].expected != NULL))
            fail_msg("row %zu: %s", i, s.state.reason);
        if (rows[i].expected)
            assert_string_equal(s.state.reason, rows[i].expected);
    }
}

/* The time without progress counts only while new replicas do not become ready. */
static void time_that_others_take_is_no_reason_to_abort(void **state)
{
    static const char *const texts[] = {
        "{" ABORTS "}",
        "{\"strategy\": \"blue-green\", " ABORTS "}",
        "{\"strategy\": \"canary\", \"step_interval\": 90000, " ABORTS "}",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        struct service s = service(texts[i], 2);

        settle(&s);
        assert_int_equal(s.actions.wake_usec, s.sample.now_usec + 600 * USEC_PER_SEC);
        s.sample.new.ready = s.sample.new.live;
        decide(&s);
        s.sample.old.draining = 1;
        s.sample.now_usec += 3600 * USEC_PER_SEC;
        decide(&s);
        if (s.actions.event == ROLLOUT_ABORTS)
            fail_msg("row %zu: %s", i, s.state.reason);
    }
}

static void an_aborted_rollout_goes_back(void **state)
{
    struct service s = service("{\"max_surge\": 1}", 3);

    (void)state;
    settle(&s);
    s.sample.new.ready = 1;
    settle(&s); /* 2 old, 2 new of which 1 is ready */
    assert_int_equal(s.sample.old.live, 2);
    assert_int_equal(s.sample.new.live, 2);
    s.sample.abort = true;
    decide(&s);
    assert_int_equal(s.actions.event, ROLLOUT_ABORTS);
    assert_int_equal(s.state.from, 2);
    assert_int_equal(s.state.to, 1);
    s.sample.old.failures = 9; /* of the revision that is given up */
    for (int i = 0; i < 9 && rollout_is_under_way(&s.state); i++) {
        settle(&s);
        s.sample.new.ready = s.sample.new.live;
    }
    assert_int_equal(s.state.phase, ROLLOUT_ABORTED);
    assert_int_equal(s.sample.new.live, 3);
    assert_int_equal(s.sample.old.live, 0);
    assert_string_equal(s.state.reason, "aborted by request");
}

static void a_first_rollout_is_not_aborted(void **state)
{
    struct service s = service("{}", 1);

    (void)state;
    s.state = rollout_begin(0, 1, s.sample.now_usec);
    s.sample.old = (struct rollout_side){ 0 };
    s.sample.new.failures = 100;
    decide(&s);
    assert_int_equal(s.actions.event, ROLLOUT_NOTHING);
    assert_int_equal(s.actions.new_wanted, 1);
}

/* ---- no room ---- */

static void a_rollout_without_room_waits_replaces_or_shares(void **state)
{
    struct service s = service("{}", 1);

    (void)state;
    settle(&s);
    s.sample.new.unplaced = 1;
    settle(&s);
    assert_int_equal(s.sample.old.live, 1);
    assert_int_equal(s.actions.shared, 0);

    s = service("{\"when_full\": \"replace\"}", 1);
    settle(&s);
    assert_int_equal(s.sample.old.live, 1);
    s.sample.new.unplaced = 1;
    settle(&s);
    assert_int_equal(s.sample.old.live, 0);
    assert_int_equal(s.sample.new.live, 1);

    s = service("{\"when_full\": \"share\"}", 1);
    settle(&s);
    assert_int_equal(s.actions.shared, 0);
    s.sample.new.unplaced = 1;
    settle(&s);
    assert_int_equal(s.actions.shared, 1);
    assert_int_equal(s.sample.old.live, 1);
    s.sample.new.unplaced = 0;
    s.sample.new.live = 0; /* the one that waits for a whole share ends first */
    decide(&s);
    assert_int_equal(s.actions.shared, 1);
    assert_int_equal(s.actions.new_wanted, 1);
    s.sample.new.live = 1; /* it has the other half now */
    settle(&s);
    assert_int_equal(s.actions.shared, 1);
    s.sample.new.ready = 1;
    settle(&s);
    assert_int_equal(s.sample.old.live, 0);
    assert_int_equal(s.actions.shared, 0);
    assert_int_equal(s.state.phase, ROLLOUT_DONE);
}

/* The half that is free is for the partner of the replica that left it, not for a third one. */
static void pairs_come_one_after_the_other(void **state)
{
    struct service s = service("{\"when_full\": \"share\", \"max_surge\": 2}", 3);

    (void)state;
    settle(&s);
    assert_int_equal(s.actions.new_wanted, 2);
    s.sample.new.unplaced = 2;
    decide(&s);
    assert_int_equal(s.actions.shared, 1);
    assert_int_equal(s.actions.new_wanted, 1); /* the other one ends, which has no place anyway */
    assert_int_equal(s.actions.old_wanted, 3);
    s.sample.new = (struct rollout_side){ .live = 1, .ready = 1 };
    decide(&s);
    assert_int_equal(s.actions.old_wanted, 2);
    s.sample.old.live = s.sample.old.ready = 2;
    decide(&s);
    assert_int_equal(s.actions.shared, 0); /* the first pair is over: its new replica grows */
    s.sample.new = (struct rollout_side){ .live = 3, .ready = 1, .unplaced = 2 };
    decide(&s);
    assert_int_equal(s.actions.shared, 1);
    assert_int_equal(s.actions.new_wanted, 2);

    s = service("{\"when_full\": \"share\", \"strategy\": \"blue-green\"}", 3);
    settle(&s);
    s.sample.new.unplaced = 3;
    decide(&s);
    assert_int_equal(s.actions.shared, 3); /* a group */
    assert_int_equal(s.actions.new_wanted, 3);
}

static void strategies_that_need_room_go_on_as_rolling(void **state)
{
    static const char *const texts[] = {
        "{\"strategy\": \"blue-green\", \"when_full\": \"replace\"}",
        "{\"strategy\": \"canary\", \"when_full\": \"replace\", \"step_interval\": 1000000}",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        struct service s = service(texts[i], 1);

        settle(&s);
        s.sample.new.unplaced = s.sample.new.live;
        settle(&s);
        assert_int_equal(s.sample.old.live, 0);
        s.sample.new.unplaced = 0;
        s.sample.new.ready = 1;
        settle(&s);
        assert_int_equal(s.state.phase, ROLLOUT_DONE);
        assert_int_equal(s.actions.new_ratio_ppm, ROLLOUT_FULL_PPM);
    }
}

/* ---- JSON ---- */

static void what_is_written_reads_back(void **state)
{
    static const char *const texts[] = {
        "{\"strategy\":\"rolling\",\"max_surge\":\"50%\",\"max_unavailable\":1,\"when_full\":"
        "\"share\",\"abort\":{\"failures\":0,\"error_ratio\":0.05,\"latency_ratio\":2,\"requests\":"
        "5,\"stalled\":600},\"state\":{\"phase\":\"running\",\"from\":3,\"to\":4,\"target\":2,"
        "\"step\":0,\"since\":0,\"progress\":1700000000000000,\"ready\":1,\"live\":2,\"shared\":1,"
        "\"failures\":2,\"failures_before\":7,"
        "\"promoted\":false,\"rolling\":true,\"reason\":\"x\"}}",
        "{\"strategy\":\"blue-green\",\"auto_promote\":true,\"promote_delay\":1.5,\"keep\":60,"
        "\"when_full\":\"wait\",\"abort\":{\"failures\":3,\"error_ratio\":0,\"latency_ratio\":0,"
        "\"requests\":20,\"stalled\":0},\"state\":{\"phase\":\"none\",\"from\":0,\"to\":0,"
        "\"target\":0,\"step\":0,\"since\":0,\"progress\":0,\"ready\":0,\"live\":0,\"shared\":0,"
        "\"failures\":0,\"failures_before\":0,"
        "\"promoted\":false,\"rolling\":false}}",
        "{\"strategy\":\"canary\",\"max_surge\":1,\"max_unavailable\":0,\"steps\":[5,99],"
        "\"step_interval\":300,\"when_full\":\"replace\",\"abort\":{\"failures\":3,\"error_ratio\":"
        "0,\"latency_ratio\":0,\"requests\":20,\"stalled\":0},\"state\":{\"phase\":\"aborted\","
        "\"from\":4,\"to\":3,\"target\":0,\"step\":2,\"since\":1,\"progress\":0,\"ready\":0,"
        "\"live\":0,\"shared\":0,\"failures\":0,\"failures_before\":0,\"promoted\":true,"
        "\"rolling\":false}}",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct jsonw w = jsonw_make(&out);
        struct rollout rollout;
        struct rollout_state s;
        struct aq_error err = { 0 };

        assert_int_equal(rollout_parse(texts[i], strlen(texts[i]), &arena, &rollout, &s, &err), 0);
        rollout_write(&rollout, &s, &w);
        assert_string_equal(out.data, texts[i]);
    }
}

static void steps_are_of_equal_weight_unless_they_are_listed(void **state)
{
    struct service s = service("{\"strategy\": \"canary\"}", 1);

    (void)state;
    assert_int_equal(s.rollout.step_count, 4);
    assert_int_equal(s.rollout.steps[3], 80);
    s = service("{\"strategy\": \"canary\", \"step_weight\": 5}", 1);
    assert_int_equal(s.rollout.step_count, 19);
    s = service("{\"strategy\": \"CANARY\", \"step_weight\": 100}", 1);
    assert_int_equal(s.rollout.step_count, 0);
}

static void errors_name_the_member(void **state)
{
    static const struct {
        const char *text, *field, *expected;
    } rows[] = {
        { "x", "rollout", "is not valid JSON" },
        { "[1]", "rollout", "expected an object" },
        { "{\"strategie\": 1}", "rollout.strategie", "did you mean 'strategy'?" },
        { "{\"strategy\": \"recreate\"}", "rollout.strategy",
          "expected rolling, blue-green or canary, got \"recreate\"" },
        { "{\"when_full\": \"evict\"}", "rollout.when_full", "expected wait, replace or share" },
        { "{\"max_surge\": -1}", "rollout.max_surge", "expected an integer from 0 to 256, got -1" },
        { "{\"max_surge\": \"50\"}", "rollout.max_surge", "a percentage such as \"25%\"" },
        { "{\"max_unavailable\": \"101%\"}", "rollout.max_unavailable", "got '101%'" },
        { "{\"max_surge\": 0}", "rollout.max_surge", "must not both be 0" },
        { "{\"steps\": [5]}", "rollout.steps", "is only for the strategy 'canary'" },
        { "{\"keep\": 5}", "rollout.keep", "is only for the strategy 'blue-green'" },
        { "{\"strategy\": \"blue-green\", \"max_surge\": 2}", "rollout.max_surge",
          "is not for the strategy 'blue-green'" },
        { "{\"strategy\": \"canary\", \"steps\": 5}", "rollout.steps", "expected a list" },
        { "{\"strategy\": \"canary\", \"steps\": [5, 5]}", "rollout.steps[1]",
          "expected percentages that grow, an integer from 6 to 99 here, got 5" },
        { "{\"strategy\": \"canary\", \"steps\": [\"x\"]}", "rollout.steps[0]", "got \"x\"" },
        { "{\"strategy\": \"canary\", \"steps\": [1], \"step_weight\": 5}", "rollout.step_weight",
          "beside 'steps'" },
        { "{\"strategy\": \"canary\", \"step_weight\": 4}", "rollout.step_weight",
          "expected an integer from 5" },
        { "{\"strategy\": \"canary\", \"step_interval\": \"x\"}", "rollout.step_interval",
          "expected seconds" },
        { "{\"strategy\": \"blue-green\", \"auto_promote\": 1}", "rollout.auto_promote",
          "expected true or false" },
        { "{\"abort\": 1}", "rollout.abort", "expected an object" },
        { "{\"abort\": {\"fail\": 1}}", "rollout.abort.fail", "unknown member" },
        { "{\"abort\": {\"error_ratio\": 2}}", "rollout.abort.error_ratio",
          "expected a number from 0 to 1" },
        { "{\"abort\": {\"latency_ratio\": 0.5}}", "rollout.abort.latency_ratio",
          "expected 0 or a factor from 1 to 1000, such as 2, got 0.5" },
        { "{\"abort\": {\"requests\": 0}}", "rollout.abort.requests",
          "expected an integer from 1" },
        { "{\"state\": []}", "rollout.state", "expected an object" },
        { "{\"state\": {\"phase\": \"x\"}}", "rollout.state.phase", "expected none, running" },
        { "{\"state\": {\"step\": 21}}", "rollout.state.step", "expected an integer from 0 to 20" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct rollout rollout;
        struct rollout_state s;
        struct aq_error err = { 0 };

        if (rollout_parse(rows[i].text, strlen(rows[i].text), &arena, &rollout, &s, &err)
            != -EINVAL)
            fail_msg("accepted: %s", rows[i].text);
        assert_string_equal(err.field, rows[i].field);
        if (!strstr(err.text, rows[i].expected))
            fail_msg("expected '%s' in: %s", rows[i].expected, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rolling_replaces_within_surge_and_unavailable),
        cmocka_unit_test(replicas_that_drain_count_as_surge),
        cmocka_unit_test(old_replicas_are_not_replaced),
        cmocka_unit_test(the_goal_may_change_meanwhile),
        cmocka_unit_test(a_second_group_waits_to_be_promoted),
        cmocka_unit_test(a_second_group_is_promoted_after_a_delay),
        cmocka_unit_test(the_old_group_is_kept_until_the_switch),
        cmocka_unit_test(a_canary_grows_in_steps),
        cmocka_unit_test(a_canary_is_promoted_to_its_next_step),
        cmocka_unit_test(a_canary_of_one_replica_keeps_the_old_one),
        cmocka_unit_test(reasons_to_abort),
        cmocka_unit_test(time_that_others_take_is_no_reason_to_abort),
        cmocka_unit_test(an_aborted_rollout_goes_back),
        cmocka_unit_test(a_first_rollout_is_not_aborted),
        cmocka_unit_test(a_rollout_without_room_waits_replaces_or_shares),
        cmocka_unit_test(pairs_come_one_after_the_other),
        cmocka_unit_test(strategies_that_need_room_go_on_as_rolling),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(steps_are_of_equal_weight_unless_they_are_listed),
        cmocka_unit_test(errors_name_the_member),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
