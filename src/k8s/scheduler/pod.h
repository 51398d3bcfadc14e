/* SPDX-License-Identifier: Apache-2.0 */
/* pod.h - what of a pod matters for where its parts of GPUs are
 *
 * A part is what must lie on one card. A container that asks for memory, compute or both is one,
 * but for init containers: the kubelet gives what they had to those that come after, before
 * anything else, so they and those that get some of it are one part together, as large as the most
 * of it that is held at a time. Pure.
 */
#ifndef AQ_K8S_SCHEDULER_POD_H
#define AQ_K8S_SCHEDULER_POD_H

#include <jansson.h>

#include "base/error.h"
#include "k8s/device_id.h"
#include "k8s/card_policy.h"

#define POD_PARTS_MAX 16
#define POD_CONTAINERS_MAX 64 /* that ask for anything of ours */
#define POD_AMOUNT_MAX 1000000000

#define POD_PLACEMENT "aliquot/placement"
#define POD_POLICY "aliquot/policy"
#define POD_TIMESTAMP "ai.centaurus.io/scheduler-timestamp"

struct pod_part {
    int32_t memory, compute; /* units; not both are 0 */
    char *placed;            /* the card that the annotation names, or NULL */
};

struct pod_container {
    char *name;
    uint32_t part;
};

struct pod {
    char *key;        /* "namespace/name" */
    char *uid, *node; /* node NULL = not bound */
    char *nominated;  /* where others are evicted for it; NULL = nowhere, or it is bound */
    struct pod_part *parts;
    struct pod_container *containers; /* that ask for anything, in the kubelet's order */
    uint32_t part_count, container_count;
    int32_t priority;
    int policy; /* enum card_policy, that its owner chose, or -1 */
    bool is_finished;
};

struct resource_names {
    const char *memory, *compute;
};

/* Read it; one without parts is no error. -EINVAL for what no API server sends, -E2BIG for more
 * parts or containers than fit.
 */
int pod_read(const json_t *object, const struct resource_names *names, struct pod *ret,
             struct aq_error *err) AQ_UNTRUSTED;
void pod_done(struct pod *pod);

/* The part of a container; UINT32_MAX for one that asks for nothing, or is not there. */
uint32_t pod_find_part(const struct pod *pod, const char *container);

#endif
