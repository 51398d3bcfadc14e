/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_fire.h - one schedule that is due, or the end of one run, becomes runs
 *
 * 1. pipeline_fire_find(), a transaction that reads: the earliest end, else the earliest due time.
 * 2. pipeline_fire_check(), on the loop's thread: whether its owner may still make sessions.
 * 3. pipeline_fire_write(), a transaction: the run, and that this due time or end was handled. So
 *    a crash at any point starts it once.
 */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_FIRE_H
#define AQ_MANAGER_PIPELINE_PIPELINE_FIRE_H

#include "manager/pipeline/pipeline_call.h"

struct pipeline_clock;

struct pipeline_fire {
    struct api *api;
    struct pipeline_clock *clock; /* whose it is */
    struct arena arena;
    int64_t now_usec;
    bool is_found, is_end;         /* is_end: of 'ended', else of a schedule */
    struct pipeline_run_row ended; /* whose end it is */
    struct pipeline_trigger_list triggers;
    const char **refusals;         /* of each trigger: why its owner may not; NULL = may */
    struct pipeline_run_row *runs; /* new and cancelled ones, to be examined */
    size_t run_count;
    int64_t next_usec; /* when there is more to do; 0 = never */
};

/* store_tx_fn of struct pipeline_fire. */
int pipeline_fire_find(struct store_tx *tx, void *data, struct aq_error *err);
int pipeline_fire_write(struct store_tx *tx, void *data, struct aq_error *err);

void pipeline_fire_check(struct pipeline_fire *fire);

#endif
