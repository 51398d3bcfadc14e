/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_clock.h - when triggers of pipelines are looked at
 *
 * Memory has only the earliest due time. It is compared with the wall clock each second, so a clock
 * that is set forward is noticed at once, and the due times that it skipped are missed times.
 * Handled due times are in the store (pipeline_fire.h), so a clock that is set back repeats none.
 * Nothing starts while the manager is frozen or being restored. Loop's thread.
 */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_CLOCK_H
#define AQ_MANAGER_PIPELINE_PIPELINE_CLOCK_H

#include "manager/pipeline/pipeline_runs.h"

struct pipeline_clock;

/* Plan all schedules; errors are those of the store. */
int pipeline_clock_open(struct api *api, struct pipeline_runs *runs, struct pipeline_clock **ret,
                        struct aq_error *err);
/* Nothing begins from here on. */
void pipeline_clock_stop(struct pipeline_clock *clock);
/* Once the store has answered. */
void pipeline_clock_free(struct pipeline_clock *clock);

/* Triggers were changed, or a run has ended: look now. */
void pipeline_clock_wake(struct pipeline_clock *clock);

/* Each second. */
void pipeline_clock_tick(struct pipeline_clock *clock);

#endif
