/* create.c - the command that makes a session
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

struct creation {
    struct core *core;
    struct event_batch *batch;  /* one event: the session */
    char *resource_group;       /* asked for, NULL = any */
    char *image;
    bool reuse;
    char **unresolved;          /* dependencies that are not alive: ids or names */
    size_t unresolved_count;
    struct allowed *allowed;    /* as read, until it is kept */
    bool wants_allowed;
    core_create_fn done;
    void *data;
    struct core_created created;
    int r;
    struct aq_error err;
};

static struct session *session_of(struct creation *c)
{
    return &c->batch->events[0].session;
}

static void creation_free(struct creation *c)
{
    for (size_t i = 0; i < c->unresolved_count; i++)
        free(c->unresolved[i]);
    free(c->unresolved);
    free(c->resource_group);
    free(c->image);
    event_batch_free(c->batch);
    free(c);
}

static void on_finish(void *data, int r, const struct aq_error *err)
{
    struct creation *c = data;

    c->done(c->data, r, err, r == 0 || r == -EEXIST ? &c->created : NULL);
    creation_free(c);
}

/* Answer in the next turn. */
static void finish(struct creation *c, int r)
{
    c->err.code = r < 0 ? -r : 0;
    core_defer(c->core, on_finish, c, r, &c->err);
}

static void set_created(struct creation *c, const struct session *s, bool is_new)
{
    c->created = (struct core_created){ .id = s->id, .status = s->status, .is_new = is_new };
    memcpy(c->created.name, s->name, sizeof(c->created.name));
}

/* The name is in use: fine if that session will do. */
static int meet_existing(struct creation *c, const struct session *existing)
{
    set_created(c, existing, false);
    if (c->reuse && request_is_same_image(existing, c->image))
        return 0;
    (void)aq_fail_field(&c->err, EEXIST, "name", "a live session of yours is already called '%s'; "
                        "choose another name or end that one", existing->name);
    c->err.kind = "session-already-exists";
    return -EEXIST;
}

/* ---- commit ---- */

static void on_committed(void *data, int result, const struct aq_error *err,
                         struct event_batch *batch)
{
    struct creation *c = data;
    struct core *core = c->core;
    const struct session *existing;

    (void)batch; /* c owns it */
    core->counts.commits++;
    if (result == 0) {
        AQ_FAULT("core.create.committed");
        set_created(c, session_of(c), true);
        core_apply(core, &c->batch->events[0]);
        AQ_FAULT("core.create.applied");
    } else {
        c->err = *err;
        if (result == -EEXIST && (existing = core_find_session_named(
                                      core, &session_of(c)->user_id, session_of(c)->name)))
            result = meet_existing(c, existing);
    }
    c->done(c->data, result, result < 0 ? &c->err : NULL,
            result == 0 || result == -EEXIST ? &c->created : NULL);
    creation_free(c);
}

static int choose_resource_group(struct creation *c)
{
    const struct allowed *a = access_find(c->core, session_of(c));
    const char *wanted = c->resource_group;

    for (size_t i = 0; a && i < a->count; i++) {
        const struct resource_group *g = core_find_resource_group(c->core, a->names[i]);

        if (!g || !g->is_active || (wanted && strcmp(g->name, wanted) != 0))
            continue;
        session_of(c)->resource_group = strdup(g->name);
        return session_of(c)->resource_group ? 0 : aq_fail(&c->err, ENOMEM, "a session");
    }
    if (!wanted)
        return aq_fail_field(&c->err, ENOENT, "scalingGroup",
                             "You do not have any scaling groups allowed to use.");
    return aq_fail_field(&c->err, ENOENT, "scalingGroup",
                         "You do not have access to the scaling group '%s'.", wanted);
}

static void commit(struct creation *c)
{
    int r = c->unresolved_count ? aq_fail_field(&c->err, ENOENT, "dependencies",
                                                "no session of yours is called '%s'",
                                                c->unresolved[0])
                                : choose_resource_group(c);

    if (r == 0) {
        AQ_FAULT("core.create.proposed");
        r = store_commit(c->core->store, c->batch, on_committed, c);
    }
    if (r < 0)
        finish(c, r);
}

/* ---- dependencies ---- */

/* Add one, once; it must still be able to succeed. */
static int add_dependency(struct creation *c, const struct uuid *id, bool ended,
                          enum session_result result, struct aq_error *err)
{
    struct session *s = session_of(c);
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

static int resolve_live(struct creation *c, const struct session_request *req)
{
    struct session *s = session_of(c);
    int r = 0;

    if (req->dependency_count == 0)
        return 0;
    if (req->dependency_count > 1000)
        return aq_fail_field(&c->err, EINVAL, "dependencies", "more than 1000 dependencies");
    s->dependencies = calloc(req->dependency_count, sizeof(*s->dependencies));
    c->unresolved = calloc(req->dependency_count, sizeof(*c->unresolved));
    if (!s->dependencies || !c->unresolved)
        return aq_fail(&c->err, ENOMEM, "a session");
    for (size_t i = 0; i < req->dependency_count && r == 0; i++) {
        const struct session *d = find_live(c, s, req->dependencies[i]);

        if (d)
            r = add_dependency(c, &d->id, false, RESULT_UNDEFINED, &c->err);
        else if (!(c->unresolved[c->unresolved_count] = strdup(req->dependencies[i])))
            r = aq_fail(&c->err, ENOMEM, "a session");
        else
            c->unresolved_count++;
    }
    return r;
}

/* On a thread of the store: the latest session of that id or name. */
static int resolve_ended(struct store_tx *tx, struct creation *c, const char *text,
                         struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct session *s = session_of(c);
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
    return add_dependency(c, &page->sessions[0].session.id,
                          session_is_terminal(page->sessions[0].session.status),
                          page->sessions[0].session.result, err);
}

static int read_missing(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct creation *c = data;
    int r = c->wants_allowed ? access_read(tx, session_of(c), &c->allowed, err) : 0;

    for (size_t i = 0; i < c->unresolved_count && r == 0; i++)
        r = resolve_ended(tx, c, c->unresolved[i], err);
    return r;
}

static void on_read(void *data, int r, const struct aq_error *err)
{
    struct creation *c = data;

    if (c->allowed)
        access_keep(c->core, session_of(c), AQ_TAKE(c->allowed));
    if (r < 0) {
        c->err = *err;
        finish(c, r);
        return;
    }
    for (size_t i = 0; i < c->unresolved_count; i++)
        free(c->unresolved[i]);
    c->unresolved_count = 0;
    commit(c);
}

/* ---- the command ---- */

static int begin(struct creation *c, const struct session_request *req)
{
    struct event *e;
    int r;

    if (!(c->batch = event_batch_new()) ||
        !(e = event_batch_add(c->batch, EVENT_SESSION_CREATED, clock_realtime_usec())))
        return aq_fail(&c->err, ENOMEM, "a session");
    if ((r = request_build(c->core, req, &e->session, &c->err)) < 0)
        return r;
    c->reuse = req->reuse;
    if (!(c->image = strdup(req->image)) ||
        (req->resource_group && !(c->resource_group = strdup(req->resource_group))))
        return aq_fail(&c->err, ENOMEM, "a session");
    return resolve_live(c, req);
}

void core_create_session(struct core *core, const struct session_request *request,
                         core_create_fn done, void *data)
{
    struct creation *c = calloc(1, sizeof(*c));
    const struct session *existing = NULL;
    int r;

    if (!c)
        core_die("a request");
    *c = (struct creation){ .core = core, .done = done, .data = data };
    r = begin(c, request);
    if (r == 0)
        existing = core_find_session_named(core, &session_of(c)->user_id, request->name);
    if (existing)
        r = meet_existing(c, existing);
    else if (r == 0)
        r = request_check_queue(core, session_of(c), &c->err);
    if (r < 0 || existing) {
        finish(c, r);
        return;
    }
    c->wants_allowed = !access_find(core, session_of(c));
    if (!c->wants_allowed && c->unresolved_count == 0)
        commit(c);
    else if (store_read(core->store, read_missing, on_read, c) < 0)
        finish(c, aq_fail(&c->err, ENOMEM, "a session"));
}
