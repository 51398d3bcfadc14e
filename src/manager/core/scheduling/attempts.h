/* SPDX-License-Identifier: Apache-2.0 */
/* attempts.h - the history of scheduling attempts that is kept with a session */
#ifndef AQ_MANAGER_CORE_SCHEDULING_ATTEMPTS_H
#define AQ_MANAGER_CORE_SCHEDULING_ATTEMPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/retry.h"

struct core;
struct session_entry;

/* The session waits for another reason than 'l->explained'; 'detail' is JSON. */
void attempts_explained(struct core *core, struct session_entry *l, const char *detail);

/* It is being placed; 'choices' is JSON or NULL. */
void attempts_placed(struct core *core, struct session_entry *l, const char *choices);

/* A step of its start has failed; 'error' is JSON {"error": ...} or NULL. */
void attempts_failed(struct core *core, struct session_entry *l, const struct retry_record *record,
                     enum retry_result result, const char *error);

/* May the session write now why it waits, and how often it was looked at? Else it is examined again
 * when it has its turn: 1,000 sessions write each second, so that a takeover with 100,000 that wait
 * does not keep back what users ask for.
 */
bool attempts_have_turn(struct core *core, struct session_entry *l, int64_t now);

/* It waits on: write now and then how often it was looked at. */
void attempts_keep(struct core *core, struct session_entry *l, int64_t now);

/* Prune by age and number. */
void attempts_tick(struct core *core, int64_t now);

#endif
