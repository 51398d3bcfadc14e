/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - arrays: making their elements, cancelling, their end
 *
 * An array keeps a window of elements that wait, and makes the next ones when half of it is used.
 * An element is made by the transaction that says in the array's row how far it is, so none is
 * made twice, and none is lost. The steps of array_step() follow from the row alone.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/session/array.h"
#include "manager/core/session/control.h"
#include "manager/core/session/create.h"
#include "manager/core/session/dependency.h"
#include "manager/core/session/request.h"
#include "manager/core/session/session_audit.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define ARRAY_WINDOW INT64_C(256) /* elements that wait */
/* After elements that were not admitted: the pause doubles with each trial in vain. */
#define ARRAY_PAUSE_MIN_USEC (2 * USEC_PER_SEC)
#define ARRAY_PAUSE_MAX_USEC (60 * USEC_PER_SEC)
#define ARRAY_ENDING_USEC (10 * USEC_PER_SEC) /* until the end of elements is requested again */
#define ARRAY_RESTORED_USEC \
    (5 * USEC_PER_SEC) /* after a restore nothing is made until it is over */

/* A command that cancels elements. */
struct array_waiter {
    struct list link;        /* array_entry.waiters */
    bool is_all;             /* else 'wanted' */
    struct array_set wanted; /* indices */
    bool forced;
    struct audit_by by;
    core_done_fn done;
    void *data;
};

/* Elements on their way to the store. */
struct array_making {
    struct core *core;
    struct array_entry *entry;
};

static struct array_entry *array_of(struct durable *d)
{
    return AQ_CONTAINER_OF(d, struct array_entry, durable);
}

/* Elements that are neither made nor cancelled. */
static int64_t array_count_left(const struct session_array *a)
{
    return a->size - a->made - a->skipped;
}

/* ---- commands ---- */

static void array_answer(struct core *core, struct array_waiter *w, int r,
                         const struct aq_error *err)
{
    list_remove(&w->link);
    core_defer(core, w->done, w->data, r, err);
    array_set_done(&w->wanted);
    free(w);
}

void array_fail_waiters(struct core *core)
{
    const struct aq_error err = { .code = ECANCELED, .text = "the manager is stopping" };

    LIST_FOREACH(link, &core->arrays) {
        struct array_entry *entry = LIST_ENTRY(link, struct array_entry, all_link);

        LIST_FOREACH(waiter, &entry->waiters)
            array_answer(core, LIST_ENTRY(waiter, struct array_waiter, link), -ECANCELED, &err);
    }
}

int64_t core_array_size_max(const struct core *core)
{
    return core->conf.array_size_max;
}

void core_cancel_array(struct core *core, const struct uuid *id, const struct array_set *elements,
                       bool forced, const struct audit_who *by, core_done_fn done, void *data)
{
    struct array_entry *entry = array_entry_find(core, id);
    struct array_waiter *w;
    struct aq_error err;

    if (!entry) {
        core_defer(core, done, data,
                   aq_fail_kind(&err, ENOENT, "object-not-found", "No such array."), &err);
        return;
    }
    w = aq_alloc(sizeof(*w));
    *w = (struct array_waiter){
        .is_all = !elements, .forced = forced, .by = audit_by_copy(by), .done = done, .data = data
    };
    if (elements)
        w->wanted = array_set_copy(elements);
    list_add(&entry->waiters, &w->link);
    AQ_FAULT("core.array.cancel.asked");
    durable_touch(core, &entry->durable);
}

/* The elements that live and are meant by it; NULL = all. */
static void array_end_living(struct core *core, struct array_entry *entry,
                             const struct array_set *wanted, bool forced)
{
    LIST_FOREACH(link, &entry->living) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, array_link);

        if (!wanted || array_set_has(wanted, l->s.array_index))
            control_end(core, l, forced, forced ? REASON_FORCE_TERMINATED : REASON_USER_REQUESTED);
    }
}

/* ---- changes of the row ---- */

static struct event_array_change *array_propose(struct core *core, struct array_entry *entry)
{
    const struct session_array *a = &entry->a;
    struct event *e = proposal_add(core, &entry->durable, EVENT_ARRAY_CHANGED);

    e->array_change = (struct event_array_change){
        .id = a->id, .version = a->version, .next = a->next, .made = a->made, .skipped = a->skipped
    };
    return &e->array_change;
}

/* What is not made will not be. */
static void array_propose_cancel(struct core *core, struct array_entry *entry)
{
    struct event_array_change *change = array_propose(core, entry);

    change->next = entry->a.size;
    change->skipped = entry->a.size - entry->a.made;
    change->cancelled_usec = clock_realtime_usec();
    AQ_FAULT("core.array.cancel.proposed");
}

static void array_propose_end(struct core *core, struct array_entry *entry)
{
    array_propose(core, entry)->ended_usec = clock_realtime_usec();
    AQ_FAULT("core.array.ended");
}

static void array_audit_cancel(struct core *core, const struct array_entry *entry,
                               const struct array_waiter *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf after = STRBUF_INIT, set = STRBUF_INIT;
    struct jsonw out = jsonw_make(&after);
    struct audit_change change;
    char id[UUID_TEXT_MAX];

    if (!w->by.is_some)
        return;
    array_set_write(w->is_all ? &entry->a.indices : &w->wanted, &set);
    strbuf_truncate(&set, AQ_MIN(set.len, AUDIT_SIDE_MAX / 2));
    jsonw_object_begin(&out);
    jsonw_member_str(&out, "elements", set.data);
    if (w->forced)
        jsonw_member_bool(&out, "forced", true);
    jsonw_object_end(&out);
    change = session_audit_change(&entry->a.element, "cancel-array", id);
    change.object_id = uuid_format(&entry->a.id, id);
    change.object_name = entry->a.name;
    change.after = after.data;
    proposal_audit(core, &w->by.who, &change);
}

/* Those that are not made are removed from what is to be made. */
static void array_propose_removal(struct core *core, struct array_entry *entry,
                                  const struct array_set *wanted)
{
    struct event_array_change *change = array_propose(core, entry);
    const struct session_array *a = &entry->a;
    int64_t found;

    change->removed = array_set_copy(&a->removed);
    change->skipped += array_set_add(&change->removed, &a->indices, wanted, a->next, &found);
    change->has_removed = true;
    AQ_FAULT("core.array.remove.proposed");
}

static bool array_has_any(const struct session_array *a, const struct array_set *wanted)
{
    struct array_cursor c = array_set_seek(&a->indices, 0);

    for (int64_t index; (index = array_cursor_next(&c)) >= 0;)
        if (array_set_has(wanted, index))
            return true;
    return false;
}

/* The first command, which is answered when its proposal is back. */
static void array_start_command(struct core *core, struct array_entry *entry)
{
    struct array_waiter *w = LIST_ENTRY(entry->waiters.next, struct array_waiter, link);
    struct aq_error err;

    if (!w->is_all && !array_has_any(&entry->a, &w->wanted)) {
        array_answer(core, w,
                     aq_fail_as(&err, ENOENT, "object-not-found", "elements",
                                "the array '%s' has none of these elements; name indices of it",
                                entry->a.name),
                     &err);
        durable_touch(core, &entry->durable);
        return;
    }
    array_end_living(core, entry, w->is_all ? NULL : &w->wanted, w->forced);
    if (w->is_all)
        array_propose_cancel(core, entry);
    else
        array_propose_removal(core, entry, &w->wanted);
    array_audit_cancel(core, entry, w);
    entry->is_answering = true;
}

/* ---- making elements ---- */

/* How many PENDING sessions the owner's policy lets an array have: half of them. */
static int64_t array_find_window(const struct core *core, const struct session *element)
{
    const struct keypair *k = core_find_keypair(core, element->access_key);
    const struct keypair_policy *p = k && k->policy ? core_find_policy(core, k->policy) : NULL;

    return p && p->max_pending_sessions > 0
               ? AQ_MIN(AQ_MAX(p->max_pending_sessions / 2, 1), ARRAY_WINDOW)
               : ARRAY_WINDOW;
}

/* How many elements to make now. */
static int64_t array_count_wanted(const struct core *core, const struct array_entry *entry)
{
    const struct session_array *a = &entry->a;
    int64_t window = array_find_window(core, &a->element), waiting = entry->waiting_count;
    int64_t room = window - waiting;

    if (waiting > window / 2)
        return 0;
    if (a->limit)
        room = AQ_MIN(room, a->limit - entry->admitted_count);
    return AQ_MAX(AQ_MIN(room, array_count_left(a)), 0);
}

static void array_stop(struct core *core, struct array_entry *entry, const char *text)
{
    free(entry->stop_text);
    entry->stop_text = aq_strdup(text);
    entry->pause_usec = entry->pause_usec ? AQ_MIN(2 * entry->pause_usec, ARRAY_PAUSE_MAX_USEC)
                                          : ARRAY_PAUSE_MIN_USEC;
    entry->again_usec = clock_monotonic_usec() + entry->pause_usec;
    durable_wake_at(core, &entry->durable, entry->again_usec);
}

static void array_on_made(void *data, int r, const struct aq_error *err,
                          const struct core_created *created)
{
    struct array_making *making = data;
    struct core *core = making->core;
    struct array_entry *entry = making->entry;

    (void)created;
    free(making);
    entry->is_making = false;
    if (r == 0) {
        free(AQ_TAKE(entry->stop_text));
        entry->pause_usec = 0;
    } else if (strcmp(err->field, "dependencies") == 0 || strcmp(err->field, "reservation") == 0) {
        entry->is_failing = true;
    } else {
        array_stop(core, entry, err->text);
    }
    durable_touch(core, &entry->durable);
}

/* Nobody can ever make sessions for it again. */
static bool array_owner_is_gone(const struct core *core, const struct session *element)
{
    const struct user *u = core_find_user(core, &element->user_id);

    return !u || u->status == USER_DELETED || !core_find_keypair(core, element->access_key);
}

/* Its owner may make sessions of its project, as request_build() asks of one that is new. */
static bool array_owner_may(const struct core *core, const struct session *element)
{
    const struct keypair *k = core_find_keypair(core, element->access_key);
    const struct user *u = core_find_user(core, &element->user_id);
    const struct project *p = core_find_project(core, &element->project_id);
    const struct domain *d = core_find_domain(core, element->domain);

    return k && k->is_active && u && u->status == USER_ACTIVE && p && p->is_active && d
           && d->is_active && request_is_member(u, &p->id)
           && (u->role == ROLE_SUPERADMIN || (u->domain && strcmp(u->domain, d->name) == 0));
}

static void array_make(struct core *core, struct array_entry *entry, int64_t count)
{
    struct array_making *making;

    if (array_owner_is_gone(core, &entry->a.element)) {
        entry->is_failing = true;
        durable_touch(core, &entry->durable);
        return;
    }
    if (!array_owner_may(core, &entry->a.element)) {
        array_stop(core, entry,
                   "the owner's keypair, user, project or domain is not active, or the owner has "
                   "left the project; no further elements are made until that changes");
        return;
    }
    making = aq_alloc(sizeof(*making));
    *making = (struct array_making){ core, entry };
    entry->is_making = true;
    AQ_FAULT("core.array.making");
    create_elements(core, entry, count, array_on_made, making);
}

/* ---- the step ---- */

/* Elements that the limit held, while there is room for them. */
static void array_admit_held(struct core *core, struct array_entry *entry)
{
    if (!entry->held_count)
        return;
    LIST_FOREACH(link, &entry->living) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, array_link);

        if (!entry->held_count || entry->admitted_count >= entry->a.limit)
            return;
        if (l->array_held)
            queue_unpark(core, l);
    }
}

static void array_step_living(struct core *core, struct array_entry *entry, int64_t now)
{
    int64_t count = array_count_wanted(core, entry);

    if (count == 0)
        return;
    if (core_restored_usec(core)) /* agents may have elements that the backup has not */
        durable_wake_at(core, &entry->durable, now + ARRAY_RESTORED_USEC);
    else if (now < entry->again_usec)
        durable_wake_at(core, &entry->durable, entry->again_usec);
    else
        array_make(core, entry, count);
}

/* The end of its elements is requested once, not at the end of each of them; again only as a user's request to end
 * one may have been dropped with ours, when the store could not write it.
 */
static void array_step_cancelled(struct core *core, struct array_entry *entry, int64_t now)
{
    if (list_is_empty(&entry->living))
        return;
    if (!entry->ending_usec || now >= entry->ending_usec + ARRAY_ENDING_USEC) {
        array_end_living(core, entry, NULL, false);
        entry->ending_usec = now;
    }
    durable_wake_at(core, &entry->durable, entry->ending_usec + ARRAY_ENDING_USEC);
}

static void array_step(struct core *core, struct durable *d)
{
    struct array_entry *entry = array_of(d);

    dependency_array_changed(core, entry);
    array_admit_held(core, entry);
    if (entry->is_making || core->is_stopping)
        return;
    if (entry->a.cancelled_usec)
        array_step_cancelled(core, entry, clock_monotonic_usec());
    if (!list_is_empty(&entry->waiters))
        array_start_command(core, entry);
    else if (entry->is_failing && !entry->a.cancelled_usec)
        array_propose_cancel(core, entry);
    else if (array_count_left(&entry->a) > 0)
        array_step_living(core, entry, clock_monotonic_usec());
    else if (entry->living_count == 0)
        array_propose_end(core, entry);
}

static void array_returned(struct core *core, struct durable *d, int result,
                           const struct aq_error *err)
{
    struct array_entry *entry = array_of(d);

    if (!entry->is_answering)
        return;
    entry->is_answering = false;
    if (result != -ESTALE && !list_is_empty(&entry->waiters))
        array_answer(core, LIST_ENTRY(entry->waiters.next, struct array_waiter, link), result, err);
}

static void array_free(struct durable *d)
{
    array_entry_free(array_of(d));
}

const struct durable_ops array_durable_ops = {
    .step = array_step,
    .returned = array_returned,
    .free = array_free,
};

/* ---- what is durable ---- */

static void array_apply_change(struct core *core, struct event_array_change *c)
{
    struct array_entry *entry = array_entry_find(core, &c->id);

    if (!entry)
        return;
    assert(entry->a.version == c->version); /* commit order */
    dependency_array_shrinks(core, entry, c);
    entry->a.version++;
    entry->a.next = c->next;
    entry->a.made = c->made;
    entry->a.skipped = c->skipped;
    if (c->cancelled_usec && !entry->a.cancelled_usec)
        entry->a.cancelled_usec = c->cancelled_usec;
    if (c->has_removed) {
        array_set_done(&entry->a.removed);
        entry->a.removed = c->removed;
        c->removed = (struct array_set){ .count = 0 };
    }
    if (c->drops_dependencies)
        entry->a.element.dependency_count = 0;
    if (c->ended_usec) {
        assert(list_is_empty(&entry->living));
        entry->a.ended_usec = c->ended_usec;
        dependency_array_changed(core, entry);
        array_entry_retire(core, entry);
        return;
    }
    array_entry_measure(core, entry);
    durable_touch(core, &entry->durable);
}

void array_apply(struct core *core, struct event *e)
{
    if (e->kind == EVENT_ARRAY_CREATED)
        durable_touch(core, &array_entry_add(core, e->array)->durable);
    else
        array_apply_change(core, &e->array_change);
}

void array_note_status(struct core *core, struct session_entry *l)
{
    struct array_entry *entry = l->array;

    if (!entry)
        return;
    if (session_is_terminal(l->s.status)) {
        entry->a.outcomes[session_array_outcome(&l->s)]++;
        if (l->s.reason && strcmp(l->s.reason, REASON_DEPENDENCY_FAILED) == 0)
            entry->is_failing |= dependency_fails_array(entry, &l->s);
    }
    if (entry->pause_usec && l->s.status != SESSION_PENDING) /* there is room for another */
        entry->again_usec = AQ_MIN(entry->again_usec,
                                   entry->again_usec - entry->pause_usec + ARRAY_PAUSE_MIN_USEC);
    array_entry_follow(l);
    durable_touch(core, &entry->durable);
}

void array_note_accounts(struct core *core)
{
    LIST_FOREACH(link, &core->arrays) {
        struct array_entry *entry = LIST_ENTRY(link, struct array_entry, all_link);

        if (!entry->pause_usec)
            continue;
        entry->pause_usec = entry->again_usec = 0;
        durable_touch(core, &entry->durable);
    }
}

/* ---- what an element sees ---- */

void array_add_environ(struct core *core, const struct session_entry *l, struct pair_list *inout)
{
    struct pair_list all = { .count = inout->count };
    char number[24];

    if (!l->array)
        return;
    all.items = arena_array(&core->scratch, inout->count + SESSION_ARRAY_VARIABLES + 1,
                            sizeof(*all.items));
    if (inout->count)
        memcpy(all.items, inout->items, inout->count * sizeof(*all.items));
    session_array_add_variables(&l->array->a, l->s.array_index, &core->scratch, &all);
    (void)snprintf(number, sizeof(number), "%" PRId64, l->s.row);
    all.items[all.count++] = (struct text_pair){ "SLURM_JOB_ID",
                                                 arena_strdup(&core->scratch, number) };
    *inout = all;
}
