/* SPDX-License-Identifier: Apache-2.0 */
/* agent.h - nodes as the manager knows them */
#ifndef AQ_MODEL_AGENT_H
#define AQ_MODEL_AGENT_H

#include "base/uuid.h"
#include "model/slot.h"
#include "model/status.h"

#define AGENT_ID_MAX 64
#define TOPOLOGY_PARTS_MAX 8
#define TOPOLOGY_MAX 255 /* characters of a label */

struct agent {
    char id[AGENT_ID_MAX + 1];
    enum agent_status status;
    struct uuid incarnation; /* of the agent process that is or was connected */
    char *resource_group;
    char *assigned_group; /* by an administrator, over what the agent says; NULL = none */
    char *architecture, *version, *addr, *region;
    char *topology;          /* where it is, as "zone-a/rack-3/switch-1"; NULL = not known */
    char *assigned_topology; /* by an administrator, over what the agent says; NULL = none */
    bool schedulable;        /* false = drained */
    char *drain_reason;      /* NULL = none */
    bool ends_sessions;      /* drained, and sessions there are requeued or ended */
    struct slots available;  /* what it offers: capacity less reservations */
    char *devices;           /* JSON description of devices, from the agent */
    int64_t first_contact_usec, status_changed_usec;
    int64_t lost_usec; /* 0 = not lost */
};

void agent_done(struct agent *a);

/* 1..64 of [A-Za-z0-9._-], first alphanumeric. */
int agent_id_check(const char *id, struct aq_error *err) AQ_UNTRUSTED;
/* A topology label: 1..TOPOLOGY_PARTS_MAX parts of [A-Za-z0-9._-], separated by '/'. 0 or -EINVAL. */
int topology_check(const char *label, struct aq_error *err) AQ_UNTRUSTED;

#endif
