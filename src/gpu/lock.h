/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h - a lock inside one process
 *
 * Held for a few instructions, never across a call into the driver. Giving it
 * is a plain store, so a pair costs one atomic operation; who has to wait
 * gives the processor away. A child after fork starts with it free (fork.c).
 */
#ifndef AQ_GPU_LOCK_H
#define AQ_GPU_LOCK_H

#include <time.h>

struct gpu_lock {
    int taken;
};

static inline void gpu_lock_take(struct gpu_lock *lock)
{
    for (int tries = 0; __atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE); tries++) {
        if (tries >= 64)
            (void)nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    }
}

static inline void gpu_lock_give(struct gpu_lock *lock)
{
    __atomic_store_n(&lock->taken, 0, __ATOMIC_RELEASE);
}

#endif
