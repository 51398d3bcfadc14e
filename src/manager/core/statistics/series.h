/* SPDX-License-Identifier: Apache-2.0 */
/* series.h - rows of what was used, written to the store each quarter of an hour */
#ifndef AQ_MANAGER_CORE_STATISTICS_SERIES_H
#define AQ_MANAGER_CORE_STATISTICS_SERIES_H

struct aq_error;
struct core;
struct kernel;
struct measured;

/* Sums of kernels that live on, from before this process. */
int series_restore(struct core *core, struct aq_error *err);

/* Each second. */
void series_tick(struct core *core);

/* It ends: what was gathered becomes its last row. */
void series_end_kernel(struct core *core, const struct kernel *k, struct measured *m);

/* Queue all that was gathered; then the store is flushed. */
void series_stop(struct core *core);

/* What was gathered, at the end; series_stop() comes before. */
void series_free(struct core *core);

#endif
