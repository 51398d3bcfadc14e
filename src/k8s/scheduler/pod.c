/* SPDX-License-Identifier: Apache-2.0 */
/* pod.c - see pod.h */
#include "k8s/scheduler/pod.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "k8s/quantity.h"
#include "kube/object.h"

#define TEXT_MAX 65536u /* of an annotation of ours; the API server takes 256 KiB of all */
#define CONTAINER_NAME_MAX 63

/* ---- the policy ---- */

/* What the annotation says, else the name of the scheduler, as Alnair's are called. */
static int pod_read_policy(const json_t *object)
{
    const json_t *annotations = json_object_get(json_object_get(object, "metadata"), "annotations");
    const char *text = json_string_value(json_object_get(annotations, POD_POLICY));
    const char *scheduler = json_string_value(
        json_object_get(json_object_get(object, "spec"), "schedulerName"));
    int named = text ? card_policy_find(text) : -1;

    if (named >= 0 || !scheduler)
        return named;
    if (strcmp(scheduler, "alnair-cost-saving") == 0)
        return POLICY_BIN_PACKING;
    return strcmp(scheduler, "alnair-high-performance") == 0 ? POLICY_HIGH_PERFORMANCE : -1;
}

/* ---- amounts ---- */

/* -1 for what is no whole number, or too many units. */
static int64_t pod_read_amount(const json_t *value)
{
    int64_t amount = 0;

    return !value || (quantity_read(value, &amount) && amount <= POD_AMOUNT_MAX) ? amount : -1;
}

/* ---- parts ---- */

/* What the kubelet has given to init containers and gives again, and to which part that belongs. */
struct pod_again {
    int64_t memory, compute;
    uint32_t part; /* UINT32_MAX = there was no init container */
};

static int pod_add_part(struct pod *pod, uint32_t *ret, struct aq_error *err)
{
    if (pod->part_count == POD_PARTS_MAX)
        return aq_fail(err, E2BIG, "the pod has more than %d containers with parts of GPUs",
                       POD_PARTS_MAX);
    *ret = pod->part_count++;
    return 0;
}

/* Of an amount what is taken from the card; the rest is reused. */
static int32_t pod_take_again(int64_t *again, int64_t amount, bool returns)
{
    int64_t taken = AQ_MIN(*again, amount);

    *again = returns ? AQ_MAX(*again, amount) : *again - taken;
    return (int32_t)(amount - taken);
}

static int pod_add_amounts(struct pod_part *part, int32_t memory, int32_t compute,
                           struct aq_error *err)
{
    if (memory > POD_AMOUNT_MAX - part->memory || compute > POD_AMOUNT_MAX - part->compute)
        return aq_fail(err, EINVAL, "the pod asks for more than %d", POD_AMOUNT_MAX);
    part->memory += memory;
    part->compute += compute;
    return 0;
}

/* One container, in the order in which the kubelet gives; 'returns': an init container that ends.
 */
static int pod_add_container(struct pod *pod, const json_t *container, bool returns,
                             const struct resource_names *names, struct pod_again *again,
                             struct aq_error *err)
{
    const json_t *limits = json_object_get(json_object_get(container, "resources"), "limits");
    int64_t memory = pod_read_amount(json_object_get(limits, names->memory));
    int64_t compute = pod_read_amount(json_object_get(limits, names->compute));
    const char *name = json_string_value(json_object_get(container, "name"));
    struct pod_container *to = &pod->containers[pod->container_count];
    uint32_t *part;
    int r = 0;

    if (memory < 0 || compute < 0)
        return aq_fail(err, EINVAL, "the pod asks for no whole number of %s", names->memory);
    if (memory == 0 && compute == 0)
        return 0;
    if (!name || !name[0] || strlen(name) > CONTAINER_NAME_MAX)
        return aq_fail(err, EINVAL, "a container of the pod has no name");
    if (pod->container_count == POD_CONTAINERS_MAX)
        return aq_fail(err, E2BIG, "the pod has more than %d containers with parts of GPUs",
                       POD_CONTAINERS_MAX);
    part = returns || (memory && again->memory) || (compute && again->compute) ? &again->part
                                                                               : &to->part;
    if (part == &to->part || *part == UINT32_MAX)
        r = pod_add_part(pod, part, err);
    if (r == 0 && part == &again->part) {
        memory = pod_take_again(&again->memory, memory, returns);
        compute = pod_take_again(&again->compute, compute, returns);
        to->part = again->part;
    }
    if (r == 0)
        r = pod_add_amounts(&pod->parts[to->part], (int32_t)memory, (int32_t)compute, err);
    if (r < 0)
        return r;
    to->name = aq_strdup(name);
    pod->container_count++;
    return 0;
}

/* An init container that goes on beside the others keeps what it has. */
static bool pod_is_restartable(const json_t *container)
{
    const char *policy = json_string_value(json_object_get(container, "restartPolicy"));

    return policy && strcmp(policy, "Always") == 0;
}

static int pod_read_containers(struct pod *pod, const json_t *spec,
                               const struct resource_names *names, struct aq_error *err)
{
    struct pod_again again = { .part = UINT32_MAX };
    const json_t *container;
    size_t i;
    int r = 0;

    json_array_foreach(json_object_get(spec, "initContainers"), i, container)
        if (r == 0)
            r = pod_add_container(pod, container, !pod_is_restartable(container), names, &again,
                                  err);
    json_array_foreach(json_object_get(spec, "containers"), i, container)
        if (r == 0)
            r = pod_add_container(pod, container, false, names, &again, err);
    return r;
}

/* ---- where it was put ---- */

uint32_t pod_find_part(const struct pod *pod, const char *container)
{
    for (uint32_t i = 0; i < pod->container_count; i++)
        if (strcmp(pod->containers[i].name, container) == 0)
            return pod->containers[i].part;
    return UINT32_MAX;
}

/* Anybody who may change the pod can have written it: what makes no sense is not there. */
static void pod_read_placement(struct pod *pod, const json_t *annotations)
{
    const char *text = json_string_value(json_object_get(annotations, POD_PLACEMENT)), *container;
    size_t len = text ? strlen(text) : 0;
    json_t *placement = text && len <= TEXT_MAX ? json_load_text(text, len, 0, NULL) : NULL;
    json_t *value;

    json_object_foreach(placement, container, value) {
        uint32_t part = pod_find_part(pod, container);
        const char *card = json_string_value(value);

        if (part == UINT32_MAX || !card || strlen(card) > DEVICE_CARD_MAX
            || pod->parts[part].placed)
            continue;
        pod->parts[part].placed = aq_strdup(card);
    }
    json_decref(placement);
}

/* ---- the whole ---- */

static bool pod_has_ended(const json_t *object)
{
    const char *phase = json_string_value(
        json_object_get(json_object_get(object, "status"), "phase"));

    return phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0);
}

/* NULL if none is named. */
static const char *pod_read_node(const json_t *object, const char *member)
{
    const char *name = json_string_value(json_object_get(object, member));

    return name && name[0] && strlen(name) <= KUBE_NAME_MAX ? name : NULL;
}

static int pod_read_head(struct pod *pod, const json_t *object, struct aq_error *err)
{
    const json_t *spec = json_object_get(object, "spec");
    const char *uid = json_string_value(
        json_object_get(json_object_get(object, "metadata"), "uid"));
    const char *node = pod_read_node(spec, "nodeName");
    const char *nominated = pod_read_node(json_object_get(object, "status"), "nominatedNodeName");
    json_int_t priority = json_integer_value(json_object_get(spec, "priority"));
    char key[KUBE_KEY_MAX + 1];

    if (!kube_object_key(object, key) || !uid || !uid[0] || strlen(uid) > KUBE_NAME_MAX)
        return aq_fail(err, EINVAL, "a pod without name or uid");
    pod->priority = (int32_t)AQ_MIN(AQ_MAX(priority, INT32_MIN), INT32_MAX);
    pod->policy = pod_read_policy(object);
    pod->is_finished = pod_has_ended(object);
    pod->key = aq_strdup(key);
    pod->uid = aq_strdup(uid);
    pod->node = aq_strdup(node);
    pod->nominated = nominated && !node ? aq_strdup(nominated) : NULL;
    return 0;
}

/* Not more memory than it needs: there are many. */
static void pod_keep(const struct pod *from, struct pod *ret)
{
    *ret = *from;
    ret->parts = aq_alloc_array(from->part_count + 1, sizeof(*ret->parts));
    ret->containers = aq_alloc_array(from->container_count + 1, sizeof(*ret->containers));
    memcpy(ret->parts, from->parts, from->part_count * sizeof(*ret->parts));
    memcpy(ret->containers, from->containers, from->container_count * sizeof(*ret->containers));
}

static void pod_free_texts(struct pod *pod)
{
    for (uint32_t i = 0; i < pod->part_count; i++)
        free(pod->parts[i].placed);
    for (uint32_t i = 0; i < pod->container_count; i++)
        free(pod->containers[i].name);
    free(pod->key);
    free(pod->uid);
    free(pod->node);
    free(pod->nominated);
}

void pod_done(struct pod *pod)
{
    pod_free_texts(pod);
    free(pod->parts);
    free(pod->containers);
    *pod = (struct pod){ .key = NULL };
}

int pod_read(const json_t *object, const struct resource_names *names, struct pod *ret,
             struct aq_error *err)
{
    struct pod_part parts[POD_PARTS_MAX] = { { .memory = 0 } };
    struct pod_container containers[POD_CONTAINERS_MAX] = { { .name = NULL } };
    struct pod pod = { .parts = parts, .containers = containers };
    const json_t *metadata = json_object_get(object, "metadata");
    int r = pod_read_head(&pod, object, err);

    if (r == 0)
        r = pod_read_containers(&pod, json_object_get(object, "spec"), names, err);
    if (r < 0) {
        pod_free_texts(&pod);
        return r;
    }
    pod_read_placement(&pod, json_object_get(metadata, "annotations"));
    pod_keep(&pod, ret);
    return 0;
}
