/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h - what of which card each container has, as the kubelet says
 *
 * PodResources lists containers that run; those that run before the others of their pod are only in
 * the kubelet's own record, a file beside its socket. Ids that are not ours are left out.
 */
#ifndef AQ_K8S_LIMITS_DEVICES_H
#define AQ_K8S_LIMITS_DEVICES_H

#include <uv.h>

#include "base/arena.h"
#include "k8s/device_id.h"
#include "k8s/settings.h"

struct given_units {
    uint16_t *items; /* their numbers */
    size_t count;
};

struct given_part {
    char card[DEVICE_CARD_MAX + 1];
    uint32_t memory, compute; /* units of it */
    uint32_t last;            /* the highest number among those of memory */
    struct given_units memory_units, compute_units;
};

struct device_holder {
    const char *uid;             /* of the pod; NULL where only its name is known ... */
    const char *namespace, *pod; /* ... else these are NULL */
    const char *container;
    struct given_part *parts;
    size_t part_count;
};

/* A pod for which the kubelet keeps devices, or is about to choose them. */
struct device_pod {
    const char *namespace, *name;
};

struct device_list {
    struct device_holder *items; /* PodResources first */
    size_t count;
    struct device_pod *pods; /* of PodResources */
    size_t pod_count;
    struct arena arena; /* owns all of it */
};
void device_list_done(struct device_list *list);

/* NULL if it has nothing of ours. */
const struct device_holder *device_list_find(const struct device_list *list, const char *uid,
                                             const char *namespace, const char *pod,
                                             const char *container);

/* Does PodResources list the pod? The kubelet's record may still have others, which hold nothing.
 */
bool device_list_has_pod(const struct device_list *list, const char *namespace, const char *pod);

/* 'list' is borrowed; NULL if the kubelet does not say, 'err' has why. */
typedef void devices_done_fn(void *data, const struct device_list *list,
                             const struct aq_error *err);

struct devices_request;

/* Ask. on_done() is called once, never from within this call. -EINVAL for a socket's path that
 * is too long.
 */
int devices_ask(uv_loop_t *loop, const struct settings *settings, devices_done_fn *on_done,
                void *data, struct devices_request **ret, struct aq_error *err);
/* on_done() will not be called. NULL is fine. */
void devices_cancel(struct devices_request *request);

/* Add what the kubelet's own record has; what is none adds nothing. */
void devices_read_record(const char *text, const struct settings *settings,
                         struct device_list *list) AQ_UNTRUSTED;

#endif
