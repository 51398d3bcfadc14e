/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of play_runtime.h make programs do, and how programs end with their machine. */
#include "scene.h"

static void test_exit_code(void **state)
{
    struct uuid id = submit("/play run=10 code=3");
    struct outcome o;

    (void)state;
    run_for(MINUTE);
    o = read_outcome(&id);
    assert_int_equal(o.status, SESSION_TERMINATED);
    assert_string_equal(o.reason, REASON_TASK_FAILED);
    assert_true(o.has_exit);
    assert_int_equal(o.exit_code, 3);
}

static void test_out_of_memory(void **state)
{
    struct uuid id = submit("/play run=10 oom");
    struct outcome o;

    (void)state;
    run_for(MINUTE);
    o = read_outcome(&id);
    assert_int_equal(o.status, SESSION_TERMINATED);
    assert_string_equal(o.reason, REASON_OUT_OF_MEMORY);
    assert_int_equal(o.exit_code, 137);
}

static void test_fails_to_start(void **state)
{
    int before = count_programs().programs;
    struct uuid id = submit("/play fails");
    struct outcome o;

    (void)state;
    run_for(10 * MINUTE);
    o = read_outcome(&id);
    assert_true(session_is_terminal(o.status));
    assert_string_equal(o.reason, REASON_FAILED_TO_CREATE);
    assert_false(o.has_exit);
    assert_true(count_programs().programs > before);
    assert_int_equal(count_programs().running, 0);
}

/* SIGTERM ends the one at once, the other is killed after the grace of 10 s. */
static void test_stubborn(void **state)
{
    struct uuid meek = submit("/play"), stubborn = submit("/play stubborn");
    struct outcome o;

    (void)state;
    run_for(MINUTE);
    assert_int_equal(count_programs().running, 2);
    terminate(&meek);
    terminate(&stubborn);
    run_for(2 * USEC_PER_SEC);
    assert_int_equal(count_programs().running, 1);
    o = read_outcome(&meek);
    assert_int_equal(o.status, SESSION_TERMINATED);
    assert_int_equal(o.exit_code, 143);
    run_for(15 * USEC_PER_SEC);
    assert_int_equal(count_programs().running, 0);
    o = read_outcome(&stubborn);
    assert_int_equal(o.status, SESSION_TERMINATED);
    assert_string_equal(o.reason, REASON_USER_REQUESTED);
    assert_int_equal(o.exit_code, 137);
}

static void on_audited(void *data, int r, const struct aq_error *err, const char *findings)
{
    assert_row(r == 0, "%s", r < 0 ? err->text : findings);
    *(bool *)data = true;
}

/* Neither the manager nor the agents hold anything. */
static void check_that_all_is_free(void)
{
    struct core *core = play_manager_core(manager);
    static bool came;
    struct uuid ids[AGENTS];

    came = false;
    simuv_enter(manager_host);
    core_audit(core, on_audited, &came);
    simuv_leave();
    run_for(USEC_PER_SEC);
    assert_true(came);
    assert_int_equal(core_count_sessions(core), 0);
    /* each agent gives all of its cores again */
    for (int i = 0; i < AGENTS; i++)
        ids[i] = submit_with("/play run=30", "cpu", 4 * AMOUNT_ONE);
    run_for(20 * USEC_PER_SEC);
    assert_int_equal(count_programs().running, AGENTS);
    run_for(MINUTE);
    for (int i = 0; i < AGENTS; i++)
        assert_false(lives(&ids[i]));
}

/* The agents find that their machines were restarted, and start nothing twice. */
static void test_crash_of_machines(void **state)
{
    struct uuid ids[7];
    int before;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(ids); i++)
        ids[i] = submit("/play");
    run_for(MINUTE);
    assert_int_equal(count_programs().running, AQ_COUNT(ids));
    before = count_programs().programs;
    for (int i = 0; i < AGENTS; i++)
        play_agent_crash_machine(agents[i]);
    assert_int_equal(count_programs().running, 0);
    run_for(20 * USEC_PER_SEC);
    for (int i = 0; i < AGENTS; i++)
        play_agent_boot(agents[i]);
    run_for(2 * MINUTE);
    for (size_t i = 0; i < AQ_COUNT(ids); i++) {
        struct outcome o = read_outcome(&ids[i]);

        assert_int_equal(o.status, SESSION_TERMINATED);
        assert_string_equal(o.reason, REASON_MONITOR_LOST);
        assert_false(o.has_exit);
    }
    assert_int_equal(count_programs().programs, before);
    assert_int_equal(count_programs().running, 0);
    check_that_all_is_free();
    assert_int_equal(count_programs().most_starts, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_code),         cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_fails_to_start),    cmocka_unit_test(test_stubborn),
        cmocka_unit_test(test_crash_of_machines),
    };

    return cmocka_run_group_tests(tests, scene_begin, scene_end);
}
