/* SPDX-License-Identifier: Apache-2.0 */
/* pod_review.c - see pod_review.h */
#include "k8s/webhook/pod_review.h"

#include <errno.h>
#include <string.h>

#include "k8s/pods.h"
#include "k8s/quantity.h"
#include "k8s/webhook/webhook_internal.h"

static const char *const review_lists[] = { "initContainers", "containers" };

static const char *review_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

/* ---- the pod ---- */

static const json_t *review_amounts(const json_t *container, const char *name)
{
    const json_t *amounts = json_object_get(json_object_get(container, "resources"), name);

    return json_is_object(amounts) ? amounts : NULL;
}

static int review_containers(const struct pod_review *review, const json_t *spec, bool *ret_any,
                             struct aq_error *err)
{
    int r = 0;

    *ret_any = false;
    for (size_t l = 0; r == 0 && l < AQ_COUNT(review_lists); l++) {
        const json_t *list = json_object_get(spec, review_lists[l]);

        for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
            const json_t *container = json_array_get(list, i);
            const char *name = review_text(container, "name");
            struct container_review c = { .pod = review,
                                          .list = review_lists[l],
                                          .index = i,
                                          .name = name ? name : "",
                                          .limits = review_amounts(container, "limits"),
                                          .requests = review_amounts(container, "requests") };

            r = container_review(&c, err);
            *ret_any |= c.memory || c.compute;
        }
    }
    return r;
}

static bool review_names_no_scheduler(const struct settings *settings, const char *name)
{
    return !name || !name[0] || strcmp(name, "default-scheduler") == 0
           || (settings->webhook.hami && strcmp(name, "hami-scheduler") == 0);
}

static int review_check_node_name(const struct settings *settings, const json_t *spec,
                                  struct aq_error *err)
{
    const char *node = review_text(spec, "nodeName");

    if (!node || !node[0] || settings->webhook.allow_node_name)
        return 0;
    return aq_fail(err, EPERM,
                   "spec.nodeName passes by the scheduler, which knows what is free on a card: "
                   "use a nodeSelector kubernetes.io/hostname: %.100s",
                   node);
}

/* The device plugin does not read pods with more, so nobody would watch what they use. */
static int review_check_count(const json_t *spec, struct aq_error *err)
{
    size_t count = 0;

    for (size_t l = 0; l < AQ_COUNT(review_lists); l++)
        count += json_array_size(json_object_get(spec, review_lists[l]));
    if (count <= NODE_POD_CONTAINERS_MAX)
        return 0;
    return aq_fail(
        err, EPERM,
        "spec has %zu containers and initContainers, and a pod with a part of a GPU at most "
        "%d: divide it into several pods",
        count, NODE_POD_CONTAINERS_MAX);
}

int pod_review(const struct pod_review *review, const json_t *pod, struct aq_error *err)
{
    const struct settings *settings = review->settings;
    const json_t *spec = json_object_get(pod, "spec");
    bool has_part;
    int r = review_containers(review, spec, &has_part, err);

    if (r < 0 || !has_part)
        return r;
    r = review_check_count(spec, err);
    if (r == 0)
        r = review_check_node_name(settings, spec, err);
    if (r == 0)
        r = rights_check_pod(review, pod, err);
    if (r == 0 && review_names_no_scheduler(settings, review_text(spec, "schedulerName")))
        r = pod_patch_add(review, json_string(settings->webhook.scheduler), err, "spec",
                          "schedulerName", NULL);
    return r;
}

/* The amounts of a pod that exists do not change. */
static bool review_has_part(const struct settings *settings, const json_t *spec)
{
    const char *const names[] = { settings->memory_name, settings->compute_name };

    for (size_t l = 0; l < AQ_COUNT(review_lists); l++) {
        const json_t *container;
        size_t i;

        json_array_foreach(json_object_get(spec, review_lists[l]), i, container) {
            for (size_t n = 0; n < AQ_COUNT(names); n++) {
                int64_t amount;

                if (quantity_read(json_object_get(review_amounts(container, "limits"), names[n]),
                                  &amount)
                    && amount > 0)
                    return true;
            }
        }
    }
    return false;
}

int pod_review_debug(const struct pod_review *review, const json_t *pod, const json_t *old,
                     struct aq_error *err)
{
    return review_has_part(review->settings, json_object_get(pod, "spec"))
               ? rights_check_debug(review, pod, old, err)
               : 0;
}
