/* SPDX-License-Identifier: Apache-2.0 */
/* A real manager and real agents over simulated machines: sessions end, over crashes of both,
 * programs start once, and parts of GPUs go round.
 */
#include "scene.h"

static void test_session_ends(void **state)
{
    int before = count_programs().programs;
    struct uuid id;

    (void)state;
    id = submit("/play run=60");
    run_for(MINUTE / 2);
    assert_true(lives(&id));
    assert_int_equal(count_programs().running, 1);
    run_for(2 * MINUTE);
    assert_false(lives(&id));
    assert_int_equal(count_programs().running, 0);
    assert_int_equal(count_programs().programs, before + 1);
    assert_int_equal(count_programs().most_starts, 1);
}

static void test_crash_of_manager(void **state)
{
    int before = count_programs().programs;
    struct uuid id;

    (void)state;
    id = submit("/play run=240");
    run_for(MINUTE);
    play_manager_crash(manager, false);
    assert_null(play_manager_core(manager));
    run_for(MINUTE);
    play_manager_boot(manager);
    assert_true(lives(&id)); /* acknowledged, so durable */
    run_for(MINUTE);
    assert_true(lives(&id));
    run_for(4 * MINUTE);
    assert_false(lives(&id));
    assert_int_equal(count_programs().programs, before + 1);
    assert_int_equal(count_programs().most_starts, 1);
}

static void test_crash_of_agents(void **state)
{
    int before = count_programs().programs;
    struct uuid id;

    (void)state;
    id = submit("/play run=240");
    run_for(MINUTE);
    for (int i = 0; i < AGENTS; i++)
        play_agent_crash(agents[i], false);
    run_for(USEC_PER_SEC);
    assert_int_equal(count_programs().running, 1);
    for (int i = 0; i < AGENTS; i++)
        play_agent_boot(agents[i]);
    run_for(MINUTE);
    assert_true(lives(&id));
    run_for(4 * MINUTE);
    assert_false(lives(&id));
    assert_int_equal(count_programs().programs, before + 1);
    assert_int_equal(count_programs().most_starts, 1);
}

struct holds {
    const char *agent_id;
    int64_t cpu, memory, card; /* of running programs: 10^-6 cores, bytes, 10^-6 cards */
    int cards;                 /* devices of which these are parts */
};

static void on_holds(void *data, const struct play_program *p)
{
    struct holds *holds = data;

    if (!p->is_running || strcmp(p->agent_id, holds->agent_id) != 0)
        return;
    for (size_t i = 0; i < p->holds.count; i++) {
        const struct grant_item *item = &p->holds.items[i];

        holds->cpu += strcmp(item->slot_name, "cpu") == 0 ? item->amount : 0;
        holds->memory += strcmp(item->slot_name, "mem") == 0 ? item->amount : 0;
        if (strncmp(item->slot_name, "cuda.", 5) == 0) {
            assert_non_null(strstr(item->device_id, holds->agent_id));
            holds->card += item->amount;
            holds->cards++;
        }
    }
}

static struct holds sum_holds(const char *agent_id)
{
    struct holds holds = { .agent_id = agent_id };

    play_each_program(on_holds, &holds);
    return holds;
}

/* The only card in shares has room for a half and two quarters. */
static void test_parts_of_gpu(void **state)
{
    struct uuid half, quarters[2], late;
    struct holds holds;

    (void)state;
    half = submit_with("/play run=300", "cuda.shares", AMOUNT_ONE / 2);
    for (int i = 0; i < 2; i++)
        quarters[i] = submit_with("/play run=600", "cuda.shares", AMOUNT_ONE / 4);
    late = submit_with("/play run=300", "cuda.shares", AMOUNT_ONE / 4);
    run_for(MINUTE);
    assert_true(runs(&half));
    assert_true(runs(&quarters[0]));
    assert_true(runs(&quarters[1]));
    assert_false(runs(&late));
    assert_string_equal(core_find_session(play_manager_core(manager), &half)->kernels[0].agent_id,
                        "node-1");
    holds = sum_holds("node-1");
    assert_int_equal(holds.cpu, 3 * AMOUNT_ONE);
    assert_int_equal(holds.memory, 3 * (INT64_C(1) << 30));
    assert_int_equal(holds.card, AMOUNT_ONE);
    assert_int_equal(holds.cards, 3);
    run_for(6 * MINUTE); /* the half has ended */
    assert_false(lives(&half));
    assert_true(runs(&quarters[0]));
    assert_true(runs(&late));
    run_for(10 * MINUTE);
    assert_false(lives(&late));
    assert_int_equal(count_programs().running, 0);
}

static void test_whole_gpu(void **state)
{
    struct uuid first, second;

    (void)state;
    first = submit_with("/play run=240", "cuda.device", AMOUNT_ONE);
    second = submit_with("/play run=60", "cuda.device", AMOUNT_ONE);
    run_for(MINUTE);
    assert_true(runs(&first));
    assert_false(runs(&second));
    assert_string_equal(core_find_session(play_manager_core(manager), &first)->kernels[0].agent_id,
                        "node-2");
    assert_int_equal(sum_holds("node-2").card, AMOUNT_ONE);
    run_for(6 * MINUTE);
    assert_false(lives(&first));
    assert_false(lives(&second));
    assert_int_equal(count_programs().most_starts, 1);
}

/* A card's parts are found again in what the agent wrote about its kernels. */
static void test_parts_over_crash_of_agent(void **state)
{
    struct uuid half, other, late;

    (void)state;
    half = submit_with("/play run=600", "cuda.shares", AMOUNT_ONE / 2);
    other = submit_with("/play run=600", "cuda.shares", AMOUNT_ONE / 2);
    run_for(MINUTE);
    assert_true(runs(&half) && runs(&other));
    play_agent_crash(agents[0], false);
    run_for(USEC_PER_SEC);
    play_agent_boot(agents[0]);
    late = submit_with("/play run=60", "cuda.shares", AMOUNT_ONE / 20);
    run_for(2 * MINUTE);
    assert_true(runs(&half) && runs(&other));
    assert_false(runs(&late));
    run_for(12 * MINUTE);
    assert_false(lives(&late));
    assert_int_equal(count_programs().running, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session_ends),    cmocka_unit_test(test_crash_of_manager),
        cmocka_unit_test(test_crash_of_agents), cmocka_unit_test(test_parts_of_gpu),
        cmocka_unit_test(test_whole_gpu),       cmocka_unit_test(test_parts_over_crash_of_agent),
    };

    return cmocka_run_group_tests(tests, scene_begin, scene_end);
}
