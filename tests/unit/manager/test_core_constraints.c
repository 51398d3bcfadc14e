/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions ask of their scheduling: certain agents, and company or solitude.
 * It is kept in the row, so it holds after a restart of the manager too.
 */
#include "world.h"

static struct answer ask(const char *name, int cpus, struct session_spec spec)
{
    struct slots wanted = { .items = NULL };
    struct session_request req = {
        .name = name, .type = SESSION_BATCH, .access_key = USER_KEY, .priority = -1, .spec = spec
    };
    struct answer a;

    req.spec.image = "sh";
    req.spec.command = "true";
    assert_int_equal(slots_set(&wanted, slot_name_intern("cpu", 3), cpus * AMOUNT_ONE), 0);
    req.resources = wanted;
    a = create(&req);
    slots_done(&wanted);
    return a;
}

static struct uuid submit_wishing(const char *name, int cpus, struct session_spec spec)
{
    struct answer a = ask(name, cpus, spec);

    if (a.r < 0)
        fail_msg("%s: %s", name, a.err.text);
    return a.created.id;
}

static void assert_on(const struct uuid *session, const char *agent)
{
    assert_string_equal(core_find_session(world.core, session)->kernels[0].agent_id, agent);
}

static void two_agents(void)
{
    agent_comes("a", FOUR_CPUS);
    agent_comes("b", FOUR_CPUS);
}

static void a_designated_agent_is_never_overcommitted(void **state)
{
    static const char *b[] = { "b" };
    const struct session_spec only_b = { .agents = { b, 1 } };
    struct session_spec rather_b = only_b;
    struct uuid first, second, third;
    struct sent order;

    (void)state;
    rather_b.agents_preferred = true;
    two_agents();
    first = submit_wishing("first", 3, only_b);
    assert_on(&first, "b");
    second = submit_wishing("second", 2, rather_b);
    assert_on(&second, "a");
    third = submit_wishing("third", 2, only_b);
    assert_int_equal(status_of(&third), SESSION_PENDING); /* though "a" has two */
    order = *find_sent(MSG_KERNEL_CREATE, 0);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    agent_reports_exit(&order, 0);
    assert_on(&third, "b");
    assert_clean();
}

static void agents_are_waited_for_after_a_restart(void **state)
{
    static const char *b[] = { "b" };
    struct uuid waits;

    (void)state;
    two_agents();
    (void)submit_wishing("full", 4, (struct session_spec){ .agents = { b, 1 } });
    waits = submit_wishing("waits", 1, (struct session_spec){ .agents = { b, 1 } });
    assert_int_equal(status_of(&waits), SESSION_PENDING);
    restart_core();
    agent_comes("a", FOUR_CPUS);
    pass(3 * USEC_PER_SEC);
    assert_int_equal(status_of(&waits), SESSION_PENDING);
    assert_clean();
}

static void unknown_agents_and_foreign_ones_are_refused(void **state)
{
    static const char *unknown[] = { "nobody" };
    struct answer a;

    (void)state;
    two_agents();
    a = ask("lost", 1, (struct session_spec){ .agents = { unknown, 1 } });
    assert_int_equal(a.r, -EINVAL);
    assert_string_equal(a.err.field, "agent_list");
    assert_non_null(strstr(a.err.text, "nobody"));
    a = ask("proud", 1, (struct session_spec){ .job_priority = 101 });
    assert_int_equal(a.r, -EINVAL);
    assert_string_equal(a.err.field, "job_priority");
    a = ask("nameless", 1, (struct session_spec){ .session_group = "" });
    assert_int_equal(a.r, -EINVAL);
    assert_string_equal(a.err.field, "session_group.name");
}

static void a_group_that_spreads_goes_to_different_agents(void **state)
{
    const struct session_spec apart = { .session_group = "replicas" };
    struct session_spec strictly = apart;
    struct uuid ids[4];

    (void)state;
    strictly.group_is_strict = true;
    two_agents();
    ids[0] = submit_wishing("replica-1", 1, apart);
    ids[1] = submit_wishing("replica-2", 1, apart);
    assert_on(&ids[0], "a");
    assert_on(&ids[1], "b");
    ids[2] = submit_wishing("replica-3", 1, strictly);
    assert_int_equal(status_of(&ids[2]), SESSION_PENDING);
    agent_comes("c", FOUR_CPUS);
    assert_on(&ids[2], "c");
    ids[3] = submit_wishing("replica-4", 1, apart); /* as good as it can be */
    assert_int_equal(status_of(&ids[3]), SESSION_SCHEDULED);
    assert_clean();
}

static void a_group_that_packs_stays_together_after_a_restart(void **state)
{
    const struct session_spec together = { .session_group = "pipeline",
                                           .packs = true,
                                           .group_is_strict = true };
    struct uuid first, second, third;

    (void)state;
    two_agents();
    (void)submit_wishing("other", 1, (struct session_spec){ .session_group = NULL });
    first = submit_wishing("part-1", 3, together);
    assert_on(&first, "a");
    restart_core();
    two_agents();
    second = submit_wishing("part-2", 2, together);
    assert_int_equal(status_of(&second), SESSION_PENDING); /* "a" is full, "b" is empty */
    third = submit_wishing("quiet", 2,
                           (struct session_spec){ .session_group = "other", .packs = true });
    assert_int_equal(status_of(&third), SESSION_SCHEDULED); /* backfill: it delays nobody */
    assert_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_designated_agent_is_never_overcommitted, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(agents_are_waited_for_after_a_restart, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(unknown_agents_and_foreign_ones_are_refused, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(a_group_that_spreads_goes_to_different_agents, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(a_group_that_packs_stays_together_after_a_restart,
                                        world_begin, world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
