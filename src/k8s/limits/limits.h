/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - holds the containers of pods to their parts of this node's cards
 *
 * One socket for the node, in a folder that containers have read-only. Who asks there is known by
 * its process and that one's cgroup, what it gets by the API server's pods and the kubelet's
 * devices; what it says is only what gpuhost/region_host.h takes. Each container gets a slice;
 * `aliquot-k8s keep` holds their memory while the plugin is replaced. What the driver says of
 * processes is compared with that, and what goes past it is told as Events. Belongs to the loop and
 * its thread.
 */
#ifndef AQ_K8S_LIMITS_LIMITS_H
#define AQ_K8S_LIMITS_LIMITS_H

#include "accelhost/accel.h"
#include "k8s/event.h"
#include "k8s/limits/devices.h"
#include "k8s/pods.h"

struct limits;

struct limits_conf {
    uv_loop_t *loop;
    const struct settings *settings;
    const struct accel *accel;
    const char *folder; /* of the socket */
    /* Pods are others than before. */
    void (*on_pods)(void *data);
    void *data;
};

/* What 'conf' points to is borrowed. -ENOENT and -EINVAL with the setting as field, -errno. */
int limits_new(const struct limits_conf *conf, struct limits **ret, struct aq_error *err);
/* Serve: no other process of this node does. -ENAMETOOLONG. */
int limits_start(struct limits *limits, struct aq_error *err);
/* Slices end with this, but for those that keep has. NULL is fine. */
void limits_free(struct limits *limits);

const struct pods *limits_pods(const struct limits *limits);
struct kube_api *limits_api(const struct limits *limits);
struct events *limits_events(const struct limits *limits);
const char *limits_node(const struct limits *limits);

#endif
