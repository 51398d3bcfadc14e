/* SPDX-License-Identifier: Apache-2.0 */
/* image_inventory.h - the images on the nodes, for REST and GraphQL */
#ifndef AQ_MANAGER_IMAGE_IMAGE_INVENTORY_H
#define AQ_MANAGER_IMAGE_IMAGE_INVENTORY_H

#include <jansson.h>

#include "manager/call/api.h"

/* One object for each digest: {"digest", "names", "architecture",
 * "size_bytes", "labels", "fetched_at", "in_use", "agents"}; of one agent or,
 * with NULL, of all, and of registries (image_catalogue_shown()). The array is the caller's
 * (json_decref).
 */
json_t *image_inventory(const struct api *api, const char *agent_id);

#endif
