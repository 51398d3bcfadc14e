/* SPDX-License-Identifier: Apache-2.0 */
/* selection.h - on which cards of a node a pod would lie, and how good that is
 *
 * The selectors of src/sched decide, on the node as an agent whose devices are cards: the amount
 * that is compared is memory, or compute for a part that asks for no memory. Cards that have too
 * little of the other amount are devices of a model that the request does not take. So where
 * compute is no matter, placements are those of sched. Pure but for what a selector learns.
 */
#ifndef AQ_K8S_SCHEDULER_SELECTION_H
#define AQ_K8S_SCHEDULER_SELECTION_H

#include "k8s/scheduler/node_cards.h"
#include "k8s/scheduler/pod.h"

struct selection;

struct selection *selection_new(void);
void selection_free(struct selection *selection);

/* Of the cards that there are: what selectors measure by. */
void selection_set_largest(struct selection *selection, int32_t memory, int32_t compute);

/* What selectors learn from: a pod has come, was placed, has left. */
void selection_note_arrival(struct selection *selection, const struct pod *pod);
void selection_note_placement(struct selection *selection);
void selection_note_departure(struct selection *selection);

struct placement_choice {
    double score; /* the most is the best; 0..100 but for fragmentation */
    uint32_t cards[POD_PARTS_MAX];
};

/* All parts of the pod on healthy cards, or none: false. The used amounts of the cards are changed
 * meanwhile, not in the end.
 */
bool selection_place(struct selection *selection, enum card_policy policy, const struct pod *pod,
                     struct node_cards *cards, struct placement_choice *ret);

/* Why there is no place: for programs, and a text with numbers for people. NO_CARD and TOO_LARGE
 * stay so, whichever pods leave.
 */
#define SELECTION_REASON_MAX 160
enum selection_reason { REASON_NO_CARD, REASON_UNHEALTHY, REASON_TOO_LARGE, REASON_NO_ROOM };
enum selection_reason selection_explain(struct selection *selection, const struct pod *pod,
                                        struct node_cards *cards, char ret[SELECTION_REASON_MAX]);

/* Whether it has room for the part; take it, or with -1 give it back. */
bool node_card_has(const struct node_card *card, const struct pod_part *part);
void node_card_take(struct node_card *card, const struct pod_part *part, int sign);

#endif
