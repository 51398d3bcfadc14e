/* SPDX-License-Identifier: Apache-2.0 */
/* reserve.c - room on the disk for what must be written when it is full */
#include "store/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"

/* A commit that ends a session writes some 50 KiB to the log. */
#define RESERVE_BYTES ((off_t)1 << 20)
#define RELEASE_BYTES ((off_t)128 << 10)
#define RETRY_USEC (100 * USEC_PER_MSEC)

/* The lock is held. */
static void reserve_try_fill(struct reserve *reserve)
{
    struct stat st;

    reserve->tried_usec = clock_monotonic_usec();
    if (reserve->fd < 0)
        reserve->fd = open(reserve->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (reserve->fd < 0 || fstat(reserve->fd, &st) < 0) {
        reserve->code = errno;
        return;
    }
    reserve->held = st.st_size;
    reserve->code = posix_fallocate(reserve->fd, 0, RESERVE_BYTES);
    if (reserve->code == 0)
        reserve->held = RESERVE_BYTES;
    else
        (void)!ftruncate(reserve->fd, reserve->held); /* what a failure has allocated */
}

void reserve_init(struct reserve *reserve)
{
    *reserve = (struct reserve){ .fd = -1 };
    (void)pthread_mutex_init(&reserve->lock, NULL);
}

void reserve_fill(struct reserve *reserve, const char *path)
{
    (void)pthread_mutex_lock(&reserve->lock);
    reserve->path = path;
    reserve_try_fill(reserve);
    (void)pthread_mutex_unlock(&reserve->lock);
}

void reserve_done(struct reserve *reserve)
{
    aq_closep(&reserve->fd);
    (void)pthread_mutex_destroy(&reserve->lock);
}

bool reserve_release(struct reserve *reserve)
{
    bool is_released = false;

    (void)pthread_mutex_lock(&reserve->lock);
    if (reserve->fd >= 0 && reserve->held > 0) {
        off_t rest = AQ_MAX(reserve->held - RELEASE_BYTES, 0);

        is_released = ftruncate(reserve->fd, rest) == 0;
        if (is_released)
            reserve->held = rest;
        reserve->code = ENOSPC;
        reserve->tried_usec = clock_monotonic_usec();
    }
    (void)pthread_mutex_unlock(&reserve->lock);
    return is_released;
}

int reserve_find_lack(struct reserve *reserve)
{
    int code;

    (void)pthread_mutex_lock(&reserve->lock);
    if (reserve->code && clock_monotonic_usec() - reserve->tried_usec >= RETRY_USEC)
        reserve_try_fill(reserve);
    code = fs_is_out_of_room(reserve->code) ? reserve->code : 0;
    (void)pthread_mutex_unlock(&reserve->lock);
    return code;
}
