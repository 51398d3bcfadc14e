/* SPDX-License-Identifier: Apache-2.0 */
/* Other parts of devices for a session that runs: all of its kernels or none, whichever agent refuses,
 * goes or dies; and the limits of those that it counts for.
 */
#include "world.h"

#define TWO_GPUS                                                     \
    "{\"cpu\":[\"count\",\"1\"],\"mem\":[\"bytes\",\"8589934592\"]," \
    "\"cuda.shares\":[\"count\",\"2\"]}"
#define HALF "{\"cpu\":\"1\",\"cuda.shares\":\"0.5\",\"mem\":\"1073741824\"}"
#define WHOLE "{\"cpu\":\"1\",\"cuda.shares\":\"1\",\"mem\":\"1073741824\"}"

static struct uuid session;
static struct sent kernels[3]; /* their orders, by rank */

/* One of 0.5 in each of its kernels, RUNNING; on agents a1, a2, a3 if there are several. */
static void begin(uint32_t size)
{
    struct session_request req = { .name = "train",
                                   .type = SESSION_INTERACTIVE,
                                   .spec.image = IMAGE_OF_PROCESSES, /* needs no network */
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .cluster_size = size,
                                   .multi_node = true };
    static struct answer a;

    for (uint32_t i = 0; i < size; i++)
        agent_comes((const char *[]){ "a1", "a2", "a3" }[i], TWO_GPUS);
    assert_int_equal(slots_set(&req.resources, "cuda.shares", AMOUNT_ONE / 2), 0);
    a = create(&req);
    slots_done(&req.resources);
    assert_row(a.r == 0, "%s", a.err.text);
    session = a.created.id;
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), size);
    for (uint32_t i = 0; i < size; i++) {
        const struct sent *order = find_sent(MSG_KERNEL_CREATE, i);

        kernels[core_find_kernel(world.core, &order->kernel_id)->rank] = *order;
    }
    for (uint32_t i = 0; i < size; i++)
        agent_reports(&kernels[i], MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    world.sent_count = 0;
}

static void resize_request(int64_t shares, struct answer *a)
{
    AQ_CLEANUP(slots_donep) struct slots changes = { .items = NULL };

    *a = (struct answer){ .came = false };
    assert_int_equal(slots_set(&changes, "cuda.shares", shares), 0);
    core_resize_session(world.core, &session, &changes, &asker, on_answer, a);
    settle();
}

/* The agent of a kernel says what that holds, and could hold by a trial. */
static void says(size_t rank, const char *held, const char *prepared, int64_t trial)
{
    struct msg_kernel_status report = kernel_report(&kernels[rank], MSG_KERNEL_RUNNING);

    report.slots = held;
    report.prepared = prepared;
    report.trial = trial;
    agent_says(kernels[rank].agent_id, report);
}

static void refuses_as(size_t rank, enum msg_kernel_state state, int64_t trial)
{
    struct msg_kernel_status report = kernel_report(&kernels[rank], state);

    report.slots = HALF;
    report.error_kind = "insufficient-resource";
    report.error_field = "cuda.shares";
    report.error_text = "cuda.shares: no";
    report.trial = trial;
    agent_says(kernels[rank].agent_id, report);
}

static void refuses(size_t rank, int64_t trial)
{
    refuses_as(rank, MSG_KERNEL_RUNNING, trial);
}

static void rows_have(size_t count, int64_t shares)
{
    const struct session *s = core_find_session(world.core, &session);

    for (size_t i = 0; i < count; i++)
        assert_int_equal(slots_get(&s->kernels[i].requested, "cuda.shares"), shares);
}

/* The orders since the last look, of all kernels: trial ones, or ones to hold 'slots'. */
static int64_t orders_are(size_t count, bool is_trial, const char *slots)
{
    int64_t trial = 0;

    assert_int_equal(count_sent(MSG_KERNEL_RESIZE), count);
    for (size_t i = 0; i < count; i++) {
        const struct sent *order = find_sent(MSG_KERNEL_RESIZE, i);

        assert_int_equal(order->trial != 0, is_trial);
        assert_string_equal(order->slots, slots);
        trial = order->trial;
    }
    world.sent_count = 0;
    return trial;
}

/* Two kernels of half a device each are tried with a whole one. The trial's number. */
static int64_t try_whole(struct answer *ret)
{
    begin(2);
    resize_request(AMOUNT_ONE, ret);
    return orders_are(2, true, WHOLE);
}

static void test_all_kernels(void **state)
{
    static struct answer a;
    int64_t trial;

    (void)state;
    begin(3);
    resize_request(AMOUNT_ONE, &a);
    trial = orders_are(3, true, WHOLE);
    for (size_t i = 0; i < 3; i++) {
        rows_have(3, AMOUNT_ONE / 2); /* nothing is decided before the last can */
        says(i, HALF, WHOLE, trial);
    }
    rows_have(3, AMOUNT_ONE);
    (void)orders_are(3, false, WHOLE);
    assert_non_null(strstr(world.events, "kernel_resized kernel_resized kernel_resized "));
    says(0, WHOLE, NULL, 0);
    says(1, WHOLE, NULL, 0);
    assert_false(a.came); /* only when it is so everywhere */
    says(2, WHOLE, NULL, 0);
    assert_true(a.came);
    assert_int_equal(a.r, 0);
    assert_int_equal(world.sent_count, 0);
    assert_audited("resize-session", 1,
                   "{\"before\":{\"resources\":" HALF "},\"after\":{\"resources\":" WHOLE "}}");
    assert_clean();
}

static void test_one_cannot(void **state)
{
    static struct answer a;
    int64_t trial;

    (void)state;
    trial = try_whole(&a);
    says(0, HALF, WHOLE, trial);
    refuses(1, trial);
    assert_true(a.came);
    assert_int_equal(a.r, -EINVAL);
    assert_string_equal(a.err.field, "cuda.shares");
    (void)orders_are(2, false, HALF);
    rows_have(2, AMOUNT_ONE / 2);
    says(0, HALF, WHOLE, trial); /* that has crossed the order: it is told again */
    (void)orders_are(1, false, HALF);
    says(0, HALF, NULL, 0);
    assert_int_equal(world.sent_count, 0);
    assert_audited("resize-session", 0, NULL);
    assert_clean();
}

/* It has just started and not found the program again. */
static void test_refused_early(void **state)
{
    static struct answer a;

    (void)state;
    begin(1);
    resize_request(AMOUNT_ONE, &a);
    refuses_as(0, MSG_KERNEL_CREATING, orders_are(1, true, WHOLE));
    assert_true(a.came);
    assert_int_equal(a.r, -EINVAL);
    rows_have(1, AMOUNT_ONE / 2);
    resize_request(AMOUNT_ONE, &a);
    assert_false(a.came);
    assert_clean();
}

/* What an agent was prepared for before is no answer to a later request. */
static void test_former_answer(void **state)
{
    static struct answer first, second;
    int64_t trial, other;

    (void)state;
    begin(2);
    resize_request(AMOUNT_ONE, &first);
    trial = orders_are(2, true, WHOLE);
    refuses(1, trial);
    assert_int_equal(first.r, -EINVAL);
    world.sent_count = 0;
    pass(USEC_PER_SEC);
    resize_request(AMOUNT_ONE, &second);
    other = orders_are(2, true, WHOLE);
    assert_int_not_equal(other, trial);
    says(0, HALF, WHOLE, trial);
    refuses(0, trial); /* nor what it refused */
    assert_false(second.came);
    says(1, HALF, WHOLE, other);
    rows_have(2, AMOUNT_ONE / 2);
    says(0, HALF, WHOLE, other);
    rows_have(2, AMOUNT_ONE);
    (void)orders_are(2, false, WHOLE);
    says(0, WHOLE, NULL, 0);
    says(1, WHOLE, NULL, 0);
    assert_int_equal(second.r, 0);
    assert_true(second.came);
}

static void test_manager_dies_before(void **state)
{
    static struct answer a;
    int64_t trial;

    (void)state;
    trial = try_whole(&a);
    says(0, HALF, WHOLE, trial);
    restart_core();
    rows_have(2, AMOUNT_ONE / 2);
    for (size_t i = 0; i < 2; i++) {
        struct msg_kernel_status report = kernel_report(&kernels[i], MSG_KERNEL_RUNNING);

        report.slots = HALF;
        report.prepared = WHOLE;
        assert_int_equal(agent_greets(kernels[i].agent_id, TWO_GPUS, uuid_random()), 0);
        agent_beats(kernels[i].agent_id, &report, 1);
    }
    (void)orders_are(2, false, HALF); /* nobody wants it any more */
    assert_clean();
}

static void test_manager_dies_after(void **state)
{
    static struct answer a;
    int64_t trial;

    (void)state;
    trial = try_whole(&a);
    says(0, HALF, WHOLE, trial);
    says(1, HALF, WHOLE, trial);
    restart_core();
    rows_have(2, AMOUNT_ONE);
    for (size_t i = 0; i < 2; i++) {
        struct msg_kernel_status report = kernel_report(&kernels[i], MSG_KERNEL_RUNNING);

        report.slots = i ? HALF : WHOLE; /* one has done it, the other not heard of it */
        report.prepared = i ? WHOLE : NULL;
        assert_int_equal(agent_greets(kernels[i].agent_id, TWO_GPUS, uuid_random()), 0);
        agent_beats(kernels[i].agent_id, &report, 1);
    }
    (void)orders_are(1, false, WHOLE);
    assert_clean();
}

static void test_agent_goes(void **state)
{
    static struct answer a;
    int64_t trial;

    (void)state;
    trial = try_whole(&a);
    says(0, HALF, WHOLE, trial);
    agent_goes(kernels[1].agent_id);
    assert_int_equal(a.r, -ENOTCONN);
    (void)orders_are(1, false, HALF); /* the one that is there */
    rows_have(2, AMOUNT_ONE / 2);
    resize_request(AMOUNT_ONE, &a);
    assert_int_equal(a.r, -ENOTCONN);
    assert_int_equal(world.sent_count, 0);
    agent_comes("a3", TWO_GPUS);
    assert_clean();
}

/* What is decided is done, even if an agent is away meanwhile. */
static void test_agent_goes_after(void **state)
{
    struct msg_kernel_status report;
    static struct answer a;
    int64_t trial;

    (void)state;
    trial = try_whole(&a);
    says(0, HALF, WHOLE, trial);
    says(1, HALF, WHOLE, trial);
    (void)orders_are(2, false, WHOLE);
    says(0, WHOLE, NULL, 0);
    agent_goes(kernels[1].agent_id);
    assert_true(a.came);
    assert_int_equal(a.r, 0);
    report = kernel_report(&kernels[1], MSG_KERNEL_RUNNING);
    report.slots = HALF;
    report.prepared = WHOLE;
    assert_int_equal(agent_greets(kernels[1].agent_id, TWO_GPUS, uuid_random()), 0);
    agent_beats(kernels[1].agent_id, &report, 1);
    (void)orders_are(1, false, WHOLE);
    assert_clean();
}

static void test_nobody_answers(void **state)
{
    static struct answer a;
    int64_t trial;

    (void)state;
    trial = try_whole(&a);
    says(0, HALF, WHOLE, trial);
    for (int i = 0; i < 61 && !a.came; i++) { /* the other lives, but says nothing of it */
        says(0, HALF, WHOLE, trial);
        says(1, HALF, NULL, 0);
        pass(USEC_PER_SEC);
    }
    assert_true(a.came);
    assert_int_equal(a.r, -EBUSY);
    assert_non_null(strstr(a.err.text, kernels[1].agent_id));
    rows_have(2, AMOUNT_ONE / 2);
}

static void test_session_ends(void **state)
{
    static struct answer a;
    int64_t trial;

    (void)state;
    trial = try_whole(&a);
    says(0, HALF, WHOLE, trial);
    assert_int_equal(terminate(&session, false).r, 0);
    assert_true(a.came);
    assert_int_equal(a.r, -EINVAL);
    assert_non_null(strstr(a.err.text, "does not run any more"));
    says(1, HALF, WHOLE, trial);
    rows_have(2, AMOUNT_ONE / 2);
    assert_clean();
}

/* A kernel that has ended is not asked. */
static void test_degraded(void **state)
{
    static struct answer a;
    int64_t trial;

    (void)state;
    begin(2);
    agent_reports_exit(&kernels[1], 0);
    assert_int_equal(status_of(&session), SESSION_RUNNING_DEGRADED);
    world.sent_count = 0;
    resize_request(AMOUNT_ONE, &a);
    trial = orders_are(1, true, WHOLE);
    says(0, HALF, WHOLE, trial);
    (void)orders_are(1, false, WHOLE);
    says(0, WHOLE, NULL, 0);
    assert_true(a.came);
    assert_int_equal(a.r, 0);
    rows_have(1, AMOUNT_ONE);
    assert_clean();
}

static void test_no_wish(void **state)
{
    static const struct {
        int64_t shares;
        int want;
        const char *field;
    } rows[] = {
        { 0, -EINVAL, "cuda.shares" },
        { -1, -EINVAL, "cuda.shares" },
        { 3 * AMOUNT_ONE, -EINVAL, "cuda.shares" },
        { AMOUNT_INFINITE, -EINVAL, "cuda.shares" },
        { AMOUNT_ONE / 2, 0, "" },
    };
    static struct answer a, other;

    (void)state;
    begin(2);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        resize_request(rows[i].shares, &a);
        assert_true(a.came);
        assert_row(a.r == rows[i].want && strcmp(a.err.field, rows[i].field) == 0, "%zu: %d %s: %s",
                   i, a.r, a.err.field, a.err.text);
        assert_int_equal(world.sent_count, 0);
    }
    resize_request(AMOUNT_ONE, &a);
    assert_false(a.came);
    resize_request(AMOUNT_ONE, &other); /* one at a time */
    assert_int_equal(other.r, -EINVAL);
    assert_string_equal(other.err.field, "session");
    assert_int_equal(terminate(&session, true).r, 0);
    assert_true(a.came);
}

/* The limits of those that it counts for hold, over all of its kernels. */
static void test_limits(void **state)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_KEYPAIR_POLICY_SAVED, world_wall);
    static struct answer a;

    (void)state;
    begin(2);
    e->policy = (struct keypair_policy){ .name = strdup("default"), .unlimited_unspecified = true };
    assert_int_equal(slots_set(&e->policy.total_slots, "cuda.shares", AMOUNT_ONE * 3 / 2), 0);
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    resize_request(AMOUNT_ONE, &a);
    assert_int_equal(a.r, -EDQUOT);
    assert_string_equal(a.err.text,
                        "its keypair may hold 1.5 cuda.shares and holds 1; 1 more would "
                        "be too much");
    assert_int_equal(world.sent_count, 0);
    resize_request(AMOUNT_ONE * 3 / 4, &a);
    (void)orders_are(2, true, "{\"cpu\":\"1\",\"cuda.shares\":\"0.75\",\"mem\":\"1073741824\"}");
    assert_int_equal(terminate(&session, true).r, 0);
    assert_true(a.came);
}

/* One ledger: what an agent holds and cannot change is what is written down. */
static void test_agent_cannot_any_more(void **state)
{
    struct msg_kernel_status report;

    (void)state;
    begin(1);
    says(0, WHOLE, NULL, 0); /* nobody knows why */
    (void)orders_are(1, false, HALF);
    report = kernel_report(&kernels[0], MSG_KERNEL_RUNNING);
    report.slots = WHOLE;
    report.error_kind = "busy";
    report.error_text = "not now";
    agent_says(kernels[0].agent_id, report);
    rows_have(1, AMOUNT_ONE / 2);
    report.error_kind = "insufficient-resource";
    agent_says(kernels[0].agent_id, report);
    rows_have(1, AMOUNT_ONE);
    assert_clean();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    const struct CMUnitTest tests[] = {
        TEST(test_all_kernels),
        TEST(test_one_cannot),
        TEST(test_refused_early),
        TEST(test_former_answer),
        TEST(test_manager_dies_before),
        TEST(test_manager_dies_after),
        TEST(test_agent_goes),
        TEST(test_agent_goes_after),
        TEST(test_nobody_answers),
        TEST(test_session_ends),
        TEST(test_degraded),
        TEST(test_no_wish),
        TEST(test_limits),
        TEST(test_agent_cannot_any_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
