/* SPDX-License-Identifier: Apache-2.0 */
/* Networks, and which addresses are private. */
#include "testing.h"

#include <errno.h>
#include <ifaddrs.h>
#include <uv.h>

#include <arpa/inet.h>

#include "http/network.h"

static const struct sockaddr *address_of(const char *text, struct sockaddr_storage *ret)
{
    if (strchr(text, ':'))
        assert_int_equal(uv_ip6_addr(text, 80, (struct sockaddr_in6 *)ret), 0);
    else
        assert_int_equal(uv_ip4_addr(text, 80, (struct sockaddr_in *)ret), 0);
    return (const struct sockaddr *)ret;
}

/* Forms of an IPv4 address; X is its four bytes in hexadecimal, Y those of its complement. */
static const char *const forms[] = {
    "::ffff:X",           "::X",       "::ffff:0:X",           "64:ff9b::X",
    "64:ff9b:1::X",       "2002:X::1", "2001:0:102:304:0:1:Y", "2a00:1::5efe:X",
    "2a00:1::200:5efe:X",
};

static const struct sockaddr *form_of(const char *form, const struct sockaddr_in *four,
                                      struct sockaddr_storage *ret)
{
    const unsigned char *b = (const unsigned char *)&four->sin_addr;
    int before = (int)strcspn(form, "XY");
    unsigned flip = form[before] == 'Y' ? 255 : 0;
    char text[64];

    (void)snprintf(text, sizeof(text), "%.*s%02x%02x:%02x%02x%s", before, form, b[0] ^ flip,
                   b[1] ^ flip, b[2] ^ flip, b[3] ^ flip, form + before + 1);
    return address_of(text, ret);
}

static void test_four(void **state)
{
    static const struct {
        const char *text, *four; /* NULL = none */
    } rows[] = {
        { "8.8.4.4", "8.8.4.4" },
        { "::ffff:8.8.4.4", "8.8.4.4" },
        { "::8.8.4.4", "8.8.4.4" },
        { "::1", "0.0.0.1" },
        { "::", "0.0.0.0" },
        { "::ffff:0:8.8.4.4", "8.8.4.4" },
        { "64:ff9b::8.8.4.4", "8.8.4.4" },
        { "64:ff9b:1:7::8.8.4.4", "8.8.4.4" },
        { "2002:808:404::1", "8.8.4.4" },
        { "2001:0:102:304:0:1:f7f7:fbfb", "8.8.4.4" },
        { "2a00::5efe:8.8.4.4", "8.8.4.4" },
        { "2a00::200:5efe:8.8.4.4", "8.8.4.4" },
        { "::fffe:8.8.4.4", NULL },
        { "64:ff9b::1:8.8.4.4", NULL },
        { "2003:808:404::1", NULL },
        { "2001:1:102:304:0:1:f7f7:fbfb", NULL },
        { "2a00::100:5efe:8.8.4.4", NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct sockaddr_storage addr;
        struct sockaddr_in four;
        char text[INET_ADDRSTRLEN] = "none";

        if (network_get_four(address_of(rows[i].text, &addr), &four))
            (void)uv_ip4_name(&four, text, sizeof(text));
        assert_row(strcmp(text, rows[i].four ? rows[i].four : "none") == 0, "%s: %s", rows[i].text,
                   text);
    }
}

static bool is_own(const struct sockaddr *addr)
{
    bool own = false;

    assert_int_equal(network_is_own(addr, &own, NULL), 0);
    return own;
}

/* Every address of the machine that runs the test, in every form; and neighbours of loopback. */
static void test_own(void **state)
{
    static const char *const others[] = { "127.9.9.9", "::ffff:127.9.9.9", "::2", "192.0.2.77",
                                          "2001:db8::77" };
    struct sockaddr_storage addr;
    struct ifaddrs *list;
    size_t fours = 0;

    (void)state;
    assert_int_equal(getifaddrs(&list), 0);
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr
            || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
            continue;
        assert_row(is_own(i->ifa_addr), "%s", i->ifa_name);
        if (i->ifa_addr->sa_family != AF_INET)
            continue;
        fours++;
        for (size_t n = 0; n < AQ_COUNT(forms); n++)
            assert_row(is_own(form_of(forms[n], (const struct sockaddr_in *)i->ifa_addr, &addr)),
                       "%s: %s", i->ifa_name, forms[n]);
    }
    freeifaddrs(list);
    assert_true(fours > 0);
    for (size_t i = 0; i < AQ_COUNT(others); i++)
        assert_row(!is_own(address_of(others[i], &addr)), "%s", others[i]);
    addr.ss_family = AF_UNIX;
    assert_int_equal(network_is_own((const struct sockaddr *)&addr, &(bool){ false }, NULL),
                     -EAFNOSUPPORT);
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
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.0.1",
        "169.254.1.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.168.0.1",
        "198.19.0.1",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "64:ff9b::a00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:10::1",
        "2001:db8::1",
        "2002:a00:1::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "4000::1",
        "3fff::1",
        "2a00::5efe:10.0.0.1",
        "2a00::200:5efe:127.0.0.1",
        "::ffff:0:1.1.1.1",
    };
    static const char *const public[] = {
        "1.1.1.1",      "9.255.255.255", "11.0.0.0",    "100.63.255.255", "100.128.0.0",
        "126.0.0.1",    "172.15.0.1",    "172.32.0.1",  "192.0.1.1",      "192.169.0.1",
        "198.20.0.1",   "223.255.255.1", "203.0.114.1", "::ffff:1.1.1.1", "2001:200::1",
        "2606:4700::1", "2a00::1",       "2001:db9::1", "3fff:ffff::1",   "2a00::5efe:1.1.1.1",
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
        cmocka_unit_test(test_four),
        cmocka_unit_test(test_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
