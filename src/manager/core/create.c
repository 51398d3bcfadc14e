/* create.c - the command that makes sessions, all that are asked for or none
 *
 * Most requests are decided from memory and committed at once. Only when the
 * owner's resource groups are not known yet, or a dependency has ended, the
 * store is asked first.
 */
#include "manager/core/create.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "store/read.h"

/* One of the sessions, until it is an event of the batch. */
struct draft {
    struct session s;
    bool is_met;                /* a live session will do: nothing to make */
    bool reuse;
    char *resource_group;       /* asked for, NULL = any */
    char *image;
    int64_t shmem_bytes;        /* asked for, 0 = nothing is said */
    char **unresolved;          /* dependencies that are not alive: ids or names */
    size_t unresolved_count;
    struct allowed *allowed;    /* as read, until it is kept */
    bool wants_allowed;
};

struct creation {
    struct core *core;
    struct event_batch *batch;
    struct core_created *created; /* one per draft */
    struct aq_error err;
    size_t at;                    /* the draft that 'err' is about */
    core_create_fn done;
    core_trial_fn tried;          /* instead: nothing is to be made */
    struct strbuf text, json;     /* of the trial */
    void *data;
    size_t count;
    struct draft drafts[];
};

static void draft_done(struct draft *d)
{
    for (size_t i = 0; i < d->unresolved_count; i++)
        free(d->unresolved[i]);
    free(d->unresolved);
    free(d->resource_group);
    free(d->image);
    session_done(&d->s);
}

static void creation_free(struct creation *c)
{
    for (size_t i = 0; i < c->count; i++)
        draft_done(&c->drafts[i]);
    free(c->created);
    event_batch_free(c->batch);
    strbuf_done(&c->text);
    strbuf_done(&c->json);
    free(c);
}

/* "[3].name" for the fourth session's name, if there are several. */
static void name_draft(struct creation *c)
{
    char field[sizeof(c->err.field)];

    if (c->count == 1 || c->at == c->count)
        return;
    memcpy(field, c->err.field, sizeof(field));
    (void)snprintf(c->err.field, sizeof(c->err.field), field[0] ? "[%zu].%.50s" : "[%zu]%.0s",
                   c->at, field);
}

static void answer(struct creation *c, int r)
{
    const struct core_created *created = r == 0 ? c->created
                                         : r == -EEXIST && c->at < c->count ? &c->created[c->at]
                                                                            : NULL;

    c->err.code = r < 0 ? -r : 0;
    if (r < 0)
        name_draft(c);
    if (c->tried)
        c->tried(c->data, r, r < 0 ? &c->err : NULL,
                 &(struct core_trial){ c->drafts[0].resource_group, c->text.data, c->json.data });
    else
        c->done(c->data, r, r < 0 ? &c->err : NULL, created);
    creation_free(c);
}

static void on_finish(void *data, int r, const struct aq_error *err)
{
    (void)err;
    answer(data, r);
}

/* Answer in the next turn. */
static void finish(struct creation *c, int r)
{
    core_defer(c->core, on_finish, c, r, &c->err);
}

static void set_created(struct core_created *created, const struct session *s, bool is_new)
{
    *created = (struct core_created){ .id = s->id, .status = s->status, .is_new = is_new };
    memcpy(created->name, s->name, sizeof(created->name));
}

/* The name is in use: fine if that session will do. */
static int meet_existing(struct creation *c, struct draft *d, const struct session *existing)
{
    set_created(&c->created[d - c->drafts], existing, false);
    d->is_met = d->reuse && existing->image && strcmp(existing->image, d->image) == 0;
    return d->is_met ? 0 : aq_fail_as(&c->err, EEXIST, "session-already-exists", "name",
                                      "a live session of yours is already called '%s'; "
                                      "choose another name or end that one", existing->name);
}

/* ---- commit ---- */

static void commit(struct creation *c);

/* Another request was faster, or two of these sessions have one name. 0 = it
 * is fine with that and may be tried again without it.
 */
static int find_namesake(struct creation *c)
{
    for (c->at = 0; c->at < c->count; c->at++) {
        struct draft *d = &c->drafts[c->at];
        const struct session *existing = core_find_session_named(c->core, &d->s.user_id,
                                                                 d->s.name);

        if (existing && !d->is_met)
            return meet_existing(c, d, existing);
    }
    return -EEXIST;
}

/* Give the sessions back to their drafts, which know who asked for what. */
static void take_back(struct creation *c)
{
    size_t next = 0;

    for (size_t i = 0; i < c->count; i++)
        if (!c->drafts[i].is_met) {
            c->drafts[i].s = c->batch->events[next].session;
            c->batch->events[next++].session = (struct session){ .name = "" };
        }
    event_batch_free(AQ_TAKE(c->batch));
}

static void on_refused(struct creation *c, int result, const struct aq_error *err)
{
    c->err = *err;
    c->at = c->count;
    take_back(c);
    if (result == -EEXIST && (result = find_namesake(c)) == 0)
        commit(c);
    else
        answer(c, result);
}

static void on_committed(void *data, int result, const struct aq_error *err,
                         struct event_batch *batch)
{
    struct creation *c = data;
    size_t next = 0;

    c->core->counts.commits++;
    if (result < 0) {
        on_refused(c, result, err);
        return;
    }
    AQ_FAULT("core.create.committed");
    for (size_t i = 0; i < c->count; i++) {
        if (c->drafts[i].is_met)
            continue;
        set_created(&c->created[i], &batch->events[next].session, true);
        core_apply(c->core, &batch->events[next++]);
    }
    AQ_FAULT("core.create.applied");
    answer(c, 0);
}

/* All that is missing is known now. */
static int complete(struct creation *c, struct draft *d, struct admission_queue *queue)
{
    if (d->unresolved_count)
        return aq_fail_field(&c->err, ENOENT, "dependencies", "no session of yours is called '%s'",
                             d->unresolved[0]);
    if (d->s.resource_group)
        return 0; /* admitted before a commit that was refused */
    return admission_check(c->core, &d->s, d->resource_group, d->shmem_bytes, queue, &c->err);
}

/* The drafts become one batch: whole or not at all. */
static int fill_batch(struct creation *c)
{
    if (!(c->batch = event_batch_new()))
        return aq_fail(&c->err, ENOMEM, "a session");
    for (size_t i = 0; i < c->count; i++) {
        struct event *e;

        if (c->drafts[i].is_met)
            continue;
        e = event_batch_add(c->batch, EVENT_SESSION_CREATED, c->drafts[i].s.created_usec);
        if (!e)
            return aq_fail(&c->err, ENOMEM, "a session");
        e->session = c->drafts[i].s;
        c->drafts[i].s = (struct session){ .name = "" };
    }
    return 0;
}

/* What would become of it. */
static int try_out(struct creation *c)
{
    struct draft *d = &c->drafts[0];
    struct live *l = live_new(c->core, &d->s);
    int r = l ? 0 : aq_fail(&c->err, ENOMEM, "a session");

    if (r == 0)
        r = explain_guess(c->core, l, &c->text, &c->json, &c->err);
    free(AQ_TAKE(d->resource_group));
    if (r == 0 && !(d->resource_group = strdup(l->rgroup->g.name)))
        r = aq_fail(&c->err, ENOMEM, "a session");
    if (l)
        live_free(l);
    return r;
}

static void commit(struct creation *c)
{
    struct admission_queue queue = { .access_key = "" };
    int r = 0;

    for (c->at = 0; c->at < c->count && r == 0; c->at += r == 0)
        if (!c->drafts[c->at].is_met)
            r = complete(c, &c->drafts[c->at], &queue);
    admission_done(&queue);
    if (c->tried) {
        finish(c, r == 0 ? try_out(c) : r);
        return;
    }
    if (r == 0)
        r = fill_batch(c);
    if (r == 0 && c->batch->count) {
        AQ_FAULT("core.create.proposed");
        r = store_commit(c->core->store, c->batch, on_committed, c);
    }
    if (r < 0 || !c->batch->count)
        finish(c, r);
}

/* ---- dependencies ---- */

/* Add one, once; it must still be able to succeed. */
static int add_dependency(struct session *s, const struct uuid *id, bool ended,
                          enum session_result result, struct aq_error *err)
{
    char text[UUID_TEXT_MAX];

    for (size_t i = 0; i < s->dependency_count; i++)
        if (uuid_equals(&s->dependencies[i].id, id))
            return 0;
    if (ended && result != RESULT_SUCCESS)
        return aq_fail_field(err, EINVAL, "dependencies", "session %s has ended without success; "
                             "what depends on it would never start", uuid_format(id, text));
    s->dependencies[s->dependency_count++] = (struct session_dependency){ *id, ended, result };
    return 0;
}

static const struct session *find_live(const struct creation *c, const struct session *owner,
                                       const char *text)
{
    struct uuid id;
    const struct session *s;

    if (uuid_parse(text, &id) < 0)
        return core_find_session_named(c->core, &owner->user_id, text);
    s = core_find_session(c->core, &id);
    return s && uuid_equals(&s->user_id, &owner->user_id) ? s : NULL;
}

static int resolve_live(struct creation *c, struct draft *d, const struct session_request *req)
{
    int r = 0;

    if (req->dependency_count == 0)
        return 0;
    if (req->dependency_count > 1000)
        return aq_fail_field(&c->err, EINVAL, "dependencies", "more than 1000 dependencies");
    d->s.dependencies = calloc(req->dependency_count, sizeof(*d->s.dependencies));
    d->unresolved = calloc(req->dependency_count, sizeof(*d->unresolved));
    if (!d->s.dependencies || !d->unresolved)
        return aq_fail(&c->err, ENOMEM, "a session");
    for (size_t i = 0; i < req->dependency_count && r == 0; i++) {
        const struct session *live = find_live(c, &d->s, req->dependencies[i]);

        if (live)
            r = add_dependency(&d->s, &live->id, false, RESULT_UNDEFINED, &c->err);
        else if (!(d->unresolved[d->unresolved_count] = strdup(req->dependencies[i])))
            r = aq_fail(&c->err, ENOMEM, "a session");
        else
            d->unresolved_count++;
    }
    return r;
}

/* On a thread of the store: the latest session of that id or name. */
static int resolve_ended(struct store_tx *tx, struct session *s, const char *text,
                         struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct store_query q = { .user_id = &s->user_id, .limit = 1 };
    struct uuid id;
    int r;

    if (uuid_parse(text, &id) == 0) {
        q.ids = &id;
        q.id_count = 1;
    } else {
        q.name = text;
    }
    if ((r = store_list_sessions(tx, &q, &page, err)) < 0)
        return r;
    if (page->count == 0)
        return aq_fail_field(err, ENOENT, "dependencies", "no session of yours is called '%s'",
                             text);
    return add_dependency(s, &page->sessions[0].session.id,
                          session_is_terminal(page->sessions[0].session.status),
                          page->sessions[0].session.result, err);
}

static int read_missing(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct creation *c = data;
    int r = 0;

    for (size_t i = 0; i < c->count && r == 0; i++) {
        struct draft *d = &c->drafts[i];

        c->at = i;
        if (d->wants_allowed)
            r = access_read(tx, &d->s, &d->allowed, err);
        for (size_t n = 0; n < d->unresolved_count && r == 0; n++)
            r = resolve_ended(tx, &d->s, d->unresolved[n], err);
    }
    return r;
}

static void on_read(void *data, int r, const struct aq_error *err)
{
    struct creation *c = data;

    for (size_t i = 0; i < c->count; i++) {
        struct draft *d = &c->drafts[i];

        if (d->allowed)
            access_keep(c->core, &d->s, AQ_TAKE(d->allowed));
        for (size_t n = 0; n < d->unresolved_count; n++)
            free(d->unresolved[n]);
        d->unresolved_count = 0;
    }
    if (r < 0) {
        c->err = *err;
        finish(c, r);
        return;
    }
    commit(c);
}

/* ---- the command ---- */

static int begin(struct creation *c, struct draft *d, const struct session_request *req)
{
    const struct session *existing;
    const char *wanted;
    int r = request_build(c->core, req, &d->s, &c->err);

    if (r < 0 || (r = request_shmem(req, &d->shmem_bytes, &c->err)) < 0)
        return r;
    d->reuse = req->reuse;
    wanted = req->resource_group ? req->resource_group : wishes_resource_group(c->core, &req->wishes);
    if (!(d->image = strdup(req->image)) || (wanted && !(d->resource_group = strdup(wanted))))
        return aq_fail(&c->err, ENOMEM, "a session");
    if ((r = resolve_live(c, d, req)) < 0)
        return r;
    existing = core_find_session_named(c->core, &d->s.user_id, req->name);
    return existing ? meet_existing(c, d, existing) : 0;
}

/* What is not in memory; of neighbours with one owner, the first reads. */
static bool wants_reading(struct creation *c)
{
    const struct draft *last = NULL;
    bool any = false;

    for (size_t i = 0; i < c->count; i++) {
        struct draft *d = &c->drafts[i];

        if (d->is_met)
            continue;
        d->wants_allowed = !(last && access_is_same(&last->s, &d->s))
                           && !access_find(c->core, &d->s);
        any = any || d->wants_allowed || d->unresolved_count;
        last = d;
    }
    return any;
}

static int begin_all(struct creation *c, const struct session_request *const *requests)
{
    int r = 0;

    for (c->at = 0; c->at < c->count && r == 0; c->at += r == 0)
        r = begin(c, &c->drafts[c->at], requests[c->at]);
    return r;
}

static struct creation *creation_new(struct core *core, size_t count, void *data)
{
    struct creation *c = calloc(1, sizeof(*c) + count * sizeof(c->drafts[0]));

    if (!c || !(c->created = calloc(count, sizeof(*c->created))))
        core_die("a request");
    c->core = core;
    c->count = count;
    c->data = data;
    c->text = c->json = (struct strbuf)STRBUF_INIT;
    return c;
}

static void start(struct creation *c, const struct session_request *const *requests)
{
    int r = begin_all(c, requests);

    if (r < 0)
        finish(c, r);
    else if (!wants_reading(c))
        commit(c);
    else if (store_read(c->core->store, read_missing, on_read, c) < 0)
        finish(c, aq_fail(&c->err, ENOMEM, "a session"));
}

void core_try_session(struct core *core, const struct session_request *request,
                      core_trial_fn done, void *data)
{
    struct creation *c = creation_new(core, 1, data);

    c->tried = done;
    start(c, &request);
}

void core_create_sessions(struct core *core, const struct session_request *const *requests,
                          size_t count, core_create_fn done, void *data)
{
    struct creation *c = creation_new(core, count, data);

    c->done = done;
    start(c, requests);
}

void core_create_session(struct core *core, const struct session_request *request,
                         core_create_fn done, void *data)
{
    core_create_sessions(core, &request, 1, done, data);
}
