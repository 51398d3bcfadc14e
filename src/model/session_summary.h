/* SPDX-License-Identifier: Apache-2.0 */
/* session_summary.h - usage of an attempt of a batch session compared with its request, and a
 * suggestion for the next request
 *
 * It is computed from the stored statistics of the kernels (measured_write()). A program that ended
 * before its agent measured it has none. Pure.
 */
#ifndef AQ_MODEL_SESSION_SUMMARY_H
#define AQ_MODEL_SESSION_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/jsonw.h"
#include "model/measured.h"
#include "model/slot.h"

/* Zeroed = no kernels. Times are summed over all kernels; memory is the maximum of any kernel,
 * because each kernel requests its own.
 */
struct session_summary {
    int64_t wall_usec;
    bool was_oom; /* it ran out of memory */
    size_t kernel_count;
    bool has_cpu, has_mem, has_gpu;
    double cpu_sec, cpu_asked;   /* seconds of a core; cores */
    int64_t mem_peak, mem_asked; /* bytes; asked 0 = nothing */
    double gpu_sec;              /* seconds of a busy GPU */
    int64_t gpu_mem_peak, gpu_mem_asked;
};

/* Add a kernel: its statistics as JSON (NULL = none) and its request. wall_usec must be set. */
void session_summary_add(struct session_summary *s, const char *statistics,
                         const struct slots *requested);

/* The same for a kernel that is being measured; NULL = not measured. */
void session_summary_add_measured(struct session_summary *s, const struct measured *measured,
                                  const struct slots *requested);

/* Memory that a kernel should request next: the peak plus 20 %, rounded up, at most its request;
 * twice the request if it ran out of memory. 0 = unknown.
 */
int64_t session_summary_suggest_mem(const struct session_summary *s);

/* Whole cores that a kernel should request next, computed likewise. */
int64_t session_summary_suggest_cpu(const struct session_summary *s);

/* {"wall_sec", "cpu_sec", "cpu_asked", "cpu_efficiency", "mem_peak", "mem_asked", "gpu_sec",
 * "gpu_mem_peak", "gpu_mem_asked", "suggested": {"cpu", "mem"}}; null where not measured.
 */
void session_summary_write(const struct session_summary *s, struct jsonw *w);

#endif
