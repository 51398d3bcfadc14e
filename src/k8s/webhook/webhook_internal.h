/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_internal.h - inside the review of a pod: its containers and what they ask for */
#ifndef AQ_K8S_WEBHOOK_WEBHOOK_INTERNAL_H
#define AQ_K8S_WEBHOOK_WEBHOOK_INTERNAL_H

#include "k8s/webhook/pod_review.h"

struct container_review {
    const struct pod_review *pod;
    const char *list; /* "containers" */
    size_t index;
    const char *name;
    const json_t *limits, *requests; /* NULL = none */
    int64_t memory, compute;         /* units that it gets; 0 = none */
};

/* ---- container.c ---- */

/* Fill memory and compute, and patch what it says of both. -EPERM for what cannot be. */
int container_review(struct container_review *c, struct aq_error *err);

/* What it asks for under this name; -1 if nothing. -EPERM if that is no whole number, or limits and
 * requests differ.
 */
int container_read(const struct container_review *c, const char *name, int64_t *ret,
                   struct aq_error *err);

/* ---- rights.c ---- */

/* Refuse (-EPERM, with field and remedy) a pod with rights of the node, with which it could leave
 * its part of a GPU; the patch may get variables of containers.
 */
int rights_check_pod(const struct pod_review *review, const json_t *pod, struct aq_error *err);
/* The same for ephemeral containers of 'pod' that 'old' does not have. */
int rights_check_debug(const struct pod_review *review, const json_t *pod, const json_t *old,
                       struct aq_error *err);

/* ---- volumes.c ---- */

/* Refuse (-EPERM) volumes that reach into the node. */
int volumes_check(const struct settings *settings, const json_t *spec, struct aq_error *err);
/* Refuse (-EPERM) mounts of the container of this name over what enforces its limits. */
int mounts_check(const char *name, const json_t *container, struct aq_error *err);

/* ---- hami.c ---- */

/* Put what it asks for under HAMi's names into memory and compute, and take those names out. */
int hami_translate(struct container_review *c, struct aq_error *err);

/* ---- pod_patch.c ---- */

/* Add an operation on a path that is made of these texts, each escaped; the last is NULL. 'value'
 * is taken; NULL = remove.
 */
int pod_patch_add(const struct pod_review *review, json_t *value, struct aq_error *err, ...);
/* The same for a resource of a container, in "limits" or "requests". */
int container_patch(const struct container_review *c, const char *map, const char *name,
                    json_t *value, struct aq_error *err);
void pod_warn(const struct pod_review *review, const char *fmt, ...) AQ_PRINTF(2, 3);

#endif
