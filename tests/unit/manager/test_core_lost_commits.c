/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of commits that the database lacks: they are kept, listed, adopted or ended, without any
 * mark of a restore.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "store/lineage.h"
#include "store/setting.h"

/* Epoch 5 ended with commit 100, epoch 9 leads. */
static int write_lineage(struct store_tx *tx, void *data, struct aq_error *err)
{
    int r;

    (void)data;
    if ((r = setting_set(tx, SETTING_LINEAGE, "nonsense\n3 40\n5 90\n4 95\n", err)) < 0)
        return r;
    return lineage_begin_epoch(tx, 9, 100, err);
}

static int begin(void **state)
{
    struct aq_error err = { 0 };

    if (world_begin(state) != 0)
        return -1;
    assert_int_equal(store_call(core_store(world.core), write_lineage, NULL, &err), 0);
    restart_core();
    agent_comes("node-1", FOUR_CPUS);
    return 0;
}

struct listed {
    size_t count;
    bool is_of_lost_commit, is_ending;
};

static void list_one(void *data, const struct core_orphan *o)
{
    struct listed *listed = data;

    listed->count++;
    listed->is_of_lost_commit |= o->is_of_lost_commit;
    listed->is_ending |= o->is_ending;
}

static struct listed list_all(void)
{
    struct listed listed = { 0 };

    core_each_orphan(world.core, list_one, &listed);
    return listed;
}

static struct msg_kernel_status unknown_kernel(int64_t epoch, int64_t commit)
{
    return (struct msg_kernel_status){ .kernel_id = uuid_random(),
                                       .session_id = uuid_random(),
                                       .attempt = 1,
                                       .state = MSG_KERNEL_RUNNING,
                                       .epoch = epoch,
                                       .commit = commit };
}

static void test_commits_of_former_epochs_are_known(void **state)
{
    struct lineage lineage = { .count = 2, .epochs = { { 5, 90 }, { 9, 100 } } };

    (void)state;
    assert_int_equal(lineage_find_last(&lineage, 4), 90);
    assert_int_equal(lineage_find_last(&lineage, 5), 100);
    assert_int_equal(lineage_find_last(&lineage, 8), 100);
    assert_true(lineage_find_last(&lineage, 9) == INT64_MAX);
}

static void test_a_kernel_of_a_lost_commit_is_kept(void **state)
{
    struct msg_kernel_status report = unknown_kernel(5, 104);
    struct core_lost_commits lost;
    struct answer a = { 0 };

    (void)state;
    assert_false(core_get_lost_commits(world.core, &lost));
    agent_beats("node-1", &report, 1);
    settle();
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 0);
    assert_int_equal(count_sent(MSG_KERNEL_DESCRIBE), 1);
    assert_int_equal(list_all().count, 1);
    assert_true(list_all().is_of_lost_commit);
    assert_true(core_get_lost_commits(world.core, &lost));
    assert_int_equal(lost.epoch, 5);
    assert_int_equal(lost.had, 100);
    assert_int_equal(lost.seen, 104);
    assert_string_equal(lost.agent_id, "node-1");

    /* The next leader finds it, too. */
    restart_core();
    world.sent_count = 0;
    agent_comes("node-1", FOUR_CPUS);
    agent_beats("node-1", &report, 1);
    settle();
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 0);
    assert_int_equal(list_all().count, 1);

    core_end_orphan(world.core, &report.session_id, NULL, on_answer, &a);
    settle();
    assert_true(a.came);
    assert_int_equal(a.r, 0);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    assert_true(list_all().is_ending);
    agent_beats("node-1", NULL, 0);
    settle();
    assert_int_equal(list_all().count, 0);
}

/* The database has the commits of these: the manager has ended them. */
static void test_a_kernel_of_a_known_commit_is_ended(void **state)
{
    const struct {
        int64_t epoch, commit;
    } known[] = { { 5, 100 }, { 5, 7 }, { 9, 1000 }, { 0, 0 } };
    struct core_lost_commits lost;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(known); i++) {
        struct msg_kernel_status report = unknown_kernel(known[i].epoch, known[i].commit);

        world.sent_count = 0;
        agent_beats("node-1", &report, 1);
        settle();
        assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
        assert_int_equal(list_all().count, 0);
    }
    assert_false(core_get_lost_commits(world.core, &lost));
}

/* An agent without containers proves it by the last order that it had. */
static void test_a_hello_proves_lost_commits(void **state)
{
    struct msg_hello hello = { .agent_id = "node-2",
                               .incarnation = uuid_random(),
                               .slots = FOUR_CPUS,
                               .epoch = 5,
                               .commit = 120 };
    struct msg_welcome welcome = { .protocol = 1 };
    struct core_lost_commits lost;
    struct aq_error err = { 0 };
    int64_t retry = 0;

    (void)state;
    assert_int_equal(inventory_link_ops.on_hello(world.core, &hello, &welcome, &retry, &err), 0);
    assert_true(core_get_lost_commits(world.core, &lost));
    assert_int_equal(lost.seen - lost.had, 20);
    assert_string_equal(lost.agent_id, "node-2");
}

static void say_order(const char *agent_id, const struct uuid *kernel_id, const char *text)
{
    struct message msg = { .type = MSG_KERNEL_ORDER,
                           .kernel_order = { .kernel_id = *kernel_id, .order = text } };

    inventory_link_ops.on_message(world.core, agent_id, &msg);
}

/* One agent that lies leaves room for the kernels of the others, and for what they are made from. */
static void test_a_liar_leaves_room(void **state)
{
    AQ_CLEANUP(aq_freep) char *large = aq_alloc((1 << 20) + 1);
    struct msg_kernel_status honest = unknown_kernel(5, 104);
    size_t bytes;

    (void)state;
    memset(large, 'x', 1 << 20);
    for (size_t i = 0; i < 65536; i++) {
        const struct msg_kernel_status report = unknown_kernel(5, INT64_MAX);

        agent_says("node-1", report);
        if (i < 128)
            say_order("node-1", &report.kernel_id, large);
        world.sent_count = 0;
    }
    assert_in_range(list_all().count, 16384, 32768);
    bytes = world.core->orphans.order_bytes;
    assert_in_range(bytes, 16 << 20, 32 << 20);
    agent_comes("node-2", FOUR_CPUS);
    agent_beats("node-2", &honest, 1);
    say_order("node-2", &honest.kernel_id, large);
    assert_non_null(
        map_get(&world.core->orphans.by_kernel, &honest.kernel_id, sizeof(honest.kernel_id)));
    assert_int_equal(world.core->orphans.order_bytes, bytes + (1 << 20));
    agent_beats("node-1", NULL, 0);
    assert_int_equal(list_all().count, 1);
    assert_int_equal(world.core->orphans.order_bytes, 1 << 20);
}

static void test_a_removed_agent_has_none(void **state)
{
    struct msg_kernel_status report = unknown_kernel(5, 104);
    struct answer a = { 0 };

    (void)state;
    agent_beats("node-1", &report, 1);
    assert_int_equal(list_all().count, 1);
    core_remove_agent(world.core, "node-1", NULL, on_answer, &a);
    settle();
    assert_true(a.came);
    assert_int_equal(a.r, 0);
    assert_int_equal(list_all().count, 0);
}

/* An agent that claims another's kernel does not hide that it is gone there. */
static void test_a_claim_hides_no_end(void **state)
{
    struct msg_kernel_status claim = unknown_kernel(5, 104);
    struct uuid id = submit("job");
    const struct sent *order = find_sent(MSG_KERNEL_CREATE, 0);

    (void)state;
    assert_non_null(order);
    claim.kernel_id = order->kernel_id;
    claim.session_id = id;
    agent_reports(order, MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    agent_comes("node-2", FOUR_CPUS);
    agent_beats("node-2", &claim, 1);
    agent_comes("node-1", FOUR_CPUS); /* another process, an empty inventory */
    assert_int_equal(status_of(&id), GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commits_of_former_epochs_are_known),
        cmocka_unit_test_setup_teardown(test_a_kernel_of_a_lost_commit_is_kept, begin, world_end),
        cmocka_unit_test_setup_teardown(test_a_kernel_of_a_known_commit_is_ended, begin, world_end),
        cmocka_unit_test_setup_teardown(test_a_hello_proves_lost_commits, begin, world_end),
        cmocka_unit_test_setup_teardown(test_a_liar_leaves_room, begin, world_end),
        cmocka_unit_test_setup_teardown(test_a_removed_agent_has_none, begin, world_end),
        cmocka_unit_test_setup_teardown(test_a_claim_hides_no_end, begin, world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
