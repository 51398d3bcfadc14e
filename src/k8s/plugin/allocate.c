/* SPDX-License-Identifier: Apache-2.0 */
/* allocate.c - what a container gets for the ids that the kubelet has chosen
 *
 * Everything comes with memory: who asks for compute alone gets no GPU. What is for the card comes
 * from its accelerator plugin, and in front of its driver our library, which gives nothing of the
 * card before it has its limits from the socket. What a plugin said is good until it describes
 * something else, or is due to be asked for that: many pods may start at once, and a driver may
 * take its time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "k8s/plugin/node_note.h"
#include "k8s/plugin/plugin_internal.h"
#include "k8s/plugin/pod_resources.h"
#include "kube/deviceplugin.pb-c.h"

typedef V1beta1__ContainerAllocateResponse response_t;
typedef V1beta1__ContainerAllocateResponse__EnvsEntry env_t;

/* An Allocate for which somebody is asked: the kubelet, or the card's plugin. */
struct allocation {
    struct resource *resource;
    struct grpc_call *call;
    struct arena arena; /* of 'ids' */
    char **ids;
    size_t count;
    struct pod_resources *listing;
    char card[DEVICE_CARD_MAX + 1];
    struct accel_call *asked;
};

static void allocate_decide(struct resource *resource, struct grpc_call *call, char *const *ids,
                            size_t count);

static void allocation_free(struct allocation *allocation)
{
    pod_resources_cancel(allocation->listing);
    accel_cancel(allocation->asked);
    arena_done(&allocation->arena);
    free(allocation);
}
AQ_DEFINE_CLEANUP(struct allocation, allocation_free)

/* The kubelet waits no more. */
static void allocation_on_gone(void *data)
{
    allocation_free(data);
}

/* ---- the answer ---- */

/* Messages have pointers to what may be written, and write nothing. */
static char *allocate_text(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void allocate_add_mount(response_t *to, const struct container_mount *mount,
                               struct arena *arena)
{
    V1beta1__Mount *added = arena_alloc(arena, sizeof(*added));

    v1beta1__mount__init(added);
    added->container_path = allocate_text(mount->target);
    added->host_path = allocate_text(mount->source);
    added->read_only = !mount->may_write;
    arena_append(arena, &to->mounts, &to->n_mounts, &added, sizeof(added));
}

static void allocate_add_device(response_t *to, const struct container_device *device,
                                struct arena *arena)
{
    V1beta1__DeviceSpec *added = arena_alloc(arena, sizeof(*added));
    char *permissions = arena_alloc(arena, 4), *c = permissions;

    if (device->may_read)
        *c++ = 'r';
    if (device->may_write)
        *c++ = 'w';
    if (device->may_mknod)
        *c++ = 'm';
    v1beta1__device_spec__init(added);
    added->container_path = allocate_text(device->target);
    added->host_path = allocate_text(device->source);
    added->permissions = permissions;
    arena_append(arena, &to->devices, &to->n_devices, &added, sizeof(added));
}

static void allocate_add_env(response_t *to, const struct text_pair *pair, struct arena *arena)
{
    env_t *added = arena_alloc(arena, sizeof(*added));

    v1beta1__container_allocate_response__envs_entry__init(added);
    added->key = allocate_text(pair->key);
    added->value = allocate_text(pair->value);
    arena_append(arena, &to->envs, &to->n_envs, &added, sizeof(added));
}

static void allocate_fill(response_t *to, const struct node_files *files,
                          const struct accel_attachment *attachment, struct arena *arena)
{
    struct container_mount ours[NODE_FILES_MOUNTS];

    node_files_mounts(files, ours);
    for (size_t i = 0; i < NODE_FILES_MOUNTS; i++)
        allocate_add_mount(to, &ours[i], arena);
    for (size_t i = 0; i < attachment->mount_count; i++)
        allocate_add_mount(to, &attachment->mounts[i], arena);
    for (size_t i = 0; i < attachment->device_count; i++)
        allocate_add_device(to, &attachment->devices[i], arena);
    for (size_t i = 0; i < attachment->environ_count; i++)
        allocate_add_env(to, &attachment->environ[i], arena);
}

static void allocate_reply(struct grpc_call *call, response_t *part)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;

    response.container_responses = &part;
    response.n_container_responses = 1;
    grpc_call_reply(call, &response.base);
}

static void allocate_give(const struct resource *resource, struct grpc_call *call,
                          const struct accel_attachment *attachment)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    response_t part = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;

    allocate_fill(&part, &resource->plugin->files, attachment, &arena);
    allocate_reply(call, &part);
}

static void allocation_refuse(const struct resource *resource, struct grpc_call *call,
                              const struct aq_error *err)
{
    log_warning("%s: %s", resource->name, err->text);
    plugin_forget_last(resource->plugin);
    grpc_call_fail(call, resource_status(err), err->text);
}

/* ---- the card's plugin ---- */

static void allocation_on_attached(void *data, struct accel_attachment *attachment,
                                   const struct aq_error *err)
{
    AQ_CLEANUP(allocation_freep) struct allocation *allocation = data;
    const struct resource *resource = allocation->resource;
    struct card *card = cards_find(&resource->plugin->placement.cards, allocation->card,
                                   strlen(allocation->card));

    allocation->asked = NULL;
    if (!attachment) {
        allocation_refuse(resource, allocation->call, err);
        return;
    }
    allocate_give(resource, allocation->call, attachment);
    if (card) {
        accel_attachment_done(&card->attachment);
        card->attachment = *attachment;
        card->attached_usec = clock_monotonic_usec();
        *attachment = (struct accel_attachment){ .devices = NULL };
    }
}

static void allocation_begin(struct resource *resource, struct grpc_call *call,
                             const struct card *card)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { .items = NULL };
    struct allocation *allocation = aq_alloc(sizeof(*allocation));
    struct aq_error err = { 0 };
    int r = alloc_grant_add(&grant, card->slot_name, card->slot_type, card->id, strlen(card->id),
                            card->amount, &err);

    if (r == 0) {
        *allocation = (struct allocation){ .resource = resource, .call = call };
        (void)snprintf(allocation->card, sizeof(allocation->card), "%s", card->id);
        r = accel_attach(resource->plugin->accel, &grant, allocation_on_attached, allocation,
                         &allocation->asked, &err);
    }
    if (r == 0) {
        grpc_call_on_gone(call, allocation_on_gone, allocation);
        return;
    }
    allocation_free(allocation);
    allocation_refuse(resource, call, &err);
}

/* ---- which container has had the last ids ---- */

static void allocation_on_settled(void *data)
{
    AQ_CLEANUP(allocation_freep) struct allocation *allocation = data;

    allocation->listing = NULL;
    grpc_call_on_gone(allocation->call, NULL, NULL);
    allocate_decide(allocation->resource, allocation->call, allocation->ids, allocation->count);
}

static void allocation_settle(struct resource *resource, struct grpc_call *call, char *const *ids,
                              size_t count)
{
    struct allocation *allocation = aq_alloc(sizeof(*allocation));
    struct aq_error err = { 0 };

    allocation->resource = resource;
    allocation->call = call;
    allocation->ids = arena_array(&allocation->arena, count, sizeof(*ids));
    for (size_t i = 0; i < count; i++)
        allocation->ids[allocation->count++] = arena_strdup(&allocation->arena, ids[i]);
    grpc_call_on_gone(call, allocation_on_gone, allocation);
    if (pod_resources_settle(resource->plugin, allocation_on_settled, allocation,
                             &allocation->listing, &err)
        == 0)
        return;
    grpc_call_on_gone(call, NULL, NULL);
    allocation_free(allocation);
    allocation_refuse(resource, call, &err);
}

/* ---- the call ---- */

static void allocate_decide(struct resource *resource, struct grpc_call *call, char *const *ids,
                            size_t count)
{
    response_t nothing = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    struct plugin_daemon *plugin = resource->plugin;
    const struct card *card;
    struct aq_error err = { 0 };
    int64_t now = clock_monotonic_usec();
    int r = placement_accept(&plugin->placement, resource->kind, ids, count, now, &card, &err);

    node_note_wake(plugin->note);
    if (r == 0)
        wanted_give(&plugin->wanted, resource->kind, card->id);
    if (r == -EAGAIN)
        allocation_settle(resource, call, ids, count);
    else if (r < 0)
        allocation_refuse(resource, call, &err);
    else if (resource->kind == RESOURCE_COMPUTE)
        allocate_reply(call, &nothing);
    else if (card->attached_usec && now - card->attached_usec < plugin->settings->accel.rescan_usec)
        allocate_give(resource, call, &card->attachment);
    else
        allocation_begin(resource, call, card);
}

void resource_allocate(struct resource *resource, struct grpc_call *call,
                       const ProtobufCMessage *message)
{
    const V1beta1__AllocateRequest *request = (const void *)message;

    if (request->n_container_requests == 1)
        allocate_decide(resource, call, request->container_requests[0]->ids,
                        request->container_requests[0]->n_ids);
    else
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT, "expected the ids of one container");
}
