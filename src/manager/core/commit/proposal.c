/* SPDX-License-Identifier: Apache-2.0 */
/* proposal.c - batches of events on their way to the store and back */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/durable.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "manager/core/statistics/statistics_internal.h"

#define RETRY_USEC USEC_PER_SEC
#define REFUSAL_LOG_USEC (60 * USEC_PER_SEC)
#define STALE_RETRY_USEC (5 * USEC_PER_SEC)

struct proposal {
    struct core *core;
    struct event_batch *batch;
    struct durable **members;
    size_t member_count, member_cap;
    struct resource_group_entry *pass; /* the group whose pass this is, or NULL */
};

static void proposal_free(struct proposal *p)
{
    event_batch_free(p->batch);
    free(p->members);
    free(p);
}

/* What comes in this turn is part of the same change. */
static struct proposal *proposal_open(struct core *core)
{
    if (!core->open) {
        core->open = aq_alloc(sizeof(*core->open));
        core->open->batch = event_batch_new();
        core->open->core = core;
    }
    return core->open;
}

struct event *proposal_add(struct core *core, struct durable *d, enum event_kind kind)
{
    struct proposal *p = proposal_open(core);

    assert(core_is_own_thread(core));
    if (!d->is_busy) {
        vec_grow(&p->members, &p->member_cap, p->member_count + 1, sizeof(*p->members));
        p->members[p->member_count++] = d;
        d->is_busy = true;
    }
    return event_batch_add(p->batch, kind, clock_realtime_usec());
}

struct arena *proposal_arena(struct core *core)
{
    return &core->open->batch->arena;
}

bool proposal_is_of(const struct core *core, const struct durable *d)
{
    const struct proposal *p = core->open;

    return p && p->member_count && p->members[p->member_count - 1] == d;
}

void proposal_audit(struct core *core, const struct audit_who *by,
                    const struct audit_change *change)
{
    event_batch_audit(proposal_open(core)->batch, by, change);
}

void proposal_add_pass(struct core *core, struct resource_group_entry *g)
{
    if (core->open && !core->open->pass) {
        core->open->pass = g;
        g->open_passes++;
    }
}

/* ---- the way back ---- */

/* Nothing was written. Look again: at once if memory was behind, each by
 * itself then, later if the store cannot write.
 */
static void proposal_give_back(struct core *core, struct durable *d, int result)
{
    if (result == -ESTALE && !d->is_alone) {
        d->is_alone = true;
        durable_touch(core, d);
        return;
    }
    d->is_alone = result == -ESTALE;
    d->retry_usec = clock_monotonic_usec() + (d->is_alone ? STALE_RETRY_USEC : RETRY_USEC);
    durable_wake_at(core, d, d->retry_usec);
}

static void proposal_count_result(struct core *core, int result, const struct aq_error *err)
{
    core->counts.commits++;
    if (result == -ESTALE) {
        core->counts.stale++;
    } else if (result < 0 && clock_monotonic_usec() >= core->refusal_log_usec) {
        log_warning("the store refused a change, trying again every %lld s: %s",
                    (long long)(RETRY_USEC / USEC_PER_SEC), err->text);
        core->refusal_log_usec = clock_monotonic_usec() + REFUSAL_LOG_USEC;
    }
}

static void proposal_apply_batch(struct core *core, struct event_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        core->proposal_hooks->apply(core, &batch->events[i]);
}

static void proposal_return_member(struct core *core, struct durable *d, int result,
                                   const struct aq_error *err)
{
    assert(d->is_busy);
    d->is_busy = false;
    if (result < 0) {
        proposal_give_back(core, d, result);
    } else {
        d->is_alone = false;
        durable_touch(core, d);
    }
    d->ops->returned(core, d, result, err);
}

static void proposal_on_committed(void *data, int result, const struct aq_error *err,
                                  struct event_batch *batch)
{
    struct proposal *p = data;
    struct core *core = p->core;

    (void)batch; /* p owns it */
    proposal_count_result(core, result, err);
    if (result == 0) {
        AQ_FAULT("core.proposal.committed");
        proposal_apply_batch(core, p->batch);
        AQ_FAULT("core.proposal.applied");
    }
    if (p->pass) {
        assert(p->pass->open_passes > 0);
        p->pass->open_passes--;
        core->proposal_hooks->on_pass(core, p->pass, result);
    }
    for (size_t i = 0; i < p->member_count; i++)
        proposal_return_member(core, p->members[i], result, err);
    proposal_free(p);
}

void proposal_commit(struct core *core)
{
    struct proposal *p = AQ_TAKE(core->open);

    if (!p)
        return;
    AQ_FAULT("core.proposal.made");
    store_commit(core->store, p->batch, proposal_on_committed, p);
}

/* ---- commands ---- */

struct proposal_command {
    struct core *core;
    core_done_fn done;
    void *data;
};

/* Nobody decides a command again: what it was to change has ended meanwhile. */
static void proposal_on_command(void *data, int result, const struct aq_error *err,
                                struct event_batch *batch)
{
    struct proposal_command *c = data;
    struct aq_error why;

    c->core->counts.commits++;
    if (result == -ESTALE) {
        result = aq_fail_kind(&why, ENOENT, "session-not-found", "The session has just ended.");
        err = &why;
    } else if (result == -EEXIST && batch->events[0].kind == EVENT_SESSION_RENAMED) {
        why = *err;
        why.kind = "session-already-exists";
        err = &why;
    }
    if (result == 0) {
        AQ_FAULT("core.command.committed");
        proposal_apply_batch(c->core, batch);
    }
    event_batch_free(batch);
    if (c->done)
        c->done(c->data, result, err);
    free(c);
}

void proposal_commit_audited(struct core *core, struct event_batch *batch,
                             const struct audit_who *by, const struct audit_change *change,
                             core_done_fn done, void *data)
{
    event_batch_audit(batch, by, change);
    proposal_commit_command(core, batch, done, data);
}

void core_note_change(struct core *core, const struct audit_change *change,
                      const struct audit_who *by, core_done_fn done, void *data)
{
    if (by)
        proposal_commit_audited(core, event_batch_new(), by, change, done, data);
    else
        core_defer(core, done, data, 0, NULL);
}

void proposal_commit_command(struct core *core, struct event_batch *batch, core_done_fn done,
                             void *data)
{
    struct proposal_command *c = aq_alloc(sizeof(*c));

    *c = (struct proposal_command){ core, done, data };
    store_commit(core->store, batch, proposal_on_command, c);
}

/* ---- statuses of sessions and kernels ---- */

struct event *proposal_add_session_status(struct core *core, struct session_entry *l,
                                          enum session_status to, const char *reason)
{
    struct event *e = proposal_add(core, &l->durable, EVENT_SESSION_STATUS);

    e->session_status = (struct event_session_status){
        .id = l->s.id,
        .from = l->s.status,
        .to = to,
        .version = l->s.version,
        .reason = reason,
        .array_id = l->s.array_id,
    };
    if (l->s.replica && session_is_terminal(to) && core->proposal_hooks->is_failure(l, reason))
        e->session_status.failed_revision = l->s.replica->revision;
    return e;
}

struct event *proposal_add_kernel_status(struct core *core, struct session_entry *l, size_t rank,
                                         enum kernel_status to, const char *reason)
{
    const struct kernel *k = &l->s.kernels[rank];
    struct event *e = proposal_add(core, &l->durable, EVENT_KERNEL_STATUS);

    e->kernel_status = (struct event_kernel_status){
        .id = k->id,
        .session_id = l->s.id,
        .from = k->status,
        .to = to,
        .version = k->version,
        .reason = reason,
        .last_stat = kernel_is_terminal(to) ? statistics_text(l->kernels[rank].measured) : NULL,
    };
    return e;
}
