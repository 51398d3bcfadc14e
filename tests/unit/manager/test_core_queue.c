/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions that wait are told, in which order they start, and how long they wait. */
#include "world.h"

#include "ended_session.h"

static void test_queue_order(void **state)
{
    struct uuid ids[6];
    struct answer a = { 0 };

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    for (size_t i = 0; i < 6; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "job-%zu", i);
        ids[i] = submit(name);
    }
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(status_of(&ids[i]), i < 4 ? SESSION_SCHEDULED : SESSION_PENDING);
    core_set_priority(world.core, &ids[5], 50, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 1), 0);
    assert_int_equal(status_of(&ids[1]), GONE);
    assert_int_equal(status_of(&ids[5]), SESSION_SCHEDULED);
    assert_int_equal(status_of(&ids[4]), SESSION_PENDING);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 0), 0);
    assert_int_equal(status_of(&ids[4]), SESSION_SCHEDULED);
    assert_clean();
}

static void test_explain(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct uuid ids[2];

    (void)state;
    ids[0] = submit("no-agent");
    assert_int_equal(core_explain(world.core, &ids[0], &text, NULL, NULL), 0);
    assert_non_null(strstr(text.data, "no machine has joined"));
    pass(3 * USEC_PER_SEC); /* the row knows it too after a while */
    assert_non_null(core_find_session(world.core, &ids[0])->reason);
    assert_clean();
    ids[1] = submit("behind"); /* the first agent decides what is too much */
    agent_comes("i-001", "{\"cpu\":[\"count\",\"0.5\"],\"mem\":[\"bytes\",\"8589934592\"]}");
    strbuf_clear(&text);
    assert_int_equal(core_explain(world.core, &ids[0], &text, NULL, NULL), 0);
    assert_non_null(strstr(text.data, "cpu: 0.5 missing on i-001"));
    strbuf_clear(&text);
    assert_int_equal(core_explain(world.core, &ids[1], NULL, &text, NULL), 0);
    assert_non_null(strstr(text.data, "\"no-capacity\""));
    assert_int_equal(core_explain(world.core, &(struct uuid){ { 1 } }, &text, NULL, NULL), -ENOENT);
}

static struct uuid submit_first(const char *name)
{
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = 50 };
    struct answer a = create(&req);

    assert_int_equal(a.r, 0);
    return a.created.id;
}

/* Whichever of its names the session and the agent give an architecture. */
static void test_architecture_names(void **state)
{
    struct session_request req = { .name = "amd",
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .spec.architecture = "AMD64",
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    struct answer a;

    (void)state;
    agent_comes("i-001", FOUR_CPUS); /* x86_64 */
    a = create(&req);
    assert_int_equal(a.r, 0);
    assert_int_equal(status_of(&a.created.id), SESSION_SCHEDULED);
    req.name = "arm";
    req.spec.architecture = "arm64";
    a = create(&req);
    assert_int_equal(a.r, 0);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING);
}

/* What passes made of a session is kept with it, across a restart too. */
static void test_attempts(void **state)
{
    struct session_request req = { .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .name = "job-four" };
    struct uuid id, other;
    struct answer a;

    (void)state;
    assert_int_equal(slots_set(&req.resources, slot_name_intern("cpu", 3), 4 * AMOUNT_ONE), 0);
    agent_comes("i-001", FOUR_CPUS);
    other = submit("job-one");
    check_attempts(&other, "placed:1! ");
    a = create(&req);
    assert_int_equal(a.r, 0);
    id = a.created.id;
    pass(3 * USEC_PER_SEC);
    check_attempts(&id, "no-room:1 ");
    for (int i = 0; i < 3; i++) { /* something becomes free, but not enough */
        struct uuid small = submit_first("job-small");

        assert_int_equal(status_of(&small), SESSION_SCHEDULED);
        agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 1 + (size_t)i), 0);
    }
    pass(70 * USEC_PER_SEC);
    check_attempts(&id, "no-room:7 "); /* before and after each */
    restart_core();
    pass(3 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    agent_comes("i-002", FOUR_CPUS);
    assert_int_equal(status_of(&id), SESSION_SCHEDULED);
    slots_done(&req.resources);
    assert_clean();
}

static struct core_start_estimate outlook_of(const struct uuid *id)
{
    struct core_start_estimate estimate;

    assert_int_equal(core_get_start_estimate(world.core, id, &estimate), 0);
    return estimate;
}

/* One of four cores each, the first until its time limit. */
static void test_outlook(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct session_request req = { .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    struct core_start_estimate estimate;
    struct uuid ids[4];
    struct answer a;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    assert_int_equal(slots_set(&req.resources, slot_name_intern("cpu", 3), 4 * AMOUNT_ONE), 0);
    for (int i = 0; i < 3; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "job-%d", i);
        req.name = name;
        req.spec.batch_timeout_usec = i == 1 ? 0 : 3600 * USEC_PER_SEC;
        a = create(&req);
        assert_int_equal(a.r, 0);
        ids[i] = a.created.id;
    }
    req.name = "job-3";
    req.starts_usec = world_wall + 7200 * USEC_PER_SEC;
    a = create(&req);
    ids[3] = a.created.id;
    assert_int_equal(status_of(&ids[0]), SESSION_SCHEDULED);
    estimate = outlook_of(&ids[1]);
    assert_int_equal(estimate.position, 1);
    assert_int_equal(estimate.length, 2);
    assert_int_equal(estimate.start, SCHED_START_AT);
    assert_true(estimate.starts_usec > world_wall + 3590 * USEC_PER_SEC
                && estimate.starts_usec <= world_wall + 3600 * USEC_PER_SEC);
    assert_int_equal(estimate.tries, 3); /* with backfill, each that comes has all looked at */
    assert_int_equal(outlook_of(&ids[2]).position, 2);
    assert_int_equal(outlook_of(&ids[2]).start, SCHED_START_OPEN); /* job-1 has no limit */
    assert_int_equal(outlook_of(&ids[3]).position, 0);
    assert_int_equal(outlook_of(&ids[3]).start, SCHED_START_RULED_OUT);
    assert_int_equal(core_get_start_estimate(world.core, &ids[0], &estimate), -ENOENT);
    assert_int_equal(core_explain(world.core, &ids[2], &text, NULL, NULL), 0);
    assert_non_null(strstr(text.data, "It is number 2 of 2 that wait for room in resource group "
                                      "'default'."));
    strbuf_clear(&text);
    assert_int_equal(core_explain(world.core, &ids[1], NULL, &text, NULL), 0);
    assert_non_null(strstr(text.data, "\"position\":1,\"queue_length\":2,\"start\":\"known\""));
    slots_done(&req.resources);
    assert_clean();
}

static void test_starts_at(void **state)
{
    struct session_request req = { .name = "later",
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    struct answer a;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    req.starts_usec = world_wall + 10 * USEC_PER_SEC;
    a = create(&req);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING);
    pass(9 * USEC_PER_SEC);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING);
    pass(2 * USEC_PER_SEC);
    assert_int_equal(status_of(&a.created.id), SESSION_SCHEDULED);
    assert_clean();
}

static void set_pending_timeout(int64_t usec)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_RESOURCE_GROUP_SAVED, world_wall);
    const struct resource_group *g = core_find_resource_group(world.core, "default");
    struct answer a = { 0 };

    e->resource_group = (struct resource_group){ .name = strdup(g->name),
                                                 .is_active = true,
                                                 .scheduler = strdup("fifo"),
                                                 .selection = strdup("dispersed"),
                                                 .agent_loss_policy = strdup("wait"),
                                                 .pending_timeout_usec = usec };
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

/* A wall clock that jumps expires nothing; time that passes does. */
static void test_pending_timeout(void **state)
{
    struct uuid id;

    (void)state;
    set_pending_timeout(60 * USEC_PER_SEC);
    id = submit("waits-long");
    world_wall += 3600 * USEC_PER_SEC;
    pass(2 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    world_wall -= 7200 * USEC_PER_SEC;
    pass(30 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    pass(30 * USEC_PER_SEC);
    assert_int_equal(ended_session_read(&id).status, SESSION_CANCELLED);
    assert_string_equal(ended_session_read(&id).reason, "pending-timeout");
    assert_clean();
}

/* Two days, for one of a second, one of a day and a second, one of two days and a second. */
static void test_pending_timeout_of_three(void **state)
{
    static const char *const names[] = { "oldest", "older", "young" };
    struct uuid ids[3];

    (void)state;
    for (int timeout = 0; timeout < 2; timeout++) {
        set_pending_timeout(timeout ? 2 * 86400 * USEC_PER_SEC : 0);
        for (int i = 0; i < 3; i++) {
            ids[i] = submit(names[i]);
            pass((i < 2 ? 86400 : 1) * USEC_PER_SEC);
        }
        assert_int_equal(status_of(&ids[0]), timeout ? GONE : SESSION_PENDING);
        assert_int_equal(status_of(&ids[1]), SESSION_PENDING);
        assert_int_equal(status_of(&ids[2]), SESSION_PENDING);
        for (int i = timeout; i < 3; i++)
            assert_int_equal(terminate(&ids[i], true).r, 0);
        settle();
    }
    assert_clean();
}

/* The time that a manager was not there counts, a jump of the clock does not. */
static void test_timeout_across_restarts(void **state)
{
    struct uuid id;

    (void)state;
    set_pending_timeout(1000 * USEC_PER_SEC);
    id = submit("waits-long");
    pass(300 * USEC_PER_SEC);
    restart_core();
    assert_int_equal(status_of(&id), SESSION_PENDING);
    world_wall += 400 * 86400 * USEC_PER_SEC;
    restart_core();
    pass(300 * USEC_PER_SEC);
    world_wall -= 800 * 86400 * USEC_PER_SEC;
    restart_core();
    pass(100 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    world_wall += 400 * 86400 * USEC_PER_SEC; /* right again */
    restart_core();
    pass(200 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);

    id = submit("waits-again");
    pass(300 * USEC_PER_SEC);
    world_wall += 690 * USEC_PER_SEC; /* nobody is there */
    world_mono += 690 * USEC_PER_SEC;
    restart_core();
    assert_int_equal(status_of(&id), SESSION_PENDING);
    pass(20 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING); /* agents are to be heard first */
    pass(45 * USEC_PER_SEC);
    assert_int_equal(ended_session_read(&id).status, SESSION_CANCELLED);
    assert_clean();
}

/* Of two managers the other one leads from here on, whose clock is ahead of this one's; each has a
 * state folder of its own.
 */
static void change_leader(int64_t ahead_usec)
{
    char own[96], other[96], moved[96];

    (void)snprintf(own, sizeof(own), "%s/clock", world.dir);
    (void)snprintf(other, sizeof(other), "%s/clock.other", world.dir);
    (void)snprintf(moved, sizeof(moved), "%s/clock.moved", world.dir);
    close_core();
    assert_int_equal(rename(own, moved), 0);
    (void)rename(other, own); /* not before it has led once */
    assert_int_equal(rename(moved, other), 0);
    world_wall += ahead_usec;
    world.conf.ahead_usec = ahead_usec;
    world.sent_count = 0;
    open_core();
}

/* What the other manager's clock is ahead ends nothing, however often they take over. */
static void test_timeout_across_managers(void **state)
{
    const int64_t hour = 3600 * USEC_PER_SEC;
    struct uuid id;

    (void)state;
    set_pending_timeout(1000 * USEC_PER_SEC);
    id = submit("waits-long");
    for (int i = 0; i < 8; i++) {
        pass(100 * USEC_PER_SEC);
        change_leader(i % 2 ? -hour : hour);
        pass(2 * USEC_PER_SEC);
        assert_int_equal(status_of(&id), SESSION_PENDING);
    }
    pass(100 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    pass(90 * USEC_PER_SEC);
    assert_int_equal(ended_session_read(&id).status, SESSION_CANCELLED);
    assert_clean();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    static const struct CMUnitTest tests[] = {
        TEST(test_queue_order),
        TEST(test_explain),
        TEST(test_attempts),
        TEST(test_architecture_names),
        TEST(test_outlook),
        TEST(test_starts_at),
        TEST(test_pending_timeout),
        TEST(test_pending_timeout_of_three),
        TEST(test_timeout_across_restarts),
        TEST(test_timeout_across_managers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
