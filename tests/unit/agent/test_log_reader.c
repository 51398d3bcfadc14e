/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/kernel/log_reader.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "monitor/log_ring.h"

struct fixture {
    uv_loop_t loop;
    struct log_turns turns;
    char folder[64];
    int fd;
    struct log_reader *reader;
    struct strbuf seen;
    int ended;
    bool pause; /* after each piece */
};

static void on_bytes(void *data, const char *bytes, size_t len)
{
    struct fixture *f = data;

    strbuf_add(&f->seen, bytes, len);
    if (f->pause)
        log_reader_pump.pause(f->reader, true);
}

static void on_end(void *data)
{
    struct fixture *f = data;

    f->ended++;
}

static const struct log_reader_ops ops = { on_bytes, on_end };

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    (void)uv_loop_init(&f->loop);
    log_turns_init(&f->turns, &f->loop);
    strbuf_init(&f->seen);
    strcpy(f->folder, "/tmp/aliquot-log-XXXXXX");
    *state = f;
    f->fd = mkdtemp(f->folder) ? open(f->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return f->fd < 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    log_reader_free(f->reader);
    log_turns_done(&f->turns);
    while (uv_run(&f->loop, UV_RUN_DEFAULT) != 0)
        ;
    assert_int_equal(uv_loop_close(&f->loop), 0);
    aq_closep(&f->fd);
    (void)fs_remove_tree(AT_FDCWD, f->folder, NULL);
    strbuf_done(&f->seen);
    free(f);
    return 0;
}

static void open_reader(struct fixture *f, const struct log_reader_options *options)
{
    assert_int_equal(log_reader_new(&f->turns, f->folder, options, &ops, f, &f->reader, NULL), 0);
}

static void put(struct fixture *f, const char *name, const char *text)
{
    assert_int_equal(fs_write_atomic(f->fd, name, text, strlen(text), 0600, NULL), 0);
}

static void test_tails(void **state)
{
    static const struct {
        const char *older, *newer; /* NULL = no such file */
        int64_t lines;
        const char *want;
    } rows[] = {
        { NULL, "a\nb\nc\n", 0, "a\nb\nc\n" },
        { NULL, "a\nb\nc\n", 1, "c\n" },
        { NULL, "a\nb\nc", 1, "c" },
        { NULL, "a\nb\nc\n", 2, "b\nc\n" },
        { NULL, "a\nb\nc\n", 9, "a\nb\nc\n" },
        { NULL, "", 3, "" },
        { "1\n2\n", "a\nb\n", 0, "1\n2\na\nb\n" },
        { "1\n2\n", "a\nb\n", 2, "a\nb\n" },
        { "1\n2\n", "a\nb\n", 3, "2\na\nb\n" },
        { "1\n2\n", "a\nb\n", 9, "1\n2\na\nb\n" },
        { "1\n2", "a\nb\n", 2, "2a\nb\n" },
        { "1\n2", "a\nb\n", 3, "1\n2a\nb\n" },
        { "1\n2\n", "", 1, "2\n" },
        { "1\n2\n", NULL, 0, "1\n2\n" },
        { "1\n2\n", NULL, 1, "2\n" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        (void)unlinkat(f->fd, "log.1", 0);
        (void)unlinkat(f->fd, "log", 0);
        if (rows[i].older)
            put(f, "log.1", rows[i].older);
        if (rows[i].newer)
            put(f, "log", rows[i].newer);
        strbuf_clear(&f->seen);
        f->ended = 0;
        open_reader(f, &(struct log_reader_options){ .tail_lines = rows[i].lines });
        while (!f->ended)
            (void)uv_run(&f->loop, UV_RUN_ONCE);
        assert_row(strcmp(f->seen.data, rows[i].want) == 0, "%zu: '%s'", i, f->seen.data);
        log_reader_free(f->reader);
        f->reader = NULL;
    }
}

/* What was there is not shown, and the rest of its last line gets no time. */
static void test_only_new(void **state)
{
    static const struct {
        const char *there;
        bool timestamps;
        const char *want;
    } rows[] = { { "a\nb\n", false, "c\nd\n" },
                 { "a\nb", false, "c\nd\n" },
                 { "", false, "c\nd\n" },
                 { "a\nb", true, "c\n- d\n" } };
    struct fixture *f = *state;

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_closep) int fd = -1;

        put(f, "log.1", "older\n");
        put(f, "log", rows[i].there);
        fd = openat(f->fd, "log", O_WRONLY | O_APPEND | O_CLOEXEC);
        strbuf_clear(&f->seen);
        f->ended = 0;
        open_reader(f, &(struct log_reader_options){
                           .only_new = true, .follow = true, .timestamps = rows[i].timestamps });
        assert_int_equal(write(fd, "c\nd\n", 4), 4);
        log_reader_finish(f->reader);
        while (!f->ended)
            (void)uv_run(&f->loop, UV_RUN_ONCE);
        assert_row(strcmp(f->seen.data, rows[i].want) == 0, "%zu: '%s'", i, f->seen.data);
        log_reader_free(f->reader);
        f->reader = NULL;
    }
}

/* Wherever the ring is cut: the older half goes as a whole, and what stays begins with a
 * character.
 */
static void test_halves_have_whole_characters(void **state)
{
    static const char text[] = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"; /* of 2, 3 and 4 bytes */
    struct fixture *f = *state;
    struct log_ring ring;

    for (size_t piece = 1; piece < sizeof(text) - 1; piece++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf older = STRBUF_INIT, newer = STRBUF_INIT;

        (void)unlinkat(f->fd, "log.1", 0);
        (void)unlinkat(f->fd, "log", 0);
        assert_int_equal(log_ring_open(&ring, f->fd, 8192, NULL), 0);
        log_ring_write(&ring, "xxxx", piece % 4);
        for (size_t at = 0; at < 20000; at += piece) { /* read from a pipe as it came */
            char bytes[sizeof(text)];

            for (size_t i = 0; i < piece; i++)
                bytes[i] = text[(at + i) % (sizeof(text) - 1)];
            log_ring_write(&ring, bytes, piece);
        }
        log_ring_close(&ring);
        assert_int_equal(fs_read(f->fd, "log.1", 1 << 20, &older, NULL), 0);
        assert_int_equal(fs_read(f->fd, "log", 1 << 20, &newer, NULL), 0);
        assert_row(utf8_is_valid(older.data, older.len), "pieces of %zu", piece);
        assert_int_equal(utf8_rest(newer.data, newer.len), 0);
        assert_true(older.len >= 4096 && older.len < 4096 + 4);
    }
    /* what is no text is cut at the size, or nearly */
    assert_int_equal(log_ring_open(&ring, f->fd, 8192, NULL), 0);
    for (int i = 0; i < 20000; i++)
        log_ring_write(&ring, "\x80\x80\x80\x80", 4);
    assert_true(ring.len < 4096 + 4);
    log_ring_close(&ring);
}

/* A reader that keeps up sees every byte of a ring that turns over many times. */
static void test_follows_the_ring(void **state)
{
    struct fixture *f = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf all = STRBUF_INIT;
    struct log_ring ring;
    char line[80];

    assert_int_equal(log_ring_open(&ring, f->fd, 8192, NULL), 0);
    open_reader(f, &(struct log_reader_options){ .follow = true });
    for (int i = 0; i < 2000; i++) {
        int len = snprintf(line, sizeof(line), "line %d of a program that writes\n", i);

        log_ring_write(&ring, line, (size_t)len);
        strbuf_add(&all, line, (size_t)len);
        while (f->seen.len < all.len)
            (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_string_equal(f->seen.data, all.data);
    assert_int_equal(f->ended, 0);
    log_ring_write(&ring, "last", 4);
    log_reader_finish(f->reader);
    while (!f->ended)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    assert_string_equal(f->seen.data + all.len, "last");
    log_ring_close(&ring);
}

static void test_waits_for_its_reader(void **state)
{
    struct fixture *f = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (int i = 0; i < 10000; i++)
        strbuf_addf(&text, "line %d\n", i);
    put(f, "log", text.data);
    f->pause = true;
    open_reader(f, &(struct log_reader_options){ .follow = false });
    while (!f->ended) {
        size_t before = f->seen.len;

        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        assert_true(f->seen.len - before <= 16384);
        log_reader_pump.pause(f->reader, false);
    }
    assert_string_equal(f->seen.data, text.data);
}

static void on_end_freed(void *data)
{
    struct fixture *f = data;

    f->ended++;
    log_reader_free(AQ_TAKE(f->reader));
}

/* As streams are closed. */
static void test_freed_at_its_end(void **state)
{
    static const struct log_reader_ops freeing = { on_bytes, on_end_freed };
    static const struct log_reader_options options[] = { { .follow = false }, { .follow = true } };
    struct fixture *f = *state;

    put(f, "log", "text");
    for (size_t i = 0; i < AQ_COUNT(options); i++) {
        assert_int_equal(
            log_reader_new(&f->turns, f->folder, &options[i], &freeing, f, &f->reader, NULL), 0);
        log_reader_finish(f->reader);
        while (f->reader)
            (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_int_equal(f->ended, 2);
    assert_string_equal(f->seen.data, "texttext");
}

/* Much is passed over before the first byte, a piece in each turn of the loop. */
static void test_seeks_in_turns(void **state)
{
    static const struct log_reader_options rows[] = {
        { .tail_lines = 2 },
        { .tail_lines = 2, .timestamps = true },
    };
    struct fixture *f = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;

    while (line.len < 4 << 20)
        strbuf_adds(&line, "no end ");
    strbuf_adds(&line, "\nx\n");
    put(f, "log.1", "first\n");
    put(f, "log", line.data);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int turns = 0;

        strbuf_clear(&f->seen);
        open_reader(f, &rows[i]);
        for (; !f->seen.len; turns++)
            (void)uv_run(&f->loop, UV_RUN_ONCE);
        assert_in_range(turns, 16, 100);
        while (!f->ended)
            (void)uv_run(&f->loop, UV_RUN_ONCE);
        f->ended = 0;
        assert_int_equal(f->seen.len, line.len + (rows[i].timestamps ? 2 * strlen("- ") : 0));
        log_reader_free(AQ_TAKE(f->reader));
    }
}

/* However much is written meanwhile, a reader that has something to do is not told. */
static void test_is_told_of_changes_once(void **state)
{
    struct fixture *f = *state;
    struct log_ring ring;

    assert_int_equal(log_ring_open(&ring, f->fd, 8192, NULL), 0);
    f->pause = true;
    open_reader(f, &(struct log_reader_options){ .follow = true });
    for (int i = 0; i < 3; i++) {
        do
            (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        while (!uv_loop_alive(&f->loop)); /* it is watched */
        log_ring_write(&ring, "one\n", 4);
        while (uv_loop_alive(&f->loop))
            (void)uv_run(&f->loop, UV_RUN_ONCE); /* until it waits for its client */
        log_ring_write(&ring, "two\n", 4);
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        assert_false(uv_loop_alive(&f->loop));
        log_reader_pump.pause(f->reader, false);
        while (uv_loop_alive(&f->loop))
            (void)uv_run(&f->loop, UV_RUN_ONCE);
        log_reader_pump.pause(f->reader, false);
    }
    assert_string_equal(f->seen.data, "one\ntwo\none\ntwo\none\ntwo\n");
    log_ring_close(&ring);
}

/* ---- times ---- */

#define AT INT64_C(1763690523000000) /* 2025-11-21T02:02:03Z */

static int64_t now_usec;

static int64_t get_now(void *data)
{
    (void)data;
    return now_usec;
}

/* What a program prints at which second; a ring of two halves of 4096 bytes. */
static void print_at(struct log_ring *ring, int second, const char *text)
{
    now_usec = AT + second * USEC_PER_SEC;
    log_ring_write(ring, text, strlen(text));
}

static void read_all(struct fixture *f, const struct log_reader_options *options)
{
    strbuf_clear(&f->seen);
    f->ended = 0;
    open_reader(f, options);
    while (!f->ended)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    log_reader_free(AQ_TAKE(f->reader));
}

static void test_times_of_lines(void **state)
{
#define T(second) "2025-11-21T02:02:0" second ".000000Z "
    static const struct {
        int since; /* seconds; -1 = all */
        int64_t tail;
        bool timestamps;
        const char *want;
    } rows[] = {
        { -1, 0, true, T("3") "a\n" T("3") "b\n" T("4") "c d\n" T("6") "\n" T("7") "e" },
        { 0, 0, false, "a\nb\nc d\n\ne" },
        { 1, 0, false, "c d\n\ne" },
        { 2, 0, false, "\ne" }, /* "d" came then, but its line had begun */
        { 3, 0, true, T("6") "\n" T("7") "e" },
        { 9, 0, true, "" },
        { -1, 2, true, T("6") "\n" T("7") "e" },
        { 1, 2, false, "\ne" },
        { 3, 4, false, "\ne" },
    };
    const struct clock clock = { get_now, get_now, NULL };
    struct fixture *f = *state;
    struct log_ring ring;

    clock_set(&clock);
    assert_int_equal(log_ring_open(&ring, f->fd, 8192, NULL), 0);
    print_at(&ring, 0, "a\nb\n");
    print_at(&ring, 1, "c ");
    print_at(&ring, 2, "d\n");
    print_at(&ring, 3, "\n");
    print_at(&ring, 4, "e");
    log_ring_close(&ring);
    /* the monitor was killed between turning over the log and its times */
    assert_int_equal(renameat(f->fd, "log", f->fd, "log.1"), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        read_all(f, &(struct log_reader_options){
                        .since_usec = rows[i].since < 0 ? 0 : AT + rows[i].since * USEC_PER_SEC,
                        .tail_lines = rows[i].tail,
                        .timestamps = rows[i].timestamps });
        assert_row(strcmp(f->seen.data, rows[i].want) == 0, "%zu: '%s'", i, f->seen.data);
    }
    clock_set(NULL);
}

/* Lines of 100 bytes, one a second, in a ring that turns over: all that are kept have
 * their times, whether they are read then or followed, from any second on.
 */
static void test_times_in_a_ring(void **state)
{
    const struct clock clock = { get_now, get_now, NULL };
    struct fixture *f = *state;
    struct log_ring ring;
    AQ_CLEANUP(strbuf_donep) struct strbuf all = STRBUF_INIT;
    char line[101], time[CLOCK_ISO_MAX];

    clock_set(&clock);
    assert_int_equal(log_ring_open(&ring, f->fd, 8192, NULL), 0);
    open_reader(f, &(struct log_reader_options){ .follow = true, .timestamps = true });
    for (int i = 0; i < 300; i++) {
        (void)snprintf(line, sizeof(line), "%-99d\n", i);
        print_at(&ring, i, line);
        strbuf_addf(&all, "%s %s", clock_format_utc(AT + i * USEC_PER_SEC, time), line);
        while (f->seen.len < all.len)
            (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_string_equal(f->seen.data, all.data);
    log_reader_free(AQ_TAKE(f->reader));
    for (int since = 240; since <= 300; since++) { /* the older half has 245 to 285 */
        read_all(f, &(struct log_reader_options){ .since_usec = AT + since * USEC_PER_SEC });
        for (int i = AQ_MAX(since, 250), at = 0; i < 300; i++)
            assert_row(
                strstr(f->seen.data + at, (snprintf(line, sizeof(line), "%-99d\n", i), line)),
                "%d since %d", i, since);
        if (since > 250)
            assert_int_equal(f->seen.len, (300 - since) * 100);
    }
    log_ring_close(&ring);
    clock_set(NULL);
}

/* A byte becomes thirty: so many are passed on at a time as without times. */
static void test_short_lines_with_times(void **state)
{
    const struct clock clock = { get_now, get_now, NULL };
    struct fixture *f = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf want = STRBUF_INIT;
    struct log_ring ring;
    char time[CLOCK_ISO_MAX];

    clock_set(&clock);
    assert_int_equal(log_ring_open(&ring, f->fd, 1 << 20, NULL), 0);
    for (int i = 0; i < 20000; i++) {
        print_at(&ring, i / 1000, "\n");
        strbuf_addf(&want, "%s \n", clock_format_utc(AT + i / 1000 * USEC_PER_SEC, time));
    }
    log_ring_close(&ring);
    f->pause = true;
    open_reader(f, &(struct log_reader_options){ .timestamps = true });
    while (!f->ended) {
        size_t before = f->seen.len;

        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        assert_true(f->seen.len - before < 16384 + 64);
        log_reader_pump.pause(f->reader, false);
    }
    assert_string_equal(f->seen.data, want.data);
    clock_set(NULL);
}

static void test_lacks_times(void **state)
{
    struct fixture *f = *state;
    struct log_ring ring;

    assert_false(log_reader_lacks_times(f->folder)); /* nothing is there */
    put(f, "log", "");
    assert_false(log_reader_lacks_times(f->folder));
    put(f, "log", "of an earlier version\n");
    assert_true(log_reader_lacks_times(f->folder));
    (void)unlinkat(f->fd, "log", 0);
    assert_int_equal(log_ring_open(&ring, f->fd, 8192, NULL), 0);
    log_ring_write(&ring, "x\n", 2);
    log_ring_close(&ring);
    assert_false(log_reader_lacks_times(f->folder));
    put(f, "log.1", "without\n");
    assert_true(log_reader_lacks_times(f->folder));
}

static void test_without_a_log(void **state)
{
    struct fixture *f = *state;

    static const struct log_reader_options all = { .follow = false };

    assert_int_equal(log_reader_new(&f->turns, f->folder, &all, &ops, f, &f->reader, NULL),
                     -ENOENT);
    assert_null(f->reader);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_tails),
        TEST(test_only_new),
        TEST(test_halves_have_whole_characters),
        TEST(test_follows_the_ring),
        TEST(test_waits_for_its_reader),
        TEST(test_is_told_of_changes_once),
        TEST(test_freed_at_its_end),
        TEST(test_seeks_in_turns),
        TEST(test_short_lines_with_times),
        TEST(test_times_of_lines),
        TEST(test_times_in_a_ring),
        TEST(test_lacks_times),
        TEST(test_without_a_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
