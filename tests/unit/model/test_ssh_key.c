/* SPDX-License-Identifier: Apache-2.0 */
/* The SSH keys of a session: the forms, checked by ssh-keygen and dropbearkey when they were written
 * down here.
 */
#include "testing.h"

#include <string.h>

#include "model/ssh_key.h"

#define LINE "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHryi0XMNG2jq+uiDiO6/RJL5yQ0NeV3MdkdUsQbN8iu"
#define LINE_ECDSA                                                                         \
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBMXEOJdqkLg+" \
    "s+v/Wu3nPKQPddkqWTH48w5qKJHVb1dFPGcLj/DcpUmHLPDQ3hGRfXLJt9OeZqSWSDN03Aw9shI="

static void make(const char *label, struct ssh_key *ret)
{
    unsigned char seed[SSH_KEY_SIZE];

    for (size_t i = 0; i < sizeof(seed); i++)
        seed[i] = (unsigned char)i;
    assert_int_equal(ssh_key_derive(seed, label, ret, NULL), 0);
}

static void test_derived(void **state)
{
    struct ssh_key key, again, other;

    (void)state;
    make("container", &key);
    make("container", &again);
    make("cluster", &other);
    assert_memory_equal(&key, &again, sizeof(key));
    assert_memory_not_equal(key.secret, other.secret, sizeof(key.secret));
    assert_memory_not_equal(key.open, other.open, sizeof(key.open));
}

static void test_openssh(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf open = STRBUF_INIT, secret = STRBUF_INIT;
    struct ssh_key key;

    (void)state;
    make("container", &key);
    ssh_key_add_public(&key, &open);
    ssh_key_add_openssh(&key, "work@session", &secret);
    assert_string_equal(open.data, LINE);
    assert_string_equal(secret.data,
                        "-----BEGIN OPENSSH PRIVATE KEY-----\n"
                        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
                        "QyNTUxOQAAACB68otFzDRto6vrog4juv0SS+ckNDXldzHZHVLEGzfIrgAAAJAAAAAAAAAA\n"
                        "AAAAAAtzc2gtZWQyNTUxOQAAACB68otFzDRto6vrog4juv0SS+ckNDXldzHZHVLEGzfIrg\n"
                        "AAAEDylvC6MxiWjWZgS9b+SpW/2jEskSa2QQPH9YhCMIv4YHryi0XMNG2jq+uiDiO6/RJL\n"
                        "5yQ0NeV3MdkdUsQbN8iuAAAADHdvcmtAc2Vzc2lvbgE=\n"
                        "-----END OPENSSH PRIVATE KEY-----\n");
}

static void test_dropbear(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct ssh_key key;

    (void)state;
    make("container", &key);
    ssh_key_add_dropbear(&key, &out);
    assert_int_equal(out.len, 4 + 11 + 4 + 64);
    assert_memory_equal(out.data, "\0\0\0\x0bssh-ed25519\0\0\0\x40", 19);
    assert_memory_equal(out.data + 19, key.secret, 32);
    assert_memory_equal(out.data + 51, key.open, 32);
}

/* A secret is a number that may begin with zeros, or with a bit that would make it negative. */
static void test_ecdsa(void **state)
{
    static const struct {
        unsigned char first, second;
        const char *number;
        size_t len;
    } rows[] = { { 0x7f, 0, "\0\0\0\x20\x7f", 32 },
                 { 0x80, 0, "\0\0\0\x21\0\x80", 33 },
                 { 0, 0x7f, "\0\0\0\x1f\x7f", 31 },
                 { 0, 0x80, "\0\0\0\x20\0\x80", 32 } };
    AQ_CLEANUP(strbuf_donep) struct strbuf open = STRBUF_INIT;
    unsigned char seed[SSH_KEY_SIZE] = { 1 };
    struct ssh_ecdsa_key key;
    size_t before = 4 + 19 + 4 + 8 + 4 + SSH_ECDSA_OPEN;

    (void)state;
    assert_int_equal(ssh_ecdsa_derive(seed, "ecdsa host main1", &key, NULL), 0);
    ssh_ecdsa_add_public(&key, &open);
    assert_string_equal(open.data, LINE_ECDSA);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        key.secret[0] = rows[i].first;
        key.secret[1] = rows[i].second;
        ssh_ecdsa_add_dropbear(&key, &out);
        assert_int_equal(out.len, before + 4 + rows[i].len);
        assert_memory_equal(out.data,
                            "\0\0\0\x13"
                            "ecdsa-sha2-nistp256",
                            23);
        assert_memory_equal(out.data + before, rows[i].number, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derived),
        cmocka_unit_test(test_openssh),
        cmocka_unit_test(test_dropbear),
        cmocka_unit_test(test_ecdsa),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
