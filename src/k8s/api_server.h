/* SPDX-License-Identifier: Apache-2.0 */
/* api_server.h - the API server and the node that the settings name */
#ifndef AQ_K8S_API_SERVER_H
#define AQ_K8S_API_SERVER_H

#include "k8s/settings.h"
#include "kube/api.h"

/* The annotation of a node in which its plugin says its cards, and what of them containers have. */
#define NODE_CARDS "aliquot/cards"

/* By default that of the pod in which this runs: KUBERNETES_SERVICE_HOST and _PORT. -ENOENT with
 * the setting as field if nothing says where it is; errors of kube_api_new().
 */
int api_server_new(uv_loop_t *loop, const struct settings *settings, struct kube_api **ret,
                   struct aq_error *err);

/* The name of this node: of the settings, else NODE_NAME. Borrowed. NULL with 'err' if neither says
 * it, or what no node can be called.
 */
const char *api_server_node(const struct settings *settings, struct aq_error *err);

/* The namespace of this program's own objects: of the settings, else POD_NAMESPACE. Likewise. */
const char *api_server_namespace(const struct settings *settings, struct aq_error *err);

#endif
