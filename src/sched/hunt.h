/* hunt.h - the search for those whose going lets a session start
 *
 * What preempt.c, move.c and reserve.c share: an agent's amounts and devices as they
 * would be without some of the sessions there.
 */
#ifndef AQ_SCHED_HUNT_H
#define AQ_SCHED_HUNT_H

#include "sched/state_private.h"

struct hunt {
    struct sched *s;
    const struct entry *e;
    int64_t now_usec;
    struct arena *arena;
    int64_t *free;          /* scratch: of one agent */
    struct device *devices, *sorted;
    bool (*may_go)(const struct hunt *h, const struct entry *v);
    uint32_t *starts, *by_node; /* who may go: handles by node, and where each begins */
    uint32_t *claimed, claimed_count; /* who goes already */
    uint32_t *candidates;   /* handles, on one agent */
    uint32_t candidate_count;
    bool *is_chosen;        /* per candidate */
    uint32_t *victims;      /* of the session so far */
    uint32_t victim_count;
};

/* Sort those that may go by agent; 's', 'e', 'now_usec', 'arena' and 'may_go' are set. 0 or
 * -ENOMEM.
 */
int hunt_init(struct hunt *h);
/* The agent as it is. */
void hunt_begin(struct hunt *h, uint32_t node);
/* As if the entry were gone (1) or back (-1). */
void hunt_without(struct hunt *h, const struct entry *victim, uint32_t node, int sign);
/* What is claimed already will be gone. */
void hunt_forget_claimed(struct hunt *h, uint32_t node);
bool hunt_fits(struct hunt *h, uint32_t node, const struct request *req);
/* For hunt.may_go, where nobody has to. */
bool hunt_spares(const struct hunt *h, const struct entry *v);
bool hunt_is_same_scope(const struct entry *a, const struct entry *b);
/* The part of the request 'req' that another one is, of the slot of which it is most. */
double hunt_size(const struct hunt *h, const struct request *of, const struct request *req);
/* The same of the largest container that the victim has on the node. */
double hunt_contribution(const struct hunt *h, const struct entry *v, uint32_t node,
                         const struct request *req);
/* It goes for this session. */
void hunt_claim(struct hunt *h, uint32_t handle);
/* Hold a place for 'req' on the agent as it was made last, from devices that will be free. 0 or
 * -ENOMEM; *ret holds nothing before, nor then.
 */
int hunt_hold(struct hunt *h, const struct request *req, uint32_t node, struct hold *ret);
/* Nobody has to go; the first 'count' places are given back. 0 or -ENOMEM. */
int hunt_give_up(struct hunt *h, struct entry *e, uint32_t count);

#endif
