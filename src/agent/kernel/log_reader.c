/* SPDX-License-Identifier: Apache-2.0 */
/* log_reader.c - reads a kernel's output from its log files, and follows it */
#include "agent/kernel/log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/kernel/log_lines.h"
#include "agent/kernel/log_tail.h"
#include "base/clock.h"
#include "base/memory.h"

#define CHUNK 16384 /* bytes that are read, or lines with their times that are made, at a time */

struct log_half {
    int fd; /* -1 = none */
    struct log_times_reader times;
};

struct log_reader {
    uv_fs_event_t watch; /* of the directory, once all was read; its closing frees all this */
    struct log_turns *turns;
    struct log_turn turn;
    size_t (*step)(struct log_reader *r); /* what is done in the next turn */
    int directory;
    struct log_half older, current; /* 'older' is log.1, read first */
    off_t at;                       /* in the half that is being read */
    struct log_tail tail;
    struct log_lines lines;
    struct strbuf out; /* what 'lines' has made of what was read */
    const struct log_reader_ops *ops;
    void *data;
    bool follow, is_paused, has_ended;
};

static void log_reader_go_on(struct log_reader *r)
{
    if (!r->is_paused)
        log_turn_wait(r->turns, &r->turn);
}

static size_t log_reader_on_turn(struct log_turn *turn)
{
    struct log_reader *r = AQ_CONTAINER_OF(turn, struct log_reader, turn);

    return r->step(r);
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

static struct log_half *log_reader_half(struct log_reader *r)
{
    return r->older.fd >= 0 ? &r->older : &r->current;
}

static size_t log_reader_read(struct log_reader *r);

/* To the times of what is read next. What was written before the first record of the wanted
 * time or later is passed over; what follows there in the same line is of one that began before.
 */
static size_t log_reader_seek_time(struct log_reader *r)
{
    struct log_half *half = log_reader_half(r);
    bool is_in_wanted = r->lines.is_inside && r->lines.is_wanted;
    int64_t since_usec = is_in_wanted ? 0 : r->lines.since_usec;
    uint64_t offset = (uint64_t)r->at;
    char last;

    log_reader_go_on(r);
    if (half->times.fd >= 0 && !log_times_reader_seek(&half->times, since_usec, &offset))
        return sizeof(half->times.buffer);
    r->step = log_reader_read;
    if (since_usec && offset > (uint64_t)r->at
        && pread(half->fd, &last, 1, (off_t)(offset - 1)) == 1) {
        r->at = (off_t)offset;
        r->lines.is_inside = last != '\n';
        r->lines.is_wanted = false;
    }
    return sizeof(half->times.buffer);
}

/* At the end of a file: the next one, if there is one. */
static bool log_reader_step_file(struct log_reader *r)
{
    AQ_CLEANUP(aq_closep) int newer = -1;

    if (r->older.fd >= 0) {
        log_reader_close_half(&r->older);
        r->at = 0;
        r->step = log_reader_seek_time;
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

/* Not before it is read again: libuv takes changes as long as there are any, and many programs
 * that write without end would keep it from all else.
 */
static void log_reader_on_change(uv_fs_event_t *watch, const char *name, int events, int status)
{
    struct log_reader *r = watch->data;

    (void)name;
    (void)events;
    (void)status;
    (void)uv_fs_event_stop(watch);
    log_reader_go_on(r);
}

/* True if it was not watched until now: what was written meanwhile is read first. */
static bool log_reader_watch(struct log_reader *r)
{
    char path[64];

    if (uv_is_active((uv_handle_t *)&r->watch))
        return false;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", r->directory);
    return uv_fs_event_start(&r->watch, log_reader_on_change, path, 0) == 0;
}

/* Pass on what was read, or the lines of it that are wanted. */
static size_t log_reader_pass_on(struct log_reader *r, struct log_half *half, const char *bytes,
                                 size_t len)
{
    size_t taken = len;

    if (log_reader_is_by_times(r)) {
        if (half->times.fd < 0) /* the half was empty until now */
            (void)log_times_reader_open(&half->times, r->directory, half->fd);
        taken = log_lines_take(&r->lines, bytes, len, (uint64_t)r->at, &half->times, &r->out,
                               CHUNK - CLOCK_ISO_MAX);
        bytes = r->out.data;
        len = r->out.len;
    }
    r->at += (off_t)taken;
    if (len)
        r->ops->on_bytes(r->data, bytes, len);
    log_reader_go_on(r);
    strbuf_clear(&r->out);
    return AQ_MAX(taken, len);
}

static size_t log_reader_read(struct log_reader *r)
{
    /* asked before reading: what is written before the end is read */
    bool is_last = r->has_ended || !r->follow;
    struct log_half *half = log_reader_half(r);
    char bytes[CHUNK];
    ssize_t got = pread(half->fd, bytes, sizeof(bytes), r->at);

    if (got > 0)
        return log_reader_pass_on(r, half, bytes, (size_t)got);
    if (log_reader_step_file(r) || (!is_last && log_reader_watch(r)))
        log_reader_go_on(r);
    else if (is_last || !uv_is_active((uv_handle_t *)&r->watch))
        r->ops->on_end(r->data);
    return 0; /* a change of the directory wakes us */
}

/* The newer file begins with a line of its own, not with the rest of one. */
static bool log_reader_begins_line(const struct log_reader *r)
{
    struct stat newer, older;
    char last;

    return fstat(r->current.fd, &newer) == 0 && newer.st_size > 0 && fstat(r->older.fd, &older) == 0
           && pread(r->older.fd, &last, 1, older.st_size - 1) == 1 && last == '\n';
}

static size_t log_reader_seek_older_tail(struct log_reader *r)
{
    size_t done = log_tail_step(&r->tail, r->older.fd);

    log_reader_go_on(r);
    if (!done) {
        r->at = r->tail.at;
        r->step = log_reader_seek_time;
    }
    return done;
}

/* Begin within the newer file, the older one, or at its start. */
static size_t log_reader_seek_tail(struct log_reader *r)
{
    size_t done = log_tail_step(&r->tail, r->current.fd);

    log_reader_go_on(r);
    if (done)
        return done;
    if (r->tail.lines && r->older.fd >= 0 && log_reader_begins_line(r))
        r->tail.lines--;
    if (r->tail.lines && r->older.fd >= 0) {
        log_tail_begin(&r->tail, r->older.fd);
        r->step = log_reader_seek_older_tail;
    } else {
        log_reader_close_half(&r->older);
        r->at = r->tail.at;
        r->step = log_reader_seek_time;
    }
    return 0;
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
static void log_reader_begin(struct log_reader *r, const struct log_reader_options *options)
{
    r->lines.since_usec = options->since_usec;
    r->lines.timestamps = options->timestamps;
    if (log_reader_is_by_times(r)) {
        strbuf_reserve(&r->out, 2 * (size_t)CHUNK + CLOCK_ISO_MAX);
        (void)log_times_reader_open(&r->current.times, r->directory, r->current.fd);
        if (r->older.fd >= 0)
            (void)log_times_reader_open(&r->older.times, r->directory, r->older.fd);
    }
    r->step = log_reader_seek_time;
    if (options->only_new) {
        log_reader_seek_end(r);
    } else if (options->tail_lines > 0) {
        r->tail.lines = options->tail_lines;
        log_tail_begin(&r->tail, r->current.fd);
        r->step = log_reader_seek_tail;
    }
}

int log_reader_new(struct log_turns *turns, const char *directory,
                   const struct log_reader_options *options, const struct log_reader_ops *ops,
                   void *data, struct log_reader **ret, struct aq_error *err)
{
    struct log_reader *r = aq_alloc(sizeof(*r));
    int result;

    r->directory = r->older.fd = r->current.fd = -1;
    r->older.times.fd = r->current.times.fd = -1;
    strbuf_init(&r->out);
    r->turns = turns;
    log_turn_init(&r->turn, log_reader_on_turn);
    r->ops = ops;
    r->data = data;
    r->follow = options->follow;
    result = log_reader_open_files(r, directory, err);
    if (result < 0) {
        log_reader_free_files(r);
        return result;
    }
    log_reader_begin(r, options);
    (void)uv_fs_event_init(turns->loop, &r->watch); /* cannot fail */
    r->watch.data = r;
    log_reader_go_on(r);
    *ret = r;
    return 0;
}

static int log_reader_put(void *end, const char *bytes, size_t len)
{
    (void)end;
    (void)bytes;
    (void)len;
    return 0;
}

static void log_reader_pause(void *end, bool is_paused)
{
    struct log_reader *r = end;

    r->is_paused = is_paused;
    if (is_paused)
        log_turn_cancel(&r->turn);
    else
        log_reader_go_on(r);
}

const struct pump_ops log_reader_pump = { .put = log_reader_put, .pause = log_reader_pause };

void log_reader_finish(struct log_reader *reader)
{
    reader->has_ended = true;
    log_reader_go_on(reader);
}

static void log_reader_on_closed(uv_handle_t *handle)
{
    log_reader_free_files(handle->data);
}

void log_reader_free(struct log_reader *reader)
{
    if (!reader)
        return;
    log_turn_cancel(&reader->turn);
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
