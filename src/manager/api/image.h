/* image.h - what REST and GraphQL know of images on the nodes */
#ifndef AQ_MANAGER_API_IMAGE_H
#define AQ_MANAGER_API_IMAGE_H

#include <jansson.h>

#include "manager/core/core.h"

/* One object for each digest: {"digest", "names", "architecture",
 * "size_bytes", "labels", "fetched_at", "in_use", "agents"}; of one agent or,
 * with NULL, of all. The caller's array. -ENOMEM.
 */
int image_inventory(const struct core *core, const char *agent_id, json_t **ret);

#endif
