/* SPDX-License-Identifier: Apache-2.0 */
/* agent_entry.h - an agent in memory: its row, its connection, what is free on it
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_STATE_AGENT_ENTRY_H
#define AQ_MANAGER_CORE_STATE_AGENT_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lists.h"
#include "base/log_budget.h"
#include "base/uuid.h"
#include "model/agent.h"
#include "model/slot.h"

struct agent_devices;
struct agent_measured;
struct agent_network;
struct core;
struct kernel_entry;
struct resource_group_entry;

struct agent_entry {
    struct agent a;               /* first */
    bool is_known;                /* has a row; else only a connection */
    bool is_connected, is_synced; /* synced: a heartbeat came since */
    bool is_unsaved;              /* its row could not be written: again with the next heartbeat */
    bool is_saving;
    struct uuid incarnation; /* of the connection */
    int64_t heard_usec;      /* monotonic, of its last message; later where it is given time */
    int64_t contact_usec;    /* wall clock, of its last message; 0 = none since the start */
    bool is_late;            /* a heartbeat is missing: nothing is placed on it */
    int64_t lost_usec;       /* monotonic, when it was found LOST; 0 = it is not */
    bool loss_handled;       /* the policy for lost agents was applied */
    int64_t leases_end_usec; /* since the last contact: the longest that it was given or reports
                                with its last heartbeat; session/kernel_lease.h */
    bool has_registration;
    struct agent registration;     /* as it greeted; without slots */
    char *slots_text;              /* what it offers now, as it said */
    struct list changes, changing; /* struct agent_change: requested, being saved */
    uint32_t heartbeat;            /* counts them */
    struct list kernels;           /* kernel_entry.agent_link of those that hold */
    uint32_t kernel_count;
    unsigned new_slots, new_metrics; /* names of both that it was the first to say */
    struct slots free;               /* available less held, unless is_stale */
    bool is_stale;
    struct agent_devices *devices;       /* agent_devices.c; NULL = not looked at yet */
    bool devices_changed, devices_stale; /* other devices; other holders */
    char *images;                        /* JSON, as it said; NULL = not yet */
    char *refusal;                       /* why it takes no kernels now; NULL = it does */
    char *runtime, *runtime_notes;       /* as it greeted; NULL = it said none */
    char *data_address;                  /* likewise: msg_hello.data */
    struct agent_measured *measured;     /* NULL = it said nothing yet */
    char *plugins;                       /* JSON, as it said; NULL = not yet */
    char *volumes_text;                  /* hosts of folders that it mounts, as it said */
    struct str_list volumes;             /* the same and perhaps SCHED_SFTP, in one block */
    struct agent_network *network;       /* agent_network.c; NULL = it offered none */
    bool is_reach_changed; /* the scheduler has the former list of unreachable agents */
    bool has_sftp;         /* sessions of the type system can run there */
    struct resource_group_entry *scheduled_by; /* whose scheduler knows it; NULL = none */
    struct list change_link;                   /* in changed_agents of its resource group */
    struct log_budget log;                     /* for what it causes */
};

static inline struct agent_entry *agent_entry_of(const struct agent *a)
{
    return (struct agent_entry *)(void *)a;
}

/* The agent of that id; NULL = there is none. */
struct agent_entry *agent_entry_find(const struct core *core, const char *id);

/* The same, made if there is none. */
struct agent_entry *agent_entry_add(struct core *core, const char *id);

/* The kernel, if the agent has it and it holds resources; NULL = it is none of this agent's. */
struct kernel_entry *agent_entry_find_kernel(struct core *core, const struct agent_entry *a,
                                             const struct uuid *session_id,
                                             const struct uuid *kernel_id);

/* Out of every list and freed; what schedulers and statistics have of it is gone before. */
void agent_entry_drop(struct core *core, struct agent_entry *a);

/* What it has free, summed again if need be; good until a kernel of it changes. 0 or -EOVERFLOW. */
int agent_entry_free_slots(struct agent_entry *a, const struct slots **ret);

/* Its kernels are given up: it was removed, or is lost for longer than the
 * grace and the policy of its group is not to wait; 'forced': lost at all.
 */
bool agent_entry_is_given_up(const struct core *core, const char *id, bool forced);

/* It may be given kernels: ALIVE, connected, its inventory known, not late, not draining, and
 * it did not refuse them.
 */
bool agent_entry_is_ready(const struct agent_entry *a);

/* Look at the sessions of all its kernels again. */
void agent_entry_touch_sessions(struct core *core, struct agent_entry *a);

#endif
