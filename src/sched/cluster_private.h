/* cluster_private.h - what the files behind cluster.h do for each other */
#ifndef AQ_SCHED_CLUSTER_PRIVATE_H
#define AQ_SCHED_CLUSTER_PRIVATE_H

#include "sched/cluster.h"

/* ---- node_state.c ---- */

bool state_reserve_scratch(struct cluster *c, size_t devices);
/* Find or make the state of 'n', with 'node' as a member. 0 or -ENOMEM. */
int state_enter(struct cluster *c, const struct node *n, uint32_t node, uint32_t *ret);
/* Without its last member it ends. */
void state_leave(struct cluster *c, uint32_t state, uint32_t node);
void states_done(struct cluster *c);

/* ---- request.c ---- */

void requests_done(struct cluster *c);

/* ---- cluster.c: words to small numbers ---- */

/* -ENOSPC if there are too many, -ENOMEM. */
int cluster_model(struct cluster *c, const char *model, uint8_t *ret);
int cluster_quantum(struct cluster *c, int64_t quantum, uint8_t *ret);
int cluster_architecture(struct cluster *c, const char *architecture, uint16_t *ret);

#endif
