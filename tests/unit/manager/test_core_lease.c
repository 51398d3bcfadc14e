/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: which kernels get one, how it changes, and that nothing starts elsewhere before it is over.
 * Played agents; the timeout is 40 s, the grace of programs 10 s.
 */
#include "world.h"

#include "manager/core/session/kernel_lease.h"

#define TIMEOUT (40 * USEC_PER_SEC)
#define KILL (10 * USEC_PER_SEC)

static struct sent submit_with(const char *name, const char *on_node_loss)
{
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = IMAGE_OF_PROCESSES,
                                   .spec.command = "true",
                                   .spec.on_node_loss = on_node_loss,
                                   .access_key = USER_KEY,
                                   .priority = -1 };

    world.sent_count = 0;
    assert_int_equal(create(&req).r, 0);
    return *find_sent(MSG_KERNEL_CREATE, 0);
}

/* The agent reports this kernel with this lease; what it is answered. */
static struct sent beat(const struct sent *order, int64_t lease_usec, int64_t grace_usec)
{
    struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_RUNNING);
    struct message msg = {
        .type = MSG_HEARTBEAT,
        .heartbeat = { .kernels = &report, .kernel_count = 1, .uptime_usec = world_mono + 7 }
    };

    report.lease_usec = lease_usec;
    report.lease_grace_usec = grace_usec;
    world.sent_count = 0;
    inventory_link_ops.on_message(world.core, order->agent_id, &msg);
    settle();
    assert_int_equal(find_sent(MSG_HEARTBEAT_REPLY, 0)->uptime_usec, world_mono + 7);
    return *find_sent(MSG_HEARTBEAT_REPLY, 0);
}

/* What may start elsewhere. The lease and the kill and their margin fit into timeout and grace. */
static void who_has_one(void **state)
{
    static const struct {
        const char *policy, *on_node_loss;
        int64_t grace;
        bool has;
    } rows[] = {
        { "wait", NULL, 300, false },          { "terminate", NULL, 300, false },
        { "requeue", NULL, 300, true },        { "requeue", "end", 300, false },
        { "wait", "restart-kernel", 0, true }, { "wait", "restart-all", 300, true },
        { "wait", "end", 300, false },         { "terminate", "restart-all", 20, true },
    };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t grace = rows[i].grace * USEC_PER_SEC, end;
        struct sent order;

        set_loss_policy(rows[i].policy, grace);
        order = submit_with("one", rows[i].on_node_loss);
        assert_int_equal(order.lease_usec > 0, rows[i].has);
        assert_int_equal(order.lease_grace_usec, rows[i].has ? KILL : 0);
        end = (order.lease_usec + KILL) / 100 * 101 + USEC_PER_SEC;
        if (rows[i].has && grace > 2 * KILL)
            assert_in_range(end, TIMEOUT + grace - USEC_PER_MSEC, TIMEOUT + grace);
        else if (rows[i].has)
            assert_in_range(order.lease_usec, TIMEOUT, TIMEOUT + grace);
        agent_reports(&order, MSG_KERNEL_RUNNING);
        agent_reports_exit(&order, 0);
        assert_int_equal(status_of(&order.session_id), GONE);
    }
    assert_clean();
}

static void a_reply_changes_it(void **state)
{
    struct sent order, reply;

    (void)state;
    set_loss_policy("wait", 300 * USEC_PER_SEC);
    agent_comes("a", FOUR_CPUS);
    order = submit_with("one", NULL);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    assert_int_equal(beat(&order, 0, 0).lease_count, 0);
    set_loss_policy("requeue", 300 * USEC_PER_SEC);
    reply = beat(&order, 0, 0);
    assert_int_equal(reply.lease_count, 1);
    assert_true(uuid_equals(&reply.kernel_id, &order.kernel_id));
    assert_int_equal(reply.attempt, 1);
    assert_true(reply.lease_usec > TIMEOUT && reply.lease_grace_usec == KILL);
    assert_int_equal(beat(&order, reply.lease_usec, KILL).lease_count, 0);
    assert_int_equal(beat(&order, reply.lease_usec, KILL + 1).lease_count, 1);
    set_loss_policy("wait", 300 * USEC_PER_SEC);
    reply = beat(&order, reply.lease_usec, KILL);
    assert_int_equal(reply.lease_count, 1);
    assert_int_equal(reply.lease_usec, 0);
}

/* An agent may say anything. */
static void a_lease_without_end(void **state)
{
    struct sent order;
    int64_t loss;

    (void)state;
    set_loss_policy("requeue", 300 * USEC_PER_SEC);
    agent_comes("a", FOUR_CPUS);
    order = submit_with("one", NULL);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    assert_int_equal(beat(&order, INT64_MAX, INT64_MAX).lease_count, 1);
    loss = kernel_lease_loss_usec(world.core, agent_entry_find(world.core, "a"));
    assert_in_range(loss, INT64_C(366) * 86400 * USEC_PER_SEC, INT64_MAX / 2);
}

/* No agent is told of a lease that does not tell its uptime. */
static void an_older_agent(void **state)
{
    (void)state;
    world.sent_count = 0;
    agent_comes("a", FOUR_CPUS);
    assert_int_equal(count_sent(MSG_HEARTBEAT_REPLY), 0);
}

/* The grace is 0: the lease is as long as the timeout. It starts elsewhere 'usec' after the last
 * contact and not a second earlier.
 */
static void check_starts_after(const struct sent *order, int64_t usec)
{
    agent_goes(order->agent_id);
    world.sent_count = 0;
    for (int64_t at = 0; at < usec - USEC_PER_SEC; at += USEC_PER_SEC) {
        agent_beats("b", NULL, 0);
        pass(USEC_PER_SEC);
        assert_int_equal(status_of(&order->session_id), SESSION_RUNNING);
    }
    for (int i = 0; i < 3; i++) {
        agent_beats("b", NULL, 0);
        pass(USEC_PER_SEC);
    }
    assert_int_equal(status_of(&order->session_id), SESSION_SCHEDULED);
    assert_string_equal(find_sent(MSG_KERNEL_CREATE, 0)->agent_id, "b");
    assert_int_equal(find_sent(MSG_KERNEL_CREATE, 0)->attempt, 2);
    assert_clean();
}

static void nothing_starts_before_it_is_over(void **state)
{
    struct sent order;

    (void)state;
    set_loss_policy("requeue", 0);
    agent_comes("a", FOUR_CPUS);
    order = submit_with("one", NULL);
    assert_int_equal(order.lease_usec, TIMEOUT);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    agent_comes("b", FOUR_CPUS);
    check_starts_after(&order, TIMEOUT + KILL + 3 * USEC_PER_SEC / 2);
}

/* With the usual times: while another manager takes over, nothing ends and nothing moves. */
static void a_takeover_fits_into_it(void **state)
{
    static const struct {
        const char *policy;
        bool has_lease;
    } rows[] = { { "requeue", true }, { "terminate", false } };

    (void)state;
    world.core->conf.agent_timeout_usec = 10 * USEC_PER_SEC;
    agent_comes("a", FOUR_CPUS);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct agent_entry *a = agent_entry_find(world.core, "a");
        struct sent order;
        int64_t end;

        set_loss_policy(rows[i].policy, 0);
        order = submit_with("one", NULL);
        end = order.lease_usec + KILL + (order.lease_usec + KILL) / 100 + USEC_PER_SEC;
        if (rows[i].has_lease)
            assert_in_range(order.lease_usec, 25 * USEC_PER_SEC, 40 * USEC_PER_SEC);
        assert_true(end <= 40 * USEC_PER_SEC);
        assert_int_equal(kernel_lease_loss_usec(world.core, a), 30 * USEC_PER_SEC); /* and 10 s */
        agent_reports(&order, MSG_KERNEL_RUNNING);
        agent_reports_exit(&order, 0);
    }
    assert_clean();
}

/* The administrator shortens the grace while the agent, which has the former lease, is cut off. */
static void a_former_lease_counts(void **state)
{
    struct sent order;

    (void)state;
    set_loss_policy("requeue", 100 * USEC_PER_SEC);
    agent_comes("a", FOUR_CPUS);
    order = submit_with("one", NULL);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    (void)beat(&order, order.lease_usec, KILL);
    agent_comes("b", FOUR_CPUS);
    set_loss_policy("requeue", 0);
    check_starts_after(&order, TIMEOUT + 100 * USEC_PER_SEC);
}

/* What an agent without leases has ends nobody: as before, timeout and grace count. */
static void other_policies_are_as_before(void **state)
{
    struct sent order;

    (void)state;
    set_loss_policy("terminate", 0);
    agent_comes("a", FOUR_CPUS);
    order = submit_with("one", NULL);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    (void)beat(&order, 0, 0);
    agent_goes("a");
    pass(TIMEOUT);
    pass(2 * USEC_PER_SEC);
    assert_int_equal(status_of(&order.session_id), GONE);
}

/* The node is back after the lease, before it is given up: its kernel was lost, it did not fail. */
static void a_kernel_that_it_ended_is_lost(void **state)
{
    struct sent order;

    (void)state;
    set_loss_policy("requeue", 0);
    agent_comes("a", FOUR_CPUS);
    order = submit_with("one", NULL);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    world.sent_count = 0;
    agent_reports_end(&order, 143, "agent-lost");
    assert_int_equal(status_of(&order.session_id), SESSION_SCHEDULED);
    assert_int_equal(find_sent(MSG_KERNEL_CREATE, 0)->attempt, 2);
    assert_int_equal(core_find_session(world.core, &order.session_id)->retry.attempts, 0);
    assert_clean();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    static const struct CMUnitTest tests[] = {
        TEST(who_has_one),
        TEST(a_reply_changes_it),
        TEST(a_lease_without_end),
        TEST(an_older_agent),
        TEST(nothing_starts_before_it_is_over),
        TEST(a_takeover_fits_into_it),
        TEST(a_former_lease_counts),
        TEST(other_policies_are_as_before),
        TEST(a_kernel_that_it_ended_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
