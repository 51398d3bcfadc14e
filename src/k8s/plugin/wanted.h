/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.h - which containers the kubelet may be asking for
 *
 * The kubelet does not say for which one it asks: one that is bound here, has no devices yet and asks
 * for as much. Of several the one that was bound first is the likeliest, and of a pod's its first. What
 * is found is a guess, and what annotations say a wish: whether a card has so much is placement.h's
 * business.
 */
#ifndef AQ_K8S_PLUGIN_WANTED_H
#define AQ_K8S_PLUGIN_WANTED_H

#include "base/map.h"
#include "k8s/limits/devices.h"
#include "k8s/plugin/placement.h"
#include "k8s/pods.h"

#define WANTED_MAX 32 /* containers that are looked at, of those that wait */
#define WANTED_KEY_SIZE (POD_UID_MAX + CONTAINER_NAME_MAX + 2)

/* Zero-initialise. */
struct wanted {
    struct map held;            /* "UID/CONTAINER" of those that have devices, as last heard */
    struct map given;           /* of those that seem to have been given some, and when, in ms */
    char last[WANTED_KEY_SIZE]; /* of who may be about to get its other resource; "" = nobody */
    enum resource_kind kind;    /* of that, what it has got ... */
    uint32_t size;              /* ... so much of it */
};

void wanted_done(struct wanted *wanted);

/* What the kubelet says now; of cards too. */
void wanted_set_held(struct wanted *wanted, struct cards *cards, const struct pods *pods,
                     const struct device_list *list);

/* The containers that may be asked for with 'size' units, the likeliest first. None if it is the second
 * resource of the last, or of one that is not known yet. Good until the loop runs again.
 */
size_t wanted_find(const struct wanted *wanted, const struct pods *pods, enum resource_kind kind,
                   uint32_t size, int64_t now_usec, const struct node_container *ret[WANTED_MAX]);

/* So much was given, to whom wanted_find() says. */
void wanted_give(struct wanted *wanted, const struct pods *pods, enum resource_kind kind,
                 uint32_t size, int64_t now_usec);

/* What is given next is no second resource. */
void wanted_forget(struct wanted *wanted);

#endif
