/* SPDX-License-Identifier: Apache-2.0 */
/* agent_change.h - what an administrator sets of an agent, until its row has it */
#ifndef AQ_MANAGER_CORE_NODES_AGENT_CHANGE_H
#define AQ_MANAGER_CORE_NODES_AGENT_CHANGE_H

#include "base/list.h"
#include "manager/core/state/state.h"
#include "model/event.h"

/* See core_change_agent(). */
struct agent_change {
    struct list link; /* agent_entry.changes, .changing while it is saved */
    enum core_agent_drain drain;
    bool ends_sessions; /* with ON */
    char *reason, *resource_group, *topology;
    struct audit_by by;
    core_done_fn done;
    void *data;
};

void agent_change_free(struct agent_change *change);

/* Add the entries of what it changes of the row. */
void agent_change_audit(const struct agent_change *change, const struct agent *row,
                        struct event_batch *batch);

#endif
