/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - memory pools: charged by what they have reserved, not by what is in use
 *
 * A pool keeps memory that its users have freed, so only the driver knows how
 * much it holds; the charge follows CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT after
 * every call that may change it.
 */
#ifndef AQ_GPU_POOL_H
#define AQ_GPU_POOL_H

#include "gpu/hooks.h"

/* cuMemFree of a pointer that is no plain allocation: from a pool, or unknown. */
CUresult pool_free(fn_cuMemFree_v2 *real, CUdeviceptr pointer);

/* A synchronising call has returned: pools may have let go of memory. */
void pool_settle(void);

#endif
