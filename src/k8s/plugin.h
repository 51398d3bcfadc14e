/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - the device plugin: memory and compute of this node's GPUs for the kubelet
 *
 * Two resources, each with a socket of its own in the kubelet's folder, which it knows by
 * registration. A kubelet that starts removes all sockets there and makes its own: whenever one of
 * the three is made again, what has to be is done again. Everything belongs to the thread of the
 * libuv loop.
 */
#ifndef AQ_K8S_PLUGIN_H
#define AQ_K8S_PLUGIN_H

#include <uv.h>

#include "base/error.h"
#include "k8s/settings.h"

struct plugin_daemon;

/* Look for cards, serve, and register as soon as there is a kubelet. 'settings' is borrowed.
 * -ENOENT without the kubelet's folder or the preload library, -errno.
 */
int plugin_daemon_new(uv_loop_t *loop, const struct settings *settings, struct plugin_daemon **ret,
                      struct aq_error *err);
/* Its handles are gone after the loop has run once more. NULL is fine. */
void plugin_daemon_free(struct plugin_daemon *plugin);

#endif
