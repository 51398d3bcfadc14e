/* SPDX-License-Identifier: Apache-2.0 */
/* log_times.c - when a log was written */
#include "monitor/log_times.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STEP_MAX_USEC (INT64_C(1) << 60)
#define TIME_MAX_USEC INT64_C(253402300800000000) /* the year 10000: no clock shows that */

struct log_times_head {
    char magic[8];
    uint64_t inode; /* of the half */
};

static const char log_times_magic[8] = "aqtimes1";

/* ---- writing ---- */

void log_times_init(struct log_times *times, int directory, uint64_t max_bytes)
{
    *times = (struct log_times){ .directory = directory,
                                 .fd = -1,
                                 .max = max_bytes / sizeof(struct log_time),
                                 .step_usec = LOG_TIMES_STEP_USEC };
}

void log_times_done(struct log_times *times)
{
    aq_closep(&times->fd);
}

static bool log_times_make_file(struct log_times *times, int log)
{
    struct log_times_head head;
    struct stat st;

    if (fstat(log, &st) < 0)
        return false;
    memcpy(head.magic, log_times_magic, sizeof(head.magic));
    head.inode = st.st_ino;
    times->fd = openat(times->directory, LOG_TIMES_FILE,
                       O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (times->fd >= 0 && write(times->fd, &head, sizeof(head)) != (ssize_t)sizeof(head))
        aq_closep(&times->fd);
    return times->fd >= 0;
}

static bool log_times_is_step(int64_t from_usec, int64_t to_usec, int64_t step_usec)
{
    uint64_t gap = (uint64_t)to_usec - (uint64_t)from_usec;

    return (to_usec < from_usec ? 0 - gap : gap) >= (uint64_t)step_usec;
}

/* Leave those that are a step after the one before; how many. */
static uint64_t log_times_keep(struct log_time *records, uint64_t count, int64_t step_usec)
{
    uint64_t kept = count > 0;

    for (uint64_t i = 1; i < count; i++)
        if (log_times_is_step(records[kept - 1].usec, records[i].usec, step_usec))
            records[kept++] = records[i];
    return kept;
}

/* In place, from the beginning: until the file is shortened, old records follow, which
 * readers pass over.
 */
static void log_times_thin(struct log_times *times)
{
    size_t len = (size_t)times->count * sizeof(struct log_time);
    AQ_CLEANUP(aq_freep) void *bytes = malloc(len);
    struct log_time *records = bytes;
    uint64_t kept = times->count;

    if (!bytes || pread(times->fd, bytes, len, sizeof(struct log_times_head)) != (ssize_t)len)
        return;
    while (kept > times->count / 2 && times->step_usec < STEP_MAX_USEC) {
        times->step_usec *= 2;
        kept = log_times_keep(records, kept, times->step_usec);
    }
    len = (size_t)kept * sizeof(struct log_time);
    if (pwrite(times->fd, bytes, len, sizeof(struct log_times_head)) != (ssize_t)len
        || ftruncate(times->fd, (off_t)(sizeof(struct log_times_head) + len)) < 0)
        return;
    times->count = kept;
    times->last_usec = records[kept - 1].usec;
}

void log_times_add(struct log_times *times, int log, uint64_t offset, int64_t usec)
{
    const struct log_time record = { .offset = offset, .usec = usec };
    off_t at;

    if (times->count && !log_times_is_step(times->last_usec, usec, times->step_usec))
        return;
    if (times->fd < 0 && !log_times_make_file(times, log))
        return;
    if (times->count == times->max)
        log_times_thin(times);
    at = (off_t)(sizeof(struct log_times_head) + times->count * sizeof(record));
    if (times->count == times->max
        || pwrite(times->fd, &record, sizeof(record), at) != (ssize_t)sizeof(record))
        return;
    times->count++;
    times->last_usec = usec;
}

void log_times_turn_over(const struct log_times *times)
{
    /* the older ones go in any case: a new half may get the inode that they name */
    if (times->fd < 0
        || renameat(times->directory, LOG_TIMES_FILE, times->directory, LOG_TIMES_FILE_OLDER) < 0)
        (void)unlinkat(times->directory, LOG_TIMES_FILE_OLDER, 0);
}

/* ---- reading ---- */

/* A file of this name that is the half's. */
static int log_times_open_file(int directory, const char *name, ino_t inode)
{
    AQ_CLEANUP(aq_closep) int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct log_times_head head;

    if (fd < 0 || pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head)
        || memcmp(head.magic, log_times_magic, sizeof(head.magic)) != 0 || head.inode != inode)
        return -1;
    return AQ_TAKE_FD(fd);
}

/* More records of the file; false if there are none yet. */
static bool log_times_reader_fill(struct log_times_reader *r)
{
    ssize_t got = pread(r->fd, r->buffer, sizeof(r->buffer), r->at);
    struct stat st;

    if (got < (ssize_t)sizeof(*r->buffer) && fstat(r->fd, &st) == 0 && st.st_size < r->at) {
        r->at = sizeof(struct log_times_head); /* it was thinned: those that we had come again */
        got = pread(r->fd, r->buffer, sizeof(r->buffer), r->at);
    }
    r->used = 0;
    r->count = got > 0 ? (size_t)got / sizeof(*r->buffer) : 0;
    r->at += (off_t)(r->count * sizeof(*r->buffer));
    return r->count > 0;
}

/* Have the next record; false if there is none yet. */
static bool log_times_reader_peek(struct log_times_reader *r)
{
    while (!r->has_next) {
        if (r->used == r->count && !log_times_reader_fill(r))
            return false;
        r->next = r->buffer[r->used++];
        r->has_next = (!r->has_current || r->next.offset > r->current.offset) && r->next.usec >= 0
                      && r->next.usec < TIME_MAX_USEC;
    }
    return true;
}

static void log_times_reader_step(struct log_times_reader *r)
{
    r->current = r->next;
    r->has_current = true;
    r->has_next = false;
}

bool log_times_reader_open(struct log_times_reader *reader, int directory, int log)
{
    struct stat st;

    *reader = (struct log_times_reader){ .fd = -1, .at = sizeof(struct log_times_head) };
    if (fstat(log, &st) < 0)
        return false;
    reader->fd = log_times_open_file(directory, LOG_TIMES_FILE, st.st_ino);
    if (reader->fd < 0)
        reader->fd = log_times_open_file(directory, LOG_TIMES_FILE_OLDER, st.st_ino);
    if (reader->fd >= 0 && log_times_reader_peek(reader))
        return true;
    log_times_reader_close(reader);
    return false;
}

void log_times_reader_close(struct log_times_reader *reader)
{
    aq_closep(&reader->fd);
}

int64_t log_times_reader_at(struct log_times_reader *reader, uint64_t offset)
{
    while (log_times_reader_peek(reader) && (!reader->has_current || reader->next.offset <= offset))
        log_times_reader_step(reader);
    return reader->current.usec;
}

bool log_times_reader_seek(struct log_times_reader *reader, int64_t usec, uint64_t *offset)
{
    for (size_t i = 0; i < AQ_COUNT(reader->buffer); i++) {
        bool is_there = reader->has_current && reader->current.usec >= usec;

        if (!log_times_reader_peek(reader) || (is_there && reader->next.offset > *offset)) {
            *offset = AQ_MAX(*offset, reader->current.offset);
            return true;
        }
        log_times_reader_step(reader);
    }
    return false;
}
