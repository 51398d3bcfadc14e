/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_identity.h - hashes by which a task is known to be the same as before */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_IDENTITY_H
#define AQ_MANAGER_PIPELINE_PIPELINE_IDENTITY_H

#include "pipeline/pipeline.h"
#include "store/pipeline.h"

/* Of a text. */
void pipeline_hash(const char *text, size_t len, char ret[PIPELINE_HASH_MAX]);

/* Of each node: of what it does, and of the nodes that it needs. Of the arena. NULL with -EINVAL if
 * the nodes have more than PIPELINE_NODES_BYTES_MAX with the values of parameters.
 */
const char **pipeline_identify_nodes(const struct pipeline *p, const json_t *parameters,
                                     struct arena *arena, struct aq_error *err);

/* Of the values of other tasks that a node is given, of the arena; NULL = it is given none. */
const char *pipeline_hash_inputs(const struct pipeline_context *context, struct arena *arena);

#endif
