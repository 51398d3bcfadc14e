/* SPDX-License-Identifier: Apache-2.0 */
/* reckon.h - what the cards of a node have free, from all that is known of its pods */
#ifndef AQ_K8S_SCHEDULER_RECKON_H
#define AQ_K8S_SCHEDULER_RECKON_H

#include "k8s/scheduler/books.h"

/* Compute the used amounts again. Assumptions for which there is no room any more are dropped:
 * their pods stay with the node.
 */
void reckon_node(const struct books *books, struct book_node *node);

#endif
