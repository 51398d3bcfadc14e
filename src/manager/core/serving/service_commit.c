/* SPDX-License-Identifier: Apache-2.0 */
/* service_commit.c - the way of a command on a model service to the store and back
 *
 * The row, the entry of the audit log, the line of the history, what drains with it and the answer
 * that is kept are one batch.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/serving/service_command.h"
#include "manager/core/serving/service_history.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

static void service_command_free(struct service_command *c)
{
    model_service_done(&c->made);
    service_order_done(&c->order);
    free(c->reason);
    free(c->note);
    free(c);
}

static void service_on_committed(void *data, int r, const struct aq_error *err)
{
    struct service_command *c = data;
    const struct model_service_entry *was = model_service_entry_find(c->core, &c->made.id);
    struct aq_error why;

    list_remove(&c->creation_link);
    /* Of two changes at once the other one may have been a rollout's. */
    if (r == -ENOENT && !c->is_new && was && was->s.version >= c->made.version
        && service_check_version(was, &c->made, &why) == 0) {
        service_commit(c);
        return;
    }
    if (r == -ENOENT) {
        r = c->is_new
                ? aq_fail_kind(&why, EBUSY, "conflict",
                               "the domain, the project or the user was renamed or removed "
                               "while the model service was being created; repeat the request")
            : was ? service_fail_conflict(&why) /* proposal.c says so of another version */
                  : aq_fail_kind(&why, ENOENT, "object-not-found", "No such model service.");
        err = &why;
    }
    if (r == -EEXIST) {
        why = *err;
        why.kind = "service-already-exists";
        err = &why;
    }
    c->done(c->data, r, err);
    service_command_free(c);
}

void service_command_refuse(void *data, int r, const struct aq_error *err)
{
    struct service_command *c = data;

    c->done(c->data, r, err);
    service_command_free(c);
}

static void service_write_audit(const struct model_service *s, struct strbuf *out)
{
    const struct model_service_revision *goal = model_service_find_revision(s, s->goal);
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "replicas", s->replicas);
    jsonw_member_int(&w, "replicas_min", s->replicas_min);
    jsonw_member_int(&w, "replicas_max", s->replicas_max);
    if (s->share_micro) {
        jsonw_key(&w, "share");
        jsonw_double(&w, (double)s->share_micro / AMOUNT_ONE);
    }
    jsonw_member_int(&w, "revision", s->goal);
    if (s->rollout) {
        jsonw_key(&w, "rollout");
        jsonw_raw(&w, s->rollout, strlen(s->rollout));
    }
    jsonw_member_str(&w, "image", goal ? goal->spec->session.image : NULL);
    jsonw_member_str(&w, "model", goal ? goal->spec->model : NULL);
    jsonw_member_bool(&w, "public", s->is_public);
    jsonw_member_str(&w, "tag", s->tag);
    jsonw_key(&w, "limits");
    model_service_limits_write(&s->limits, &w);
    if (s->is_ending)
        jsonw_member_bool(&w, "forced", s->is_forced);
    jsonw_object_end(&w);
}

/* What the request is answered, in the commit of what it makes. */
static void service_add_answer(const struct service_command *c, struct event_batch *batch)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct event *e = event_batch_add(batch, EVENT_REQUEST_ANSWERED, clock_realtime_usec());

    e->answered.status = c->write(c->data, &c->made, &body);
    e->answered.access_key = c->answered->access_key;
    e->answered.request_key = c->answered->request_key;
    e->answered.digest = c->answered->digest;
    e->answered.body = arena_strndup(&batch->arena, body.data, body.len);
}

static struct event *service_add_event(struct event_batch *batch, enum event_kind kind,
                                       const struct model_service *s)
{
    struct event *e = event_batch_add(batch, kind, clock_realtime_usec());

    e->service.row = aq_alloc(sizeof(*e->service.row));
    model_service_copy(e->service.row, s);
    return e;
}

static size_t service_revision_bytes(const struct model_service_revision *revision)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    model_service_spec_write(revision->spec, &w);
    return text.len;
}

static bool service_has_replica_of(const struct model_service_entry *entry, int64_t number)
{
    LIST_FOREACH(link, &entry->replicas)
        if (LIST_ENTRY(link, struct replica_entry, link)->session->s.replica->revision == number)
            return true;
    return false;
}

/* Leave out the oldest revisions beyond the limits; goals and those with replicas stay. */
static void service_drop_revisions(const struct model_service_entry *was, struct event_batch *batch,
                                   struct event *e)
{
    struct model_service *s = e->service.row;
    size_t bytes = 0, at = 0;

    e->service.dropped = arena_array(&batch->arena, s->revision_count, sizeof(*e->service.dropped));
    for (size_t i = 0; i < s->revision_count; i++)
        bytes += service_revision_bytes(&s->revisions[i]);
    while (at + 1 < s->revision_count
           && (s->revision_count > MODEL_SERVICE_REVISIONS_MAX
               || bytes > MODEL_SERVICE_REVISION_BYTES)) {
        struct model_service_revision *revision = &s->revisions[at];

        if (revision->number == s->goal || revision->number == was->s.goal
            || revision->number == was->rollout.state.from
            || service_has_replica_of(was, revision->number)) {
            at++;
            continue;
        }
        bytes -= service_revision_bytes(revision);
        e->service.dropped[e->service.dropped_count++] = revision->number;
        free(revision->spec);
        free(revision->note);
        memmove(revision, revision + 1, (--s->revision_count - at) * sizeof(*revision));
    }
}

/* Set the rollout that the changed service has. */
static int service_prepare_rollout(struct service_command *c, const struct model_service_entry *was,
                                   struct aq_error *err)
{
    if (c->ask == SERVICE_ROLLOUT_NOT_ASKED)
        return service_rollout_merge(c->core, was, &c->made, &c->reason, err);
    model_service_done(&c->made);
    model_service_copy(&c->made, &was->s);
    c->made.version++;
    return service_rollout_ask(c->core, was, c->ask, &c->made, &c->reason, err);
}

void service_commit(struct service_command *c)
{
    const struct model_service_entry *was = model_service_entry_find(c->core, &c->made.id);
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *described = NULL;
    struct event_batch *batch;
    struct aq_error err;
    struct event *e;
    int r = service_prepare_rollout(c, was, &err);
    char id[UUID_TEXT_MAX];
    struct audit_change change = { .action = c->action,
                                   .object_kind = "model-service",
                                   .object_id = uuid_format(&c->made.id, id),
                                   .object_name = c->made.name,
                                   .object_domain = c->made.domain };

    if (r < 0) {
        core_defer(c->core, service_command_refuse, c, r, &err);
        return;
    }
    batch = event_batch_new();
    e = service_add_event(batch, c->is_new ? EVENT_SERVICE_CREATED : EVENT_SERVICE_CHANGED,
                          &c->made);
    e->service.has_revision = c->has_revision && !c->is_new;
    if (c->by.is_some)
        described = service_describe_change(was ? &was->s : NULL, &c->made, c->reason, c->note,
                                            c->by.who.user_name);
    if (described || c->reason)
        e->service.reason = arena_strdup(&batch->arena, described ? described : c->reason);
    if (e->service.has_revision)
        service_drop_revisions(was, batch, e);
    if (!uuid_is_nil(&c->removed)) {
        e = event_batch_add(batch, EVENT_REPLICA_CHANGED, clock_realtime_usec());
        e->replica_change.id = c->removed;
        e->replica_change.what = REPLICA_DRAINING;
        e->replica_change.to.draining_usec = clock_realtime_usec();
    }
    if (was)
        service_write_audit(&was->s, &before);
    service_write_audit(&c->made, &after);
    change.before = was ? before.data : NULL;
    change.after = after.data;
    if (c->answered)
        service_add_answer(c, batch);
    if (c->is_new)
        list_add(&c->core->service_creations, &c->creation_link);
    AQ_FAULT("core.serving.proposed");
    proposal_commit_audited(c->core, batch, audit_by_get(&c->by), &change, service_on_committed, c);
}
