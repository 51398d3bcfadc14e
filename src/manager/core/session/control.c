/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - what users ask of sessions that exist */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/session/control.h"
#include "manager/core/session/resize.h"
#include "manager/core/session/session_audit.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

enum waits_for { FOR_END, FOR_FORCED_END, FOR_RESTART };

struct waiter {
    struct list link; /* session_entry.waiters */
    enum waits_for what;
    struct audit_by by; /* of a change that is not proposed yet */
    core_done_fn done;
    void *data;
};

static bool control_is_satisfied(const struct waiter *w, const struct session *s)
{
    bool ends = s->status == SESSION_TERMINATING || session_is_terminal(s->status);

    switch (w->what) {
    case FOR_END:
        return ends;
    case FOR_FORCED_END:
        return session_is_terminal(s->status) || (ends && s->forced);
    case FOR_RESTART:
        return s->status == SESSION_RESTARTING;
    }
    return false;
}

static void control_write_status(enum session_status status, bool forced, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "status", session_status_name(status));
    if (forced)
        jsonw_member_bool(&w, "forced", true);
    jsonw_object_end(&w);
}

static void control_audit_one(struct core *core, const struct session_entry *l,
                              const struct waiter *w, enum session_status to)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
    char id[UUID_TEXT_MAX];
    struct audit_change change = session_audit_change(
        &l->s, w->what == FOR_RESTART ? "restart-session" : "end-session", id);

    control_write_status(l->s.status, l->s.forced, &before);
    control_write_status(to, w->what == FOR_FORCED_END, &after);
    change.before = before.data;
    change.after = after.data;
    proposal_audit(core, &w->by.who, &change);
}

void control_audit(struct core *core, const struct session_entry *l, enum session_status to)
{
    LIST_FOREACH(link, &l->commands.waiters) {
        const struct waiter *w = LIST_ENTRY(link, struct waiter, link);

        if (w->by.is_some && (w->what == FOR_RESTART) == (to == SESSION_RESTARTING))
            control_audit_one(core, l, w, to);
    }
}

static void control_command_answer(struct core *core, struct waiter *w, int r,
                                   const struct aq_error *err)
{
    list_remove(&w->link);
    core_defer(core, w->done, w->data, r, err);
    free(w);
}

void waiters_check(struct core *core, struct session_entry *l)
{
    struct aq_error err;

    LIST_FOREACH(link, &l->commands.waiters) {
        struct waiter *w = LIST_ENTRY(link, struct waiter, link);

        if (control_is_satisfied(w, &l->s)) {
            control_command_answer(core, w, 0, NULL);
        } else if (session_is_terminal(l->s.status) || l->s.status == SESSION_TERMINATING) {
            if (w->what == FOR_RESTART)
                control_command_answer(core, w,
                                       aq_fail_field(&err, EINVAL, "session",
                                                     "the session '%s' has just "
                                                     "ended",
                                                     l->s.name),
                                       &err);
        }
    }
    if (!session_may_resize(l->s.status)) {
        (void)aq_fail_field(&err, EINVAL, "session", "the session '%s' does not run any more",
                            l->s.name);
        resize_stop(core, l, -EINVAL, &err);
    }
}

/* The store could not write it: who asked hears so, and the request is dropped. */
void waiters_fail(struct core *core, struct session_entry *l, int r, const struct aq_error *err)
{
    if (r == -ESTALE)
        return;
    resize_stop(core, l, r, err);
    if (list_is_empty(&l->commands.waiters))
        return;
    LIST_FOREACH(link, &l->commands.waiters)
        control_command_answer(core, LIST_ENTRY(link, struct waiter, link), r, err);
    l->commands.end_reason = NULL;
    l->commands.end_is_forced = l->commands.wants_restart = false;
}

static void control_command_wait(struct core *core, struct session_entry *l, enum waits_for what,
                                 const struct audit_who *by, core_done_fn done, void *data)
{
    struct waiter *w = aq_alloc(sizeof(*w));

    *w = (struct waiter){ .what = what, .by = audit_by_copy(by), .done = done, .data = data };
    list_add(&l->commands.waiters, &w->link);
    waiters_check(core, l);
    durable_touch(core, &l->durable);
}

static struct session_entry *control_find_or_fail(struct core *core, const struct uuid *id,
                                                  core_done_fn done, void *data)
{
    struct session_entry *l = session_entry_find(core, id);
    struct aq_error err;

    if (!l)
        core_defer(core, done, data,
                   aq_fail_kind(&err, ENOENT, "session-not-found", "No such session."), &err);
    return l;
}

static const char *control_command_known_reason(const char *reason, bool forced)
{
    static const char *const known[] = { REASON_USER_REQUESTED, REASON_FORCE_TERMINATED,
                                         REASON_SELF_TERMINATED, REASON_EXEC_TIMEOUT };

    for (size_t i = 0; reason && i < AQ_COUNT(known); i++)
        if (strcmp(known[i], reason) == 0)
            return known[i];
    return forced ? REASON_FORCE_TERMINATED : REASON_USER_REQUESTED;
}

/* Is it more than what was asked for before? */
static bool control_end_is_news(const struct session_entry *l, bool forced)
{
    if (l->commands.end_reason && l->s.status == SESSION_PENDING)
        return false;
    if (forced)
        return !l->commands.end_is_forced && !l->s.forced;
    return !l->commands.end_reason && l->s.status != SESSION_TERMINATING;
}

void control_end(struct core *core, struct session_entry *l, bool forced, const char *reason)
{
    if (!l->commands.end_reason)
        l->commands.end_reason = control_command_known_reason(reason, forced);
    l->commands.end_is_forced |= forced;
    durable_touch(core, &l->durable);
}

void core_terminate_session(struct core *core, const struct uuid *id, bool forced,
                            const char *reason, const struct audit_who *by, core_done_fn done,
                            void *data)
{
    struct session_entry *l = control_find_or_fail(core, id, done, data);

    if (!l)
        return;
    by = control_end_is_news(l, forced) ? by : NULL;
    AQ_FAULT("core.terminate.asked");
    control_end(core, l, forced, reason);
    control_command_wait(core, l, forced ? FOR_FORCED_END : FOR_END, by, done, data);
}

void core_restart_session(struct core *core, const struct uuid *id, const struct audit_who *by,
                          core_done_fn done, void *data)
{
    struct session_entry *l = control_find_or_fail(core, id, done, data);
    struct aq_error err;

    if (!l)
        return;
    if (l->s.status != SESSION_RUNNING || l->commands.end_reason) {
        core_defer(core, done, data,
                   aq_fail_field(&err, EINVAL, "session",
                                 "only a RUNNING session can be "
                                 "restarted, '%s' is %s",
                                 l->s.name, session_status_name(l->s.status)),
                   &err);
        return;
    }
    by = l->commands.wants_restart ? NULL : by;
    l->commands.wants_restart = true;
    control_command_wait(core, l, FOR_RESTART, by, done, data);
}

/* ---- changes that need no step ---- */

void core_dismiss_sessions(struct core *core, const struct core_dismissal *sessions, size_t count,
                           const struct audit_who *by, core_done_fn done, void *data)
{
    struct event_batch *batch = event_batch_new();

    for (size_t i = 0; i < count; i++) {
        const struct core_dismissal *session = &sessions[i];
        struct event *e = event_batch_add(batch, EVENT_SESSION_DISMISSED, clock_realtime_usec());
        char id[UUID_TEXT_MAX];

        e->session_change.id = session->id;
        event_batch_audit(batch, by,
                          &(struct audit_change){ .action = "dismiss-session",
                                                  .object_kind = "session",
                                                  .object_id = uuid_format(&session->id, id),
                                                  .object_name = session->name,
                                                  .object_domain = session->domain });
    }
    proposal_commit_command(core, batch, done, data);
}

/* The new value, of an event in 'batch', which is taken; 'change' has no ids yet. */
static void control_command_change(struct core *core, struct session_entry *l,
                                   const struct event *wanted, struct audit_change *change,
                                   const struct audit_who *by, core_done_fn done, void *data)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, wanted->kind, clock_realtime_usec());
    struct audit_change whole;
    char id[UUID_TEXT_MAX];

    e->session_change = wanted->session_change;
    e->session_change.id = l->s.id;
    whole = session_audit_change(&l->s, change->action, id);
    whole.before = change->before;
    whole.after = change->after;
    proposal_commit_audited(core, batch, by, &whole, done, data);
}

static void control_rename(struct core *core, struct session_entry *l, const char *name,
                           const struct audit_who *by, core_done_fn done, void *data)
{
    struct event wanted = { .kind = EVENT_SESSION_RENAMED };
    char before[SESSION_NAME_MAX + 16], after[SESSION_NAME_MAX + 16]; /* names need no escapes */
    struct audit_change change = { .action = "rename-session", .before = before, .after = after };

    memcpy(wanted.session_change.name, name, strlen(name) + 1);
    (void)snprintf(before, sizeof(before), "{\"name\":\"%s\"}", l->s.name);
    (void)snprintf(after, sizeof(after), "{\"name\":\"%s\"}", name);
    control_command_change(core, l, &wanted, &change, by, done, data);
}

void core_rename_session(struct core *core, const struct uuid *id, const char *name,
                         const struct audit_who *by, core_done_fn done, void *data)
{
    struct session_entry *l = control_find_or_fail(core, id, done, data);
    const struct session *other;
    struct aq_error err;
    int r;

    if (!l)
        return;
    r = session_name_check_new(name, &err);
    other = core_find_session_named(core, &l->s.user_id, name);
    if (r == 0 && other && other != &l->s) {
        r = aq_fail_field(&err, EEXIST, "name", "a live session of yours is already called '%s'",
                          name);
        err.kind = "session-already-exists";
    }
    if (r < 0)
        core_defer(core, done, data, r, &err);
    else if (other)
        core_defer(core, done, data, 0, NULL);
    else
        control_rename(core, l, name, by, done, data);
}

static void control_set_priority(struct core *core, struct session_entry *l, int priority,
                                 const struct audit_who *by, core_done_fn done, void *data)
{
    struct event wanted = { .kind = EVENT_SESSION_PRIORITY, .session_change.priority = priority };
    char before[32], after[32];
    struct audit_change change = { .action = "set-session-priority",
                                   .before = before,
                                   .after = after };

    (void)snprintf(before, sizeof(before), "{\"priority\":%d}", l->s.priority);
    (void)snprintf(after, sizeof(after), "{\"priority\":%d}", priority);
    control_command_change(core, l, &wanted, &change, l->s.priority == priority ? NULL : by, done,
                           data);
}

void core_set_priority(struct core *core, const struct uuid *id, int priority,
                       const struct audit_who *by, core_done_fn done, void *data)
{
    struct session_entry *l = control_find_or_fail(core, id, done, data);
    const struct keypair *k;
    const struct keypair_policy *policy;
    struct aq_error err;
    int max, r = 0;

    if (!l)
        return;
    k = core_find_keypair(core, l->s.access_key);
    policy = k && k->policy ? core_find_policy(core, k->policy) : NULL;
    max = policy && policy->max_priority > 0 ? AQ_MIN(policy->max_priority, PRIORITY_COUNT - 1)
                                             : PRIORITY_COUNT - 1;
    if (l->s.status != SESSION_PENDING)
        r = aq_fail_field(&err, EINVAL, "session",
                          "only a PENDING session has a priority to "
                          "change, '%s' is %s",
                          l->s.name, session_status_name(l->s.status));
    else if (priority < 0 || priority > max)
        r = aq_fail_field(&err, EINVAL, "priority", "a priority is from 0 to %d here, not %d", max,
                          priority);
    if (r < 0)
        core_defer(core, done, data, r, &err);
    else
        control_set_priority(core, l, priority, by, done, data);
}

/* ---- streams ---- */

int core_open_stream(struct core *core, const char *agent_id, struct msg_stream_open *open,
                     const struct link_stream_ops *ops, void *data, struct link_stream **ret,
                     struct aq_error *err)
{
    if (!core->link || !core_agent_is_connected(core, agent_id))
        return aq_fail(err, ENOTCONN,
                       "agent '%s' is not connected; its logs and terminals are "
                       "there when it is back",
                       agent_id);
    return link_server_open_stream(core->link, agent_id, open, ops, data, ret, err);
}

int core_control_stream(struct core *core, const char *agent_id,
                        const struct msg_stream_control *control, struct aq_error *err)
{
    struct message msg = { .type = MSG_STREAM_CONTROL, .stream_control = *control };

    return core->send(core, agent_id, &msg, err);
}
