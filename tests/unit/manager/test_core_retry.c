/* SPDX-License-Identifier: Apache-2.0 */
/* Starts that fail or never end: tried again, elsewhere first, and given up in
 * the end; a session that blocks others for too long lets them pass. The counts hold
 * through restarts of the manager.
 */
#include "world.h"

#define NAMED(...) "{\"handler_options\":{" __VA_ARGS__ "}}"

static const struct retry_record *retry_of(const struct uuid *id)
{
    return &core_find_session(world.core, id)->retry;
}

/* The n-th order to start, which 'agent' must have got. */
static struct sent ordered(size_t n, const char *agent)
{
    const struct sent *s = find_sent(MSG_KERNEL_CREATE, n);

    assert_row(s != NULL, "order %zu", n);
    assert_string_equal(s->agent_id, agent);
    return *s;
}

static void refuse(const struct sent *order, const char *kind)
{
    struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_ERROR);

    report.error_kind = kind;
    report.error_text = "no";
    agent_says(order->agent_id, report);
}

/* Time passes while these agents are heard; they have nothing. */
static void pass_heard(int64_t sec, const char *agents)
{
    for (; sec > 0; sec--) {
        pass(USEC_PER_SEC);
        for (const char *a = agents; *a; a++)
            agent_beats((char[]){ *a, '\0' }, NULL, 0);
    }
}

/* Two agents in turn: 1 at once, 2 after 1 s, then 2, 4 and 8 s; the sixth is the last. */
static void refused_again_and_again(void **state)
{
    static const int waits[] = { 0, 1, 2, 4, 8 };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    agent_comes("b", FOUR_CPUS);
    id = submit("unlucky");
    for (size_t i = 0; i < 5; i++) {
        order = ordered(i, i % 2 ? "b" : "a");
        refuse(&order, "busy");
        assert_int_equal(retry_of(&id)->attempts, i + 1);
        assert_int_equal(retry_of(&id)->step, RETRY_START);
        assert_int_equal(order.attempt, i + 1);
        if (i == 2) {
            assert_int_equal(core_explain(world.core, &id, &text, NULL, NULL), 0);
            assert_non_null(
                strstr(text.data, "Its start has failed 3 times; it is tried again in"));
            assert_non_null(strstr(text.data, "given up when 6 tries have failed"));
            assert_non_null(strstr(text.data, "Agent 'a' could not start it: no"));
        }
        pass_heard(AQ_MAX(waits[i] - 1, 0), "ab");
        assert_int_equal(status_of(&id), waits[i] ? SESSION_PENDING : SESSION_SCHEDULED);
        pass_heard(1, "ab");
        assert_int_equal(status_of(&id), SESSION_SCHEDULED);
        assert_clean();
    }
    order = ordered(5, "b");
    refuse(&order, "busy");
    assert_int_equal(status_of(&id), GONE);
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 6);
    check_attempts(&id, "placed:1! need-retry:1 placed:1! need-retry:1 placed:1! need-retry:1 "
                        "placed:1! need-retry:1 too-early:1 placed:1! need-retry:1 too-early:1 "
                        "placed:1! give-up:1 ");
    assert_clean();
}

/* Killed after the third failure: the manager that comes next counts on. */
static void a_restart_keeps_the_count(void **state)
{
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    id = submit("unlucky");
    for (size_t i = 0; i < 3; i++) {
        order = ordered(i, "a");
        refuse(&order, "busy");
        pass_heard(i, "a");
    }
    restart_core();
    assert_int_equal(retry_of(&id)->attempts, 3);
    agent_comes("a", FOUR_CPUS); /* tries at once */
    for (size_t i = 0; i < 3; i++) {
        order = ordered(i, "a");
        assert_int_equal(order.attempt, i + 4);
        refuse(&order, "busy");
        pass_heard(8, "a");
    }
    assert_int_equal(status_of(&id), GONE);
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 3);
    assert_clean();
}

static void who_runs_has_a_clean_record(void **state)
{
    struct answer a = { 0 };
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    agent_comes("b", FOUR_CPUS);
    id = submit("lucky");
    order = ordered(0, "a");
    refuse(&order, "busy");
    order = ordered(1, "b");
    assert_int_equal(retry_of(&id)->attempts, 1);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_int_equal(retry_of(&id)->attempts, 0);
    restart_core();
    assert_int_equal(retry_of(&id)->attempts, 0);
    core_terminate_session(world.core, &id, true, NULL, NULL, on_answer, &a);
    settle();
    assert_clean();
}

/* What no other try can cure is given up the first time. */
static void some_failures_are_final(void **state)
{
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    id = submit("wrong");
    order = ordered(0, "a");
    refuse(&order, "command-not-found");
    assert_int_equal(status_of(&id), GONE);
    check_attempts(&id, "placed:1! give-up:1 ");
}

static void pulls(const struct sent *order, const char *image_state)
{
    struct message msg = { .type = MSG_IMAGE_STATUS,
                           .image_status = { .session_id = order->session_id,
                                             .kernel_id = order->kernel_id,
                                             .image = "big",
                                             .state = image_state } };

    inventory_link_ops.on_message(world.core, order->agent_id, &msg);
    settle();
}

/* The agent goes on to have the kernel in this state. */
static void pass_starting(int64_t sec, const struct sent *order)
{
    for (; sec > 0; sec--) {
        struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_CREATING);

        pass(USEC_PER_SEC);
        agent_beats(order->agent_id, &report, 1);
    }
}

static void an_image_that_never_comes(void **state)
{
    struct uuid id;

    (void)state;
    use_options(
        "fifo",
        NAMED("\"check-precondition.timeout\":20,\"check-precondition.max_retry_count\":2"));
    agent_comes("a", FOUR_CPUS);
    id = submit("patient");
    for (size_t i = 0; i < 3; i++) {
        struct sent order = ordered(i, "a");

        agent_reports(&order, MSG_KERNEL_CREATING);
        pulls(&order, "fetching");
        pass_starting(19, &order);
        assert_int_equal(status_of(&id), SESSION_PREPARING);
        assert_int_equal(retry_of(&id)->attempts, i);
        pass_starting(3, &order);
        assert_int_equal(status_of(&id), i < 2 ? SESSION_RESCHEDULING : SESSION_TERMINATING);
        if (i < 2)
            assert_int_equal(retry_of(&id)->step, RETRY_PRECONDITION);
        assert_int_equal(count_sent(MSG_KERNEL_DESTROY), i + 1);
        assert_clean();
        agent_reports_exit(&order, 137);
        pass_heard(i + 1, "a");
    }
    assert_int_equal(status_of(&id), GONE);
    check_attempts(&id, "placed:1! expired:1 placed:1! expired:1 placed:1! give-up:1 ");
    assert_clean();
}

/* A group that allows an image more time than any start may take in general. */
static void an_image_that_takes_hours(void **state)
{
    struct sent order;
    struct uuid id;

    (void)state;
    for (int allows = 0; allows < 2; allows++) {
        if (allows) {
            world_end(state);
            world_begin(state);
        }
        use_options("fifo", allows ? NAMED("\"check-precondition.timeout\":9000") : "{}");
        agent_comes("a", FOUR_CPUS);
        id = submit("huge");
        order = ordered(0, "a");
        agent_reports(&order, MSG_KERNEL_CREATING);
        pulls(&order, "fetching");
        for (int i = 0; i < 899; i++) {
            pass_starting(10, &order);
            world.sent_count = 0; /* it is asked about often */
        }
        assert_int_equal(status_of(&id), allows ? SESSION_PREPARING : GONE);
        pass_starting(20, &order);
        assert_int_equal(status_of(&id), allows ? SESSION_RESCHEDULING : GONE);
    }
    assert_int_equal(retry_of(&id)->step, RETRY_PRECONDITION);
}

/* The image takes its time, which is another step's; then nothing happens. */
static void a_start_that_never_ends(void **state)
{
    struct sent order;
    struct uuid id;

    (void)state;
    use_options("fifo", NAMED("\"start-sessions.timeout\":20"));
    agent_comes("a", FOUR_CPUS);
    id = submit("stuck");
    order = ordered(0, "a");
    agent_reports(&order, MSG_KERNEL_CREATING);
    pulls(&order, "fetching");
    pass_starting(100, &order);
    pulls(&order, "ready");
    pass_starting(19, &order);
    assert_int_equal(status_of(&id), SESSION_PREPARING);
    pass_starting(3, &order);
    assert_int_equal(status_of(&id), SESSION_RESCHEDULING);
    assert_int_equal(retry_of(&id)->step, RETRY_START);
    agent_reports_exit(&order, 137);
    assert_int_equal(status_of(&id), SESSION_SCHEDULED);
    check_attempts(&id, "placed:1! expired:1 placed:1! ");
    assert_clean();
}

static struct uuid wants(const char *name, int cpus, int priority)
{
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = priority };
    struct answer a;

    assert_int_equal(slots_set(&req.resources, slot_name_intern("cpu", 3), cpus * AMOUNT_ONE), 0);
    a = create(&req);
    assert_int_equal(a.r, 0);
    slots_done(&req.resources);
    return a.created.id;
}

/* The worked example: five fail, the sixth is given up: 10 -> 0, and the next goes first. */
static void who_holds_up_others_is_lowered(void **state)
{
    struct uuid holds, big, small, later;

    (void)state;
    use_options("fifo", NAMED("\"schedule-sessions.max_retry_count\":5"));
    agent_comes("a", FOUR_CPUS);
    holds = wants("holds", 1, 10);
    big = wants("big-one", 4, 10);
    small = wants("small", 1, 10);
    assert_int_equal(status_of(&small), SESSION_PENDING);
    pass_heard(4, "");
    assert_int_equal(core_find_session(world.core, &big)->priority, 10);
    assert_int_equal(status_of(&small), SESSION_PENDING);
    pass_heard(2, "");
    assert_int_equal(core_find_session(world.core, &big)->priority, 0);
    assert_int_equal(status_of(&big), SESSION_PENDING);
    assert_int_equal(status_of(&small), SESSION_SCHEDULED);
    later = wants("later", 1, 5);
    assert_int_equal(status_of(&later), SESSION_SCHEDULED);
    assert_int_equal(status_of(&holds), SESSION_SCHEDULED);
    restart_core();
    assert_int_equal(core_find_session(world.core, &big)->priority, 0);
    assert_clean();
}

/* From 5 to 0, and not below; at 0 nothing is written any more. */
static void nobody_falls_below_zero(void **state)
{
    struct uuid big, small;
    uint64_t commits;

    (void)state;
    use_options("fifo", NAMED("\"schedule-sessions.max_retry_count\":2"));
    agent_comes("a", FOUR_CPUS);
    (void)wants("holds", 1, 10);
    big = wants("big-one", 4, 5);
    small = wants("small", 4, 0);
    pass_heard(4, "");
    assert_int_equal(core_find_session(world.core, &big)->priority, 0);
    assert_int_equal(status_of(&small), SESSION_PENDING); /* behind it still: it came later */
    pass_heard(4, "");
    commits = world.core->counts.commits;
    pass_heard(20, "");
    assert_int_equal(core_find_session(world.core, &big)->priority, 0);
    assert_true(world.core->counts.commits <= commits + 1);
    assert_clean();
}

static void waiting_expires(void **state)
{
    struct uuid id;

    (void)state;
    use_options("fifo", NAMED("\"schedule-sessions.timeout\":10"));
    id = submit("nowhere");
    pass_heard(9, "");
    assert_int_equal(status_of(&id), SESSION_PENDING);
    pass_heard(2, "");
    assert_int_equal(status_of(&id), GONE);
    check_attempts(&id, "no-agent:1 expired:1 ");
}

/* Nobody else submits anything: the first is passed all the same, when it has failed thrice. */
static void a_blocker_is_looked_at_again(void **state)
{
    struct uuid small;

    (void)state;
    use_options("fifo", "{\"config\":{\"num_retries_to_skip\":3}}");
    agent_comes("a", FOUR_CPUS);
    (void)wants("holds", 1, 10);
    (void)wants("big-one", 4, 10);
    small = wants("small", 1, 10);
    assert_int_equal(status_of(&small), SESSION_PENDING);
    pass_heard(3, "");
    assert_int_equal(status_of(&small), SESSION_SCHEDULED);
}

static void refused(const char *opts, const char *names)
{
    struct resource_group g = { .scheduler_opts = (char *)(uintptr_t)opts };
    struct aq_error err;

    assert_row(core_check_scheduling(&g, &err) == -EINVAL, "%s", opts);
    assert_string_equal(err.field, "handler_options");
    assert_row(strstr(err.text, names) != NULL, "%s: %s", opts, err.text);
}

static void settings_that_cannot_be(void **state)
{
    struct resource_group g = {
        .scheduler_opts = (char[]){ NAMED(
            "\"start-sessions.max_retry_count\":0,\"schedule-sessions.timeout\":1.5") }
    };
    struct core_scheduling s;

    (void)state;
    core_read_scheduling(&g, &s);
    assert_int_equal(s.retry[RETRY_START].max_retry_count, 0);
    assert_int_equal(s.retry[RETRY_PRECONDITION].max_retry_count, 5);
    assert_int_equal(s.retry[RETRY_SCHEDULE].max_retry_count, 0);
    assert_int_equal(s.retry[RETRY_SCHEDULE].timeout_usec, 1500000);
    refused("{\"handler_options\":5}", "object");
    refused(NAMED("\"start-sessions\":5"), "'start-sessions'");
    refused(NAMED("\"stop-sessions.timeout\":5"), "'stop-sessions.timeout'");
    refused(NAMED("\"start-sessions.retries\":5"), "check-precondition");
    refused(NAMED("\"start-sessions.timeout\":-1"), "start-sessions.timeout");
    refused(NAMED("\"start-sessions.timeout\":\"1\""), "number of seconds");
    refused(NAMED("\"start-sessions.max_retry_count\":1.5"), "max_retry_count");
    refused(NAMED("\"start-sessions.max_retry_count\":1000001"), "1000000");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(refused_again_and_again),      TEST(a_restart_keeps_the_count),
        TEST(who_runs_has_a_clean_record),  TEST(some_failures_are_final),
        TEST(an_image_that_never_comes),    TEST(an_image_that_takes_hours),
        TEST(a_start_that_never_ends),      TEST(who_holds_up_others_is_lowered),
        TEST(nobody_falls_below_zero),      TEST(waiting_expires),
        TEST(a_blocker_is_looked_at_again), cmocka_unit_test(settings_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
