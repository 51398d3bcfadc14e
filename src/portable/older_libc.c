/* SPDX-License-Identifier: Apache-2.0 */
/* older_libc.c - lets a program or plugin run with C libraries from glibc 2.28 on
 *
 * What loads a vendor's driver must use the machine's own C library. Linked
 * with a newer one it would ask for that one's versions of these symbols; here
 * they are led to their first version, which every later library has, or are
 * done without it. In those libraries some of them are in libdl and
 * libpthread, so both have to be linked.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "portable/older_libc.h"

/* ---- libdl ---- */

extern void *first_dlopen(const char *path, int flags);
extern void *first_dlsym(void *handle, const char *name);
extern int first_dlclose(void *handle);
extern char *first_dlerror(void);
extern int first_dlinfo(void *handle, int request, void *info);
FIRST(dlopen);
FIRST(dlsym);
FIRST(dlclose);
FIRST(dlerror);
FIRST_AT(dlinfo, DLINFO_VERSION);

HIDDEN void *dlopen(const char *path, int flags)
{
    return first_dlopen(path, flags);
}

HIDDEN void *dlsym(void *handle, const char *name)
{
    return first_dlsym(handle, name);
}

HIDDEN int dlclose(void *handle)
{
    return first_dlclose(handle);
}

HIDDEN char *dlerror(void)
{
    return first_dlerror();
}

HIDDEN int dlinfo(void *handle, int request, void *info)
{
    return first_dlinfo(handle, request, info);
}

/* ---- libpthread, for the C++ library ---- */

extern int first_pthread_once(pthread_once_t *once, void (*fn)(void));
extern int first___pthread_key_create(pthread_key_t *key, void (*destroy)(void *value));
extern int __pthread_key_create(pthread_key_t *key, void (*destroy)(void *value));
FIRST(pthread_once);
FIRST(__pthread_key_create);

HIDDEN int pthread_once(pthread_once_t *once, void (*fn)(void))
{
    return first_pthread_once(once, fn);
}

HIDDEN int __pthread_key_create(pthread_key_t *key, void (*destroy)(void *value))
{
    return first___pthread_key_create(key, destroy);
}

/* ---- libc ---- */

HIDDEN char __libc_single_threaded; /* false is always right */

HIDDEN int fstat64(int fd, struct stat64 *ret)
{
    return (int)syscall(SYS_newfstatat, fd, "", ret, AT_EMPTY_PATH);
}

HIDDEN int stat64(const char *path, struct stat64 *ret)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret, 0);
}

HIDDEN int lstat64(const char *path, struct stat64 *ret)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret, AT_SYMLINK_NOFOLLOW);
}

HIDDEN uint32_t arc4random(void)
{
    uint32_t value;

    if (getentropy(&value, sizeof(value)) < 0)
        abort();
    return value;
}
