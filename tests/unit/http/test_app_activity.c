/* SPDX-License-Identifier: Apache-2.0 */
/* What of the bytes that go into an app is a person's work. */
#include "testing.h"

#include <string.h>

#include "base/cleanup.h"
#include "http/app_activity.h"

static uint64_t seen[16];
static size_t seen_count;

static bool is_repeated(void *data, uint64_t hash)
{
    (void)data;
    for (size_t i = 0; i < seen_count; i++)
        if (seen[i] == hash)
            return true;
    seen[seen_count++ % AQ_COUNT(seen)] = hash;
    return false;
}

/* One connection, whose bytes come in pieces of this size. */
static struct app_activity_found take(const char *bytes, size_t len, size_t piece)
{
    struct app_activity_found found = { .is_repeated = is_repeated };
    struct app_activity a;

    app_activity_begin(&a);
    for (size_t at = 0; at < len; at += piece)
        app_activity_take(&a, bytes + at, AQ_MIN(piece, len - at), &found);
    app_activity_done(&a);
    return found;
}

#define POLL(query) "GET /api/kernels?" query " HTTP/1.1\r\nHost: a\r\nCookie: b\r\n\r\n"
#define SOCKET "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
#define PING   \
    "\x89\x80" \
    "abcd"
#define KEY    \
    "\x82\x82" \
    "abcd"     \
    "xy"

static void pages_poll(void **state)
{
    static const char polls[] = POLL("1") POLL("2") POLL("3");

    (void)state;
    for (size_t piece = 1; piece < sizeof(polls); piece += 7) {
        seen_count = 0;
        assert_int_equal(take(polls, sizeof(polls) - 1, piece).bytes, strlen(POLL("1")));
        assert_int_equal(take(polls, sizeof(polls) - 1, piece).bytes, 0);
    }
}

static void requests_change(void **state)
{
    static const char save[] = POLL("1") "PUT /api/contents/a HTTP/1.1\r\nContent-Length: 5\r\n\r\n"
                                         "GET /" POLL("2");

    (void)state;
    for (size_t piece = 1; piece < sizeof(save); piece += 5) {
        seen_count = 0;
        assert_true(take(save, sizeof(save) - 1, piece).is_work);
        /* The body is none of the next head. */
        assert_int_equal(take(save, sizeof(save) - 1, piece).bytes, 0);
    }
}

static void sockets_ping(void **state)
{
    static const char silent[] = SOCKET PING PING PING, typing[] = SOCKET PING KEY PING KEY;

    (void)state;
    for (size_t piece = 1; piece < sizeof(typing); piece += 3) {
        (void)take(SOCKET, strlen(SOCKET), piece);
        assert_int_equal(take(silent, sizeof(silent) - 1, piece).bytes, 0);
        assert_int_equal(take(typing, sizeof(typing) - 1, piece).bytes, 4);
    }
}

static void long_frames(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf bytes = STRBUF_INIT;

    (void)state;
    (void)take(SOCKET, strlen(SOCKET), 999);
    strbuf_adds(&bytes, SOCKET);
    strbuf_add(&bytes,
               "\x82\xfe\x01\x00"
               "abcd",
               8);
    for (int i = 0; i < 256; i++)
        strbuf_addc(&bytes, 'x');
    strbuf_add(&bytes,
               "\x8a\xff\0\0\0\0\0\0\0\x02"
               "abcdxy",
               16);
    strbuf_add(&bytes, KEY, 8);
    assert_int_equal(take(bytes.data, bytes.len, 999).bytes, 258);
    assert_int_equal(take(bytes.data, bytes.len, 1).bytes, 258);
}

static void others_count(void **state)
{
    static const char ssh[] = "SSH-2.0-OpenSSH_9\r\n";

    (void)state;
    assert_int_equal(take(ssh, sizeof(ssh) - 1, 1).bytes, sizeof(ssh) - 1);
    assert_int_equal(take(ssh, sizeof(ssh) - 1, 99).bytes, sizeof(ssh) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_poll),   cmocka_unit_test(requests_change),
        cmocka_unit_test(sockets_ping), cmocka_unit_test(long_frames),
        cmocka_unit_test(others_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
