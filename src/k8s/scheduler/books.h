/* SPDX-License-Identifier: Apache-2.0 */
/* books.h - what the cards of all nodes have, and what of it pods hold
 *
 * All of it comes from two watches, of nodes and of pods, but for the placements that were decided
 * and are not bound yet. Of a pod that is bound and has not ended, each part is held where
 *  - the node says that the kubelet has given it, else
 *  - the pod's placement says, if there is room, else
 *  - on the fullest card that has room: somewhere it will be.
 * What the kubelet has given to pods that are not known is held, too. So nothing is given twice,
 * and a replica that starts again has the same books. Where pods were evicted for another, which is
 * nominated for the node, that holds what they leave against those of lower priority. Pure: time is
 * given. Not for threads.
 */
#ifndef AQ_K8S_SCHEDULER_BOOKS_H
#define AQ_K8S_SCHEDULER_BOOKS_H

#include "base/list.h"
#include "k8s/scheduler/selection.h"

struct books;

struct book_node {
    char *name;
    bool is_known; /* the API server has it; else only pods name it */
    struct node_cards cards;
    struct list pods;   /* that are bound to it, assumed or nominated there */
    uint32_t nominated; /* how many of them are that alone */
};

struct book_pod {
    struct pod pod;
    struct list link;       /* of the node's */
    struct book_node *node; /* whose it is; NULL = it waits, or has ended */
    uint32_t *cards;       /* per part, of an assumption; NULL = none, or it has no room any more */
    int64_t assumed_usec;  /* an assumption ends at this time; 0 = there is none */
    bool is_assumed_bound; /* the API server has taken it, the watch has not said so yet */
    bool is_watched;       /* else somebody asked about it before the watch told of it */
    bool is_counted;       /* selectors know that it was placed */
    bool is_leaving;       /* it holds nothing, for a question: books_set_leaving() */
    uint32_t held;         /* a bit for each part that is on a card; by reckon.c */
};

struct books *books_new(void);
void books_free(struct books *books);
AQ_DEFINE_CLEANUP(struct books, books_free)

struct selection *books_selection(struct books *books);

/* ---- what the watches say ---- */

/* The node has these cards, which are taken over. */
void books_set_node(struct books *books, const char *name, struct node_cards *cards);
void books_remove_node(struct books *books, const char *name);

/* What is known of a pod, which is taken over. One of the same name and another uid is gone, one
 * without parts is not kept. 'is_watched': the watch says so.
 */
void books_set_pod(struct books *books, struct pod *pod, bool is_watched);
void books_remove_pod(struct books *books, const char *key);

/* ---- finding ---- */

/* NULL if the API server has no such node. */
struct book_node *books_find_node(const struct books *books, const char *name);
struct book_pod *books_find_pod(const struct books *books, const char *uid);

/* ---- what was decided ---- */

/* The pod will be bound to the node, with its parts on these cards, or that has come to nothing by
 * 'until_usec'. What was assumed of it before is forgotten.
 */
void books_assume(struct books *books, struct book_pod *pod, struct book_node *node,
                  const uint32_t *cards, int64_t until_usec);
/* It is bound: the watch will say so. */
void books_confirm(struct book_pod *pod, int64_t until_usec);
/* It has come to nothing. */
void books_forget(struct books *books, struct book_pod *pod);
/* Assumptions that have ended come to nothing; pods of which the watch does not tell are dropped.
 */
void books_expire(struct books *books, int64_t now_usec);

/* Say that it holds nothing, to ask what there would be room for without it; and take it back. */
void books_set_leaving(struct books *books, struct book_pod *pod, bool is_leaving);
/* Say that of the node's nominated pods this one, and those of lower priority, hold nothing; and
 * take it back.
 */
void books_set_asking(struct books *books, struct book_node *node, const struct book_pod *asking,
                      bool is_asking);

/* It is neither bound nor assumed, but a node has room, or will have, for it alone. */
static inline bool book_pod_is_nominated(const struct book_pod *pod)
{
    return !pod->pod.node && !pod->assumed_usec && pod->pod.nominated;
}

/* ---- sums ---- */

struct books_sums {
    size_t nodes, cards, unhealthy; /* nodes: that have cards */
    int64_t memory, compute, used_memory, used_compute;
    size_t placed, assumed, waiting; /* pods */
};
void books_get_sums(const struct books *books, struct books_sums *ret);

#endif
