/* SPDX-License-Identifier: Apache-2.0 */
/* pod_resources.h - asks the kubelet what the container has that was given devices last */
#ifndef AQ_K8S_PLUGIN_POD_RESOURCES_H
#define AQ_K8S_PLUGIN_POD_RESOURCES_H

#include "k8s/plugin/plugin_internal.h"

struct pod_resources;

/* Ask for the container that has plugin->placement.id, settle the placement by what it has, and
 * call on_settled() once, never from within this call. What is not known, because the kubelet does
 * not answer or has no container with the id, is settled as unknown. -EINVAL for a socket's
 * path that is too long.
 */
int pod_resources_settle(struct plugin_daemon *plugin, void (*on_settled)(void *data), void *data,
                         struct pod_resources **ret, struct aq_error *err);
/* on_settled() will not be called. NULL is fine. */
void pod_resources_cancel(struct pod_resources *asked);

#endif
