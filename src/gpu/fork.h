/* SPDX-License-Identifier: Apache-2.0 */
/* fork.h - a child starts without its parent's memory, locks and place */
#ifndef AQ_GPU_FORK_H
#define AQ_GPU_FORK_H

/* Have the C library call us in children, from now on. */
void gpu_fork_watch(void);

#endif
