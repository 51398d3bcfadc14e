/* SPDX-License-Identifier: Apache-2.0 */
/* session_use_save.c - writing when people worked in sessions last
 *
 * All sessions that were worked in since the last write share one batch every ten seconds. Of very
 * many each batch takes a part, so that other commits need not wait for it.
 */
#include "manager/core/loop/loop_internal.h"

#include "base/clock.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/state/session_use.h"
#include "manager/core/state/state.h"

#define WRITE_USEC (10 * USEC_PER_SEC)
#define BATCH_MAX 500

void session_use_tick(struct core *core, int64_t now)
{
    if (now < core->session_uses.due_usec || list_is_empty(&core->session_uses.unsaved))
        return;
    session_use_save(core);
    if (list_is_empty(&core->session_uses.unsaved))
        core->session_uses.due_usec = now + WRITE_USEC;
}

void session_use_save(struct core *core)
{
    struct list *unsaved = &core->session_uses.unsaved;
    struct event_batch *batch;

    if (list_is_empty(unsaved))
        return;
    batch = event_batch_new();
    for (int i = 0; i < BATCH_MAX && !list_is_empty(unsaved); i++) {
        struct session_use_entry *use = LIST_ENTRY(unsaved->next, struct session_use_entry,
                                                   unsaved_link);
        struct event *e = event_batch_add(batch, EVENT_SESSION_ACCESSED, use->shown.at_usec);

        e->session_change.id = use->session;
        list_remove(&use->unsaved_link);
        if (use->is_ended)
            session_use_free(use);
    }
    proposal_commit_command(core, batch, NULL, NULL);
}
