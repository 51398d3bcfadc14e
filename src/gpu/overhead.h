/* SPDX-License-Identifier: Apache-2.0 */
/* overhead.h - memory that the driver takes for itself: contexts, code, heaps
 *
 * No call says how much it is. The driver's process list does: what it shows
 * for this process, less what the ledger knows, is overhead and is charged to
 * the slice. Looked up where overhead changes, never where a program allocates.
 */
#ifndef AQ_GPU_OVERHEAD_H
#define AQ_GPU_OVERHEAD_H

#include <stdbool.h>

#include "gpu/cuda.h"

/* Read the list again; false = it does not fit into the slice, and the charge stayed.
 * Without NVML, or where its list does not show this process, nothing changes.
 */
bool overhead_follow(int device);

/* After a call that made a context or loaded code: true = its result is kept, as nothing
 * was made or what was made fits; else the caller undoes it.
 */
static inline bool overhead_stands(CUresult result, int device)
{
    return result != CUDA_SUCCESS || device < 0 || overhead_follow(device);
}

#define OVERHEAD_UNDONE(undo) ((void)(undo), CUDA_ERROR_OUT_OF_MEMORY)

#endif
