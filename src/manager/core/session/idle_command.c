/* SPDX-License-Identifier: Apache-2.0 */
/* idle_command.c - keeping sessions that nobody uses: extensions by users, exemptions by
 * administrators; and what the checks say, as JSON
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "manager/core/bus.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/session/idle.h"
#include "manager/core/session/session_audit.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/idle_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* ---- what the checks say ---- */

static void idle_write_averages(const struct core_idle *idle, struct jsonw *w)
{
    const struct idle_settings *s = idle->settings;

    jsonw_object_begin(w);
    jsonw_member_str(w, "thresholds_check_operator", s->ends_if_any_is_low ? "or" : "and");
    jsonw_key(w, "resources");
    jsonw_object_begin(w);
    for (size_t i = 0; i < s->threshold_count; i++) {
        if (!idle->averages[i].is_known)
            continue;
        jsonw_key(w, s->thresholds[i].metric);
        jsonw_array_begin(w);
        jsonw_double(w, idle->averages[i].average);
        jsonw_double(w, s->thresholds[i].percent);
        jsonw_array_end(w);
    }
    jsonw_object_end(w);
    jsonw_object_end(w);
}

void core_idle_write_checks(const struct core_idle *idle, struct jsonw *w)
{
    jsonw_object_begin(w);
    for (enum idle_check i = 0; idle && i < IDLE_CHECKS; i++) {
        const struct idle_verdict *v = &idle->report.checks[i];

        if (v->state == IDLE_OFF)
            continue;
        jsonw_key(w, idle_check_name(i));
        jsonw_object_begin(w);
        jsonw_key(w, "remaining");
        if (v->state == IDLE_KEPT)
            jsonw_null(w);
        else if (v->state == IDLE_EXPIRED)
            jsonw_int(w, -1);
        else
            jsonw_int(w, (v->at_usec - idle->now_usec + USEC_PER_SEC - 1) / USEC_PER_SEC);
        jsonw_member_str(w, "remaining_time_type",
                         v->state == IDLE_GRACE ? "grace_period" : "expire_after");
        jsonw_key(w, "extra");
        if (i == IDLE_UTILIZATION)
            idle_write_averages(idle, w);
        else
            jsonw_null(w);
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
}

/* "45 s", "10 min", "3.5 h", "2 d". */
static void idle_write_span(int64_t usec, struct strbuf *out)
{
    double sec = (double)AQ_MAX(usec, 0) / USEC_PER_SEC;

    if (sec < 90)
        strbuf_addf(out, "%.0f s", sec);
    else if (sec < 90 * 60)
        strbuf_addf(out, "%.0f min", sec / 60);
    else if (sec < 48 * 3600)
        strbuf_addf(out, "%.3g h", sec / 3600);
    else
        strbuf_addf(out, "%.3g d", sec / 86400);
}

void core_idle_write_text(const struct core_idle *idle, const char *name, struct strbuf *out)
{
    static const struct {
        const char *before, *after;
    } words[IDLE_CHECKS] = {
        [IDLE_NETWORK] = { "Session '", "' is idle and ends in " },
        [IDLE_UTILIZATION] = { "Session '", "' uses too little of its resources and ends in " },
        [IDLE_LIFETIME] = { "Session '", "' reaches its maximum lifetime and ends in " },
    };
    enum idle_check by = idle->report.by;

    if (by == IDLE_CHECKS || !idle->is_warned)
        return;
    strbuf_adds(out, words[by].before);
    strbuf_adds(out, name);
    strbuf_adds(out, words[by].after);
    idle_write_span(idle->report.at_usec - idle->now_usec, out);
    if (by == IDLE_LIFETIME)
        strbuf_adds(out, ". Save your work");
    else
        strbuf_addf(out, " unless it is used. 'aliquot session extend %s' keeps it running", name);
}

void core_idle_write_warning(const struct core *core, const struct core_event *event,
                             struct strbuf *out)
{
    struct core_idle idle;

    if (strcmp(event->name, SESSION_EVENT_IDLE_WARNING) == 0
        && core_read_idle(core, event->session, &idle))
        core_idle_write_text(&idle, event->session->name, out);
}

/* ---- commands ---- */

struct idle_command {
    core_extend_fn done;
    void *data;
    int64_t until_usec;
};

static void idle_command_on_done(void *data, int r, const struct aq_error *err)
{
    struct idle_command *c = data;

    c->done(c->data, r, err, c->until_usec);
    free(c);
}

/* Its row, in a batch with the entry of the change. */
static void idle_command_save(struct core *core, struct session_entry *l,
                              const struct session_idle *to, unsigned what, const char *action,
                              const char *after, const struct audit_who *by, core_done_fn done,
                              void *data)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_SESSION_IDLE, clock_realtime_usec());
    struct audit_change change;
    char id[UUID_TEXT_MAX];

    e->session_idle.id = l->s.id;
    e->session_idle.what = what;
    e->session_idle.to = *to;
    change = session_audit_change(&l->s, action, id);
    change.after = after;
    proposal_commit_audited(core, batch, by, &change, done, data);
    AQ_FAULT("core.idle.asked");
}

/* The largest that the owner's policy lets him have; 0 = there is no limit. */
static int64_t idle_command_max(const struct core *core, const struct session_entry *l)
{
    const struct keypair *key = core_find_keypair(core, l->s.access_key);
    const struct keypair_policy *p = key && key->policy ? core_find_policy(core, key->policy)
                                                        : NULL;

    return p ? p->max_idle_extension_sec * USEC_PER_SEC : 0;
}

/* How long from now it is kept by an extension of '*usec' (0 = its idle timeout), and how much of
 * that is new: an extension that ends later stays in effect. -EINVAL says why it cannot be extended.
 */
static int idle_command_check(struct core *core, struct session_entry *l, int64_t *usec,
                              int64_t *ret_added, struct aq_error *err)
{
    int64_t max = idle_command_max(core, l), used = l->idle ? l->idle->saved.extensions_usec : 0;
    struct core_idle idle;
    int64_t lifetime, kept;

    if (!core_read_idle(core, &l->s, &idle))
        return aq_fail_field(err, EINVAL, "session",
                             "session '%s' cannot be extended: it is not running, or no idle check "
                             "applies to it",
                             l->s.name);
    if (!idle.limits.network_usec && !idle.limits.window_usec)
        return aq_fail_field(err, EINVAL, "session",
                             "session '%s' has no idle timeout, only a maximum lifetime; ask an "
                             "administrator for 'aliquot session exempt'",
                             l->s.name);
    if (!*usec)
        *usec = idle.limits.network_usec ? idle.limits.network_usec : idle.limits.window_usec;
    kept = AQ_MAX(idle.extended_usec - idle.now_usec, INT64_C(0));
    *usec = AQ_MAX(*usec, kept);
    if (max && *usec > kept && used + *usec - kept > max)
        return aq_fail_field(err, EINVAL, "duration",
                             "the keypair policy allows extending a session by %" PRId64
                             " s in total, and %" PRId64 " s remain; request less time, or ask an "
                             "administrator",
                             max / USEC_PER_SEC, AQ_MAX(max - used, 0) / USEC_PER_SEC);
    lifetime = idle.report.checks[IDLE_LIFETIME].state == IDLE_OFF
                   ? INT64_MAX
                   : idle.report.base_usec + idle.limits.lifetime_usec - idle.now_usec;
    *usec = AQ_MIN(*usec, lifetime);
    *ret_added = AQ_MAX(*usec - kept, INT64_C(0));
    return *usec > 0 ? 0
                     : aq_fail_field(err, EINVAL, "duration",
                                     "session '%s' has reached its maximum lifetime", l->s.name);
}

static struct session_entry *idle_command_find(struct core *core, const struct uuid *id,
                                               struct aq_error *err)
{
    struct session_entry *l = session_entry_find(core, id);

    if (!l)
        (void)aq_fail_kind(err, ENOENT, "session-not-found", "No such session.");
    return l;
}

void core_extend_session(struct core *core, const struct uuid *id, int64_t usec,
                         const struct audit_who *by, core_extend_fn done, void *data)
{
    struct idle_command *c = aq_alloc(sizeof(*c));
    struct aq_error err = { 0 };
    struct session_entry *l = idle_command_find(core, id, &err);
    struct session_idle to;
    int64_t added = 0;
    char after[64];

    *c = (struct idle_command){ .done = done, .data = data };
    if (!l || idle_command_check(core, l, &usec, &added, &err) < 0 || added == 0) {
        c->until_usec = clock_realtime_usec() + usec;
        core_defer(core, idle_command_on_done, c, -err.code, &err);
        return;
    }
    to = l->idle->saved;
    to.extended_usec = clock_realtime_usec();
    to.extension_usec = usec;
    to.extensions_usec += added;
    c->until_usec = to.extended_usec + usec;
    (void)snprintf(after, sizeof(after), "{\"extended_sec\":%" PRId64 "}", usec / USEC_PER_SEC);
    idle_command_save(core, l, &to, SESSION_IDLE_EXTENSION, "extend-session", after, by,
                      idle_command_on_done, c);
}

void core_exempt_session(struct core *core, const struct uuid *id, int64_t usec,
                         const struct audit_who *by, core_done_fn done, void *data)
{
    struct aq_error err = { 0 };
    struct session_entry *l = idle_command_find(core, id, &err);
    struct session_idle to;
    char after[64];

    if (!l) {
        core_defer(core, done, data, -ENOENT, &err);
        return;
    }
    to = idle_entry_get(l)->saved;
    to.exempted_usec = usec < 0 ? 0 : clock_realtime_usec();
    to.exemption_usec = AQ_MAX(usec, 0);
    if (usec > 0)
        (void)snprintf(after, sizeof(after), "{\"exempt_sec\":%" PRId64 "}", usec / USEC_PER_SEC);
    else
        (void)snprintf(after, sizeof(after), "{\"exempt\":%s}", usec < 0 ? "false" : "true");
    idle_command_save(core, l, &to, SESSION_IDLE_EXEMPTION, "exempt-session", after, by, done,
                      data);
}
