/* SPDX-License-Identifier: Apache-2.0 */
/* A real manager and real agents over simulated machines: sessions end, over crashes of both, and
 * programs start once.
 */
#include "testing.h"

#include "base/clock.h"
#include "manager/core/core.h"
#include "manager/core/lookup.h"
#include "sim/play/play_agent.h"
#include "sim/play/play_disk.h"
#include "sim/play/play_manager.h"
#include "sim/play/play_runtime.h"

#define USER_KEY "AKIANABBDUSEREXAMPLE"
#define AGENTS 3
#define MINUTE (60 * USEC_PER_SEC)

static struct play_manager *manager;
static struct play_agent *agents[AGENTS];
static simuv_host manager_host;

struct created {
    bool came;
    struct uuid id;
};

static void on_created(void *data, int r, const struct aq_error *err,
                       const struct core_created *created)
{
    struct created *a = data;

    assert_row(r == 0, "%s", err ? err->text : "");
    a->came = true;
    a->id = created->id;
}

static void run_for(int64_t usec)
{
    simuv_run_until(simuv_now_usec() + usec, NULL, NULL);
}

static struct uuid submit_with(const char *command, const char *slot, int64_t amount)
{
    static int number;
    AQ_CLEANUP(slots_donep) struct slots wanted = { .items = NULL };
    struct session_request req = { .type = SESSION_BATCH,
                                   .spec.image = "host",
                                   .spec.command = command,
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    const struct session_request *reqs = &req;
    struct created a = { .came = false };
    char name[32];

    (void)snprintf(name, sizeof(name), "test-%d", ++number);
    req.name = name;
    if (slot)
        assert_int_equal(slots_set(&wanted, slot_name_intern(slot, strlen(slot)), amount), 0);
    req.resources = wanted;
    simuv_enter(manager_host);
    core_create_sessions(play_manager_core(manager), &reqs, 1, NULL, NULL, on_created, &a);
    simuv_leave();
    run_for(USEC_PER_SEC);
    assert_true(a.came);
    return a.id;
}

static struct uuid submit(const char *command)
{
    return submit_with(command, NULL, 0);
}

static bool lives(const struct uuid *id)
{
    const struct session *s = core_find_session(play_manager_core(manager), id);

    return s && s->status != SESSION_TERMINATED && s->status != SESSION_CANCELLED
           && s->status != SESSION_ERROR;
}

struct count {
    int programs, running, most_starts;
};

static void on_program(void *data, const struct play_program *p)
{
    struct count *count = data;

    count->programs++;
    count->running += p->is_running;
    count->most_starts = AQ_MAX(count->most_starts, p->starts);
}

static bool runs(const struct uuid *id)
{
    return core_find_session(play_manager_core(manager), id)->status == SESSION_RUNNING;
}

static struct count count_programs(void)
{
    struct count count = { 0 };

    play_each_program(on_program, &count);
    return count;
}

static int begin(void **state)
{
    static const char *const ids[AGENTS] = { "node-1", "node-2", "node-3" };
    static const char *const ips[AGENTS] = { "10.0.1.1", "10.0.1.2", "10.0.1.3" };

    (void)state;
    simuv_begin(7);
    play_disk_register();
    manager_host = simuv_add_host("10.0.0.1");
    manager = play_manager_new(manager_host, "10.0.0.1", 8082);
    for (int i = 0; i < AGENTS; i++)
        agents[i] = play_agent_new(simuv_add_host(ips[i]), ips[i],
                                   &(struct play_agent_spec){ .id = ids[i],
                                                              .cpus = 4,
                                                              .memory = INT64_C(8) << 30,
                                                              .gpus = i == 0,
                                                              .whole_gpus = i == 1 },
                                   manager);
    run_for(MINUTE);
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < AGENTS; i++)
        play_agent_stop(agents[i]);
    play_manager_free(manager);
    simuv_end();
    return 0;
}

static void test_session_ends(void **state)
{
    int before = count_programs().programs;
    struct uuid id;

    (void)state;
    id = submit("/play run=60");
    run_for(MINUTE / 2);
    assert_true(lives(&id));
    assert_int_equal(count_programs().running, 1);
    run_for(2 * MINUTE);
    assert_false(lives(&id));
    assert_int_equal(count_programs().running, 0);
    assert_int_equal(count_programs().programs, before + 1);
    assert_int_equal(count_programs().most_starts, 1);
}

static void test_crash_of_manager(void **state)
{
    int before = count_programs().programs;
    struct uuid id;

    (void)state;
    id = submit("/play run=240");
    run_for(MINUTE);
    play_manager_crash(manager, false);
    assert_null(play_manager_core(manager));
    run_for(MINUTE);
    play_manager_boot(manager);
    assert_true(lives(&id)); /* acknowledged, so durable */
    run_for(MINUTE);
    assert_true(lives(&id));
    run_for(4 * MINUTE);
    assert_false(lives(&id));
    assert_int_equal(count_programs().programs, before + 1);
    assert_int_equal(count_programs().most_starts, 1);
}

static void test_crash_of_agents(void **state)
{
    int before = count_programs().programs;
    struct uuid id;

    (void)state;
    id = submit("/play run=240");
    run_for(MINUTE);
    for (int i = 0; i < AGENTS; i++)
        play_agent_crash(agents[i], false);
    run_for(USEC_PER_SEC);
    assert_int_equal(count_programs().running, 1);
    for (int i = 0; i < AGENTS; i++)
        play_agent_boot(agents[i]);
    run_for(MINUTE);
    assert_true(lives(&id));
    run_for(4 * MINUTE);
    assert_false(lives(&id));
    assert_int_equal(count_programs().programs, before + 1);
    assert_int_equal(count_programs().most_starts, 1);
}

struct holds {
    const char *agent_id;
    int64_t cpu, memory, card; /* of running programs: 10^-6 cores, bytes, 10^-6 cards */
    int cards;                 /* devices of which these are parts */
};

static void on_holds(void *data, const struct play_program *p)
{
    struct holds *holds = data;

    if (!p->is_running || strcmp(p->agent_id, holds->agent_id) != 0)
        return;
    for (size_t i = 0; i < p->holds.count; i++) {
        const struct grant_item *item = &p->holds.items[i];

        holds->cpu += strcmp(item->slot_name, "cpu") == 0 ? item->amount : 0;
        holds->memory += strcmp(item->slot_name, "mem") == 0 ? item->amount : 0;
        if (strncmp(item->slot_name, "cuda.", 5) == 0) {
            assert_non_null(strstr(item->device_id, holds->agent_id));
            holds->card += item->amount;
            holds->cards++;
        }
    }
}

static struct holds sum_holds(const char *agent_id)
{
    struct holds holds = { .agent_id = agent_id };

    play_each_program(on_holds, &holds);
    return holds;
}

/* The only card in shares has room for a half and two quarters. */
static void test_parts_of_gpu(void **state)
{
    struct uuid half, quarters[2], late;
    struct holds holds;

    (void)state;
    half = submit_with("/play run=300", "cuda.shares", AMOUNT_ONE / 2);
    for (int i = 0; i < 2; i++)
        quarters[i] = submit_with("/play run=600", "cuda.shares", AMOUNT_ONE / 4);
    late = submit_with("/play run=300", "cuda.shares", AMOUNT_ONE / 4);
    run_for(MINUTE);
    assert_true(runs(&half));
    assert_true(runs(&quarters[0]));
    assert_true(runs(&quarters[1]));
    assert_false(runs(&late));
    assert_string_equal(core_find_session(play_manager_core(manager), &half)->kernels[0].agent_id,
                        "node-1");
    holds = sum_holds("node-1");
    assert_int_equal(holds.cpu, 3 * AMOUNT_ONE);
    assert_int_equal(holds.memory, 3 * (INT64_C(1) << 30));
    assert_int_equal(holds.card, AMOUNT_ONE);
    assert_int_equal(holds.cards, 3);
    run_for(6 * MINUTE); /* the half has ended */
    assert_false(lives(&half));
    assert_true(runs(&quarters[0]));
    assert_true(runs(&late));
    run_for(10 * MINUTE);
    assert_false(lives(&late));
    assert_int_equal(count_programs().running, 0);
}

static void test_whole_gpu(void **state)
{
    struct uuid first, second;

    (void)state;
    first = submit_with("/play run=240", "cuda.device", AMOUNT_ONE);
    second = submit_with("/play run=60", "cuda.device", AMOUNT_ONE);
    run_for(MINUTE);
    assert_true(runs(&first));
    assert_false(runs(&second));
    assert_string_equal(core_find_session(play_manager_core(manager), &first)->kernels[0].agent_id,
                        "node-2");
    assert_int_equal(sum_holds("node-2").card, AMOUNT_ONE);
    run_for(6 * MINUTE);
    assert_false(lives(&first));
    assert_false(lives(&second));
    assert_int_equal(count_programs().most_starts, 1);
}

/* A card's parts are found again in what the agent wrote about its kernels. */
static void test_parts_over_crash_of_agent(void **state)
{
    struct uuid half, other, late;

    (void)state;
    half = submit_with("/play run=600", "cuda.shares", AMOUNT_ONE / 2);
    other = submit_with("/play run=600", "cuda.shares", AMOUNT_ONE / 2);
    run_for(MINUTE);
    assert_true(runs(&half) && runs(&other));
    play_agent_crash(agents[0], false);
    run_for(USEC_PER_SEC);
    play_agent_boot(agents[0]);
    late = submit_with("/play run=60", "cuda.shares", AMOUNT_ONE / 20);
    run_for(2 * MINUTE);
    assert_true(runs(&half) && runs(&other));
    assert_false(runs(&late));
    run_for(12 * MINUTE);
    assert_false(lives(&late));
    assert_int_equal(count_programs().running, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session_ends),    cmocka_unit_test(test_crash_of_manager),
        cmocka_unit_test(test_crash_of_agents), cmocka_unit_test(test_parts_of_gpu),
        cmocka_unit_test(test_whole_gpu),       cmocka_unit_test(test_parts_over_crash_of_agent),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
