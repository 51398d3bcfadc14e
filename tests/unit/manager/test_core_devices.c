/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that a selection chose: in the order to the agent and in the kernel's row until its
 * agent says what it gave; other choices after a refusal, none in the end.
 */
#include "world.h"

#define CARDS                                                        \
    "{\"cpu\":[\"count\",\"8\"],\"mem\":[\"bytes\",\"8589934592\"]," \
    "\"cuda.shares\":[\"count\",\"2\"],\"cuda.device\":[\"count\",\"2\"],\"npu.device\":[\"count\",\"2\"]}"
#define CARD(id) \
    "{\"id\":\"" id "\",\"slot\":\"cuda.shares\",\"amount\":\"1\",\"quantum\":\"0.01\"}"
#define WHOLE(id) "{\"id\":\"" id "\",\"slot\":\"npu.device\",\"amount\":\"1\"}"
#define TWIN(id) "{\"id\":\"" id "\",\"slot\":\"cuda.device\",\"amount\":\"1\"}"
#define GPU_1 "{\"cuda.shares\":{\"GPU-1\":\"0.40\"}}"
#define GPU_2 "{\"cuda.shares\":{\"GPU-2\":\"0.40\"}}"

static void devices_come(const char *id, const char *devices)
{
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = id,
                               .incarnation = uuid_random(),
                               .version = "1",
                               .architecture = "x86_64",
                               .slots = CARDS,
                               .devices = devices };
    struct msg_welcome welcome = { 0 };
    struct aq_error err;
    int64_t retry = 0;

    assert_int_equal(inventory_link_ops.on_hello(world.core, &hello, &welcome, &retry, &err), 0);
    inventory_link_ops.on_connected(world.core, id, &hello.incarnation);
    settle();
    agent_beats(id, NULL, 0);
}

static void cards_come(const char *id)
{
    devices_come(id, "[" CARD("GPU-1") "," CARD("GPU-2") "," WHOLE("n-1") "," WHOLE("n-2") "]");
}

static void select_by(const char *selection)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_RESOURCE_GROUP_SAVED, world_wall);
    struct answer a = { 0 };

    e->resource_group = (struct resource_group){ .name = strdup("default"),
                                                 .is_active = true,
                                                 .scheduler = strdup("fifo"),
                                                 .scheduler_opts = strdup("{}"),
                                                 .driver_opts = strdup("{}"),
                                                 .selection = strdup(selection),
                                                 .agent_loss_policy = strdup("wait") };
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

static struct uuid ask(const char *name, const char *slot, int64_t amount, uint32_t kernels)
{
    AQ_CLEANUP(slots_donep) struct slots wanted = { .items = NULL };
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .cluster_size = kernels,
                                   .priority = -1 };
    struct answer a;

    assert_int_equal(slots_set(&wanted, slot_name_intern(slot, strlen(slot)), amount), 0);
    req.resources = wanted;
    a = create(&req);
    if (a.r < 0)
        fail_msg("%s: %s", name, a.err.text);
    return a.created.id;
}

static struct uuid ask_for_part(const char *name)
{
    return ask(name, "cuda.shares", AMOUNT_ONE * 4 / 10, 1);
}

/* The n-th order, and what it says of devices. */
static struct sent ordered(size_t n, const char *devices)
{
    const struct sent *s = find_sent(MSG_KERNEL_CREATE, n);

    assert_row(s != NULL, "order %zu", n);
    assert_string_equal(s->devices, devices);
    return *s;
}

static void runs_on(const struct sent *order, const char *alloc)
{
    struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_RUNNING);

    report.alloc = alloc;
    agent_says(order->agent_id, report);
}

static void refuse(const struct sent *order)
{
    struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_ERROR);

    report.error_kind = "insufficient-resource";
    report.error_field = "cuda.shares";
    report.error_text = "taken";
    agent_says(order->agent_id, report);
}

static const struct kernel *kernel_of(const struct uuid *id)
{
    return &core_find_session(world.core, id)->kernels[0];
}

static void assert_gpu_map(const char *agent, const char *want)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    assert_int_equal(core_write_gpu_map(world.core, agent, &w), 0);
    assert_string_equal(text.data, want);
}

static void test_the_choice_is_ordered_and_kept(void **state)
{
    struct sent first, second;
    struct uuid ids[2];

    (void)state;
    select_by("high-performance");
    cards_come("a");
    ids[0] = ask_for_part("one");
    ids[1] = ask_for_part("two");
    first = ordered(0, GPU_1);
    second = ordered(1, GPU_2);
    assert_string_equal(kernel_of(&ids[0])->alloc, GPU_1);
    assert_null(kernel_granted(kernel_of(&ids[0])));
    assert_gpu_map("a", "{\"GPU-1\":\"0.40\",\"GPU-2\":\"0.40\"}");
    assert_clean();

    restart_core();
    cards_come("a");
    assert_string_equal(ordered(0, find_sent(MSG_KERNEL_CREATE, 0)->devices).agent_id, "a");
    for (size_t i = 0; i < 2; i++) {
        const struct sent *again = find_sent(MSG_KERNEL_CREATE, i);
        bool is_first = uuid_equals(&again->kernel_id, &first.kernel_id);

        assert_true(is_first || uuid_equals(&again->kernel_id, &second.kernel_id));
        (void)ordered(i, is_first ? GPU_1 : GPU_2);
    }
    (void)ask("three", "cuda.shares", AMOUNT_ONE * 7 / 10, 1);
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 2); /* nowhere is as much */
    runs_on(&first, GPU_1);
    runs_on(&second, GPU_2);
    assert_string_equal(kernel_granted(kernel_of(&ids[1])), GPU_2);
    agent_reports_exit(&second, 0);
    (void)ordered(2, "{\"cuda.shares\":{\"GPU-2\":\"0.70\"}}");
    assert_clean();
}

static void test_what_the_agent_gives_counts(void **state)
{
    struct sent order;
    struct uuid id;

    (void)state;
    select_by("high-performance");
    cards_come("a");
    id = ask_for_part("one");
    order = ordered(0, GPU_1);
    runs_on(&order,
            "{\"cpu\":{\"0\":\"1\"},\"cuda.shares\":{\"GPU-2\":\"0.40\"}}"); /* an older agent */
    assert_non_null(strstr(kernel_granted(kernel_of(&id)), "GPU-2"));
    assert_gpu_map("a", "{\"GPU-2\":\"0.40\"}");
    (void)ask_for_part("two");
    (void)ordered(1, GPU_1);
    assert_clean();
}

static void test_refusals(void **state)
{
    struct sent order;
    struct uuid id;

    (void)state;
    select_by("high-performance");
    cards_come("a");
    cards_come("b");
    id = ask_for_part("one");
    order = ordered(0, GPU_1);
    assert_string_equal(order.agent_id, "a");
    refuse(&order);
    assert_gpu_map("a", "{}");
    order = ordered(1, GPU_1);
    assert_string_equal(order.agent_id, "b");
    refuse(&order);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    assert_null(kernel_of(&id)->alloc);
    assert_gpu_map("b", "{}");
    assert_clean();
    for (int i = 0; i < 2; i++) {
        pass(USEC_PER_SEC);
        agent_beats("a", NULL, 0);
        agent_beats("b", NULL, 0);
    }
    order = ordered(2, ""); /* it may know better */
    assert_string_equal(order.agent_id, "a");
    runs_on(&order, GPU_2);
    assert_gpu_map("a", "{\"GPU-2\":\"0.40\"}");
    assert_clean();
}

static void test_one_that_never_ran_had_nothing(void **state)
{
    struct sent order;
    struct uuid id;

    (void)state;
    select_by("bin-packing");
    cards_come("a");
    id = ask_for_part("one");
    order = ordered(0, GPU_1);
    (void)terminate(&id, true);
    assert_string_equal(kernel_of(&id)->alloc, GPU_1); /* its agent may be at it */
    agent_reports(&order, MSG_KERNEL_ERROR);
    assert_int_equal(status_of(&id), GONE);
    assert_gpu_map("a", "{}");
    assert_clean();
    (void)ask_for_part("two");
    (void)ordered(1, GPU_1);
}

static void test_whose_choice_it_is(void **state)
{
    static const struct {
        const char *selection, *slot;
        int64_t amount;
        uint32_t kernels;
        const char *devices;
    } rows[] = {
        { "high-performance", "cuda.shares", AMOUNT_ONE * 4 / 10, 2, GPU_1 },
        { "fragmentation", "cuda.shares", AMOUNT_ONE * 4 / 10, 1, GPU_1 },
        { "bin-packing", "cuda.shares", AMOUNT_ONE, 1, "{\"cuda.shares\":{\"GPU-1\":\"1.00\"}}" },
        { "bin-packing", "cuda.shares", AMOUNT_ONE * 12 / 10, 1, "" }, /* of two */
        { "bin-packing", "npu.device", AMOUNT_ONE, 1, "" },            /* whole */
        { "bin-packing", "cpu", AMOUNT_ONE, 1, "" },
        { "concentrated", "cuda.shares", AMOUNT_ONE * 4 / 10, 1, "" },
        { "dispersed", "cuda.shares", AMOUNT_ONE * 4 / 10, 1, "" },
        { "round-robin", "cuda.shares", AMOUNT_ONE * 4 / 10, 1, "" },
    };
    size_t orders = 0;

    (void)state;
    cards_come("a");
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct sent order[2];
        struct uuid id;

        select_by(rows[i].selection);
        id = ask("one", rows[i].slot, rows[i].amount, rows[i].kernels);
        assert_int_equal(count_sent(MSG_KERNEL_CREATE), orders + rows[i].kernels);
        for (uint32_t k = 0; k < rows[i].kernels; k++)
            order[k] = ordered(orders++, rows[i].devices);
        (void)terminate(&id, true);
        for (uint32_t k = 0; k < rows[i].kernels; k++)
            agent_reports(&order[k], MSG_KERNEL_ERROR);
        assert_int_equal(status_of(&id), GONE);
        assert_clean();
    }
}

/* A card that is held whole has no part left to choose, and has again when it is free. */
static void test_one_card_under_two_names(void **state)
{
    struct sent whole, part;
    struct uuid ids[2];

    (void)state;
    select_by("high-performance");
    devices_come("a", "[" CARD("GPU-1") "," CARD("GPU-2") "," TWIN("GPU-1") "," TWIN("GPU-2") "]");
    ids[0] = ask("whole", "cuda.device", AMOUNT_ONE, 1);
    whole = ordered(0, "");
    runs_on(&whole, "{\"cuda.device\":{\"GPU-1\":\"1\"}}");
    ids[1] = ask_for_part("part");
    part = ordered(1, GPU_2);
    runs_on(&part, GPU_2);
    agent_reports_exit(&whole, 0);
    assert_int_equal(status_of(&ids[0]), GONE);
    (void)ask_for_part("more");
    (void)ordered(2, GPU_1);
    assert_int_equal(status_of(&ids[1]), SESSION_RUNNING);
    assert_clean();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_choice_is_ordered_and_kept),
        TEST(test_what_the_agent_gives_counts),
        TEST(test_refusals),
        TEST(test_one_that_never_ran_had_nothing),
        TEST(test_whose_choice_it_is),
        TEST(test_one_card_under_two_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
