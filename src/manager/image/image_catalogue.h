/* SPDX-License-Identifier: Apache-2.0 */
/* image_catalogue.h - images that registries have, as their last scans found them
 *
 * One setting in the store, {"REGISTRY": [image, ...]} with images as registry_scan() gives
 * them, and a copy in memory. A registry's images are listed for as long as the configuration
 * tree has the registry.
 */
#ifndef AQ_MANAGER_IMAGE_IMAGE_CATALOGUE_H
#define AQ_MANAGER_IMAGE_IMAGE_CATALOGUE_H

#include "manager/call/api.h"

int image_catalogue_load(struct api *api, struct aq_error *err);

/* Those of registries that the tree has; the caller's (json_decref). */
json_t *image_catalogue_shown(const struct api *api);

/* On a thread of the store: those of the registries in 'found' are as 'found' has them from now
 * on, those of registries that are not in the tree go. *ret_all is for
 * image_catalogue_replace(), once the transaction is durable.
 */
int image_catalogue_write(struct store_tx *tx, const json_t *found, const struct audit_who *by,
                          json_t **ret_all, struct aq_error *err);

/* Takes 'all'. */
void image_catalogue_replace(struct api *api, json_t *all);

#endif
