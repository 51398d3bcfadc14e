/* SPDX-License-Identifier: Apache-2.0 */
/* serving.h - model services, for the rest of the manager */
#ifndef AQ_MANAGER_SERVING_SERVING_H
#define AQ_MANAGER_SERVING_SERVING_H

#include "manager/call/api.h"
#include "manager/serving/serving_prometheus.h"

/* Append what proxies reported of model services, for /metrics. */
void serving_write_metrics(const struct api *api, struct strbuf *out);

/* The Prometheus server that scaling rules query; 'settings' are borrowed. Before the API is reached.
 * -EINVAL with the setting as field; -errno of files.
 */
int serving_set_prometheus(struct api *api, const struct prometheus_settings *settings,
                           struct aq_error *err);

#endif
