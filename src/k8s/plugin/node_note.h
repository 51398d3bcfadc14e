/* SPDX-License-Identifier: Apache-2.0 */
/* node_note.h - the node's annotation aliquot/cards: its cards, and what of them containers have
 *
 * Written for the scheduler, when it would be another, at most once a second. What the kubelet has
 * given is the truth: where that is another card than the scheduler has named, the pod is told by
 * an Event.
 */
#ifndef AQ_K8S_PLUGIN_NODE_NOTE_H
#define AQ_K8S_PLUGIN_NODE_NOTE_H

#include "k8s/plugin/plugin_internal.h"

struct node_note;

struct node_note *node_note_new(struct plugin_daemon *plugin);
/* NULL is fine. */
void node_note_free(struct node_note *note);

/* Cards, pods or what containers have may be others than before. NULL is fine. */
void node_note_wake(struct node_note *note);

#endif
