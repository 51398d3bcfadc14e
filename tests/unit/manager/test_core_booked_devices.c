/* SPDX-License-Identifier: Apache-2.0 */
/* Bookings of devices: which ones sessions of the booking and others get, also after a restart,
 * and what those that wait are told.
 */
#include "world.h"

#include "manager/core/bookings.h"
#include "manager/core/lookup.h"

#define MINUTE (60 * USEC_PER_SEC)
#define GPU(id) "{\"id\":\"" id "\",\"slot\":\"cuda.device\",\"amount\":\"1\"}"

static void devices_come(const char *id, const char *slots, const char *devices)
{
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = id,
                               .incarnation = uuid_random(),
                               .version = "1",
                               .architecture = "x86_64",
                               .slots = slots,
                               .devices = devices };
    struct msg_welcome welcome = { 0 };
    struct aq_error err;
    int64_t retry = 0;

    assert_int_equal(inventory_link_ops.on_hello(world.core, &hello, &welcome, &retry, &err), 0);
    inventory_link_ops.on_connected(world.core, id, &hello.incarnation);
    settle();
    agent_beats(id, NULL, 0);
}

static void gpus_come(const char *id)
{
    devices_come(id,
                 "{\"cpu\":[\"count\",\"8\"],\"mem\":[\"bytes\",\"8589934592\"],"
                 "\"cuda.device\":[\"count\",\"4\"]}",
                 "[" GPU("g-1") "," GPU("g-2") "," GPU("g-3") "," GPU("g-4") "]");
}

static void book(const char *name, const char *slot, int64_t amount, int64_t from_usec)
{
    const struct keypair *k = core_find_keypair(world.core, USER_KEY);
    const struct user *u = core_find_user(world.core, &k->user_id);
    struct booking b = { .starts_usec = world_wall + from_usec,
                         .ends_usec = world_wall + from_usec + 60 * MINUTE,
                         .nodes = 1 };
    struct answer a = { 0 };

    (void)snprintf(b.name, sizeof(b.name), "%s", name);
    b.resource_group = strdup("default");
    assert_int_equal(slots_set(&b.amounts, slot_name_intern(slot, strlen(slot)), amount), 0);
    b.users.items = malloc(sizeof(*b.users.items));
    b.users.items[0] = u->id;
    b.users.count = b.users.cap = 1;
    core_create_booking(world.core, &b, NULL, NULL, &asker, on_answer, &a);
    settle();
    if (a.r < 0)
        fail_msg("%s: %s", a.err.field, a.err.text);
}

static struct uuid ask_of(const char *name, const char *slot, int64_t amount, const char *booking,
                          int64_t limit_usec)
{
    AQ_CLEANUP(slots_donep) struct slots wanted = { .items = NULL };
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .spec.reservation = booking,
                                   .spec.batch_timeout_usec = limit_usec,
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    struct answer a;

    assert_int_equal(slots_set(&wanted, slot_name_intern(slot, strlen(slot)), amount), 0);
    req.resources = wanted;
    a = create(&req);
    if (a.r < 0)
        fail_msg("%s: %s: %s", name, a.err.field, a.err.text);
    return a.created.id;
}

static struct uuid ask(const char *name, int64_t count, const char *booking, int64_t limit_usec)
{
    return ask_of(name, "cuda.device", count * AMOUNT_ONE, booking, limit_usec);
}

static const char *devices_of(const struct uuid *session)
{
    for (size_t i = 0; i < world.sent_count; i++)
        if (world.sent[i].type == MSG_KERNEL_CREATE
            && uuid_equals(&world.sent[i].session_id, session))
            return world.sent[i].devices;
    return "none";
}

static void assert_why(const struct uuid *session, const char *want)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    assert_true(core_explain(world.core, session, &text, NULL, NULL) >= 0);
    if (!strstr(text.data, want))
        fail_msg("'%s' is not in '%s'", want, text.data);
}

static void given_by_name(void **state)
{
    struct uuid one, two, other;

    (void)state;
    gpus_come("a");
    book("exam", "cuda.device", 2 * AMOUNT_ONE, 0);
    one = ask("one", 1, "exam", 0);
    other = ask("other", 2, NULL, 0);
    assert_string_equal(devices_of(&one), "{\"cuda.device\":{\"g-1\":\"1\"}}");
    assert_string_equal(devices_of(&other), "{\"cuda.device\":{\"g-3\":\"1\",\"g-4\":\"1\"}}");
    assert_clean();
    restart_core();
    gpus_come("a");
    two = ask("two", 1, "exam", 0);
    assert_string_equal(devices_of(&two), "{\"cuda.device\":{\"g-2\":\"1\"}}");
    assert_clean();
}

static void told_why(void **state)
{
    struct uuid inside, endless, brief;

    (void)state;
    gpus_come("a");
    book("exam", "cuda.device", 3 * AMOUNT_ONE, 30 * MINUTE);
    inside = ask("inside", 1, "exam", 0);
    endless = ask("endless", 2, NULL, 0);
    brief = ask("brief", 2, NULL, 20 * MINUTE);
    assert_int_equal(status_of(&inside), SESSION_PENDING);
    assert_int_equal(status_of(&endless), SESSION_PENDING);
    assert_string_not_equal(devices_of(&brief), "none"); /* it is not held up */
    assert_why(&inside, "It waits for the start of reservation 'exam' at ");
    assert_why(&endless, "reservation 'exam' begins. It has no time limit (--timeout)");
    assert_clean();
}

/* What it does not name it shares: 8 cores. */
static void shares_cores(void **state)
{
    struct uuid inside, outside;

    (void)state;
    gpus_come("a");
    book("exam", "cuda.device", 4 * AMOUNT_ONE, 0);
    outside = ask("outside", 1, NULL, 0);
    inside = ask("inside", 3, "exam", 0);
    assert_int_equal(status_of(&outside), SESSION_PENDING);
    assert_string_equal(devices_of(&inside),
                        "{\"cuda.device\":{\"g-1\":\"1\",\"g-2\":\"1\",\"g-3\":\"1\"}}");
    assert_why(&outside, "cuda.device: 1 missing");
    assert_clean();
}

/* A session may not grow into what is booked of its device. */
static void keeps_from_growing(void **state)
{
    AQ_CLEANUP(slots_donep) struct slots more = { .items = NULL };
    struct msg_kernel_status report;
    struct answer a = { 0 };
    struct uuid session;

    (void)state;
    devices_come("a",
                 "{\"cpu\":[\"count\",\"8\"],\"mem\":[\"bytes\",\"8589934592\"],"
                 "\"cuda.shares\":[\"count\",\"1\"]}",
                 "[{\"id\":\"GPU-1\",\"slot\":\"cuda.shares\",\"amount\":\"1\","
                 "\"quantum\":\"0.1\"}]");
    book("exam", "cuda.shares", AMOUNT_ONE / 2, 30 * MINUTE);
    session = ask_of("train", "cuda.shares", AMOUNT_ONE * 4 / 10, NULL, 0);
    report = kernel_report(find_sent(MSG_KERNEL_CREATE, 0), MSG_KERNEL_RUNNING);
    report.alloc = "{\"cuda.shares\":{\"GPU-1\":\"0.40\"}}";
    agent_says("a", report);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    assert_int_equal(slots_set(&more, slot_name_intern("cuda.shares", 11), AMOUNT_ONE / 2), 0);
    core_resize_session(world.core, &session, &more, &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, -EBUSY);
    assert_string_equal(a.err.field, "cuda.shares");
    assert_clean();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(given_by_name), TEST(told_why), TEST(shares_cores),
                                        TEST(keeps_from_growing) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
