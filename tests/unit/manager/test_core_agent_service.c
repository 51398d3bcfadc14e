/* SPDX-License-Identifier: Apache-2.0 */
/* Commands to agents as services: each gets exactly one answer, and only from its agent. */
#include "world.h"

#include <string.h>

#include "manager/core/agent_service.h"
#include "manager/core/nodes/inventory.h"

#define SECOND INT64_C(1000000)

struct told {
    int times, r;
    char text[512], unit[64];
};

static void on_told(void *data, int r, const struct aq_error *err, const char *unit,
                    const char *state)
{
    struct told *t = data;

    (void)state;
    t->times++;
    t->r = r;
    (void)snprintf(t->text, sizeof(t->text), "%s", r < 0 ? err->text : "");
    (void)snprintf(t->unit, sizeof(t->unit), "%s", unit);
}

static struct told nothing_yet(void)
{
    return (struct told){ .times = 0 };
}

static void test_who_is_not_there_cannot_be_asked(void **state)
{
    struct told t = nothing_yet();

    (void)state;
    core_command_service(world.core, "nobody", "stop", on_told, &t);
    assert_int_equal(t.times, 1);
    assert_int_equal(t.r, -ENOTCONN);
    assert_non_null(strstr(t.text, "systemctl stop aliquot-agent"));
}

static void test_silence_is_an_answer_after_a_while(void **state)
{
    struct told t = nothing_yet(), second = nothing_yet();

    (void)state;
    agent_comes("i-1", FOUR_CPUS);
    core_command_service(world.core, "i-1", "status", on_told, &t);
    core_command_service(world.core, "i-1", "stop", on_told, &second);
    assert_int_equal(second.r, -EBUSY);
    assert_int_equal(t.times, 0);
    assert_int_equal(count_sent(MSG_SERVICE_COMMAND), 1);
    for (int i = 0; i < 25; i++) {
        agent_beats("i-1", NULL, 0);
        pass(SECOND);
    }
    assert_int_equal(t.times, 1);
    assert_int_equal(t.r, -ETIMEDOUT);
    core_command_service(world.core, "i-1", "stop", on_told, &second);
    assert_int_equal(second.times, 1);
    agent_goes("i-1");
    assert_int_equal(second.times, 2);
    assert_int_equal(second.r, 0); /* that is what was wanted */
}

static void test_a_lost_connection_answers(void **state)
{
    struct told t = nothing_yet();

    (void)state;
    agent_comes("i-1", FOUR_CPUS);
    core_command_service(world.core, "i-1", "status", on_told, &t);
    agent_goes("i-1");
    assert_int_equal(t.times, 1);
    assert_int_equal(t.r, -ENOTCONN);
}

static void test_answers_to_other_commands_are_none(void **state)
{
    struct message msg = { .type = MSG_SERVICE_STATUS,
                           .service_status = { .job_id = uuid_random(), .state = "x" } };
    struct told t = nothing_yet();

    (void)state;
    agent_comes("i-1", FOUR_CPUS);
    agent_comes("i-2", FOUR_CPUS);
    core_command_service(world.core, "i-1", "restart", on_told, &t);
    inventory_link_ops.on_message(world.core, "i-1", &msg);
    inventory_link_ops.on_message(world.core, "i-2", &msg);
    agent_goes("i-2");
    assert_int_equal(t.times, 0);
    agent_goes("i-1");
    assert_int_equal(t.times, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_who_is_not_there_cannot_be_asked),
        TEST(test_silence_is_an_answer_after_a_while),
        TEST(test_a_lost_connection_answers),
        TEST(test_answers_to_other_commands_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
