/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.h - on which card the scheduler wants the container for which the kubelet asks
 *
 * The kubelet does not say for which one it asks: one that is bound here, has no devices yet and asks
 * for as much. Of several the one that was bound first. What annotations say is a wish: whether a
 * card has so much is placement.h's business.
 */
#ifndef AQ_K8S_PLUGIN_WANTED_H
#define AQ_K8S_PLUGIN_WANTED_H

#include "base/map.h"
#include "k8s/limits/devices.h"
#include "k8s/plugin/card.h"
#include "k8s/pods.h"

/* Zero-initialise but for the pods. */
struct wanted {
    struct map held;   /* "UID/CONTAINER" of those that have devices, as last heard */
    struct map picked; /* the same of those for which a card was chosen, and when, in ms */
    uint32_t other;    /* of the container chosen last: units of its other resource; 0 = none ... */
    enum resource_kind kind; /* ... than this one */
};

void wanted_done(struct wanted *wanted);

/* What the kubelet says now. */
void wanted_set_held(struct wanted *wanted, const struct pods *pods,
                     const struct device_list *list);

/* The card for a container that gets 'size' units. NULL: any, or that of its other resource. Borrowed
 * until the loop runs again.
 */
const char *wanted_card(struct wanted *wanted, const struct pods *pods, enum resource_kind kind,
                        uint32_t size, int64_t now_usec);

#endif
