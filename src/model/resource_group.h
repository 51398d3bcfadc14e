/* SPDX-License-Identifier: Apache-2.0 */
/* resource_group.h - agents that are scheduled together, and how */
#ifndef AQ_MODEL_RESOURCE_GROUP_H
#define AQ_MODEL_RESOURCE_GROUP_H

#include "base/lists.h"
#include "model/entity.h"

struct resource_group {
    char *name, *description;
    bool is_active;
    char *scheduler;              /* "fifo" ... */
    char *scheduler_opts;         /* JSON text */
    char *driver_opts;            /* JSON text */
    int64_t pending_timeout_usec; /* 0 = none */
    char *selection;              /* "concentrated" or "dispersed" */
    char *agent_loss_policy;      /* "wait", "terminate" or "requeue" */
    int64_t agent_loss_grace_usec;
};

/* A decoded request: the members, and options that become members of scheduler_opts. */
struct resource_group_request {
    struct resource_group group;
    const json_t *preemption, *fair_share, *handler_options; /* borrowed; NULL = not given */
    struct str_list allowed_session_types, networks;
    enum maybe backfill, splitting;
    int64_t retries, backfill_reservations, backfill_max_wait_sec; /* RESOURCE_GROUP_UNSET */
};

/* Numbers that a request does not give, in resource_group_no_request; also of
 * group.pending_timeout_usec.
 */
#define RESOURCE_GROUP_UNSET (-1)

extern const struct field resource_group_create[], resource_group_change[];
extern const struct resource_group_request resource_group_no_request;
extern const struct entity resource_group_entity;

#endif
