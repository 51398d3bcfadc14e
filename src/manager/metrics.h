/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - the manager's own state in Prometheus' text format */
#ifndef AQ_MANAGER_METRICS_H
#define AQ_MANAGER_METRICS_H

#include "http/server.h"
#include "manager/call/api.h"

/* 'turn_sec': processor time of the longest turn of the loop since the last call. */
void metrics_write(const struct api *api, const struct server *server, double turn_sec,
                   struct strbuf *out);

/* What a manager has that does not lead, too. */
void metrics_write_process(const struct server *server, double turn_sec, struct strbuf *out);

#endif
