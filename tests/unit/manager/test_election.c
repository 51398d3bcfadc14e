/* SPDX-License-Identifier: Apache-2.0 */
/* When a standby may take the lead. */
#include "testing.h"

#include <errno.h>

#include "manager/election.h"

#define MSEC USEC_PER_MSEC

static struct leader_claim self;
static struct election standby;
static struct leader_view view;
static int64_t now;

static int set_up(void **state)
{
    (void)state;
    self = (struct leader_claim){ .name = "b", .incarnation = "i-b" };
    standby = (struct election){ .self = &self };
    view = (struct leader_view){ .epoch = 3,
                                 .beat = 100,
                                 .is_held = true,
                                 .has_sessions = true,
                                 .holder = { .name = "a", .incarnation = "i-a" } };
    now = 77 * USEC_PER_SEC;
    return 0;
}

/* For 'msec', each 200 ms, as the watch does; true if the lead may be taken at some time. */
static bool look_for(int64_t msec)
{
    for (int64_t end = now + msec * MSEC; now < end; now += 200 * MSEC)
        if (election_see(&standby, &view, false, now))
            return true;
    return false;
}

static void test_a_leader_that_beats_is_left_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        view.beat++;
        assert_false(look_for(4800));
    }
}

static void test_a_silent_leader_loses_after_five_seconds(void **state)
{
    (void)state;
    assert_false(look_for(5000));
    assert_true(election_see(&standby, &view, false, now));
}

static void test_a_beat_of_the_last_moment_counts(void **state)
{
    (void)state;
    assert_false(look_for(4800));
    view.beat++;
    assert_false(look_for(5000));
    assert_true(look_for(200));
}

static void test_a_new_epoch_begins_anew(void **state)
{
    (void)state;
    assert_false(look_for(4800));
    view.epoch++; /* the next leader has the beat of the one before */
    assert_false(look_for(5000));
}

static void test_a_leader_whose_sessions_end_loses_soon(void **state)
{
    (void)state;
    assert_false(look_for(1000));
    view.has_sessions = false;
    view.beat++;
    assert_false(look_for(600));
    assert_true(look_for(400));
}

static void test_sessions_that_another_server_never_had_say_nothing(void **state)
{
    (void)state;
    assert_false(look_for(1000));
    view.has_sessions = false;
    view.beat++;
    assert_false(election_see(&standby, &view, true, now)); /* a server that was promoted */
    assert_false(look_for(5000));
    assert_true(look_for(200));
}

static void test_who_never_had_sessions_is_given_the_whole_time(void **state)
{
    (void)state;
    view.has_sessions = false;
    assert_false(look_for(5000));
    assert_true(look_for(200));
}

static void test_a_lead_given_up_is_taken_at_once(void **state)
{
    (void)state;
    assert_false(look_for(1000));
    view.is_held = false;
    assert_true(election_see(&standby, &view, false, now));
}

static void test_who_gave_it_up_waits_for_others_but_not_forever(void **state)
{
    (void)state;
    election_abstain(&standby, now);
    view.is_held = false;
    assert_false(look_for(3000));
    assert_true(election_see(&standby, &view, false, now));
}

static void test_a_lead_given_to_another_is_left_to_it_for_a_while(void **state)
{
    (void)state;
    view.is_held = false;
    view.holder = (struct leader_claim){ .name = "c" };
    assert_false(look_for(3000));
    assert_true(election_see(&standby, &view, false, now));
}

static void test_a_lead_given_to_this_one_is_taken_at_once(void **state)
{
    (void)state;
    view.is_held = false;
    view.holder = (struct leader_claim){ .name = "b" };
    assert_true(election_see(&standby, &view, false, now));
}

static void test_the_former_process_of_this_manager_is_dead(void **state)
{
    (void)state;
    self.name[0] = 'a';
    view.has_sessions = false;
    assert_true(election_see(&standby, &view, true, now));
}

static void test_a_former_process_with_sessions_may_live_elsewhere(void **state)
{
    (void)state;
    self.name[0] = 'a';
    assert_false(look_for(5000));
    assert_true(look_for(200));
}

static void test_a_lead_taken_without_an_answer_is_taken_again(void **state)
{
    (void)state;
    assert_false(look_for(1000));
    view.epoch++;
    view.has_sessions = false;
    view.holder = self;
    assert_true(election_see(&standby, &view, true, now));
}

/* A try would cost the leader the connection by which it knows that nobody replaces it. */
static void test_a_leader_for_whom_the_server_works_is_left_alone(void **state)
{
    (void)state;
    view.is_working = true;
    assert_false(look_for(20000));
    assert_true(election_note_held_up(&standby, &view, now));
    assert_false(election_note_held_up(&standby, &view, now));
    view.is_working = false;
    assert_false(election_note_held_up(&standby, &view, now));
    assert_true(election_see(&standby, &view, false, now));
}

static void test_a_leader_that_beats_is_not_held_up(void **state)
{
    (void)state;
    view.is_working = true;
    for (int i = 0; i < 100; i++) {
        view.beat++;
        assert_false(look_for(4800));
        assert_false(election_note_held_up(&standby, &view, now));
    }
}

static void test_a_refused_try_is_made_again_a_second_later(void **state)
{
    (void)state;
    view.is_held = false;
    assert_true(election_see(&standby, &view, false, now));
    (void)election_refuse(&standby, EACCES, now);
    assert_false(look_for(1000));
    assert_true(election_see(&standby, &view, false, now));
}

static void test_a_reason_is_worth_one_line_an_epoch(void **state)
{
    (void)state;
    (void)election_see(&standby, &view, false, now);
    assert_true(election_refuse(&standby, EACCES, now));
    assert_false(election_refuse(&standby, EACCES, now));
    assert_true(election_refuse(&standby, EBUSY, now));
    view.epoch++;
    (void)election_see(&standby, &view, false, now);
    assert_true(election_refuse(&standby, EBUSY, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_leader_that_beats_is_left_alone, set_up),
        cmocka_unit_test_setup(test_a_silent_leader_loses_after_five_seconds, set_up),
        cmocka_unit_test_setup(test_a_beat_of_the_last_moment_counts, set_up),
        cmocka_unit_test_setup(test_a_new_epoch_begins_anew, set_up),
        cmocka_unit_test_setup(test_a_leader_whose_sessions_end_loses_soon, set_up),
        cmocka_unit_test_setup(test_sessions_that_another_server_never_had_say_nothing, set_up),
        cmocka_unit_test_setup(test_who_never_had_sessions_is_given_the_whole_time, set_up),
        cmocka_unit_test_setup(test_a_lead_given_up_is_taken_at_once, set_up),
        cmocka_unit_test_setup(test_who_gave_it_up_waits_for_others_but_not_forever, set_up),
        cmocka_unit_test_setup(test_a_lead_given_to_another_is_left_to_it_for_a_while, set_up),
        cmocka_unit_test_setup(test_a_lead_given_to_this_one_is_taken_at_once, set_up),
        cmocka_unit_test_setup(test_the_former_process_of_this_manager_is_dead, set_up),
        cmocka_unit_test_setup(test_a_former_process_with_sessions_may_live_elsewhere, set_up),
        cmocka_unit_test_setup(test_a_lead_taken_without_an_answer_is_taken_again, set_up),
        cmocka_unit_test_setup(test_a_leader_for_whom_the_server_works_is_left_alone, set_up),
        cmocka_unit_test_setup(test_a_leader_that_beats_is_not_held_up, set_up),
        cmocka_unit_test_setup(test_a_refused_try_is_made_again_a_second_later, set_up),
        cmocka_unit_test_setup(test_a_reason_is_worth_one_line_an_epoch, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
