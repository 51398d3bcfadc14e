/* SPDX-License-Identifier: Apache-2.0 */
/* log_ring.h - the newest output of a program, in two files
 *
 * Output is appended to 'log'; when that has half of the allowed size it
 * becomes 'log.1' in place of the old one. So at least the newest half is
 * there, a reader follows by reading to the end of an open file and then
 * opening the new 'log', and an unlimited writer costs bounded space. When what was
 * written is in 'times' and 'times.1' (log_times.h).
 */
#ifndef AQ_MONITOR_LOG_RING_H
#define AQ_MONITOR_LOG_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "monitor/log_times.h"

struct log_ring {
    int directory; /* borrowed */
    int fd;
    uint64_t len, half;
    struct log_times times;
};

/* Continue the files below 'directory'. 'max' bytes in all, at least 8 KiB. */
int log_ring_open(struct log_ring *ring, int directory, uint64_t max, struct aq_error *err);
void log_ring_close(struct log_ring *ring);

/* Bytes that cannot be written (a full disk) are lost: the program goes on. */
void log_ring_write(struct log_ring *ring, const char *bytes, size_t len);

/* Append the newest 'max' bytes to 'out'. */
void log_ring_tail(const struct log_ring *ring, size_t max, struct strbuf *out);

#endif
