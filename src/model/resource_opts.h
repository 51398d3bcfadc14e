/* SPDX-License-Identifier: Apache-2.0 */
/* resource_opts.h - how a session is given its resources, beside how much of them
 *
 * The object "resource_opts" of a session, with Backend.AI's names: as the API keeps it, it has
 * {"shmem": "64m" or bytes, "allow_fractional_resource_fragmentation": true or false}, each of
 * which may be missing. Pure.
 */
#ifndef AQ_MODEL_RESOURCE_OPTS_H
#define AQ_MODEL_RESOURCE_OPTS_H

struct json_t;

#define RESOURCE_OPTS_SPLITTING "allow_fractional_resource_fragmentation"

/* May an amount that fits on one device be split over several, and one that does not into unequal
 * parts? UNSAID by the session: as its resource group says; UNSAID by both: no, but an agent whose
 * devices have changed since may do so.
 */
enum splitting { SPLITTING_UNSAID, SPLITTING_FORBIDDEN, SPLITTING_ALLOWED };

/* UNSAID also for what is no truth value, and for a NULL 'opts'. */
enum splitting resource_opts_splitting(const struct json_t *opts);

#endif
