/* SPDX-License-Identifier: Apache-2.0 */
/* usage_sums.h - what a container was given and used, and sums of that, in the words of
 * Backend.AI's reports
 *
 * Any thread: nothing is shared.
 */
#ifndef AQ_MANAGER_USAGE_USAGE_SUMS_H
#define AQ_MANAGER_USAGE_USAGE_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/jsonw.h"
#include "model/slot.h"

#define USAGE_KINDS_MAX 8

/* Zero-initialise. Amounts of bytes are whole, processors and accelerators may be parts. */
struct usage_sums {
    double cpu_allocated, cpu_used, gpu_allocated;
    int64_t mem_allocated, mem_used, shared_memory, disk_used, io_read, io_write, gpu_mem_allocated;
    const char *kinds[USAGE_KINDS_MAX]; /* of accelerators: a slot of each */
    size_t kind_count;
};

/* What it was given; once for each container. */
void usage_sums_give(struct usage_sums *sums, const struct slots *given);
/* What it used, as far as it has ended: JSON of its last statistics and of what was asked for;
 * either may be NULL.
 */
void usage_sums_use(struct usage_sums *sums, const char *last_stat, const char *spec_text);
void usage_sums_add(struct usage_sums *to, const struct usage_sums *from);
/* Its members, whose names begin with 'prefix'. */
void usage_sums_write(const struct usage_sums *sums, const char *prefix, struct jsonw *w);

#endif
