/* SPDX-License-Identifier: Apache-2.0 */
/* preference.c - which ids the kubelet should take for a container
 *
 * The kubelet is asked first what containers have: so it is known for which one it asks, which card
 * the scheduler has promised that, and what each card has free of the other resource. The pod may
 * be news: the kubelet's watch of the API server can be ahead of ours, and its answers are
 * rate-limited. Both are asked again for a while, in which the kubelet admits no pod.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "k8s/plugin/plugin_internal.h"
#include "kube/deviceplugin.pb-c.h"

#define PREFERENCE_AGAIN_MSEC 20
#define PREFERENCE_WAIT_USEC (INT64_C(2) * 1000000)
#define PREFERENCE_LATE_USEC (INT64_C(200) * 1000) /* the watch has told of what is new by then */

struct preference {
    struct resource *resource;
    struct grpc_call *call;
    struct arena arena; /* of ids */
    char **available, **must;
    size_t available_count, must_count;
    int32_t size;
    int64_t begun_usec;
    struct devices_request *asking;
    uv_timer_t timer; /* its closing frees all this */
};

static void preference_ask(struct preference *preference);

static void preference_on_closed(uv_handle_t *handle)
{
    struct preference *preference = handle->data;

    arena_done(&preference->arena);
    free(preference);
}

/* The call is answered, or the kubelet waits no more. */
static void preference_end(void *data)
{
    struct preference *preference = data;

    devices_cancel(preference->asking);
    uv_close((uv_handle_t *)&preference->timer, preference_on_closed);
}

/* ---- the answer ---- */

static void preference_reply(const struct preference *preference, char **ids)
{
    V1beta1__PreferredAllocationResponse response = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse part =
        V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse *parts[] = { &part };

    part.ids = ids;
    part.n_ids = (size_t)preference->size;
    response.container_responses = parts;
    response.n_container_responses = 1;
    grpc_call_reply(preference->call, &response.base);
}

/* 'found' are those that may be asked for. */
static void preference_decide(struct preference *preference, const struct wanted_container *found,
                              size_t count)
{
    const struct resource *resource = preference->resource;
    char **ids = arena_array(&preference->arena, preference->available_count + 1, sizeof(*ids));
    const struct node_container *waiting[WANTED_MAX];
    const struct placement_wish wish = { .available = preference->available,
                                         .available_count = preference->available_count,
                                         .must = preference->must,
                                         .must_count = preference->must_count,
                                         .size = preference->size,
                                         .waiting = waiting,
                                         .waiting_count = count,
                                         .partner = count == 1 ? found[0].card : NULL };
    struct aq_error err = { 0 };
    int r;

    for (size_t i = 0; i < count; i++)
        waiting[i] = found[i].container;
    r = placement_prefer(&resource->plugin->placement, resource->kind, &wish,
                         clock_monotonic_usec(), ids, &err);
    grpc_call_on_gone(preference->call, NULL, NULL);
    if (r < 0) {
        log_warning("%s: %s", resource->name, err.text);
        plugin_forget_last(resource->plugin);
        grpc_call_fail(preference->call, resource_status(&err), err.text);
    } else {
        preference_reply(preference, ids);
    }
    preference_end(preference);
}

/* ---- asking ---- */

static void preference_on_again(uv_timer_t *timer)
{
    preference_ask(timer->data);
}

static void preference_on_devices(void *data, const struct device_list *list,
                                  const struct aq_error *err)
{
    struct preference *preference = data;
    struct plugin_daemon *plugin = preference->resource->plugin;
    const struct pods *pods = limits_pods(plugin->limits);
    struct wanted_container found[WANTED_MAX];
    int64_t waited = clock_monotonic_usec() - preference->begun_usec;
    size_t count = 0;

    preference->asking = NULL;
    if (list) {
        wanted_set_free(&plugin->placement.cards, pods, list);
        count = wanted_find(&plugin->wanted, pods, list, preference->resource->kind,
                            (uint32_t)preference->size, waited >= PREFERENCE_LATE_USEC, found);
    }
    if (!count && pods_are_known(pods) && waited < PREFERENCE_WAIT_USEC) {
        (void)uv_timer_start(&preference->timer, preference_on_again, PREFERENCE_AGAIN_MSEC, 0);
        return;
    }
    if (!count && pods_are_known(pods))
        log_warning("%s: cannot tell for which container the kubelet requests %d units: %s",
                    preference->resource->name, (int)preference->size,
                    list ? "no pod of the API server waits for that number" : err->text);
    preference_decide(preference, found, count);
}

static void preference_ask(struct preference *preference)
{
    struct plugin_daemon *plugin = preference->resource->plugin;
    struct aq_error err = { 0 };

    if (devices_ask(plugin->loop, plugin->settings, preference_on_devices, preference,
                    &preference->asking, &err)
        < 0) {
        log_warning("%s: %s", preference->resource->name, err.text);
        preference_decide(preference, NULL, 0);
    }
}

/* ---- the call ---- */

static void preference_copy(struct arena *arena, char *const *ids, size_t count, char ***ret,
                            size_t *ret_count)
{
    *ret = arena_array(arena, count + 1, sizeof(**ret));
    for (size_t i = 0; i < count; i++)
        (*ret)[(*ret_count)++] = arena_strdup(arena, ids[i]);
}

void resource_prefer(struct resource *resource, struct grpc_call *call,
                     const ProtobufCMessage *message)
{
    const V1beta1__PreferredAllocationRequest *request = (const void *)message;
    const V1beta1__ContainerPreferredAllocationRequest *of;
    struct preference *preference;

    if (request->n_container_requests != 1) {
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT, "expected the ids of one container");
        return;
    }
    of = request->container_requests[0];
    preference = aq_alloc(sizeof(*preference));
    (void)uv_timer_init(resource->plugin->loop, &preference->timer);
    preference->timer.data = preference;
    preference->resource = resource;
    preference->call = call;
    preference->size = of->allocation_size;
    preference->begun_usec = clock_monotonic_usec();
    preference_copy(&preference->arena, of->available_ids, of->n_available_ids,
                    &preference->available, &preference->available_count);
    preference_copy(&preference->arena, of->must_include_ids, of->n_must_include_ids,
                    &preference->must, &preference->must_count);
    grpc_call_on_gone(call, preference_end, preference);
    preference_ask(preference);
}
