/* SPDX-License-Identifier: Apache-2.0 */
/* shared_alloc_table.h - memory that several processes of one container hold (the agent's side)
 *
 * Who exports memory registers it here, who imports it joins. While the process that
 * registered it holds it, it is charged; then the container is, until nobody holds it any
 * more. Only the agent writes this table, so programs cannot corrupt it: it is told by
 * messages (struct aq_gpu_loan_order) and by the deaths of processes. A request may come
 * twice, as its sender may have missed the answer (gpu/shared_alloc.h). Sizes are in
 * granules. One thread.
 */
#ifndef AQ_GPUHOST_SHARED_ALLOC_TABLE_H
#define AQ_GPUHOST_SHARED_ALLOC_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "aliquot/gpu_region.h"
#include "base/error.h"

struct gpu_shared_allocs;

int gpu_shared_allocs_new(struct gpu_shared_allocs **ret, struct aq_error *err);
void gpu_shared_allocs_free(struct gpu_shared_allocs *table);
AQ_DEFINE_CLEANUP(struct gpu_shared_allocs, gpu_shared_allocs_free)

/* Keep the table in a file from now on, and start with what the file holds. A file of
 * another version, or one that makes no sense, counts as empty.
 */
int gpu_shared_allocs_open_file(struct gpu_shared_allocs *table, const char *path,
                                struct aq_error *err);

/* 'slot' holds 'granules' of a device and is charged for them. -EEXIST: the token was known;
 * now 'slot' holds it, too, and others are charged. -ENOSPC: AQ_GPU_LOANS_MAX are there.
 */
int gpu_shared_allocs_export(struct gpu_shared_allocs *table, uint32_t slot, uint32_t device,
                             uint64_t token, uint64_t granules);

/* Somebody holds it. */
bool gpu_shared_allocs_has(const struct gpu_shared_allocs *table, uint64_t token);

/* 'slot' holds it, too: its device and size. -ENOENT: nobody does. */
int gpu_shared_allocs_join(struct gpu_shared_allocs *table, uint32_t slot, uint64_t token,
                           uint32_t *ret_device, uint64_t *ret_granules);

/* 'slot' holds it no longer. -ENOENT: it did not. */
int gpu_shared_allocs_leave(struct gpu_shared_allocs *table, uint32_t slot, uint64_t token);

/* The process of 'slot' has ended. False = it held no shared memory. */
bool gpu_shared_allocs_end_process(struct gpu_shared_allocs *table, uint32_t slot);

/* Granules of a device: charged to the container; charged to 'slot'; held by 'slot' and
 * charged to others; and by how much the sum over all holders is more than what is
 * charged once.
 */
uint64_t gpu_shared_allocs_charged_to_container(const struct gpu_shared_allocs *table,
                                                uint32_t device);
uint64_t gpu_shared_allocs_charged(const struct gpu_shared_allocs *table, uint32_t slot,
                                   uint32_t device);
uint64_t gpu_shared_allocs_uncharged(const struct gpu_shared_allocs *table, uint32_t slot,
                                     uint32_t device);
uint64_t gpu_shared_allocs_overcounted(const struct gpu_shared_allocs *table, uint32_t device);

#endif
