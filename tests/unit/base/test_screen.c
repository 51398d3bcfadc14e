/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <locale.h>

#include "base/keys.h"
#include "base/screen.h"
#include "base/utf8.h"

/* ---- keys ---- */

#define KEYS_MAX 8

/* All keys of the bytes; then no more comes. */
static size_t read_keys(const char *bytes, uint32_t keys[KEYS_MAX])
{
    struct key_reader reader = KEY_READER_INIT;
    size_t count = 0;
    uint32_t key;

    for (; *bytes; bytes++)
        if ((key = key_reader_feed(&reader, *bytes)) && count < KEYS_MAX)
            keys[count++] = key;
    if (key_reader_is_amid(&reader) && (key = key_reader_end(&reader)) && count < KEYS_MAX)
        keys[count++] = key;
    assert_false(key_reader_is_amid(&reader));
    return count;
}

static const struct {
    const char *name, *bytes;
    uint32_t keys[KEYS_MAX];
} key_rows[] = {
    { "letters", "qQ", { 'q', 'Q' } },
    { "umlaut and ideograph", "\xc3\xbc\xe6\x97\xa5", { 0xfc, 0x65e5 } },
    { "Esc alone", "\033", { KEY_ESCAPE } },
    { "Esc twice", "\033\033", { KEY_ESCAPE, KEY_ESCAPE } },
    { "arrows", "\033[A\033[B\033[C\033[D", { KEY_UP, KEY_DOWN, KEY_RIGHT, KEY_LEFT } },
    { "arrows of applications", "\033OA\033OB", { KEY_UP, KEY_DOWN } },
    { "an arrow after Esc", "\033\033[A", { KEY_ESCAPE, KEY_UP } },
    { "an arrow with Control", "\033[1;5A", { KEY_UP } },
    { "a modifier is no number", "\033[3;5~", { KEY_OTHER } },
    { "pages", "\033[5~\033[6~", { KEY_PAGE_UP, KEY_PAGE_DOWN } },
    { "ends", "\033[H\033[F\033[1~\033[4~", { KEY_HOME, KEY_END, KEY_HOME, KEY_END } },
    { "ends of rxvt", "\033[7~\033[8~", { KEY_HOME, KEY_END } },
    { "function keys", "\033[15~\033OP\033[[Aq", { KEY_OTHER, KEY_OTHER, KEY_OTHER, 'q' } },
    { "with Alt", "\033aq", { KEY_OTHER, 'q' } },
    { "Enter", "\r\n\033OM", { KEY_ENTER, KEY_ENTER, KEY_ENTER } },
    { "Backspace", "\b\x7f", { KEY_BACKSPACE, KEY_BACKSPACE } },
    { "a number without end", "\033[99999999999999999999999~q", { KEY_OTHER, 'q' } },
    { "many parameters", "\033[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16Bq", { KEY_DOWN, 'q' } },
    { "a sequence within another", "\033[1\033[A", { KEY_UP } },
    { "a sequence that is broken off", "\033[1\nq", { 'q' } },
    { "half a sequence", "q\033[1", { 'q' } },
    { "bytes that are no UTF-8", "\x80\xff\xfeq", { 'q' } },
    { "half a character", "\xe6\x97q\xe6", { 'q' } },
    { "a surrogate", "\xed\xa0\x80q", { 'q' } },
};

static void test_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(key_rows); i++) {
        uint32_t keys[KEYS_MAX] = { 0 };

        (void)read_keys(key_rows[i].bytes, keys);
        for (size_t k = 0; k < KEYS_MAX; k++)
            assert_row(keys[k] == key_rows[i].keys[k], "%s: key %zu is %x", key_rows[i].name, k,
                       keys[k]);
    }
}

static void test_an_escape_waits_for_the_rest(void **state)
{
    struct key_reader reader = KEY_READER_INIT;

    (void)state;
    assert_int_equal(key_reader_feed(&reader, '\033'), KEY_NONE);
    assert_true(key_reader_is_amid(&reader));
    assert_int_equal(key_reader_feed(&reader, '['), KEY_NONE);
    assert_int_equal(key_reader_feed(&reader, 'A'), KEY_UP);
    assert_false(key_reader_is_amid(&reader));
}

/* ---- frames ---- */

static const struct {
    const char *name;
    int rows, columns;
    const char *text, *frame;
} frame_rows[] = {
    { "nothing", 2, 10, "", "\033[H\033[J" },
    { "a line", 2, 10, "one\n", "\033[Hone\033[K\r\n\033[J" },
    { "as many lines as there are", 2, 10, "one\ntwo\n", "\033[Hone\033[K\r\ntwo\033[K" },
    { "more lines than there are", 2, 10, "one\ntwo\nthree\n", "\033[Hone\033[K\r\ntwo\033[K" },
    { "an empty line", 2, 10, "\ntwo", "\033[H\033[K\r\ntwo\033[K" },
    { "as wide as it is", 1, 5, "12345", "\033[H12345" },
    { "too wide", 1, 5, "123456789", "\033[H1234\xe2\x80\xa6" },
    { "colours take no room", 1, 3, "\033[31mabc\033[0m", "\033[H\033[31mabc\033[0m" },
    { "colours end after the last column", 1, 2, "\033[31mabcd\033[0mef",
      "\033[H\033[31ma\xe2\x80\xa6\033[0m" },
    { "wide characters", 1, 5, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e",
      "\033[H\xe6\x97\xa5\xe6\x9c\xac\xe2\x80\xa6" },
    { "half a wide character", 1, 4, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e",
      "\033[H\xe6\x97\xa5\xe2\x80\xa6\033[K" },
    { "marks that take no room", 1, 2, "e\xcc\x81x", "\033[He\xcc\x81x" },
};

static void test_frames(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(frame_rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
        const struct screen screen = { .rows = frame_rows[i].rows,
                                       .columns = frame_rows[i].columns };

        strbuf_adds(&text, frame_rows[i].text);
        screen_write_frame(&screen, &text, &out);
        assert_row(strcmp(out.data, frame_rows[i].frame) == 0, "%s", frame_rows[i].name);
    }
}

static void test_width(void **state)
{
    (void)state;
    assert_int_equal(utf8_width("a\xe6\x97\xa5", 4), 3);
    assert_int_equal(utf8_width("\xff\xe6", 2), 2);
    assert_int_equal(utf8_fit("a\xe6\x97\xa5z", 5, 2), 1);
    assert_int_equal(utf8_fit("a\xe6\x97\xa5z", 5, 3), 4);
    assert_int_equal(utf8_fit("abc", 3, 0), 0);
}

static void test_text_of_others_steers_nothing(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    utf8_write_printable("a\x1b[2J\tb\n\x7f\xc2\x9b\xff\xc3\xa9\0z", 16, &out);
    assert_string_equal(out.data, "a?[2J\tb\n???\xc3\xa9?z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_an_escape_waits_for_the_rest),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_width),
        cmocka_unit_test(test_text_of_others_steers_nothing),
    };

    (void)setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
