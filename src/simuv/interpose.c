/* SPDX-License-Identifier: Apache-2.0 */
/* interpose.c - the names of the C library that shared libraries, too, find here
 *
 * Left out of a static program, in which --wrap replaces them in all libraries.
 */
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_gettimeofday(struct timeval *ret, void *zone);
time_t __wrap_time(time_t *ret);
ssize_t __wrap_getrandom(void *into, size_t len, unsigned flags);
int __wrap_getentropy(void *into, size_t len);

EXPORT int clock_gettime(clockid_t id, struct timespec *ret)
{
    return __wrap_clock_gettime(id, ret);
}

EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    return __wrap_gettimeofday(ret, zone);
}

EXPORT time_t time(time_t *ret)
{
    return __wrap_time(ret);
}

EXPORT ssize_t getrandom(void *into, size_t len, unsigned flags)
{
    return __wrap_getrandom(into, len, flags);
}

EXPORT int getentropy(void *into, size_t len)
{
    return __wrap_getentropy(into, len);
}
