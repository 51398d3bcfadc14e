/* SPDX-License-Identifier: Apache-2.0 */
/* create.c - the command that makes sessions, all that are asked for or none
 *
 * The steps, in the order of the functions below:
 *
 * 1. create_draft(): each request, checked against memory, becomes a draft of a session.
 * 2. create_read(), on a thread of the store: the owner's resource groups, dependencies that have
 *    ended, folders. Left out if memory has all of it, as for most requests.
 * 3. create_admit(): limits, and the resource group that each session waits in.
 * 4. create_propose(): one batch of events with the entries of the audit log and the answer. A
 *    dry run ends before it, with an explanation.
 * 5. create_on_committed(): the batch is durable and changes memory, or it was refused and is
 *    made again without those sessions that another request has made meanwhile.
 * 6. create_answer().
 *
 * Arrays and their elements go the same way: create_array.c.
 */

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/accounts/access.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/pending_reason.h"
#include "manager/core/session/admission.h"
#include "manager/core/session/creation.h"
#include "manager/core/session/dependency.h"
#include "manager/core/session/mounts.h"
#include "manager/core/session/request.h"
#include "manager/core/session/session_audit.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

static void create_decide(struct creation *c);
static void create_on_committed(void *data, int r, const struct aq_error *err,
                                struct event_batch *batch);

void create_drop_drafts(struct creation *c, size_t from)
{
    for (size_t i = from; i < c->count; i++) {
        struct create_draft *d = &c->drafts[i];

        admission_release(c->core, &d->hold);
        dependency_missing_done(&d->missing);
        mounts_draft_free(d->mounts);
        free(d->resource_group);
        session_done(&d->s);
    }
    c->count = from;
}

static void creation_free(struct creation *c)
{
    create_drop_drafts(c, 0);
    array_set_done(&c->indices);
    free(c->created);
    event_batch_free(c->batch);
    strbuf_done(&c->text);
    strbuf_done(&c->json);
    free(c);
}

void create_set_created(struct core_created *created, const struct session *s, bool is_new)
{
    *created = (struct core_created){ .id = s->id, .status = s->status, .is_new = is_new };
    memcpy(created->name, s->name, sizeof(created->name));
}

/* The name is in use: fine if that session will do. */
static int create_meet_existing(struct creation *c, struct create_draft *d,
                                const struct session *existing)
{
    create_set_created(&c->created[d - c->drafts], existing, false);
    d->is_met = d->reuse && existing->image && strcmp(existing->image, d->s.image) == 0;
    return d->is_met ? 0
                     : aq_fail_as(&c->err, EEXIST, "session-already-exists", "name",
                                  "a live session of yours is already called '%s'; "
                                  "choose another name or end that one",
                                  existing->name);
}

static int create_meet_array(struct creation *c, const struct create_draft *d,
                             const struct session_array *array)
{
    struct core_created *created = &c->created[d - c->drafts];

    *created = (struct core_created){ .id = array->id, .status = SESSION_PENDING };
    memcpy(created->name, array->name, sizeof(created->name));
    return aq_fail_as(&c->err, EEXIST, "session-already-exists", "name",
                      "a live array of yours is already called '%s'; choose another name or end "
                      "that one",
                      array->name);
}

/* ---- the end: the answer ---- */

static void create_answer(struct creation *c, int r)
{
    const struct core_created *created = r == 0                             ? c->created
                                         : r == -EEXIST && c->at < c->count ? &c->created[c->at]
                                                                            : NULL;

    c->err.code = r < 0 ? -r : 0;
    if (r < 0 && !c->entry && c->count > 1
        && c->at < c->count) { /* "[3].name" for the fourth one's name */
        char field[sizeof(c->err.field)];

        memcpy(field, c->err.field, sizeof(field));
        (void)snprintf(c->err.field, sizeof(c->err.field), field[0] ? "[%zu].%.50s" : "[%zu]%.0s",
                       c->at, field);
    }
    if (c->dry_run_done)
        c->dry_run_done(c->data, r, r < 0 ? &c->err : NULL,
                        &(struct core_dry_run){ c->drafts[0].resource_group, c->text.data,
                                                c->json.data, c->count, c->started });
    else
        c->done(c->data, r, r < 0 ? &c->err : NULL, created);
    creation_free(c);
}

static void create_on_answer(void *data, int r, const struct aq_error *err)
{
    (void)err;
    create_answer(data, r);
}

/* No callback runs inside the command. */
static void create_answer_later(struct creation *c, int r)
{
    core_defer(c->core, create_on_answer, c, r, &c->err);
}

/* ---- step 1: drafts from requests and memory ---- */

/* Those of an array to be created, for its dependencies; NULL: it does not matter. */
static const struct array_set *create_get_indices(const struct creation *c)
{
    return c->entry || c->dry_run_done ? NULL : &c->indices;
}

static int create_draft(struct creation *c, struct create_draft *d,
                        const struct session_request *req)
{
    const struct array_entry *array;
    const struct session *existing;
    int r = request_build(c->core, req, &d->s, &c->err);

    if (r < 0)
        return r;
    d->reuse = req->reuse;
    d->rows = req->rows;
    d->resource_group = aq_strdup(request_resource_group(c->core, req));
    r = dependency_resolve(c->core, req, create_get_indices(c), &d->s, &d->missing, &c->err);
    if (r < 0)
        return r;
    existing = core_find_session_named(c->core, &d->s.user_id, req->name);
    if (existing)
        return create_meet_existing(c, d, existing);
    if ((array = array_entry_find_named(c->core, &d->s.user_id, req->name)))
        return create_meet_array(c, d, &array->a);
    return mounts_draft_new(c->core, &d->s, &req->mounts, &d->mounts, &c->err);
}

/* Whether memory lacks something; of neighbours with one owner, the first reads. */
static bool create_wants_reading(struct creation *c)
{
    const struct create_draft *last = NULL;
    bool any = false;

    for (size_t i = 0; i < c->count; i++) {
        struct create_draft *d = &c->drafts[i];

        if (d->is_met)
            continue;
        d->wants_allowed = !(last && access_is_same(&last->s, &d->s))
                           && !access_find(c->core, &d->s);
        any = any || d->wants_allowed || d->missing.count || d->mounts;
        last = d;
    }
    return any;
}

/* ---- step 2: what memory lacks ---- */

static int create_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct creation *c = data;
    int r = 0;

    for (size_t i = 0; i < c->count && r == 0; i++) {
        struct create_draft *d = &c->drafts[i];

        c->at = i;
        if (d->wants_allowed)
            r = access_read(tx, &d->s, &d->allowed, err);
        if (r == 0)
            r = dependency_read_missing(tx, create_get_indices(c), &d->s, &d->missing, err);
        if (r == 0 && d->mounts)
            r = mounts_draft_read(tx, d->mounts, err);
    }
    return r;
}

static void create_on_read(void *data, int r, const struct aq_error *err)
{
    struct creation *c = data;

    if (r < 0)
        c->err = *err;
    for (size_t i = 0; i < c->count; i++) {
        struct create_draft *d = &c->drafts[i];

        if (d->allowed)
            access_keep(c->core, &d->s, AQ_TAKE(d->allowed));
        dependency_missing_done(&d->missing);
    }
    for (size_t i = 0; r == 0 && i < c->count; i++) {
        struct create_draft *d = &c->drafts[i];

        c->at = i;
        if (d->mounts)
            r = mounts_draft_take(d->mounts, &d->s, &c->err);
    }
    if (r < 0)
        create_answer_later(c, r);
    else
        create_decide(c);
}

/* ---- step 3: limits and resource groups ---- */

static int create_admit(struct creation *c)
{
    struct admission_queue queue = { .access_key = "" };
    int r = 0;

    for (c->at = 0; c->at < c->count && r == 0; c->at += r == 0) {
        struct create_draft *d = &c->drafts[c->at];

        if (d->is_met)
            continue;
        if (d->missing.count)
            r = aq_fail_field(&c->err, ENOENT, "dependencies",
                              "no session or array of yours is called '%s'", d->missing.names[0]);
        else if (!d->s.resource_group) /* else admitted before a commit that was refused */
            r = admission_check(c->core, &d->s, d->resource_group, &queue, &d->hold, &c->err);
    }
    admission_done(&queue);
    if (r < 0 && c->entry && c->at > 0) { /* an array waits for room for the others */
        create_drop_drafts(c, c->at);
        r = 0;
    }
    return r;
}

/* ---- step 4: the batch, or for a dry run what would become of it ---- */

static int create_try_out(struct creation *c)
{
    struct create_draft *d = &c->drafts[0];
    struct session_entry *entry = session_entry_new(c->core, &d->s);
    int r = pending_reason_what_if(c->core, entry, c->count, &c->started, &c->text, &c->json,
                                   &c->err);

    free(d->resource_group);
    d->resource_group = aq_strdup(entry->resource_group->g.name);
    session_entry_free(entry);
    return r;
}

struct create_rows {
    struct session_rows rows;
    struct uuid session_id;
};

/* event.rows_added.write */
static int create_write_rows(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct create_rows *of = data;

    return of->rows.write(tx, of->rows.data, &of->session_id, err);
}

static void create_add_rows(struct creation *c, size_t i)
{
    struct create_rows *of;
    struct event *e;

    if (!c->drafts[i].rows.write || c->drafts[i].is_met)
        return;
    of = arena_alloc(&c->batch->arena, sizeof(*of));
    *of = (struct create_rows){ c->drafts[i].rows, c->created[i].id };
    e = event_batch_add(c->batch, EVENT_ROWS_ADDED, clock_realtime_usec());
    e->rows_added.write = create_write_rows;
    e->rows_added.data = of;
    e->rows_added.keeps_access = true;
}

/* Whole or not at all. The sessions come first: create_take_back() counts on it. */
static int create_propose(struct creation *c)
{
    const struct core_answered *of = c->answered;
    size_t count;
    int r;

    c->batch = event_batch_new();
    if (c->indices.count && (r = create_add_array(c)) < 0)
        return r;
    for (size_t i = 0; i < c->count && !c->indices.count; i++) {
        struct create_draft *d = &c->drafts[i];

        if (d->is_met)
            continue;
        create_set_created(&c->created[i], &d->s, true);
        event_batch_add(c->batch, EVENT_SESSION_CREATED, d->s.created_usec)->session = d->s;
        d->s = (struct session){ .name = "" };
    }
    count = c->batch->count;
    for (size_t i = 0; i < count && c->by.is_some && !c->indices.count; i++) {
        const struct session s = c->batch->events[i].session; /* the events may move */

        session_audit_created(c->core, c->batch, &s, "create-session", audit_by_get(&c->by));
    }
    if (c->entry)
        create_add_progress(c);
    for (size_t i = 0; i < c->count; i++)
        create_add_rows(c, i);
    if (of && (count || of->always)) { /* what the request will be answered */
        AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
        struct event *e = event_batch_add(c->batch, EVENT_REQUEST_ANSWERED, clock_realtime_usec());

        e->answered.status = of->write(c->data, c->created, &body);
        e->answered.access_key = of->access_key;
        e->answered.request_key = of->request_key;
        e->answered.digest = of->digest;
        e->answered.body = arena_strndup(&c->batch->arena, body.data, body.len);
    }
    if (!c->batch->count) { /* all of them are there already */
        create_answer_later(c, 0);
        return 0;
    }
    AQ_FAULT("core.create.proposed");
    store_commit(c->core->store, c->batch, create_on_committed, c);
    return 0;
}

/* ---- step 5: durable, or refused ---- */

/* Give the sessions back to their drafts, which know who asked for what. */
static void create_take_back(struct creation *c)
{
    size_t next = 0;

    for (size_t i = 0; i < c->count; i++)
        if (!c->drafts[i].is_met) {
            c->drafts[i].s = c->batch->events[next].session;
            c->batch->events[next++].session = (struct session){ .name = "" };
        }
    event_batch_free(AQ_TAKE(c->batch));
}

/* Another request was faster, or two of these sessions have one name. 0 = it is fine with that, and
 * the rest may be proposed again.
 */
static int create_find_namesake(struct creation *c)
{
    for (c->at = 0; c->at < c->count; c->at++) {
        struct create_draft *d = &c->drafts[c->at];
        const struct session *existing = core_find_session_named(c->core, &d->s.user_id, d->s.name);

        if (existing && !d->is_met)
            return create_meet_existing(c, d, existing);
    }
    c->err.kind = "session-already-exists";
    return -EEXIST;
}

static void create_on_committed(void *data, int r, const struct aq_error *err,
                                struct event_batch *batch)
{
    struct creation *c = data;

    c->core->counts.commits++;
    if (r == 0) {
        AQ_FAULT("core.create.committed");
        for (size_t i = 0; i < batch->count; i++)
            c->core->proposal_hooks->apply(c->core, &batch->events[i]);
        AQ_FAULT("core.create.applied");
        create_answer(c, 0);
        return;
    }
    c->err = *err;
    c->at = c->count;
    if (c->entry) { /* it makes them again */
        create_answer(c, r);
        return;
    }
    if (!c->indices.count) /* else nothing is made again */
        create_take_back(c);
    if (r == -ENOENT) /* of what was found when the request came */
        r = aq_fail_kind(&c->err, EBUSY, "conflict",
                         "the domain, the project or the user was renamed or removed while the "
                         "session was being created; repeat the request");
    if (r == -EEXIST && (r = create_find_namesake(c)) == 0)
        create_decide(c);
    else
        create_answer(c, r);
}

/* Steps 3 and 4. */
static void create_decide(struct creation *c)
{
    int r = create_admit(c);

    if (c->dry_run_done) {
        create_answer_later(c, r == 0 ? create_try_out(c) : r);
        return;
    }
    if (r == 0)
        r = create_propose(c);
    if (r < 0)
        create_answer_later(c, r);
}

/* ---- the commands ---- */

struct creation *creation_new(struct core *core, size_t count, void *data)
{
    struct creation *c = aq_alloc(sizeof(*c) + count * sizeof(c->drafts[0]));

    c->created = aq_alloc_array(count, sizeof(*c->created));
    c->core = core;
    c->count = count;
    c->data = data;
    c->text = c->json = (struct strbuf)STRBUF_INIT;
    return c;
}

void create_go_on(struct creation *c)
{
    if (create_wants_reading(c))
        store_read(c->core->store, create_read, create_on_read, c);
    else
        create_decide(c);
}

void create_start(struct creation *c, const struct session_request *const *requests, size_t stride)
{
    int r = 0;

    for (c->at = 0; c->at < c->count && r == 0; c->at += r == 0)
        r = create_draft(c, &c->drafts[c->at], requests[c->at * stride]);
    if (r < 0)
        create_answer_later(c, r);
    else
        create_go_on(c);
}

void core_dry_run_session(struct core *core, const struct session_request *request, size_t count,
                          core_dry_run_fn done, void *data)
{
    struct creation *c = creation_new(core, count, data);

    c->dry_run_done = done;
    create_start(c, &request, 0);
}

void core_create_sessions(struct core *core, const struct session_request *const *requests,
                          size_t count, const struct core_answered *answered,
                          const struct audit_who *by, core_create_fn done, void *data)
{
    struct creation *c = creation_new(core, count, data);

    c->done = done;
    c->answered = answered;
    c->by = audit_by_copy(by);
    create_start(c, requests, 1);
}
