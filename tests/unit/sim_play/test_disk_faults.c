/* SPDX-License-Identifier: Apache-2.0 */
/* A manager whose disk fails: it refuses, or its process ends and is started again; what it has
 * acknowledged is there afterwards.
 */
#include "scene.h"

#include "sim/play/play_disk.h"

#define SESSIONS 12

static int ended;

static void on_ended(void *data, const char *why)
{
    (void)data;
    assert_true(why[0] != '\0');
    assert_null(play_manager_core(manager));
    ended++;
}

/* Sessions that run until they are told to end, one each few seconds, while the disk fails. Returns
 * how many were acknowledged.
 */
static size_t submit_with_faults(double eio, double enospc)
{
    struct uuid ids[SESSIONS];
    size_t count = 0;

    for (int i = 0; i < SESSIONS; i++) {
        play_disk_set_faults(manager_host, eio, enospc);
        if (try_to_submit("/play", NULL, 0, &ids[count]))
            count++;
        run_for(5 * USEC_PER_SEC);
        play_disk_set_faults(manager_host, 0, 0);
        if (i % 2)
            run_for(MINUTE / 2);
    }
    run_for(MINUTE);
    for (size_t i = 0; i < count; i++)
        assert_true(lives(&ids[i]));
    play_manager_crash(manager, false);
    play_manager_boot(manager);
    run_for(2 * MINUTE);
    for (size_t i = 0; i < count; i++) {
        assert_true(runs(&ids[i]));
        terminate(&ids[i]);
    }
    run_for(MINUTE);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(read_outcome(&ids[i]).status, SESSION_TERMINATED);
    assert_int_equal(count_programs().running, 0);
    assert_int_equal(count_programs().most_starts, 1);
    return count;
}

static int begin(void **state)
{
    int r = scene_begin(state);

    play_manager_on_ended(manager, on_ended, NULL);
    return r;
}

static void test_rare_errors(void **state)
{
    (void)state;
    assert_true(submit_with_faults(0.005, 0) > 0);
}

static void test_frequent_errors(void **state)
{
    (void)state;
    (void)submit_with_faults(0.1, 0);
}

static void test_only_errors(void **state)
{
    (void)state;
    assert_int_equal(submit_with_faults(1, 0), 0);
}

static void test_short_of_room(void **state)
{
    (void)state;
    assert_true(submit_with_faults(0, 0.05) > 0);
}

static void test_full_disk(void **state)
{
    (void)state;
    assert_int_equal(submit_with_faults(0, 1), 0);
}

/* Programs run on meanwhile. */
static void test_start_with_errors(void **state)
{
    struct uuid id = submit("/play run=600");
    int before = ended;

    (void)state;
    run_for(MINUTE / 2);
    play_manager_crash(manager, false);
    play_disk_set_faults(manager_host, 1, 0);
    play_manager_boot(manager);
    assert_null(play_manager_core(manager));
    assert_int_equal(ended, before + 1);
    run_for(MINUTE);
    assert_null(play_manager_core(manager));
    assert_true(ended > before + 1);
    assert_int_equal(count_programs().running, 1);
    play_disk_set_faults(manager_host, 0, 0);
    run_for(MINUTE);
    assert_true(runs(&id));
    run_for(15 * MINUTE);
    assert_string_equal(read_outcome(&id).reason, REASON_TASK_FINISHED);
    assert_int_equal(count_programs().most_starts, 1);
}

/* What was planned to start it again does not happen. */
static void test_crash_after_end(void **state)
{
    (void)state;
    play_manager_crash(manager, false);
    play_disk_set_faults(manager_host, 1, 0);
    play_manager_boot(manager);
    assert_null(play_manager_core(manager));
    play_disk_set_faults(manager_host, 0, 0);
    play_manager_crash(manager, false);
    run_for(MINUTE);
    assert_null(play_manager_core(manager));
    play_manager_boot(manager);
    assert_non_null(play_manager_core(manager));
    run_for(MINUTE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rare_errors),     cmocka_unit_test(test_frequent_errors),
        cmocka_unit_test(test_only_errors),     cmocka_unit_test(test_short_of_room),
        cmocka_unit_test(test_full_disk),       cmocka_unit_test(test_start_with_errors),
        cmocka_unit_test(test_crash_after_end),
    };

    return cmocka_run_group_tests(tests, begin, scene_end);
}
