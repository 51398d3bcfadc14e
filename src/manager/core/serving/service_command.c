/* SPDX-License-Identifier: Apache-2.0 */
/* service_command.c - commands that create, change, scale and end model services
 *
 * A new revision is tried out first, as a session that is not made (core_dry_run_session()): what
 * the owner may not have, or no agent could hold, is refused to who asks for it, and not found out
 * by replicas that fail.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "manager/core/serving/service_command.h"
#include "manager/core/serving/service_share.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

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
        r = service_check_all(c, &why);
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
    list_init(&c->creation_link);
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
    r = k ? service_check_all(c, &err)
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
    core_change_service_once(core, s, note, NULL, NULL, by, done, data);
}

void core_change_service_once(struct core *core, struct model_service *s, const char *note,
                              const struct core_answered *answered, core_service_write_fn write,
                              const struct audit_who *by, core_done_fn done, void *data)
{
    const struct model_service_entry *was = model_service_entry_find(core, &s->id);
    struct service_command *c = service_command_new(core, "modify-service", by, done, data);
    struct aq_error err;
    int r;

    c->made = *s;
    *s = (struct model_service){ .name = "" };
    c->note = note && *note ? aq_strdup(note) : NULL;
    c->answered = answered;
    c->write = write;
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
        if (!service_is_same(was->s.scaling, c->made.scaling))
            free(AQ_TAKE(c->made.fired)); /* of other rules */
        r = service_check_all(c, &err);
    }
    if (r < 0)
        core_defer(core, service_command_refuse, c, r, &err);
    else if (c->has_revision
             || (c->made.goal && !service_is_same(was->s.resource_group, c->made.resource_group)))
        service_try_out(c);
    else
        service_commit(c);
}

static void service_note_fired(struct model_service *s, size_t rule)
{
    json_auto_t *times = s->fired ? json_load_string(s->fired, 0) : NULL;

    if (!json_is_array(times)) {
        json_decref(times);
        times = json_array();
    }
    while (json_array_size(times) <= rule)
        (void)json_array_append_new(times, json_integer(0));
    (void)json_array_set_new(times, rule, json_integer(clock_realtime_usec()));
    free(s->fired);
    s->fired = json_dump_text(times, JSON_COMPACT);
}

void core_scale_service(struct core *core, const struct uuid *id, int64_t replicas,
                        int64_t share_micro, int rule, const char *reason, core_done_fn done,
                        void *data)
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
    if (rule >= 0)
        service_note_fired(&c->made, (size_t)rule);
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
