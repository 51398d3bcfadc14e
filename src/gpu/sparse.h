/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.h - tiles of sparse arrays */
#ifndef AQ_GPU_SPARSE_H
#define AQ_GPU_SPARSE_H

/* An array or mipmapped array without memory of its own was destroyed: drop its tiles. */
void sparse_drop_array(const void *array);

#endif
