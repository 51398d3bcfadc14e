/* SPDX-License-Identifier: Apache-2.0 */
/* shared_alloc.h - memory that several processes of a container hold (this process's side)
 *
 * Memory that is exported (cuMemExportToShareableHandle, cuIpcGetMemHandle) and imported
 * elsewhere in the container is charged once. The agent keeps the table of holders
 * (gpuhost/shared_alloc_table.h) and is told by messages (AQ_GPU_LOAN_... of
 * aliquot/gpu_region.h). Here is this process's part of it: one ledger entry for each
 * shared allocation (LEDGER_SHARED) with what this process is charged for it, and as many
 * references as it has objects of it. An object whose ledger entry has a 'link' is charged
 * by its shared allocation.
 *
 * Of each allocation this process is in one of these states; in brackets what it is
 * charged. A request without an answer ('?') may have been executed or not.
 *
 *   none                 export: 0 -> charged, "others pay" -> uncharged, ? -> unacknowledged
 *                        join:   0 -> uncharged, "nobody pays" -> none,
 *                                ? -> pending release [0]
 *   charged [all]        leave:  answered -> none, ? -> pending release [all]
 *   uncharged [0]        leave:  answered -> none, ? -> pending release [0]
 *   unacknowledged [all] export again: 0 -> charged, "others pay" -> uncharged
 *                        leave:  as from charged
 *   pending release      leave again: answered -> none
 *                        export: as from none; what was pending is uncharged after it
 *
 * The agent says "others pay" only while one of them, or the container, is charged, and
 * it is told of a leave before the charge goes. So at any moment somebody is charged for
 * what anybody holds, and a process that dies leaves nothing behind. The same memory is
 * charged twice only while an answer is missing: waiting costs room in the slice, never
 * correctness. Requests without an answer are sent again when the process next allocates,
 * waits for the device or handles shared memory.
 *
 * An allocation is named by a token: for handles that are bytes a hash of them; for file
 * descriptors a number written on the open file description as a read lock at that offset,
 * which affects nobody and travels with the descriptor.
 *
 * All functions may be called from any thread. errno is kept.
 */
#ifndef AQ_GPU_SHARED_ALLOC_H
#define AQ_GPU_SHARED_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/ledger.h"

/* A token for a handle of 'len' bytes. One for a new descriptor, and the size that is
 * in it, in whole granules. Never 0.
 */
uint64_t shared_alloc_hash_token(const void *handle, size_t len);
uint64_t shared_alloc_new_token(uint64_t bytes);
uint64_t shared_alloc_token_bytes(uint64_t token);

/* Write a token on a descriptor; false = it takes none. Read it; 0 = it has none. */
bool shared_alloc_tag_fd(int fd, uint64_t token);
uint64_t shared_alloc_read_fd_tag(int fd);

/* Export an object that this process is charged for: from now on it is charged by the
 * shared allocation 'token', for which others may be charged already, or by the one that
 * it belongs to. Returns which; 0 = it cannot be shared, and nothing has changed.
 */
uint64_t shared_alloc_export(enum ledger_kind kind, uint64_t key, uint64_t token);

/* This process imports memory that is charged to somebody in the container: one object
 * more. False = nobody is charged for it, or the agent does not answer.
 */
bool shared_alloc_join(uint64_t token);

/* This process imports memory that nobody in the container is charged for: charge it here
 * and export it ('token' 0: only charge). '*ret': the object's 'bytes' and 'link'.
 * False = past the slice.
 */
bool shared_alloc_charge(uint64_t token, uint32_t device, uint64_t bytes, struct ledger_entry *ret);

/* It has one object fewer of it. */
void shared_alloc_leave(uint64_t token);

/* An object is freed: give back its charge, or leave its shared allocation. */
void shared_alloc_release(const struct ledger_entry *freed);

/* Send again what the agent has not acknowledged; costs one load if there is nothing of
 * the kind.
 */
extern bool shared_alloc_has_pending;
void shared_alloc_sync_now(void);
static inline void shared_alloc_sync(void)
{
    if (__builtin_expect(__atomic_load_n(&shared_alloc_has_pending, __ATOMIC_RELAXED), 0))
        shared_alloc_sync_now();
}

/* Bytes that this process holds and others are charged for. */
uint64_t shared_alloc_uncharged(uint32_t device);

/* In the child after fork. */
void shared_alloc_after_fork(void);

#endif
