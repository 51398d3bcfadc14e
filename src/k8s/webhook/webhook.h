/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.h - what the API server asks before it makes a pod
 *
 * HTTPS with POST /mutate, an AdmissionReview each, and GET /health. It listens from the moment on
 * at which it has a certificate. Belongs to one loop and its thread.
 */
#ifndef AQ_K8S_WEBHOOK_WEBHOOK_H
#define AQ_K8S_WEBHOOK_WEBHOOK_H

#include "k8s/settings.h"
#include "kube/api.h"

struct webhook;

/* 'settings' and 'api' are borrowed. *ret is NULL if the settings want none. Errors of
 * api_server_namespace().
 */
int webhook_new(uv_loop_t *loop, const struct settings *settings, struct kube_api *api,
                struct webhook **ret, struct aq_error *err);
/* Before the API is freed. Its handles are gone after the loop has run. NULL is fine. */
void webhook_free(struct webhook *webhook);

#endif
