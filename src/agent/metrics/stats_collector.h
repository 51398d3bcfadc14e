/* SPDX-License-Identifier: Apache-2.0 */
/* stats_collector.h - takes samples at an interval, sends them, keeps the last for /metrics */
#ifndef AQ_AGENT_METRICS_STATS_COLLECTOR_H
#define AQ_AGENT_METRICS_STATS_COLLECTOR_H

#include "agent/agent_internal.h"
#include "link/message.h"

/* Begin to take samples, unless [statistics] interval is 0: NULL then. */
struct stats_collector *stats_collector_new(struct agent_daemon *agent);
/* NULL is fine. The loop must run once more. */
void stats_collector_free(struct stats_collector *stats);

/* The last sample; NULL before the first. Good until the loop runs again. */
const struct msg_statistics *stats_collector_last(const struct stats_collector *stats);

/* ---- exposition.c ---- */

/* Serve it where the settings say, or else at the first free port of a few. An address in use is a
 * warning, as it is no reason not to run anything; other errors are those of metrics_listen().
 */
int exposition_serve(struct agent_daemon *agent, struct aq_error *err);

#endif
