/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: every rule with what it says; several at once. */
#include "world.h"

#include <errno.h>

#include "sched/admit.h"

#define BATCH (1u << SESSION_BATCH)
#define INTERACTIVE (1u << SESSION_INTERACTIVE)

/* The agents of the world: each group has all of them. */
static bool next_agent(const void *data, size_t *at, struct sched_agent *ret)
{
    (void)data;
    if (*at == world.snap.agent_count)
        return false;
    *ret = world.agents[(*at)++];
    ret->capacity = ret->free;
    return true;
}

static bool no_agent(const void *data, size_t *at, struct sched_agent *ret)
{
    (void)data;
    (void)at;
    (void)ret;
    return false;
}

static const struct admit_resource_group groups[] = {
    { "a", BATCH, next_agent, NULL },
    { "b", INTERACTIVE, next_agent, NULL },
    { "c", BATCH | INTERACTIVE, next_agent, NULL },
    { "new", BATCH, no_agent, NULL },
};

static struct admission admission(const char *request)
{
    return (struct admission){ .session = session(request),
                               .types = world.types,
                               .groups = groups,
                               .group_count = 3,
                               .containers_max = ADMIT_UNLIMITED,
                               .pending_max = ADMIT_UNLIMITED,
                               .priority_max = 100 };
}

static void test_groups(void **state)
{
    static const struct {
        enum session_type type;
        const char *group;
        size_t from, count; /* of the groups above */
        const char *found, *says;
    } rows[] = {
        { SESSION_BATCH, "a", 0, 3, "a", NULL },
        { SESSION_BATCH, "b", 0, 3, NULL,
          "The scaling group 'b' does not accept the session type 'batch'. " },
        { SESSION_BATCH, "c", 0, 3, "c", NULL },
        { SESSION_INTERACTIVE, "a", 0, 3, NULL, "does not accept" },
        { SESSION_INTERACTIVE, "x", 0, 3, NULL,
          "You do not have access to the scaling group 'x'." },
        { SESSION_BATCH, NULL, 0, 3, "a", NULL },
        { SESSION_BATCH, NULL, 1, 2, "c", NULL },
        { SESSION_INTERACTIVE, NULL, 0, 3, "b", NULL },
        { SESSION_INTERACTIVE, NULL, 0, 0, NULL,
          "You do not have any scaling groups allowed to use." },
        { SESSION_INTERACTIVE, NULL, 0, 1, NULL,
          "No scaling groups accept the session type 'interactive'." },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct admit_resource_group *found = NULL;
        struct aq_error err = { 0 };
        struct admission a;
        int r;

        begin(&sched_fifo, &sched_concentrated);
        (void)agent("i-1", "cpu=64 mem=65536 cuda.shares=2");
        a = admission("cpu=1 mem=1024");
        world.sessions[0].type = rows[i].type;
        a.resource_group = rows[i].group;
        a.groups = &groups[rows[i].from];
        a.group_count = rows[i].count;
        r = sched_admit(&a, &found, &world.arena, NULL, &err);
        assert_row((r == 0) == !rows[i].says, "%zu: %s", i, err.text);
        assert_row(rows[i].says || strcmp(found->name, rows[i].found) == 0, "%zu", i);
        assert_row(!rows[i].says || strstr(err.text, rows[i].says), "%zu: %s", i, err.text);
        end();
    }
}

/* Resource group and keypair policy both have to allow the host network; the error names the one
 * that does not.
 */
static void test_networks(void **state)
{
    static const struct admit_resource_group open = { .name = "open",
                                                      .types = INTERACTIVE,
                                                      .networks = ADMIT_NETWORK_PRIVATE
                                                                  | ADMIT_NETWORK_HOST,
                                                      .next_agent = next_agent };
    const struct admit_resource_group both[] = { groups[1], open };
    static const struct {
        unsigned networks;
        size_t from, count;
        bool may_use_host;
        const char *found, *says;
    } rows[] = {
        { ADMIT_NETWORK_HOST, 0, 2, true, "open", NULL },
        { ADMIT_NETWORK_PRIVATE, 0, 2, false, "b", NULL },
        { 0, 1, 1, false, "open", NULL },
        { ADMIT_NETWORK_HOST, 0, 1, true, NULL,
          "The resource group 'b' does not allow the host network and RDMA; a superadmin may allow it: "
          "aliquot admin resource-group set b --networks private,host" },
        { ADMIT_NETWORK_HOST, 0, 2, false, NULL,
          "Your keypair policy 'students' does not allow the host network and RDMA; a superadmin may allow "
          "it: aliquot admin policy set students --host-network yes" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct admit_resource_group *found = NULL;
        struct aq_error err = { 0 };
        struct admission a;
        int r;

        begin(&sched_fifo, &sched_concentrated);
        (void)agent("i-1", "cpu=64 mem=65536");
        a = admission("cpu=1 mem=1024");
        world.sessions[0].type = SESSION_INTERACTIVE;
        a.groups = both + rows[i].from;
        a.group_count = rows[i].count;
        a.networks = rows[i].networks;
        a.policy = "students";
        a.may_use_host = rows[i].may_use_host;
        r = sched_admit(&a, &found, &world.arena, NULL, &err);
        assert_row(r == (rows[i].says ? -EPERM : 0), "%zu: %s", i, err.text);
        assert_row(rows[i].says || strcmp(found->name, rows[i].found) == 0, "%zu", i);
        assert_row(!rows[i].says || strcmp(err.text, rows[i].says) == 0, "%zu: %s", i, err.text);
        assert_row(!rows[i].says || strcmp(err.kind, ADMIT_NETWORK_FORBIDDEN) == 0, "%zu", i);
        end();
    }
}

static void test_rules(void **state)
{
    static const struct {
        const char *request, *min, *max, *pending, *pending_max;
        int64_t shmem, containers_max, pending_count, pending_count_max;
        int priority, priority_max;
        const char *field, *says; /* NULL: nothing is wrong */
    } rows[] = {
        { "cpu=1 mem=1024", .priority_max = 100, .containers_max = 1, .pending_count_max = 1 },
        { "mem=1024", .priority_max = 100, .containers_max = 1, .pending_count_max = 1,
          .field = "cpu", .says = "A session needs some cpu." },
        { "cpu=1 mem=1024", .min = "cpu=2", .priority_max = 100, .containers_max = 1,
          .pending_count_max = 1, .field = "cpu", .says = "at least cpu=2, not 1" },
        { "cpu=4 mem=1024", .max = "cpu=2", .priority_max = 100, .containers_max = 1,
          .pending_count_max = 1, .field = "cpu", .says = "at most cpu=2, not 4" },
        { "cpu=1 mem=1024", .min = "mem=1000", .shmem = 25, .priority_max = 100,
          .containers_max = 1, .pending_count_max = 1, .field = "mem",
          .says = "at least mem=1 KiB" },
        { "cpu=1 mem=1024", .min = "mem=1000", .shmem = 24, .priority_max = 100,
          .containers_max = 1, .pending_count_max = 1 },
        { "cpu=1 mem=1024", .shmem = 1024, .priority_max = 100, .containers_max = 1,
          .pending_count_max = 1, .field = "resource_opts", .says = "must be less than memory" },
        { "cpu=1 mem=1024 rocm.devices=1", .priority_max = 100, .containers_max = 1,
          .pending_count_max = 1, .field = "config.resources.rocm.devices",
          .says = "No agent has the slot 'rocm.devices'." },
        { "cpu=1 mem=1024 rocm.devices=0", .priority_max = 100, .containers_max = 1,
          .pending_count_max = 1 },
        { "cpu=1 mem=1024", .priority_max = 100, .containers_max = 0, .pending_count_max = 1,
          .field = "clusterSize", .says = "at most 0 containers, not 1" },
        { "cpu=1 mem=1024", .priority = 51, .priority_max = 50, .containers_max = 1,
          .pending_count_max = 1, .field = "priority", .says = "highest priority is 50, not 51" },
        { "cpu=1 mem=1024", .priority_max = 100, .containers_max = 1, .pending_count = 3,
          .pending_count_max = 3, .field = "", .says = "more than 3 pending" },
        { "cpu=2 mem=1024", .pending = "cpu=3", .pending_max = "cpu=4", .priority_max = 100,
          .containers_max = 1, .pending_count_max = 1, .field = "cpu",
          .says = "would ask for cpu=5, more than the limit 4" },
        { "cpu=2 mem=1024", .pending = "cpu=2", .pending_max = "cpu=4", .priority_max = 100,
          .containers_max = 1, .pending_count_max = 1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct admit_resource_group *found = NULL;
        struct admit_kernel kernel = { .shmem_bytes = rows[i].shmem };
        struct aq_error err = { 0 };
        struct admission a;
        int r;

        begin(&sched_fifo, &sched_concentrated);
        (void)agent("i-1", "cpu=64 mem=65536 cuda.shares=2");
        a = admission(rows[i].request);
        world.sessions[0].priority = rows[i].priority;
        kernel.min = rows[i].min ? own(rows[i].min) : NULL;
        kernel.max = rows[i].max ? own(rows[i].max) : NULL;
        a.kernels = &kernel;
        a.containers_max = rows[i].containers_max;
        a.priority_max = rows[i].priority_max;
        a.pending = rows[i].pending_count;
        a.pending_max = rows[i].pending_count_max;
        a.pending_slots = rows[i].pending ? own(rows[i].pending) : NULL;
        a.pending_slots_max = rows[i].pending_max ? own(rows[i].pending_max) : NULL;
        r = sched_admit(&a, &found, &world.arena, NULL, &err);
        assert_row((r == 0) == !rows[i].says, "%zu: %s", i, err.text);
        if (rows[i].says) {
            assert_row(strstr(err.text, rows[i].says), "%zu: %s", i, err.text);
            assert_row(strcmp(err.field, rows[i].field) == 0, "%zu: %s", i, err.field);
        }
        end();
    }
}

/* Twenty sessions, each with as many things wrong as its number has bits: all are said. */
static void test_all_are_said(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 32; n++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        const struct admit_resource_group *found = NULL;
        struct admission a;
        size_t lines = 0;
        int r;

        begin(&sched_fifo, &sched_concentrated);
        (void)agent("i-1", "cpu=64 mem=65536 cuda.shares=2");
        a = admission(n & 1 ? "mem=1024" : "cpu=1 mem=1024");
        a.group_count = n & 2 ? 0 : 3;
        a.containers_max = n & 4 ? 0 : 1;
        a.priority_max = n & 8 ? 9 : 10;
        a.pending_max = n & 16 ? 0 : 1;
        r = sched_admit(&a, &found, &world.arena, &text, NULL);
        for (const char *c = text.data; *c; c++)
            lines += *c == '\n';
        lines += text.len > 0;
        assert_row(lines == (size_t)__builtin_popcount(n), "%u: %s", n, text.data);
        assert_true((r == 0) == (n == 0));
        end();
    }
}

/* Two agents: one has two GPUs that give tenths, the other more cores and none. */
static void make_agents(void)
{
    static const char slot[] = "cuda.shares";
    struct sched_agent *a;

    begin(&sched_fifo, &sched_concentrated);
    a = agent("gpus", "cpu=8 mem=8192 cuda.shares=2");
    for (size_t d = 0; d < 2; d++)
        world.devices[0][d] = (struct sched_device){ slot_name_intern(slot, strlen(slot)), NULL,
                                                     AMOUNT_ONE, AMOUNT_ONE, AMOUNT_ONE / 10 };
    a->devices = world.devices[0];
    a->device_count = 2;
    (void)agent("cores", "cpu=16 mem=4096");
}

/* Kernels of a role are looked at by themselves: main1 does not count for them. */
static void test_capacity_of_roles(void **state)
{
    static const char *const names[] = { "main", "worker", "worker", "worker" };
    static const struct {
        const char *main, *worker;
        bool single;
        const char *field, *says; /* NULL: nothing is wrong */
    } rows[] = {
        { "cpu=16 mem=16", "cpu=1 mem=16" },
        { "cpu=1 mem=16", "cpu=8 mem=16" },
        { "cpu=1 mem=16", "cpu=17 mem=16", .field = "roles.worker.resources.cpu",
          .says = "No agent has cpu=17: ask for 16 at most" },
        { "cpu=1 mem=16", "cpu=9 mem=16", .field = "roles.worker.count",
          .says = "All agents together hold 1 such containers, not 3" },
        { "cpu=17 mem=16", "cpu=1 mem=16", .field = "config.resources.cpu", .says = "cpu=17" },
        { "cpu=1 mem=16", "cpu=6 mem=16", .single = true, .field = "roles.worker.resources.cpu",
          .says = "cpu=6 for each container: ask for 5 at most" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct admit_resource_group *found = NULL;
        struct aq_error err = { 0 };
        struct admission a;
        int r;

        make_agents();
        a = admission(rows[i].main);
        for (size_t k = 1; k < AQ_COUNT(names); k++)
            kernel(rows[i].worker);
        a.roles = names;
        world.sessions[0].single_node = rows[i].single;
        r = sched_admit(&a, &found, &world.arena, NULL, &err);
        assert_row(r == (rows[i].says ? -EINVAL : 0), "%zu: %s", i, err.text);
        if (rows[i].says) {
            assert_row(strstr(err.text, rows[i].says), "%zu: %s", i, err.text);
            assert_row(strcmp(err.field, rows[i].field) == 0, "%zu: %s", i, err.field);
        }
        end();
    }
}

static void test_capacity(void **state)
{
    static const char *const only_gpus[] = { "gpus" };
    static const struct {
        const char *request;
        size_t containers;
        bool spreads, waits, designated;
        const char *architecture, *field, *says; /* NULL: nothing is wrong */
    } rows[] = {
        { "cpu=16 mem=1024", 1 },
        { "cpu=1 mem=1024 cuda.shares=0.5", 1 },
        { "cpu=1 mem=1024 cuda.shares=1.9", 1 },
        { "cpu=1 mem=1024 cuda.shares=0.55", 1, .field = "config.resources.cuda.shares",
          .says = "No agent gives cuda.shares=0.55: ask for 0.5 or 0.6 (the largest is 2), or let "
                  "it wait for such an agent (--wait-for-capacity)." },
        { "cpu=1 mem=1024 cuda.shares=0.05", 1, .field = "config.resources.cuda.shares",
          .says = "gives cuda.shares=0.05: ask for 0.1 (the largest is 2)" },
        { "cpu=1 mem=1024 cuda.shares=2.1", 1, .field = "config.resources.cuda.shares",
          .says = "has cuda.shares=2.1: ask for 2 at most" },
        { "cpu=17 mem=1024", 1, .field = "config.resources.cpu",
          .says = "No agent has cpu=17: ask for 16 at most" },
        { "cpu=1 mem=1g", 1, .field = "config.resources.mem",
          .says = "mem=1g: ask for 8k at most" },
        { "cpu=17 mem=1024", 1, .waits = true },
        { "cpu=1 mem=1024 cuda.shares=0.55", 1, .waits = true },
        { "cpu=1 mem=1024 rocm.devices=1", 1, .waits = true },
        { "cpu=17 mem=1024", 1, .architecture = "aarch64" }, /* never had an agent of it */
        { "cpu=16 mem=1024", 1, .designated = true, .field = "config.resources.cpu",
          .says = "ask for 8 at most" },
        { "cpu=16 mem=1024 cuda.shares=1", 1, .field = "config.resources.cpu",
          .says = "cpu=16 beside all else that is asked for: ask for 8 at most" },
        { "cpu=16 mem=8192 cuda.shares=1", 1, .field = "config.resources.cpu",
          .says = "ask for 8 at most" },
        { "cpu=9 mem=8192", 1, .field = "config.resources.cpu", .says = "ask for 8 at most" },
        { "cpu=4 mem=1024", 4 },
        { "cpu=5 mem=1024", 4, .field = "config.resources.cpu",
          .says = "cpu=5 for each container: ask for 4 at most" },
        { "cpu=1 mem=16 cuda.shares=0.5", 4 },
        { "cpu=1 mem=16 cuda.shares=0.6", 4, .field = "config.resources.cuda.shares",
          .says = "for each container: ask for 0.5 at most" },
        { "cpu=1 mem=16", 17, .field = "clusterSize",
          .says = "No agent holds 17 containers with cpu=1 each: the most is cpu=16, ask for" },
        { "cpu=5 mem=1024", 4, .spreads = true },
        { "cpu=5 mem=1024", 5, .spreads = true, .field = "clusterSize",
          .says = "All agents together hold 4 such containers, not 5: ask for 4 at most" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct admit_resource_group *found = NULL;
        struct aq_error err = { 0 };
        struct admission a;
        int r;

        make_agents();
        a = admission(rows[i].request);
        for (size_t k = 1; k < rows[i].containers; k++)
            kernel(rows[i].request);
        a.waits_for_capacity = rows[i].waits;
        world.sessions[0].single_node = !rows[i].spreads;
        world.sessions[0].architecture = rows[i].architecture;
        world.sessions[0].designated = only_gpus;
        world.sessions[0].designated_count = rows[i].designated;
        world.sessions[0].designated_strict = true;
        r = sched_admit(&a, &found, &world.arena, NULL, &err);
        assert_row(r == (rows[i].says ? -EINVAL : 0), "%zu: %s", i, err.text);
        if (rows[i].says) {
            assert_row(strstr(err.text, rows[i].says), "%zu: %s", i, err.text);
            assert_string_equal(err.field, rows[i].field);
        } else {
            assert_string_equal(found->name, "a");
        }
        end();
    }
}

/* One that never had an agent takes everything, by its name or if there is no other. */
static void test_capacity_of_new_group(void **state)
{
    const struct admit_resource_group *found = NULL;
    struct aq_error err = { 0 };
    struct admission a;

    (void)state;
    make_agents();
    a = admission("cpu=1000 mem=1024");
    a.group_count = 4;
    assert_int_equal(sched_admit(&a, &found, &world.arena, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.text, "ask for 16 at most"));
    a.resource_group = "new";
    assert_int_equal(sched_admit(&a, &found, &world.arena, NULL, &err), 0);
    assert_string_equal(found->name, "new");
    a.resource_group = NULL;
    a.groups = &groups[3];
    a.group_count = 1;
    assert_int_equal(sched_admit(&a, &found, &world.arena, NULL, &err), 0);
    assert_string_equal(found->name, "new");
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_all_are_said),
        cmocka_unit_test(test_capacity_of_roles),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_capacity_of_new_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
