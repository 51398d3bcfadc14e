/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.h - the volumes of [folders] in agent.toml: which are there now
 *
 * They are looked at every 10 seconds, each by a process of its own, as a mount of another machine
 * may hang: one whose process has not ended by the next look does not answer. The loop's thread.
 */
#ifndef AQ_AGENT_VOLUME_VOLUMES_H
#define AQ_AGENT_VOLUME_VOLUMES_H

#include <uv.h>

#include "agent/settings/settings.h"

struct volumes;

/* 'on_change' tells that others can be mounted than before, not from within. 'settings' are
 * borrowed; 'monitor' is the path of aliquot-monitor.
 */
struct volumes *volumes_new(uv_loop_t *loop, const struct settings *settings, const char *monitor,
                            void (*on_change)(void *data), void *data);
/* NULL is fine. */
void volumes_free(struct volumes *volumes);

/* Is each one known to be there or not? */
bool volumes_are_known(const struct volumes *volumes);

/* JSON list of the hosts whose folders can be mounted, ["local:volume1"]; until the next change. */
const char *volumes_list(const struct volumes *volumes);

/* The path of a host's volume, borrowed. -ENOENT if this node has no such volume, or -errno why it
 * cannot be used now.
 */
int volumes_find(const struct volumes *volumes, const char *host, const char **ret_path,
                 struct aq_error *err);

/* For administrators, of the number-th in the settings: 0, -EOPNOTSUPP if not all folders on it can
 * be mounted, or -errno why none can.
 */
int volumes_check(const struct volumes *volumes, size_t number, struct aq_error *err);

#endif
