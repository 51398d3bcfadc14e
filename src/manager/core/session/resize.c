/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c - other parts of devices for a session that runs
 *
 * All of its kernels or none: each agent first makes sure that it can, reserves
 * it and says so durably (a trial). When all have, what the kernels hold is
 * written down for all of them at once, and that is the decision: from then on an
 * agent that says something else is told again. Before it, a refusal, a lost agent or
 * the end of this process leaves everything as it was: agents that prepared for what
 * is no longer wanted are told to stay as the row says.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/resize.h"
#include "manager/core/session/resize_check.h"
#include "manager/core/session/session_audit.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define ANSWER_USEC (60 * USEC_PER_SEC) /* of the agents, to a trial and to the order */

struct resize {
    struct slots changes; /* what of a kernel's amounts becomes another one */
    struct audit_by by;
    core_done_fn done;
    void *data;
    int64_t trial;    /* its number, by which agents' answers are known */
    int64_t due_usec; /* monotonic */
    enum { TRYING, DECIDING, DECIDED, ORDERED } phase;
    struct resize_part {
        bool is_ready; /* its agent is prepared; from ORDERED on: has done it */
        char *alloc;   /* what its devices will be, as its agent says; NULL = not said */
    } parts[];         /* as s.kernels */
};

static size_t resize_count_parts(const struct session_entry *l)
{
    size_t count = 0;

    for (size_t i = 0; i < l->s.kernel_count; i++)
        count += resize_takes_part(l, i);
    return count;
}

static bool resize_all_ready(const struct session_entry *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (resize_takes_part(l, i) && !l->resize->parts[i].is_ready)
            return false;
    return true;
}

static void resize_finish(struct core *core, struct session_entry *l, int r,
                          const struct aq_error *err)
{
    struct resize *z = AQ_TAKE(l->resize);

    core_defer(core, z->done, z->data, r, err);
    for (size_t i = 0; i < l->s.kernel_count; i++)
        free(z->parts[i].alloc);
    slots_done(&z->changes);
    free(z);
}

/* ---- orders ---- */

static int resize_send_order(struct core *core, const struct kernel *k, const struct slots *slots,
                             int64_t trial, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct message msg = { .type = MSG_KERNEL_RESIZE };

    slots_write_json(slots, core->types, &w);
    msg.kernel_resize = (struct msg_kernel_resize){ k->id, k->attempt, text.data, trial };
    return core->send(core, k->agent_id, &msg, err);
}

/* It is to hold what its row says. If that does not reach it, its next report asks for it again. */
static void resize_command_as_written(struct core *core, const struct kernel *k)
{
    struct agent_entry *a = agent_entry_find(core, k->agent_id);
    struct aq_error err;

    if (!core->is_stopping && core_agent_is_connected(core, k->agent_id)
        && resize_send_order(core, k, &k->requested, 0, &err) < 0)
        log_limited(&a->log, LOG_LEVEL_WARNING, "a kernel is not told what it is to hold: %s",
                    err.text);
}

static void resize_order_all(struct core *core, const struct session_entry *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (resize_takes_part(l, i))
            resize_command_as_written(core, &l->s.kernels[i]);
}

/* Nothing has been decided: it stays as it is. */
static void resize_abandon(struct core *core, struct session_entry *l, int r,
                           const struct aq_error *err)
{
    resize_order_all(core, l);
    resize_finish(core, l, r, err);
}

/* ---- the request ---- */

/* What the kernel is to hold. */
static void resize_wanted_of(const struct session_entry *l, size_t rank,
                             const struct slots *changes, struct slots *ret)
{
    slots_copy(ret, &l->s.kernels[rank].requested);
    for (size_t i = 0; i < changes->count; i++)
        slots_put(ret, changes->items[i].name, changes->items[i].amount);
}

/* Is there anything to do? */
static bool resize_changes_any(const struct session_entry *l, const struct slots *changes)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        for (size_t c = 0; resize_takes_part(l, i) && c < changes->count; c++)
            if (slots_get(&l->s.kernels[i].requested, changes->items[c].name)
                != changes->items[c].amount)
                return true;
    return false;
}

static int resize_try_all(struct core *core, struct session_entry *l, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < l->s.kernel_count; i++) {
        AQ_CLEANUP(slots_donep) struct slots wanted = { .items = NULL };

        if (!resize_takes_part(l, i))
            continue;
        AQ_FAULT("core.gpu.resize.sending");
        resize_wanted_of(l, i, &l->resize->changes, &wanted);
        r = resize_send_order(core, &l->s.kernels[i], &wanted, l->resize->trial, err);
    }
    return r;
}

static void core_resize_begin(struct core *core, struct session_entry *l,
                              const struct slots *changes, const struct audit_who *by,
                              core_done_fn done, void *data)
{
    struct resize *z = aq_alloc(sizeof(*z) + l->s.kernel_count * sizeof(z->parts[0]));

    slots_copy(&z->changes, changes);
    z->by = audit_by_copy(by);
    z->done = done;
    z->data = data;
    z->trial = clock_realtime_usec();
    z->due_usec = clock_monotonic_usec() + ANSWER_USEC;
    l->resize = z;
    durable_wake_at(core, &l->durable, z->due_usec);
}

void core_resize_session(struct core *core, const struct uuid *id, const struct slots *changes,
                         const struct audit_who *by, core_done_fn done, void *data)
{
    struct session_entry *l = session_entry_find(core, id);
    struct aq_error err = { 0 };
    int r;

    if (!l)
        r = aq_fail_kind(&err, ENOENT, "session-not-found", "No such session.");
    else
        r = resize_check(core, l, changes, &err);
    if (r == 0 && resize_changes_any(l, changes)) {
        core_resize_begin(core, l, changes, by, done, data);
        if (resize_try_all(core, l, &err) < 0)
            resize_abandon(core, l, -err.code, &err);
        return;
    }
    core_defer(core, done, data, r, r < 0 ? &err : NULL);
}

/* ---- what agents say ---- */

static void resize_note_alloc(struct agent_entry *a, struct session_entry *l, size_t rank,
                              const char *alloc)
{
    struct kernel_entry *f = &l->kernels[rank];

    if (!alloc || (f->alloc && strcmp(f->alloc, alloc) == 0))
        return;
    free(f->alloc);
    f->alloc = aq_strdup(alloc);
    a->devices_stale = true;
    if (agent_devices_are_known(a))
        sched_sync_mark_session(l);
}

/* Other amounts become its row's; 'slots' is taken, 'alloc' may be NULL. */
static void resize_write_down(struct core *core, struct session_entry *l, size_t rank,
                              struct slots *slots, const char *alloc)
{
    const struct kernel *k = &l->s.kernels[rank];
    struct event *e = proposal_add(core, &l->durable, EVENT_KERNEL_RESIZED);

    e->kernel_resized.id = k->id;
    e->kernel_resized.session_id = l->s.id;
    e->kernel_resized.version = k->version;
    e->kernel_resized.requested = *slots;
    *slots = (struct slots){ .items = NULL };
    e->kernel_resized.alloc = aq_strdup(alloc);
    core_schedule_turn(core);
}

/* What an agent says of a kernel. */
struct said {
    struct slots held, prepared;
    bool is_prepared; /* 'prepared' is something */
};

static int resize_read_said(struct core *core, const struct msg_kernel_status *m, struct said *ret,
                            struct aq_error *err)
{
    int r = slots_from_text(m->slots, strlen(m->slots), core->types, &ret->held, err);

    if (r == 0 && m->prepared)
        r = slots_from_text(m->prepared, strlen(m->prepared), core->types, &ret->prepared, err);
    ret->is_prepared = r == 0 && m->prepared;
    return r;
}

static void said_done(struct said *said)
{
    slots_done(&said->held);
    slots_done(&said->prepared);
}

/* It could hold what is requested, or an agent of a former version does already. */
static void resize_take_vote(struct core *core, struct session_entry *l, size_t rank,
                             const struct said *said, const struct msg_kernel_status *m)
{
    AQ_CLEANUP(slots_donep) struct slots wanted = { .items = NULL };
    struct resize_part *part = &l->resize->parts[rank];
    bool is_prepared;

    if (part->is_ready)
        return;
    resize_wanted_of(l, rank, &l->resize->changes, &wanted);
    is_prepared = said->is_prepared && m->trial == l->resize->trial;
    if (!is_prepared && !slots_eq(&said->held, &wanted))
        return;
    AQ_FAULT("core.gpu.resize.heard");
    part->alloc = aq_strdup(is_prepared ? m->prepared_alloc : m->alloc);
    part->is_ready = true;
    if (resize_all_ready(l))
        durable_touch(core, &l->durable);
}

/* It is as its row says. */
static void resize_take_done(struct core *core, struct agent_entry *a, struct session_entry *l,
                             size_t rank, const struct msg_kernel_status *m)
{
    resize_note_alloc(a, l, rank, m->alloc);
    if (!l->resize || l->resize->phase != ORDERED)
        return;
    l->resize->parts[rank].is_ready = true;
    if (resize_all_ready(l))
        resize_finish(core, l, 0, NULL);
}

/* An agent cannot do what was decided, and is not prepared for it: the row was not made by what
 * it has said, or its directory was lost. What is held counts then, as one ledger must.
 */
static void resize_take_refusal(struct core *core, struct agent_entry *a, struct session_entry *l,
                                size_t rank, struct said *said, const struct msg_kernel_status *m)
{
    struct aq_error err = { 0 };

    (void)aq_fail_field(&err, EINVAL, m->error_field ? m->error_field : "resources", "%s",
                        m->error_text);
    if (l->resize && l->resize->phase == TRYING && m->trial == l->resize->trial) {
        resize_abandon(core, l, -err.code, &err);
        return;
    }
    if (l->resize && l->resize->phase <= DECIDING)
        return; /* of a former order */
    log_limited(&a->log, LOG_LEVEL_WARNING,
                "agent '%s' does not give '%s' the parts of devices that it is to have: %s",
                a->a.id, l->s.name, err.text);
    if (said->is_prepared || l->durable.is_busy
        || slots_eq(&said->held, &l->s.kernels[rank].requested)
        || (m->error_kind && strcmp(m->error_kind, "busy") == 0))
        return; /* the next report has it told again */
    resize_note_alloc(a, l, rank, m->alloc);
    resize_write_down(core, l, rank, &said->held, m->alloc);
}

void resize_take(struct core *core, struct agent_entry *a, struct session_entry *l, size_t rank,
                 const struct msg_kernel_status *m)
{
    const struct kernel *k = &l->s.kernels[rank];
    struct said said = { .is_prepared = false };
    struct aq_error err = { 0 };

    /* an agent that has just started refuses until it has found the program again */
    if (k->status != KERNEL_RUNNING
        || (m->state != MSG_KERNEL_RUNNING
            && !(m->error_text && l->resize && l->resize->phase == TRYING)))
        return;
    if (m->slots && resize_read_said(core, m, &said, &err) < 0)
        log_limited(&a->log, LOG_LEVEL_WARNING,
                    "what agent '%s' says a kernel holds makes no sense: %s", a->a.id, err.text);
    else if (m->error_text && (m->slots || l->resize))
        resize_take_refusal(core, a, l, rank, &said, m);
    else if (m->slots && l->resize && l->resize->phase <= DECIDING)
        resize_take_vote(core, l, rank, &said, m);
    else if (m->slots && slots_eq(&said.held, &k->requested) && !said.is_prepared)
        resize_take_done(core, a, l, rank, m);
    else if (m->slots && !l->durable.is_busy)
        resize_command_as_written(core, k);
    said_done(&said);
}

/* ---- the decision ---- */

static bool resize_all_connected(const struct core *core, const struct session_entry *l,
                                 const char **ret_lost)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (resize_takes_part(l, i) && !core_agent_is_connected(core, l->s.kernels[i].agent_id)) {
            *ret_lost = l->s.kernels[i].agent_id;
            return false;
        }
    return true;
}

static void resize_fail_lost(struct core *core, struct session_entry *l, const char *agent_id)
{
    struct aq_error err;

    (void)aq_fail_kind(&err, ENOTCONN, "service-unavailable",
                       "agent '%s' is disconnected; '%s' "
                       "keeps what it has",
                       agent_id, l->s.name);
    resize_abandon(core, l, -err.code, &err);
}

/* All its kernels change by the same amounts: one says which. */
static void resize_audit(struct core *core, const struct session_entry *l, size_t rank,
                         const struct slots *wanted)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
    char id[UUID_TEXT_MAX];
    struct audit_change change = session_audit_change(&l->s, "resize-session", id);

    session_audit_write_slots(core, &l->s.kernels[rank].requested, &before);
    session_audit_write_slots(core, wanted, &after);
    change.before = before.data;
    change.after = after.data;
    proposal_audit(core, audit_by_get(&l->resize->by), &change);
}

static bool resize_decide(struct core *core, struct session_entry *l)
{
    const char *lost;

    if (!resize_all_connected(core, l, &lost)) {
        resize_fail_lost(core, l, lost);
        return false;
    }
    for (size_t i = 0, changed = 0; i < l->s.kernel_count; i++) {
        AQ_CLEANUP(slots_donep) struct slots wanted = { .items = NULL };

        if (!resize_takes_part(l, i))
            continue;
        resize_wanted_of(l, i, &l->resize->changes, &wanted);
        if (changed++ == 0)
            resize_audit(core, l, i, &wanted);
        resize_write_down(core, l, i, &wanted, l->resize->parts[i].alloc);
    }
    l->resize->phase = DECIDING;
    AQ_FAULT("core.gpu.resize.deciding");
    return true;
}

/* All has been written down. */
static void resize_send_decided(struct core *core, struct session_entry *l)
{
    const char *lost;

    for (size_t i = 0; i < l->s.kernel_count; i++)
        l->resize->parts[i].is_ready = false;
    l->resize->phase = ORDERED;
    l->resize->due_usec = clock_monotonic_usec() + ANSWER_USEC;
    durable_wake_at(core, &l->durable, l->resize->due_usec);
    AQ_FAULT("core.gpu.resize.decided");
    resize_order_all(core, l);
    if (!resize_all_connected(core, l, &lost))
        resize_finish(core, l, 0, NULL); /* it will be so as soon as that agent is back */
}

/* Some agent has said nothing for too long. */
static void resize_expire(struct core *core, struct session_entry *l)
{
    bool is_decided = l->resize->phase == ORDERED;
    const char *agent_id = "?";
    struct aq_error err;

    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (resize_takes_part(l, i) && !l->resize->parts[i].is_ready)
            agent_id = l->s.kernels[i].agent_id;
    (void)aq_fail_kind(&err, EBUSY, "service-unavailable", "agent '%s' has not answered; '%s' %s",
                       agent_id, l->s.name,
                       is_decided ? "has the new parts as soon as it does" : "keeps what it has");
    if (is_decided)
        resize_finish(core, l, -err.code, &err);
    else
        resize_abandon(core, l, -err.code, &err);
}

bool resize_step(struct core *core, struct session_entry *l, int64_t now)
{
    struct resize *z = l->resize;

    if (!z)
        return false;
    if (z->phase == DECIDED)
        resize_send_decided(core, l);
    else if (z->phase != ORDERED && resize_count_parts(l) && resize_all_ready(l))
        return resize_decide(core, l); /* once more if others were faster */
    else if (now >= z->due_usec)
        resize_expire(core, l);
    else
        durable_wake_at(core, &l->durable, z->due_usec);
    return false;
}

void resize_applied(struct core *core, struct session_entry *l, size_t rank)
{
    struct kernel *k = &l->s.kernels[rank];
    struct agent_entry *a = k->agent_id ? agent_entry_find(core, k->agent_id) : NULL;

    if (a)
        resize_note_alloc(a, l, rank, k->alloc);
    if (l->resize && l->resize->phase == DECIDING)
        l->resize->phase = DECIDED;
}

void resize_stop(struct core *core, struct session_entry *l, int r, const struct aq_error *err)
{
    if (l->resize && l->resize->phase >= DECIDED)
        resize_finish(core, l, 0, NULL);
    else if (l->resize)
        resize_abandon(core, l, r, err);
}

void resize_lost(struct core *core, struct agent_entry *a)
{
    LIST_FOREACH(link, &a->kernels) {
        struct session_entry *l = LIST_ENTRY(link, struct kernel_entry, agent_link)->entry;

        if (l->resize && l->resize->phase == TRYING)
            resize_fail_lost(core, l, a->a.id);
        else if (l->resize && l->resize->phase == ORDERED)
            resize_finish(core, l, 0, NULL); /* it will be so as soon as the agent is back */
    }
}
