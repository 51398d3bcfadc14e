/* SPDX-License-Identifier: Apache-2.0 */
/* What front daemons make of texts: keys of their private key, and URLs of their settings. */
#include "testing.h"

#include <sodium.h>

#include "front/secret.h"
#include "front/settings.h"

/* Cookies stay good when a daemon is upgraded: the keys are those of all versions before. They are
 * keyed BLAKE2b sums, as Python's hashlib.blake2b(private_key, key=purpose, digest_size=32) has them.
 */
static void test_keys_outlive_an_upgrade(void **state)
{
    static const struct {
        const char *purpose, *hex;
    } cases[] = {
        { "aliquot-proxy cookie 1",
          "43b6ec54d6cba3eee692125ed6125a0d859f48415f3251a7a1b85818fbd72780" },
        { "aliquot-web browser 1",
          "be6b89a2ef2c3d1afdd0a8b1972397d3418e6930f54a25fab6d2600369e39b65" },
    };
    char key[] = "-----BEGIN PRIVATE KEY-----\n";
    const struct link_identity identity = { .key = key };
    unsigned char secret[FRONT_SECRET_SIZE];
    char hex[2 * FRONT_SECRET_SIZE + 1];

    (void)state;
    assert_true(sodium_init() >= 0);
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        front_derive_secret(&identity, cases[i].purpose, secret);
        (void)sodium_bin2hex(hex, sizeof(hex), secret, sizeof(secret));
        assert_string_equal(hex, cases[i].hex);
    }
}

static void test_urls_without_a_path(void **state)
{
    static const struct {
        const char *text, *kept; /* NULL = it is refused */
    } cases[] = {
        { "https://apps.example.org", "https://apps.example.org" },
        { "http://[::1]:5050/", "http://[::1]:5050" },
        { "https://example.org/apps", NULL },
        { "apps.example.org", NULL },
        { "", NULL },
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        (void)snprintf(text, sizeof(text), "%s", cases[i].text);
        assert_int_equal(front_settings_check_url(text), cases[i].kept != NULL);
        if (cases[i].kept)
            assert_string_equal(text, cases[i].kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_outlive_an_upgrade),
        cmocka_unit_test(test_urls_without_a_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
