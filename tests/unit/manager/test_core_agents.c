/* SPDX-License-Identifier: Apache-2.0 */
/* Agents that come, go, lie low and come back; managers that start again. */
#include "world.h"

/* A running session on i-001; *ret_order is its kernel.create. */
static struct uuid run_one(const char *name, struct sent *ret_order)
{
    size_t before = count_sent(MSG_KERNEL_CREATE);
    struct uuid id = submit(name);

    *ret_order = *find_sent(MSG_KERNEL_CREATE, before);
    agent_reports(ret_order, MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    return id;
}

static enum agent_status agent_status_of(const char *id)
{
    return core_find_agent(world.core, id)->status;
}

static void test_first_contact(void **state)
{
    enum slot_type type;

    (void)state;
    agent_comes("i-001", "{\"cpu\":[\"count\",\"4\"],\"mem\":[\"bytes\",\"1073741824\"],"
                         "\"cuda.shares\":[\"count\",\"2.5\"]}");
    assert_int_equal(agent_status_of("i-001"), AGENT_ALIVE);
    assert_int_equal(slot_types_find(core_slot_types(world.core), "cuda.shares", &type), 0);
    assert_int_equal(type, SLOT_COUNT);
    assert_int_equal(slots_get(&core_find_agent(world.core, "i-001")->available, "cuda.shares"),
                     2500000);
    assert_clean();
    /* What it no longer offers stays known. */
    agent_comes("i-001", FOUR_CPUS);
    assert_int_equal(slots_get(&core_find_agent(world.core, "i-001")->available, "cuda.shares"), 0);
    assert_int_equal(slot_types_find(core_slot_types(world.core), "cuda.shares", &type), 0);
    /* Refused: another meaning of a known slot, nonsense, an unknown group. */
    assert_int_equal(agent_greets("i-002", "{\"cuda.shares\":[\"bytes\",\"1\"]}", uuid_random()),
                     -EINVAL);
    assert_int_equal(agent_greets("i-002", "{\"cpu\":[\"count\",\"-1\"]}", uuid_random()), -EINVAL);
    assert_int_equal(agent_greets("i-002", "[]", uuid_random()), -EINVAL);
    assert_int_equal(agent_greets("../i", FOUR_CPUS, uuid_random()), -EINVAL);
    assert_null(core_find_agent(world.core, "i-002"));
    assert_clean();
}

/* Who is told that an agent is connected can give it commands. */
static void test_connected_when_stored(void **state)
{
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = "i-001",
                               .incarnation = uuid_random(),
                               .version = "1",
                               .architecture = "x86_64",
                               .slots = FOUR_CPUS };
    struct msg_welcome welcome = { 0 };
    struct aq_error err;
    int64_t retry = 0;

    (void)state;
    assert_int_equal(inventory_link_ops.on_hello(world.core, &hello, &welcome, &retry, &err), 0);
    inventory_link_ops.on_connected(world.core, "i-001", &hello.incarnation);
    assert_null(core_find_agent(world.core, "i-001"));
    assert_false(core_agent_is_connected(world.core, "i-001"));
    settle();
    assert_non_null(core_find_agent(world.core, "i-001"));
    assert_true(core_agent_is_connected(world.core, "i-001"));
}

/* Nothing is written while nothing changes. */
static void test_quiet_heartbeats(void **state)
{
    uint64_t commits;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    commits = world.core->counts.commits;
    for (int i = 0; i < 20; i++) {
        agent_beats("i-001", NULL, 0);
        pass(3 * USEC_PER_SEC);
    }
    assert_int_equal(world.core->counts.commits, commits);
    assert_int_equal(agent_status_of("i-001"), AGENT_ALIVE);
}

static void test_lost_wait(void **state)
{
    struct uuid id;
    struct sent order;
    struct msg_kernel_status report;
    struct answer a = { 0 };

    (void)state;
    set_loss_policy("wait", 0);
    agent_comes("i-001", FOUR_CPUS);
    id = run_one("survivor", &order);
    agent_goes("i-001");
    pass(39 * USEC_PER_SEC);
    assert_int_equal(agent_status_of("i-001"), AGENT_ALIVE);
    pass(3 * USEC_PER_SEC);
    assert_int_equal(agent_status_of("i-001"), AGENT_LOST);
    pass(3600 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    drain_agent("i-001", true, NULL, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(agent_status_of("i-001"), AGENT_LOST); /* drained, no less lost */
    assert_clean();
    /* The same process comes back with the same kernel. */
    report = kernel_report(&order, MSG_KERNEL_RUNNING);
    assert_int_equal(agent_greets("i-001", FOUR_CPUS, uuid_random()), 0);
    agent_beats("i-001", &report, 1);
    assert_int_equal(agent_status_of("i-001"), AGENT_ALIVE);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 0);
    assert_clean();
}

/* An order to end may have died with the process that got it: the next one hears it, also if all
 * that it says of the kernel is known.
 */
static void test_end_is_ordered_again(void **state)
{
    struct uuid id;
    struct sent order;
    struct msg_kernel_status report;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    id = run_one("unwanted", &order);
    terminate(&id, false);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    report = kernel_report(&order, MSG_KERNEL_RUNNING);
    agent_goes("i-001");
    assert_int_equal(agent_greets("i-001", FOUR_CPUS, uuid_random()), 0);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1); /* nothing is known of it yet */
    agent_beats("i-001", &report, 1);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 2);
    agent_reports_exit(&order, 0);
    assert_int_equal(status_of(&id), GONE);
    assert_clean();
}

static void test_lost_terminate(void **state)
{
    struct uuid id;
    struct sent order;
    struct msg_kernel_status report;

    (void)state;
    set_loss_policy("terminate", 60 * USEC_PER_SEC);
    agent_comes("i-001", FOUR_CPUS);
    id = run_one("given-up", &order);
    report = kernel_report(&order, MSG_KERNEL_RUNNING);
    agent_goes("i-001");
    pass(60 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_RUNNING); /* lost, but within the grace */
    pass(60 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), GONE);
    assert_clean();
    /* It was only away: what it still runs is ended and forgotten. */
    world.sent_count = 0;
    assert_int_equal(agent_greets("i-001", FOUR_CPUS, uuid_random()), 0);
    agent_beats("i-001", &report, 1);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    assert_string_equal(find_sent(MSG_KERNEL_DESTROY, 0)->reason, "not-found-in-manager");
    report.state = MSG_KERNEL_TERMINATED;
    agent_beats("i-001", &report, 1);
    assert_int_equal(count_sent(MSG_KERNEL_FORGET), 1);
    assert_clean();
}

static void test_lost_requeue(void **state)
{
    struct uuid id;
    struct sent order, *second;
    struct msg_kernel_status old;

    (void)state;
    set_loss_policy("requeue", 0);
    agent_comes("i-001", FOUR_CPUS);
    id = run_one("moves-on", &order);
    old = kernel_report(&order, MSG_KERNEL_RUNNING);
    agent_comes("i-002", FOUR_CPUS);
    agent_goes("i-001");
    for (int i = 0; i < 55; i++) { /* 40 s, then until the lease is over */
        agent_beats("i-002", NULL, 0);
        pass(USEC_PER_SEC);
    }
    second = find_sent(MSG_KERNEL_CREATE, 1);
    assert_non_null(second);
    assert_string_equal(second->agent_id, "i-002");
    assert_int_equal(second->attempt, 2);
    assert_int_equal(status_of(&id), SESSION_SCHEDULED);
    assert_clean();
    /* The first one returns: its attempt must not go on beside the second. */
    agent_reports(second, MSG_KERNEL_RUNNING);
    world.sent_count = 0;
    assert_int_equal(agent_greets("i-001", FOUR_CPUS, uuid_random()), 0);
    agent_beats("i-001", &old, 1);
    assert_int_equal(find_sent(MSG_KERNEL_DESTROY, 0)->attempt, 1);
    assert_string_equal(find_sent(MSG_KERNEL_DESTROY, 0)->agent_id, "i-001");
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    old.state = MSG_KERNEL_TERMINATED;
    agent_says("i-001", old);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_clean();
}

/* The manager ends at each stage; the agent's inventory carries on. */
static void test_manager_restarts(void **state)
{
    struct uuid id, waiting;
    struct sent order;
    struct msg_kernel_status report;

    (void)state;
    waiting = submit("not-yet");
    restart_core();
    assert_int_equal(status_of(&waiting), SESSION_PENDING);
    agent_comes("i-001", FOUR_CPUS);
    order = *find_sent(MSG_KERNEL_CREATE, 0);
    id = waiting;

    restart_core(); /* the order was sent, and nothing heard */
    assert_int_equal(status_of(&id), SESSION_SCHEDULED);
    assert_clean();
    agent_comes("i-001", FOUR_CPUS);
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 1); /* again, the same attempt */
    assert_int_equal(find_sent(MSG_KERNEL_CREATE, 0)->attempt, 1);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&id), SESSION_RUNNING);

    restart_core();
    report = kernel_report(&order, MSG_KERNEL_RUNNING);
    assert_int_equal(agent_greets("i-001", FOUR_CPUS, uuid_random()), 0);
    agent_beats("i-001", &report, 1);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 0);
    assert_int_equal(terminate(&id, false).r, 0);

    restart_core(); /* while it is being ended */
    assert_int_equal(status_of(&id), SESSION_TERMINATING);
    assert_int_equal(agent_greets("i-001", FOUR_CPUS, uuid_random()), 0);
    agent_beats("i-001", &report, 1);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    report.state = MSG_KERNEL_TERMINATED;
    report.has_exit = true;
    report.exit_code = 143;
    agent_says("i-001", report);
    assert_int_equal(status_of(&id), GONE);

    restart_core(); /* before the agent was told to forget */
    assert_int_equal(agent_greets("i-001", FOUR_CPUS, uuid_random()), 0);
    agent_beats("i-001", &report, 1);
    assert_int_equal(count_sent(MSG_KERNEL_FORGET), 1);
    assert_clean();
}

/* It ended while no manager was there. */
static void test_end_found_in_inventory(void **state)
{
    struct uuid id;
    struct sent order;
    struct msg_kernel_status report;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    id = run_one("ended-unseen", &order);
    report = kernel_report(&order, MSG_KERNEL_TERMINATED);
    report.has_exit = true;
    restart_core();
    assert_int_equal(agent_greets("i-001", FOUR_CPUS, uuid_random()), 0);
    agent_beats("i-001", &report, 1);
    assert_int_equal(status_of(&id), GONE);
    assert_int_equal(count_sent(MSG_KERNEL_FORGET), 1);
    assert_non_null(strstr(world.events, "session_success"));
    assert_clean();
}

/* An agent that lost its directories: the program is not there any more. */
static void test_absent(void **state)
{
    struct uuid id;
    struct sent order;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    id = run_one("vanishes", &order);
    agent_comes("i-001", FOUR_CPUS); /* another process, an empty inventory */
    assert_int_equal(status_of(&id), GONE);
    assert_non_null(strstr(world.events, "session_failure"));
    assert_clean();
}

static void test_failed_start(void **state)
{
    static const struct {
        const char *kind;
        bool again;
    } rows[] = { { "command-not-found", false },
                 { "unsupported-resource", true },
                 { "fractional-resource-fragmented", true },
                 { "draining", true } };

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    agent_comes("i-002", FOUR_CPUS);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct msg_kernel_status report;
        struct sent order, *second;
        struct uuid id;

        world.sent_count = 0;
        id = submit("wont-start");
        order = *find_sent(MSG_KERNEL_CREATE, 0);
        report = kernel_report(&order, MSG_KERNEL_ERROR);
        report.error_kind = rows[i].kind;
        report.error_text = "no";
        agent_says(order.agent_id, report);
        second = find_sent(MSG_KERNEL_CREATE, 1);
        assert_row((second != NULL) == rows[i].again, "%s", rows[i].kind);
        assert_int_equal(count_sent(MSG_KERNEL_FORGET), 1);
        if (second) {
            assert_string_not_equal(second->agent_id, order.agent_id);
            assert_int_equal(second->attempt, 2);
            assert_int_equal(terminate(&id, true).r, 0);
            report = kernel_report(second, MSG_KERNEL_TERMINATED);
            agent_says(second->agent_id, report);
        }
        assert_int_equal(status_of(&id), GONE);
        assert_clean();
    }
}

/* What the agent said is told while the session waits for another attempt. */
static void test_refusal_is_told(void **state)
{
    static const char sentence[] = "Agent 'i-001' could not start it: no such slot here"
                                   " (cuda.shares)";
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
    struct msg_kernel_status report;
    struct answer a = { 0 };
    struct uuid id;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    id = submit("unwanted");
    drain_agent("i-001", true, NULL, &a);
    settle();
    report = kernel_report(find_sent(MSG_KERNEL_CREATE, 0), MSG_KERNEL_ERROR);
    report.error_kind = "unsupported-resource";
    report.error_field = "cuda.shares";
    report.error_text = "no such slot here";
    agent_says("i-001", report);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    assert_int_equal(core_explain(world.core, &id, &text, &json, NULL), 0);
    assert_non_null(strstr(text.data, sentence));
    strbuf_clear(&text);
    core_status_text(json.data, &text); /* as it is kept */
    assert_non_null(strstr(text.data, sentence));
    pass(3 * USEC_PER_SEC); /* the scheduler has explained it too */
    assert_non_null(strstr(core_find_session(world.core, &id)->status_data, "\"cuda.shares\""));
    assert_non_null(strstr(core_find_session(world.core, &id)->status_data, "\"kind\""));
    restart_core();
    assert_non_null(strstr(core_find_session(world.core, &id)->status_data, "\"cuda.shares\""));
    assert_clean();
}

static void test_status_text(void **state)
{
    static const struct {
        const char *data, *text;
    } rows[] = {
        { NULL, "" },
        { "{}", "" },
        { "no json", "" },
        { "{\"error\":null}", "" },
        { "{\"error\":{}}", "It could not be started: no reason was given" },
        { "{\"error\":{\"name\":\"busy\"}}", "It could not be started: busy" },
        { "{\"error\":{\"agent_id\":\"a\",\"field\":\"x\",\"repr\":\"slot 'x' is short\"}}",
          "Agent 'a' could not start it: slot 'x' is short" },
        { "{\"error\":{\"agent_id\":\"a\",\"name\":\"busy\",\"field\":\"x\"}}",
          "Agent 'a' could not start it: busy (x)" },
        { "{\"text\":\"no room\",\"error\":{\"name\":\"busy\"}}",
          "no room\nIt could not be started: busy" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        core_status_text(rows[i].data, &text);
        assert_string_equal(text.data, rows[i].text);
    }
}

static void test_drain(void **state)
{
    struct answer a = { 0 };
    struct uuid id;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    drain_agent("i-001", true, "new disk", &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_false(core_find_agent(world.core, "i-001")->schedulable);
    assert_string_equal(core_find_agent(world.core, "i-001")->drain_reason, "new disk");
    id = submit("waits-for-agent");
    assert_int_equal(status_of(&id), SESSION_PENDING);
    restart_core();
    agent_comes("i-001", FOUR_CPUS); /* greeting again does not undo it */
    assert_int_equal(status_of(&id), SESSION_PENDING);
    a = (struct answer){ 0 };
    drain_agent("i-001", false, NULL, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(status_of(&id), SESSION_SCHEDULED);
    assert_null(core_find_agent(world.core, "i-001")->drain_reason);
    a = (struct answer){ 0 };
    drain_agent("nobody", true, NULL, &a);
    settle();
    assert_int_equal(a.r, -ENOENT);
    assert_clean();
}

static void test_remove(void **state)
{
    struct answer a = { 0 };
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    id = run_one("holds-on", &order);
    core_remove_agent(world.core, "i-001", &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, -EBUSY);
    agent_reports_exit(&order, 0);
    assert_int_equal(status_of(&id), GONE);
    a = (struct answer){ 0 };
    core_remove_agent(world.core, "i-001", &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_null(core_find_agent(world.core, "i-001"));
    assert_audited("revoke-agent", 1, NULL);
    assert_audited("remove-agent", 1, NULL);
    a = (struct answer){ 0 };
    core_remove_agent(world.core, "i-001", &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, -ENOENT);
    assert_clean();
}

/* This process was stopped for minutes: nobody was silent in that time. */
static void test_manager_slept(void **state)
{
    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    world_mono += 300 * USEC_PER_SEC;
    world_wall += 300 * USEC_PER_SEC;
    liveness_tick(world.core, world_mono);
    settle();
    assert_int_equal(agent_status_of("i-001"), AGENT_ALIVE);
    world_wall += 86400 * USEC_PER_SEC; /* and a clock that is set says nothing */
    pass(5 * USEC_PER_SEC);
    assert_int_equal(agent_status_of("i-001"), AGENT_ALIVE);
}

/* An agent that answers nothing: the start has a deadline. */
static void test_hang(void **state)
{
    struct uuid id;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    id = submit("hangs");
    for (int i = 0; i < 610; i += 5) {
        struct msg_kernel_status report = kernel_report(find_sent(MSG_KERNEL_CREATE, 0),
                                                        MSG_KERNEL_CREATING);

        agent_beats("i-001", &report, 1);
        pass(5 * USEC_PER_SEC);
    }
    /* PREPARING it is by now, which has more time. */
    assert_int_equal(status_of(&id), SESSION_PREPARING);
    for (int i = 0; i < 3600; i += 5) {
        struct msg_kernel_status report = kernel_report(find_sent(MSG_KERNEL_CREATE, 0),
                                                        MSG_KERNEL_CREATING);

        agent_beats("i-001", &report, 1);
        pass(5 * USEC_PER_SEC);
    }
    assert_int_equal(status_of(&id), SESSION_TERMINATING);
    assert_string_equal(core_find_session(world.core, &id)->reason, "hang-timeout");
    for (int i = 0; i < 1810; i += 5)
        pass(5 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), GONE);
    assert_clean();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    static const struct CMUnitTest tests[] = {
        TEST(test_first_contact),
        TEST(test_connected_when_stored),
        TEST(test_quiet_heartbeats),
        TEST(test_lost_wait),
        TEST(test_end_is_ordered_again),
        TEST(test_lost_terminate),
        TEST(test_lost_requeue),
        TEST(test_manager_restarts),
        TEST(test_end_found_in_inventory),
        TEST(test_absent),
        TEST(test_failed_start),
        TEST(test_refusal_is_told),
        TEST(test_status_text),
        TEST(test_drain),
        TEST(test_remove),
        TEST(test_manager_slept),
        TEST(test_hang),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
