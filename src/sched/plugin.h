/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - sequencers and selectors out of shared objects (aliquot/scheduler.h)
 *
 * The one part of src/sched that touches the machine: loading. What is loaded
 * stays as long as the process. A plug-in's answers are checked: with one that
 * cannot be, the built-in rule takes over (by row; concentrated), and the log
 * says so, once for each plug-in.
 */
#ifndef AQ_SCHED_PLUGIN_H
#define AQ_SCHED_PLUGIN_H

#include "sched/sched.h"

/* Where sched_plugin_find() looks; NULL = nowhere. Borrowed. */
void sched_plugin_set_folder(const char *folder);

/* What "plugin:NAME" means, from NAME.so in the directory: of 'ret_sequencer' and
 * 'ret_selector' the one that is not NULL. Directory and file must belong to root
 * or to the user who runs this, and nobody else may write to them. -EINVAL with the
 * reason: no directory, not a name, no such file, another ABI, no such part.
 */
int sched_plugin_find(const char *name, const struct sequencer_ops **ret_sequencer,
                      const struct selector_ops **ret_selector, struct aq_error *err);
/* The same of a file that the caller trusts; its path has a slash. */
int sched_plugin_load(const char *path, const struct sequencer_ops **ret_sequencer,
                      const struct selector_ops **ret_selector, struct aq_error *err);

#endif
