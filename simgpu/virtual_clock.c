/* SPDX-License-Identifier: Apache-2.0 */
/* virtual_clock.c - the clock of a card made with 'virtual', for every program of it
 *
 * Preloaded (libsimgpu-time.so), it takes the place of CLOCK_MONOTONIC and of
 * the calls that wait by it. Time stands still while any thread that reads it
 * runs; when all of them wait, it jumps to where the first of them wants to
 * go on. So what a card does is the result of launches and of this clock, and
 * not of how busy the machine is that simulates it, and an idle minute takes
 * no time.
 *
 * Running is not free: each look at the clock costs its thread READ_NS, which
 * others see when it next waits, after AHEAD_MAX_NS at the latest. The clock
 * starts when 'expected' threads have waited once: no program misses what
 * another one does while it is being loaded. Waiting for descriptors ends in
 * real time, too, so that a peer that answers at once answers at once.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cuda.h"

#define READ_NS 500
#define AHEAD_MAX_NS 20000
#define LOOK_MS 5      /* how often, in real time, a waiter looks at its descriptors */
#define DEAD_LOOKS 20  /* after so many looks it sees who has died */
#define ANSWER_MS 1000 /* who waits longer for a descriptor waits for an answer: time stands */

static struct sim_time *shared; /* NULL = the real clock */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread struct sim_waiter *self;
static __thread int64_t ahead_ns;

SIM_EXPORT int clock_gettime(clockid_t clock, struct timespec *ret);
SIM_EXPORT int nanosleep(const struct timespec *span, struct timespec *left);
SIM_EXPORT int usleep(useconds_t us);
SIM_EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout);

static void virtual_clock_after_fork(void)
{
    self = NULL;
    ahead_ns = 0;
}

static void virtual_clock_attach(void)
{
    const char *path = getenv("SIMGPU_DEVICE");
    int fd;
    struct sim_card *card = path ? sim_open(path, &fd) : NULL;

    if (!card)
        return;
    (void)close(fd);
    if (!card->time.expected)
        return;
    (void)pthread_atfork(NULL, NULL, virtual_clock_after_fork);
    shared = &card->time;
}

static bool virtual_clock_is_on(void)
{
    (void)pthread_once(&once, virtual_clock_attach);
    return shared != NULL;
}

static void virtual_clock_lock(void)
{
    if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD)
        (void)pthread_mutex_consistent(&shared->lock);
}

static void virtual_clock_unlock(void)
{
    (void)pthread_mutex_unlock(&shared->lock);
}

static void virtual_clock_wake(struct sim_waiter *waiter)
{
    __atomic_store_n(&waiter->is_asleep, 0, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &waiter->is_asleep, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* If all wait: go to where the first of them wants to go on. Under the lock. */
static void virtual_clock_advance(void)
{
    int64_t first = INT64_MAX;

    if (shared->arrived < shared->expected)
        return;
    for (int i = 0; i < SIM_WAITERS_MAX; i++) {
        const struct sim_waiter *waiter = &shared->waiters[i];

        if (waiter->pid && !waiter->is_asleep)
            return;
        if (waiter->pid && waiter->wake_ns < first)
            first = waiter->wake_ns;
    }
    if (first == INT64_MAX)
        return;
    if (first > shared->now_ns)
        __atomic_store_n(&shared->now_ns, first, __ATOMIC_RELEASE);
    for (int i = 0; i < SIM_WAITERS_MAX; i++)
        if (shared->waiters[i].pid && shared->waiters[i].wake_ns <= shared->now_ns)
            virtual_clock_wake(&shared->waiters[i]);
}

/* The dead hold nobody up. Under the lock. */
static void virtual_clock_drop_dead(void)
{
    for (int i = 0; i < SIM_WAITERS_MAX; i++) {
        struct sim_waiter *waiter = &shared->waiters[i];

        if (waiter->pid && syscall(SYS_tgkill, waiter->pid, waiter->tid, 0) < 0 && errno == ESRCH)
            waiter->pid = 0;
    }
}

static void virtual_clock_join(void)
{
    virtual_clock_lock();
    virtual_clock_drop_dead();
    for (int i = 0; i < SIM_WAITERS_MAX && !self; i++)
        if (!shared->waiters[i].pid) {
            self = &shared->waiters[i];
            *self = (struct sim_waiter){ .pid = (int32_t)getpid(),
                                         .tid = (int32_t)syscall(SYS_gettid) };
        }
    virtual_clock_unlock();
    if (!self)
        abort(); /* SIM_WAITERS_MAX is too small for this test */
}

static __attribute__((destructor)) void virtual_clock_leave(void)
{
    if (!shared || !self)
        return;
    virtual_clock_lock();
    self->pid = 0;
    self = NULL;
    virtual_clock_advance();
    virtual_clock_unlock();
}

static void virtual_clock_wait(int64_t until)
{
    virtual_clock_lock();
    self->wake_ns = until;
    self->is_asleep = 1;
    shared->arrived += !self->has_slept;
    self->has_slept = 1;
    virtual_clock_advance();
    virtual_clock_unlock();
}

/* One of the descriptors may end a wait before the clock does. */
static bool virtual_clock_is_readable(struct pollfd *fds, nfds_t count)
{
    static const struct timespec now;

    return count && syscall(SYS_ppoll, fds, count, &now, NULL, 0) > 0;
}

/* True = because of a descriptor. */
static bool virtual_clock_sleep_until(int64_t until, struct pollfd *fds, nfds_t count)
{
    static const struct timespec look = { .tv_nsec = LOOK_MS * 1000000 };
    bool readable = false;

    virtual_clock_wait(until);
    for (int looks = 1; __atomic_load_n(&self->is_asleep, __ATOMIC_ACQUIRE); looks++) {
        if (syscall(SYS_futex, &self->is_asleep, FUTEX_WAIT, 1, &look, NULL, 0) == 0
            || errno != ETIMEDOUT)
            continue;
        virtual_clock_lock();
        readable = virtual_clock_is_readable(fds, count);
        if (readable)
            self->is_asleep = 0;
        if (looks % DEAD_LOOKS == 0)
            virtual_clock_drop_dead();
        virtual_clock_advance();
        virtual_clock_unlock();
    }
    ahead_ns = 0;
    return readable;
}

static int64_t virtual_clock_read(void)
{
    if (!self)
        virtual_clock_join();
    ahead_ns += READ_NS;
    if (ahead_ns > AHEAD_MAX_NS)
        (void)virtual_clock_sleep_until(shared->now_ns + ahead_ns, NULL, 0);
    return __atomic_load_n(&shared->now_ns, __ATOMIC_ACQUIRE) + ahead_ns;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int64_t now;
    int saved = errno;

    if (clock != CLOCK_MONOTONIC || !virtual_clock_is_on())
        return (int)syscall(SYS_clock_gettime, clock, ret);
    now = virtual_clock_read();
    ret->tv_sec = now / 1000000000;
    ret->tv_nsec = now % 1000000000;
    errno = saved;
    return 0;
}

static void virtual_clock_sleep_for(int64_t ns)
{
    int saved = errno;

    (void)virtual_clock_sleep_until(virtual_clock_read() + ns, NULL, 0);
    errno = saved;
}

int nanosleep(const struct timespec *span, struct timespec *left)
{
    if (!virtual_clock_is_on())
        return (int)syscall(SYS_nanosleep, span, left);
    virtual_clock_sleep_for((int64_t)span->tv_sec * 1000000000 + span->tv_nsec);
    return 0;
}

int usleep(useconds_t us)
{
    const struct timespec span = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

    return nanosleep(&span, NULL);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    const struct timespec span = { .tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000 };

    if (timeout <= 0 || timeout >= ANSWER_MS || !virtual_clock_is_on())
        return (int)syscall(SYS_ppoll, fds, count, timeout < 0 ? NULL : &span, NULL, 0);
    if (!virtual_clock_is_readable(fds, count))
        (void)virtual_clock_sleep_until(virtual_clock_read() + (int64_t)timeout * 1000000, fds,
                                        count);
    return (int)syscall(SYS_ppoll, fds, count, &(struct timespec){ 0 }, NULL, 0);
}
