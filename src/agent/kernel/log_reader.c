/* SPDX-License-Identifier: Apache-2.0 */
/* log_reader.c - reads a kernel's output from its log files, and follows it */
#include "agent/kernel/log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/kernel/log_lines.h"
#include "base/clock.h"

#define CHUNK 16384
#define CHUNK_OF_LINES 2048 /* each byte may be a line, which gets its time */
#define CHUNKS_A_TURN 16    /* then others have the loop */

struct log_half {
    int fd; /* -1 = none */
    struct log_times_reader times;
};

struct log_reader {
    uv_timer_t timer;    /* its closing frees all this */
    uv_fs_event_t watch; /* of the directory, while following */
    int directory;
    struct log_half older, current; /* 'older' is log.1, read first */
    off_t at;                       /* in the half that is being read */
    struct log_lines lines;
    struct strbuf out; /* what 'lines' has made of what was read */
    const struct log_reader_ops *ops;
    void *data;
    bool follow, is_watching, is_waiting, has_ended;
    int open_handles;
};

static void log_reader_on_turn(uv_timer_t *timer);

static void log_reader_next_turn(struct log_reader *r)
{
    r->is_waiting = false;
    (void)uv_timer_start(&r->timer, log_reader_on_turn, 0, 0);
}

static int log_reader_open_half(int directory, const char *name)
{
    return openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static void log_reader_close_half(struct log_half *half)
{
    aq_closep(&half->fd);
    log_times_reader_close(&half->times);
}

static bool log_reader_has_more(int fd, off_t at)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_size > at;
}

static bool log_reader_is_same_file(int a, int b)
{
    struct stat st_a, st_b;

    return fstat(a, &st_a) == 0 && fstat(b, &st_b) == 0 && st_a.st_ino == st_b.st_ino
           && st_a.st_dev == st_b.st_dev;
}

static bool log_reader_is_by_times(const struct log_reader *r)
{
    return r->lines.since_usec || r->lines.timestamps;
}

/* Pass over what was written before the first record of the wanted time or later. What
 * follows there in the same line is of one that began before.
 */
static void log_reader_skip_earlier(struct log_reader *r, struct log_half *half)
{
    uint64_t offset;
    char last;

    if (!r->lines.since_usec || half->times.fd < 0 || (r->lines.is_inside && r->lines.is_wanted))
        return;
    (void)log_times_reader_find(&half->times, r->lines.since_usec, &offset);
    if (offset <= (uint64_t)r->at || pread(half->fd, &last, 1, (off_t)(offset - 1)) != 1)
        return;
    r->at = (off_t)offset;
    r->lines.is_inside = last != '\n';
    r->lines.is_wanted = false;
}

/* At the end of a file: the next one, if there is one. */
static bool log_reader_step_file(struct log_reader *r)
{
    AQ_CLEANUP(aq_closep) int newer = -1;

    if (r->older.fd >= 0) {
        log_reader_close_half(&r->older);
        r->at = 0;
        log_reader_skip_earlier(r, &r->current);
        return true;
    }
    newer = log_reader_open_half(r->directory, "log");
    if (newer < 0 || log_reader_is_same_file(newer, r->current.fd))
        return false;
    if (log_reader_has_more(r->current.fd, r->at))
        return true; /* written before it was turned over */
    log_reader_close_half(&r->current);
    r->current.fd = AQ_TAKE_FD(newer);
    r->at = 0;
    return true;
}

/* Pass on what was read, or the lines of it that are wanted; false: the client has to catch up. */
static bool log_reader_pass_on(struct log_reader *r, struct log_half *half, const char *bytes,
                               size_t len)
{
    off_t at = r->at;
    bool goes_on;

    r->at += (off_t)len;
    if (!log_reader_is_by_times(r))
        return r->ops->on_bytes(r->data, bytes, len);
    if (half->times.fd < 0) /* the half was empty until now */
        (void)log_times_reader_open(&half->times, r->directory, half->fd);
    log_lines_take(&r->lines, bytes, len, (uint64_t)at, &half->times, &r->out);
    goes_on = r->out.len == 0 || r->ops->on_bytes(r->data, r->out.data, r->out.len);
    strbuf_clear(&r->out);
    return goes_on;
}

static void log_reader_on_turn(uv_timer_t *timer)
{
    struct log_reader *r = timer->data;
    char bytes[CHUNK];
    size_t want = log_reader_is_by_times(r) ? CHUNK_OF_LINES : CHUNK;

    for (int i = 0; i < CHUNKS_A_TURN; i++) {
        /* asked before reading: what is written before the end is read */
        bool is_last = r->has_ended || !r->follow;
        struct log_half *half = r->older.fd >= 0 ? &r->older : &r->current;
        ssize_t got = pread(half->fd, bytes, want, r->at);

        if (got > 0) {
            if (log_reader_pass_on(r, half, bytes, (size_t)got))
                continue;
            r->is_waiting = true;
            return;
        }
        if (log_reader_step_file(r))
            continue;
        if (is_last)
            r->ops->on_end(r->data);
        return; /* a change of the directory wakes us */
    }
    log_reader_next_turn(r);
}

static void log_reader_on_change(uv_fs_event_t *watch, const char *name, int events, int status)
{
    struct log_reader *r = watch->data;

    (void)name;
    (void)events;
    (void)status;
    if (!r->is_waiting)
        log_reader_next_turn(r);
}

/* Where the last *lines lines of the file begin; *lines loses the line breaks
 * that were passed: 0 = found.
 */
static off_t log_reader_find_tail(int fd, int64_t *lines)
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
static bool log_reader_begins_line(const struct log_reader *r)
{
    struct stat newer, older;
    char last;

    return fstat(r->current.fd, &newer) == 0 && newer.st_size > 0 && fstat(r->older.fd, &older) == 0
           && pread(r->older.fd, &last, 1, older.st_size - 1) == 1 && last == '\n';
}

/* Begin within the newer file, the older one, or at its start. */
static void log_reader_seek_tail(struct log_reader *r, int64_t lines)
{
    off_t at = log_reader_find_tail(r->current.fd, &lines);

    if (lines <= 0) {
        r->at = at;
        log_reader_close_half(&r->older);
    } else if (r->older.fd >= 0) {
        if (log_reader_begins_line(r) && --lines == 0)
            log_reader_close_half(&r->older);
        else
            r->at = log_reader_find_tail(r->older.fd, &lines);
    }
}

/* At the end of what is there, which may be within a line. */
static void log_reader_seek_end(struct log_reader *r)
{
    struct stat st;
    char last;

    log_reader_close_half(&r->older);
    r->at = fstat(r->current.fd, &st) == 0 ? st.st_size : 0;
    r->lines.is_inside = r->at > 0 && pread(r->current.fd, &last, 1, r->at - 1) == 1
                         && last != '\n';
    r->lines.is_wanted = true;
}

static void log_reader_free_files(struct log_reader *r)
{
    log_reader_close_half(&r->older);
    log_reader_close_half(&r->current);
    aq_closep(&r->directory);
    strbuf_done(&r->out);
    free(r);
}

static int log_reader_open_files(struct log_reader *r, const char *directory, struct aq_error *err)
{
    r->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->directory < 0)
        return aq_fail_errno(err, "open '%s'", directory);
    r->current.fd = log_reader_open_half(r->directory, "log");
    if (r->current.fd < 0) /* the monitor is turning it over, or was killed at that */
        r->current.fd = log_reader_open_half(r->directory, "log.1");
    if (r->current.fd < 0)
        return aq_fail_errno(err, "open '%s/log'", directory);
    r->older.fd = log_reader_open_half(r->directory, "log.1");
    if (r->older.fd >= 0 && log_reader_is_same_file(r->older.fd, r->current.fd))
        aq_closep(&r->older.fd); /* turned over between the two: what is newer comes next */
    return 0;
}

/* Before any byte is read: to what is wanted. */
static int log_reader_begin(struct log_reader *r, const struct log_reader_options *options,
                            struct aq_error *err)
{
    r->lines.since_usec = options->since_usec;
    r->lines.timestamps = options->timestamps;
    if (log_reader_is_by_times(r)) {
        if (!strbuf_reserve(&r->out, (size_t)CHUNK_OF_LINES * CLOCK_ISO_MAX))
            return aq_fail_oom(err);
        (void)log_times_reader_open(&r->current.times, r->directory, r->current.fd);
        if (r->older.fd >= 0)
            (void)log_times_reader_open(&r->older.times, r->directory, r->older.fd);
    }
    if (options->only_new)
        log_reader_seek_end(r);
    else if (options->tail_lines > 0)
        log_reader_seek_tail(r, options->tail_lines);
    log_reader_skip_earlier(r, r->older.fd >= 0 ? &r->older : &r->current);
    return 0;
}

int log_reader_new(uv_loop_t *loop, const char *directory, const struct log_reader_options *options,
                   const struct log_reader_ops *ops, void *data, struct log_reader **ret,
                   struct aq_error *err)
{
    struct log_reader *r = calloc(1, sizeof(*r));
    int result;

    if (!r)
        return aq_fail_oom(err);
    r->directory = r->older.fd = r->current.fd = -1;
    r->older.times.fd = r->current.times.fd = -1;
    strbuf_init(&r->out);
    r->ops = ops;
    r->data = data;
    r->follow = options->follow;
    result = log_reader_open_files(r, directory, err);
    if (result == 0)
        result = log_reader_begin(r, options, err);
    if (result < 0) {
        log_reader_free_files(r);
        return result;
    }
    (void)uv_timer_init(loop, &r->timer);
    r->timer.data = r;
    r->open_handles = 1;
    if (r->follow && uv_fs_event_init(loop, &r->watch) == 0) {
        r->watch.data = r;
        r->is_watching = true;
        r->open_handles = 2;
        result = uv_fs_event_start(&r->watch, log_reader_on_change, directory, 0);
        if (result < 0) {
            log_reader_free(r);
            return aq_fail(err, -result, "watch '%s': %s", directory, uv_strerror(result));
        }
    }
    log_reader_next_turn(r);
    *ret = r;
    return 0;
}

void log_reader_resume(struct log_reader *reader)
{
    if (reader->is_waiting)
        log_reader_next_turn(reader);
}

void log_reader_finish(struct log_reader *reader)
{
    reader->has_ended = true;
    if (!reader->is_waiting)
        log_reader_next_turn(reader);
}

static void log_reader_on_closed(uv_handle_t *handle)
{
    struct log_reader *r = handle->data;

    if (--r->open_handles == 0)
        log_reader_free_files(r);
}

void log_reader_free(struct log_reader *reader)
{
    if (!reader)
        return;
    uv_close((uv_handle_t *)&reader->timer, log_reader_on_closed);
    if (reader->is_watching)
        uv_close((uv_handle_t *)&reader->watch, log_reader_on_closed);
}

bool log_reader_lacks_times(const char *directory)
{
    static const char *const names[] = { "log", "log.1" };
    AQ_CLEANUP(aq_closep) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        AQ_CLEANUP(aq_closep) int half = log_reader_open_half(fd, names[i]);
        struct log_times_reader times;
        struct stat st;

        if (half < 0)
            continue;
        if (log_times_reader_open(&times, fd, half))
            log_times_reader_close(&times);
        else if (fstat(half, &st) == 0 && st.st_size > 0 && st.st_nlink > 0)
            return true; /* and it was not turned over just now */
    }
    return false;
}
