/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c - see devices.h */
#include "k8s/limits/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "kube/grpc_client.h"
#include "kube/podresources.pb-c.h"

#define LIST_MSEC 3000 /* who waits for it gives up after five seconds */
#define RECORD_MAX (32u << 20)
#define RECORD "kubelet_internal_checkpoint"

struct devices_request {
    const struct settings *settings;
    struct grpc_request *request;
    devices_done_fn *on_done;
    void *data;
};

void device_list_done(struct device_list *list)
{
    arena_done(&list->arena);
    *list = (struct device_list){ .items = NULL };
}

/* ---- one container ---- */

static struct given_part *devices_part_of(struct device_list *list, struct device_holder *holder,
                                          const char *card, size_t len)
{
    struct given_part part = { .card = "" };

    for (size_t i = 0; i < holder->part_count; i++)
        if (strlen(holder->parts[i].card) == len && memcmp(holder->parts[i].card, card, len) == 0)
            return &holder->parts[i];
    memcpy(part.card, card, len);
    arena_append(&list->arena, &holder->parts, &holder->part_count, &part, sizeof(part));
    return &holder->parts[holder->part_count - 1];
}

static void devices_add_id(struct device_list *list, struct device_holder *holder, bool is_memory,
                           const char *id)
{
    struct given_units *units;
    struct given_part *part;
    uint32_t unit;
    size_t len;

    if (!device_id_read(id, &len, &unit))
        return;
    part = devices_part_of(list, holder, id, len);
    units = is_memory ? &part->memory_units : &part->compute_units;
    arena_append(&list->arena, &units->items, &units->count, &(uint16_t){ (uint16_t)unit },
                 sizeof(*units->items));
    if (is_memory) {
        part->memory++;
        part->last = AQ_MAX(part->last, unit);
    } else {
        part->compute++;
    }
}

static bool devices_is_ours(const struct settings *settings, const char *resource,
                            bool *ret_is_memory)
{
    *ret_is_memory = strcmp(resource, settings->memory_name) == 0;
    return *ret_is_memory || strcmp(resource, settings->compute_name) == 0;
}

const struct device_holder *device_list_find(const struct device_list *list, const char *uid,
                                             const char *namespace, const char *pod,
                                             const char *container)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct device_holder *holder = &list->items[i];

        if (strcmp(holder->container, container) == 0
            && (holder->uid
                    ? strcmp(holder->uid, uid) == 0
                    : strcmp(holder->namespace, namespace) == 0 && strcmp(holder->pod, pod) == 0))
            return holder;
    }
    return NULL;
}

bool device_list_has_pod(const struct device_list *list, const char *namespace, const char *pod)
{
    for (size_t i = 0; i < list->pod_count; i++)
        if (strcmp(list->pods[i].name, pod) == 0 && strcmp(list->pods[i].namespace, namespace) == 0)
            return true;
    return false;
}

/* ---- PodResources ---- */

static void devices_add_container(const Podresources__PodResources *pod,
                                  const Podresources__ContainerResources *container,
                                  const struct settings *settings, struct device_list *list)
{
    struct device_holder holder = { .namespace = arena_strdup(&list->arena, pod->namespace_),
                                    .pod = arena_strdup(&list->arena, pod->name),
                                    .container = arena_strdup(&list->arena, container->name) };
    bool is_memory;

    for (size_t i = 0; i < container->n_devices; i++)
        if (devices_is_ours(settings, container->devices[i]->resource_name, &is_memory))
            for (size_t k = 0; k < container->devices[i]->n_ids; k++)
                devices_add_id(list, &holder, is_memory, container->devices[i]->ids[k]);
    if (holder.part_count)
        arena_append(&list->arena, &list->items, &list->count, &holder, sizeof(holder));
}

static void devices_read_answer(const Podresources__ListPodResourcesResponse *answer,
                                const struct settings *settings, struct device_list *list)
{
    for (size_t i = 0; i < answer->n_pods; i++) {
        const Podresources__PodResources *pod = answer->pods[i];
        struct device_pod listed = { .namespace = arena_strdup(&list->arena, pod->namespace_),
                                     .name = arena_strdup(&list->arena, pod->name) };

        arena_append(&list->arena, &list->pods, &list->pod_count, &listed, sizeof(listed));
        for (size_t k = 0; k < pod->n_containers; k++)
            devices_add_container(pod, pod->containers[k], settings, list);
    }
}

/* ---- the kubelet's own record ---- */

/* The holder of this pod and container that is last, as its resources come one after the other. */
static struct device_holder *devices_record_holder(struct device_list *list, size_t begin,
                                                   const char *uid, const char *container)
{
    struct device_holder holder;

    for (size_t i = begin; i < list->count; i++)
        if (strcmp(list->items[i].uid, uid) == 0
            && strcmp(list->items[i].container, container) == 0)
            return &list->items[i];
    holder = (struct device_holder){ .uid = arena_strdup(&list->arena, uid),
                                     .container = arena_strdup(&list->arena, container) };
    arena_append(&list->arena, &list->items, &list->count, &holder, sizeof(holder));
    return &list->items[list->count - 1];
}

/* "DeviceIDs" is {"NUMA node": [id, ...]}. */
static void devices_record_entry(const json_t *entry, size_t begin, const struct settings *settings,
                                 struct device_list *list)
{
    const char *uid = json_string_value(json_object_get(entry, "PodUID"));
    const char *container = json_string_value(json_object_get(entry, "ContainerName"));
    const char *resource = json_string_value(json_object_get(entry, "ResourceName")), *node;
    json_t *nodes = json_object_get(entry, "DeviceIDs"), *ids, *id;
    struct device_holder *holder;
    bool is_memory;
    size_t i;

    if (!uid || !container || !resource || !devices_is_ours(settings, resource, &is_memory))
        return;
    holder = devices_record_holder(list, begin, uid, container);
    json_object_foreach(nodes, node, ids)
        json_array_foreach(ids, i, id)
            if (json_is_string(id))
                devices_add_id(list, holder, is_memory, json_string_value(id));
}

void devices_read_record(const char *text, const struct settings *settings,
                         struct device_list *list)
{
    json_t *record = json_load_string(text, 0), *entry;
    const json_t *entries = json_object_get(json_object_get(record, "Data"), "PodDeviceEntries");
    size_t begin = list->count, i;

    json_array_foreach(entries, i, entry)
        devices_record_entry(entry, begin, settings, list);
    json_decref(record);
}

static void devices_add_record(const struct settings *settings, struct device_list *list)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/" RECORD, settings->kubelet);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (fs_read(AT_FDCWD, path, RECORD_MAX, &text, NULL) == 0)
        devices_read_record(text.data, settings, list);
}

/* ---- asking ---- */

static void devices_on_answer(void *data, const ProtobufCMessage *answer,
                              const struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) struct devices_request *request = data;
    AQ_CLEANUP(device_list_done) struct device_list list = { .items = NULL };

    if (answer) {
        devices_read_answer((const void *)answer, request->settings, &list);
        devices_add_record(request->settings, &list);
    }
    request->on_done(request->data, err->code ? NULL : &list, err);
}

int devices_ask(uv_loop_t *loop, const struct settings *settings, devices_done_fn *on_done,
                void *data, struct devices_request **ret, struct aq_error *err)
{
    Podresources__ListPodResourcesRequest message = PODRESOURCES__LIST_POD_RESOURCES_REQUEST__INIT;
    struct devices_request *request = aq_alloc(sizeof(*request));
    const struct grpc_request_conf conf = {
        .socket = settings->pod_resources,
        .method = "/v1.PodResourcesLister/List",
        .message = &message.base,
        .answer = &podresources__list_pod_resources_response__descriptor,
        .msec = LIST_MSEC,
        .on_done = devices_on_answer,
        .data = request
    };
    int r;

    *request = (struct devices_request){ .settings = settings, .on_done = on_done, .data = data };
    r = grpc_request_send(loop, &conf, &request->request, err);
    if (r < 0)
        free(request);
    else
        *ret = request;
    return r;
}

void devices_cancel(struct devices_request *request)
{
    if (!request)
        return;
    grpc_request_cancel(request->request);
    free(request);
}
