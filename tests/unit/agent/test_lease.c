/* SPDX-License-Identifier: Apache-2.0 */
/* An agent whose manager answers heartbeats, or does not: kernels with a lease end, others run on. */
#include "scene.h"

#include "base/clock.h"

#define LEASE (400 * USEC_PER_MSEC)
#define GRACE (10 * USEC_PER_SEC)

/* The loop runs for so long. */
static void pass(struct scene *s, int64_t usec)
{
    int64_t end = clock_boottime_usec() + usec;

    RUN_UNTIL(s, clock_boottime_usec() >= end); /* heartbeats wake it up */
}

static void start_again(struct scene *s)
{
    scene_stop_agent(s);
    scene_start_agent(s);
}

static struct msg_kernel_create order_with(int64_t lease_usec)
{
    struct msg_kernel_create create = scene_order("sleep 1000");

    create.spec.lease_usec = lease_usec;
    create.spec.lease_grace_usec = lease_usec ? GRACE : 0;
    return create;
}

static bool is_running(struct scene *s, const struct uuid *id)
{
    return scene_find(s, id)->state == MSG_KERNEL_RUNNING;
}

static struct uuid run_with(struct scene *s, int64_t lease_usec)
{
    struct msg_kernel_create create = order_with(lease_usec);

    s->has_leases = s->answers = true;
    start_again(s);
    scene_create(s, &create);
    RUN_UNTIL(s, is_running(s, &create.kernel_id));
    return create.kernel_id;
}

static void check_lost(struct scene *s, const struct uuid *id)
{
    RUN_UNTIL(s, scene_is_final(s, id));
    assert_string_equal(scene_find(s, id)->reason, "agent-lost");
    assert_int_equal(scene_find(s, id)->exit_code, 143);
}

static void end(struct scene *s, const struct uuid *id)
{
    scene_destroy(s, id, 0);
    RUN_UNTIL(s, scene_is_final(s, id));
}

/* The connection lasts, and what the agent sends arrives: only answers count. */
static void answers_renew_it(void **state)
{
    struct scene *s = *state;
    struct uuid id = run_with(s, LEASE);

    pass(s, 2 * LEASE);
    assert_true(is_running(s, &id));
    s->answers = false;
    check_lost(s, &id);
}

static void it_ends_without_an_agent(void **state)
{
    struct scene *s = *state;
    struct uuid id = run_with(s, LEASE);

    scene_stop_agent(s);
    (void)usleep(2 * LEASE);
    scene_start_agent(s);
    check_lost(s, &id);
}

/* Nothing starts in a process of the agent that had no answer yet, or late. */
static void it_does_not_start_without_contact(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = order_with(LEASE), free = order_with(0);

    s->has_leases = true;
    start_again(s);
    scene_create(s, &create);
    scene_create(s, &free);
    RUN_UNTIL(s, is_running(s, &free.kernel_id));
    pass(s, LEASE / 2);
    assert_int_equal(scene_find(s, &create.kernel_id)->state, MSG_KERNEL_CREATING);
    s->answers = true;
    RUN_UNTIL(s, is_running(s, &create.kernel_id));
    end(s, &create.kernel_id);
    end(s, &free.kernel_id);
}

static void an_answer_changes_it(void **state)
{
    struct scene *s = *state;
    struct uuid id = run_with(s, 0), other = run_with(s, LEASE);

    s->lease = (struct msg_kernel_lease){ id, 1, LEASE, GRACE };
    RUN_UNTIL(s, scene_find(s, &id)->lease_usec == LEASE);
    s->lease = (struct msg_kernel_lease){ other, 1, 0, 0 };
    RUN_UNTIL(s, scene_find(s, &other)->lease_usec == 0);
    s->answers = false;
    check_lost(s, &id);
    pass(s, LEASE);
    assert_true(is_running(s, &other));
    end(s, &other);
}

/* It would end all kernels by its silence. */
static void a_manager_without_leases_ends_nothing(void **state)
{
    struct scene *s = *state;
    struct uuid id = run_with(s, LEASE);

    s->has_leases = s->answers = false;
    start_again(s);
    pass(s, 2 * LEASE);
    assert_true(is_running(s, &id));
    end(s, &id);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_init, scene_done)
    static const struct CMUnitTest tests[] = {
        TEST(answers_renew_it),
        TEST(it_ends_without_an_agent),
        TEST(it_does_not_start_without_contact),
        TEST(an_answer_changes_it),
        TEST(a_manager_without_leases_ends_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
