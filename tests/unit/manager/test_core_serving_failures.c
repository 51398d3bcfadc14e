/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas of model services that fail, are lost or are moved: when they are replaced, and the reason
 * that is shown.
 */
#include "service_world.h"

static void crash_loop(void **state)
{
    const struct model_service *s;
    int64_t pauses[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300 };
    char name[32];

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 3);
    for (int i = 1; i <= 3; i++) { /* all at once count as one */
        (void)snprintf(name, sizeof(name), "digits.r1.%d", i);
        exits(named(name), 1);
    }
    assert_int_equal(count_replicas(s), 0);
    for (size_t i = 0; i < AQ_COUNT(pauses); i++) {
        assert_int_equal(core_service_retry_usec(world.core, s),
                         world_wall + pauses[i] * USEC_PER_SEC);
        for (int64_t left = pauses[i]; left > 0; left--) {
            assert_int_equal(count_replicas(s), 0);
            agent_beats("a", NULL, 0);
            pass(USEC_PER_SEC);
        }
        assert_int_equal(count_replicas(s), 1); /* one shows whether it works now */
        assert_int_equal(core_service_retry_usec(world.core, s), 0);
        assert_true(core_service_is_failing(world.core, s)); /* also while it starts */
        exits(replica_of(s, 0), 1);
        assert_int_equal(count_replicas(s), 0);
    }
    /* A change is a reason to try again at once; others follow when one is ready. */
    assert_int_equal(change(s, add_revision, 1).r, 0);
    assert_false(core_service_is_failing(world.core, s));
    assert_int_equal(count_replicas(s), 3);
    assert_clean();
}

static void fails_soon_after_it_was_ready(void **state)
{
    const struct model_service *s;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    exits(replica_of(s, 0), 1);
    assert_int_equal(count_replicas(s), 0);
    assert_int_not_equal(core_service_retry_usec(world.core, s), 0);
    pass(USEC_PER_SEC);
    assert_int_equal(count_replicas(s), 1);
    becomes_ready(replica_of(s, 0));
    {
        struct sent order = order_of(replica_of(s, 0));

        for (int i = 0; i < 61; i++) {
            struct msg_kernel_status report = kernel_report(&order, MSG_KERNEL_RUNNING);

            agent_beats("a", &report, 1);
            pass(10 * USEC_PER_SEC);
        }
    }
    exits(replica_of(s, 0), 1); /* after ten minutes nothing is held back */
    assert_int_equal(core_service_retry_usec(world.core, s), 0);
    assert_int_equal(count_replicas(s), 1);
}

static void ends_when_it_is_not_ready_in_time(void **state)
{
    struct model_service wanted;
    const struct model_service *s;
    struct answer a;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    wanted = wish("digits", 1);
    wanted.revisions[0].spec->ready_usec = 20 * USEC_PER_SEC;
    a = try_create(&wanted);
    assert_int_equal(a.r, 0);
    s = core_find_service(world.core, "digits");
    {
        struct sent order = order_of(replica_of(s, 0));

        agent_reports(&order, MSG_KERNEL_RUNNING);
        says_health(replica_of(s, 0), "starting", "status 503");
        for (int i = 0; i < 4; i++) {
            struct msg_kernel_status report = kernel_report(&order, MSG_KERNEL_RUNNING);

            assert_int_equal(replica_of(s, 0)->status, SESSION_RUNNING);
            agent_beats("a", &report, 1);
            pass(5 * USEC_PER_SEC);
        }
        assert_int_equal(replica_of(s, 0)->status, SESSION_TERMINATING);
        assert_string_equal(replica_of(s, 0)->reason, "service-unready");
        agent_reports_end(&order, 143, NULL);
    }
    assert_non_null(strstr(core_service_problem(world.core, s), "did not become ready in time"));
    assert_non_null(strstr(core_service_problem(world.core, s), "status 503"));
    assert_int_not_equal(core_service_retry_usec(world.core, s), 0);
    assert_clean();
}

/* Replicas that were ready before a failure do not end the pauses. */
static void one_of_two_fails(void **state)
{
    const struct model_service *s;
    struct sent order;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    order = order_of(replica_of(s, 0));
    for (int i = 0; i < 61; i++) {
        struct msg_kernel_status report = kernel_report(&order, MSG_KERNEL_RUNNING);

        agent_beats("a", &report, 1);
        pass(10 * USEC_PER_SEC);
    }
    assert_int_equal(change(s, set_replicas, 2).r, 0);
    for (int64_t pause = 1; pause <= 4; pause *= 2) {
        exits(replica_of(s, 1), 1);
        assert_int_equal(count_replicas(s), 1);
        assert_int_equal(core_service_retry_usec(world.core, s), world_wall + pause * USEC_PER_SEC);
        pass(pause * USEC_PER_SEC);
        assert_int_equal(count_replicas(s), 2);
    }
    assert_non_null(core_service_problem(world.core, s));
    becomes_ready(replica_of(s, 1));
    assert_null(core_service_problem(world.core, s));
    assert_clean();
}

/* The end of its log says why a replica failed. */
static void last_lines(void **state)
{
    const struct model_service *s;
    struct msg_kernel_status report;
    struct sent order;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    order = order_of(replica_of(s, 0));
    agent_reports(&order, MSG_KERNEL_RUNNING);
    report = kernel_report(&order, MSG_KERNEL_TERMINATED);
    report.has_exit = true;
    report.exit_code = 1;
    report.last_lines = "Traceback\nKeyError: 'model'";
    /* A probe that meets a container on its way out must not hide why it ended. */
    says_health(replica_of(s, 0), "starting", "cannot open the container's network: No such file");
    agent_says("a", report);
    assert_string_equal(core_service_problem(world.core, s),
                        "replica 'digits.r1.1' ended: its program exited with status 1 before it "
                        "was ready\n"
                        "Traceback\nKeyError: 'model'");
}

static void agent_is_lost(void **state)
{
    const struct model_service *s;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    agent_goes("a");
    pass(42 * USEC_PER_SEC);
    assert_int_equal(find(replica_of(s, 0)).health, CORE_REPLICA_UNHEALTHY);
    assert_string_equal(find(replica_of(s, 0)).health_text, "its agent is lost");
    assert_int_equal(count_replicas(s), 1); /* it is not given up yet */
}

/* A replica that its user ends, or whose agent is lost, is replaced at once. */
static void replaced(void **state)
{
    const struct model_service *s;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    id = replica_of(s, 0)->id;
    assert_int_equal(terminate(&id, false).r, 0);
    assert_int_equal(count_replicas(s), 2); /* the new one does not wait for the end of the other */
    ends(id);
    assert_int_equal(count_replicas(s), 1);
    becomes_ready(replica_of(s, 0));
    set_loss_policy("requeue", 0);
    agent_goes("a");
    pass(11 * USEC_PER_SEC);
    assert_int_equal(core_service_retry_usec(world.core, s), 0);
    assert_null(strstr(world.events, "session_rescheduling"));
    assert_clean();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(crash_loop),
        TEST(fails_soon_after_it_was_ready),
        TEST(ends_when_it_is_not_ready_in_time),
        TEST(one_of_two_fails),
        TEST(last_lines),
        TEST(agent_is_lost),
        TEST(replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
