/* SPDX-License-Identifier: Apache-2.0 */
/* node_cards.h - what the plugin of a node says of its cards, in the node's annotation
 *
 * {"cards":[{"id","model","memory","compute","numa","healthy"}],
 *  "containers":[{"pod","container","card","memory","compute"}]}
 * Amounts are units. "containers" is what the kubelet has given. Pure.
 */
#ifndef AQ_K8S_SCHEDULER_NODE_CARDS_H
#define AQ_K8S_SCHEDULER_NODE_CARDS_H

#include <jansson.h>

#include "base/error.h"
#include "k8s/device_id.h"

#define NODE_CARDS_MAX 64 /* of a node */
#define NODE_GIVEN_MAX 4096

struct node_card {
    char id[DEVICE_CARD_MAX + 1];
    bool is_healthy;
    int32_t memory, compute;           /* all of it, each at most DEVICE_UNITS_MAX, memory not 0 */
    int64_t used_memory, used_compute; /* the books' */
};

/* What the kubelet has given to a container. */
struct node_given {
    char *pod, *container; /* the pod's uid */
    uint32_t card;
    int32_t memory, compute;
};

/* Zero-initialise. */
struct node_cards {
    struct node_card *cards;
    struct node_given *given;
    uint32_t count, given_count;
    uint64_t hash; /* of the text, for the caller; 0 = there was none */
};

/* Read the annotation's text. -EINVAL says what is wrong with it, -E2BIG; *ret is empty then.
 * What a container has of a card that is not there is left out.
 */
int node_cards_read(const char *text, struct node_cards *ret, struct aq_error *err) AQ_UNTRUSTED;
void node_cards_done(struct node_cards *cards);

/* Its index; UINT32_MAX if there is none. */
uint32_t node_cards_find(const struct node_cards *cards, const char *id);

#endif
