/* SPDX-License-Identifier: Apache-2.0 */
/* Revisions of model services: the first one, rollouts to the next and back, and how many are kept. */
#include "service_world.h"

/* Made without a revision: nothing runs until there is one, after a restart, too. */
static void waits_for_its_first_revision(void **state)
{
    struct model_service s;
    const struct model_service *made;
    struct answer a;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = wish("empty", 2);
    free(s.revisions[0].spec);
    s.revision_count = 0;
    assert_int_equal(try_create(&s).r, 0);
    for (int i = 0; i < 2; i++) {
        made = core_find_service(world.core, "empty");
        assert_int_equal(made->goal, 0);
        assert_int_equal(count_replicas(made), 0);
        assert_non_null(strstr(core_service_problem(world.core, made), "no revision"));
        restart_core();
        assert_int_equal(agent_greets("a", FOUR_CPUS, uuid_random()), 0);
        agent_beats("a", NULL, 0);
    }
    made = core_find_service(world.core, "empty");
    a = change(made, set_goal, 1);
    assert_int_equal(a.r, -ENOENT);
    assert_int_equal(change(made, set_replicas, 1).r, 0);
    made = core_find_service(world.core, "empty");
    assert_int_equal(count_replicas(made), 0);
    assert_int_equal(change(made, add_revision, 0).r, 0);
    made = core_find_service(world.core, "empty");
    assert_int_equal(made->goal, 1);
    assert_int_equal(count_replicas(made), 1);
    becomes_ready(replica_of(made, 0));
    assert_null(core_service_problem(world.core, made));
    assert_clean();
}

static void rolled_out(void **state)
{
    const struct model_service *s;
    struct uuid old;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 2);
    becomes_ready(replica_of(s, 0));
    becomes_ready(replica_of(s, 1));
    assert_int_equal(change(s, add_revision, 1).r, 0);
    assert_int_equal(s->goal, 2);
    assert_int_equal(s->last_number, 2);
    assert_int_equal(count_replicas(s), 3);
    assert_non_null(named("digits.r2.3"));
    assert_string_equal(order_of(named("digits.r2.3")).command, "serve better");
    assert_false(find(named("digits.r1.1")).is_draining);
    assert_false(find(named("digits.r1.2")).is_draining);
    becomes_ready(named("digits.r2.3"));
    assert_true(find(named("digits.r1.2")).is_draining);
    assert_false(find(named("digits.r1.1")).is_draining);
    assert_null(named("digits.r2.4")); /* one that drains may hold its resources for long */
    old = named("digits.r1.2")->id;
    core_note_replica_idle(world.core, &old);
    settle();
    assert_string_equal(core_find_session(world.core, &old)->reason, "service-replaced");
    ends(old);
    assert_null(named("digits.r2.5"));
    becomes_ready(named("digits.r2.4"));
    assert_true(find(named("digits.r1.1")).is_draining);
    old = named("digits.r1.1")->id;
    core_note_replica_idle(world.core, &old);
    settle();
    ends(old);
    assert_int_equal(count_replicas(s), 2);
    assert_clean();
}

/* A revision that never becomes ready takes nothing away, and goes when the goal is another one. */
static void rolled_back(void **state)
{
    const struct model_service *s;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 2);
    becomes_ready(replica_of(s, 0));
    becomes_ready(replica_of(s, 1));
    assert_int_equal(change(s, add_revision, 1).r, 0);
    assert_non_null(named("digits.r2.3"));
    exits(named("digits.r2.3"), 3);
    assert_null(named("digits.r2.3"));
    assert_null(named("digits.r2.4")); /* not before a second has passed */
    assert_non_null(core_service_problem(world.core, s));
    assert_non_null(strstr(core_service_problem(world.core, s), "'digits.r2.3' ended: its program "
                                                                "exited with status 3"));
    assert_int_equal(core_service_retry_usec(world.core, s), world_wall + USEC_PER_SEC);
    pass(USEC_PER_SEC);
    assert_non_null(named("digits.r2.4"));
    assert_false(find(named("digits.r1.1")).is_draining);
    assert_int_equal(change(s, set_goal, 1).r, 0);
    assert_int_equal(named("digits.r2.4")->status, SESSION_TERMINATING);
    assert_int_equal(count_replicas(s), 3);
    ends(named("digits.r2.4")->id);
    assert_int_equal(count_replicas(s), 2);
    assert_null(core_service_problem(world.core, s));
    assert_int_equal(core_service_retry_usec(world.core, s), 0);
    assert_int_equal(change(s, set_goal, 7).r, -ENOENT);
    assert_clean();
}

/* Old revisions go, but for goals and those with replicas. */
static void revisions_are_bounded(void **state)
{
    const struct model_service *s;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    for (int i = 0; i < MODEL_SERVICE_REVISIONS_MAX + 2; i++)
        assert_int_equal(change(s, add_revision, i % 2).r, 0);
    assert_int_equal(s->revision_count, MODEL_SERVICE_REVISIONS_MAX);
    assert_int_equal(s->revisions[0].number, 1); /* its replica is the one that is ready */
    assert_int_equal(s->revisions[1].number, 2); /* its replica is ending */
    assert_int_equal(s->revisions[2].number, 6);
    assert_int_equal(s->goal, MODEL_SERVICE_REVISIONS_MAX + 3);
    assert_clean();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(waits_for_its_first_revision),
        TEST(rolled_out),
        TEST(rolled_back),
        TEST(revisions_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
