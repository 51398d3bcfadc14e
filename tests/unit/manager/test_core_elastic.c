/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with a minimum: kernels beyond it start when there is room, give way to sessions that
 * wait and come back; kernels of any session whose agent is lost start elsewhere.
 */
#include "world.h"

#define CPUS(n) "{\"cpu\":[\"count\",\"" n "\"],\"mem\":[\"bytes\",\"8589934592\"]}"

/* Of sessions that are submitted now. */
static const char *on_failure, *on_node_loss;

static struct uuid submit_elastic(const char *name, uint32_t size, int64_t least)
{
    struct slots one = { .items = NULL };
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = IMAGE_OF_PROCESSES,
                                   .spec.command = "true",
                                   .spec.cluster_size_min = least,
                                   .spec.on_failure = on_failure,
                                   .spec.on_node_loss = on_node_loss,
                                   .cluster_size = size,
                                   .multi_node = true,
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    struct answer a;

    slots_put(&one, slot_name_intern("cpu", 3), AMOUNT_ONE);
    req.resources = one;
    a = create(&req);
    slots_done(&one);
    if (a.r < 0)
        fail_msg("%s: %s", name, a.err.text);
    return a.created.id;
}

static const struct kernel *kernel_of(const struct uuid *id, size_t rank)
{
    return &core_find_session(world.core, id)->kernels[rank];
}

static struct sent order_of(const struct uuid *id, size_t rank)
{
    const struct kernel *k = kernel_of(id, rank);
    struct sent order = {
        .type = MSG_KERNEL_CREATE, .kernel_id = k->id, .session_id = *id, .attempt = k->attempt
    };

    (void)snprintf(order.agent_id, sizeof(order.agent_id), "%s", k->agent_id ? k->agent_id : "");
    return order;
}

static void report(const struct uuid *id, size_t rank, enum msg_kernel_state state)
{
    struct sent order = order_of(id, rank);

    agent_reports(&order, state);
}

static void report_exit(const struct uuid *id, size_t rank, int code)
{
    struct sent order = order_of(id, rank);

    agent_reports_exit(&order, code);
}

/* "R R S P": the first letters of the statuses of its kernels. */
static const char *kernels_of(const struct uuid *id)
{
    const struct session *s = core_find_session(world.core, id);
    static char text[32];
    size_t len = 0;

    for (size_t i = 0; s && i < s->kernel_count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%c", i ? " " : "",
                                kernel_status_name(s->kernels[i].status)[0]);
    text[len] = '\0';
    return text;
}

/* 2 to 4 kernels on an agent that has room for three; they run. */
static struct uuid run_three(void)
{
    struct uuid id;

    use_options("fifo", "{}");
    agent_comes("a", CPUS("3"));
    id = submit_elastic("elastic", 4, 2);
    assert_string_equal(kernels_of(&id), "S S P P");
    report(&id, 0, MSG_KERNEL_RUNNING);
    assert_string_equal(kernels_of(&id), "R S P P");
    report(&id, 1, MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_string_equal(kernels_of(&id), "R R S P");
    report(&id, 2, MSG_KERNEL_RUNNING);
    assert_string_equal(kernels_of(&id), "R R R P");
    assert_clean();
    return id;
}

static void it_starts_with_its_minimum_and_grows(void **state)
{
    struct uuid id = run_three();

    (void)state;
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 3);
    agent_comes("b", CPUS("1"));
    assert_string_equal(kernels_of(&id), "R R R S");
    assert_string_equal(kernel_of(&id, 3)->agent_id, "b");
    report_exit(&id, 0, 0); /* the session ends */
    assert_int_equal(status_of(&id), SESSION_TERMINATING);
    report_exit(&id, 1, 143);
    report_exit(&id, 2, 143);
    report_exit(&id, 3, 143);
    assert_int_equal(status_of(&id), GONE);
    assert_clean();
}

static void kernels_that_wait_are_cancelled_with_the_session(void **state)
{
    struct uuid id = run_three();
    struct answer a;

    (void)state;
    a = terminate(&id, false);
    assert_int_equal(a.r, 0);
    assert_string_equal(kernels_of(&id), "T T T C");
    for (size_t rank = 0; rank < 3; rank++)
        report_exit(&id, rank, 143);
    assert_int_equal(status_of(&id), GONE);
    assert_clean();
}

static void a_joining_kernel_is_released_when_it_is_ready(void **state)
{
    struct uuid id = run_three();
    struct sent order;
    struct msg_kernel_status ready;

    (void)state;
    agent_comes("b", CPUS("1"));
    order = order_of(&id, 3);
    ready = kernel_report(&order, MSG_KERNEL_CREATING);
    ready.is_ready = true;
    agent_says("b", ready);
    assert_int_equal(count_sent(MSG_KERNEL_RELEASE), 1);
    assert_clean();
}

static void it_gives_way_to_a_session_and_comes_back(void **state)
{
    struct uuid id = run_three(), other;
    const struct sent *order;

    (void)state;
    other = submit("other");
    assert_int_equal(status_of(&other), SESSION_PENDING);
    order = find_sent(MSG_KERNEL_DESTROY, 0);
    assert_non_null(order);
    assert_true(uuid_equals(&order->kernel_id, &kernel_of(&id, 2)->id));
    assert_int_equal(order->grace_usec, 10 * USEC_PER_SEC);
    assert_string_equal(order->reason, REASON_PREEMPTED);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_clean();
    report_exit(&id, 2, 143);
    assert_string_equal(kernels_of(&id), "R R P P");
    assert_int_equal(kernel_of(&id, 2)->attempt, 2);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_int_equal(status_of(&other), SESSION_SCHEDULED);
    assert_clean();
    report(&other, 0, MSG_KERNEL_RUNNING);
    report_exit(&other, 0, 0);
    assert_int_equal(status_of(&other), GONE);
    assert_string_equal(kernels_of(&id), "R R S P");
    assert_clean();
}

static void it_never_shrinks_below_its_minimum(void **state)
{
    struct uuid id = run_three(), one, two;

    (void)state;
    one = submit("one");
    two = submit("two");
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    report_exit(&id, 2, 143);
    assert_int_equal(status_of(&one), SESSION_SCHEDULED);
    assert_int_equal(status_of(&two), SESSION_PENDING);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    assert_clean();
}

static void a_shrink_outlives_the_manager(void **state)
{
    struct uuid id = run_three(), other = submit("other");
    struct msg_kernel_status reports[3];

    (void)state;
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    restart_core();
    assert_string_equal(kernels_of(&id), "R R R P");
    for (size_t rank = 0; rank < 3; rank++) {
        struct sent order = order_of(&id, rank);

        reports[rank] = kernel_report(&order, MSG_KERNEL_RUNNING);
    }
    world.sent_count = 0;
    assert_int_equal(agent_greets("a", CPUS("3"), uuid_random()), 0);
    agent_beats("a", reports, 3);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1); /* decided again */
    assert_clean();
    report_exit(&id, 2, 143);
    assert_string_equal(kernels_of(&id), "R R P P");
    assert_int_equal(status_of(&other), SESSION_SCHEDULED);
    assert_clean();
}

static void an_end_as_preempted_is_no_failure(void **state)
{
    struct uuid id = run_three();
    struct sent order = order_of(&id, 2);

    (void)state; /* a former manager has ended it */
    agent_reports_end(&order, 143, REASON_PREEMPTED);
    assert_string_equal(kernels_of(&id), "R R S P");
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_clean();
}

static void beat_with(const char *agent, const struct uuid *id)
{
    const struct session *s = core_find_session(world.core, id);
    struct msg_kernel_status reports[8];
    size_t count = 0;

    for (size_t i = 0; i < s->kernel_count; i++)
        if (s->kernels[i].status == KERNEL_RUNNING && strcmp(s->kernels[i].agent_id, agent) == 0) {
            struct sent order = order_of(id, i);

            reports[count++] = kernel_report(&order, MSG_KERNEL_RUNNING);
        }
    agent_beats(agent, reports, count);
}

static void a_kernel_that_fails_starts_again_three_times(void **state)
{
    struct uuid id;

    (void)state;
    agent_comes("a", CPUS("2"));
    id = submit_elastic("elastic", 2, 1);
    report(&id, 0, MSG_KERNEL_RUNNING);
    report(&id, 1, MSG_KERNEL_RUNNING);
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        assert_string_equal(kernels_of(&id), "R R");
        assert_int_equal(kernel_of(&id, 1)->attempt, attempt);
        report_exit(&id, 1, 1);
        pass(3 * USEC_PER_SEC); /* the backoff */
        beat_with("a", &id);
        assert_string_equal(kernels_of(&id), "R S");
        report(&id, 1, MSG_KERNEL_RUNNING);
        assert_int_equal(status_of(&id), SESSION_RUNNING);
        assert_clean();
    }
    report_exit(&id, 1, 1);
    assert_string_equal(kernels_of(&id), "R T");
    assert_int_equal(status_of(&id), SESSION_RUNNING_DEGRADED);
    assert_clean();
}

static void a_kernel_that_succeeds_is_not_missed(void **state)
{
    struct uuid id = run_three();

    (void)state;
    report_exit(&id, 2, 0);
    assert_string_equal(kernels_of(&id), "R R T S");
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_clean();
}

static void a_lost_kernel_starts_elsewhere(void **state)
{
    struct uuid id;

    (void)state;
    set_loss_policy("terminate", 0);
    agent_comes("a", CPUS("1"));
    agent_comes("b", CPUS("1"));
    id = submit_elastic("elastic", 3, 2);
    report(&id, 0, MSG_KERNEL_RUNNING);
    report(&id, 1, MSG_KERNEL_RUNNING);
    assert_string_equal(kernels_of(&id), "R R P");
    agent_goes(kernel_of(&id, 1)->agent_id);
    agent_comes("c", CPUS("1"));
    report(&id, 2, MSG_KERNEL_RUNNING);
    assert_string_equal(kernels_of(&id), "R R R");
    for (int i = 0; i < 40; i++) {
        pass(20 * USEC_PER_SEC);
        beat_with(kernel_of(&id, 0)->agent_id, &id);
        beat_with("c", &id);
    }
    assert_string_equal(kernels_of(&id), "R P R");
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    agent_comes("d", CPUS("1"));
    assert_string_equal(kernels_of(&id), "R S R");
    assert_string_equal(kernel_of(&id, 1)->agent_id, "d");
    assert_int_equal(kernel_of(&id, 1)->attempt, 2);
    assert_clean();
}

/* Of a session without a minimum: it cannot do without. */
static void a_lost_kernel_takes_the_place_of_an_optional_one(void **state)
{
    struct uuid plain, elastic;

    (void)state;
    set_loss_policy("terminate", 0);
    agent_comes("a", CPUS("1"));
    agent_comes("b", CPUS("1"));
    on_node_loss = "restart-kernel";
    plain = submit_elastic("plain", 2, 0);
    on_node_loss = NULL;
    report(&plain, 0, MSG_KERNEL_RUNNING);
    report(&plain, 1, MSG_KERNEL_RUNNING);
    agent_comes("c", CPUS("2"));
    elastic = submit_elastic("elastic", 2, 1);
    report(&elastic, 0, MSG_KERNEL_RUNNING);
    report(&elastic, 1, MSG_KERNEL_RUNNING);
    agent_goes(kernel_of(&plain, 1)->agent_id);
    for (int i = 0; i < 3; i++) {
        pass(20 * USEC_PER_SEC);
        beat_with(kernel_of(&plain, 0)->agent_id, &plain);
        beat_with("c", &elastic);
    }
    assert_string_equal(kernels_of(&plain), "R P");
    assert_int_equal(status_of(&plain), SESSION_RUNNING);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    assert_clean();
    report_exit(&elastic, 1, 143);
    assert_string_equal(kernels_of(&elastic), "R P");
    assert_string_equal(kernels_of(&plain), "R S");
    assert_string_equal(kernel_of(&plain, 1)->agent_id, "c");
    report(&plain, 1, MSG_KERNEL_RUNNING);
    assert_string_equal(kernels_of(&plain), "R R");
    assert_clean();
}

static void a_session_may_not_want_its_kernels_back(void **state)
{
    struct uuid id;

    (void)state;
    agent_comes("a", CPUS("2"));
    on_failure = "continue";
    id = submit_elastic("goes-on", 2, 1);
    on_failure = NULL;
    report(&id, 0, MSG_KERNEL_RUNNING);
    report(&id, 1, MSG_KERNEL_RUNNING);
    report_exit(&id, 1, 1);
    assert_string_equal(kernels_of(&id), "R T");
    assert_int_equal(status_of(&id), SESSION_RUNNING_DEGRADED);
    assert_clean();
}

static void on_restarted(void *data, int r, const struct aq_error *err)
{
    (void)err;
    *(int *)data = r;
}

static void a_restart_leaves_out_kernels_that_wait(void **state)
{
    struct uuid id = run_three();
    int r = -1;

    (void)state;
    core_restart_session(world.core, &id, &asker, on_restarted, &r);
    settle();
    assert_int_equal(status_of(&id), SESSION_RESTARTING);
    assert_int_equal(count_sent(MSG_KERNEL_RESTART), 3);
    for (size_t rank = 0; rank < 3; rank++)
        report(&id, rank, MSG_KERNEL_RUNNING);
    assert_int_equal(r, 0);
    assert_string_equal(kernels_of(&id), "R R R P");
    agent_comes("b", CPUS("1"));
    assert_string_equal(kernels_of(&id), "R R R S");
    assert_clean();
}

static void minimums_that_cannot_be(void **state)
{
    static const struct {
        const char *name;
        uint32_t size;
        int64_t least;
        bool is_valid;
    } rows[] = { { "more", 2, 3, false },
                 { "all", 2, 2, true },
                 { "one", 2, 1, true },
                 { "alone", 0, 2, false } };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct session_request req = { .name = rows[i].name,
                                       .type = SESSION_INTERACTIVE,
                                       .spec.image = "sh",
                                       .spec.cluster_size_min = rows[i].least,
                                       .cluster_size = rows[i].size,
                                       .access_key = USER_KEY,
                                       .priority = -1 };
        struct answer a = create(&req);

        assert_int_equal(a.r, rows[i].is_valid ? 0 : -EINVAL);
        if (!rows[i].is_valid)
            assert_string_equal(a.err.field, "clusterSizeMin");
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_starts_with_its_minimum_and_grows),
        TEST(kernels_that_wait_are_cancelled_with_the_session),
        TEST(a_joining_kernel_is_released_when_it_is_ready),
        TEST(it_gives_way_to_a_session_and_comes_back),
        TEST(it_never_shrinks_below_its_minimum),
        TEST(a_shrink_outlives_the_manager),
        TEST(an_end_as_preempted_is_no_failure),
        TEST(a_kernel_that_fails_starts_again_three_times),
        TEST(a_kernel_that_succeeds_is_not_missed),
        TEST(a_lost_kernel_starts_elsewhere),
        TEST(a_lost_kernel_takes_the_place_of_an_optional_one),
        TEST(a_session_may_not_want_its_kernels_back),
        TEST(a_restart_leaves_out_kernels_that_wait),
        TEST(minimums_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
