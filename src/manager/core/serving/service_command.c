/* SPDX-License-Identifier: Apache-2.0 */
/* service_command.c - commands that create, change, scale and end model services
 *
 * A new revision is tried out first, as a session that is not made (core_dry_run_session()): what
 * the owner may not have, or no agent could hold, is refused to who asks for it, and not found out
 * by replicas that fail.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/services.h"
#include "manager/core/serving/service_history.h"
#include "manager/core/serving/service_replica.h"
#include "manager/core/serving/service_rollout.h"
#include "manager/core/serving/service_share.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* A command, from the request to the answer. */
struct service_command {
    struct core *core;
    struct model_service made;            /* what the service becomes */
    bool is_new;                          /* it is created */
    bool has_revision;                    /* the last of its revisions is new */
    struct service_order order;           /* of the trial */
    struct uuid removed;                  /* session of a replica that drains with it; nil = none */
    const struct core_answered *answered; /* with 'write'; NULL = the answer is not kept */
    core_service_write_fn write;
    struct audit_by by;
    const char *action; /* for the audit log */
    char *reason;       /* of the autoscaler or a rollout, for the history; NULL = none */
    char *note;         /* of who asked, for the history; NULL = none */
    enum service_rollout_ask ask;
    core_done_fn done;
    void *data;
};

/* ---- lookup ---- */

const struct model_service *core_find_service_by_id(const struct core *core, const struct uuid *id)
{
    const struct model_service_entry *entry = model_service_entry_find(core, id);

    return entry ? &entry->s : NULL;
}

const struct model_service *core_find_service(const struct core *core, const char *text)
{
    const struct model_service_entry *entry;
    struct uuid id;

    if (uuid_parse(text, &id) == 0)
        return core_find_service_by_id(core, &id);
    entry = model_service_entry_find_named(core, text);
    return entry ? &entry->s : NULL;
}

const struct model_service *core_next_service(const struct core *core,
                                              const struct model_service *after)
{
    const struct list *link =
        after ? ((const struct model_service_entry *)(const void *)after)->all_link.next
              : core->services.next;

    return link == &core->services
               ? NULL
               : &LIST_ENTRY(link, const struct model_service_entry, all_link)->s;
}

const struct session *core_next_replica(const struct core *core,
                                        const struct model_service *service,
                                        const struct session *after)
{
    const struct model_service_entry *entry = (const struct model_service_entry *)(const void *)
        service;
    const struct list *link = after ? session_entry_of(after)->replica->link.next
                                    : entry->replicas.next;

    (void)core;
    return link == &entry->replicas
               ? NULL
               : &LIST_ENTRY(link, const struct replica_entry, link)->session->s;
}

/* ---- what features tell the core ---- */

void core_on_service_change(struct core *core, core_service_changed_fn *fn, void *data)
{
    core->serving.changed = fn;
    core->serving.changed_data = data;
}

void core_set_replica_mounts(struct core *core,
                             bool (*may_mount)(void *data, const struct session *session,
                                               const struct folder *folder),
                             void *data)
{
    core->serving.may_mount = may_mount;
    core->serving.mounts_data = data;
}

void core_set_replica_limit(struct core *core, core_replica_limit_fn *fn, void *data)
{
    core->serving.limit = fn;
    core->serving.limit_data = data;
}

/* ---- checks ---- */

/* Errors of sessions name members of requests for sessions. */
static void service_rename_field(struct aq_error *err)
{
    static const struct {
        const char *of_session, *ours;
    } names[] = { { "config.resources", "resources" },
                  { "config.resource_opts.", "" },
                  { "startupCommand", "command" },
                  { "bootstrap_script", "bootstrap" },
                  { "clusterSize", "cluster_size" } };
    char rest[sizeof(err->field)];

    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        size_t len = strlen(names[i].of_session);

        if (strncmp(err->field, names[i].of_session, len) != 0)
            continue;
        (void)snprintf(rest, sizeof(rest), "%s", err->field + len);
        (void)snprintf(err->field, sizeof(err->field), "%s%.60s", names[i].ours, rest);
        return;
    }
}

static size_t service_count_of_user(const struct core *core, const struct uuid *user_id)
{
    size_t count = 0;

    LIST_FOREACH(link, &core->services)
        count += uuid_equals(&LIST_ENTRY(link, struct model_service_entry, all_link)->s.user_id,
                             user_id);
    return count;
}

static int service_check_count(const struct core *core, const struct model_service *s,
                               struct aq_error *err)
{
    if (core->service_count >= MODEL_SERVICE_LIVE_MAX)
        return aq_fail_kind(err, EDQUOT, "quota-exceeded",
                            "there are %d model services already; end some that are not needed",
                            MODEL_SERVICE_LIVE_MAX);
    if (service_count_of_user(core, &s->user_id) >= MODEL_SERVICE_USER_MAX)
        return aq_fail_kind(err, EDQUOT, "quota-exceeded",
                            "the user has %d model services already; end some that are not needed",
                            MODEL_SERVICE_USER_MAX);
    if (model_service_entry_find_named(core, s->name))
        return aq_fail_as(err, EEXIST, "service-already-exists", "name",
                          "a model service is already called '%s'; choose another name or end that "
                          "one",
                          s->name);
    return 0;
}

static int service_check_limit(const struct core *core, const struct model_service *s,
                               struct aq_error *err)
{
    int64_t limit = core->serving.limit ? core->serving.limit(core->serving.limit_data, &s->user_id)
                                        : 0;

    if (limit <= 0 || s->replicas_max <= limit)
        return 0;
    return aq_fail_as(err, EDQUOT, "quota-exceeded", "replicas",
                      "the policy of the service's owner allows %lld replicas of a model service "
                      "at most, not %lld",
                      (long long)limit, (long long)s->replicas_max);
}

/* As far as memory tells. */
static int service_check_all(const struct core *core, const struct service_command *c,
                             struct aq_error *err)
{
    int r = c->is_new ? model_service_check_name(c->made.name, err) : 0;

    if (r == 0)
        r = model_service_check(&c->made, err);
    if (r == 0 && c->is_new)
        r = service_check_count(core, &c->made, err);
    if (r == 0)
        r = service_check_limit(core, &c->made, err);
    if (r == 0)
        r = service_share_check(core, &c->made, c->has_revision && !c->is_new, err);
    if (r < 0)
        service_rename_field(err);
    return r;
}

static int service_fail_conflict(struct aq_error *err)
{
    return aq_fail_kind(err, ESTALE, "conflict",
                        "the model service was changed meanwhile; look at it and repeat the "
                        "request");
}

/* Changes by rollouts since the row was copied do not conflict: the next version is made from them. */
static int service_check_version(const struct model_service_entry *was, struct model_service *s,
                                 struct aq_error *err)
{
    if (!was)
        return aq_fail_kind(err, ENOENT, "object-not-found", "No such model service.");
    if (was->s.is_ending)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "the model service '%s' is ending and cannot be changed", was->s.name);
    if (s->version > was->s.version + 1 || s->version <= was->base_version)
        return service_fail_conflict(err);
    s->version = was->s.version + 1;
    return 0;
}

/* ---- the way to the store and back ---- */

static void service_commit(struct service_command *c);

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

static void service_command_refuse(void *data, int r, const struct aq_error *err)
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

/* What the rollout becomes by it. */
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

static void service_commit(struct service_command *c)
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
    AQ_FAULT("core.serving.proposed");
    proposal_commit_audited(c->core, batch, audit_by_get(&c->by), &change, service_on_committed, c);
}

/* ---- a new revision, or resource group, is tried out ---- */

/* core_dry_run_fn */
static void service_on_tried(void *data, int r, const struct aq_error *err,
                             const struct core_dry_run *trial)
{
    struct service_command *c = data;
    struct aq_error why;

    (void)trial;
    if (r < 0)
        why = *err;
    else if (c->is_new)
        r = service_check_all(c->core, c, &why);
    else
        r = service_check_version(model_service_entry_find(c->core, &c->made.id), &c->made, &why);
    if (r < 0) {
        service_rename_field(&why);
        service_command_refuse(c, r, &why);
        return;
    }
    service_commit(c);
}

static void service_try_out(struct service_command *c)
{
    const struct model_service_entry *was = model_service_entry_find(c->core, &c->made.id);
    const struct model_service_revision *revision =
        c->has_revision ? &c->made.revisions[c->made.revision_count - 1]
                        : model_service_find_revision(&c->made, c->made.goal);
    const char *share_slot;
    int64_t share_micro = service_share_of(&c->made, revision, &share_slot);
    struct aq_error err;
    int r = service_order_make(c->core, &c->made, revision, was ? was->last_replica + 1 : 1,
                               share_slot, share_micro, &c->order, &err);

    if (r < 0) {
        service_rename_field(&err);
        core_defer(c->core, service_command_refuse, c, r, &err);
        return;
    }
    core_dry_run_session(c->core, &c->order.request, 1, service_on_tried, c);
}

/* ---- the commands ---- */

static struct service_command *service_command_new(struct core *core, const char *action,
                                                   const struct audit_who *by, core_done_fn done,
                                                   void *data)
{
    struct service_command *c = aq_alloc(sizeof(*c));

    *c = (struct service_command){
        .core = core, .action = action, .by = audit_by_copy(by), .done = done, .data = data
    };
    return c;
}

static void service_number_revision(struct model_service *s, const struct audit_who *by)
{
    struct model_service_revision *revision = &s->revisions[s->revision_count - 1];

    revision->number = ++s->last_number;
    revision->created_usec = clock_realtime_usec();
    if (by)
        revision->creator_id = by->user_id;
}

void core_create_service(struct core *core, struct model_service *s,
                         const struct core_answered *answered, core_service_write_fn write,
                         const struct audit_who *by, core_done_fn done, void *data)
{
    struct service_command *c = service_command_new(core, "create-service", by, done, data);
    const struct keypair *k = core_find_keypair(core, s->access_key);
    struct model_service *made = &c->made;
    struct aq_error err;
    int r;

    *made = *s;
    *s = (struct model_service){ .name = "" };
    c->is_new = true;
    c->has_revision = made->revision_count == 1;
    c->answered = answered;
    c->write = write;
    made->id = uuid_random();
    made->version = 1;
    made->created_usec = clock_realtime_usec();
    made->is_ending = made->is_forced = false;
    made->ended_usec = made->last_number = 0;
    if (k)
        made->user_id = k->user_id;
    made->goal = 0;
    if (c->has_revision) {
        service_number_revision(made, by);
        made->goal = made->last_number;
    }
    made->share_micro = 0;
    service_share_settle(core, made);
    r = k ? service_check_all(core, c, &err)
          : aq_fail_field(&err, EACCES, "owner_access_key", "the owner's key is not active");
    if (r < 0)
        core_defer(core, service_command_refuse, c, r, &err);
    else if (c->has_revision)
        service_try_out(c);
    else
        service_commit(c);
}

static bool service_is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

void core_change_service(struct core *core, struct model_service *s, const char *note,
                         const struct audit_who *by, core_done_fn done, void *data)
{
    const struct model_service_entry *was = model_service_entry_find(core, &s->id);
    struct service_command *c = service_command_new(core, "modify-service", by, done, data);
    struct aq_error err;
    int r;

    c->made = *s;
    *s = (struct model_service){ .name = "" };
    c->note = note && *note ? aq_strdup(note) : NULL;
    c->made.version++;
    r = service_check_version(was, &c->made, &err);
    if (r == 0 && c->made.revision_count > was->s.revision_count) {
        c->has_revision = true;
        c->action = "create-service-revision";
        service_number_revision(&c->made, by);
        if (c->made.goal == 0) /* the new one */
            c->made.goal = c->made.last_number;
    }
    if (r == 0) {
        service_share_settle(core, &c->made);
        r = service_check_all(core, c, &err);
    }
    if (r < 0)
        core_defer(core, service_command_refuse, c, r, &err);
    else if (c->has_revision
             || (c->made.goal && !service_is_same(was->s.resource_group, c->made.resource_group)))
        service_try_out(c);
    else
        service_commit(c);
}

void core_scale_service(struct core *core, const struct uuid *id, int64_t replicas,
                        int64_t share_micro, const char *reason, core_done_fn done, void *data)
{
    const struct model_service_entry *was = model_service_entry_find(core, id);
    struct service_command *c;
    struct aq_error err;
    int r = was ? 0 : aq_fail_kind(&err, ENOENT, "object-not-found", "No such model service.");

    if (r < 0 || was->s.is_ending) {
        core_defer(core, done, data, r, &err);
        return;
    }
    c = service_command_new(core, "scale-service", NULL, done, data);
    model_service_copy(&c->made, &was->s);
    c->made.version++;
    c->made.replicas = AQ_MAX(AQ_MIN(replicas, was->s.replicas_max), was->s.replicas_min);
    if (share_micro)
        c->made.share_micro = share_micro;
    service_share_settle(core, &c->made);
    if (c->made.replicas == was->s.replicas && c->made.share_micro == was->s.share_micro) {
        core_defer(core, service_command_refuse, c, 0, NULL);
        return;
    }
    c->reason = aq_strdup(reason);
    service_commit(c);
}

static void service_ask_rollout(struct core *core, const struct uuid *id, const char *action,
                                enum service_rollout_ask ask, const struct audit_who *by,
                                core_done_fn done, void *data)
{
    const struct model_service_entry *was = model_service_entry_find(core, id);
    struct service_command *c = service_command_new(core, action, by, done, data);
    struct aq_error err;
    int r;

    if (was)
        model_service_copy(&c->made, &was->s);
    c->made.version++;
    c->ask = ask;
    r = service_check_version(was, &c->made, &err);
    if (r < 0)
        core_defer(core, service_command_refuse, c, r, &err);
    else
        service_commit(c);
}

void core_promote_service(struct core *core, const struct uuid *id, const struct audit_who *by,
                          core_done_fn done, void *data)
{
    service_ask_rollout(core, id, "promote-service", SERVICE_ROLLOUT_PROMOTE, by, done, data);
}

void core_abort_rollout(struct core *core, const struct uuid *id, const struct audit_who *by,
                        core_done_fn done, void *data)
{
    service_ask_rollout(core, id, "abort-service-rollout", SERVICE_ROLLOUT_ABORT, by, done, data);
}

void core_remove_replica(struct core *core, const struct uuid *session_id,
                         const struct audit_who *by, core_done_fn done, void *data)
{
    const struct session_entry *l = session_entry_find(core, session_id);
    struct service_command *c;
    struct model_service *made;
    struct aq_error err;
    int r = 0;

    if (!l || !l->replica || l->s.replica->draining_usec)
        r = aq_fail_kind(&err, ENOENT, "object-not-found", "No such replica, or it ends already.");
    else if (l->replica->service->s.is_ending)
        r = aq_fail_kind(&err, EBUSY, "conflict",
                         "the model service '%s' is ending and cannot be changed",
                         l->replica->service->s.name);
    if (r < 0) {
        core_defer(core, done, data, r, &err);
        return;
    }
    c = service_command_new(core, "remove-replica", by, done, data);
    made = &c->made;
    model_service_copy(made, &l->replica->service->s);
    made->version++;
    made->replicas = AQ_MAX(made->replicas - 1, 0);
    made->replicas_max = made->replicas_min == made->replicas_max ? made->replicas
                                                                  : made->replicas_max;
    made->replicas_min = AQ_MIN(made->replicas_min, made->replicas);
    c->removed = *session_id;
    AQ_FAULT("core.serving.remove.proposed");
    service_commit(c);
}

void core_end_service(struct core *core, const struct uuid *id, bool forced,
                      const struct audit_who *by, core_done_fn done, void *data)
{
    const struct model_service_entry *was = model_service_entry_find(core, id);
    struct service_command *c;
    struct aq_error err;

    if (!was) {
        core_defer(core, done, data,
                   aq_fail_kind(&err, ENOENT, "object-not-found", "No such model service."), &err);
        return;
    }
    if (was->s.is_ending && (was->s.is_forced || !forced)) {
        core_defer(core, done, data, 0, NULL);
        return;
    }
    c = service_command_new(core, "end-service", by, done, data);
    model_service_copy(&c->made, &was->s);
    c->made.version++;
    c->made.is_ending = true;
    c->made.is_forced = forced;
    AQ_FAULT("core.serving.end.asked");
    service_commit(c);
}
