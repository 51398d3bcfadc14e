/* SPDX-License-Identifier: Apache-2.0 */
/* pod_review.h - what a pod that asks for a part of a GPU gets, or is refused, before it is made */
#ifndef AQ_K8S_WEBHOOK_POD_REVIEW_H
#define AQ_K8S_WEBHOOK_POD_REVIEW_H

#include <jansson.h>

#include "k8s/settings.h"

struct pod_review {
    const struct settings *settings;
    json_t *patch;    /* array: operations of a JSON Patch */
    json_t *warnings; /* array of texts, for who makes the pod */
};

/* Fill both arrays, which stay as they are for a pod without a part of a GPU. -EPERM with what is
 * to be done instead.
 */
int pod_review(const struct pod_review *review, const json_t *pod,
               struct aq_error *err) AQ_UNTRUSTED;
/* The same for ephemeral containers that are added to 'pod', which was 'old': those that it has
 * already are not looked at. -EPERM with the remedy.
 */
int pod_review_debug(const struct pod_review *review, const json_t *pod, const json_t *old,
                     struct aq_error *err) AQ_UNTRUSTED;

#endif
