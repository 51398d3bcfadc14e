/* sparse.h - tiles of sparse arrays */
#ifndef AQ_GPU_SPARSE_H
#define AQ_GPU_SPARSE_H

/* An array or mipmapped array without memory of its own is gone: so are its tiles. */
void sparse_forget(const void *array);

#endif
