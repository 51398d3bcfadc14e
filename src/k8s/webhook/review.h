/* SPDX-License-Identifier: Apache-2.0 */
/* review.h - the answer to an AdmissionReview (admission.k8s.io/v1) */
#ifndef AQ_K8S_WEBHOOK_REVIEW_H
#define AQ_K8S_WEBHOOK_REVIEW_H

#include "k8s/settings.h"

/* What the API server is to read, JSON, to be freed: a pod may be made, maybe changed, or not. Ephemeral
 * containers of a pod may be added, or not. Everything else may. -EINVAL for what is no review, -ENOMEM.
 */
int review_answer(const struct settings *settings, const char *body, size_t len, char **ret,
                  struct aq_error *err) AQ_UNTRUSTED;

#endif
