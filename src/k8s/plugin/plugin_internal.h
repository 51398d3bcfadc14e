/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_internal.h - inside the device plugin: plugin.c, resource.c, preference.c, allocate.c */
#ifndef AQ_K8S_PLUGIN_PLUGIN_INTERNAL_H
#define AQ_K8S_PLUGIN_PLUGIN_INTERNAL_H

#include <sys/stat.h>

#include "accelhost/accel.h"
#include "base/list.h"
#include "k8s/limits/limits.h"
#include "k8s/plugin/node_files.h"
#include "k8s/plugin/placement.h"
#include "k8s/plugin/wanted.h"
#include "k8s/settings.h"
#include "kube/grpc_client.h"
#include "kube/grpc_server.h"

/* Which socket it is: another one has been made if it differs. Zeroed = none. */
struct socket_mark {
    dev_t device;
    ino_t inode;
    struct timespec changed; /* inodes are used again */
};

struct resource {
    struct plugin_daemon *plugin;
    enum resource_kind kind;
    const char *name, *socket_name;
    char *path; /* of its socket */
    struct grpc_server *server;
    struct socket_mark socket;
    struct list watchers; /* ListAndWatch calls */
    struct grpc_request *registering;
    struct socket_mark kubelet; /* that it is, or is being, registered with */
};

struct node_note;

struct plugin_daemon {
    uv_loop_t *loop;
    const struct settings *settings;
    struct accel *accel;
    struct limits *limits;
    struct placement placement;
    struct wanted wanted;
    struct node_note *note;
    struct node_files files;
    struct resource resources[RESOURCE_KINDS];
    char *kubelet_path; /* of its socket */
    uv_fs_event_t watch;
    uv_timer_t again; /* something failed: look again */
    unsigned again_msec;
    int lock;         /* -1 = another plugin serves this node, still */
    int open_handles; /* the last that is closed frees all this */
};

/* ---- resource.c ---- */

/* What the kubelet calls a resource and where; nothing is served yet. */
void resource_init(struct plugin_daemon *plugin, enum resource_kind kind, const char *name,
                   const char *socket_name);
void resource_done(struct resource *resource);

/* Serve if the socket is not there (any more), register if this kubelet does not know us. -errno if
 * it is to be tried again.
 */
int resource_check(struct resource *resource, struct aq_error *err);

/* Tell the kubelet of the cards as they are now. */
void resource_tell(const struct resource *resource);

/* ---- preference.c ---- */

/* Answer a GetPreferredAllocation of this resource. */
void resource_prefer(struct resource *resource, struct grpc_call *call,
                     const ProtobufCMessage *request);

/* ---- allocate.c ---- */

/* Answer an Allocate of this resource. */
void resource_allocate(struct resource *resource, struct grpc_call *call,
                       const ProtobufCMessage *request);

/* The status of an answer that is an error of placement_*(). */
enum grpc_status resource_status(const struct aq_error *err);

/* ---- plugin.c ---- */

/* Something is to be tried again, later each time. */
void plugin_try_again(struct plugin_daemon *plugin);

/* What the kubelet asks for next is of another container than the last. */
void plugin_forget_last(struct plugin_daemon *plugin);

#endif
