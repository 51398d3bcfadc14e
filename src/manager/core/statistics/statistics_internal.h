/* SPDX-License-Identifier: Apache-2.0 */
/* statistics_internal.h - samples that agents send; inside core */
#ifndef AQ_MANAGER_CORE_STATISTICS_STATISTICS_INTERNAL_H
#define AQ_MANAGER_CORE_STATISTICS_STATISTICS_INTERNAL_H

struct agent_entry;
struct agent_measured;
struct core;
struct measured;
struct msg_statistics;

/* Measured values of an agent and its kernels. */
void statistics_take(struct core *core, struct agent_entry *a, const struct msg_statistics *m);

/* What clients see as last_stat; NULL if nothing was measured. */
char *statistics_text(const struct measured *m);

/* NULL is fine. */
void agent_measured_free(struct agent_measured *m);

#endif
