/* SPDX-License-Identifier: Apache-2.0 */
/* review.h - the answer to an AdmissionReview (admission.k8s.io/v1) */
#ifndef AQ_K8S_WEBHOOK_REVIEW_H
#define AQ_K8S_WEBHOOK_REVIEW_H

#include "k8s/settings.h"

/* The JSON answer to an AdmissionReview; the caller frees *ret. Decides on new pods, which may be
 * patched, and on ephemeral containers that are added to a pod; other requests are allowed. -EINVAL
 * if the body is not an AdmissionReview.
 */
int review_answer(const struct settings *settings, const char *body, size_t len, char **ret,
                  struct aq_error *err) AQ_UNTRUSTED;

#endif
