/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - the manager's own state in Prometheus' text format */
#ifndef AQ_MANAGER_METRICS_H
#define AQ_MANAGER_METRICS_H

#include "http/server.h"
#include "manager/core/core.h"

bool metrics_write(const struct core *core, const struct server *server, struct strbuf *out);

#endif
