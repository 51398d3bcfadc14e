/* SPDX-License-Identifier: Apache-2.0 */
/* pods.h - the pods of this node: what of them says who gets which part of which card
 *
 * Follows the API server, and keeps of each pod what is below. While the server is away, what is
 * known stays. Belongs to one loop and its thread.
 */
#ifndef AQ_K8S_PODS_H
#define AQ_K8S_PODS_H

#include "base/arena.h"
#include "k8s/device_id.h"
#include "k8s/settings.h"
#include "kube/api.h"

#define POD_UID_MAX 36
#define CONTAINER_ID_MAX 128
#define CONTAINER_NAME_MAX 63

/* Can a pod be called that by the API server, or a container by its runtime, or by its pod? All of
 * them can be in the name of a file.
 */
bool pod_is_uid(const char *text, size_t len) AQ_UNTRUSTED;
bool pod_is_container_id(const char *text, size_t len) AQ_UNTRUSTED;
bool pod_is_container_name(const char *text) AQ_UNTRUSTED;

/* Pods with more containers are not read; further ephemeral containers are left out. */
#define NODE_POD_CONTAINERS_MAX 256

struct node_container {
    const char *name;
    const char *id; /* its runtime's, without "containerd://"; "" = not yet */
    bool is_running;
    bool is_debug;                  /* an ephemeral container, which can have no part of a card */
    bool has_whole;                 /* it asks another device plugin or driver for GPUs */
    uint32_t memory, compute;       /* units of our resources that it asks for */
    char card[DEVICE_CARD_MAX + 1]; /* that the scheduler has named for it; "" = none */
};

struct node_pod {
    const char *uid, *namespace, *name;
    uint64_t bound;                    /* when, as the scheduler says; 0 = it does not */
    bool is_over;                      /* all of its containers have ended for good */
    bool is_leaving;                   /* it was deleted, its containers are to end */
    bool is_asking;                    /* a container asks for memory of a card */
    struct node_container *containers; /* init and ephemeral ones, too */
    size_t container_count;
    struct arena arena; /* owns the texts and the list */
};

struct pods;

/* 'on_changed' is told of each change, and when all are known. Settings and API are borrowed. */
struct pods *pods_new(struct kube_api *api, const struct settings *settings, const char *node,
                      void (*on_changed)(void *data), void *data);
/* NULL is fine. */
void pods_free(struct pods *pods);

/* All were known once. */
bool pods_are_known(const struct pods *pods);

/* NULL if there is none. Good until the loop runs again. */
const struct node_pod *pods_find(const struct pods *pods, const char *uid);
const struct node_pod *pods_find_named(const struct pods *pods, const char *namespace,
                                       const char *name);
/* for (size_t i = 0; (pod = pods_at(pods, i)); i++) */
const struct node_pod *pods_at(const struct pods *pods, size_t i);

/* The same for those that have gone last: a kubelet may be behind, and still admit them. */
#define PODS_GONE_MAX 32
const struct node_pod *pods_gone_at(const struct pods *pods, size_t i);

const struct node_container *pod_container_by_id(const struct node_pod *pod, const char *id);
const struct node_container *pod_container_by_name(const struct node_pod *pod, const char *name);

/* Read an object of the API server; zero-initialise. -EPROTO for what cannot be a pod. */
int pods_read(const json_t *object, const struct settings *settings, struct node_pod *ret,
              struct aq_error *err) AQ_UNTRUSTED;

#endif
