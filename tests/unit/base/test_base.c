/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/host_port.h"
#include "base/json_scan.h"
#include "base/jsonw.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/shell_word.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "base/uuid.h"

static void test_shell_words(void **state)
{
    static const struct {
        const char *text, *first, *rest; /* rest NULL = it takes a shell */
    } rows[] = {
        { "", "", "" },
        { "a", "a", "" },
        { "a  b c", "a", "b c" },
        { "'a b'c\"d e\" f", "a bcd e", "f" },
        { "a\\ b\\\\ c", "a b\\", "c" },
        { "\"a\\\"\\b\" c", "a\"\\b", "c" },
        { "'a\\' b", "a\\", "b" },
        { "a\\", "a\\", "" },
        { "'a", "", NULL },
        { "\"$a\"", "", NULL },
        { "a;b", "", NULL },
        { "*", "", NULL },
        { "~/a", "", NULL },
        { "a~", "", NULL },
        { "\\~\\*\\;'$(x)'", "~*;$(x)", "" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf word = STRBUF_INIT;
        const char *rest = shell_word_take(rows[i].text, &word);

        assert_int_equal(!rest, !rows[i].rest);
        if (rest) {
            assert_string_equal(rest, rows[i].rest);
            assert_string_equal(word.len ? word.data : "", rows[i].first);
        }
    }
}

static void test_error(void **state)
{
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(aq_fail_field(&err, EINVAL, "mem", "'%s' is not a size", "12x"), -EINVAL);
    assert_string_equal(err.field, "mem");
    assert_string_equal(err.text, "'12x' is not a size");
    assert_int_equal(aq_error_wrap(&err, "session '%s'", "a"), -EINVAL);
    assert_string_equal(err.text, "session 'a': '12x' is not a size");
    errno = ENOENT;
    assert_int_equal(aq_fail_errno(&err, "open"), -ENOENT);
    assert_string_equal(err.text, "open: No such file or directory");
    assert_int_equal(aq_fail(NULL, EIO, "nobody listens"), -EIO);
}

static void test_strbuf(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sb = STRBUF_INIT;
    char *text;

    (void)state;
    assert_string_equal(sb.data, "");
    for (int i = 0; i < 1000; i++)
        strbuf_addf(&sb, "%d,", i);
    assert_true(strbuf_ok(&sb));
    assert_int_equal(sb.len, strlen(sb.data));
    strbuf_consume(&sb, 4);
    assert_memory_equal(sb.data, "2,3,", 4);
    text = strbuf_steal(&sb);
    assert_non_null(text);
    free(text);
    assert_int_equal(sb.len, 0);
    strbuf_addi(&sb, 0);
    strbuf_addi(&sb, INT64_MIN);
    strbuf_addi(&sb, INT64_MAX);
    assert_string_equal(sb.data, "0-92233720368547758089223372036854775807");
    strbuf_truncate(&sb, 0);
    strbuf_add_size(&sb, 256 << 20);
    strbuf_add_size(&sb, 3 << 19);
    strbuf_add_size(&sb, 0);
    assert_string_equal(sb.data, "256 MiB1536 KiB0 KiB");
    strbuf_done(&sb);
    memory_recover();
    assert_false(strbuf_reserve(&sb, SIZE_MAX / 2));
    strbuf_adds(&sb, "ignored after a failure");
    assert_null(strbuf_steal(&sb));
}

static void test_json_scan(void **state)
{
    static const char good[] = " { \"a\" : [1, \"]\\\"\", {\"b\":[]}] ,\"c\":null, \"d\":{} } ";
    static const char *const bad[] = {
        "",          "x",         "{",     "{\"a\"",     "{\"a\":",      "{\"a\":1",
        "{\"a\":1,", "{\"a\" 1}", "{1:1}", "{\"a\":[1}", "{\"a\":\"x\\", "{\"a\":,}"
    };
    static const char *const items[] = { "1", "\"]\\\"\"", "{\"b\":[]}" };
    struct json_scan scan = json_scan_make(good, strlen(good)), inner;
    struct json_span key, value;

    (void)state;
    assert_true(json_scan_member(&scan, &key) && json_span_is(key, "a"));
    value = json_scan_value(&scan);
    inner = json_scan_make(value.text, value.len);
    for (size_t i = 0; i < AQ_COUNT(items); i++)
        assert_true(json_scan_item(&inner) && json_span_is(json_scan_value(&inner), items[i]));
    assert_false(json_scan_item(&inner) || inner.failed);
    assert_true(json_scan_member(&scan, &key) && json_span_is(key, "c"));
    assert_true(json_span_is(json_scan_value(&scan), "null"));
    assert_true(json_scan_member(&scan, &key) && json_span_is(key, "d"));
    assert_true(json_span_is(json_scan_value(&scan), "{}"));
    assert_false(json_scan_member(&scan, &key) || scan.failed);
    for (size_t i = 0; i < AQ_COUNT(bad); i++) {
        scan = json_scan_make(bad[i], strlen(bad[i]));
        while (json_scan_member(&scan, &key))
            (void)json_scan_value(&scan);
        assert_row(scan.failed, "%s", bad[i]);
    }
}

static void test_map(void **state)
{
    struct map map = MAP_INIT;
    static int values[5000];
    char key[16];

    (void)state;
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "key%d", i);
        assert_int_equal(map_sets(&map, key, &values[i]), 0);
    }
    for (int i = 0; i < 5000; i += 2) {
        (void)snprintf(key, sizeof(key), "key%d", i);
        assert_ptr_equal(map_removes(&map, key), &values[i]);
    }
    assert_int_equal(map.count, 2500);
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "key%d", i);
        assert_ptr_equal(map_gets(&map, key), i % 2 ? &values[i] : NULL);
    }
    assert_int_equal(map_sets(&map, "key1", &values[0]), 0);
    assert_ptr_equal(map_gets(&map, "key1"), &values[0]);
    assert_int_equal(map.count, 2500);
    map_done(&map);
    assert_null(map_gets(&map, "key1"));
    assert_null(map_removes(&map, "key1"));
}

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

/* What was cleared but is kept for the next user is as forbidden as freed memory. */
static void test_arena_after_clear(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    char *first = arena_strdup(&arena, "first"), *second;

    (void)state;
    assert_false(__asan_address_is_poisoned(first));
    arena_clear(&arena, 1 << 20);
    assert_true(__asan_address_is_poisoned(first));
    second = arena_strdup(&arena, "second");
    assert_ptr_equal(first, second);
    assert_string_equal(second, "second");
    assert_true(__asan_address_is_poisoned(second + 64));
}
#endif

static void test_arena(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    size_t *numbers = NULL, count = 0;

    (void)state;
    for (size_t i = 1; i < 3000; i++) {
        unsigned char *p = arena_alloc(&arena, i);

        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_int_equal(p[i - 1], 0);
        memset(p, 0xff, i);
    }
    memory_recover();
    assert_null(arena_array(&arena, SIZE_MAX / 2, 4));
    for (size_t i = 0; i < 1000; i++)
        assert_true(arena_append(&arena, &numbers, &count, &i, sizeof(i)));
    assert_int_equal(count, 1000);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(numbers[i], i);
    arena_clear(&arena, 1 << 20);
    assert_string_equal(arena_strdup(&arena, "again"), "again");
}

static void test_arena_limit(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;

    (void)state;
    assert_true(arena_has_room(&arena, SIZE_MAX, 16));
    arena.limit = 1024;
    (void)arena_alloc(&arena, 1);
    assert_true(arena_has_room(&arena, 63, 16));
    assert_false(arena_is_over(&arena));
    assert_false(arena_has_room(&arena, 64, 16));
    assert_true(arena_is_over(&arena));
    assert_false(arena_has_room(&arena, 1, 16));
    arena_clear(&arena, 0);
    assert_true(arena_has_room(&arena, 64, 16));
    assert_non_null(arena_alloc(&arena, 2048));
    assert_true(arena_is_over(&arena));
    assert_false(arena_has_room(&arena, 0, 16));
}

static void test_dates(void **state)
{
    static const struct {
        const char *text;
        int64_t usec; /* -1 = refused */
        const char *iso;
    } rows[] = {
        { "2026-11-21T01:02:03.456789+00:00", 1795222923456789,
          "2026-11-21T01:02:03.456789+00:00" },
        { "2026-11-21 01:02:03Z", 1795222923000000, "2026-11-21T01:02:03+00:00" },
        { "2026-11-21T10:02:03+09:00", 1795222923000000, "2026-11-21T01:02:03+00:00" },
        { "2026-11-21T10:02:03+0900", 1795222923000000, "2026-11-21T01:02:03+00:00" },
        { "Sat, 21 Nov 2026 01:02:03 GMT", 1795222923000000, "2026-11-21T01:02:03+00:00" },
        { "1970-01-01", 0, "1970-01-01T00:00:00+00:00" },
        { "2026-02-29T00:00:00Z", -1, NULL },
        { "2026-13-01", -1, NULL },
        { "2026-11-21T25:00:00", -1, NULL },
        { "2026-11-21T01:02:03.", -1, NULL },
        { "2026-11-21T01:02:03+", -1, NULL },
        { "yesterday", -1, NULL },
        { "", -1, NULL },
        { "Sat, 21 Foo 2026 01:02:03 GMT", -1, NULL },
    };
    char iso[CLOCK_ISO_MAX];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t usec = -1;
        int r = clock_parse_date(rows[i].text, &usec);

        assert_row(r == (rows[i].usec < 0 ? -EINVAL : 0), "%s", rows[i].text);
        assert_row(usec == rows[i].usec, "%s", rows[i].text);
        if (rows[i].iso)
            assert_string_equal(clock_format_iso(usec, iso), rows[i].iso);
    }
}

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t usec;
    } rows[] = {
        { "10", 10000000 },     { "10s", 10000000 },
        { "1.5h", 5400000000 }, { "1h30m", 5400000000 },
        { "7d", 604800000000 }, { "0", 0 },
        { "-1", -1 },           { "", -1 },
        { "5x", -1 },           { "99999999999999w", -1 },
        { "1.", -1 },           { "1h 5", -1 },
        { "0.0000001", -1 },    { "0.000000m", 0 },
        { "0.000001", 1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t usec = -1;
        int r = clock_parse_duration(rows[i].text, &usec);

        assert_row(r == (rows[i].usec < 0 ? -EINVAL : 0) && usec == rows[i].usec, "%s",
                   rows[i].text);
    }
}

static void test_since(void **state)
{
    static const struct {
        const char *text;
        int64_t usec, ago_usec; /* both 0 = refused */
    } rows[] = {
        { "10m", 0, 600000000 },
        { "1h30", 0, 3630000000 },
        { "0s", 0, 1 },
        { "1763690523", INT64_C(1763690523000000), 0 },
        { "1763690523.25", INT64_C(1763690523250000), 0 },
        { "0", 1, 0 },
        { "2025-11-21T02:02:03Z", INT64_C(1763690523000000), 0 },
        { "1970-01-01T00:00:00+05:00", 1, 0 },
        { "", 0, 0 },
        { ".", 0, 0 },
        { "-10m", 0, 0 },
        { "soon", 0, 0 },
        { "10m ago", 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t usec = 0, ago_usec = 0;
        int r = clock_parse_since(rows[i].text, &usec, &ago_usec);

        assert_row(r == (rows[i].usec || rows[i].ago_usec ? 0 : -EINVAL), "'%s'", rows[i].text);
        assert_row(usec == rows[i].usec && ago_usec == rows[i].ago_usec, "'%s'", rows[i].text);
    }
}

static void test_ordered_uuid(void **state)
{
    struct uuid a = uuid_ordered(), b = uuid_ordered();
    uint64_t msec = 0;

    (void)state;
    for (int i = 0; i < 6; i++)
        msec = msec << 8 | a.bytes[i];
    assert_true((int64_t)msec <= clock_realtime_usec() / 1000);
    assert_true((int64_t)msec > clock_realtime_usec() / 1000 - 60000);
    assert_int_equal(a.bytes[6] >> 4, 7);
    assert_int_equal(a.bytes[8] >> 6, 2);
    assert_true(memcmp(a.bytes, b.bytes, 6) <= 0);
    assert_false(uuid_equals(&a, &b));
}

static void test_uuid(void **state)
{
    struct uuid a = uuid_random(), b;
    char text[UUID_TEXT_MAX];

    (void)state;
    for (int i = 0; i < 100; i++) {
        b = uuid_random();
        assert_false(uuid_equals(&a, &b));
    }
    assert_int_equal(uuid_parse(uuid_format(&a, text), &b), 0);
    assert_true(uuid_equals(&a, &b));
    assert_int_equal(uuid_parse("2DE2B9691D0448A6AF160BC8ADB3C831", &b), 0);
    assert_string_equal(uuid_format(&b, text), "2de2b969-1d04-48a6-af16-0bc8adb3c831");
    assert_int_equal(uuid_parse("2de2b969-1d04-48a6-af16-0bc8adb3c83", &b), -EINVAL);
    assert_int_equal(uuid_parse("2de2b9691d04-48a6-af16-0bc8adb3c8310", &b), -EINVAL);
    assert_int_equal(uuid_parse("zde2b969-1d04-48a6-af16-0bc8adb3c831", &b), -EINVAL);
    a = uuid_of_text("a/0/1");
    b = uuid_of_text("a/0/1");
    assert_true(uuid_equals(&a, &b));
    b = uuid_of_text("a/0/2");
    assert_false(uuid_equals(&a, &b));
    assert_int_equal(uuid_format(&b, text)[14], '8');
}

static void test_utf8_cut(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = { { "plain", "plain" },   { "caf\xc3\xa9", "caf\xc3\xa9" },
                 { "caf\xc3", "caf" },   { "'\xe2\x82\xac\xe2\x82'.", "'\xe2\x82\xac'." },
                 { "\xf0\x9f\x98", "" }, { "\x80\xff\xc0", "\x80\xff\xc0" } };
    struct aq_error err = { 0 };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "%s", rows[i].text);
        utf8_drop_partial(text);
        assert_row(strcmp(text, rows[i].want) == 0, "%zu: '%s'", i, text);
    }
    assert_int_equal(utf8_rest("\x82\xac.", 3), 2);
    assert_int_equal(utf8_rest("\x80\x80\x80\x80", 4), 3);
    assert_int_equal(utf8_rest("\x80", 1), 1);
    assert_int_equal(utf8_rest("\xc3\xa9", 2), 0);
    assert_int_equal(utf8_rest("", 0), 0);
    assert_int_equal(aq_fail(&err, EINVAL, "not '%.4s'", "caf\xc3\xa9"), -EINVAL);
    assert_string_equal(err.text, "not 'caf'");
}

static void test_host_port(void **state)
{
    static const struct {
        const char *host;
        unsigned port;
        const char *text;
    } rows[] = {
        { "127.0.0.1", 8081, "127.0.0.1:8081" },
        { "node-1.example", 1, "node-1.example:1" },
        { "::1", 8082, "[::1]:8082" },
        { "[::1]", 8082, "[::1]:8082" },
        { "fe80::1%eth0", 65535, "[fe80::1%eth0]:65535" },
        { "::", 0, "[::]:0" },
    };
    char text[HOST_PORT_MAX], host[300];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_string_equal(host_port_write(rows[i].host, rows[i].port, text), rows[i].text);
    memset(host, 'x', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    assert_string_equal(host_port_write(host, 65535, text) + 257, ":65535");
}

/* Output of programs as texts of messages and of C: nothing after a NUL is lost. */
static void test_utf8_text(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *text;
    } rows[] = {
        { "", 0, "" },
        { "caf\xc3\xa9\n", 6, "caf\xc3\xa9\n" },
        { "a\0b\0", 4,
          "a\xef\xbf\xbd"
          "b\xef\xbf\xbd" },
        { "\xff\xc3", 2, "\xef\xbf\xbd\xef\xbf\xbd" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        utf8_write_text(rows[i].bytes, rows[i].len, &out);
        assert_string_equal(out.data, rows[i].text);
        assert_int_equal(out.len, strlen(rows[i].text));
    }
}

/* What steers a terminal, turns text around or takes no room, and what only looks so. */
static void test_utf8_shown(void **state)
{
    static const struct {
        const char *text;
        uint32_t hidden; /* the first; 0 = none */
        const char *printable, *json;
    } rows[] = {
        { "plain ~", 0, "plain ~", "plain ~" },
        { "a\033[2J", 0x1b, "a?[2J", NULL },
        { "a\x7f", 0x7f, "a?", "a\\u007f" },
        { "a\xc2\x9b"
          "2J",
          0x9b, "a?2J", "a\\u009b2J" },
        { "a\x9b"
          "2J",
          0x9b, "a?2J", NULL },
        { "\xc2\xa0\xc3\xa9", 0, "\xc2\xa0\xc3\xa9", "\xc2\xa0\xc3\xa9" },
        { "a\xe2\x80\xae"
          "b",
          0x202e, "a?b", "a\\u202eb" },
        { "a\xe2\x81\xa6"
          "b",
          0x2066, "a?b", "a\\u2066b" },
        { "\xe2\x80\x8e", 0x200e, "?", "\\u200e" },
        { "\xd8\x9c", 0x61c, "?", "\\u061c" },
        { "a\xe2\x80\x8b"
          "b",
          0x200b, "a?b", "a\\u200bb" },
        { "\xef\xbb\xbf"
          "b",
          0xfeff, "?b", "\\ufeffb" },
        { "\xe2\x80\xa8", 0x2028, "?", "\\u2028" },
        { "\xf3\xa0\x81\xa1", 0xe0061, "?", "\\udb40\\udc61" },
        { "a\xe3\x85\xa4", 0x3164, "a?", "a\\u3164" },
        { "a\xcd\x8f", 0x34f, "a?", "a\\u034f" },
        { "a\xf3\xa0\x84\x80", 0xe0100, "a?", "a\\udb40\\udd00" },
        /* a selector makes a heart an emoji; a letter of ASCII has none, and nothing has two */
        { "\xe2\x9d\xa4\xef\xb8\x8f", 0, "\xe2\x9d\xa4\xef\xb8\x8f", "\xe2\x9d\xa4\xef\xb8\x8f" },
        { "a\xef\xb8\x8f", 0xfe0f, "a?", "a\\ufe0f" },
        { "\xe2\x9d\xa4\xef\xb8\x8f\xef\xb8\x8e", 0xfe0e, "\xe2\x9d\xa4\xef\xb8\x8f?",
          "\xe2\x9d\xa4\xef\xb8\x8f\\ufe0e" },
        /* joiners: in a Persian word, and in the emoji of a family */
        { "\xd9\x85\xe2\x80\x8c\xd8\xae", 0, "\xd9\x85\xe2\x80\x8c\xd8\xae",
          "\xd9\x85\xe2\x80\x8c\xd8\xae" },
        { "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7", 0,
          "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
          "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7" },
        { "a\xe2\x80\x8d"
          "b",
          0x200d, "a?b", "a\\u200db" },
        { "\xe2\x80\x8d\xc3\xa9", 0x200d, "?\xc3\xa9", "\\u200d\xc3\xa9" },
        { "\xc3\xa9\xe2\x80\x8d", 0x200d, "\xc3\xa9?", "\xc3\xa9\\u200d" },
        { "\xc3\xa9\xe2\x80\x8d\xe2\x80\x8d\xc3\xa9", 0x200d, "\xc3\xa9?\xe2\x80\x8d\xc3\xa9",
          "\xc3\xa9\\u200d\xe2\x80\x8d\xc3\xa9" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, json = STRBUF_INIT;
        AQ_CLEANUP(aq_freep) char *copy = strdup(rows[i].text);
        size_t len = strlen(copy);
        uint32_t code = 0;
        bool is_shown = utf8_is_shown(copy, len, &code);

        assert_row(is_shown == !rows[i].hidden && (is_shown || code == rows[i].hidden), "%zu: %x",
                   i, (unsigned)code);
        utf8_write_printable(copy, len, &out);
        assert_row(strcmp(out.data, rows[i].printable) == 0, "%zu: '%s'", i, out.data);
        utf8_write_json(copy, len, &json);
        assert_row(!rows[i].json || strcmp(json.data, rows[i].json) == 0, "%zu: '%s'", i,
                   json.data);
        utf8_make_printable(copy);
        assert_row(strcmp(copy, rows[i].printable) == 0, "%zu: '%s'", i, copy);
    }
}

static void test_csv(void **state)
{
    static const struct {
        const char *text, *field; /* NULL = as the text */
    } rows[] = {
        { "plain", NULL },
        { "", NULL },
        { "a,b", "\"a,b\"" },
        { " a", "\" a\"" },
        { "a\nb", "\"a\nb\"" },
        { "say \"x\"", "\"say \"\"x\"\"\"" },
        { "=1+1", "'=1+1" },
        { "=HYPERLINK(\"http://a\",\"b\")", "\"'=HYPERLINK(\"\"http://a\"\",\"\"b\"\")\"" },
        { "+1+1", "'+1+1" },
        { "-1+1", "'-1+1" },
        { "@SUM(A1)", "'@SUM(A1)" },
        { "\t=1", "'\t=1" },
        { "\xef\xbc\x9d"
          "1",
          "'\xef\xbc\x9d"
          "1" },
        { "-5", NULL },
        { "+3.2", NULL },
        { "-1.5e-7", NULL },
        { "-1e5", NULL },
        { "-5a", "'-5a" },
        { "-1e", "'-1e" },
        { "--1", "'--1" },
        { "-", NULL },
        { "a=b", NULL },
        { "'=1", "''=1" },
        { "'plain", NULL },
        { "'-5", "''-5" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, exact = STRBUF_INIT;
        const char *text = rows[i].text, *want = rows[i].field ? rows[i].field : text;

        csv_write_field(text, strlen(text), &out);
        assert_row(strcmp(out.data, want) == 0, "%zu: '%s'", i, out.data);
        csv_write_exact(text, strlen(text), &exact);
        assert_row(exact.data[0] != '\'' || text[0] == '\'', "%zu: '%s'", i, exact.data);
        if (out.data[0] != '"') /* nothing but the mark was added */
            assert_string_equal(csv_field_text(out.data), text);
    }
}

static void test_csv_cleans(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    csv_write_field("a\033[2J\0\xc2\x9b\xe2\x80\xae\r\n=b", 15, &out);
    assert_string_equal(out.data, "\"a?[2J????\n=b\"");
}

static void test_utf8(void **state)
{
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        { "plain", true },     { "\xc3\xa9", true },      { "\xf0\x9f\x98\x80", true },
        { "\xc0\x80", false }, { "\xed\xa0\x80", false }, { "\xf4\x90\x80\x80", false },
        { "\x80", false },     { "\xe2\x82", false },     { "\xff", false },
    };
    char out[4];
    uint32_t code;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(utf8_is_valid(rows[i].text, strlen(rows[i].text)) == rows[i].valid, "%zu", i);
    for (uint32_t c = 0; c <= 0x10ffff; c += 7) {
        size_t len;

        if (c >= 0xd800 && c < 0xe000)
            continue;
        len = utf8_write(c, out);
        assert_int_equal(utf8_decode(out, len, &code), len);
        assert_int_equal(code, c);
    }
}

static void test_jsonw(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    (void)state;
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "a\"b", "x\n\x01\xff\xc3\xa9");
    jsonw_key(&w, "n");
    jsonw_array_begin(&w);
    jsonw_int(&w, INT64_MIN);
    jsonw_int(&w, 0);
    jsonw_double(&w, 0.1);
    jsonw_double(&w, 1e300);
    jsonw_bool(&w, true);
    jsonw_str(&w, NULL);
    jsonw_array_end(&w);
    jsonw_key(&w, "o");
    jsonw_object_begin(&w);
    jsonw_object_end(&w);
    jsonw_member_null(&w, "z");
    jsonw_object_end(&w);
    assert_string_equal(
        out.data, "{\"a\\\"b\":\"x\\n\\u0001\xef\xbf\xbd\xc3\xa9\",\"n\":[-9223372036854775808,"
                  "0,0.1,1e+300,true,null],\"o\":{},\"z\":null}");
}

/* Programs that were started without HOME use the home of the user database. */
static void test_user_folders(void **state)
{
    AQ_CLEANUP(aq_freep) char *by_home = NULL, *by_database = NULL, *expected = NULL;
    const struct passwd *user = getpwuid(geteuid());

    (void)state;
    assert_non_null(user);
    (void)unsetenv("XDG_CONFIG_HOME");
    (void)setenv("HOME", "/somewhere", 1);
    by_home = fs_user_config_dir();
    assert_string_equal(by_home, "/somewhere/.config/aliquot");
    (void)unsetenv("HOME");
    by_database = fs_user_config_dir();
    expected = aq_format("%s/.config/aliquot", user->pw_dir);
    assert_string_equal(by_database, expected);
}

static void test_fs(void **state)
{
    char dir[] = "/tmp/aliquot-test-XXXXXX";
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *deep = NULL;
    AQ_CLEANUP(aq_closep) int fd = -1;
    struct aq_error err = { 0 };

    (void)state;
    assert_non_null(mkdtemp(dir));
    deep = aq_format("%s/a/b/c", dir);
    assert_int_equal(fs_mkdirs(deep, 0700, &err), 0);
    assert_int_equal(fs_mkdirs(deep, 0700, &err), 0);
    fd = open(deep, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fs_write_atomic(fd, "file", "hello", 5, 0600, &err), 0);
    assert_int_equal(fs_write_atomic(fd, "file", "world", 5, 0600, &err), 0);
    assert_int_equal(fs_read(fd, "file", 5, &text, &err), 0);
    assert_string_equal(text.data, "world");
    assert_int_equal(fs_read(fd, "file", 4, &text, &err), -EFBIG);
    assert_int_equal(fs_read(fd, "absent", 4, &text, &err), -ENOENT);
    assert_int_equal(symlinkat("/etc", fd, "link"), 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, dir, &err), 0);
    assert_int_equal(access("/etc/passwd", F_OK), 0);
    assert_int_equal(access(dir, F_OK), -1);
    assert_int_equal(fs_remove_tree(AT_FDCWD, dir, &err), 0);
}

static void test_folders_that_were_made(void **state)
{
    char top[] = "/tmp/folders-XXXXXX";
    AQ_CLEANUP(aq_freep) char *path = NULL, *kept = NULL;

    (void)state;
    assert_non_null(mkdtemp(top));
    path = aq_format("%s/one/two", top);
    kept = fs_find_existing(path);
    assert_string_equal(kept, top);
    assert_int_equal(fs_mkdirs(path, 0700, NULL), 0);
    fs_remove_folders(path, kept);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rmdir(top), 0); /* was kept, and is empty */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_shell_words),
        cmocka_unit_test(test_strbuf),
        cmocka_unit_test(test_json_scan),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_limit),
#ifdef __SANITIZE_ADDRESS__
        cmocka_unit_test(test_arena_after_clear),
#endif
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_since),
        cmocka_unit_test(test_uuid),
        cmocka_unit_test(test_ordered_uuid),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_utf8_cut),
        cmocka_unit_test(test_host_port),
        cmocka_unit_test(test_utf8_text),
        cmocka_unit_test(test_utf8_shown),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_csv_cleans),
        cmocka_unit_test(test_jsonw),
        cmocka_unit_test(test_fs),
        cmocka_unit_test(test_user_folders),
        cmocka_unit_test(test_folders_that_were_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
