/* SPDX-License-Identifier: Apache-2.0 */
/* session_summary.h - what an attempt of a batch session used of what it asked for, and what to ask
 * for next time
 *
 * From the statistics of its kernels, as they are kept with these (measured_write()). A program that
 * ends before its agent measured it has none. Pure.
 */
#ifndef AQ_MODEL_SESSION_SUMMARY_H
#define AQ_MODEL_SESSION_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/jsonw.h"
#include "model/measured.h"
#include "model/slot.h"

/* Zeroed: no kernel. Times of all kernels together; memory is that of the kernel which used most, as
 * each kernel asks for its own.
 */
struct session_summary {
    int64_t wall_usec;
    bool was_oom; /* it ended for want of memory */
    size_t kernel_count;
    bool has_cpu, has_mem, has_gpu;
    double cpu_sec, cpu_asked;   /* seconds of a core; cores */
    int64_t mem_peak, mem_asked; /* bytes; asked 0 = nothing */
    double gpu_sec;              /* seconds of a busy GPU */
    int64_t gpu_mem_peak, gpu_mem_asked;
};

/* A kernel: its statistics as JSON (NULL = none) and its request. wall_usec is set before. */
void session_summary_add(struct session_summary *s, const char *statistics,
                         const struct slots *requested);

/* The same of one that is measured now; NULL = it is not. */
void session_summary_add_measured(struct session_summary *s, const struct measured *measured,
                                  const struct slots *requested);

/* What a kernel should ask for: the peak and a fifth, rounded up, at most what it asked for; twice
 * that after an end for want of memory. 0 = not known.
 */
int64_t session_summary_suggest_mem(const struct session_summary *s);

/* Whole cores; the same. */
int64_t session_summary_suggest_cpu(const struct session_summary *s);

/* {"wall_sec", "cpu_sec", "cpu_asked", "cpu_efficiency", "mem_peak", "mem_asked", "gpu_sec",
 * "gpu_mem_peak", "gpu_mem_asked", "suggested": {"cpu", "mem"}}; null where not measured.
 */
void session_summary_write(const struct session_summary *s, struct jsonw *w);

#endif
