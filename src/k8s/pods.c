/* SPDX-License-Identifier: Apache-2.0 */
/* pods.c - see pods.h */
#include "k8s/pods.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "http/url.h"
#include "k8s/quantity.h"
#include "kube/watch.h"

#define PLACEMENT "aliquot/placement"
#define TIMESTAMP "ai.centaurus.io/scheduler-timestamp"

struct pods {
    const struct settings *settings;
    struct kube_watch *watch;
    struct map by_uid;                    /* the pods, which it owns */
    struct map uids;                      /* "namespace/name" -> the pod */
    struct node_pod *gone[PODS_GONE_MAX]; /* a ring */
    size_t next_gone;
    bool are_known, is_failing;
    void (*on_changed)(void *data);
    void *data;
};

/* ---- names ---- */

bool pod_is_uid(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isdigit((unsigned char)text[i]) && (text[i] < 'a' || text[i] > 'f')
            && (text[i] != '-' || i == 0))
            return false;
    return len > 0 && len <= POD_UID_MAX;
}

bool pod_is_container_id(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && (text[i] != '-' || i == 0))
            return false;
    return len > 0 && len <= CONTAINER_ID_MAX;
}

bool pod_is_container_name(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if (!isdigit((unsigned char)text[i]) && (text[i] < 'a' || text[i] > 'z')
            && (text[i] != '-' || i == 0))
            return false;
    return len > 0 && len <= CONTAINER_NAME_MAX;
}

/* ---- one pod ---- */

static const char *pod_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* A number of units: the API server shows 1000 as "1k". */
static uint32_t pod_read_units(const json_t *amounts, const char *resource)
{
    int64_t units;

    return quantity_read(json_object_get(amounts, resource), &units)
               ? (uint32_t)AQ_MIN(units, (int64_t)UINT32_MAX)
               : 0;
}

/* Whole GPUs are those of vendors' device plugins, or of drivers of claims. */
static bool pod_has_whole(const json_t *resources)
{
    static const char *const vendors[] = { "nvidia.com/", "amd.com/", "gpu.intel.com/" };
    const json_t *limits = json_object_get(resources, "limits"), *amount;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)limits, name, amount)
        for (size_t i = 0; i < AQ_COUNT(vendors); i++)
            if (strncmp(name, vendors[i], strlen(vendors[i])) == 0 && pod_read_units(limits, name))
                return true;
    return json_array_size(json_object_get(resources, "claims")) > 0;
}

static int pod_read_containers(const json_t *list, const struct settings *settings,
                               struct node_pod *pod)
{
    const json_t *object;
    size_t i;

    json_array_foreach(list, i, object) {
        const json_t *resources = json_object_get(object, "resources");
        const json_t *limits = json_object_get(resources, "limits");
        struct node_container container = {
            .name = arena_strdup(&pod->arena, pod_text(object, "name")),
            .id = "",
            .memory = pod_read_units(limits, settings->memory_name),
            .compute = pod_read_units(limits, settings->compute_name),
            .has_whole = pod_has_whole(resources),
        };

        if (!pod_is_container_name(container.name)
            || pod->container_count >= NODE_POD_CONTAINERS_MAX)
            return -EPROTO;
        pod->is_asking |= container.memory > 0;
        arena_append(&pod->arena, &pod->containers, &pod->container_count, &container,
                     sizeof(container));
    }
    return 0;
}

static void pod_read_statuses(const json_t *list, struct node_pod *pod)
{
    const json_t *object;
    size_t i;

    json_array_foreach(list, i, object) {
        struct node_container *container = (struct node_container *)pod_container_by_name(
            pod, pod_text(object, "name"));
        const char *id = strstr(pod_text(object, "containerID"), "://");

        if (!container)
            continue;
        container->is_running = json_object_get(json_object_get(object, "state"), "running")
                                != NULL;
        if (!id || !pod_is_container_id(id + 3, strlen(id + 3)))
            continue;
        container->id = arena_strdup(&pod->arena, id + 3);
    }
}

/* Annotations are anybody's: what is no name of a card or container is not there. */
static void pod_read_placement(const char *text, struct node_pod *pod)
{
    json_t *cards = json_load_string(text, 0);
    const char *name;
    json_t *card;

    json_object_foreach(cards, name, card) {
        struct node_container *container = (struct node_container *)pod_container_by_name(pod,
                                                                                          name);
        const char *id = json_string_value(card);

        if (container && id && strlen(id) <= DEVICE_CARD_MAX)
            memcpy(container->card, id, strlen(id) + 1);
    }
    json_decref(cards);
}

/* They are added to a pod that runs, and stay: those past the bound are unknown containers of the
 * pod.
 */
static void pod_read_debug_containers(const json_t *list, struct node_pod *pod)
{
    const json_t *object;
    size_t i;

    json_array_foreach(list, i, object) {
        struct node_container container = {
            .name = arena_strdup(&pod->arena, pod_text(object, "name")), .id = "", .is_debug = true
        };

        if (!pod_is_container_name(container.name)
            || pod->container_count >= NODE_POD_CONTAINERS_MAX)
            break;
        arena_append(&pod->arena, &pod->containers, &pod->container_count, &container,
                     sizeof(container));
    }
}

int pods_read(const json_t *object, const struct settings *settings, struct node_pod *ret,
              struct aq_error *err)
{
    const json_t *meta = json_object_get(object, "metadata");
    const json_t *spec = json_object_get(object, "spec"),
                 *status = json_object_get(object, "status");
    const json_t *annotations = json_object_get(meta, "annotations");
    const char *uid = pod_text(meta, "uid"), *phase = pod_text(status, "phase");
    int r;

    if (!pod_is_uid(uid, strlen(uid)))
        return aq_fail(err, EPROTO, "a pod without a uid");
    ret->uid = arena_strdup(&ret->arena, uid);
    ret->namespace = arena_strdup(&ret->arena, pod_text(meta, "namespace"));
    ret->name = arena_strdup(&ret->arena, pod_text(meta, "name"));
    ret->bound = strtoull(pod_text(annotations, TIMESTAMP), NULL, 10);
    ret->is_leaving = pod_text(meta, "deletionTimestamp")[0] != '\0';
    ret->is_over = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
    r = pod_read_containers(json_object_get(spec, "initContainers"), settings, ret);
    if (r == 0)
        r = pod_read_containers(json_object_get(spec, "containers"), settings, ret);
    if (r < 0)
        return aq_fail(err, EPROTO, "a pod with containers that cannot be");
    pod_read_debug_containers(json_object_get(spec, "ephemeralContainers"), ret);
    pod_read_statuses(json_object_get(status, "initContainerStatuses"), ret);
    pod_read_statuses(json_object_get(status, "containerStatuses"), ret);
    pod_read_statuses(json_object_get(status, "ephemeralContainerStatuses"), ret);
    pod_read_placement(pod_text(annotations, PLACEMENT), ret);
    return 0;
}

const struct node_container *pod_container_by_id(const struct node_pod *pod, const char *id)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (strcmp(pod->containers[i].id, id) == 0)
            return &pod->containers[i];
    return NULL;
}

const struct node_container *pod_container_by_name(const struct node_pod *pod, const char *name)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (strcmp(pod->containers[i].name, name) == 0)
            return &pod->containers[i];
    return NULL;
}

/* ---- all of them ---- */

static void pod_free(struct node_pod *pod)
{
    if (!pod)
        return;
    arena_done(&pod->arena);
    free(pod);
}
AQ_DEFINE_CLEANUP(struct node_pod, pod_free)

/* NULL if there is none; the caller's. */
static struct node_pod *pods_take(struct pods *pods, const char *key)
{
    struct node_pod *pod = map_removes(&pods->uids, key);

    if (pod)
        (void)map_removes(&pods->by_uid, pod->uid);
    return pod;
}

static void pods_on_object(void *data, const char *key, const json_t *object)
{
    AQ_CLEANUP(pod_freep) struct node_pod *pod = aq_alloc(sizeof(*pod));
    struct pods *pods = data;
    struct aq_error err = { 0 };
    int r = pods_read(object, pods->settings, pod, &err);

    pod_free(pods_take(pods, key));
    if (r == 0 && map_gets(&pods->by_uid, pod->uid))
        r = aq_fail(&err, EPROTO, "the uid of another pod");
    if (r == 0) {
        map_sets(&pods->uids, key, pod);
        map_sets(&pods->by_uid, pod->uid, pod);
        pod = NULL;
    } else {
        log_warning("pod %s: %s", key, err.text);
    }
    pods->on_changed(pods->data);
}

static void pods_on_gone(void *data, const char *key)
{
    struct pods *pods = data;
    struct node_pod *pod = pods_take(pods, key);

    if (pod) {
        pod_free(pods->gone[pods->next_gone]);
        pods->gone[pods->next_gone] = pod;
        pods->next_gone = (pods->next_gone + 1) % PODS_GONE_MAX;
    }
    pods->on_changed(pods->data);
}

static void pods_on_synced(void *data)
{
    struct pods *pods = data;

    if (pods->is_failing)
        log_info("the API server can be asked for pods again");
    pods->is_failing = false;
    pods->are_known = true;
    pods->on_changed(pods->data);
}

static void pods_on_failed(void *data, const struct aq_error *err)
{
    struct pods *pods = data;

    if (!pods->is_failing)
        log_warning("the API server cannot be asked for pods, those that are known go on: %s",
                    err->text);
    pods->is_failing = true;
}

struct pods *pods_new(struct kube_api *api, const struct settings *settings, const char *node,
                      void (*on_changed)(void *data), void *data)
{
    AQ_CLEANUP(aq_freep) char *selector = aq_format("fieldSelector=spec.nodeName%%3D%s", node);
    struct pods *pods = aq_alloc(sizeof(*pods));
    const struct kube_watch_conf conf = { .api = api,
                                          .path = "/api/v1/pods",
                                          .selector = selector,
                                          .on_object = pods_on_object,
                                          .on_gone = pods_on_gone,
                                          .on_synced = pods_on_synced,
                                          .on_failed = pods_on_failed,
                                          .data = pods };

    *pods = (struct pods){ .settings = settings, .on_changed = on_changed, .data = data };
    pods->watch = kube_watch_new(&conf);
    return pods;
}

void pods_free(struct pods *pods)
{
    if (!pods)
        return;
    kube_watch_free(pods->watch);
    for (size_t i = 0; i < pods->uids.count; i++)
        pod_free(pods->uids.entries[i].value);
    for (size_t i = 0; i < PODS_GONE_MAX; i++)
        pod_free(pods->gone[i]);
    map_done(&pods->uids);
    map_done(&pods->by_uid);
    free(pods);
}

bool pods_are_known(const struct pods *pods)
{
    return pods->are_known;
}

const struct node_pod *pods_find(const struct pods *pods, const char *uid)
{
    return map_gets(&pods->by_uid, uid);
}

const struct node_pod *pods_find_named(const struct pods *pods, const char *namespace,
                                       const char *name)
{
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/%s", namespace, name);

    return map_gets(&pods->uids, key);
}

const struct node_pod *pods_at(const struct pods *pods, size_t i)
{
    return i < pods->uids.count ? pods->uids.entries[i].value : NULL;
}

const struct node_pod *pods_gone_at(const struct pods *pods, size_t i)
{
    return i < PODS_GONE_MAX ? pods->gone[i] : NULL;
}
