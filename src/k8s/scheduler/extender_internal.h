/* SPDX-License-Identifier: Apache-2.0 */
/* extender_internal.h - questions, for extender.c and preempt.c */
#ifndef AQ_K8S_SCHEDULER_EXTENDER_INTERNAL_H
#define AQ_K8S_SCHEDULER_EXTENDER_INTERNAL_H

#include "k8s/scheduler/extender.h"

/* The JSON of a body, to be dropped also after a failure. -EINVAL. */
int extender_load(const char *body, size_t len, json_t **ret, struct aq_error *err);

/* The pod of a question in the books; *ret NULL for one that asks for nothing of ours. What the
 * watch has told of it is newer. -EAGAIN while the books are not complete; errors of pod_read().
 */
int extender_find_pod(struct extender *extender, const json_t *question, struct book_pod **ret,
                      struct aq_error *err);

/* Where on the node the pod would lie; false if it has no place there. */
bool extender_place(struct extender *extender, const struct book_pod *pod, struct book_node *node,
                    struct placement_choice *ret);

#endif
