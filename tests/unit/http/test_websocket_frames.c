/* SPDX-License-Identifier: Apache-2.0 */
/* Frames from untrusted clients: what is taken, and what is refused with which code. */
#include "testing.h"

#include <string.h>

#include "http/websocket_frames.h"

#define MAX 300
#define BYTES(text) text, sizeof(text) - 1
#define X16 "0123456789abcdef"
#define X128 X16 X16 X16 X16 X16 X16 X16 X16

/* Feed in pieces of 'step' bytes; messages are put down as "t:text;" and "b:bytes;". */
static void feed(struct websocket_frames *f, const char *bytes, size_t len, size_t step,
                 struct strbuf *got)
{
    for (size_t at = 0; at < len; at += step) {
        size_t piece = AQ_MIN(step, len - at), used = 0;

        while (used < piece) {
            struct websocket_message message;

            used += websocket_frames_read(f, bytes + at + used, piece - used, &message);
            if (message.bytes) {
                strbuf_adds(got, message.is_text ? "t:" : "b:");
                strbuf_add(got, message.bytes, message.len);
                strbuf_addc(got, ';');
            }
        }
    }
}

struct row {
    const char *what, *in;
    size_t in_len;
    const char *got, *out;
    size_t out_len;
    unsigned code; /* 0 = it goes on */
};

/* As a client hears them, so unmasked. */
static const struct row rows[] = {
    { "text", BYTES("\x81\x02hi"), "t:hi;", BYTES(""), 0 },
    { "empty text", BYTES("\x81\x00"), "t:;", BYTES(""), 0 },
    { "binary", BYTES("\x82\x02\xff\xfe"), "b:\xff\xfe;", BYTES(""), 0 },
    { "two messages",
      BYTES("\x81\x01"
            "a\x81\x01"
            "b"),
      "t:a;t:b;", BYTES(""), 0 },
    { "fragments",
      BYTES("\x01\x01"
            "a\x00\x01"
            "b\x80\x01"
            "c"),
      "t:abc;", BYTES(""), 0 },
    { "a character in two fragments", BYTES("\x01\x01\xc3\x80\x01\xbc"), "t:\xc3\xbc;", BYTES(""),
      0 },
    { "16 bit length", BYTES("\x82\x7e\x00\x80" X128), "b:" X128 ";", BYTES(""), 0 },
    { "pong unasked", BYTES("\x8a\x01x"), "", BYTES(""), 0 },
    { "close", BYTES("\x88\x02\x03\xe8"), "", BYTES(""), 1000 },
    { "close with a reason",
      BYTES("\x88\x05\x03\xe9"
            "bye"),
      "", BYTES(""), 1001 },
    { "close without a code", BYTES("\x88\x00"), "", BYTES(""), 1005 },
    { "nothing after a close",
      BYTES("\x88\x00\x81\x01"
            "a"),
      "", BYTES(""), 1005 },
    { "close with half a code", BYTES("\x88\x01\x03"), "", BYTES(""), 1002 },
    { "close with a code of no wire", BYTES("\x88\x02\x03\xed"), "", BYTES(""), 1002 },
    { "close with code 999", BYTES("\x88\x02\x03\xe7"), "", BYTES(""), 1002 },
    { "close with code 5000", BYTES("\x88\x02\x13\x88"), "", BYTES(""), 1002 },
    { "close, reason not UTF-8", BYTES("\x88\x03\x03\xe8\xff"), "", BYTES(""), 1007 },
    { "text not UTF-8", BYTES("\x81\x01\xff"), "", BYTES(""), 1007 },
    { "half a character", BYTES("\x81\x01\xc3"), "", BYTES(""), 1007 },
    { "masked by a server", BYTES("\x81\x81\x01\x01\x01\x01j"), "", BYTES(""), 1002 },
    { "reserved bit",
      BYTES("\xc1\x01"
            "a"),
      "", BYTES(""), 1002 },
    { "opcode 3", BYTES("\x83\x00"), "", BYTES(""), 1002 },
    { "opcode 11", BYTES("\x8b\x00"), "", BYTES(""), 1002 },
    { "ping in fragments", BYTES("\x09\x00"), "", BYTES(""), 1002 },
    { "long ping", BYTES("\x89\x7e\x00\x80" X128), "", BYTES(""), 1002 },
    { "continuation of nothing",
      BYTES("\x80\x01"
            "a"),
      "", BYTES(""), 1002 },
    { "a message within another",
      BYTES("\x01\x01"
            "a\x81\x01"
            "b"),
      "", BYTES(""), 1002 },
    { "length longer than needed",
      BYTES("\x81\x7e\x00\x01"
            "a"),
      "", BYTES(""), 1002 },
    { "length of 64 bits, not needed", BYTES("\x81\x7f\0\0\0\0\0\0\x01\x00"), "", BYTES(""), 1002 },
    { "length of 2^63", BYTES("\x82\x7f\x80\0\0\0\0\0\0\0"), "", BYTES(""), 1002 },
    { "too long", BYTES("\x82\x7e\x01\x2d"), "", BYTES(""), 1009 },
    { "too long in sum", BYTES("\x02\x7e\x00\x80" X128 "\x00\x7e\x00\x80" X128 "\x80\x2d"), "",
      BYTES(""), 1009 },
    { "longest", BYTES("\x02\x7e\x00\x80" X128 "\x00\x7e\x00\x80" X128 "\x80\x02zz"),
      "b:" X128 X128 "zz;", BYTES(""), 0 },
};

static void test_received(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        for (size_t step = 1; step <= 400; step += 399) {
            AQ_CLEANUP(strbuf_donep) struct strbuf got = STRBUF_INIT;
            const struct row *row = &rows[i];
            struct websocket_frames f;

            websocket_frames_init(&f, false, MAX);
            feed(&f, row->in, row->in_len, step, &got);
            assert_row(strcmp(got.data, row->got) == 0, "%s: %s", row->what, got.data);
            assert_row(websocket_frames_is_over(&f) == (row->code != 0), "%s", row->what);
            assert_row(!row->code || websocket_frames_get_code(&f) == row->code, "%s: %u",
                       row->what, websocket_frames_get_code(&f));
            assert_row((f.out.len > 0) == (row->code != 0), "%s", row->what);
            websocket_frames_done(&f);
        }
}

/* What a server answers, byte for byte. */
static void test_answers(void **state)
{
    static const struct row answers[] = {
        { "masked text", BYTES("\x81\x82\x01\x02\x03\x04ig"), "t:he;", BYTES(""), 0 },
        { "not masked",
          BYTES("\x81\x01"
                "a"),
          "",
          BYTES("\x88\x1d\x03\xea"
                "the frame violates RFC 6455"),
          1002 },
        { "ping", BYTES("\x89\x82\x01\x01\x01\x01ij"), "", BYTES("\x8a\x02hk"), 0 },
        { "ping within a message",
          BYTES("\x01\x81\0\0\0\0"
                "a\x89\x80\0\0\0\0\x80\x81\0\0\0\0"
                "b"),
          "t:ab;", BYTES("\x8a\x00"), 0 },
        { "the newest of two pings",
          BYTES("\x89\x81\0\0\0\0"
                "a\x89\x81\0\0\0\0"
                "b"),
          "",
          BYTES("\x8a\x01"
                "b"),
          0 },
        { "close", BYTES("\x88\x82\0\0\0\0\x03\xe9"), "", BYTES("\x88\x02\x03\xe9"), 1001 },
        { "bare close", BYTES("\x88\x80\0\0\0\0"), "", BYTES("\x88\x00"), 1005 },
        { "no pong after a close", BYTES("\x88\x80\0\0\0\0\x89\x80\0\0\0\0"), "", BYTES("\x88\x00"),
          1005 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(answers); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf got = STRBUF_INIT;
        struct websocket_frames f;

        websocket_frames_init(&f, true, MAX);
        feed(&f, answers[i].in, answers[i].in_len, 1, &got);
        websocket_frames_add_pong(&f);
        assert_row(strcmp(got.data, answers[i].got) == 0, "%s: %s", answers[i].what, got.data);
        assert_row(f.out.len == answers[i].out_len
                       && memcmp(f.out.data, answers[i].out, f.out.len) == 0,
                   "%s", answers[i].what);
        assert_row(websocket_frames_is_over(&f) == (answers[i].code != 0), "%s", answers[i].what);
        websocket_frames_done(&f);
    }
}

/* Lengths at the borders of their three forms reach the other side. */
static void test_lengths(void **state)
{
    static const size_t lengths[] = { 0, 1, 125, 126, 127, 65535, 65536, 200000 };
    static char bytes[200000];

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < 2 * AQ_COUNT(lengths); i++) {
        size_t len = lengths[i / 2];
        struct websocket_frames from, to;
        struct websocket_message message;

        websocket_frames_init(&from, i % 2, sizeof(bytes));
        websocket_frames_init(&to, !(i % 2), sizeof(bytes));
        websocket_frames_add(&from, WEBSOCKET_BINARY, bytes, len);
        assert_true(strbuf_ok(&from.out));
        assert_int_equal(websocket_frames_read(&to, from.out.data, from.out.len, &message),
                         from.out.len);
        assert_non_null(message.bytes);
        assert_int_equal(message.len, len);
        assert_memory_equal(message.bytes, bytes, len);
        websocket_frames_done(&from);
        websocket_frames_done(&to);
    }
}

/* After our close the peer's messages are read until its own. */
static void test_closing(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf got = STRBUF_INIT;
    struct websocket_frames f;
    char reason[200];

    (void)state;
    memset(reason, 'r', sizeof(reason));
    reason[sizeof(reason) - 1] = '\0';
    websocket_frames_init(&f, true, MAX);
    websocket_frames_close(&f, 1001, reason);
    assert_int_equal(f.out.len, 2 + 125);
    websocket_frames_close(&f, 1000, NULL);
    websocket_frames_add(&f, WEBSOCKET_TEXT, "late", 4);
    assert_int_equal(f.out.len, 2 + 125);
    assert_false(websocket_frames_is_over(&f));
    feed(&f,
         BYTES("\x81\x81\0\0\0\0"
               "a\x88\x82\0\0\0\0\x03\xe8"),
         3, &got);
    assert_string_equal(got.data, "t:a;");
    assert_true(websocket_frames_is_over(&f));
    assert_int_equal(websocket_frames_get_code(&f), 1000);
    websocket_frames_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_received),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_closing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
