/* SPDX-License-Identifier: Apache-2.0 */
/* certificate_keeper.h - the webhook's certificate, and that the API server believes in it
 *
 * Certificate and authority are in a Secret, which every replica reads at intervals. Who finds it
 * empty, unusable or near its end writes another, on the version that it has read: of several one
 * succeeds, and the others take what that one wrote. Then the authority is written into each
 * webhook of the configuration, also where somebody has changed it. Both objects are made and
 * removed with the rest of the manifests, so nothing is left and nothing but these two may be
 * written. Belongs to one loop and its thread.
 */
#ifndef AQ_K8S_WEBHOOK_CERTIFICATE_KEEPER_H
#define AQ_K8S_WEBHOOK_CERTIFICATE_KEEPER_H

#include "http/certificate.h"
#include "k8s/settings.h"
#include "kube/api.h"

struct certificate_keeper;

/* It is another one. -errno if it cannot be used yet: it is given again. */
typedef int certificate_given_fn(void *data, const struct certificate *certificate,
                                 struct aq_error *err);

/* 'settings' and 'api' are borrowed, 'space' is the namespace. */
struct certificate_keeper *certificate_keeper_new(const struct settings *settings,
                                                  struct kube_api *api, const char *space,
                                                  certificate_given_fn *on_given, void *data);
/* NULL is fine. */
void certificate_keeper_free(struct certificate_keeper *keeper);

#endif
