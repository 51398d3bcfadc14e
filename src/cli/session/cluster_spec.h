/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_spec.h - the kernels of a new session: --cluster, --cluster-size, --cluster-mode, --role
 */
#ifndef AQ_CLI_SESSION_CLUSTER_SPEC_H
#define AQ_CLI_SESSION_CLUSTER_SPEC_H

#include <jansson.h>

#include "cli/session/session_spec.h"

/* How many kernels the options ask for, at most; 1 if they say nothing or cannot be read. */
int64_t cluster_spec_count(const struct spec_opts *spec);

/* Add what the options say to the body of a request that has everything else: a role has the
 * image, command, amounts and variables of the session where it names none of its own. -EINVAL, of
 * kind usage.
 */
int cluster_spec_to_json(const struct spec_opts *spec, json_t *body, struct aq_error *err);

#endif
