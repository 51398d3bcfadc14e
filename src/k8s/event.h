/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - Events on pods and on this node, for who asks why
 *
 * Sent once each; one that the API server does not take is lost, but for the log. Belongs to one
 * loop and its thread.
 */
#ifndef AQ_K8S_EVENT_H
#define AQ_K8S_EVENT_H

#include "kube/api.h"

#define EVENT_LIMIT_NOT_ACTIVE "AliquotLimitNotActive" /* uses the GPU without its limit */
#define EVENT_OVER_LIMIT "AliquotOverLimit"
#define EVENT_OTHER_CARD "AliquotOtherCard"

struct events;

struct event {
    const char *reason, *text;
    const char *namespace, *pod, *uid; /* of the pod; NULL = it is on the node */
};

/* 'api' and 'node' are borrowed. */
struct events *events_new(struct kube_api *api, const char *node);
/* NULL is fine. */
void events_free(struct events *events);

void events_tell(struct events *events, const struct event *event);

#endif
