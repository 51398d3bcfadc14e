/* SPDX-License-Identifier: Apache-2.0 */
/* Public keys of SSH: what ssh-keygen writes is taken without its comment, what is none is refused. */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "model/ssh_key.h"

static const char *const keys[] = {
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILgn0v/o9KeGk4xWaCz4nh9qfb8Z0llgEYXbaYbi"
    "GVXp",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCzm+FyMggCNQd59Sv3ynr+SlAQGkW+OgQb6JzL"
    "Pgmie4VfiXOSDLhTr9xbWTxMYxoLXFS1Ch0RgCcLjCZmBc28ws6DK3ofSjiOMTNk1OSM3XccuKJE"
    "XYsZOkMsWVC3aiRojBM2QXdhoTs/cohRf71ZdeWofSwSlVCgmLi8tspc+6nitQMWspNJ1OXC3Zce"
    "Si5O2Vj34tMb1HVKJ6x0GZfyV1UcFj4VNRZfwr40EaTStX7yIxC690+le9zwrAVg/beJNlPOQ0RK"
    "2nmFotc1zezPbIJEBdzPbl1JFoaMV6dEwzqJR/TjBVxzAoaHOa4c7HEPzMfAMErsQzR9xMtNYO3j",
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBGFN"
    "27C4Up1O8XvNFflIGVAJ4JXvOptPBGAi54h/zp9r8AIn4wRdyosLHQ2ZBZV5uaO7KKCqqTGW4u//"
    "6mnDbiE=",
    "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBITq"
    "GBlLUVsaaPrMm2CCoZj631s/ev30XSiZCuShufwiowkIZ55rNIcEuZRnYWB1uWMvrKa5tpBjrWT8"
    "tGvqeBAdWZp66KUauGYyZ4AmCrqc3AF7KUH2B9Pdd50c/nLitA==",
    "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAE3"
    "XM2vQ/CPEQZ7gyb+xRzDEOBOpT1l/EDqpUY/g7Ue7sZb0l7mXXwUEaxnpWmmHw6DI6aYeNqOe61e"
    "XrSTiZnf/AFfevLHTeG+DOtd4srOZkGk2DjAeB0KV/oF4KJoWq9cm7UASh7eIoorKS91w+juza+Y"
    "nifWIaF4eKNINVOYIr44DQ==",
    "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIAABA"
    "gMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fAAAABHNzaDo=",
    "sk-ecdsa-sha2-nistp256@openssh.com AAAAInNrLWVjZHNhLXNoYTItbmlzdHAyNTZAb3Blb"
    "nNzaC5jb20AAAAIbmlzdHAyNTYAAABBBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEc3NoOg==",
};

static const struct {
    const char *text, *says;
} bad[] = {
    /* short RSA */
    { "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDo6blfWAClHg0XpVHFiUCWaFfPiOTb8FbXR1"
      "D1La9NH/BHSP0aaFKZEfstbfdxHAjKSWhAFv+APIoCO6AAz5nXROmWlNuxs7AWh4pbioijLj8e"
      "t8gSi/WXYV4ICrUn2mIom8eEyIa6h1AMdr3kjmvsZWpvRFiPd70QX/qdV/5DIw==",
      "at least 2048 bits" },
    /* other type */
    { "ssh-dss AAAAC3NzaC1lZDI1NTE5AAAAILgn0v/o9KeGk4xWaCz4nh9qfb8Z0llgEYXbaYbiGV"
      "Xp",
      "a line such as" },
    /* type and blob differ */
    { "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAILgn0v/o9KeGk4xWaCz4nh9qfb8Z0llgEYXbaYbiGV"
      "Xp",
      "is no key of the type" },
    /* cut off */
    { "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILgn0v/o9KeGk4xWaCz4nh9qfb8Z0llgEYXbaY"
      "bi",
      "is no key of the type" },
    /* one byte more */
    { "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
      "AAAAAAAA==",
      "is no key of the type" },
    /* a string more */
    { "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
      "AAAAAAAAAAAXg=",
      "is no key of the type" },
    /* no base64 */
    { "ssh-ed25519 AAAA*AAA", "is no key of the type" },
    /* no padding */
    { "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
      "AAAAA",
      "is no key of the type" },
    /* nothing */
    { "", "a line such as" },
    /* a type */
    { "ssh-ed25519", "is no key of the type" },
    /* an option */
    { "command=\"id\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILgn0v/o9KeGk4xWaCz4nh9"
      "qfb8Z0llgEYXbaYbiGVXp",
      "a line such as" },
    /* two keys */
    { "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILgn0v/o9KeGk4xWaCz4nh9qfb8Z0llgEYXbaY"
      "biGVXp\necdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNT"
      "YAAABBBGFN27C4Up1O8XvNFflIGVAJ4JXvOptPBGAi54h/zp9r8AIn4wRdyosLHQ2ZBZV5uaO7"
      "KKCqqTGW4u//6mnDbiE=",
      "one line" },
    /* a private key */
    { "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "private key" },
};

static void test_keys(void **state)
{
    char got[SSH_PUBLIC_KEY_MAX], text[2 * SSH_PUBLIC_KEY_MAX];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(keys); i++) {
        assert_int_equal(ssh_public_key_parse(keys[i], got, NULL), 0);
        assert_string_equal(got, keys[i]);
        (void)snprintf(text, sizeof(text), "\n %s me@home and more\r\n\n", keys[i]);
        assert_int_equal(ssh_public_key_parse(text, got, NULL), 0);
        assert_string_equal(got, keys[i]);
    }
}

static void test_no_keys(void **state)
{
    char got[SSH_PUBLIC_KEY_MAX];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(bad); i++) {
        struct aq_error err = { 0 };

        assert_int_equal(ssh_public_key_parse(bad[i].text, got, &err), -EINVAL);
        assert_string_equal(err.field, "pubkey");
        assert_non_null(strstr(err.text, bad[i].says));
    }
}

/* Every byte counts: cut off anywhere it is another key, or none. */
static void test_prefixes(void **state)
{
    char got[SSH_PUBLIC_KEY_MAX], text[SSH_PUBLIC_KEY_MAX];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(keys); i++)
        for (size_t len = strlen(keys[i]); len-- > 0;) {
            (void)snprintf(text, sizeof(text), "%.*s", (int)len, keys[i]);
            assert_int_equal(ssh_public_key_parse(text, got, NULL), -EINVAL);
        }
}

/* What we make, we take. */
static void test_own(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct ssh_key key = { .open = { 1, 2, 3 } };
    char got[SSH_PUBLIC_KEY_MAX];

    (void)state;
    ssh_key_add_public(&key, &text);
    assert_int_equal(ssh_public_key_parse(text.data, got, NULL), 0);
    assert_string_equal(got, text.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_no_keys),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
