/* SPDX-License-Identifier: Apache-2.0 */
/* log_tail.c - where the last lines of a log begin */
#include "agent/kernel/log_tail.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PIECE 16384

void log_tail_begin(struct log_tail *tail, int fd)
{
    struct stat st;

    tail->at = fstat(fd, &st) == 0 ? st.st_size : 0;
    tail->is_last = true;
}

size_t log_tail_step(struct log_tail *tail, int fd)
{
    char bytes[PIECE];
    size_t len = tail->lines > 0 ? (size_t)AQ_MIN(tail->at, (off_t)sizeof(bytes)) : 0;

    if (len && pread(fd, bytes, len, tail->at - (off_t)len) != (ssize_t)len) {
        tail->at = 0;
        return 0;
    }
    for (size_t i = len; i-- > 0; tail->is_last = false) {
        if (bytes[i] == '\n' && !tail->is_last && --tail->lines == 0) {
            tail->at -= (off_t)(len - i - 1);
            return len;
        }
    }
    tail->at -= (off_t)len;
    return len;
}
