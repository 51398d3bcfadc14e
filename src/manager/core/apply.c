/* apply.c - the one function that changes durable memory
 *
 * Runs after the commit, in commit order, and at start for everything that
 * lives. It must come to exactly what the store has in its rows: the audit
 * compares. It cannot fail.
 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/core/parts.h"

/* ---- announcing ---- */

static const char *const session_events[SESSION_STATUS_COUNT] = {
    [SESSION_PENDING] = "session_enqueued",
    [SESSION_SCHEDULED] = "session_scheduled",
    [SESSION_PREPARING] = "session_preparing",
    [SESSION_PULLING] = "session_pulling",
    [SESSION_CREATING] = "session_creating",
    [SESSION_RUNNING] = "session_started",
    [SESSION_RESTARTING] = "session_restarting",
    [SESSION_PREEMPTED] = "session_preempted",
    [SESSION_RESCHEDULING] = "session_rescheduling",
    [SESSION_TERMINATING] = "session_terminating",
    [SESSION_TERMINATED] = "session_terminated",
    [SESSION_ERROR] = "session_terminated",
    [SESSION_CANCELLED] = "session_cancelled",
};

static const char *const kernel_events[KERNEL_STATUS_COUNT] = {
    [KERNEL_PREPARING] = "kernel_preparing",
    [KERNEL_PULLING] = "kernel_pulling",
    [KERNEL_CREATING] = "kernel_creating",
    [KERNEL_RUNNING] = "kernel_started",
    [KERNEL_TERMINATING] = "kernel_terminating",
    [KERNEL_TERMINATED] = "kernel_terminated",
    [KERNEL_ERROR] = "kernel_terminated",
    [KERNEL_CANCELLED] = "kernel_cancelled",
};

static void announce(struct core *core, const char *name, const struct live *l,
                     const struct kernel *k, const char *reason, int64_t at_usec)
{
    const struct kernel *exited = k ? k : &l->s.kernels[0];
    struct core_event event = {
        .name = name,
        .session = &l->s,
        .kernel = k,
        .reason = reason ? reason : "",
        .has_exit = exited->has_exit,
        .exit_code = exited->exit_code,
        .at_usec = at_usec,
    };

    if (name && core->is_started)
        bus_publish(core, &event);
}

/* ---- sessions ---- */

static void replace(char **to, char *from)
{
    free(*to);
    *to = from;
}

static char *copy(const char *text)
{
    char *c = text ? strdup(text) : NULL;

    if (text && !c)
        core_die("a reason");
    return c;
}

static void apply_created(struct core *core, struct event *e)
{
    struct live *l = live_add(core, &e->session);

    if (!l)
        core_die("a session");
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (kernel_is_holding(l->s.kernels[i].status))
            live_hold(core, l, i, 0);
    l->has_attempts = !core->is_started; /* it may be from before */
    dependency_watch(core, l);
    if (l->s.status == SESSION_PENDING)
        queue_add(core, l);
    live_touch(core, l);
    announce(core, "session_enqueued", l, NULL, l->s.reason, e->at_usec);
}

static void change_status(struct session *s, struct event_session_status *c, int64_t at_usec)
{
    /* The first reason to terminate wins. */
    if (c->reason && !(s->status == SESSION_TERMINATING && s->reason))
        replace(&s->reason, copy(c->reason));
    s->status = c->to;
    s->version = c->version + 1;
    s->status_changed_usec = at_usec;
    if (c->status_data)
        replace(&s->status_data, AQ_TAKE(c->status_data));
    if (c->result != RESULT_UNDEFINED)
        s->result = c->result;
    if (c->has_retry)
        s->retry = c->retry;
    if (c->to == SESSION_RUNNING)
        s->running_usec = at_usec;
}

static void apply_session_status(struct core *core, struct event *e)
{
    struct event_session_status *c = &e->session_status;
    struct live *l = live_find(core, &c->id);

    if (!l)
        return;
    if (l->s.status == SESSION_PENDING)
        queue_remove(core, l);
    change_status(&l->s, c, e->at_usec);
    l->since_usec = clock_monotonic_usec();
    live_unschedule(core, l);
    if (c->to == SESSION_PENDING) {
        l->explained = SCHED_BEHIND;
        queue_add(core, l);
    }
    if (c->to == SESSION_RESTARTING)
        l->wants_restart = false;
    if (preempt_is_leaving(&l->s) || c->to == SESSION_PENDING)
        l->is_preempted = false;
    if (preempt_is_leaving(&l->s))
        kept_leaves(l);
    if (c->to == SESSION_SCHEDULED)
        kept_give_up_places(l); /* it has come where it was to go */
    if (c->result != RESULT_UNDEFINED)
        announce(core, c->result == RESULT_SUCCESS ? "session_success" : "session_failure", l,
                 NULL, l->s.reason, e->at_usec);
    announce(core, session_events[c->to], l, NULL, l->s.reason, e->at_usec);
    waiters_check(core, l);
    if (session_is_terminal(c->to)) {
        dependency_ended(core, l);
        live_bury(core, l);
    }
}

static void apply_change(struct core *core, struct event *e)
{
    struct live *l = live_find(core, &e->session_change.id);

    if (!l)
        return;
    switch (e->kind) {
    case EVENT_SESSION_RENAMED:
        if (live_rename(core, l, e->session_change.name) < 0)
            core_die("a session's name");
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
        live_touch(core, l);
        waiters_check(core, l);
        break;
    default: /* EXPLAINED; one that comes too late is dropped by the store too */
        if (l->s.status != SESSION_PENDING)
            return;
        replace(&l->s.reason, AQ_TAKE(e->session_change.reason));
        replace(&l->s.status_data, AQ_TAKE(e->session_change.status_data));
        announce(core, "session_waiting", l, NULL, l->s.reason, e->at_usec);
        break;
    }
}

/* ---- kernels ---- */

static void move_kernel(struct core *core, struct live *l, struct kernel *k,
                        struct event_kernel_status *c)
{
    struct kernel_live *facts = &l->kernels[k->rank];

    if (k->agent_id && (c->to == KERNEL_PENDING || kernel_is_terminal(c->to)))
        order_forget(core, k->agent_id, &k->id, k->attempt);
    if (c->agent_id)
        replace(&k->agent_id, c->agent_id[0] ? AQ_TAKE(c->agent_id) : NULL);
    if (c->attempt) {
        k->attempt = c->attempt;
        live_forget_facts(facts);
    }
}

static void apply_kernel_status(struct core *core, struct event *e)
{
    struct event_kernel_status *c = &e->kernel_status;
    struct live *l = live_find(core, &c->session_id);
    struct kernel *k = NULL;
    bool held;

    for (size_t i = 0; l && i < l->s.kernel_count; i++)
        if (uuid_equals(&l->s.kernels[i].id, &c->id))
            k = &l->s.kernels[i];
    if (!k)
        return;
    held = kernel_is_holding(k->status);
    k->status = c->to;
    k->version = c->version + 1;
    k->status_changed_usec = e->at_usec;
    if (held && !kernel_is_holding(c->to))
        live_release(core, l, k->rank, e->at_usec);
    move_kernel(core, l, k, c);
    if (kernel_is_terminal(c->to))
        series_end_kernel(core, k, l->kernels[k->rank].measured);
    if (!held && kernel_is_holding(c->to))
        live_hold(core, l, k->rank, e->at_usec);
    if (c->alloc)
        replace(&k->alloc, AQ_TAKE(c->alloc));
    if (c->service_ports)
        replace(&k->service_ports, AQ_TAKE(c->service_ports));
    if (c->has_exit) {
        k->has_exit = true;
        k->exit_code = c->exit_code;
    }
    announce(core, kernel_events[c->to], l, k, c->reason, e->at_usec);
}

static void apply_kernel_resized(struct core *core, struct event *e)
{
    struct live *l = live_find(core, &e->kernel_resized.session_id);
    struct kernel *k = NULL;

    for (size_t i = 0; l && i < l->s.kernel_count; i++)
        if (uuid_equals(&l->s.kernels[i].id, &e->kernel_resized.id))
            k = &l->s.kernels[i];
    if (!k)
        return;
    live_release(core, l, k->rank, e->at_usec);
    k->version = e->kernel_resized.version + 1;
    slots_done(&k->requested);
    k->requested = e->kernel_resized.requested;
    e->kernel_resized.requested = (struct slots){ .items = NULL };
    if (e->kernel_resized.alloc)
        replace(&k->alloc, AQ_TAKE(e->kernel_resized.alloc));
    live_hold(core, l, k->rank, e->at_usec);
    resize_applied(core, l, k->rank);
    announce(core, "kernel_resized", l, k, NULL, e->at_usec);
}

/* ---- all ---- */

static void apply_slot_type(struct core *core, const struct event *e)
{
    struct aq_error err;
    struct slot_types *merged = slot_types_merge(core->types, e->slot_type.name,
                                                 e->slot_type.type, &err);

    if (!merged) {
        log_error("%s", err.text);
        return;
    }
    slot_types_unref(core->types);
    core->types = merged;
    for (size_t i = 0; i < core->agent_count; i++)
        core->agents_sorted[i]->cards_changed = true;
    for (size_t i = 0; i < core->rgroups.count; i++)
        kept_spoil(core->rgroups.entries[i].value);
}

void core_apply(struct core *core, struct event *e)
{
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
    case EVENT_SESSION_ATTEMPT:
    case EVENT_ATTEMPTS_PRUNED:
        break; /* nothing of it is in memory */
    case EVENT_KERNEL_STATUS:
        apply_kernel_status(core, e);
        break;
    case EVENT_KERNEL_RESIZED:
        apply_kernel_resized(core, e);
        break;
    case EVENT_AGENT_SAVED:
    case EVENT_AGENT_STATUS:
    case EVENT_AGENT_REMOVED:
        apply_agent(core, e);
        break;
    case EVENT_SLOT_TYPE_KNOWN:
        apply_slot_type(core, e);
        break;
    case EVENT_DOMAIN_SAVED:
    case EVENT_GROUP_SAVED:
    case EVENT_USER_SAVED:
    case EVENT_KEYPAIR_SAVED:
    case EVENT_KEYPAIR_REMOVED:
    case EVENT_KEYPAIR_POLICY_SAVED:
    case EVENT_RESOURCE_GROUP_SAVED:
        apply_people(core, e);
        break;
    case EVENT_KIND_COUNT:
        break;
    }
}
