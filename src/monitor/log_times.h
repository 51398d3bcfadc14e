/* SPDX-License-Identifier: Apache-2.0 */
/* log_times.h - when a log was written
 *
 * Beside each half of the ring (log_ring.h) is a file of records: from this offset of
 * the half on, bytes were written at this time. There is at most one for each step of
 * time, which is a few milliseconds at first. A file that has all the records that it
 * may have is thinned: its step grows until half of them are left.
 *
 * A file begins with the inode of its half, so that a process that turns both over may be
 * killed in between. A reader passes over records whose offset does not grow and one
 * that is not whole; so a file is right at any moment, also while it is thinned. The
 * clock may have been set back: times need not grow. Integers are in host byte order.
 */
#ifndef AQ_MONITOR_LOG_TIMES_H
#define AQ_MONITOR_LOG_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LOG_TIMES_FILE "times"         /* of "log" */
#define LOG_TIMES_FILE_OLDER "times.1" /* of "log.1" */
#define LOG_TIMES_STEP_USEC 4000

struct log_time {
    uint64_t offset; /* in the half */
    int64_t usec;    /* wall clock */
};

/* ---- writing ---- */

struct log_times {
    int directory;       /* borrowed */
    int fd;              /* -1 = no record yet */
    uint64_t count, max; /* records */
    int64_t step_usec, last_usec;
};

/* For a new half; the file is made with the first record. */
void log_times_init(struct log_times *times, int directory, uint64_t max_bytes);
void log_times_done(struct log_times *times);

/* What is written to 'log' at 'offset' next is of 'usec'. To be called before: a reader
 * that sees bytes finds their time. What cannot be written is left out: these bytes
 * get the time of those before.
 */
void log_times_add(struct log_times *times, int log, uint64_t offset, int64_t usec);

/* The half has become log.1. The records stay open until log_times_done(). */
void log_times_turn_over(const struct log_times *times);

/* ---- reading ---- */

struct log_times_reader {
    int fd;   /* -1 = not open */
    off_t at; /* in the file: what is read next */
    struct log_time buffer[128];
    size_t used, count; /* in the buffer */
    struct log_time current, next;
    bool has_current, has_next;
};

/* The times of the half that is open as 'log'. False if none were recorded; then the
 * reader is not open.
 */
bool log_times_reader_open(struct log_times_reader *reader, int directory, int log);
void log_times_reader_close(struct log_times_reader *reader);

/* When the byte at 'offset' was written; offsets must not fall from call to call. */
int64_t log_times_reader_at(struct log_times_reader *reader, uint64_t offset);

/* Go on to the record of the byte at *offset, or the first after it of 'usec' or later, which
 * may be the last one there is: *offset grows to where that begins. False after so many
 * records that others should have their turn: call it again.
 */
bool log_times_reader_seek(struct log_times_reader *reader, int64_t usec, uint64_t *offset);

#endif
