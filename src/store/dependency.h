/* SPDX-License-Identifier: Apache-2.0 */
/* dependency.h - the rows behind what a session waits for
 *
 * For functions given to store_read().
 */
#ifndef AQ_STORE_DEPENDENCY_H
#define AQ_STORE_DEPENDENCY_H

#include "model/dependency.h"
#include "store/store.h"

/* Set the members of 'd' that are derived from the rows of the session, element or array that it
 * names. For all elements of an array, has_run is set only if the condition is "start". -ENOENT:
 * there is no such row.
 */
int store_read_dependency(struct store_tx *tx, struct session_dependency *d, struct aq_error *err);

#endif
