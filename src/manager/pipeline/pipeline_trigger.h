/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_trigger.h - triggers of pipelines: which there are, and whether they are enabled
 *
 * The triggers of a pipeline are those of its latest version; whether they are enabled belongs to
 * the pipeline's name, so a new version changes when it runs and not whether it does. All are parts
 * of transactions.
 */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_TRIGGER_H
#define AQ_MANAGER_PIPELINE_PIPELINE_TRIGGER_H

#include "manager/pipeline/pipeline_call.h"

#define PIPELINE_CHAIN_MAX 16 /* pipelines, each started by the end of the one before */

/* 'p' has become the latest version of its name: its triggers replace those of the version before;
 * an unchanged one keeps its due times. -EINVAL: pipelines would start each other in a
 * circle, or in a chain of more than PIPELINE_CHAIN_MAX; -E2BIG: too many are enabled.
 */
int pipeline_triggers_keep(struct store_tx *tx, const struct uuid *user_id,
                           const struct pipeline *p, int64_t now_usec, struct arena *arena,
                           struct aq_error *err);

/* Requests: enable and disable the triggers of a pipeline; fill 'triggers'. */
int pipeline_call_enable(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err);
int pipeline_call_disable(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err);

/* The manager disables a pipeline's triggers; its user sees the reason. */
int pipeline_triggers_give_up(struct store_tx *tx, const struct pipeline_trigger_row *row,
                              const char *reason, int64_t now_usec, struct arena *arena,
                              struct aq_error *err);

/* Read the schedule and time zone of a trigger that has them; time_zone_free(). -EINVAL: they are
 * wrong, or tzdata does not have the zone; other errors may pass.
 */
int pipeline_trigger_read(const struct pipeline_trigger_row *row, struct cron *ret_cron,
                          struct time_zone **ret_zone, struct aq_error *err);

/* Set next_usec: of a schedule the first due time after those that have been handled, else 0. Errors
 * as of pipeline_trigger_read().
 */
int pipeline_trigger_plan(struct pipeline_trigger_row *row, struct aq_error *err);

/* At the start of the manager, and when the clock has been set back by more than a day: plan all
 * schedules. tzdata may have changed; and due times that were handled while the clock was ahead by
 * more than that come again, as nothing would run until then.
 */
int pipeline_triggers_plan_all(struct store_tx *tx, int64_t now_usec, struct aq_error *err);

#endif
