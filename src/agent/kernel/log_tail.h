/* SPDX-License-Identifier: Apache-2.0 */
/* log_tail.h - where the last lines of a log begin
 *
 * A file is looked at from its end, a piece at a time: it may be large. The very last line
 * break ends a line and begins none.
 */
#ifndef AQ_AGENT_KERNEL_LOG_TAIL_H
#define AQ_AGENT_KERNEL_LOG_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct log_tail {
    int64_t lines; /* that are looked for still; 0 = they begin at 'at' */
    off_t at;      /* what comes before was not looked at; 0 = all was */
    bool is_last;  /* the byte before it is the file's last */
};

/* Go on with this file; 'lines' stays as it is. */
void log_tail_begin(struct log_tail *tail, int fd);
/* Look at the piece before 'at'; how many bytes that were. 0 = there is no more to look at. */
size_t log_tail_step(struct log_tail *tail, int fd);

#endif
