/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of sessions between agents, and which agents are told of them */
#include "world.h"

#include "base/memory.h"
#include "manager/core/nodes/reach.h"
#include "manager/core/state/agent_network.h"

static void test_ranges(void **state)
{
    struct subnets subnets;
    struct cluster_range a, b, first = { 0 };

    (void)state;
    assert_int_equal(subnets_init(&subnets, "10.214.0.0/23", NULL), -EINVAL);
    assert_int_equal(subnets_init(&subnets, "10.214.0.0", NULL), -EINVAL);
    assert_int_equal(subnets_init(&subnets, "10.214.0.0/22", NULL), 0);
    assert_true(subnets_take(&subnets, 4, &a));
    assert_int_equal(a.bits, 29);
    assert_int_equal(a.first, 0x0ad60100); /* behind the addresses of agents */
    assert_true(subnets_take(&subnets, 7, &b));
    assert_int_equal(b.bits, 28);
    assert_int_equal(b.first, 0x0ad60110); /* aligned */
    assert_false(subnets_take_range(&subnets, &b));
    subnets_give(&subnets, &b);
    assert_true(subnets_take_range(&subnets, &b));
    assert_false(subnets_take(&subnets, 1024, &first));
    subnets_give(&subnets, &a);
    for (size_t i = 0; i < (768 - 32) / 8; i++) /* what was given back comes last */
        assert_true(subnets_take(&subnets, 6, &first) && first.first > b.first);
    assert_true(subnets_take(&subnets, 6, &first) && first.first < b.first);
    assert_true(subnets_take(&subnets, 6, &first) && first.first < b.first);
    assert_false(subnets_take(&subnets, 1, &first));
    assert_false(subnets_take_range(&subnets, &(struct cluster_range){ 0x0ad70000, 29 }));
    subnets_done(&subnets);
}

static void test_agents(void **state)
{
    struct subnets subnets;
    uint32_t a, seen = 0;

    (void)state;
    assert_int_equal(subnets_init(&subnets, "10.214.0.0/22", NULL), 0);
    a = subnets_name_agent(&subnets, "node1");
    assert_true(a > 0x0ad60000 && a < 0x0ad60100);
    subnets_forget_agent(&subnets, a);
    assert_int_equal(subnets_name_agent(&subnets, "node1"), a);
    for (size_t i = 0; i < 300; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "x%zu", i);
        seen += subnets_name_agent(&subnets, id) != 0;
    }
    assert_int_equal(seen, 254);
    subnets_done(&subnets);
}

/* ---- agents that offer a network ---- */

/* 'n': a digit, by which keys differ */
#define OFFER(n)                                                                   \
    "{\"mode\":\"wireguard-go\",\"endpoint\":\"192.0.2." n ":51871\",\"key\":\"" n \
    "BCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop0="                                  \
    "\",\"mtu\":1420}"

static void agent_offers(const char *id, const char *offer)
{
    struct agent_entry *a;

    agent_comes(id, "{\"cpu\":[\"count\",\"1\"],\"mem\":[\"bytes\",\"8589934592\"]}");
    a = agent_entry_find(world.core, id);
    reach_take_offer(world.core, a, offer);
    settle();
}

/* Two kernels, of which an agent has room for one. */
static struct answer create_spread(const char *name, const char *image)
{
    struct session_request req = { .access_key = USER_KEY,
                                   .name = name,
                                   .type = SESSION_BATCH,
                                   .cluster_size = 2,
                                   .multi_node = true,
                                   .spec = { .image = image, .command = "true" } };

    return create(&req);
}

static const struct session_entry *entry_of(const struct answer *a)
{
    return session_entry_find(world.core, &a->created.id);
}

static void test_spread(void **state)
{
    struct answer made;
    AQ_CLEANUP(aq_freep) char *subnet = NULL;

    (void)state;
    agent_offers("a1", OFFER("1"));
    agent_offers("a2", OFFER("2"));
    made = create_spread("net", "image");
    assert_int_equal(made.r, 0);
    settle();
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 2);
    assert_string_equal(entry_of(&made)->s.subnet, "10.214.64.0/29");
    assert_string_not_equal(find_sent(MSG_KERNEL_CREATE, 0)->agent_id,
                            find_sent(MSG_KERNEL_CREATE, 1)->agent_id);
    assert_non_null(strstr(find_sent(MSG_KERNEL_CREATE, 0)->network, "\"10.214.64.2\""));
    assert_non_null(strstr(find_sent(MSG_KERNEL_CREATE, 0)->network, "\"192.0.2.2:51871\""));
    assert_string_equal(find_sent(MSG_KERNEL_CREATE, 0)->network,
                        find_sent(MSG_KERNEL_CREATE, 1)->network);
    assert_non_null(entry_of(&made)->start.network);
    assert_int_equal(count_sent(MSG_SESSION_NETWORK), 0); /* they have it */
    subnet = aq_strdup(entry_of(&made)->s.subnet);

    restart_core();
    assert_string_equal(entry_of(&made)->s.subnet, subnet);
    assert_int_equal(entry_of(&made)->network.subnet.bits, 29);
}

static void test_processes_need_none(void **state)
{
    struct answer made;

    (void)state;
    agent_offers("a1", OFFER("1"));
    agent_offers("a2", OFFER("2"));
    made = create_spread("net", IMAGE_OF_PROCESSES);
    assert_int_equal(made.r, 0);
    settle();
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 2);
    assert_null(entry_of(&made)->s.subnet);
    assert_string_equal(find_sent(MSG_KERNEL_CREATE, 0)->network, "");
}

static void test_the_subnet_comes_back(void **state)
{
    struct answer made;
    struct sent *first;

    (void)state;
    agent_offers("a1", OFFER("1"));
    agent_offers("a2", OFFER("2"));
    made = create_spread("net", "image");
    settle();
    first = find_sent(MSG_KERNEL_CREATE, 0);
    assert_true(
        subnets_take_range(&world.core->subnets, &(struct cluster_range){ 0x0ad64008, 29 }));
    assert_false(
        subnets_take_range(&world.core->subnets, &(struct cluster_range){ 0x0ad64000, 29 }));
    (void)terminate(&made.created.id, false);
    settle();
    agent_reports_end(first, 0, NULL);
    agent_reports_end(find_sent(MSG_KERNEL_CREATE, 1), 0, NULL);
    settle();
    assert_int_equal(status_of(&made.created.id), GONE);
    assert_true(
        subnets_take_range(&world.core->subnets, &(struct cluster_range){ 0x0ad64000, 29 }));
}

/* What a user has until it ends is half of the pool at most; other users have the rest. */
static void test_a_share(void **state)
{
    struct session_entry *l;
    struct answer made;

    (void)state;
    agent_offers("a1", OFFER("1"));
    agent_offers("a2", OFFER("2"));
    made = create_spread("net", "image");
    settle();
    l = session_entry_find(world.core, &made.created.id);
    assert_true(session_entry_has_subnet_share(world.core, l));
    assert_int_equal(l->accounts[SCHED_USER]->subnet_blocks, 1);
    l->accounts[SCHED_USER]->subnet_blocks = 3072; /* of 6144 in 48 K addresses */
    assert_false(session_entry_has_subnet_share(world.core, l));
    session_entry_give_subnet(world.core, l);
    assert_true(session_entry_take_subnet(world.core, l));
    assert_int_equal(l->accounts[SCHED_USER]->subnet_blocks, 3072);
    l->network.subnet.bits = 0;
    assert_false(session_entry_take_subnet(world.core, l));
}

/* ---- the ways between agents ---- */

static void test_peers(void **state)
{
    struct msg_network_reach report = { .unreachable = { (const char *[]){ "a2" }, 1 } };
    struct agent_entry *a1;

    (void)state;
    agent_offers("a1", OFFER("1"));
    agent_offers("a2", OFFER("2"));
    agent_offers("a3", "{\"mode\":\"none\",\"note\":\"no /dev/net/tun\"}");
    agent_offers("a4", "{\"mode\":\"vxlan\",\"endpoint\":\"192.0.2.4:51871\"}");
    reach_tick(world.core);
    a1 = agent_entry_find(world.core, "a1");
    assert_non_null(strstr(a1->network->peers, "\"a2\""));
    assert_null(strstr(a1->network->peers, "\"a1\""));
    assert_null(strstr(a1->network->peers, "\"a4\""));
    assert_null(agent_entry_find(world.core, "a3")->network->peers);
    assert_null(agent_network_class(agent_entry_find(world.core, "a3")));
    assert_int_equal(count_sent(MSG_NETWORK_PEERS), 3);
    reach_tick(world.core);
    assert_int_equal(count_sent(MSG_NETWORK_PEERS), 3);

    reach_take_report(world.core, a1, &report);
    assert_true(agent_network_misses(a1->network, "a2"));
    report.unreachable.count = 0;
    reach_take_report(world.core, a1, &report);
    assert_false(agent_network_misses(a1->network, "a2"));
}

static void test_a_false_offer_is_none(void **state)
{
    (void)state;
    agent_offers("a1",
                 "{\"mode\":\"wireguard\",\"endpoint\":\"192.0.2.1:51871\",\"key\":\"x\\ny\"}");
    assert_null(agent_entry_find(world.core, "a1")->network);
}

/* wg would take the two for one, and the other agents would lose the way to the first. */
static void test_a_key_has_one_agent(void **state)
{
    (void)state;
    agent_offers("a1", OFFER("1"));
    agent_offers("a2", OFFER("1"));
    assert_non_null(agent_entry_find(world.core, "a1")->network);
    assert_null(agent_entry_find(world.core, "a2")->network);
    agent_offers("a1", OFFER("3"));
    agent_offers("a2", OFFER("1"));
    assert_non_null(agent_entry_find(world.core, "a2")->network);
}

/* Two of the ids are false, and one is twice there. */
static void test_a_false_report(void **state)
{
    AQ_CLEANUP(aq_freep) char *large = aq_alloc(100000);
    const char *ids[] = { "a2", large, "a2", "../a4" };
    struct msg_network_reach report = { .unreachable = { ids, AQ_COUNT(ids) } };
    struct agent_entry *a1;

    (void)state;
    memset(large, 'a', 99999);
    agent_offers("a1", OFFER("1"));
    agent_offers("a2", OFFER("2"));
    a1 = agent_entry_find(world.core, "a1");
    reach_take_report(world.core, a1, &report);
    assert_int_equal(a1->network->unreachable.count, 0);
    report.unreachable.count = 1;
    reach_take_report(world.core, a1, &report);
    assert_true(agent_network_misses(a1->network, "a2"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_agents),
        cmocka_unit_test_setup_teardown(test_spread, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_processes_need_none, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_the_subnet_comes_back, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_a_share, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_peers, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_a_false_offer_is_none, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_a_key_has_one_agent, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_a_false_report, world_begin, world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
