/* SPDX-License-Identifier: Apache-2.0 */
/* serving_totals.h - totals of model services, their revisions and tokens over restarts of the manager
 *
 * What was stored is added to what serving_use.h counts once it is read. What has changed is written,
 * each at most once a minute, and at an orderly end; a manager that is killed loses those of a minute.
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_SERVING_SERVING_TOTALS_H
#define AQ_MANAGER_SERVING_SERVING_TOTALS_H

#include "manager/serving/serving_use.h"

struct serving_totals;

/* Begins to read; 'use' is borrowed until serving_totals_free(). */
struct serving_totals *serving_totals_new(struct core *core, struct serving_use *use);
/* Write what has changed; the store finishes it. */
void serving_totals_stop(struct serving_totals *totals);
void serving_totals_free(
    struct serving_totals *totals); /* NULL is fine; after the store's callbacks */

#endif
