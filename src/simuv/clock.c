/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the C library's clocks and sleep, over simulated time
 *
 * Before simuv_begin() these ask the system, by its number, as the names are taken. 'time' and its
 * like stand for the C library's also where OpenSSL calls them: certificates have simulated dates.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "simuv/simuv_internal.h"

#define WALL_AHEAD_USEC (INT64_C(1767571200) * SIMUV_USEC_PER_SEC) /* begins on 2026-01-05 */

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_gettimeofday(struct timeval *ret, void *zone);
time_t __wrap_time(time_t *ret);
int __wrap_usleep(useconds_t usec);
unsigned __wrap_sleep(unsigned seconds);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_clock_nanosleep(clockid_t id, int flags, const struct timespec *time,
                           struct timespec *left);

int64_t simuv_wall_ahead_usec(void)
{
    return WALL_AHEAD_USEC + simuv_machine_here()->wall_offset;
}

int64_t simuv_get_wall_usec(simuv_host host)
{
    return simuv_now + WALL_AHEAD_USEC + simuv_machine_of(host)->wall_offset;
}

static void clock_from_usec(struct timespec *ret, int64_t usec)
{
    ret->tv_sec = (time_t)(usec / SIMUV_USEC_PER_SEC);
    ret->tv_nsec = (long)(usec % SIMUV_USEC_PER_SEC * 1000);
}

/* Times of processors stand still, as simulated time does while code runs. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    if (!simuv_has_begun)
        return (int)syscall(SYS_clock_gettime, id, ret);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
        clock_from_usec(ret, simuv_now + simuv_wall_ahead_usec());
    else if (id == CLOCK_THREAD_CPUTIME_ID || id == CLOCK_PROCESS_CPUTIME_ID)
        *ret = (struct timespec){ 0 };
    else
        clock_from_usec(ret, simuv_now);
    return 0;
}

int __wrap_gettimeofday(struct timeval *ret, void *zone)
{
    struct timespec now;

    (void)zone;
    (void)__wrap_clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
    return 0;
}

time_t __wrap_time(time_t *ret)
{
    struct timespec now;

    (void)__wrap_clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}

int64_t simuv_real_usec(void)
{
    struct timespec now = { 0 };

    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SIMUV_USEC_PER_SEC + now.tv_nsec / 1000;
}

/* ---- sleep ---- */

static void clock_sleep_until(int64_t usec)
{
    (void)simuv_wait(NULL, usec, "sleep");
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    if (!simuv_has_begun)
        return (int)syscall(SYS_nanosleep, time, left);
    clock_sleep_until(simuv_now + (int64_t)time->tv_sec * SIMUV_USEC_PER_SEC
                      + (time->tv_nsec + 999) / 1000);
    return 0;
}

int __wrap_usleep(useconds_t usec)
{
    struct timespec time;

    clock_from_usec(&time, usec);
    return __wrap_nanosleep(&time, NULL);
}

unsigned __wrap_sleep(unsigned seconds)
{
    (void)__wrap_nanosleep(&(struct timespec){ .tv_sec = (time_t)seconds }, NULL);
    return 0;
}

int __wrap_clock_nanosleep(clockid_t id, int flags, const struct timespec *time,
                           struct timespec *left)
{
    int64_t usec = (int64_t)time->tv_sec * SIMUV_USEC_PER_SEC + (time->tv_nsec + 999) / 1000;

    if (!simuv_has_begun)
        return syscall(SYS_clock_nanosleep, id, flags, time, left) < 0 ? errno : 0;
    if (!(flags & TIMER_ABSTIME))
        usec += simuv_now;
    else if (id == CLOCK_REALTIME)
        usec -= simuv_wall_ahead_usec();
    clock_sleep_until(usec);
    return 0;
}

uint64_t uv_hrtime(void)
{
    return (uint64_t)simuv_now * 1000;
}

void uv_sleep(unsigned msec)
{
    (void)__wrap_usleep(msec * 1000);
}
