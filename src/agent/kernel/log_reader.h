/* SPDX-License-Identifier: Apache-2.0 */
/* log_reader.h - reads a kernel's output from its log files, and follows it
 *
 * Reads the two halves of the ring that a monitor keeps (monitor/protocol.h)
 * in the order they were written, and on request goes on as the program
 * writes. A piece at a time, when it is its turn (log_turns.h): also what it looks for
 * before it reads, in a file that may be large. Belongs to the thread of the loop.
 */
#ifndef AQ_AGENT_KERNEL_LOG_READER_H
#define AQ_AGENT_KERNEL_LOG_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/kernel/log_turns.h"
#include "base/error.h"
#include "base/pump.h"

struct log_reader;

struct log_reader_options {
    int64_t tail_lines; /* only the last; 0 = all that is kept */
    int64_t since_usec; /* of these only lines printed then or later; 0 = all */
    bool timestamps;    /* when it was printed before each line (log_lines.h) */
    bool only_new;      /* nothing that is there already */
    bool follow;        /* then what is written later */
};

struct log_reader_ops {
    /* May pause the reader; must not free it. */
    void (*on_bytes)(void *data, const char *bytes, size_t len);
    /* All was read, or what comes later cannot be watched; then log_reader_free(). */
    void (*on_end)(void *data);
};

/* Read the directory's log. -ENOENT without a log. Callbacks come from the loop, never
 * from this call.
 */
int log_reader_new(struct log_turns *turns, const char *directory,
                   const struct log_reader_options *options, const struct log_reader_ops *ops,
                   void *data, struct log_reader **ret, struct aq_error *err);

/* An end of a pump that is a struct log_reader: what it is put is of no use. */
extern const struct pump_ops log_reader_pump;

/* The program has ended: what is there now is all. */
void log_reader_finish(struct log_reader *reader);

/* NULL is fine. */
void log_reader_free(struct log_reader *reader);

/* Is there output in the directory's log for which no times were recorded? */
bool log_reader_lacks_times(const char *directory);

#endif
