/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_params.h - model services as clients of Backend.AI write them, in ours */
#ifndef AQ_MANAGER_SERVING_BACKENDAI_PARAMS_H
#define AQ_MANAGER_SERVING_BACKENDAI_PARAMS_H

#include "manager/serving/serving_params.h"

/* The body of POST /services. */
extern const struct field backendai_service_fields[];

/* Decode the request's body. Texts are in the request's arena; 'resources' is borrowed from the JSON
 * in *ret_tree, which is the caller's (json_decref). -EINVAL names the member as the body has it.
 */
int backendai_params_read(struct request *req, struct serving_params *ret, json_t **ret_tree,
                          struct aq_error *err);

/* The folder of this id or name as an element of model_service_spec.mounts: FOLDER[:TARGET[:ro]].
 * 'options' are {"mount_destination", "type", "permission", "subpath"}. -EINVAL names 'field'.
 */
int backendai_mount_read(const char *folder, const json_t *options, const char *field,
                         struct arena *arena, const char **ret, struct aq_error *err);

#endif
