/* SPDX-License-Identifier: Apache-2.0 */
/* log_reader.c - reads a kernel's output from its log files, and follows it */
#include "agent/kernel/log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK 16384
#define CHUNKS_A_TURN 16 /* then others have the loop */

struct log_reader {
    uv_timer_t timer;              /* its closing frees all this */
    uv_fs_event_t watch;           /* of the directory, while following */
    int directory, older, current; /* 'older' is log.1, read first; -1 = none */
    const struct log_reader_ops *ops;
    void *data;
    bool follow, is_watching, is_waiting, has_ended;
    int open_handles;
};

static void log_reader_on_turn(uv_timer_t *timer);

static void next_turn(struct log_reader *r)
{
    r->is_waiting = false;
    (void)uv_timer_start(&r->timer, log_reader_on_turn, 0, 0);
}

static int open_current(const struct log_reader *r)
{
    return openat(r->directory, "log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static bool is_same_file(int a, int b)
{
    struct stat st_a, st_b;

    return fstat(a, &st_a) == 0 && fstat(b, &st_b) == 0 && st_a.st_ino == st_b.st_ino
           && st_a.st_dev == st_b.st_dev;
}

/* At the end of a file: the next one, if there is one. */
static bool step_file(struct log_reader *r)
{
    AQ_CLEANUP(aq_closep) int newer = -1;

    if (r->older >= 0) {
        aq_closep(&r->older);
        return true;
    }
    newer = open_current(r);
    if (newer < 0 || is_same_file(newer, r->current))
        return false;
    aq_closep(&r->current);
    r->current = AQ_TAKE_FD(newer);
    return true;
}

static void log_reader_on_turn(uv_timer_t *timer)
{
    struct log_reader *r = timer->data;
    char bytes[CHUNK];

    for (int i = 0; i < CHUNKS_A_TURN; i++) {
        /* asked before reading: what is written before the end is read */
        bool is_last = r->has_ended || !r->follow;
        ssize_t got = read(r->older >= 0 ? r->older : r->current, bytes, sizeof(bytes));

        if (got > 0) {
            if (r->ops->on_bytes(r->data, bytes, (size_t)got))
                continue;
            r->is_waiting = true;
            return;
        }
        if (step_file(r))
            continue;
        if (is_last)
            r->ops->on_end(r->data);
        return; /* a change of the directory wakes us */
    }
    next_turn(r);
}

static void log_reader_on_change(uv_fs_event_t *watch, const char *name, int events, int status)
{
    struct log_reader *r = watch->data;

    (void)name;
    (void)events;
    (void)status;
    if (!r->is_waiting)
        next_turn(r);
}

/* Where the last *lines lines of the file begin; *lines loses the line breaks
 * that were passed: 0 = found.
 */
static off_t find_tail(int fd, int64_t *lines)
{
    struct stat st;
    char bytes[CHUNK];
    off_t end;
    bool at_end = true;

    if (fstat(fd, &st) < 0)
        return 0;
    for (end = st.st_size; end > 0;) {
        size_t want = (size_t)AQ_MIN(end, (off_t)sizeof(bytes));
        ssize_t got = pread(fd, bytes, want, end - (off_t)want);

        if (got != (ssize_t)want)
            return 0;
        for (size_t i = want; i-- > 0; at_end = false) {
            if (bytes[i] != '\n' || at_end) /* the very last one ends a line, begins none */
                continue;
            if (--*lines == 0)
                return end - (off_t)want + (off_t)i + 1;
        }
        end -= (off_t)want;
    }
    return 0;
}

/* The newer file begins with a line of its own, not with the rest of one. */
static bool begins_line(const struct log_reader *r)
{
    struct stat newer, older;
    char last;

    return fstat(r->current, &newer) == 0 && newer.st_size > 0 && fstat(r->older, &older) == 0
           && pread(r->older, &last, 1, older.st_size - 1) == 1 && last == '\n';
}

/* Begin within the newer file, the older one, or at its start. */
static void seek_tail(struct log_reader *r, int64_t lines)
{
    off_t at = find_tail(r->current, &lines);

    if (lines <= 0) {
        (void)lseek(r->current, at, SEEK_SET);
        aq_closep(&r->older);
    } else if (r->older >= 0) {
        if (begins_line(r) && --lines == 0)
            aq_closep(&r->older);
        else
            (void)lseek(r->older, find_tail(r->older, &lines), SEEK_SET);
    }
}

static void free_files(struct log_reader *r)
{
    aq_closep(&r->older);
    aq_closep(&r->current);
    aq_closep(&r->directory);
    free(r);
}

static int log_reader_open_files(struct log_reader *r, const char *directory, struct aq_error *err)
{
    r->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->directory < 0)
        return aq_fail_errno(err, "open '%s'", directory);
    r->current = open_current(r);
    if (r->current < 0)
        return aq_fail_errno(err, "open '%s/log'", directory);
    r->older = openat(r->directory, "log.1", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (r->older >= 0 && is_same_file(r->older, r->current))
        aq_closep(&r->older); /* turned over between the two: what is newer comes next */
    return 0;
}

int log_reader_new(uv_loop_t *loop, const char *directory, int64_t tail_lines, bool follow,
                   const struct log_reader_ops *ops, void *data, struct log_reader **ret,
                   struct aq_error *err)
{
    struct log_reader *r = calloc(1, sizeof(*r));
    int result;

    if (!r)
        return aq_fail_oom(err);
    r->directory = r->older = r->current = -1;
    r->ops = ops;
    r->data = data;
    r->follow = follow;
    result = log_reader_open_files(r, directory, err);
    if (result < 0) {
        free_files(r);
        return result;
    }
    if (tail_lines > 0)
        seek_tail(r, tail_lines);
    (void)uv_timer_init(loop, &r->timer);
    r->timer.data = r;
    r->open_handles = 1;
    if (follow && uv_fs_event_init(loop, &r->watch) == 0) {
        r->watch.data = r;
        r->is_watching = true;
        r->open_handles = 2;
        result = uv_fs_event_start(&r->watch, log_reader_on_change, directory, 0);
        if (result < 0) {
            log_reader_free(r);
            return aq_fail(err, -result, "watch '%s': %s", directory, uv_strerror(result));
        }
    }
    next_turn(r);
    *ret = r;
    return 0;
}

void log_reader_resume(struct log_reader *reader)
{
    if (reader->is_waiting)
        next_turn(reader);
}

void log_reader_finish(struct log_reader *reader)
{
    reader->has_ended = true;
    if (!reader->is_waiting)
        next_turn(reader);
}

static void log_reader_on_closed(uv_handle_t *handle)
{
    struct log_reader *r = handle->data;

    if (--r->open_handles == 0)
        free_files(r);
}

void log_reader_free(struct log_reader *reader)
{
    if (!reader)
        return;
    uv_close((uv_handle_t *)&reader->timer, log_reader_on_closed);
    if (reader->is_watching)
        uv_close((uv_handle_t *)&reader->watch, log_reader_on_closed);
}
