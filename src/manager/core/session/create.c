/* SPDX-License-Identifier: Apache-2.0 */
/* create.c - the command that makes sessions, all that are asked for or none
 *
 * Most requests are decided from memory and committed at once. Only when the
 * owner's resource groups are not known yet, a dependency has ended, or folders
 * are to be mounted, the store is asked first.
 */

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "manager/core/accounts/access.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/pending_reason.h"
#include "manager/core/session/admission.h"
#include "manager/core/session/dependency_resolve.h"
#include "manager/core/session/mounts.h"
#include "manager/core/session/request.h"
#include "manager/core/session/session_audit.h"
#include "manager/core/state/constraints.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* One of the sessions, until it is an event of the batch. */
struct create_draft {
    struct session s;
    bool is_met; /* a live session will do: nothing to make */
    bool reuse;
    char *resource_group;       /* asked for, NULL = any */
    struct admission_hold hold; /* from its admission until the answer */
    struct dependency_missing missing;
    struct mounts_draft *mounts; /* NULL = it mounts none */
    struct allowed *allowed;     /* as read, until it is kept */
    bool wants_allowed;
};

struct create_creation {
    struct core *core;
    struct event_batch *batch;
    struct core_created *created; /* one per draft */
    struct aq_error err;
    size_t at; /* the draft that 'err' is about */
    core_create_fn done;
    core_dry_run_fn dry_run_done;         /* instead: nothing is to be made */
    struct strbuf text, json;             /* of the trial */
    size_t started;                       /* likewise */
    const struct core_answered *answered; /* NULL = the answer is not kept */
    struct audit_by by;
    void *data;
    size_t count;
    struct create_draft drafts[];
};

static void create_draft_done(struct create_draft *d)
{
    dependency_missing_done(&d->missing);
    mounts_draft_free(d->mounts);
    free(d->resource_group);
    session_done(&d->s);
}

static void create_creation_free(struct create_creation *c)
{
    for (size_t i = 0; i < c->count; i++) {
        admission_release(c->core, &c->drafts[i].hold);
        create_draft_done(&c->drafts[i]);
    }
    free(c->created);
    event_batch_free(c->batch);
    strbuf_done(&c->text);
    strbuf_done(&c->json);
    free(c);
}

/* "[3].name" for the fourth session's name, if there are several. */
static void create_name_draft(struct create_creation *c)
{
    char field[sizeof(c->err.field)];

    if (c->count == 1 || c->at == c->count)
        return;
    memcpy(field, c->err.field, sizeof(field));
    (void)snprintf(c->err.field, sizeof(c->err.field), field[0] ? "[%zu].%.50s" : "[%zu]%.0s",
                   c->at, field);
}

static void create_answer(struct create_creation *c, int r)
{
    const struct core_created *created = r == 0                             ? c->created
                                         : r == -EEXIST && c->at < c->count ? &c->created[c->at]
                                                                            : NULL;

    c->err.code = r < 0 ? -r : 0;
    if (r < 0)
        create_name_draft(c);
    if (c->dry_run_done)
        c->dry_run_done(c->data, r, r < 0 ? &c->err : NULL,
                        &(struct core_dry_run){ c->drafts[0].resource_group, c->text.data,
                                                c->json.data, c->count, c->started });
    else
        c->done(c->data, r, r < 0 ? &c->err : NULL, created);
    create_creation_free(c);
}

static void create_on_finish(void *data, int r, const struct aq_error *err)
{
    (void)err;
    create_answer(data, r);
}

/* Answer in the next turn. */
static void create_finish(struct create_creation *c, int r)
{
    if (r == -ENOMEM)
        (void)aq_fail_oom(&c->err);
    core_defer(c->core, create_on_finish, c, r, &c->err);
}

static void create_set_created(struct core_created *created, const struct session *s, bool is_new)
{
    *created = (struct core_created){ .id = s->id, .status = s->status, .is_new = is_new };
    memcpy(created->name, s->name, sizeof(created->name));
}

/* The name is in use: fine if that session will do. */
static int create_meet_existing(struct create_creation *c, struct create_draft *d,
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

/* ---- commit ---- */

static void create_commit(struct create_creation *c);

/* Another request was faster, or two of these sessions have one name. 0 = it
 * is fine with that and may be dry_run_done again without it.
 */
static int create_find_namesake(struct create_creation *c)
{
    for (c->at = 0; c->at < c->count; c->at++) {
        struct create_draft *d = &c->drafts[c->at];
        const struct session *existing = core_find_session_named(c->core, &d->s.user_id, d->s.name);

        if (existing && !d->is_met)
            return create_meet_existing(c, d, existing);
    }
    return -EEXIST;
}

/* Give the sessions back to their drafts, which know who asked for what. */
static void create_take_back(struct create_creation *c)
{
    size_t next = 0;

    for (size_t i = 0; i < c->count; i++)
        if (!c->drafts[i].is_met) {
            c->drafts[i].s = c->batch->events[next].session;
            c->batch->events[next++].session = (struct session){ .name = "" };
        }
    event_batch_free(AQ_TAKE(c->batch));
}

static void create_on_refused(struct create_creation *c, int result, const struct aq_error *err)
{
    c->err = *err;
    c->at = c->count;
    create_take_back(c);
    if (result == -ENOENT) /* of what was found when the request came */
        result = aq_fail_kind(
            &c->err, EBUSY, "conflict",
            "the domain, the project or the user was renamed or removed while the "
            "session was being created; repeat the request");
    if (result == -EEXIST && (result = create_find_namesake(c)) == 0)
        create_commit(c);
    else
        create_answer(c, result);
}

static void create_on_committed(void *data, int result, const struct aq_error *err,
                                struct event_batch *batch)
{
    struct create_creation *c = data;

    c->core->counts.commits++;
    if (result < 0) {
        create_on_refused(c, result, err);
        return;
    }
    AQ_FAULT("core.create.committed");
    for (size_t i = 0; i < batch->count; i++)
        c->core->proposal_hooks->apply(c->core, &batch->events[i]);
    AQ_FAULT("core.create.applied");
    create_answer(c, 0);
}

/* All that is missing is known now. */
static int create_complete(struct create_creation *c, struct create_draft *d,
                           struct admission_queue *queue)
{
    if (d->missing.count)
        return aq_fail_field(&c->err, ENOENT, "dependencies", "no session of yours is called '%s'",
                             d->missing.names[0]);
    if (d->s.resource_group)
        return 0; /* admitted before a commit that was refused */
    return admission_check(c->core, &d->s, d->resource_group, queue, &d->hold, &c->err);
}

/* What the request will be answered. Behind the sessions: create_take_back() counts on it. */
static int create_fill_answer(struct create_creation *c)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    const struct core_answered *of = c->answered;
    struct arena *arena = &c->batch->arena;
    struct event *e;

    if (!of || (!c->batch->count && !of->always))
        return 0;
    e = event_batch_add(c->batch, EVENT_REQUEST_ANSWERED, clock_realtime_usec());
    if (!e)
        return aq_fail_oom(&c->err);
    e->answered.status = of->write(c->data, c->created, &body);
    e->answered.access_key = of->access_key;
    e->answered.request_key = of->request_key;
    e->answered.digest = of->digest;
    if (!strbuf_ok(&body) || !(e->answered.body = arena_strndup(arena, body.data, body.len)))
        return aq_fail_oom(&c->err);
    return 0;
}

/* Behind the sessions, too. */
static int create_fill_entries(struct create_creation *c)
{
    size_t count = c->batch->count;

    for (size_t i = 0; i < count; i++) {
        const struct session s = c->batch->events[i].session; /* the events may move */

        if (session_audit_created(c->core, c->batch, &s, "create-session", audit_by_get(&c->by))
            < 0)
            return aq_fail_oom(&c->err);
    }
    return 0;
}

/* The drafts become one batch: whole or not at all. */
static int create_fill_batch(struct create_creation *c)
{
    if (!(c->batch = event_batch_new()))
        return aq_fail_oom(&c->err);
    for (size_t i = 0; i < c->count; i++) {
        struct event *e;

        if (c->drafts[i].is_met)
            continue;
        e = event_batch_add(c->batch, EVENT_SESSION_CREATED, c->drafts[i].s.created_usec);
        if (!e)
            return aq_fail_oom(&c->err);
        create_set_created(&c->created[i], &c->drafts[i].s, true);
        e->session = c->drafts[i].s;
        c->drafts[i].s = (struct session){ .name = "" };
    }
    return create_fill_entries(c) < 0 ? -ENOMEM : create_fill_answer(c);
}

/* What would become of them. */
static int create_try_out(struct create_creation *c)
{
    struct create_draft *d = &c->drafts[0];
    struct session_entry *l = session_entry_new(c->core, &d->s);
    int r = l ? 0 : aq_fail_oom(&c->err);

    if (r == 0)
        r = pending_reason_what_if(c->core, l, c->count, &c->started, &c->text, &c->json, &c->err);
    free(AQ_TAKE(d->resource_group));
    if (r == 0 && !(d->resource_group = strdup(l->resource_group->g.name)))
        r = aq_fail_oom(&c->err);
    if (l)
        session_entry_free(l);
    return r;
}

static void create_commit(struct create_creation *c)
{
    struct admission_queue queue = { .access_key = "" };
    int r = 0;

    for (c->at = 0; c->at < c->count && r == 0; c->at += r == 0)
        if (!c->drafts[c->at].is_met)
            r = create_complete(c, &c->drafts[c->at], &queue);
    admission_done(&queue);
    if (c->dry_run_done) {
        create_finish(c, r == 0 ? create_try_out(c) : r);
        return;
    }
    if (r == 0)
        r = create_fill_batch(c);
    if (r == 0 && c->batch->count) {
        AQ_FAULT("core.create.proposed");
        r = store_commit(c->core->store, c->batch, create_on_committed, c);
    }
    if (r < 0 || !c->batch->count)
        create_finish(c, r);
}

/* ---- what is not in memory ---- */

static int create_read_missing(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct create_creation *c = data;
    int r = 0;

    for (size_t i = 0; i < c->count && r == 0; i++) {
        struct create_draft *d = &c->drafts[i];

        c->at = i;
        if (d->wants_allowed)
            r = access_read(tx, &d->s, &d->allowed, err);
        if (r == 0)
            r = dependency_read_missing(tx, &d->s, &d->missing, err);
        if (r == 0 && d->mounts)
            r = mounts_draft_read(tx, d->mounts, err);
    }
    return r;
}

static void create_on_read(void *data, int r, const struct aq_error *err)
{
    struct create_creation *c = data;

    if (r < 0)
        c->err = *err;
    for (size_t i = 0; i < c->count; i++) {
        struct create_draft *d = &c->drafts[i];

        if (d->allowed && access_keep(c->core, &d->s, AQ_TAKE(d->allowed)) < 0 && r == 0)
            r = aq_fail_oom(&c->err);
        dependency_missing_done(&d->missing);
    }
    for (size_t i = 0; r == 0 && i < c->count; i++) {
        c->at = i;
        r = c->drafts[i].mounts ? mounts_draft_take(c->drafts[i].mounts, &c->drafts[i].s, &c->err)
                                : 0;
    }
    if (r < 0)
        create_finish(c, r);
    else
        create_commit(c);
}

/* ---- the command ---- */

static int create_begin(struct create_creation *c, struct create_draft *d,
                        const struct session_request *req)
{
    const struct session *existing;
    const char *wanted;
    int r = request_build(c->core, req, &d->s, &c->err);

    if (r < 0)
        return r;
    d->reuse = req->reuse;
    wanted = req->resource_group ? req->resource_group
                                 : constraints_resource_group(c->core, &req->spec);
    if (wanted && !(d->resource_group = strdup(wanted)))
        return aq_fail_oom(&c->err);
    if ((r = dependency_resolve(c->core, req, &d->s, &d->missing, &c->err)) < 0)
        return r;
    existing = core_find_session_named(c->core, &d->s.user_id, req->name);
    if (existing)
        return create_meet_existing(c, d, existing);
    return mounts_draft_new(c->core, &d->s, &req->mounts, &d->mounts, &c->err);
}

/* What is not in memory; of neighbours with one owner, the first reads. */
static bool create_wants_reading(struct create_creation *c)
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

static int create_begin_all(struct create_creation *c,
                            const struct session_request *const *requests)
{
    int r = 0;

    for (c->at = 0; c->at < c->count && r == 0; c->at += r == 0)
        r = create_begin(c, &c->drafts[c->at], requests[c->at]);
    return r;
}

/* NULL if memory is short. */
static struct create_creation *create_creation_new(struct core *core, size_t count, void *data)
{
    struct create_creation *c = calloc(1, sizeof(*c) + count * sizeof(c->drafts[0]));

    if (!c || !(c->created = calloc(count, sizeof(*c->created)))) {
        free(c);
        return NULL;
    }
    c->core = core;
    c->count = count;
    c->data = data;
    c->text = c->json = (struct strbuf)STRBUF_INIT;
    return c;
}

static void create_start(struct create_creation *c, const struct session_request *const *requests)
{
    int r = create_begin_all(c, requests);

    if (r < 0)
        create_finish(c, r);
    else if (!create_wants_reading(c))
        create_commit(c);
    else if (store_read(c->core->store, create_read_missing, create_on_read, c) < 0)
        create_finish(c, aq_fail_oom(&c->err));
}

static void create_try_oom(void (*done)(void), void *data, int r, const struct aq_error *err)
{
    ((core_dry_run_fn)done)(data, r, err, NULL);
}

static void create_oom(void (*done)(void), void *data, int r, const struct aq_error *err)
{
    ((core_create_fn)done)(data, r, err, NULL);
}

void core_dry_run_session(struct core *core, const struct session_request *request, size_t count,
                          core_dry_run_fn done, void *data)
{
    AQ_CLEANUP(aq_freep) const struct session_request **requests = calloc(count, sizeof(*requests));
    struct create_creation *c = create_creation_new(core, count, data);

    if (!c || !requests) {
        free(c);
        core_defer_oom(core, create_try_oom, (void (*)(void))done, data);
        return;
    }
    for (size_t i = 0; i < count; i++)
        requests[i] = request;
    c->dry_run_done = done;
    create_start(c, requests);
}

void core_create_sessions(struct core *core, const struct session_request *const *requests,
                          size_t count, const struct core_answered *answered,
                          const struct audit_who *by, core_create_fn done, void *data)
{
    struct create_creation *c = create_creation_new(core, count, data);

    if (!c) {
        core_defer_oom(core, create_oom, (void (*)(void))done, data);
        return;
    }
    c->done = done;
    c->answered = answered;
    c->by = audit_by_copy(by);
    create_start(c, requests);
}
