/* SPDX-License-Identifier: Apache-2.0 */
/* What browsers send a web server: cookies, and bodies that the WebUI hides. */
#include "testing.h"

#include <errno.h>
#include <sodium.h>

#include "web/cookie.h"
#include "web/payload.h"

static const unsigned char secret[FRONT_SECRET_SIZE] = "one", other[FRONT_SECRET_SIZE] = "other";

static void test_found_in_a_header(void **state)
{
    static const struct {
        const char *header;
        bool is_https;
        const char *value; /* NULL = none */
    } cases[] = {
        { "AIOHTTP_SESSION=abc", false, "abc" },
        { "a=b; AIOHTTP_SESSION=abc ; c=d", false, "abc" },
        { "AIOHTTP_SESSION=\"abc\"", false, "abc" },
        { "AIOHTTP_SESSION=", false, "" },
        { "AIOHTTP_SESSION=abc", true, NULL },
        { "__Host-AIOHTTP_SESSION=abc", true, "abc" },
        { "__Host-AIOHTTP_SESSION=abc", false, NULL },
        { "XAIOHTTP_SESSION=abc; AIOHTTP_SESSIONX=abc", false, NULL },
        { "AIOHTTP_SESSION", false, NULL },
        { "AIOHTTP_SESSION=abc; AIOHTTP_SESSION=def", false, NULL },
        { "AIOHTTP_SESSION=abc; __Host-AIOHTTP_SESSION=def", false, "abc" },
        { ";;; ;", false, NULL },
        { "", false, NULL },
        { NULL, false, NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        size_t len = 0;
        const char *value = cookie_find(cases[i].header, COOKIE_LOGIN, cases[i].is_https, &len);

        assert_row(
            !value == !cases[i].value
                && (!value
                    || (len == strlen(cases[i].value) && strncmp(value, cases[i].value, len) == 0)),
            "%s", cases[i].header);
    }
}

static void test_cookies(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char cookie[COOKIE_TEXT_MAX], hash[COOKIE_HASH_MAX], device[COOKIE_DEVICE_MAX];

    (void)state;
    assert_true(sodium_init() >= 0);
    cookie_make(cookie);
    assert_int_equal(strlen(cookie), 43);
    assert_true(cookie_hash(cookie, 43, hash));
    assert_int_equal(strlen(hash), 64);
    assert_false(cookie_hash(cookie, 42, hash));
    assert_false(cookie_hash("", 0, hash));
    cookie_make_device(secret, "user@example.org", device);
    assert_true(cookie_check_device(secret, "user@example.org", device, strlen(device)));
    assert_false(cookie_check_device(other, "user@example.org", device, strlen(device)));
    assert_false(cookie_check_device(secret, "other@example.org", device, strlen(device)));
    device[3] ^= 1;
    assert_false(cookie_check_device(secret, "user@example.org", device, strlen(device)));
    cookie_write(COOKIE_LOGIN, true, "abc", 60, &out);
    assert_string_equal(out.data, "__Host-AIOHTTP_SESSION=abc; Path=/; Max-Age=60; HttpOnly;"
                                  " SameSite=Strict; Secure");
    strbuf_clear(&out);
    cookie_write(COOKIE_LOGIN, false, "", 60, &out);
    assert_string_equal(out.data, "AIOHTTP_SESSION=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
}

static void test_hidden_bodies(void **state)
{
    static const char good[] =
        "zJhGyCTGgkUvzgDA:rfQtteCq6h/hRtJYq38dFPYM4JXRudw0oWxcD2T3RDomhJ9Ja/e18kr40UXgK/1Guny89Ci3"
        "lBR84ajUL4C8Sw==";
    static const char *const bad[] = { "",
                                       "zJhGyCTGgkUvzgDA",
                                       "zJhGyCTGgkUvzgDA:",
                                       "zJhGyCTGgkUvzgDA:rfQt",
                                       "zJhGyCTGgkUvzgDA:====",
                                       "zJhGyCTGgkUvzgDB:rfQtteCq6h/hRtJYq38dFA==" };
    static const char old[] = /* of 22.09, which fills up base64 with 'A' */
        "DH6ONsWZjl9k4zVN:INcKQR0gWSP+gS59JLbm2/vDHeUiak/0RcIJwhY8LveLFneKoDUGiH/ExqFV/OuAnX1Df7eg"
        "1WCL5zdTOvr6lw==";
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(payload_open("http://127.0.0.1:13152", old, strlen(old), &out, &err), 0);
    assert_string_equal(out.data, "{\"username\":\"admin@lablup.com\",\"password\":\"wJalrXUt\"}");
    assert_int_equal(payload_open("http://127.0.0.1:8190", good, strlen(good), &out, &err), 0);
    assert_string_equal(out.data, "{\"username\":\"admin@lablup.com\",\"password\":\"wJalrXUt\"}");
    assert_int_equal(payload_open("http://127.0.0.1:8191", good, strlen(good), &out, &err),
                     -EINVAL);
    for (size_t i = 0; i < AQ_COUNT(bad); i++) {
        err = (struct aq_error){ 0 };
        assert_row(payload_open("http://127.0.0.1:8190", bad[i], strlen(bad[i]), &out, &err)
                           == -EINVAL
                       && strcmp(err.text, "the encrypted body cannot be read") == 0,
                   "%s", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_in_a_header),
        cmocka_unit_test(test_cookies),
        cmocka_unit_test(test_hidden_bodies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
