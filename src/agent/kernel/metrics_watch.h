/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_watch.h - pages of metrics that the manager wants to know of (metrics.watch)
 *
 * Each is read every three seconds, after a failure every ten, and the manager hears of each reading
 * (metrics.values). What is read is kept in memory: a manager says it again when it has connected. A
 * page of a kernel that does not run is skipped until it does. Loop's thread only.
 */
#ifndef AQ_AGENT_KERNEL_METRICS_WATCH_H
#define AQ_AGENT_KERNEL_METRICS_WATCH_H

#include "link/message.h"

struct agent_daemon;
struct metrics_watch;

struct metrics_watch *metrics_watch_new(struct agent_daemon *agent);
/* NULL is fine. */
void metrics_watch_free(struct metrics_watch *watch);

/* All pages that are read from now on; those that are read already go on. */
void metrics_watch_set(struct metrics_watch *watch, const struct msg_metrics_watch *msg);

#endif
