/* SPDX-License-Identifier: Apache-2.0 */
/* proposal.h - batches of events on their way to the store and back
 *
 * All proposals of one turn share a batch and a commit; while it is under way
 * its members are busy, and nothing else is proposed for them.
 */
#ifndef AQ_MANAGER_CORE_COMMIT_PROPOSAL_H
#define AQ_MANAGER_CORE_COMMIT_PROPOSAL_H

#include <stddef.h>

#include "manager/core/core.h"
#include "model/event.h"
#include "model/session.h"

struct arena;
struct core;
struct durable;
struct event;
struct event_batch;
struct resource_group_entry;
struct session_entry;

/* What others do with a batch that is back from the store, besides durable_ops.returned of its
 * members; see core.proposal_hooks. */
struct proposal_hooks {
    /* It is durable: change memory by one of its events. */
    void (*apply)(struct core *core, struct event *e);
    /* It held placements of a pass of 'g': durable (0), or nothing was written (< 0). */
    void (*on_pass)(struct core *core, struct resource_group_entry *g, int result);
    /* Does a session that ends for this reason (NULL = as it says) end as a failed replica? */
    bool (*is_failure)(const struct session_entry *l, const char *reason);
};

/* An event of 'd' in the batch of this turn; d becomes busy. */
struct event *proposal_add(struct core *core, struct durable *d, enum event_kind kind);

/* Texts of events of this turn's batch, which has one at least. */
struct arena *proposal_arena(struct core *core);

/* The last member of the batch of this turn is 'd'. */
bool proposal_is_of(const struct core *core, const struct durable *d);

/* As proposal_add(), of a session's status. */
struct event *proposal_add_session_status(struct core *core, struct session_entry *l,
                                          enum session_status to, const char *reason);

/* The same of a kernel's. */
struct event *proposal_add_kernel_status(struct core *core, struct session_entry *l, size_t rank,
                                         enum kernel_status to, const char *reason);

/* The entry of a change that is proposed in this turn, in its batch; nothing if 'by' is NULL. */
void proposal_audit(struct core *core, const struct audit_who *by,
                    const struct audit_change *change);
/* The open batch has placements of a pass of 'g'. */
void proposal_add_pass(struct core *core, struct resource_group_entry *g);

/* Hand the open batch to the store. */
void proposal_commit(struct core *core);

/* A batch of a command, with the entry of its change if 'by' is not NULL; applied, then 'done' is
 * called. Takes the batch.
 */
void proposal_commit_audited(struct core *core, struct event_batch *batch,
                             const struct audit_who *by, const struct audit_change *change,
                             core_done_fn done, void *data);
/* The same of one that has its entries, or none. */
void proposal_commit_command(struct core *core, struct event_batch *batch, core_done_fn done,
                             void *data);

#endif
