/* SPDX-License-Identifier: Apache-2.0 */
/* placement.h - on which card the ids of a container lie
 *
 * The kubelet asks for each resource of a container apart, in any order, and both have to be of one
 * card. Where it is known for which container it asks (wanted.h), the first resource goes to the
 * card that the scheduler has named if that has room for both, and the second to the card of the
 * first.
 *
 * Where it is not known, the order of calls says it: the kubelet asks for one container after the
 * other, so what comes next of the other resource is of the same container, if that has both. A
 * container that has one resource alone, directly before one whose other resource is asked first,
 * looks as if both calls were for one. So what comes next goes to the same card wherever there is
 * room; where there is not, PodResources says what the last container has, and its pod whether it
 * asks for the other. Only where that pod is not known the next may be refused without need. Pure:
 * no input, no output.
 */
#ifndef AQ_K8S_PLUGIN_PLACEMENT_H
#define AQ_K8S_PLUGIN_PLACEMENT_H

#include "k8s/plugin/card.h"
#include "k8s/pods.h"

#define PLACEMENT_PAIR_USEC (INT64_C(10) * 1000000) /* after that it is another container's */

/* Zero-initialise. */
struct placement {
    struct cards cards;
    char card[DEVICE_CARD_MAX + 1]; /* of the last Allocate; "" = none */
    enum resource_kind kind;        /* of that */
    char id[KUBELET_ID_MAX + 1];    /* one of those of that */
    bool is_pair;                   /* it was the second of a container, as it seems */
    bool is_certain;                /* or not: it is so */
    int64_t usec;                   /* monotonic, of that */
    struct {
        bool is_known;
        bool is_all; /* the container has all that it asks for then */
        enum resource_kind kind;
        char card[DEVICE_CARD_MAX + 1]; /* of its other resource; "" = it has none */
    } next;                             /* of the Allocate that a wish announces */
};

void placement_done(struct placement *placement);

enum resource_kind placement_other(enum resource_kind kind);

/* How much of it the container asks for. */
uint32_t placement_units(const struct node_container *container, enum resource_kind kind);

struct placement_wish {
    char **available, **must; /* ids of the kubelet; 'must' are among the available */
    size_t available_count, must_count;
    int32_t size;
    const struct node_container *const *waiting; /* which may be meant, the likeliest first */
    size_t waiting_count;
    /* The card of the other resource of waiting[0], which is meant for certain; "" = it has none
     * yet. NULL = it is not certain which container is meant.
     */
    const char *partner;
};

/* Ids of one card for a container: 'ret' has room for 'size' texts, which are those of the wish.
 * The card of the ids to keep; else the partner's; else one that has the other resource, too, for
 * all that may be meant, or for the likeliest, and of those the one that the scheduler has named;
 * else that of the container's other resource; else one that has of the other resource, and of
 * those the one with the least left over. -EINVAL for a wish that cannot be, -ENOSPC if no card has
 * so many.
 */
int placement_prefer(struct placement *placement, enum resource_kind kind,
                     const struct placement_wish *wish, int64_t now_usec, char **ret,
                     struct aq_error *err);

/* These ids are a container's now. The card, until the next placement_* or cards_* call. -EINVAL
 * for ids that are not ours or twice there, -EXDEV for several cards or another than the
 * container's other resource has, -ENODEV for one that is unhealthy. -EAGAIN, with nothing changed,
 * if first placement_settle() has to say what the last Allocate was.
 */
int placement_accept(struct placement *placement, enum resource_kind kind, char *const *ids,
                     size_t count, int64_t now_usec, const struct card **ret, struct aq_error *err);

/* What the container has that has this id. Nothing changes if the last Allocate is another by now.
 */
enum placement_last {
    PLACEMENT_UNKNOWN,
    PLACEMENT_ONE,
    PLACEMENT_ALL, /* both resources, or the only one that it asks for */
};
void placement_settle(struct placement *placement, const char *id, enum placement_last last);

/* The container was refused after all: what comes next is another's. */
void placement_forget(struct placement *placement);

#endif
