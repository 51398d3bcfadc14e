/* propose.c - batches of events on their way to the store and back */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/vec.h"
#include "manager/core/parts.h"

#define RETRY_USEC USEC_PER_SEC
#define STALE_RETRY_USEC (5 * USEC_PER_SEC)

struct proposal {
    struct core *core;
    struct event_batch *batch;
    struct live **members;
    size_t member_count, member_cap;
    struct rgroup *pass; /* the group whose pass this is, or NULL */
    bool is_broken;      /* memory was short while it was put together */
};

static void proposal_free(struct proposal *p)
{
    if (!p)
        return;
    event_batch_free(p->batch);
    free(p->members);
    free(p);
}

static struct proposal *open_proposal(struct core *core)
{
    struct proposal *p = core->open;

    if (p)
        return p;
    p = calloc(1, sizeof(*p));
    if (!p || !(p->batch = event_batch_new())) {
        proposal_free(p);
        return NULL;
    }
    p->core = core;
    core->open = p;
    return p;
}

static bool add_member(struct proposal *p, struct live *l)
{
    if (l->is_busy)
        return true;
    if (!vec_grow(&p->members, &p->member_cap, p->member_count + 1, sizeof(*p->members)))
        return false;
    p->members[p->member_count++] = l;
    l->is_busy = true;
    return true;
}

struct event *propose(struct core *core, struct live *l, enum event_kind kind)
{
    struct proposal *p = open_proposal(core);
    struct event *e = NULL;

    if (p && add_member(p, l))
        e = event_batch_add(p->batch, kind, clock_realtime_usec());
    if (!e && p)
        p->is_broken = true;
    if (!e)
        live_wake_at(core, l, clock_monotonic_usec() + RETRY_USEC);
    return e;
}

struct event *propose_session(struct core *core, struct live *l, enum session_status to,
                              const char *reason)
{
    struct event *e = propose(core, l, EVENT_SESSION_STATUS);

    if (e)
        e->session_status = (struct event_session_status){
            .id = l->s.id,
            .from = l->s.status,
            .to = to,
            .version = l->s.version,
            .reason = reason,
        };
    return e;
}

struct event *propose_kernel(struct core *core, struct live *l, size_t rank,
                             enum kernel_status to, const char *reason)
{
    const struct kernel *k = &l->s.kernels[rank];
    struct event *e = propose(core, l, EVENT_KERNEL_STATUS);

    if (e)
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

void propose_pass(struct core *core, struct rgroup *g)
{
    if (core->open && !core->open->pass) {
        core->open->pass = g;
        g->passing++;
    }
}

/* ---- the way back ---- */

/* Nothing was written. Look again: at once if memory was behind, each by
 * itself then, later if the store cannot write.
 */
static void give_back(struct core *core, struct live *l, int result, const struct aq_error *err)
{
    int64_t now = clock_monotonic_usec();

    if (result == -ESTALE && !l->is_alone) {
        l->is_alone = true;
        live_touch(core, l);
        return;
    }
    l->is_alone = result == -ESTALE;
    l->retry_usec = now + (result == -ESTALE ? STALE_RETRY_USEC : RETRY_USEC);
    live_wake_at(core, l, l->retry_usec);
    waiters_fail(core, l, result, err);
}

static void count_result(struct core *core, int result, const struct aq_error *err)
{
    core->counts.commits++;
    if (result == -ESTALE)
        core->counts.stale++;
    else if (result < 0)
        log_warning("the store refused a change, trying again in %lld s: %s",
                    (long long)(RETRY_USEC / USEC_PER_SEC), err->text);
}

static void apply_batch(struct core *core, struct event_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        core_apply(core, &batch->events[i]);
}

/* A pass has not seen it: only another one can tell what it waits for. */
static void pass_again(struct core *core, struct live *l)
{
    if (!l->was_skipped)
        return;
    l->was_skipped = false;
    l->rgroup->needs_pass = true;
    core_schedule_turn(core);
}

static void on_proposal(void *data, int result, const struct aq_error *err,
                        struct event_batch *batch)
{
    struct proposal *p = data;
    struct core *core = p->core;

    (void)batch; /* p owns it */
    count_result(core, result, err);
    if (result == 0) {
        AQ_FAULT("core.proposal.committed");
        apply_batch(core, p->batch);
        AQ_FAULT("core.proposal.applied");
    }
    if (p->pass) {
        p->pass->passing--;
        if (result < 0)
            queue_room(core, p->pass);
        else if (p->pass->needs_pass)
            core_schedule_turn(core);
    }
    for (size_t i = 0; i < p->member_count; i++) {
        struct live *l = p->members[i];

        l->is_busy = false;
        if (l->is_placing && l->s.status == SESSION_PENDING)
            kept_session(l); /* the placement came to nothing */
        l->is_placing = false;
        if (result < 0) {
            give_back(core, l, result, err);
            pass_again(core, l);
        } else if (!session_is_terminal(l->s.status)) {
            l->is_alone = false;
            live_touch(core, l);
            pass_again(core, l);
        }
    }
    proposal_free(p);
}

void propose_flush(struct core *core)
{
    struct proposal *p = core->open;
    struct aq_error err = { .code = ENOMEM, .text = "out of memory" };

    if (!p)
        return;
    core->open = NULL;
    AQ_FAULT("core.proposal.made");
    if (p->is_broken || store_commit(core->store, p->batch, on_proposal, p) < 0)
        on_proposal(p, -ENOMEM, &err, p->batch);
}

/* ---- commands ---- */

struct command {
    struct core *core;
    core_done_fn done;
    void *data;
};

static void on_command(void *data, int result, const struct aq_error *err,
                       struct event_batch *batch)
{
    struct command *c = data;

    c->core->counts.commits++;
    if (result == 0) {
        AQ_FAULT("core.command.committed");
        apply_batch(c->core, batch);
    }
    event_batch_free(batch);
    if (c->done)
        c->done(c->data, result, err);
    free(c);
}

void propose_command(struct core *core, struct event_batch *batch, core_done_fn done, void *data)
{
    struct command *c = calloc(1, sizeof(*c));

    if (c) {
        *c = (struct command){ core, done, data };
        if (store_commit(core->store, batch, on_command, c) == 0)
            return;
    }
    free(c);
    event_batch_free(batch);
    if (done)
        core_defer(core, done, data, -ENOMEM,
                   &(struct aq_error){ .code = ENOMEM, .text = "out of memory" });
}

void core_save(struct core *core, struct event_batch *batch, core_done_fn done, void *data)
{
    propose_command(core, batch, done, data);
}
