/* SPDX-License-Identifier: Apache-2.0 */
/* The SSH keys of a session: the forms, checked by ssh-keygen when they were written down here. */
#include "testing.h"

#include <string.h>

#include "model/ssh_key.h"

#define LINE "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHryi0XMNG2jq+uiDiO6/RJL5yQ0NeV3MdkdUsQbN8iu"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derived),
        cmocka_unit_test(test_openssh),
        cmocka_unit_test(test_dropbear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
