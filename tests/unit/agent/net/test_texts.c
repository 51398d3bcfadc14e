/* SPDX-License-Identifier: Apache-2.0 */
/* The files and commands that networks are described in. */
#include "testing.h"

#include <errno.h>

#include "agent/net/dns_files.h"
#include "agent/net/endpoint_record.h"
#include "agent/net/nft_rules.h"

static void test_resolv_conf(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "nameserver 192.0.2.53\n", "nameserver 192.0.2.53\n" },
        { "# who\nsearch example.org corp\nnameserver\t192.0.2.53 # main\noptions ndots:2\n",
          "nameserver 192.0.2.53\nsearch example.org corp\noptions ndots:2\n" },
        { "nameserver 127.0.0.53\noptions edns0\n", "options edns0\n" },
        { "nameserver ::1\nnameserver 2001:db8::1\nnameserver 10.0.0.1", "nameserver 10.0.0.1\n" },
        { "nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4\n",
          "nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\n" },
        { "nameserverx 1.1.1.1\nnameserver 1.1.1\nnameserver 1.1.1.1.1.1.1.1.1.1\n", "" },
        { "", "" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct dns_servers servers;

        dns_files_read_resolv(rows[i].text, &servers);
        dns_files_add_resolv(&out, &servers);
        assert_row(strcmp(out.data, rows[i].want) == 0, "%s", rows[i].text);
    }
}

static void test_long_resolv_conf(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct dns_servers servers;

    (void)state;
    for (int i = 0; i < 200; i++)
        strbuf_addf(&text, "search example%d.org\n", i);
    strbuf_adds(&text, "nameserver 192.0.2.1\n");
    dns_files_read_resolv(text.data, &servers);
    assert_int_equal(servers.count, 1);
    assert_true(strlen(servers.rest) < sizeof(servers.rest));
    assert_int_equal(servers.rest[strlen(servers.rest) - 1], '\n');
}

static void test_record(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct endpoint_record record = { .session_id = uuid_random(),
                                      .number = 77,
                                      .hostname = "main1",
                                      .ports = { { 8080, 30001 }, { 22, 30002 } },
                                      .port_count = 2 };
    struct endpoint_record got;

    (void)state;
    endpoint_record_add(&text, &record);
    assert_int_equal(endpoint_record_parse(text.data, &got, NULL), 0);
    assert_true(uuid_equals(&got.session_id, &record.session_id));
    assert_true(got.number == 77 && got.port_count == 2 && got.ports[1].outside == 30002);
    assert_string_equal(got.hostname, "main1");
    for (size_t len = 0; len + 1 < text.len; len++) { /* cut off anywhere */
        AQ_CLEANUP(aq_freep) char *part = strndup(text.data, len);

        assert_row(endpoint_record_parse(part, &got, NULL) == -EINVAL, "%zu bytes", len);
    }
    strbuf_adds(&text, "colour red\n");
    assert_int_equal(endpoint_record_parse(text.data, &got, NULL), -EINVAL);
}

static void test_targets(void **state)
{
    static const struct {
        const char *text;
        int r;
        unsigned bits;
        uint16_t port;
    } rows[] = {
        { "192.0.2.1", 0, 32, 0 },           { "192.0.2.0/24", 0, 24, 0 },
        { "192.0.2.1:443", 0, 32, 443 },     { "192.0.2.0/24:5000", 0, 24, 5000 },
        { "192.0.2.1:0", -EINVAL, 0, 0 },    { "192.0.2.1:65536", -EINVAL, 0, 0 },
        { "192.0.2.1:", -EINVAL, 0, 0 },     { "192.0.2.1:+5", -EINVAL, 0, 0 },
        { "registry:443", -EINVAL, 0, 0 },   { "192.0.2.1/24:1", -EINVAL, 0, 0 },
        { "192.0.2.1:80 }", -EINVAL, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct nft_rules_target target = { .port = 0 };

        assert_row(nft_rules_parse_target(rows[i].text, &target, NULL) == rows[i].r, "%s",
                   rows[i].text);
        assert_row(target.range.bits == rows[i].bits && target.port == rows[i].port, "%s",
                   rows[i].text);
    }
}

/* A port more is one command more, at the end: it can be given to nft alone. */
static void test_sets_grow_at_the_end(void **state)
{
    static const struct nft_rules_published published[] = {
        { .outside = 30000, .inside = 8080, .address = 0x0ad50002 },
        { .outside = 30001, .inside = 9000, .address = 0x0ad50003 },
    };
    static const struct nft_rules_peers peers[] = { { 0x0ad50002, 0x0ad50003 } };
    static const uint32_t dns[] = { 0xc0000235 };
    AQ_CLEANUP(strbuf_donep) struct strbuf one = STRBUF_INIT, two = STRBUF_INIT;
    struct nft_rules_sets sets = { .dns = dns,
                                   .dns_count = 1,
                                   .peers = peers,
                                   .peers_count = 1,
                                   .published = published,
                                   .published_count = 1 };

    (void)state;
    nft_rules_add_sets(&one, "0a1b2c", &sets);
    sets.published_count = 2;
    nft_rules_add_sets(&two, "0a1b2c", &sets);
    assert_int_equal(strncmp(two.data, one.data, one.len), 0);
    assert_string_equal(
        two.data + one.len,
        "add element inet aliquot_0a1b2c published { 30001 : 10.213.0.3 . 9000 }\n");
}

/* A listener at the address comes first, then loopback. */
static void test_loopback(void **state)
{
    static const uint16_t ports[] = { 8080, 9000 };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    nft_rules_add_loopback(&text, "eth0", ports, AQ_COUNT(ports));
    assert_string_equal(text.data,
                        "table ip aliquot {\n"
                        "  chain to_loopback {\n"
                        "    socket wildcard { 0, 1 } return\n"
                        "    dnat to 127.0.0.1\n"
                        "  }\n"
                        "  chain services {\n"
                        "    type nat hook prerouting priority dstnat; policy accept;\n"
                        "    iifname \"eth0\" tcp dport { 8080, 9000 } goto to_loopback\n"
                        "  }\n"
                        "}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resolv_conf),
        cmocka_unit_test(test_long_resolv_conf),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_sets_grow_at_the_end),
        cmocka_unit_test(test_loopback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
