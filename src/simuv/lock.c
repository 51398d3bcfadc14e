/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c - mutexes and conditions of code on tasks
 *
 * Their state is in the memory of the C library's objects, which is zero when they are unlocked
 * and initialized statically. As one task runs at a time, no atomic operation is needed.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "simuv/simuv_internal.h"

#define YIELD_ONE_IN 32
#define YIELD_USEC 50

struct simuv_mutex {
    struct simuv_task *owner; /* NULL = free */
    uint32_t waiting;
};

struct simuv_condition {
    uint32_t waiting;
    int clock; /* CLOCK_REALTIME is 0, as in one that is initialized statically */
};

#define LOCK_STATE(object) ((void *)(object))

int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __real_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __real_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
int __real_pthread_cond_destroy(pthread_cond_t *cond);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __real_pthread_cond_signal(pthread_cond_t *cond);
int __real_pthread_cond_broadcast(pthread_cond_t *cond);

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
int __wrap_pthread_cond_destroy(pthread_cond_t *cond);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);

_Static_assert(sizeof(struct simuv_mutex) <= sizeof(pthread_mutex_t), "no room for a mutex");
_Static_assert(sizeof(struct simuv_condition) <= sizeof(pthread_cond_t), "no room for a condition");

/* ---- mutexes ---- */

/* Others run first, at times, as they may on a real machine at any instruction. */
static void lock_yield(void)
{
    if (!simuv_task_now->is_driver && simuv_random_of_below(SIMUV_TURNS, YIELD_ONE_IN) == 0)
        (void)simuv_wait(NULL, simuv_now + (int64_t)simuv_random_of_below(SIMUV_TURNS, YIELD_USEC),
                         "yield");
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    int r = __real_pthread_mutex_init(mutex, attr);

    if (simuv_has_begun)
        memset(mutex, 0, sizeof(struct simuv_mutex));
    return r;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    if (!simuv_has_begun)
        return __real_pthread_mutex_destroy(mutex);
    return ((struct simuv_mutex *)LOCK_STATE(mutex))->owner ? EBUSY : 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    struct simuv_mutex *m = LOCK_STATE(mutex);

    if (!simuv_has_begun)
        return __real_pthread_mutex_trylock(mutex);
    if (m->owner)
        return EBUSY;
    m->owner = simuv_task_now;
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    struct simuv_mutex *m = LOCK_STATE(mutex);

    if (!simuv_has_begun)
        return __real_pthread_mutex_lock(mutex);
    lock_yield();
    if (m->owner == simuv_task_now)
        simuv_cannot("pthread_mutex_lock() of a mutex that this thread holds");
    while (m->owner) {
        m->waiting++;
        (void)simuv_wait(m, INT64_MAX, "pthread_mutex_lock() of a mutex that is never unlocked");
        m->waiting--;
    }
    m->owner = simuv_task_now;
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    struct simuv_mutex *m = LOCK_STATE(mutex);

    if (!simuv_has_begun)
        return __real_pthread_mutex_unlock(mutex);
    if (m->owner != simuv_task_now)
        simuv_cannot("pthread_mutex_unlock() of a mutex that this thread does not hold");
    m->owner = NULL;
    if (m->waiting)
        (void)simuv_wake_one(m);
    return 0;
}

/* ---- conditions ---- */

int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
    struct simuv_condition *c = LOCK_STATE(cond);
    clockid_t clock = CLOCK_REALTIME;

    if (!simuv_has_begun)
        return __real_pthread_cond_init(cond, attr);
    if (attr)
        (void)pthread_condattr_getclock(attr, &clock);
    memset(cond, 0, sizeof(*cond));
    c->clock = clock;
    return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *cond)
{
    return simuv_has_begun ? 0 : __real_pthread_cond_destroy(cond);
}

static int lock_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline)
{
    struct simuv_condition *c = LOCK_STATE(cond);
    bool is_signalled;

    (void)__wrap_pthread_mutex_unlock(mutex);
    c->waiting++;
    is_signalled = simuv_wait(c, deadline, "pthread_cond_wait() of a condition that never comes");
    c->waiting--;
    (void)__wrap_pthread_mutex_lock(mutex);
    return is_signalled ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    if (!simuv_has_begun)
        return __real_pthread_cond_wait(cond, mutex);
    return lock_wait(cond, mutex, INT64_MAX);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    struct simuv_condition *c = LOCK_STATE(cond);
    int64_t deadline = (int64_t)until->tv_sec * SIMUV_USEC_PER_SEC + (until->tv_nsec + 999) / 1000;

    if (!simuv_has_begun)
        return __real_pthread_cond_timedwait(cond, mutex, until);
    if (c->clock != CLOCK_MONOTONIC)
        deadline -= simuv_wall_ahead_usec();
    return lock_wait(cond, mutex, deadline);
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    struct simuv_condition *c = LOCK_STATE(cond);

    if (!simuv_has_begun)
        return __real_pthread_cond_signal(cond);
    if (c->waiting)
        (void)simuv_wake_one(c);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    struct simuv_condition *c = LOCK_STATE(cond);

    if (!simuv_has_begun)
        return __real_pthread_cond_broadcast(cond);
    if (c->waiting)
        (void)simuv_wake_all(c);
    return 0;
}
