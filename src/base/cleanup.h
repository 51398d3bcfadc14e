/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup.h - scope-bound release and visible ownership moves
 *
 * AQ_CLEANUP(fnp) runs fnp(&variable) when the variable leaves its scope. The
 * helper 'foo_freep' for 'foo_free' is made by AQ_DEFINE_CLEANUP beside the
 * type. AQ_TAKE moves a pointer out of such a variable, AQ_TAKE_FD a
 * descriptor.
 */
#ifndef AQ_BASE_CLEANUP_H
#define AQ_BASE_CLEANUP_H

#include <stddef.h>
#include <stdlib.h>

#define AQ_CLEANUP(fnp) __attribute__((cleanup(fnp)))
#define AQ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define AQ_MUST_CHECK __attribute__((warn_unused_result))

/* A function that reads untrusted bytes. tests/layers/ checks
 * that each has a line in tests/fuzz/TARGETS.
 */
#define AQ_UNTRUSTED

#define AQ_DEFINE_CLEANUP(type, fn)         \
    static inline void fn##p(type **object) \
    {                                       \
        if (*object)                        \
            fn(*object);                    \
    }

#define AQ_TAKE(pointer)                           \
    __extension__({                                \
        __typeof__(pointer) aq_taken_ = (pointer); \
        (pointer) = NULL;                          \
        aq_taken_;                                 \
    })

#define AQ_TAKE_FD(fd)        \
    __extension__({           \
        int aq_taken_ = (fd); \
        (fd) = -1;            \
        aq_taken_;            \
    })

#define AQ_SWAP(a, b)                    \
    do {                                 \
        __typeof__(a) aq_swapped_ = (a); \
        (a) = (b);                       \
        (b) = aq_swapped_;               \
    } while (0)

#define AQ_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define AQ_CONTAINER_OF(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define AQ_MIN(a, b) ((a) < (b) ? (a) : (b))
#define AQ_MAX(a, b) ((a) > (b) ? (a) : (b))

/* free() the pointer that 'pointer' points to. */
static inline void aq_freep(void *pointer)
{
    free(*(void **)pointer);
}

/* Close *fd if it is not negative; errno stays. */
void aq_closep(int *fd);

#endif
