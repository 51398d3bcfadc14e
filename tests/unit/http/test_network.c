/* SPDX-License-Identifier: Apache-2.0 */
/* Networks, and which addresses are private. */
#include "testing.h"

#include <errno.h>
#include <uv.h>

#include "http/network.h"

static const struct sockaddr *address_of(const char *text, struct sockaddr_storage *ret)
{
    if (strchr(text, ':'))
        assert_int_equal(uv_ip6_addr(text, 80, (struct sockaddr_in6 *)ret), 0);
    else
        assert_int_equal(uv_ip4_addr(text, 80, (struct sockaddr_in *)ret), 0);
    return (const struct sockaddr *)ret;
}

static void test_parse(void **state)
{
    static const struct {
        const char *text, *in, *out; /* in = NULL: refused */
    } rows[] = {
        { "10.0.0.0/8", "10.255.0.1", "11.0.0.1" },
        { "10.0.0.0/8", "::ffff:10.1.1.1", "::10.1.1.1" },
        { "10.1.2.3", "10.1.2.3", "10.1.2.2" },
        { "10.1.2.129/25", "10.1.2.128", "10.1.2.127" },
        { "0.0.0.0/0", "255.255.255.255", "2001:db9::1" },
        { "::/0", "10.0.0.1", NULL },
        { "fd00::/8", "fdff::1", "fc00::1" },
        { "2001:db9::1", "2001:db9::1", "2001:db9::2" },
        { "2001:db9::/33", "2001:db9:7fff::", "2001:db9:8000::" },
        { "" },
        { "10.0.0" },
        { "10.0.0.0/" },
        { "10.0.0.0/33" },
        { "10.0.0.0/-1" },
        { "10.0.0.0/+8" },
        { "10.0.0.0/8x" },
        { "10.0.0.0/4294967304" },
        { "::/129" },
        { "example.org" },
        { "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct sockaddr_storage addr;
        struct network network;
        int r = network_parse(rows[i].text, &network);

        assert_row(r == (rows[i].in ? 0 : -EINVAL), "%s: %d", rows[i].text, r);
        if (rows[i].in)
            assert_row(network_has(&network, address_of(rows[i].in, &addr)), "%s", rows[i].text);
        if (rows[i].out)
            assert_row(!network_has(&network, address_of(rows[i].out, &addr)), "%s", rows[i].text);
    }
}

static void test_private(void **state)
{
    static const char *const private[] = {
        "0.0.0.0",         "10.1.2.3",    "100.64.0.1",
        "100.127.255.255", "127.0.0.1",   "127.255.0.1",
        "169.254.1.1",     "172.16.0.1",  "172.31.255.255",
        "192.0.0.8",       "192.168.0.1", "198.19.0.1",
        "224.0.0.1",       "239.1.1.1",   "240.0.0.1",
        "255.255.255.255", "::",          "::1",
        "::ffff:10.0.0.1", "::10.0.0.1",  "64:ff9b::a00:1",
        "64:ff9b:1::1",    "100::1",      "2001::1",
        "2001:10::1",      "2001:db8::1", "2002:a00:1::1",
        "fc00::1",         "fd12::1",     "fe80::1",
        "fec0::1",         "ff02::1",     "4000::1",
    };
    static const char *const public[] = {
        "1.1.1.1",      "9.255.255.255", "11.0.0.0",    "100.63.255.255", "100.128.0.0",
        "126.0.0.1",    "172.15.0.1",    "172.32.0.1",  "192.0.1.1",      "192.169.0.1",
        "198.20.0.1",   "223.255.255.1", "203.0.114.1", "::ffff:1.1.1.1", "2001:200::1",
        "2606:4700::1", "2a00::1",       "2001:db9::1", "3fff:ffff::1",
    };
    struct sockaddr_storage addr;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(private); i++)
        assert_row(network_is_private(address_of(private[i], &addr)), "%s", private[i]);
    for (size_t i = 0; i < AQ_COUNT(public); i++)
        assert_row(!network_is_private(address_of(public[i], &addr)), "%s", public[i]);
    addr.ss_family = AF_UNIX;
    assert_true(network_is_private((const struct sockaddr *)&addr));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_private),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
