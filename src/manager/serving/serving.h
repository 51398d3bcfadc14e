/* SPDX-License-Identifier: Apache-2.0 */
/* serving.h - model services, for the rest of the manager */
#ifndef AQ_MANAGER_SERVING_SERVING_H
#define AQ_MANAGER_SERVING_SERVING_H

#include "manager/call/api.h"

/* Append what proxies reported of model services, for /metrics. */
void serving_write_metrics(const struct api *api, struct strbuf *out);

#endif
