/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.h - for which container the kubelet asks, and what cards have free meanwhile
 *
 * The kubelet's calls do not name the container. But PodResources lists the pod that the kubelet is
 * about to admit, without the devices that it does not have yet, and pods are admitted one at a
 * time, their containers in order. So the first container that still lacks a resource it asks for
 * is the one.
 *
 * Others may lack devices, too: pods that were deleted before they were admitted, containers that
 * had ended when the kubelet was started again, and pods that kubelets before 1.34 have rejected.
 * These come after a container that has half of what it asks for, and after one that is new; they,
 * and pods that have gone from the API server already, count only once its watch should have told
 * of anything new.
 *
 * What is found is exact only while the kubelet waits for the answer to a call. Pure.
 */
#ifndef AQ_K8S_PLUGIN_WANTED_H
#define AQ_K8S_PLUGIN_WANTED_H

#include "k8s/limits/devices.h"
#include "k8s/plugin/placement.h"
#include "k8s/pods.h"

#define WANTED_MAX 32 /* containers that are looked at, of those that wait */
#define WANTED_KEY_SIZE (POD_UID_MAX + CONTAINER_NAME_MAX + 2)

enum wanted_rank { WANTED_SECOND, WANTED_NEW, WANTED_OLD };

struct wanted_container {
    const struct node_pod *pod;
    const struct node_container *container;
    enum wanted_rank rank;
    char card[DEVICE_CARD_MAX + 1]; /* of its other resource; "" = it has none of that */
};

/* Neither PodResources nor the kubelet's record has what an init container was given of its first
 * resource while it is asked for the second. Zero-initialise.
 */
struct wanted {
    char next[WANTED_KEY_SIZE];     /* "UID/CONTAINER" of the last question; "" = not known */
    char last[WANTED_KEY_SIZE];     /* of the last Allocate; "" = not known */
    enum resource_kind kind;        /* of that ... */
    char card[DEVICE_CARD_MAX + 1]; /* ... and its card */
};

/* The containers that may be asked for with 'size' units, all of one rank, the likeliest first; one
 * alone is certain. 'is_late': old ones count. Good until the loop runs again.
 */
size_t wanted_find(struct wanted *wanted, const struct pods *pods, const struct device_list *list,
                   enum resource_kind kind, uint32_t size, bool is_late,
                   struct wanted_container ret[WANTED_MAX]);

/* Units of this card were given to the container that was found last. */
void wanted_give(struct wanted *wanted, enum resource_kind kind, const char *card);

/* The kubelet begins again. */
void wanted_forget(struct wanted *wanted);

/* Free of each card is what no container holds. */
void wanted_set_free(struct cards *cards, const struct pods *pods, const struct device_list *list);

#endif
