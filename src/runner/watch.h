/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - a descriptor and what to do when it is ready
 *
 * One thread, one epoll set. The loop takes one event at a time, so a
 * callback may close any other watch.
 */
#ifndef AQ_RUNNER_WATCH_H
#define AQ_RUNNER_WATCH_H

#include <stdint.h>
#include <sys/epoll.h>

#include "base/cleanup.h"

struct watch;
typedef void watch_fn(struct watch *watch, uint32_t events);

struct watch {
    int fd; /* -1 = closed */
    int epoll;
    uint32_t wanted; /* EPOLL*; 0 = nothing now */
    watch_fn *fn;
    void *owner;
};

#define WATCH_CLOSED \
    {                \
        .fd = -1     \
    }

static inline void watch_init(struct watch *watch, int epoll, int fd, watch_fn *fn, void *owner)
{
    *watch = (struct watch){ .fd = fd, .epoll = epoll, .fn = fn, .owner = owner };
}

/* Ask for these events from now on; of a closed one: nothing. Out of the set
 * with 0, where a hang-up would come again and again.
 */
static inline void watch_want(struct watch *watch, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = watch };
    int change = !watch->wanted ? EPOLL_CTL_ADD : !events ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

    if (watch->fd < 0 || watch->wanted == events)
        return;
    if (epoll_ctl(watch->epoll, change, watch->fd, &event) == 0)
        watch->wanted = events;
}

static inline void watch_close(struct watch *watch)
{
    watch_want(watch, 0);
    aq_closep(&watch->fd);
}

#endif
