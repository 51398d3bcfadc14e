/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "monitor/log_times.h"

#define MAX 64 /* records of a file */
#define HEAD 16
#define BEGIN INT64_C(1763690523000000)

struct fixture {
    char folder[64];
    int fd, log;
    struct log_times times;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    strcpy(f->folder, "/tmp/aliquot-times-XXXXXX");
    f->fd = mkdtemp(f->folder) ? open(f->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    f->log = openat(f->fd, "log", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    log_times_init(&f->times, f->fd, MAX * sizeof(struct log_time));
    return f->log < 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    log_times_done(&f->times);
    aq_closep(&f->log);
    aq_closep(&f->fd);
    (void)fs_remove_tree(AT_FDCWD, f->folder, NULL);
    free(f);
    return 0;
}

/* 'count' more records, a step apart: offset n is of BEGIN + n steps. */
static void add_steps(struct fixture *f, int from, int count)
{
    for (int i = from; i < from + count; i++)
        log_times_add(&f->times, f->log, (uint64_t)i, BEGIN + (int64_t)i * LOG_TIMES_STEP_USEC);
}

static off_t times_size(const struct fixture *f)
{
    struct stat st;

    assert_int_equal(fstatat(f->fd, LOG_TIMES_FILE, &st, 0), 0);
    return st.st_size;
}

/* Every offset has its time, or one that is earlier by less than the step. */
static void check_steps(struct fixture *f, struct log_times_reader *reader, int from, int to)
{
    for (int i = from; i < to; i++) {
        int64_t late = BEGIN + (int64_t)i * LOG_TIMES_STEP_USEC
                       - log_times_reader_at(reader, (uint64_t)i);

        assert_row(late >= 0 && late < f->times.step_usec, "%d is late by %lld", i,
                   (long long)late);
    }
}

static void put_times(struct fixture *f, const void *bytes, size_t len)
{
    assert_int_equal(fs_write_quick(f->fd, LOG_TIMES_FILE, bytes, len, 0600, NULL), 0);
}

static void test_a_record_for_a_step(void **state)
{
    static const struct {
        uint64_t offset;
        int64_t after, want; /* microseconds after the beginning */
    } rows[] = {
        { 0, 0, 0 },        { 10, 3999, 0 },      { 20, 4000, 4000 },
        { 30, 5000, 4000 }, { 40, 9000, 9000 },   { 50, -60000000, -60000000 }, /* set back */
        { 60, 100, 100 },   { 70, 50000, 50000 },
    };
    struct fixture *f = *state;
    struct log_times_reader reader;

    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        log_times_add(&f->times, f->log, rows[i].offset, BEGIN + rows[i].after);
    assert_true(log_times_reader_open(&reader, f->fd, f->log));
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(log_times_reader_at(&reader, rows[i].offset + 9) == BEGIN + rows[i].want, "%zu",
                   i);
    log_times_reader_close(&reader);
    assert_int_equal(times_size(f), HEAD + 6 * 16);
}

/* Where it is after so many calls, from 'offset' on. */
static uint64_t seek(struct log_times_reader *reader, int64_t usec, uint64_t offset, int calls)
{
    while (--calls)
        assert_false(log_times_reader_seek(reader, usec, &offset));
    assert_true(log_times_reader_seek(reader, usec, &offset));
    return offset;
}

static void test_seeks_the_first_of_a_time(void **state)
{
    struct fixture *f = *state;
    struct log_times_reader reader;

    add_steps(f, 0, 40);
    assert_true(log_times_reader_open(&reader, f->fd, f->log));
    assert_int_equal(seek(&reader, BEGIN + 9 * LOG_TIMES_STEP_USEC - 1, 3, 1), 9);
    assert_int_equal(seek(&reader, BEGIN + 9 * LOG_TIMES_STEP_USEC, 15, 1), 15);
    assert_int_equal(seek(&reader, BEGIN + 20 * LOG_TIMES_STEP_USEC, 15, 1), 20);
    check_steps(f, &reader, 20, 40);
    assert_int_equal(seek(&reader, BEGIN + 40 * LOG_TIMES_STEP_USEC, 0, 1), 39); /* none yet */
    add_steps(f, 40, 1);
    assert_int_equal(seek(&reader, BEGIN + 40 * LOG_TIMES_STEP_USEC, 0, 1), 40);
    log_times_reader_close(&reader);
}

static void test_seeks_in_pieces(void **state)
{
    struct fixture *f = *state;
    struct log_times_reader reader;

    f->times.max = 1000;
    add_steps(f, 0, 1000);
    assert_true(log_times_reader_open(&reader, f->fd, f->log));
    assert_int_equal(seek(&reader, BEGIN + 300 * LOG_TIMES_STEP_USEC, 0, 3), 300);
    assert_int_equal(seek(&reader, 0, 900, 5), 900);
    assert_int_equal(seek(&reader, INT64_MAX, 0, 1), 999);
    log_times_reader_close(&reader);
}

static void test_is_thinned(void **state)
{
    struct fixture *f = *state;
    struct log_times_reader reader, early;

    add_steps(f, 0, MAX);
    assert_true(log_times_reader_open(&early, f->fd, f->log));
    check_steps(f, &early, 0, MAX);
    for (int i = MAX; i < 5000; i++) {
        add_steps(f, i, 1);
        assert_true(f->times.count <= MAX && times_size(f) <= HEAD + MAX * 16);
        check_steps(f, &early, i, i + 1); /* one that was there before it */
    }
    assert_true(f->times.count > MAX / 4);
    assert_true(log_times_reader_open(&reader, f->fd, f->log));
    check_steps(f, &reader, 0, 5000);
    log_times_reader_close(&reader);
    log_times_reader_close(&early);
}

/* Killed after any of the records that thinning writes: readers have the times that it
 * leaves, or finer ones.
 */
static void test_thinning_is_interrupted(void **state)
{
    struct fixture *f = *state;
    char full[HEAD + MAX * 16], thin[sizeof(full)];
    struct log_times_reader reader;
    size_t len;

    add_steps(f, 0, MAX);
    assert_int_equal(pread(f->times.fd, full, sizeof(full), 0), sizeof(full));
    add_steps(f, MAX, 1);
    len = (size_t)times_size(f) - 16;
    assert_int_equal(pread(f->times.fd, thin, len, 0), len);
    for (size_t done = HEAD; done <= len; done += 16) {
        memcpy(full, thin, done);
        put_times(f, full, sizeof(full));
        assert_true(log_times_reader_open(&reader, f->fd, f->log));
        check_steps(f, &reader, 0, MAX);
        log_times_reader_close(&reader);
    }
}

static void test_is_torn(void **state)
{
    struct fixture *f = *state;
    char bytes[HEAD + 10 * 16];
    struct log_times_reader reader;

    add_steps(f, 0, 10);
    assert_int_equal(pread(f->times.fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        int64_t whole = len < HEAD ? 0 : (int64_t)(len - HEAD) / 16;

        put_times(f, bytes, len);
        assert_int_equal(log_times_reader_open(&reader, f->fd, f->log), whole > 0);
        if (!whole)
            continue;
        assert_int_equal(log_times_reader_at(&reader, 1 << 20),
                         BEGIN + (whole - 1) * LOG_TIMES_STEP_USEC);
        log_times_reader_close(&reader);
    }
}

/* Of a half that is another file: whatever they are called. */
static void test_belongs_to_its_half(void **state)
{
    struct fixture *f = *state;
    AQ_CLEANUP(aq_closep) int other = openat(f->fd, "other", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct log_times_reader reader;

    assert_false(log_times_reader_open(&reader, f->fd, f->log));
    add_steps(f, 0, 2);
    assert_false(log_times_reader_open(&reader, f->fd, other));
    log_times_turn_over(&f->times);
    log_times_done(&f->times);
    assert_true(log_times_reader_open(&reader, f->fd, f->log));
    log_times_reader_close(&reader);
    log_times_init(&f->times, f->fd, 1024);
    log_times_add(&f->times, other, 0, BEGIN + 1);
    assert_true(log_times_reader_open(&reader, f->fd, other));
    assert_int_equal(log_times_reader_at(&reader, 0), BEGIN + 1);
    log_times_reader_close(&reader);
    assert_true(log_times_reader_open(&reader, f->fd, f->log));
    assert_int_equal(log_times_reader_at(&reader, 0), BEGIN);
    log_times_reader_close(&reader);
}

/* Whatever the file holds, the reader ends, with a time that a clock can show. */
static void test_random_bytes(void **state)
{
    struct fixture *f = *state;
    unsigned char bytes[HEAD + 300 * 16 + 7];
    struct log_times_reader reader;
    uint64_t offset = 0;

    add_steps(f, 0, 1);
    assert_int_equal(pread(f->times.fd, bytes, HEAD, 0), HEAD);
    srandom(1);
    for (int round = 0; round < 2000; round++) {
        for (size_t i = HEAD; i < sizeof(bytes); i++) /* zeros, so that some are in range */
            bytes[i] = i % 8 > (size_t)(random() % 9) ? 0 : (unsigned char)random();
        put_times(f, bytes, HEAD + (size_t)random() % (sizeof(bytes) - HEAD));
        if (!log_times_reader_open(&reader, f->fd, f->log))
            continue;
        for (uint64_t at = 0; at < 1 << 20; at += 1 << 17) {
            int64_t usec = log_times_reader_at(&reader, at);

            assert_true(usec >= 0 && usec < INT64_C(253402300800000000));
        }
        while (!log_times_reader_seek(&reader, INT64_MAX, &offset))
            continue;
        (void)log_times_reader_at(&reader, UINT64_MAX);
        log_times_reader_close(&reader);
    }
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_record_for_a_step),     TEST(test_seeks_the_first_of_a_time),
        TEST(test_seeks_in_pieces),         TEST(test_is_thinned),
        TEST(test_thinning_is_interrupted), TEST(test_is_torn),
        TEST(test_belongs_to_its_half),     TEST(test_random_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
