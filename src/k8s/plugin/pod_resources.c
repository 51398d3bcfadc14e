/* SPDX-License-Identifier: Apache-2.0 */
/* pod_resources.c - see pod_resources.h */
#include "k8s/plugin/pod_resources.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "kube/podresources.pb-c.h"

#define LIST_MSEC 5000 /* the kubelet's admission of pods waits meanwhile */

struct pod_resources {
    struct plugin_daemon *plugin;
    char id[KUBELET_ID_MAX + 1];
    enum resource_kind kind; /* of the id */
    struct grpc_request *request;
    void (*on_settled)(void *data);
    void *data;
};

void pod_resources_cancel(struct pod_resources *asked)
{
    if (!asked)
        return;
    grpc_request_cancel(asked->request);
    free(asked);
}

/* How many ids of a resource a container has; 'has_id' is set if the one is among them. */
static size_t pod_resources_count(const Podresources__ContainerResources *container,
                                  const char *resource, const char *id, bool *has_id)
{
    size_t count = 0;

    for (size_t i = 0; i < container->n_devices; i++) {
        const Podresources__ContainerDevices *devices = container->devices[i];

        if (strcmp(devices->resource_name, resource) != 0)
            continue;
        count += devices->n_ids;
        for (size_t k = 0; k < devices->n_ids; k++)
            *has_id |= strcmp(devices->ids[k], id) == 0;
    }
    return count;
}

/* Does it ask for none of the other resource? */
static bool pod_resources_is_all(const struct pod_resources *asked,
                                 const Podresources__PodResources *of, const char *name)
{
    const struct pods *pods = limits_pods(asked->plugin->limits);
    const struct node_pod *pod = pods_find_named(pods, of->namespace_, of->name);
    const struct node_container *container = pod ? pod_container_by_name(pod, name) : NULL;

    return container && !placement_units(container, placement_other(asked->kind));
}

/* Several containers have it if one after the other was given it: an init container, then another.
 */
static enum placement_last pod_resources_read(const struct pod_resources *asked,
                                              const Podresources__ListPodResourcesResponse *list)
{
    const struct resource *resources = asked->plugin->resources;
    const char *name = resources[asked->kind].name;
    const char *other = resources[placement_other(asked->kind)].name;
    enum placement_last found = PLACEMENT_UNKNOWN;

    for (size_t i = 0; i < list->n_pods; i++)
        for (size_t k = 0; k < list->pods[i]->n_containers; k++) {
            const Podresources__ContainerResources *container = list->pods[i]->containers[k];
            bool has_id = false;

            (void)pod_resources_count(container, name, asked->id, &has_id);
            if (has_id)
                found = pod_resources_count(container, other, "", &(bool){ false })
                                || pod_resources_is_all(asked, list->pods[i], container->name)
                            ? PLACEMENT_ALL
                            : PLACEMENT_ONE;
        }
    return found;
}

static void pod_resources_on_done(void *data, const ProtobufCMessage *answer,
                                  const struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) struct pod_resources *asked = data;

    if (!answer)
        log_warning("the kubelet does not say what containers have: %s", err->text);
    placement_settle(&asked->plugin->placement, asked->id,
                     answer ? pod_resources_read(asked, (const void *)answer) : PLACEMENT_UNKNOWN);
    asked->on_settled(asked->data);
}

int pod_resources_settle(struct plugin_daemon *plugin, void (*on_settled)(void *data), void *data,
                         struct pod_resources **ret, struct aq_error *err)
{
    Podresources__ListPodResourcesRequest message = PODRESOURCES__LIST_POD_RESOURCES_REQUEST__INIT;
    struct pod_resources *asked = aq_alloc(sizeof(*asked));
    const struct grpc_request_conf conf = {
        .socket = plugin->settings->pod_resources,
        .method = "/v1.PodResourcesLister/List",
        .message = &message.base,
        .answer = &podresources__list_pod_resources_response__descriptor,
        .msec = LIST_MSEC,
        .on_done = pod_resources_on_done,
        .data = asked
    };
    int r;

    *asked = (struct pod_resources){
        .plugin = plugin, .kind = plugin->placement.kind, .on_settled = on_settled, .data = data
    };
    memcpy(asked->id, plugin->placement.id, sizeof(asked->id));
    r = grpc_request_send(plugin->loop, &conf, &asked->request, err);
    if (r < 0)
        free(asked);
    else
        *ret = asked;
    return r;
}
