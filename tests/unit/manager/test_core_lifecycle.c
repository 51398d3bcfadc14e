/* SPDX-License-Identifier: Apache-2.0 */
/* The life of sessions, from the start to the end, against a played agent. */
#include "world.h"

#include "ended_session.h"
#include "store/transaction.h"

static void test_batch(void **state)
{
    static const struct {
        int exit_code;
        enum session_result result;
        const char *reason, *event, *says;
    } rows[] = {
        { 0, RESULT_SUCCESS, "task-finished", "session_success", "self-terminated" },
        { 0, RESULT_SUCCESS, "task-finished", "session_success", "task-finished" },
        { 1, RESULT_FAILURE, "task-failed", "session_failure", "self-terminated" },
        { 137, RESULT_FAILURE, "task-failed", "session_failure", "self-terminated" },
        /* ended, and polite */
        { 0, RESULT_FAILURE, "task-timeout", "session_failure", "task-timeout" },
        { 0, RESULT_FAILURE, "user-requested", "session_failure", "user-requested" },
        { 0, RESULT_FAILURE, "gpu-misuse", "session_failure", "gpu-misuse" },
    };

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct uuid id;
        struct sent *order;
        struct ended_session g;
        char want[512];

        world.sent_count = 0;
        world.events[0] = '\0';
        id = submit("batch-job");
        assert_int_equal(status_of(&id), SESSION_SCHEDULED);
        order = find_sent(MSG_KERNEL_CREATE, 0);
        assert_non_null(order);
        assert_string_equal(order->command, "true");
        assert_string_equal(order->agent_id, "i-001");
        assert_string_equal(order->slots, "{\"cpu\":\"1\",\"mem\":\"1073741824\"}");
        assert_string_equal(order->hosts, "main1");
        assert_int_equal(order->attempt, 1);
        agent_reports(order, MSG_KERNEL_CREATING);
        assert_int_equal(status_of(&id), SESSION_SCHEDULED); /* what is short leaves no row */
        agent_reports(order, MSG_KERNEL_RUNNING);
        assert_int_equal(status_of(&id), SESSION_RUNNING);
        assert_clean();
        agent_reports_end(order, rows[i].exit_code, rows[i].says);
        assert_int_equal(status_of(&id), GONE);
        g = ended_session_read(&id);
        assert_int_equal(g.status, SESSION_TERMINATED);
        assert_int_equal(g.result, rows[i].result);
        assert_string_equal(g.reason, rows[i].reason);
        assert_true(g.has_exit);
        assert_int_equal(g.exit_code, rows[i].exit_code);
        assert_int_equal(count_sent(MSG_KERNEL_CREATE), 1);
        assert_int_equal(count_sent(MSG_KERNEL_FORGET), 1);
        assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 0);
        (void)snprintf(want, sizeof(want),
                       "session_enqueued session_scheduled kernel_started "
                       "session_started kernel_terminated %s session_terminated ",
                       rows[i].event);
        assert_string_equal(world.events, want);
        assert_clean();
    }
}

/* Reports may come in any order and any number of times. */
static void test_reports_out_of_order(void **state)
{
    struct uuid id;
    struct sent *order;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    id = submit("quick-job");
    order = find_sent(MSG_KERNEL_CREATE, 0);
    agent_reports_exit(order, 0); /* RUNNING never seen: it ran all the same */
    assert_int_equal(status_of(&id), GONE);
    assert_int_equal(ended_session_read(&id).result, RESULT_SUCCESS);
    assert_non_null(strstr(world.events, "session_started"));
    /* A late report of a dead kernel only makes the agent forget it. */
    world.sent_count = 1;
    agent_reports(order, MSG_KERNEL_RUNNING);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    agent_reports_exit(order, 0);
    assert_int_equal(count_sent(MSG_KERNEL_FORGET), 1);
    assert_int_equal(ended_session_read(&id).status, SESSION_TERMINATED);
    assert_clean();
}

static void test_terminate(void **state)
{
    struct uuid running, pending, forced;
    struct sent *first, *second;

    (void)state;
    /* Without an agent: from the queue at once. */
    pending = submit("still-waits");
    assert_int_equal(status_of(&pending), SESSION_PENDING);
    assert_int_equal(terminate(&pending, false).r, 0);
    assert_int_equal(ended_session_read(&pending).status, SESSION_CANCELLED);
    assert_string_equal(ended_session_read(&pending).reason, "user-requested");
    assert_int_equal(terminate(&pending, false).r, -ENOENT);

    agent_comes("i-001", FOUR_CPUS);
    running = submit("graceful");
    first = find_sent(MSG_KERNEL_CREATE, 0);
    agent_reports(first, MSG_KERNEL_RUNNING);
    assert_int_equal(terminate(&running, false).r, 0);
    assert_int_equal(status_of(&running), SESSION_TERMINATING);
    assert_int_equal(find_sent(MSG_KERNEL_DESTROY, 0)->grace_usec, 10 * USEC_PER_SEC);
    assert_int_equal(terminate(&running, false).r, 0); /* asking again is fine */
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    agent_reports(first, MSG_KERNEL_RUNNING); /* late, changes nothing */
    assert_int_equal(status_of(&running), SESSION_TERMINATING);
    assert_int_equal(terminate(&running, true).r, 0);
    assert_int_equal(find_sent(MSG_KERNEL_DESTROY, 1)->grace_usec, 0);
    assert_clean();
    agent_reports_exit(first, 143);
    assert_int_equal(ended_session_read(&running).status, SESSION_TERMINATED);
    assert_string_equal(ended_session_read(&running).reason, "user-requested"); /* the first wins */
    assert_int_equal(ended_session_read(&running).result, RESULT_FAILURE);

    /* Ended before it ran: nothing runs afterwards. */
    forced = submit("forced");
    second = find_sent(MSG_KERNEL_CREATE, 1);
    assert_int_equal(terminate(&forced, true).r, 0);
    assert_int_equal(status_of(&forced), SESSION_TERMINATING);
    agent_reports(second, MSG_KERNEL_TERMINATED);
    assert_string_equal(ended_session_read(&forced).reason, "force-terminated");
    assert_clean();
}

static void test_rename_restart(void **state)
{
    struct answer a = { 0 };
    struct uuid id, other;
    struct sent *order;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    other = submit("taken-name");
    id = submit("first-name");
    order = find_sent(MSG_KERNEL_CREATE, 1);
    core_rename_session(world.core, &id, "taken-name", NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, -EEXIST);
    a = (struct answer){ 0 };
    core_rename_session(world.core, &id, "-bad", NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, -EINVAL);
    a = (struct answer){ 0 };
    core_rename_session(world.core, &id, "second-name", NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_string_equal(core_find_session(world.core, &id)->name, "second-name");
    assert_null(core_find_session_named(world.core, &core_find_session(world.core, &id)->user_id,
                                        "first-name"));

    a = (struct answer){ 0 };
    core_restart_session(world.core, &other, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, -EINVAL); /* it does not run yet */
    agent_reports(order, MSG_KERNEL_RUNNING);
    a = (struct answer){ 0 };
    core_restart_session(world.core, &id, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(status_of(&id), SESSION_RESTARTING);
    assert_int_equal(find_sent(MSG_KERNEL_RESTART, 0)->attempt, 2);
    agent_reports_exit(order, 143); /* the end of the old attempt is not the end */
    assert_int_equal(status_of(&id), SESSION_RESTARTING);
    agent_reports(find_sent(MSG_KERNEL_RESTART, 0), MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_clean();
    agent_reports_exit(find_sent(MSG_KERNEL_RESTART, 0), 0);
    assert_int_equal(ended_session_read(&id).result, RESULT_SUCCESS);
    assert_clean();
}

static int end_all(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)data;
    return sql_run_script(tx->db, "UPDATE sessions SET terminated_at = 1", err);
}

/* Its end is committed already, and the core will hear of it after the command. */
static void test_rename_of_the_ended(void **state)
{
    struct answer a = { 0 };
    struct uuid id = submit("ends");

    (void)state;
    assert_int_equal(store_call(world.core->store, end_all, NULL, NULL), 0);
    core_rename_session(world.core, &id, "too-late", NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, -ENOENT);
    assert_string_equal(a.err.kind, "session-not-found");
}

static void test_cluster(void **state)
{
    struct session_request req = { .name = "cluster",
                                   .type = SESSION_BATCH,
                                   .spec.image = IMAGE_OF_PROCESSES, /* needs no network */
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .cluster_size = 3,
                                   .multi_node = true,
                                   .spec.on_failure = "continue",
                                   .spec.waits_for_capacity = true };
    struct sent *main, *sub;
    struct answer a;

    (void)state;
    agent_comes("i-001", "{\"cpu\":[\"count\",\"2\"],\"mem\":[\"bytes\",\"8589934592\"]}");
    a = create(&req);
    assert_int_equal(a.r, 0);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING); /* all or nothing */
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 0);
    agent_comes("i-002", "{\"cpu\":[\"count\",\"2\"],\"mem\":[\"bytes\",\"8589934592\"]}");
    assert_int_equal(status_of(&a.created.id), SESSION_SCHEDULED);
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 3);
    main = find_sent(MSG_KERNEL_CREATE, 0);
    sub = find_sent(MSG_KERNEL_CREATE, 1);
    assert_string_equal(main->hosts, "main1,sub1,sub2");
    agent_reports(main, MSG_KERNEL_RUNNING);
    assert_int_not_equal(status_of(&a.created.id), SESSION_RUNNING);
    agent_reports(sub, MSG_KERNEL_RUNNING);
    agent_reports(find_sent(MSG_KERNEL_CREATE, 2), MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&a.created.id), SESSION_RUNNING);
    agent_reports_exit(sub, 1);
    assert_int_equal(status_of(&a.created.id), SESSION_RUNNING_DEGRADED);
    agent_reports_exit(main, 0);
    assert_int_equal(status_of(&a.created.id), SESSION_TERMINATING);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 2), 143);
    assert_int_equal(ended_session_read(&a.created.id).result, RESULT_SUCCESS);
    assert_string_equal(ended_session_read(&a.created.id).reason, "task-finished");
    assert_clean();
}

static void is_ready(const struct sent *order)
{
    struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_CREATING);

    report.is_ready = true;
    agent_says(order->agent_id, report);
}

/* Programs start when all kernels can: the others, then that of "main1". */
static void test_release(void **state)
{
    struct session_request req = { .name = "together",
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .cluster_size = 3 };
    struct sent *main, *subs[2];
    struct answer a;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    a = create(&req);
    assert_int_equal(a.r, 0);
    main = find_sent(MSG_KERNEL_CREATE, 0);
    subs[0] = find_sent(MSG_KERNEL_CREATE, 1);
    subs[1] = find_sent(MSG_KERNEL_CREATE, 2);
    is_ready(main);
    is_ready(subs[0]);
    assert_int_equal(count_sent(MSG_KERNEL_RELEASE), 0);
    assert_int_equal(status_of(&a.created.id), SESSION_SCHEDULED);
    is_ready(subs[1]);
    assert_int_equal(count_sent(MSG_KERNEL_RELEASE), 2);
    agent_reports(subs[0], MSG_KERNEL_RUNNING);
    pass(20 * USEC_PER_SEC); /* the others are told again */
    assert_int_equal(count_sent(MSG_KERNEL_RELEASE), 3);
    assert_true(uuid_equals(&find_sent(MSG_KERNEL_RELEASE, 2)->kernel_id, &subs[1]->kernel_id));
    agent_reports(subs[1], MSG_KERNEL_RUNNING);
    assert_int_equal(count_sent(MSG_KERNEL_RELEASE), 4);
    assert_true(uuid_equals(&find_sent(MSG_KERNEL_RELEASE, 3)->kernel_id, &main->kernel_id));
    agent_reports(main, MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&a.created.id), SESSION_RUNNING);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    static const struct CMUnitTest tests[] = {
        TEST(test_batch),     TEST(test_reports_out_of_order),
        TEST(test_terminate), TEST(test_rename_restart),
        TEST(test_cluster),   TEST(test_rename_of_the_ended),
        TEST(test_release),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
