/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "base/clock.h"
#include "http/replay.h"
#include "http/sign.h"
#include "http/version.h"

#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define DATE "2026-11-21T01:02:03.456789+00:00"
#define HEX_GET "17daad851ab0d045e614ef448de0c8cef3c8f0e3538c6ddecc6618e4c2ec1f3c"
#define HEX_POST "8b872754c363548d54b01f5a64aea2f2086253f4ad813be1261df2b58c364c6d"

static const struct sign_input get = {
    "GET",        "/session/mysess1?owner_access_key=AKIAX",
    DATE,         "127.0.0.1:8081",
    "text/plain", "v6.20220315",
    false,
};
static const struct sign_input post = {
    "POST", "/session", DATE, "api.example.com", "application/json", "v6.20220615", false,
};

static void test_vectors(void **state)
{
    struct sign_input multipart = post;
    char hex[SIGN_HEX_MAX], plain[SIGN_HEX_MAX];

    (void)state;
    assert_int_equal(sign_compute(&get, SECRET, hex, NULL), 0);
    assert_string_equal(hex, HEX_GET);
    assert_int_equal(sign_compute(&post, SECRET, hex, NULL), 0);
    assert_string_equal(hex, HEX_POST);
    /* parameters and case of the media type do not count */
    multipart.content_type = "Application/JSON ; charset=utf-8";
    assert_int_equal(sign_compute(&multipart, SECRET, hex, NULL), 0);
    assert_string_equal(hex, HEX_POST);
    /* no header means octets */
    multipart.content_type = NULL;
    assert_int_equal(sign_compute(&multipart, SECRET, hex, NULL), 0);
    multipart.content_type = "application/octet-stream";
    assert_int_equal(sign_compute(&multipart, SECRET, plain, NULL), 0);
    assert_string_equal(hex, plain);
    assert_string_not_equal(hex, HEX_POST);
}

/* Whatever is signed must change the signature. */
static void test_differences(void **state)
{
    struct sign_input rows[7];
    char hex[SIGN_HEX_MAX];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        rows[i] = get;
    rows[0].method = "POST";
    rows[1].target = "/session/mysess1?owner_access_key=AKIAY";
    rows[2].date = "2026-11-21T01:02:03.456780+00:00";
    rows[3].host = "127.0.0.1:8082";
    rows[4].content_type = "application/json";
    rows[5].version = "v6.20220615";
    rows[6].is_sorna = true;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        assert_int_equal(sign_compute(&rows[i], SECRET, hex, NULL), 0);
        assert_row(strcmp(hex, HEX_GET) != 0, "input %zu is not signed", i);
    }
    assert_int_equal(sign_compute(&get, "other", hex, NULL), 0);
    assert_string_not_equal(hex, HEX_GET);
    assert_int_equal(sign_compute(&get, "", hex, NULL), 0);
    assert_string_not_equal(hex, HEX_GET);
}

/* The day counts in the date's own time zone. */
static void test_day(void **state)
{
    struct sign_input seoul = get, http = get;
    char a[SIGN_HEX_MAX], b[SIGN_HEX_MAX];

    (void)state;
    seoul.date = "2026-11-22T01:02:03+09:00";
    assert_int_equal(sign_compute(&seoul, SECRET, a, NULL), 0);
    seoul.date = "2026-11-21T16:02:03+00:00";
    assert_int_equal(sign_compute(&seoul, SECRET, b, NULL), 0);
    assert_string_not_equal(a, b);
    http.date = "Sat, 21 Nov 2026 01:02:03 GMT";
    assert_int_equal(sign_compute(&http, SECRET, a, NULL), 0);
    http.date = "yesterday";
    assert_int_equal(sign_compute(&http, SECRET, a, NULL), -EINVAL);
}

static void test_authorization(void **state)
{
    static const struct {
        const char *header, *want; /* want: message, or "" if accepted */
    } rows[] = {
        { "BackendAI signMethod=HMAC-SHA256, credential=AKIA1:" HEX_GET, "" },
        { "BackendAI signMethod=HMAC-SHA256,credential=AKIA1:" HEX_GET, "" },
        { "Sorna credential=AKIA1:" HEX_GET ", signMethod=HMAC-SHA256", "" },
        { "BackendAI signMethod=HMAC-SHA256, credential=:" HEX_GET, "" },
        { "", "Malformed authorization header" },
        { "BackendAI", "Malformed authorization header" },
        { "BackendAI ", "Malformed authorization header" },
        { "Basic YTpi", "Invalid authorization type name" },
        { "BackendA signMethod=HMAC-SHA256, credential=A:" HEX_GET,
          "Invalid authorization type name" },
        { "BackendAI x", "Missing or malformed authorization parameters" },
        { "BackendAI signMethod=HMAC-SHA256", "Missing or malformed authorization parameters" },
        { "BackendAI credential=A:" HEX_GET, "Missing or malformed authorization parameters" },
        { "BackendAI signMethod=HMAC-MD5, credential=A:" HEX_GET,
          "Unsupported signing method: use HMAC-SHA256" },
        { "BackendAI signMethod=HMAC-SHA256, credential=A:12",
          "Missing or malformed authorization parameters" },
        { "BackendAI signMethod=HMAC-SHA256, credential=A:" HEX_GET "0",
          "Missing or malformed authorization parameters" },
        { "BackendAI signMethod=HMAC-SHA256, credential=A;B:" HEX_GET,
          "Missing or malformed authorization parameters" },
        { "BackendAI signMethod=HMAC-SHA256, credential=A:" HEX_GET ", credential=A:" HEX_GET,
          "Missing or malformed authorization parameters" },
        { "BackendAI signMethod=HMAC-SHA256, credential=A:" HEX_GET ", x=y",
          "Missing or malformed authorization parameters" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct sign_claim claim = { .date_usec = 0 };
        struct aq_error err = { .code = 0 };
        int r = sign_parse_authorization(rows[i].header, &claim, &err);

        assert_row((r == 0) == !*rows[i].want, "%s: %d", rows[i].header, r);
        assert_row(!strcmp(err.text, rows[i].want), "%s: %s", rows[i].header, err.text);
        assert_row(r == 0 || !strcmp(err.kind, "invalid-auth-params"), "%s", rows[i].header);
    }
}

static void test_round_trip(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, want = STRBUF_INIT;
    struct sign_input tagged = get;
    char hex[SIGN_HEX_MAX];
    int64_t now, read;

    (void)state;
    tagged.date = "2026-11-21T01:02:03.456789012+00:00";
    assert_int_equal(clock_parse_date(DATE, &now), 0);
    assert_int_equal(clock_parse_date(tagged.date, &read), 0);
    assert_int_equal(read, now);
    assert_int_equal(sign_write_headers(&get, "AKIA1", SECRET, now, 12, &out, NULL), 0);
    assert_int_equal(sign_compute(&tagged, SECRET, hex, NULL), 0);
    assert_string_not_equal(hex, HEX_GET);
    strbuf_addf(&want,
                "Date: %s\r\n"
                "Authorization: BackendAI signMethod=HMAC-SHA256, credential=AKIA1:%s\r\n"
                "X-BackendAI-Version: v6.20220315\r\n",
                tagged.date, hex);
    assert_string_equal(out.data, want.data);
}

/* Days, hosts and secrets in turn: a cached key serves what it was derived for. */
static void test_cache(void **state)
{
    static const char *const secrets[] = { SECRET, "another", "anotherh" };
    static const char *const hosts[] = { "h", "your.sorna.api.endpoint", "hh" };
    struct sign_cache *cache = sign_cache_new();

    (void)state;
    assert_non_null(cache);
    for (int i = 0; i < 1000; i++) {
        struct sign_claim claim = { .input = get }, other;
        char date[CLOCK_ISO_MAX], hex[SIGN_HEX_MAX];

        claim.input.date = clock_format_iso(
            INT64_C(1800000000000000) + i * 40 % 300 * 3600 * USEC_PER_SEC, date);
        claim.input.host = hosts[i % 3];
        assert_int_equal(sign_compute(&claim.input, secrets[i / 3 % 3], hex, NULL), 0);
        for (int n = 0; n < 32; n++)
            assert_int_equal(sscanf(hex + 2 * n, "%2hhx", &claim.signature[n]), 1);
        assert_int_equal(sign_verify(cache, &claim, secrets[i / 3 % 3], NULL), 0);
        assert_int_equal(sign_verify(NULL, &claim, secrets[i / 3 % 3], NULL), 0);
        assert_int_not_equal(sign_verify(cache, &claim, secrets[(i / 3 + 1) % 3], NULL), 0);
        other = claim;
        other.input.host = hosts[(i + 1) % 3];
        assert_int_not_equal(sign_verify(cache, &other, secrets[i / 3 % 3], NULL), 0);
    }
    sign_cache_free(cache);
}

/* The i-th signature, of one of many keys. */
static int replay_note(struct http_replay *replay, unsigned i, int64_t date_usec, int64_t now_usec,
                       struct aq_error *err)
{
    uint8_t signature[32] = { 0 };
    char key[16];

    memcpy(signature, &i, sizeof(i));
    (void)snprintf(key, sizeof(key), "AKIA%u", i);
    return replay_check(replay, key, signature, date_usec, now_usec, err);
}

static void test_replay(void **state)
{
    AQ_CLEANUP(replay_freep) struct http_replay *replay = NULL;
    const int64_t now = INT64_C(1800000000) * USEC_PER_SEC, later = now + 2 * SIGN_WINDOW_USEC;
    struct aq_error err = { .code = 0 };
    unsigned count = 0;

    (void)state;
    replay = replay_new(3000);
    while (replay_note(replay, count, now + count % 7, now, &err) == 0)
        count++;
    assert_string_equal(err.kind, "rate-limit-exceeded");
    assert_in_range(count, 2900, 3000);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(replay_note(replay, i, now + i % 7, now, &err), -EEXIST);
    assert_string_equal(err.kind, "auth-failed");
    /* outside the window it is not even asked */
    assert_int_equal(replay_note(replay, 1, now, now + SIGN_WINDOW_USEC, &err), -EINVAL);
    assert_int_equal(replay_note(replay, 1, now, now - SIGN_WINDOW_USEC, &err), -EINVAL);
    /* once the window has passed there is room again */
    assert_int_equal(replay_note(replay, 1, later, later, NULL), 0);
}

static void test_one_key_does_not_fill_the_replay_cache(void **state)
{
    AQ_CLEANUP(replay_freep) struct http_replay *replay = NULL;
    const int64_t now = INT64_C(1800000000) * USEC_PER_SEC, later = now + 2 * SIGN_WINDOW_USEC;
    struct aq_error err = { .code = 0 };
    uint8_t signature[32] = { 0 };
    unsigned count = 0;

    (void)state;
    replay = replay_new(3000);
    do
        memcpy(signature, &count, sizeof(count));
    while (
        replay_check(replay, "AKIAGREEDY", signature, now + count % 300 * USEC_PER_SEC, now, &err)
            == 0
        && ++count);
    assert_string_equal(err.kind, "rate-limit-exceeded");
    assert_in_range(count, 990, 1010);
    assert_int_equal(replay_check(replay, "AKIAOTHER", signature, now, now, NULL), 0);
    assert_int_equal(replay_check(replay, "AKIAGREEDY", signature, later, later, NULL), 0);
}

static void test_version(void **state)
{
    static const struct {
        const char *text;
        int parse, accept;
    } rows[] = {
        { "v6.20220615", 0, 0 },
        { "v4.20181215", 0, 0 },
        { "v9.20250722", 0, 0 },
        { "v6.20220616", 0, -EINVAL },
        { "v5.20220615", 0, -EINVAL },
        { "6.20220615", -EINVAL, -EINVAL },
        { "v6.2022061", -EINVAL, -EINVAL },
        { "v6.202206150", -EINVAL, -EINVAL },
        { "v6.20220615 ", -EINVAL, -EINVAL },
        { "v.20220615", -EINVAL, -EINVAL },
        { "v6", -EINVAL, -EINVAL },
        { "", -EINVAL, -EINVAL },
        { "v99999999999.20220615", -EINVAL, -EINVAL },
    };
    struct api_version a, b;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        assert_row(api_version_parse(rows[i].text, &a, NULL) == rows[i].parse, "%s", rows[i].text);
        assert_row(api_version_accept(rows[i].text, &a, NULL) == rows[i].accept, "%s",
                   rows[i].text);
    }
    assert_int_equal(api_version_accept(NULL, &a, NULL), 0);
    assert_int_equal(a.major, 5);
    assert_int_equal(api_version_parse(API_VERSION_ANNOUNCED, &b, NULL), 0);
    assert_int_equal(b.major, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_day),
        cmocka_unit_test(test_authorization),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_one_key_does_not_fill_the_replay_cache),
        cmocka_unit_test(test_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
