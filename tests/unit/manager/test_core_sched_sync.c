/* SPDX-License-Identifier: Apache-2.0 */
/* The kept schedulers: whatever happens, they know what memory knows, and
 * settings take effect while sessions wait.
 */
#include "manager/core/scheduling/sched_sync.h"
#include "world.h"

/* Both sides have a struct account_state. */
#define account sched_inner_account
#include "sched/scheduler_internal.h"
#undef account

#define TWO_CPUS "{\"cpu\":[\"count\",\"2\"],\"mem\":[\"bytes\",\"8589934592\"]}"
#define TWO_GPUS                                                     \
    "{\"cpu\":[\"count\",\"8\"],\"mem\":[\"bytes\",\"8589934592\"]," \
    "\"cuda.shares\":[\"count\",\"2\"]}"
#define TWO_GPUS_DEVICES                                             \
    "[{\"id\":\"GPU-1\",\"slot\":\"cuda.shares\",\"amount\":\"1\"}," \
    "{\"id\":\"GPU-2\",\"slot\":\"cuda.shares\",\"amount\":\"1\"}]"

/* ---- the scheduler against memory ---- */

static void check_agent(const struct resource_group_entry *g, struct agent_entry *a)
{
    const struct cluster *c = &g->sched->cluster;
    const struct cluster_node *n = &c->nodes[cluster_find_agent(c, a->a.id)];
    const struct slots *free;

    assert_int_equal(agent_entry_free_slots(a, &free), 0);
    assert_int_equal(n->free[c->columns] != SCHED_ABSENT, agent_entry_is_ready(a));
    for (size_t i = 0; i < c->columns; i++)
        if (n->free[i] != SCHED_ABSENT)
            assert_int_equal(n->free[i], slots_get(free, c->names[i]));
}

static void check_account(const struct resource_group_entry *g,
                          const struct resource_group_account *ga)
{
    const struct cluster *c = &g->sched->cluster;
    struct sched_account limits;
    const struct slots *used;

    if (!account_limits(world.core, ga->account, &limits))
        return; /* nobody asks what is used of it */
    assert_int_equal(g->sched->accounts[ga->number].sessions, ga->account->member_count);
    assert_int_equal(account_usage(ga->account, &used), 0);
    for (size_t i = 0; i < c->columns; i++)
        assert_int_equal(g->sched->accounts[ga->number].used[i], slots_get(used, c->names[i]));
}

static void check_sessions(const struct resource_group_entry *g)
{
    size_t waiting = 0;

    LIST_FOREACH(link, &world.core->sessions) {
        const struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);

        if (l->resource_group != g)
            continue;
        if (l->s.status == SESSION_PENDING)
            assert_int_equal(l->sched.membership, l->queue.is_parked || l->durable.retry_usec
                                                      ? MEMBERSHIP_NONE
                                                      : MEMBERSHIP_WAITING);
        else
            assert_int_equal(l->sched.membership, l->is_in_usage && !l->sched.is_outside
                                                      ? MEMBERSHIP_HOLDING
                                                      : MEMBERSHIP_NONE);
        waiting += l->sched.membership == MEMBERSHIP_WAITING;
    }
    assert_int_equal(g->sched->queue_count - g->sched->queue_gaps, waiting);
}

static void assert_agrees(void)
{
    struct core *core = world.core;

    for (size_t i = 0; i < core->resource_groups.count; i++) {
        struct resource_group_entry *g = core->resource_groups.entries[i].value;

        assert_int_equal(g->open_passes, 0);
        assert_int_equal(sched_sync_push(core, g), 0);
        for (size_t k = 0; k < core->agent_count; k++)
            if (core->agents_sorted[k]->scheduled_by == g)
                check_agent(g, core->agents_sorted[k]);
        for (size_t k = 0; k < g->account_count; k++)
            check_account(g, g->accounts[k]);
        check_sessions(g);
    }
    arena_clear(&core->scratch, 1 << 16);
}

/* ---- words ---- */

static void save_group(const char *name, const char *scheduler, const char *selection,
                       const char *opts)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_RESOURCE_GROUP_SAVED, world_wall);
    struct answer a = { 0 };

    e->resource_group = (struct resource_group){ .name = strdup(name),
                                                 .is_active = true,
                                                 .scheduler = strdup(scheduler),
                                                 .scheduler_opts = strdup(opts),
                                                 .driver_opts = strdup("{}"),
                                                 .selection = strdup(selection),
                                                 .agent_loss_policy = strdup("wait") };
    assert_int_equal(core_check_scheduling(&e->resource_group, NULL), 0);
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

static struct uuid submit_timed(const char *name, const char *slot, int64_t amount,
                                int64_t timeout_usec)
{
    struct slots wanted = { .items = NULL };
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .spec.batch_timeout_usec = timeout_usec };
    struct answer a;

    assert_int_equal(slots_set(&wanted, slot_name_intern(slot, strlen(slot)), amount), 0);
    req.resources = wanted;
    a = create(&req);
    slots_done(&wanted);
    if (a.r < 0)
        fail_msg("%s: %s", name, a.err.text);
    return a.created.id;
}

static struct uuid submit_sized(const char *name, const char *slot, int64_t amount)
{
    return submit_timed(name, slot, amount, 0);
}

/* The order of its one kernel. */
static struct sent order_of(const struct uuid *session)
{
    const struct kernel *k = &core_find_session(world.core, session)->kernels[0];
    struct sent order = {
        .type = MSG_KERNEL_CREATE, .kernel_id = k->id, .session_id = *session, .attempt = k->attempt
    };

    (void)snprintf(order.agent_id, sizeof(order.agent_id), "%s", k->agent_id);
    return order;
}

static void end_it(const struct uuid *session)
{
    struct sent order = order_of(session);

    agent_reports_exit(&order, 0);
}

/* ---- tests ---- */

/* The first with that status from 'at' on, round the end. */
static size_t find_from(const struct uuid *ids, size_t count, size_t at, enum session_status status)
{
    for (size_t i = 0; i < count; i++)
        if (status_of(&ids[(at + i) % count]) == status)
            return (at + i) % count;
    return count;
}

static void random_step(uint32_t *seed, int step, struct uuid *ids, size_t *count)
{
    uint32_t dice = *seed = *seed * 1664525 + 1013904223, pick = (dice >> 8) % 100;
    const char *agent = dice >> 20 & 1 ? "i-001" : "i-002";
    bool is_there = agent_entry_find(world.core, agent)->is_connected;
    size_t at = *count ? (dice >> 12) % *count : 0;
    size_t started = find_from(ids, *count, at, SESSION_SCHEDULED);
    size_t waiting = find_from(ids, *count, at, SESSION_PENDING);
    struct answer a = { 0 };
    char name[24];

    (void)snprintf(name, sizeof(name), "step-%d", step);
    if (pick < 35) {
        ids[(*count)++] = submit_sized(name, "cpu", AMOUNT_ONE * (1 + (dice >> 10) % 3));
    } else if (pick < 65 && started < *count) {
        end_it(&ids[started]);
    } else if (pick < 72 && waiting < *count) {
        (void)terminate(&ids[waiting], dice >> 21 & 1);
    } else if (pick < 80 && waiting < *count) {
        core_set_priority(world.core, &ids[waiting], (int)(dice >> 13) % 40, NULL, on_answer, &a);
        settle();
    } else if (pick < 92 && !is_there) {
        agent_comes(agent, dice >> 22 & 1 ? FOUR_CPUS : TWO_CPUS);
    } else if (pick > 95 && is_there) {
        agent_goes(agent);
    } else {
        pass(USEC_PER_SEC);
    }
}

static void test_agrees(void **state)
{
    struct uuid ids[200];
    size_t count = 0;
    uint32_t seed = 7;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    agent_comes("i-002", FOUR_CPUS);
    for (int step = 0; step < 200; step++) {
        world.sent_count = 0;
        random_step(&seed, step, ids, &count);
        assert_agrees();
    }
    assert_true(world.core->counts.scheduled > 20);
    assert_clean();
    restart_core();
    assert_agrees();
}

/* The store refuses placements of a session that it knows otherwise: they are
 * taken back, do not hold up others, and are tried again later.
 */
static void test_taken_back(void **state)
{
    struct uuid id = submit_sized("odd-one", "cpu", 2 * AMOUNT_ONE), other;

    (void)state;
    session_entry_find(world.core, &id)->s.version++;
    agent_comes("i-001", TWO_CPUS);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    assert_int_equal(world.core->counts.stale, 2); /* with others, then alone */
    assert_agrees();
    other = submit_sized("other", "cpu", AMOUNT_ONE);
    assert_int_equal(status_of(&other), SESSION_SCHEDULED);
    session_entry_find(world.core, &id)->s.version--;
    end_it(&other);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    pass(6 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_SCHEDULED);
    assert_agrees();
    assert_clean();
}

static void test_sequencer_live(void **state)
{
    struct uuid ids[4];

    (void)state;
    agent_comes("i-001", TWO_CPUS);
    ids[0] = submit_sized("first", "cpu", 2 * AMOUNT_ONE);
    ids[1] = submit_sized("second", "cpu", 2 * AMOUNT_ONE);
    ids[2] = submit_sized("third", "cpu", 2 * AMOUNT_ONE);
    assert_int_equal(status_of(&ids[0]), SESSION_SCHEDULED);
    save_group("default", "lifo", "concentrated", "{}");
    assert_agrees();
    end_it(&ids[0]);
    assert_int_equal(status_of(&ids[2]), SESSION_SCHEDULED);
    assert_int_equal(status_of(&ids[1]), SESSION_PENDING);
    ids[3] = submit_sized("fourth", "cpu", AMOUNT_ONE);
    save_group("default", "fifo", "concentrated", "{}");
    end_it(&ids[2]);
    assert_int_equal(status_of(&ids[1]), SESSION_SCHEDULED);
    assert_int_equal(status_of(&ids[3]), SESSION_PENDING);
    assert_clean();
}

/* FIFO holds up the small one until the big one has failed often enough. */
static void test_retries_live(void **state)
{
    struct uuid big, small;

    (void)state;
    save_group("default", "fifo", "concentrated", "{}");
    agent_comes("i-001", TWO_CPUS);
    (void)submit_sized("holds", "cpu", AMOUNT_ONE);
    big = submit_sized("big-one", "cpu", 2 * AMOUNT_ONE);
    small = submit_sized("small-one", "cpu", AMOUNT_ONE);
    assert_int_equal(status_of(&small), SESSION_PENDING);
    save_group("default", "fifo", "concentrated", "{\"config\":{\"num_retries_to_skip\":2}}");
    assert_int_equal(status_of(&small), SESSION_PENDING);
    (void)submit_sized("another", "cpu", AMOUNT_ONE);
    (void)submit_sized("one-more", "cpu", AMOUNT_ONE);
    assert_int_equal(status_of(&small), SESSION_SCHEDULED);
    assert_int_equal(status_of(&big), SESSION_PENDING);
    assert_agrees();
    assert_clean();
}

/* The same if the configuration tree says it, and not the group. */
static void test_retries_of_the_tree(void **state)
{
    struct uuid big, small;

    (void)state;
    core_set_fifo_retries(world.core, 2);
    save_group("default", "fifo", "concentrated", "{\"config\":{\"num_retries_to_skip\":0}}");
    agent_comes("i-001", TWO_CPUS);
    (void)submit_sized("holds", "cpu", AMOUNT_ONE);
    big = submit_sized("big-one", "cpu", 2 * AMOUNT_ONE);
    small = submit_sized("small-one", "cpu", AMOUNT_ONE);
    (void)submit_sized("another", "cpu", AMOUNT_ONE);
    (void)submit_sized("one-more", "cpu", AMOUNT_ONE);
    assert_int_equal(status_of(&small), SESSION_PENDING);
    core_set_fifo_retries(world.core, 0);
    save_group("default", "fifo", "concentrated", "{}");
    (void)submit_sized("again", "cpu", AMOUNT_ONE);
    assert_int_equal(status_of(&small), SESSION_PENDING);
    core_set_fifo_retries(world.core, 1);
    (void)submit_sized("once-more", "cpu", AMOUNT_ONE);
    (void)submit_sized("at-last", "cpu", AMOUNT_ONE);
    assert_int_equal(status_of(&small), SESSION_SCHEDULED);
    assert_int_equal(status_of(&big), SESSION_PENDING);
    assert_clean();
}

/* The big one can start in an hour; only what has ended by then may go before it. */
static void test_backfill_live(void **state)
{
    const int64_t hour = 3600 * USEC_PER_SEC;
    struct uuid holds, big, longer, shorter;

    (void)state;
    save_group("default", "fifo", "concentrated", "{}");
    agent_comes("i-001", TWO_CPUS);
    holds = submit_timed("holds", "cpu", AMOUNT_ONE, hour);
    big = submit_timed("big-one", "cpu", 2 * AMOUNT_ONE, hour);
    longer = submit_timed("longer", "cpu", AMOUNT_ONE, 2 * hour);
    shorter = submit_timed("shorter", "cpu", AMOUNT_ONE, hour / 2);
    assert_int_equal(status_of(&shorter), SESSION_PENDING);
    save_group("default", "fifo", "concentrated", "{\"backfill\":true}");
    assert_int_equal(status_of(&shorter), SESSION_SCHEDULED);
    assert_int_equal(status_of(&big), SESSION_PENDING);
    end_it(&shorter);
    assert_int_equal(status_of(&longer), SESSION_PENDING);
    end_it(&holds);
    assert_int_equal(status_of(&big), SESSION_SCHEDULED);
    assert_int_equal(status_of(&longer), SESSION_PENDING);
    assert_agrees();
    assert_clean();
}

static void test_group_changes(void **state)
{
    struct uuid id;
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = "i-001",
                               .incarnation = uuid_random(),
                               .version = "1",
                               .architecture = "x86_64",
                               .slots = FOUR_CPUS,
                               .resource_group = "night" };
    struct msg_welcome welcome = { 0 };
    struct msg_kernel_status report;
    struct sent order;
    struct aq_error err;
    int64_t retry = 0;

    (void)state;
    save_group("night", "fifo", "concentrated", "{}");
    agent_comes("i-001", FOUR_CPUS);
    id = submit("moved");
    assert_int_equal(status_of(&id), SESSION_SCHEDULED);
    assert_agrees();
    assert_int_equal(inventory_link_ops.on_hello(world.core, &hello, &welcome, &retry, &err), 0);
    inventory_link_ops.on_connected(world.core, "i-001", &hello.incarnation);
    settle();
    order = order_of(&id);
    report = kernel_report(&order, MSG_KERNEL_RUNNING);
    agent_beats("i-001", &report, 1);
    assert_string_equal(agent_entry_find(world.core, "i-001")->a.resource_group, "night");
    assert_agrees();
    assert_true(session_entry_find(world.core, &id)->sched.is_outside);
    end_it(&id);
    assert_int_equal(status_of(&id), GONE);
    assert_agrees();
    assert_clean();
}

/* Two cards have 0.4 free each: that is 0.8 together, but nowhere 0.6. */
static void test_devices(void **state)
{
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = "i-001",
                               .incarnation = uuid_random(),
                               .version = "1",
                               .architecture = "x86_64",
                               .slots = TWO_GPUS,
                               .devices = TWO_GPUS_DEVICES };
    struct msg_welcome welcome = { 0 };
    struct msg_kernel_status report;
    struct sent order;
    struct uuid ids[3];
    struct aq_error err;
    int64_t retry = 0;

    (void)state;
    assert_int_equal(inventory_link_ops.on_hello(world.core, &hello, &welcome, &retry, &err), 0);
    inventory_link_ops.on_connected(world.core, "i-001", &hello.incarnation);
    settle();
    agent_beats("i-001", NULL, 0);
    ids[0] = submit_sized("job-a", "cuda.shares", AMOUNT_ONE * 6 / 10);
    ids[1] = submit_sized("job-b", "cuda.shares", AMOUNT_ONE * 6 / 10);
    ids[2] = submit_sized("job-c", "cuda.shares", AMOUNT_ONE * 6 / 10);
    assert_int_equal(status_of(&ids[0]), SESSION_SCHEDULED);
    assert_int_equal(status_of(&ids[1]), SESSION_SCHEDULED);
    assert_int_equal(status_of(&ids[2]), SESSION_PENDING);
    order = order_of(&ids[0]);
    report = kernel_report(&order, MSG_KERNEL_RUNNING);
    report.alloc = "{\"cuda.shares\":{\"GPU-2\":\"0.60\"}}";
    agent_says("i-001", report);
    order = order_of(&ids[1]);
    report = kernel_report(&order, MSG_KERNEL_RUNNING);
    report.alloc = "{\"cuda.shares\":{\"GPU-1\":\"0.60\"}}";
    agent_says("i-001", report);
    assert_agrees();
    assert_int_equal(status_of(&ids[2]), SESSION_PENDING);
    end_it(&ids[1]);
    assert_int_equal(status_of(&ids[2]), SESSION_SCHEDULED);
    assert_agrees();
    assert_clean();
}

static void test_refused(void **state)
{
    static const struct {
        const char *scheduler, *selection, *opts, *key;
    } bad[] = {
        { "mof", "concentrated", "{}", "scheduler" },
        { "fifo", "nearest", "{}", "selection" },
        { "fifo", "concentrated", "[]", "scheduler_opts" },
        { "fifo", "concentrated", "{\"config\":3}", "config" },
        { "fifo", "concentrated", "{\"config\":{\"num_retries_to_skip\":-1}}",
          "num_retries_to_skip" },
        { "fifo", "concentrated", "{\"config\":{\"num_retries_to_skip\":\"2\"}}",
          "num_retries_to_skip" },
        { "fifo", "concentrated", "{\"backfill\":1}", "backfill" },
        { "fifo", "concentrated", "{\"agent_selection_strategy\":\"X\"}",
          "agent_selection_strategy" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(bad); i++) {
        struct aq_error err = { 0 };
        const struct resource_group g = { .scheduler = (char *)(uintptr_t)bad[i].scheduler,
                                          .selection = (char *)(uintptr_t)bad[i].selection,
                                          .scheduler_opts = (char *)(uintptr_t)bad[i].opts };

        assert_int_equal(core_check_scheduling(&g, &err), -EINVAL);
        assert_string_equal(err.field, bad[i].key);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_agrees),
        TEST(test_taken_back),
        TEST(test_sequencer_live),
        TEST(test_retries_live),
        TEST(test_retries_of_the_tree),
        TEST(test_backfill_live),
        TEST(test_group_changes),
        TEST(test_devices),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
