/* SPDX-License-Identifier: Apache-2.0 */
/* booking_command.c - commands that create, change and cancel bookings
 *
 * The scheduler gets a booking before the store has it, so that no session is placed on its amounts
 * in between. If the store refuses the booking, the scheduler gets the previous one back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/booking/booking_limits.h"
#include "manager/core/bookings.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/booking_sync.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* A command on its way to the store. */
struct booking_command {
    struct core *core;
    struct booking_entry *draft;          /* the booking that the scheduler has; NULL = none */
    const struct core_answered *answered; /* with 'write'; NULL = the answer is not kept */
    core_booking_write_fn write;
    core_done_fn done;
    void *data;
};

/* ---- lookup ---- */

const struct booking *core_find_booking(const struct core *core, const char *text)
{
    struct uuid id;
    struct booking_entry *entry = uuid_parse(text, &id) == 0 ? booking_entry_find(core, &id)
                                                             : booking_entry_find_named(core, text);

    return entry ? &entry->b : NULL;
}

const struct booking *core_next_booking(const struct core *core, const struct booking *after)
{
    const struct list *link =
        after ? ((const struct booking_entry *)(const void *)after)->all_link.next
              : core->bookings.next;

    return link == &core->bookings ? NULL
                                   : &LIST_ENTRY(link, const struct booking_entry, all_link)->b;
}

const struct session *core_next_booking_session(const struct core *core, const struct booking *b,
                                                const struct session *after)
{
    const struct booking_entry *entry = (const struct booking_entry *)(const void *)b;
    const struct list *link = after ? session_entry_of(after)->booking_link.next
                                    : entry->sessions.next;

    (void)core;
    return link == &entry->sessions
               ? NULL
               : &LIST_ENTRY(link, const struct session_entry, booking_link)->s;
}

const char *core_booking_place_lack(const struct core *core, const struct booking *b, size_t i)
{
    const struct agent *a = core_find_agent(core, b->places[i].agent_id);

    if (!a)
        return "removed";
    if (!a->resource_group || strcmp(a->resource_group, b->resource_group) != 0)
        return "moved";
    if (!a->schedulable)
        return "drained";
    return a->status == AGENT_ALIVE ? NULL : "lost";
}

const char *core_booking_domain(const struct core *core, const struct booking *b)
{
    const char *found = NULL;

    for (size_t i = 0; i < b->projects.count + b->users.count; i++) {
        const struct project *p = i < b->projects.count
                                      ? core_find_project(core, &b->projects.items[i])
                                      : NULL;
        const struct user *u = i < b->projects.count
                                   ? NULL
                                   : core_find_user(core, &b->users.items[i - b->projects.count]);
        const char *domain = p ? p->domain : u ? u->domain : NULL;

        if (!domain || (found && strcmp(found, domain) != 0))
            return NULL;
        found = domain;
    }
    return found;
}

/* ---- checks ---- */

static int booking_check_group(const struct core *core, const struct booking *b,
                               struct aq_error *err)
{
    const struct resource_group_entry *g = resource_group_entry_find(core, b->resource_group);

    if (!g || !g->is_known || !g->g.is_active)
        return aq_fail_field(err, EINVAL, "resource_group",
                             "there is no resource group '%s' in use; name another one",
                             b->resource_group);
    for (size_t i = 0; i < b->agents.count; i++) {
        const struct agent *a = core_find_agent(core, b->agents.items[i]);

        if (!a || !a->resource_group || strcmp(a->resource_group, b->resource_group) != 0)
            return aq_fail_field(err, EINVAL, "agents",
                                 "the resource group '%s' has no agent '%s'; name one of its "
                                 "agents",
                                 b->resource_group, b->agents.items[i]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(b->agents.items[k], b->agents.items[i]) == 0)
                return aq_fail_field(err, EINVAL, "agents", "agent '%s' is named twice",
                                     b->agents.items[i]);
    }
    return 0;
}

static int booking_check_all(const struct core *core, const struct booking *b, struct aq_error *err)
{
    int r = booking_check(b, clock_realtime_usec(), err);

    return r < 0 ? r : booking_check_group(core, b, err);
}

/* ---- the way to the store and back ---- */

static void booking_on_committed(void *data, int r, const struct aq_error *err)
{
    struct booking_command *c = data;
    struct aq_error why;

    if (r == -ENOENT) { /* proposal.c says so of a version that has changed */
        r = aq_fail_kind(
            &why, EBUSY, "conflict",
            "the reservation was changed meanwhile; look at it and repeat the request");
        err = &why;
    }
    if (r == -EEXIST) {
        why = *err;
        why.kind = "reservation-already-exists";
        err = &why;
    }
    if (c->draft)
        booking_sync_close_draft(c->core, c->draft, r == 0);
    c->done(c->data, r, err);
    free(c);
}

static void booking_write_audit(const struct core *core, const struct booking *b,
                                struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    char time[CLOCK_ISO_MAX];

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "start", clock_format_iso(b->starts_usec, time));
    jsonw_member_str(&w, "end", clock_format_iso(b->ends_usec, time));
    jsonw_member_str(&w, "resource_group", b->resource_group);
    jsonw_key(&w, "resources");
    slots_write_json(&b->amounts, core->types, &w);
    jsonw_member_int(&w, "nodes", b->nodes);
    jsonw_member_int(&w, "release_unused", b->release_unused_usec / USEC_PER_SEC);
    jsonw_key(&w, "agents");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < b->place_count; i++)
        jsonw_str(&w, b->places[i].agent_id);
    jsonw_array_end(&w);
    jsonw_member_int(&w, "projects", (int64_t)b->projects.count);
    jsonw_member_int(&w, "users", (int64_t)b->users.count);
    if (booking_is_finished(b)) {
        jsonw_member_str(&w, "state", booking_state_name(b->outcome));
        jsonw_member_str(&w, "reason", b->reason);
    }
    jsonw_object_end(&w);
}

/* What the request is answered, in the commit of what it makes. */
static void booking_add_answer(const struct booking_command *c, const struct booking *b,
                               struct event_batch *batch)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct event *e = event_batch_add(batch, EVENT_REQUEST_ANSWERED, clock_realtime_usec());

    e->answered.status = c->write(c->data, b, &body);
    e->answered.access_key = c->answered->access_key;
    e->answered.request_key = c->answered->request_key;
    e->answered.digest = c->answered->digest;
    e->answered.body = arena_strndup(&batch->arena, body.data, body.len);
}

/* Commit the change from 'was' (NULL = it is new) to 'b', whose contents are taken. */
static void booking_commit(struct booking_command *c, const char *action, const struct booking *was,
                           struct booking *b, const struct audit_who *by)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
    enum event_kind kind = was ? EVENT_BOOKING_CHANGED : EVENT_BOOKING_CREATED;
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, kind, clock_realtime_usec());
    char id[UUID_TEXT_MAX], name[SESSION_NAME_MAX + 1];
    struct audit_change change = { .action = action,
                                   .object_kind = "reservation",
                                   .object_id = uuid_format(&b->id, id),
                                   .object_name = memcpy(name, b->name, sizeof(name)),
                                   .object_domain = core_booking_domain(c->core, b) };

    if (was)
        booking_write_audit(c->core, was, &before);
    booking_write_audit(c->core, b, &after);
    change.before = was ? before.data : NULL;
    change.after = after.data;
    e->booking.row = aq_alloc(sizeof(*e->booking.row));
    *e->booking.row = *b;
    *b = (struct booking){ .name = "" };
    if (c->answered)
        booking_add_answer(c, e->booking.row, batch);
    AQ_FAULT("core.booking.proposed");
    proposal_commit_audited(c->core, batch, by, &change, booking_on_committed, c);
}

static struct booking_command *booking_command_new(struct core *core, core_done_fn done, void *data)
{
    struct booking_command *c = aq_alloc(sizeof(*c));

    *c = (struct booking_command){ .core = core, .done = done, .data = data };
    return c;
}

/* ---- the commands ---- */

/* The domain whose names an error may tell; NULL = all. */
static const char *booking_domain_shown_to(const struct core *core, const struct audit_who *by)
{
    const struct user *u = by ? core_find_user(core, &by->user_id) : NULL;

    return u && u->role != ROLE_SUPERADMIN ? u->domain : NULL;
}

void core_create_booking(struct core *core, struct booking *b, const struct core_answered *answered,
                         core_booking_write_fn write, const struct audit_who *by, core_done_fn done,
                         void *data)
{
    AQ_CLEANUP(booking_donep) struct booking made = *b;
    struct booking_command *c;
    struct aq_error err;
    int r;

    *b = (struct booking){ .name = "" };
    made.id = uuid_random();
    made.version = 1;
    made.created_usec = clock_realtime_usec();
    made.outcome = BOOKING_PLANNED;
    r = booking_check_all(core, &made, &err);
    if (r == 0 && core->booking_count >= BOOKING_LIVE_MAX)
        r = aq_fail_kind(&err, EDQUOT, "quota-exceeded",
                         "there are %d reservations already; cancel some that are not needed",
                         BOOKING_LIVE_MAX);
    if (r == 0 && booking_entry_find_named(core, made.name))
        r = aq_fail_as(&err, EEXIST, "reservation-already-exists", "name",
                       "a reservation is already called '%s'; choose another name or cancel that "
                       "one",
                       made.name);
    if (r == 0)
        r = booking_check_limits(core, &made, by, &err);
    if (r == 0)
        r = booking_sync_place(core, &made, booking_domain_shown_to(core, by), &err);
    if (r < 0) {
        core_defer(core, done, data, r, &err);
        return;
    }
    c = booking_command_new(core, done, data);
    c->answered = answered;
    c->write = write;
    c->draft = booking_sync_open_draft(core, &made);
    booking_commit(c, "create-reservation", NULL, &made, by);
}

static bool booking_has_same_agents(const struct booking *a, const struct booking *b)
{
    for (size_t i = 0; i < a->agents.count && i < b->agents.count; i++)
        if (strcmp(a->agents.items[i], b->agents.items[i]) != 0)
            return false;
    return a->agents.count == b->agents.count;
}

static bool booking_has_same_places(const struct booking *a, const struct booking *b)
{
    for (size_t i = 0; i < a->place_count; i++) {
        long k = booking_find_place(b, a->places[i].agent_id);
        const char *x = a->places[i].devices, *y = k < 0 ? NULL : b->places[k].devices;

        if (k < 0 || !x != !y || (x && strcmp(x, y) != 0))
            return false;
    }
    return a->place_count == b->place_count;
}

/* An active booking ends later: the devices that it has must be free until then. */
static int booking_extend(struct core *core, const struct booking *was, struct booking *b,
                          const char *domain, struct aq_error *err)
{
    AQ_CLEANUP(booking_donep) struct booking rest = { .name = "" };
    int r;

    booking_copy(&rest, b);
    booking_set_places(&rest, NULL, 0);
    booking_set_agents_of_places(&rest, was);
    rest.starts_usec = was->ends_usec;
    if ((r = booking_sync_place(core, &rest, domain, err)) < 0)
        return r;
    if (!booking_has_same_places(was, &rest))
        return aq_fail_as(err, EBUSY, "reservation-does-not-fit", "duration",
                          "the devices of the reservation are not free after its present end; "
                          "create another reservation for the time after it");
    return 0;
}

/* Choose other places, if the change needs some. */
static int booking_change_places(struct core *core, const struct booking *was, struct booking *b,
                                 const char *domain, struct aq_error *err)
{
    bool has_begun = clock_realtime_usec() >= was->starts_usec;
    bool is_elsewhere = !slots_eq(&was->amounts, &b->amounts) || was->nodes != b->nodes
                        || !booking_has_same_agents(was, b);

    if (has_begun && (is_elsewhere || was->starts_usec != b->starts_usec))
        return aq_fail_as(err, EBUSY, "conflict", is_elsewhere ? "resources" : "start",
                          "the reservation has begun: its start, amounts, nodes and agents "
                          "cannot be changed any more; cancel it and create another one");
    if (has_begun)
        return b->ends_usec > was->ends_usec ? booking_extend(core, was, b, domain, err) : 0;
    if (!is_elsewhere && was->starts_usec <= b->starts_usec && was->ends_usec >= b->ends_usec)
        return 0;
    booking_set_places(b, NULL, 0);
    return booking_sync_place(core, b, domain, err);
}

static int booking_check_version(const struct booking_entry *was, const struct booking *b,
                                 struct aq_error *err)
{
    if (!was)
        return aq_fail_kind(err, ENOENT, "object-not-found", "No such reservation.");
    return was->b.version == b->version
               ? 0
               : aq_fail_kind(err, EBUSY, "conflict",
                              "the reservation was changed meanwhile; look at it and repeat the "
                              "request");
}

/* Does the changed booking keep amounts that it has not kept before? */
static bool booking_keeps_more(const struct booking *was, const struct booking *b)
{
    return b->nodes > was->nodes || !slots_le(&b->amounts, &was->amounts)
           || b->starts_usec < was->starts_usec || b->ends_usec > was->ends_usec;
}

void core_change_booking(struct core *core, struct booking *b, const struct audit_who *by,
                         core_done_fn done, void *data)
{
    AQ_CLEANUP(booking_donep) struct booking changed = *b;
    struct booking_entry *was = booking_entry_find(core, &b->id);
    struct booking_command *c;
    struct aq_error err;
    int r = booking_check_version(was, b, &err);

    *b = (struct booking){ .name = "" };
    if (r == 0)
        r = booking_check_all(core, &changed, &err);
    if (r == 0 && booking_keeps_more(&was->b, &changed))
        r = booking_check_limits(core, &changed, by, &err);
    if (r == 0)
        r = booking_change_places(core, &was->b, &changed, booking_domain_shown_to(core, by), &err);
    if (r < 0) {
        core_defer(core, done, data, r, &err);
        return;
    }
    changed.version = was->b.version + 1;
    c = booking_command_new(core, done, data);
    c->draft = booking_sync_open_draft(core, &changed);
    booking_commit(c, "modify-reservation", &was->b, &changed, by);
}

void core_cancel_booking(struct core *core, const struct uuid *id, const char *reason,
                         const struct audit_who *by, core_done_fn done, void *data)
{
    AQ_CLEANUP(booking_donep) struct booking changed = { .name = "" };
    const struct booking_entry *was = booking_entry_find(core, id);
    struct aq_error err;

    if (!was) {
        core_defer(core, done, data,
                   aq_fail_kind(&err, ENOENT, "object-not-found", "No such reservation."), &err);
        return;
    }
    booking_copy(&changed, &was->b);
    changed.version++;
    changed.outcome = BOOKING_CANCELED;
    changed.finished_usec = clock_realtime_usec();
    free(changed.reason);
    changed.reason = aq_strdup(reason);
    AQ_FAULT("core.booking.cancel.asked");
    booking_commit(booking_command_new(core, done, data), "cancel-reservation", &was->b, &changed,
                   by);
}
