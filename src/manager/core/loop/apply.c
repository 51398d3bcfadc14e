/* SPDX-License-Identifier: Apache-2.0 */
/* apply.c - the one function that changes durable memory
 *
 * Runs after the commit, in commit order, and at start for everything that
 * lives. It must come to exactly what the store has in its rows: the audit
 * compares. It cannot fail.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/accounts/access.h"
#include "manager/core/accounts/accounts.h"
#include "manager/core/booking/booking_step.h"
#include "manager/core/events/bus_internal.h"
#include "manager/core/loop/loop_internal.h"
#include "manager/core/nodes/agents.h"
#include "manager/core/scheduling/kernel_queue.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/reservation.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/session/array.h"
#include "manager/core/session/control.h"
#include "manager/core/session/dependency.h"
#include "manager/core/session/rerun.h"
#include "manager/core/session/resize.h"
#include "manager/core/serving/service_step.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/idle_entry.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "manager/core/statistics/series.h"
#include "model/measured.h"
#include "model/status.h"

/* ---- sessions ---- */

static void apply_replace(char **to, char *from)
{
    free(*to);
    *to = from;
}

/* Of what is told of it: the first, or one after it. */
static struct session_event_place apply_place(const struct event *e, int64_t further)
{
    return (struct session_event_place){ .number = e->number + further, .at_usec = e->at_usec };
}

static void apply_created(struct core *core, struct event *e)
{
    struct session_entry *l = session_entry_add(core, &e->session);

    reservation_load(l);
    rerun_follow(l);
    session_entry_follow_subnet(core, l);
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (kernel_is_holding(l->s.kernels[i].status))
            session_entry_hold(core, l, i, 0);
    l->attempts.has_rows = !core->is_started; /* it may be from before */
    dependency_watch(core, l);
    if (l->s.status == SESSION_PENDING)
        queue_add(core, l);
    kernel_queue_update(core, l, false);
    durable_touch(core, &l->durable);
    announce(core, session_event_name(SESSION_PENDING), l, NULL, l->s.reason, apply_place(e, 0));
}

static void apply_change_status(struct session *s, struct event_session_status *c, int64_t at_usec)
{
    assert(s->version == c->version && s->status == c->from); /* commit order */
    /* The first reason to terminate wins. */
    if (c->reason && !(s->status == SESSION_TERMINATING && s->reason))
        apply_replace(&s->reason, aq_strdup(c->reason));
    else if (c->to == SESSION_RUNNING)
        apply_replace(&s->reason, NULL);
    s->status = c->to;
    s->version = c->version + 1;
    s->status_changed_usec = at_usec;
    if (c->status_data)
        apply_replace(&s->status_data, AQ_TAKE(c->status_data));
    if (c->subnet)
        apply_replace(&s->subnet, AQ_TAKE(c->subnet));
    if (c->result != RESULT_UNDEFINED)
        s->result = c->result;
    if (c->has_retry)
        s->retry = c->retry;
    if (c->has_rerun) {
        s->rerun = s->rerun ? s->rerun : aq_alloc(sizeof(*s->rerun));
        *s->rerun = c->rerun;
    }
    if (c->to == SESSION_RUNNING)
        s->running_usec = at_usec;
}

static void apply_session_status(struct core *core, struct event *e)
{
    struct event_session_status *c = &e->session_status;
    struct session_entry *l = session_entry_find(core, &c->id);

    if (!l)
        return;
    if (l->s.status == SESSION_PENDING)
        queue_remove(core, l);
    apply_change_status(&l->s, c, e->at_usec);
    session_entry_follow_subnet(core, l);
    l->since_usec = clock_monotonic_usec();
    if (c->has_rerun)
        rerun_follow(l);
    session_entry_forget_start(l);
    durable_cancel_wake(core, &l->durable);
    if (c->to == SESSION_PENDING) {
        idle_entry_begin_again(l);
        l->queue.explained = SCHED_BEHIND;
        queue_add(core, l);
    }
    if (c->to == SESSION_RESTARTING)
        l->commands.wants_restart = false;
    if (preemption_is_leaving(&l->s) || c->to == SESSION_PENDING)
        l->preemption.is_preempted = false;
    if (preemption_is_leaving(&l->s))
        sched_sync_session_leaves(l);
    kernel_queue_update(core, l, false);
    if (c->to == SESSION_SCHEDULED)
        sched_sync_drop_reservation(l); /* it has come where it was to go */
    announce(core, result_event_name(c->result), l, NULL, l->s.reason, apply_place(e, 0));
    announce(core, session_event_name(c->to), l, NULL, l->s.reason,
             apply_place(e, c->result != RESULT_UNDEFINED));
    waiters_check(core, l);
    if (c->to == SESSION_RUNNING)
        dependency_started(core, l);
    array_note_status(core, l);
    booking_note_status(core, l);
    service_note_status(core, l, c->failed_revision != 0);
    if (session_is_terminal(c->to)) {
        dependency_ended(core, l);
        dependency_forget(core, l);
        session_entry_retire(core, l);
    }
}

static void apply_change(struct core *core, struct event *e)
{
    struct session_entry *l = session_entry_find(core, &e->session_change.id);

    if (!l)
        return;
    switch (e->kind) {
    case EVENT_SESSION_RENAMED:
        session_entry_rename(core, l, e->session_change.name);
        break;
    case EVENT_SESSION_PRIORITY:
        if (l->s.status == SESSION_PENDING)
            queue_remove(core, l);
        l->s.priority = e->session_change.priority;
        if (l->s.status == SESSION_PENDING)
            queue_add(core, l);
        break;
    case EVENT_SESSION_FORCED:
        l->s.forced = true;
        durable_touch(core, &l->durable);
        waiters_check(core, l);
        break;
    default: /* EXPLAINED; one that comes too late is dropped by the store too */
        if (l->s.status != SESSION_PENDING)
            return;
        apply_replace(&l->s.reason, AQ_TAKE(e->session_change.reason));
        apply_replace(&l->s.status_data, AQ_TAKE(e->session_change.status_data));
        announce(core, SESSION_EVENT_WAITING, l, NULL, l->s.reason, apply_place(e, 0));
        break;
    }
}

static void apply_idle(struct core *core, const struct event *e)
{
    struct session_entry *l = session_entry_find(core, &e->session_idle.id);

    if (!l)
        return;
    idle_entry_apply(core, l, &e->session_idle.to, e->session_idle.what);
    if (e->session_idle.warning)
        announce(core, SESSION_EVENT_IDLE_WARNING, l, NULL, e->session_idle.warning,
                 apply_place(e, 0));
    else if (e->session_idle.what & (SESSION_IDLE_EXTENSION | SESSION_IDLE_EXEMPTION)
             && core->is_started)
        bus_publish(core, &(struct core_event){ .name = SESSION_EVENT_IDLE_MOVED,
                                                .session = &l->s,
                                                .reason = "",
                                                .at_usec = e->at_usec });
}

/* ---- kernels ---- */

static void apply_move_kernel(struct core *core, struct session_entry *l, struct kernel *k,
                              struct event_kernel_status *c)
{
    struct kernel_entry *facts = &l->kernels[k->rank];

    if (k->agent_id && (c->to == KERNEL_PENDING || kernel_is_terminal(c->to)))
        agent_command_forget(core, k->agent_id, &k->id, k->attempt);
    if (c->agent_id)
        apply_replace(&k->agent_id, c->agent_id[0] ? AQ_TAKE(c->agent_id) : NULL);
    if (c->attempt) {
        series_end_kernel(core, k, facts->measured);
        if (facts->measured) /* the usage of the next attempt starts at zero */
            measured_done(facts->measured);
        k->attempt = c->attempt;
        session_entry_forget_facts(facts);
    }
}

static void apply_kernel_status(struct core *core, struct event *e)
{
    struct event_kernel_status *c = &e->kernel_status;
    struct session_entry *l = session_entry_find(core, &c->session_id);
    struct kernel *k = NULL;
    bool held;

    for (size_t i = 0; l && i < l->s.kernel_count; i++)
        if (uuid_equals(&l->s.kernels[i].id, &c->id))
            k = &l->s.kernels[i];
    if (!k)
        return;
    assert(k->version == c->version && k->status == c->from); /* commit order */
    held = kernel_is_holding(k->status);
    k->status = c->to;
    k->version = c->version + 1;
    k->status_changed_usec = e->at_usec;
    if (held && !kernel_is_holding(c->to))
        session_entry_release(core, l, k->rank, e->at_usec);
    apply_move_kernel(core, l, k, c);
    if (kernel_is_terminal(c->to))
        series_end_kernel(core, k, l->kernels[k->rank].measured);
    if (!held && kernel_is_holding(c->to))
        session_entry_hold(core, l, k->rank, e->at_usec);
    kernel_queue_update(core, l, c->to == KERNEL_PENDING);
    if (c->alloc)
        apply_replace(&k->alloc, c->alloc[0] ? AQ_TAKE(c->alloc) : NULL);
    if (c->service_ports)
        apply_replace(&k->service_ports, AQ_TAKE(c->service_ports));
    if (c->has_exit) {
        k->has_exit = true;
        k->exit_code = c->exit_code;
    }
    announce(core, kernel_event_name(c->to), l, k, c->reason, apply_place(e, 0));
}

static void apply_kernel_resized(struct core *core, struct event *e)
{
    struct session_entry *l = session_entry_find(core, &e->kernel_resized.session_id);
    struct kernel *k = NULL;

    for (size_t i = 0; l && i < l->s.kernel_count; i++)
        if (uuid_equals(&l->s.kernels[i].id, &e->kernel_resized.id))
            k = &l->s.kernels[i];
    if (!k)
        return;
    assert(k->version == e->kernel_resized.version);
    session_entry_release(core, l, k->rank, e->at_usec);
    k->version = e->kernel_resized.version + 1;
    slots_done(&k->requested);
    k->requested = e->kernel_resized.requested;
    e->kernel_resized.requested = (struct slots){ .items = NULL };
    if (e->kernel_resized.alloc)
        apply_replace(&k->alloc, AQ_TAKE(e->kernel_resized.alloc));
    session_entry_hold(core, l, k->rank, e->at_usec);
    resize_applied(core, l, k->rank);
    if (l->replica) /* proxies send it requests in relation to what it has */
        model_service_entry_note_change(core, l->replica->service);
    announce(core, KERNEL_EVENT_RESIZED, l, k, NULL, apply_place(e, 0));
}

/* ---- all ---- */

static void apply_slot_type(struct core *core, const struct event *e)
{
    struct aq_error err;
    struct slot_types *merged = slot_types_merge(core->types, e->slot_type.name, e->slot_type.type,
                                                 &err);

    if (!merged) {
        log_error("%s", err.text);
        return;
    }
    slot_types_unref(core->types);
    core->types = merged;
    for (size_t i = 0; i < core->agent_count; i++)
        core->agents_sorted[i]->devices_changed = true;
    for (size_t i = 0; i < core->resource_groups.count; i++)
        sched_sync_invalidate(core->resource_groups.entries[i].value);
}

void apply_event(struct core *core, struct event *e)
{
    assert(core_is_own_thread(core));
    switch (e->kind) {
    case EVENT_SESSION_CREATED:
        apply_created(core, e);
        break;
    case EVENT_SESSION_STATUS:
        apply_session_status(core, e);
        break;
    case EVENT_SESSION_RENAMED:
    case EVENT_SESSION_PRIORITY:
    case EVENT_SESSION_FORCED:
    case EVENT_SESSION_EXPLAINED:
        apply_change(core, e);
        break;
    case EVENT_SESSION_IDLE:
        apply_idle(core, e);
        break;
    case EVENT_SESSION_ATTEMPT:
    case EVENT_RUN_ENDED:
    case EVENT_ATTEMPTS_PRUNED:
    case EVENT_KEYPAIR_USED:
    case EVENT_SESSION_DISMISSED:
    case EVENT_SESSION_ACCESSED:
    case EVENT_REQUEST_ANSWERED:
    case EVENT_AUDITED:
        break;             /* nothing of it is in memory */
    case EVENT_ROWS_ADDED: /* perhaps of who may use which resource groups */
        if (!e->rows_added.keeps_access)
            access_forget(core);
        break;
    case EVENT_ARRAY_CREATED:
    case EVENT_ARRAY_CHANGED:
        array_apply(core, e);
        break;
    case EVENT_BOOKING_CREATED:
    case EVENT_BOOKING_CHANGED:
        booking_apply(core, e);
        break;
    case EVENT_SERVICE_CREATED:
    case EVENT_SERVICE_CHANGED:
    case EVENT_SERVICE_TOKEN_ADDED:
    case EVENT_SERVICE_TOKEN_REMOVED:
    case EVENT_SERVICE_TOKEN_USED:
    case EVENT_REPLICA_CHANGED:
        service_apply(core, e);
        break;
    case EVENT_KERNEL_STATUS:
        apply_kernel_status(core, e);
        break;
    case EVENT_KERNEL_RESIZED:
        apply_kernel_resized(core, e);
        break;
    case EVENT_AGENT_SAVED:
    case EVENT_AGENT_STATUS:
    case EVENT_AGENT_REMOVED:
        agents_apply(core, e);
        booking_note_agents(core);
        service_note_agents(core);
        break;
    case EVENT_SLOT_TYPE_KNOWN:
        apply_slot_type(core, e);
        break;
    case EVENT_DOMAIN_SAVED:
    case EVENT_DOMAIN_RENAMED:
    case EVENT_PROJECT_SAVED:
    case EVENT_USER_SAVED:
    case EVENT_KEYPAIR_SAVED:
    case EVENT_KEYPAIR_REMOVED:
    case EVENT_KEYPAIR_POLICY_SAVED:
    case EVENT_RESOURCE_GROUP_SAVED:
    case EVENT_ACCOUNT_PURGED:
        accounts_apply(core, e);
        array_note_accounts(core);
        service_note_accounts(core);
        break;
    case EVENT_KIND_COUNT:
        break;
    }
}
