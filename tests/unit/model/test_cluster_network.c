/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"
#include "model/cluster_network.h"

#define KEY "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop0="
#define KERNEL(hostname, address) \
    "{\"hostname\":\"" hostname "\",\"address\":\"" address "\",\"agent\":\"a1\"}"
#define AGENT(id, endpoint, key, address)                                                         \
    "{\"id\":\"" id "\",\"endpoint\":\"" endpoint "\",\"key\":\"" key "\",\"address\":\"" address \
    "\"}"
#define NETWORK(kernels, agents) \
    "{\"subnet\":\"10.214.64.0/28\",\"kernels\":[" kernels "],\"agents\":[" agents "]}"

static void test_ranges(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint32_t first;
        unsigned bits;
    } rows[] = {
        { "10.214.64.0/28", 0, 0x0ad64000, 28 },
        { "10.214.64.7", 0, 0x0ad64007, 32 },
        { "10.0.0.0/8", 0, 0x0a000000, 8 },
        { "10.214.64.1/28", -EINVAL, 0, 0 },
        { "10.214.64.0/33", -EINVAL, 0, 0 },
        { "0.0.0.0/0", 0, 0, 0 },
        { "10.214.64.0/7", -EINVAL, 0, 0 },
        { "10.214.64.0/", -EINVAL, 0, 0 },
        { "10.214.64.0/2x", -EINVAL, 0, 0 },
        { "10.214.64/24", -EINVAL, 0, 0 },
        { "", -EINVAL, 0, 0 },
        { "1111111111111111111111.0.0.0/8", -EINVAL, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct cluster_range range = { 0 };

        assert_row(cluster_range_parse(rows[i].text, &range) == rows[i].r, "%s", rows[i].text);
        assert_row(range.first == rows[i].first && range.bits == rows[i].bits, "%s", rows[i].text);
    }
    assert_true(cluster_range_has(&(struct cluster_range){ 0x0ad64000, 28 }, 0x0ad6400f));
    assert_false(cluster_range_has(&(struct cluster_range){ 0x0ad64000, 28 }, 0x0ad64010));
    assert_false(cluster_range_has(&(struct cluster_range){ 0x0ad64000, 28 }, 0x0ad63fff));
    assert_true(cluster_range_has(&(struct cluster_range){ 0x0ad64007, 32 }, 0x0ad64007));
}

static void test_round(void **state)
{
    static const char text[] = NETWORK(
        KERNEL("main1", "10.214.64.2") "," KERNEL("sub1", "10.214.64.3"),
        AGENT("a1", "192.0.2.7:51871", KEY, "10.214.0.9") "," AGENT("a2", "[2001:db8::7]:51871",
                                                                    KEY, "10.214.0.10"));
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct cluster_network network;

    (void)state;
    assert_int_equal(cluster_network_parse(text, &arena, &network, NULL), 0);
    assert_int_equal(network.kernel_count, 2);
    assert_string_equal(network.kernels[1].hostname, "sub1");
    assert_string_equal(network.agents[1].endpoint, "[2001:db8::7]:51871");
    cluster_network_write(&network, &w);
    assert_string_equal(out.data, text);
}

#define HOST(address, port)                                                          \
    "{\"mode\":\"host\",\"kernels\":[{\"hostname\":\"main1\",\"address\":\"" address \
    "\",\"agent\":\"a1\",\"port\":" port "}]}"

/* Addresses of nodes, which kernels may share. */
static void test_host_network(void **state)
{
    static const char text[] = HOST("2001:db8::7", "29992");
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct cluster_network network;

    (void)state;
    assert_int_equal(cluster_network_parse(text, &arena, &network, NULL), 0);
    assert_true(cluster_network_is_host(&network));
    assert_int_equal(cluster_network_find(&network, "main1")->port, 29992);
    assert_null(cluster_network_find(&network, "sub1"));
    cluster_network_write(&network, &w);
    assert_string_equal(out.data, text);
}

static void test_refused(void **state)
{
    static const struct {
        const char *field, *text;
    } rows[] = {
        { "network", "[]" },
        { "network", "nothing" },
        { "subnet", "{\"subnet\":\"10.214.64.3/28\"}" },
        { "subnet", "{\"subnet\":\"10.0.0.0/7\"}" },
        { "hostname", NETWORK(KERNEL("main1 evil", "10.214.64.2"), "") },
        { "hostname", NETWORK(KERNEL("-main1", "10.214.64.2"), "") },
        { "hostname", NETWORK(KERNEL("main1\\n1.2.3.4 x", "10.214.64.2"), "") },
        { "address", NETWORK(KERNEL("main1", "10.214.64.16"), "") },
        { "address", NETWORK(KERNEL("main1", "10.214.63.255"), "") },
        { "address",
          NETWORK(KERNEL("main1", "10.214.64.2") "," KERNEL("sub1", "10.214.64.2"), "") },
        { "id", NETWORK("", AGENT("a 1", "192.0.2.7:51871", KEY, "10.214.0.9")) },
        { "endpoint", NETWORK("", AGENT("a1", "192.0.2.7", KEY, "10.214.0.9")) },
        { "endpoint", NETWORK("", AGENT("a1", "192.0.2.7:0", KEY, "10.214.0.9")) },
        { "endpoint", NETWORK("", AGENT("a1", "192.0.2.7:65536", KEY, "10.214.0.9")) },
        { "endpoint", NETWORK("", AGENT("a1", "host:51871", KEY, "10.214.0.9")) },
        { "key", NETWORK("", AGENT("a1", "192.0.2.7:51871", "short=", "10.214.0.9")) },
        { "key", /* 258 bits, which wg refuses */
          NETWORK("", AGENT("a1", "192.0.2.7:51871",
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop1=", "10.214.0.9")) },
        { "address", NETWORK("", AGENT("a1", "192.0.2.7:51871", KEY, "10.214.0")) },
        { "mode", "{\"mode\":\"pigeon\"}" },
        { "address", HOST("node-7", "20000") },
        { "port", HOST("192.0.2.7", "19999") },
        { "port", HOST("192.0.2.7", "29993") },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct cluster_network network;
        struct aq_error err = { 0 };

        assert_row(cluster_network_parse(rows[i].text, &arena, &network, &err) == -EINVAL, "%s",
                   rows[i].text);
        assert_row(strcmp(err.field, rows[i].field) == 0, "%s: %s", err.field, rows[i].text);
    }
}

static void test_offers(void **state)
{
    static const struct {
        int r;
        const char *text, *mode;
    } rows[] = {
        { 0, "{\"mode\":\"wireguard-go\",\"endpoint\":\"192.0.2.7:51871\",\"key\":\"" KEY "\"}",
          "wireguard-go" },
        { 0, "{\"mode\":\"vxlan\",\"endpoint\":\"192.0.2.7:51871\"}", "vxlan" },
        { 0, "{\"mode\":\"none\",\"note\":\"no /dev/net/tun\"}", "none" },
        { 0, "{\"mode\":\"carrier pigeon\"}", "none" },
        { 0, "{\"mode\":\"none\",\"host\":\"192.0.2.7\"}", "none" },
        { -EINVAL, "{\"mode\":\"none\",\"host\":\"node-7\"}", NULL },
        { -EINVAL, "{\"mode\":\"wireguard\",\"endpoint\":\"192.0.2.7:51871\"}", NULL },
        { -EINVAL, "{\"mode\":\"vxlan\"}", NULL },
        { -EINVAL, "{}", NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct cluster_network_offer offer;
        int r = cluster_network_offer_parse(rows[i].text, &arena, &offer, NULL);

        assert_row(r == rows[i].r, "%s", rows[i].text);
        assert_row(r < 0 || strcmp(offer.mode, rows[i].mode) == 0, "%s", rows[i].text);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),       cmocka_unit_test(test_round),
        cmocka_unit_test(test_host_network), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_offers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
