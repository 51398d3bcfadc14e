/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that the network between nodes is described in. */
#include "testing.h"

#include "agent/net/cluster_plan.h"

#define KEY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa="

static void test_wireguard(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    uint32_t kernels[] = { 0x0ad60103, 0x0ad60203 };
    struct cluster_peer peers[] = {
        { .id = "a2",
          .key = KEY,
          .endpoint = "192.0.2.7:51871",
          .address = 0x0ad60009,
          .kernels = kernels,
          .kernel_count = 2 },
        { .id = "a3",
          .key = KEY,
          .endpoint = "[2001:db8::7]:51872",
          .kernels = kernels,
          .kernel_count = 1 },
        { .id = "without a key", .endpoint = "192.0.2.8:51871", .address = 0x0ad60010 },
    };
    const struct cluster_plan plan = {
        .private_key = "secret", .port = 51871, .peers = peers, .peer_count = AQ_COUNT(peers)
    };

    (void)state;
    cluster_plan_add_wireguard(&plan, &out);
    assert_string_equal(out.data, "[Interface]\n"
                                  "PrivateKey = secret\n"
                                  "ListenPort = 51871\n"
                                  "\n[Peer]\n"
                                  "PublicKey = " KEY "\n"
                                  "Endpoint = 192.0.2.7:51871\n"
                                  "AllowedIPs = 10.214.0.9/32, 10.214.1.3/32, 10.214.2.3/32\n"
                                  "\n[Peer]\n"
                                  "PublicKey = " KEY "\n"
                                  "Endpoint = [2001:db8::7]:51872\n"
                                  "AllowedIPs = 10.214.1.3/32\n");
}

static void test_rules(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf none = STRBUF_INIT, two = STRBUF_INIT;
    struct range subnets[] = { { 0x0ad60100, 28 }, { 0x0ad60200, 27 } };
    struct cluster_plan plan = { .subnets = subnets };

    (void)state;
    cluster_plan_add_rules(&plan, &none);
    assert_non_null(strstr(none.data, "set sessions { type ipv4_addr . ipv4_addr; "
                                      "flags interval; }\n"));
    plan.subnet_count = 2;
    cluster_plan_add_rules(&plan, &two);
    assert_non_null(strstr(two.data, " elements = { 10.214.1.0/28 . 10.214.1.0/28, "
                                     "10.214.2.0/27 . 10.214.2.0/27 } }\n"));
    /* three chains of which nothing passes unless a rule says so */
    for (const char *at = two.data, *end = at; end; at = end + 1) {
        end = strstr(at, "hook ");
        if (end && strncmp(end, "hook prerouting", 15) != 0)
            assert_non_null(strstr(end, "policy drop;"));
    }
}

static void test_mac(void **state)
{
    uint8_t one[6], again[6], other[6];

    (void)state;
    cluster_plan_make_mac("a1", one);
    cluster_plan_make_mac("a1", again);
    cluster_plan_make_mac("a2", other);
    assert_memory_equal(one, again, sizeof(one));
    assert_memory_not_equal(one, other, sizeof(one));
    assert_int_equal(one[0], 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wireguard),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_mac),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
