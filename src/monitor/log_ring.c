/* SPDX-License-Identifier: Apache-2.0 */
/* log_ring.c - the newest output of a program, in two files */
#include "monitor/log_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/utf8.h"

/* At most a quarter of the log: a record for every 64 bytes. */
#define TIMES_PART 4
#define CHARACTER_REST_MAX 3 /* bytes of UTF-8 that continue one */

static int log_ring_open_file(int directory)
{
    return openat(directory, "log", O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int log_ring_open(struct log_ring *ring, int directory, uint64_t max, struct aq_error *err)
{
    struct stat st;
    int fd = log_ring_open_file(directory);

    if (fd < 0 || fstat(fd, &st) < 0) {
        int r = aq_fail_errno(err, "open the log");

        aq_closep(&fd);
        return r;
    }
    *ring = (struct log_ring){
        .directory = directory, .fd = fd, .len = (uint64_t)st.st_size, .half = AQ_MAX(max / 2, 4096)
    };
    log_times_init(&ring->times, directory, ring->half / TIMES_PART);
    return 0;
}

void log_ring_close(struct log_ring *ring)
{
    aq_closep(&ring->fd);
    log_times_done(&ring->times);
}

/* The full file becomes the older half; without space for that go on with it. */
static void log_ring_turn_over(struct log_ring *ring)
{
    int fd;

    if (renameat(ring->directory, "log", ring->directory, "log.1") < 0)
        return;
    log_times_turn_over(&ring->times);
    fd = log_ring_open_file(ring->directory);
    if (fd < 0)
        return;
    log_times_done(&ring->times);
    log_times_init(&ring->times, ring->directory, ring->half / TIMES_PART);
    aq_closep(&ring->fd);
    ring->fd = fd;
    ring->len = 0;
}

/* A full disk may have taken a part. */
static void log_ring_write_part(struct log_ring *ring, const char *bytes, size_t len)
{
    struct stat st;

    if (fs_write_all(ring->fd, bytes, len) == 0)
        ring->len += len;
    else if (fstat(ring->fd, &st) == 0)
        ring->len = (uint64_t)st.st_size;
}

/* How much of the bytes goes into this half: it ends with a whole character, for which it may
 * be a little longer.
 */
static size_t log_ring_fit(const struct log_ring *ring, const char *bytes, size_t len)
{
    size_t part = ring->len < ring->half ? (size_t)AQ_MIN(ring->half - ring->len, len) : 0;
    size_t rest = utf8_rest(bytes + part, len - part);
    uint64_t end = ring->half + CHARACTER_REST_MAX;

    return part + (ring->len + part < end ? (size_t)AQ_MIN(rest, end - ring->len - part) : 0);
}

void log_ring_write(struct log_ring *ring, const char *bytes, size_t len)
{
    int64_t now = clock_realtime_usec();

    while (len) {
        size_t part = log_ring_fit(ring, bytes, len);

        if (!part) {
            log_ring_turn_over(ring);
            part = ring->len < ring->half ? log_ring_fit(ring, bytes, len) : len;
        }
        log_times_add(&ring->times, ring->fd, ring->len, now);
        log_ring_write_part(ring, bytes, part);
        bytes += part;
        len -= part;
    }
}

static void log_ring_read_tail(int fd, size_t max, struct strbuf *out)
{
    struct stat st;
    off_t at;

    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    at = st.st_size > (off_t)max ? st.st_size - (off_t)max : 0;
    if (!strbuf_reserve(out, (size_t)(st.st_size - at)))
        return;
    while (at < st.st_size) {
        ssize_t got = pread(fd, out->data + out->len, (size_t)(st.st_size - at), at);

        if (got <= 0)
            return;
        strbuf_truncate(out, out->len + (size_t)got);
        at += got;
    }
}

void log_ring_tail(const struct log_ring *ring, size_t max, struct strbuf *out)
{
    if (ring->len < max) {
        AQ_CLEANUP(aq_closep) int older = openat(ring->directory, "log.1",
                                                 O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        log_ring_read_tail(older, max - (size_t)ring->len, out);
    }
    log_ring_read_tail(ring->fd, max, out);
}
