/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_bounds.c - what one agent can fill or hold up by what it says */
#include "world.h"

#define LIAR "i-666"

static void hear(const char *id, const char *text)
{
    struct message msg;

    assert_int_equal(message_decode(text, strlen(text), &msg, NULL), 0);
    inventory_link_ops.on_message(world.core, id, &msg);
    message_done(&msg);
    settle();
}

/* ---- names of slots ---- */

static bool is_interned(const char *name)
{
    return slot_name_find(name, strlen(name));
}

static void test_refused_offer_makes_no_name_known(void **state)
{
    (void)state;
    assert_true(
        agent_greets(LIAR, "{\"refused1.shares\":[\"count\",\"1\"],\"cpu\":7}", uuid_random()) < 0);
    assert_false(is_interned("refused1.shares"));
    agent_comes(LIAR, FOUR_CPUS);
    hear(LIAR,
         "{\"type\":\"heartbeat\",\"incarnation\":\"11111111-1111-4111-8111-111111111111\","
         "\"seq\":1,\"slots\":{\"refused2.shares\":[\"count\",\"1\"],\"cpu\":[\"bytes\",\"1\"]}}");
    assert_false(is_interned("refused2.shares"));
    hear(LIAR,
         "{\"type\":\"heartbeat\",\"incarnation\":\"11111111-1111-4111-8111-111111111111\","
         "\"seq\":2,\"slots\":{\"taken.shares\":[\"count\",\"1\"],\"cpu\":[\"count\",\"1\"]}}");
    assert_true(is_interned("taken.shares"));
}

static void test_devices_and_reports_make_no_name_known(void **state)
{
    struct msg_kernel_status report;

    (void)state;
    agent_comes(LIAR, FOUR_CPUS);
    (void)submit("mine");
    report = kernel_report(find_sent(MSG_KERNEL_CREATE, 0), MSG_KERNEL_RUNNING);
    report.alloc = "{\"held.shares\":{\"a\":\"1\"},\"cpu\":{\"0\":\"1\"}}";
    agent_says(LIAR, report);
    hear(LIAR,
         "{\"type\":\"heartbeat\",\"incarnation\":\"11111111-1111-4111-8111-111111111111\","
         "\"seq\":1,\"devices\":[{\"id\":\"a\",\"slot\":\"listed.shares\",\"amount\":\"1\"}]}");
    (void)submit("next");
    assert_false(is_interned("held.shares"));
    assert_false(is_interned("listed.shares"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused_offer_makes_no_name_known, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(test_devices_and_reports_make_no_name_known, world_begin,
                                        world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
