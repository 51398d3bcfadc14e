/* SPDX-License-Identifier: Apache-2.0 */
/* resource.c - one resource: its service for the kubelet, and the registration */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "k8s/plugin/plugin_internal.h"
#include "kube/deviceplugin.pb-c.h"

#define API_VERSION "v1beta1"
#define REGISTER_MSEC 15000 /* the kubelet gives itself 10 s to call back */

struct watcher {
    struct list link;
    struct grpc_call *call;
};

/* ---- ListAndWatch ---- */

/* The whole list, in the arena. */
static const ProtobufCMessage *resource_list(const struct resource *resource, struct arena *arena)
{
    const struct cards *cards = &resource->plugin->placement.cards;
    V1beta1__ListAndWatchResponse *list = arena_alloc(arena, sizeof(*list));
    size_t count = 0;

    for (size_t i = 0; i < cards->count; i++)
        count += cards->items[i].units[resource->kind];
    v1beta1__list_and_watch_response__init(list);
    list->devices = arena_array(arena, count + 1, sizeof(*list->devices));
    for (size_t i = 0; i < cards->count; i++) {
        const struct card *card = &cards->items[i];
        size_t units = card->units[resource->kind];
        V1beta1__Device *devices = arena_array(arena, units + 1, sizeof(*devices));
        char(*ids)[KUBELET_ID_MAX + 1] = arena_array(arena, units + 1, sizeof(*ids));
        V1beta1__NUMANode *node = arena_alloc(arena, sizeof(*node));
        V1beta1__TopologyInfo *topology = arena_alloc(arena, sizeof(*topology));
        V1beta1__NUMANode **nodes = arena_alloc(arena, sizeof(*nodes));

        v1beta1__numanode__init(node);
        v1beta1__topology_info__init(topology);
        node->id = card->numa_node;
        nodes[0] = node;
        topology->nodes = nodes;
        topology->n_nodes = 1;
        for (uint32_t unit = 0; unit < units; unit++) {
            v1beta1__device__init(&devices[unit]);
            device_id_write(card->id, unit, ids[unit]);
            devices[unit].id = ids[unit];
            devices[unit].health = (char *)(uintptr_t)(card->is_healthy ? "Healthy" : "Unhealthy");
            devices[unit].topology = card->numa_node >= 0 ? topology : NULL;
            list->devices[list->n_devices++] = &devices[unit];
        }
    }
    return &list->base;
}

/* A connection that ends by this ends all of its watchers. */
static void resource_send(const struct resource *resource, const ProtobufCMessage *list)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *link;

    list_cursor_begin(&cursor, &resource->watchers);
    while ((link = list_cursor_next(&cursor)))
        grpc_call_send(LIST_ENTRY(link, struct watcher, link)->call, list);
}

void resource_tell(const struct resource *resource)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const ProtobufCMessage *list = list_is_empty(&resource->watchers)
                                       ? NULL
                                       : resource_list(resource, &arena);

    if (list)
        resource_send(resource, list);
}

static void watcher_on_gone(void *data)
{
    struct watcher *watcher = data;

    list_remove(&watcher->link);
    free(watcher);
}

static void resource_on_watch(void *data, struct grpc_call *call, const ProtobufCMessage *request)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct resource *resource = data;
    struct watcher *watcher = aq_alloc(sizeof(*watcher));
    const ProtobufCMessage *list = resource_list(resource, &arena);

    (void)request;
    watcher->call = call;
    list_add(&resource->watchers, &watcher->link);
    grpc_call_on_gone(call, watcher_on_gone, watcher);
    grpc_call_send(call, list);
}

/* ---- the other calls ---- */

static void resource_on_options(void *data, struct grpc_call *call, const ProtobufCMessage *request)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    (void)data;
    (void)request;
    options.get_preferred_allocation_available = true;
    grpc_call_reply(call, &options.base);
}

enum grpc_status resource_status(const struct aq_error *err)
{
    return err->code == EINVAL ? GRPC_INVALID_ARGUMENT : GRPC_FAILED_PRECONDITION;
}

static void resource_on_preferred(void *data, struct grpc_call *call,
                                  const ProtobufCMessage *request)
{
    resource_prefer(data, call, request);
}

static void resource_on_allocate(void *data, struct grpc_call *call,
                                 const ProtobufCMessage *request)
{
    resource_allocate(data, call, request);
}

#define METHOD(name) "/" API_VERSION ".DevicePlugin/" name

static const struct grpc_method methods[] = {
    { METHOD("GetDevicePluginOptions"), &v1beta1__empty__descriptor, resource_on_options },
    { METHOD("ListAndWatch"), &v1beta1__empty__descriptor, resource_on_watch },
    { METHOD("GetPreferredAllocation"), &v1beta1__preferred_allocation_request__descriptor,
      resource_on_preferred },
    { METHOD("Allocate"), &v1beta1__allocate_request__descriptor, resource_on_allocate },
    { .path = NULL },
};

/* ---- sockets ---- */

/* Zeroed if there is none. */
static struct socket_mark socket_mark_look(const char *path)
{
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return (struct socket_mark){ .inode = 0 };
    return (struct socket_mark){ st.st_dev, st.st_ino, st.st_ctim };
}

static bool socket_mark_is_same(const struct socket_mark *a, const struct socket_mark *b)
{
    return a->device == b->device && a->inode == b->inode && a->changed.tv_sec == b->changed.tv_sec
           && a->changed.tv_nsec == b->changed.tv_nsec;
}

static int resource_serve(struct resource *resource, struct aq_error *err)
{
    const struct grpc_server_conf conf = {
        .loop = resource->plugin->loop, .path = resource->path, .methods = methods, .data = resource
    };
    int r;

    grpc_server_free(AQ_TAKE(resource->server));
    grpc_request_cancel(AQ_TAKE(resource->registering));
    resource->kubelet = (struct socket_mark){ .inode = 0 };
    r = grpc_server_new(&conf, &resource->server, err);
    if (r == 0)
        resource->socket = socket_mark_look(resource->path);
    return r;
}

static void resource_on_registered(void *data, const ProtobufCMessage *answer,
                                   const struct aq_error *err)
{
    struct resource *resource = data;

    resource->registering = NULL;
    if (answer) {
        log_info("the kubelet knows %s", resource->name);
        return;
    }
    log_warning("the kubelet does not take %s: %s", resource->name, err->text);
    resource->kubelet = (struct socket_mark){ .inode = 0 };
    plugin_try_again(resource->plugin);
}

/* While this is under way, the kubelet calls back. */
static int resource_register(struct resource *resource, const struct socket_mark *kubelet,
                             struct aq_error *err)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    V1beta1__RegisterRequest message = V1BETA1__REGISTER_REQUEST__INIT;
    const struct grpc_request_conf conf = { .socket = resource->plugin->kubelet_path,
                                            .method = "/" API_VERSION ".Registration/Register",
                                            .message = &message.base,
                                            .answer = &v1beta1__empty__descriptor,
                                            .msec = REGISTER_MSEC,
                                            .on_done = resource_on_registered,
                                            .data = resource };

    grpc_request_cancel(AQ_TAKE(resource->registering));
    options.get_preferred_allocation_available = true;
    message.version = (char *)(uintptr_t)API_VERSION;
    message.endpoint = (char *)(uintptr_t)resource->socket_name;
    message.resource_name = (char *)(uintptr_t)resource->name;
    message.options = &options;
    resource->kubelet = *kubelet;
    /* a kubelet that has started asks for its containers from the first again */
    plugin_forget_last(resource->plugin);
    return grpc_request_send(resource->plugin->loop, &conf, &resource->registering, err);
}

int resource_check(struct resource *resource, struct aq_error *err)
{
    struct socket_mark own = socket_mark_look(resource->path);
    struct socket_mark kubelet;
    int r = 0;

    if (!resource->server || !socket_mark_is_same(&own, &resource->socket))
        r = resource_serve(resource, err);
    kubelet = socket_mark_look(resource->plugin->kubelet_path);
    if (r < 0 || !kubelet.inode || socket_mark_is_same(&kubelet, &resource->kubelet))
        return r;
    return resource_register(resource, &kubelet, err);
}

void resource_init(struct plugin_daemon *plugin, enum resource_kind kind, const char *name,
                   const char *socket_name)
{
    struct resource *resource = &plugin->resources[kind];

    *resource = (struct resource){
        .plugin = plugin, .kind = kind, .name = name, .socket_name = socket_name
    };
    list_init(&resource->watchers);
    resource->path = aq_format("%s/%s", plugin->settings->kubelet, socket_name);
}

void resource_done(struct resource *resource)
{
    grpc_request_cancel(AQ_TAKE(resource->registering));
    grpc_server_free(AQ_TAKE(resource->server));
    free(AQ_TAKE(resource->path));
}
