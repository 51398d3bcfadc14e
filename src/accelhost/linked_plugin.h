/* SPDX-License-Identifier: Apache-2.0 */
/* linked_plugin.h - a plugin that is part of this program and is called within it
 *
 * It takes the place of helper_process.h in programs that simulate nodes (accel_settings.linked):
 * requests and answers are the same lines. Answers come from the loop.
 */
#ifndef AQ_ACCELHOST_LINKED_PLUGIN_H
#define AQ_ACCELHOST_LINKED_PLUGIN_H

#include "accelhost/helper_process.h"

struct linked_plugin;

/* Open conf->linked. 'conf' is borrowed for its life. Errors as of host_open(). */
int linked_plugin_new(const struct helper_conf *conf, const struct helper_events *events,
                      void *data, struct linked_plugin **ret, struct aq_error *err);
/* Close it; no event follows. NULL is fine. */
void linked_plugin_free(struct linked_plugin *linked);

/* Takes over 'text', a line; the one before it has been answered. */
void linked_plugin_send(struct linked_plugin *linked, char *text);

#endif
