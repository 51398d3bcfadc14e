/* SPDX-License-Identifier: Apache-2.0 */
/* service_step.c - what follows for a model service from its row, its replicas and the time
 *
 * Each step is decided from rows, what agents said and the time alone, so a manager that starts
 * again decides the same. A replica that takes requests is drained first, durably: it ends when no
 * proxy has anything under way in it, or when its time is over.
 */
#include <errno.h>
#include "manager/core/serving/service_step.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/serving/service_health.h"
#include "manager/core/serving/service_replica.h"
#include "manager/core/serving/service_rollout.h"
#include "manager/core/serving/service_share.h"
#include "manager/core/serving/service_token.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "serving/replica_plan.h"

#define READY_USEC (30 * 60 * USEC_PER_SEC) /* until a replica has to be ready */
#define DRAIN_USEC (10 * 60 * USEC_PER_SEC) /* for what is under way */
/* The wall clock can be set, and the end of a session may be refused: look now and then. */
#define CHECK_USEC (5 * USEC_PER_SEC)

static struct model_service_entry *service_of(struct durable *d)
{
    return AQ_CONTAINER_OF(d, struct model_service_entry, durable);
}

/* ---- the end of replicas ---- */

static const char *service_end_reason(const struct model_service *s, const struct session *session)
{
    if (s->is_ending)
        return REASON_SERVICE_ENDED;
    return session->replica->revision == s->goal ? REASON_SERVICE_SCALED : REASON_SERVICE_REPLACED;
}

static void service_end_replica(struct core *core, const struct model_service *s,
                                struct session_entry *l, const char *reason)
{
    if (l->commands.end_reason && (!s->is_forced || l->commands.end_is_forced))
        return;
    if (!l->commands.end_reason)
        l->commands.end_reason = reason;
    l->commands.end_is_forced |= s->is_forced;
    AQ_FAULT("core.serving.replica.ending");
    durable_touch(core, &l->durable);
}

/* It is drained; when it ends at the latest, wall clock. */
static int64_t service_step_drain(struct core *core, const struct model_service *s,
                                  struct replica_entry *replica, int64_t now)
{
    struct session_entry *l = replica->session;
    int64_t limit = s->limits.drain_usec ? s->limits.drain_usec : DRAIN_USEC;
    int64_t due = l->s.replica->draining_usec + limit;

    if (replica->is_idle || s->is_forced || now >= due
        || service_replica_health(core, replica) == CORE_REPLICA_STARTING)
        service_end_replica(core, s, l, service_end_reason(s, &l->s));
    return due;
}

/* ---- readiness ---- */

static struct event *service_propose_replica(struct core *core, struct model_service_entry *entry,
                                             const struct replica_entry *replica, unsigned what)
{
    struct event *e = proposal_add(core, &entry->durable, EVENT_REPLICA_CHANGED);

    e->replica_change.id = replica->session->s.id;
    e->replica_change.what = what;
    return e;
}

/* It runs and has not been ready; when it ends unless it is ready then, wall clock. */
static int64_t service_step_unready(struct core *core, const struct model_service *s,
                                    struct session_entry *l, int64_t now)
{
    const struct model_service_revision *revision = model_service_find_revision(
        s, l->s.replica->revision);
    int64_t limit = revision && revision->spec->ready_usec ? revision->spec->ready_usec
                                                           : READY_USEC;

    if (l->s.status != SESSION_RUNNING && l->s.status != SESSION_RUNNING_DEGRADED)
        return INT64_MAX;
    if (now >= l->s.running_usec + limit)
        service_end_replica(core, s, l, REASON_SERVICE_UNREADY);
    return l->s.running_usec + limit;
}

/* Rollouts do something about replicas that wait for resources for longer than a moment. */
static void service_step_pending(struct core *core, struct model_service_entry *entry,
                                 struct replica_entry *replica)
{
    int64_t now = clock_monotonic_usec();

    if (replica->session->s.status != SESSION_PENDING)
        replica->pending_usec = 0;
    else if (!replica->pending_usec)
        replica->pending_usec = now;
    if (replica->pending_usec && now < replica->pending_usec + SERVICE_UNPLACED_USEC)
        durable_wake_at(core, &entry->durable, replica->pending_usec + SERVICE_UNPLACED_USEC);
}

/* A replica that stopped answering is counted, and again only after it has answered. */
static void service_step_failure(struct core *core, struct model_service_entry *entry,
                                 const struct replica_entry *replica, int64_t now)
{
    const struct session_replica *is = replica->session->s.replica;
    struct event *e;

    if (!replica->is_failing && (!is->failed_usec || replica->health != CORE_REPLICA_READY))
        return;
    e = service_propose_replica(core, entry, replica, REPLICA_FAILED);
    e->replica_change.to.revision = is->revision;
    e->replica_change.to.failed_usec = replica->is_failing ? now : 0;
}

/* When to look at it again, wall clock. */
static int64_t service_step_replica(struct core *core, struct model_service_entry *entry,
                                    struct replica_entry *replica, int64_t now)
{
    const struct model_service *s = &entry->s;
    struct session_entry *l = replica->session;
    int64_t due;

    service_step_pending(core, entry, replica);
    service_step_failure(core, entry, replica, now);
    if (l->s.replica->draining_usec)
        return service_step_drain(core, s, replica, now);
    if (service_replica_became_ready(replica)) {
        struct event *e = service_propose_replica(core, entry, replica, REPLICA_READY);

        /* The wall clock may have been set back since the session began to run. */
        e->replica_change.to.ready_usec = AQ_MAX(now, l->s.running_usec);
        log_info("model service '%s': replica '%s' is ready", s->name, l->s.name);
        AQ_FAULT("core.serving.ready.proposed");
        return INT64_MAX;
    }
    if (service_replica_health(core, replica) == CORE_REPLICA_STARTING)
        return service_step_unready(core, s, l, now);
    if (service_replica_health(core, replica) != CORE_REPLICA_READY
        || l->s.replica->revision != s->goal)
        return INT64_MAX;
    due = service_replica_succeeded(entry, l->s.replica->ready_usec, now);
    return due ? due : INT64_MAX;
}

/* ---- how many, and which ---- */

static void service_step_end(struct core *core, struct model_service_entry *entry,
                             const struct replica_plan *plan, int64_t now)
{
    size_t i = 0;

    LIST_FOREACH(link, &entry->replicas) {
        struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);
        const struct replica_plan_item *item = &plan->items[i++];
        struct session_entry *l = replica->session;

        if (entry->s.is_forced) {
            service_end_replica(core, &entry->s, l, service_end_reason(&entry->s, &l->s));
        } else if (item->ends && item->stage == REPLICA_STAGE_STARTING) {
            service_end_replica(core, &entry->s, l, service_end_reason(&entry->s, &l->s));
        } else if (item->ends) {
            struct event *e = service_propose_replica(core, entry, replica, REPLICA_DRAINING);

            e->replica_change.to.draining_usec = now;
            AQ_FAULT("core.serving.drain.proposed");
        }
    }
}

/* Replicas of this revision; returns how many were asked for. */
static int64_t service_step_create_some(struct core *core, struct model_service_entry *entry,
                                        int64_t revision, int64_t count)
{
    if (!model_service_find_revision(&entry->s, revision))
        return 0;
    count = entry->failure.is_trial ? AQ_MIN(count, INT64_C(1)) : count;
    for (int64_t i = 0; i < count; i++)
        service_replica_create(core, entry, revision);
    return count;
}

static void service_step_create(struct core *core, struct model_service_entry *entry,
                                const struct replica_plan *plan)
{
    int64_t created;

    if (plan->old_created + plan->new_created <= 0 || entry->creating
        || core->orphans.restored_usec)
        return;
    /* What the old replica of a pair gave up is for the new one, not for the next pair: two new
     * replicas on one card could not grow.
     */
    if (entry->rollout.state.shared && service_share_is_growing(core, entry))
        return;
    /* After a failure one replica shows whether others would fail, too. */
    for (size_t i = 0; entry->failure.is_trial && i < plan->count; i++)
        if (plan->items[i].stage == REPLICA_STAGE_STARTING && !plan->items[i].ends)
            return;
    if (clock_monotonic_usec() < entry->failure.retry_usec) {
        durable_wake_at(core, &entry->durable, entry->failure.retry_usec);
        return;
    }
    created = service_step_create_some(core, entry, entry->rollout.state.from, plan->old_created);
    if (created == 0 || !entry->failure.is_trial)
        (void)service_step_create_some(core, entry, plan->goal, plan->new_created);
}

/* Some have half a share each, while old and new replicas have one place together. True if that has
 * changed, and is being written: replicas are created and resized by what is durable.
 */
static bool service_step_share(struct core *core, struct model_service_entry *entry,
                               const struct replica_plan *plan)
{
    bool has_changed = false;
    size_t i = 0;

    LIST_FOREACH(link, &entry->replicas) {
        const struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);
        const struct replica_plan_item *item = &plan->items[i++];
        struct event *e;

        if (replica->session->s.replica->has_half_share == item->has_half_share)
            continue;
        e = service_propose_replica(core, entry, replica, REPLICA_HALF);
        e->replica_change.to.has_half_share = item->has_half_share;
        has_changed = true;
        AQ_FAULT("core.serving.share.halved");
    }
    return has_changed;
}

/* When to look again, wall clock; INT64_MAX = as soon as something is there to be seen. */
static int64_t service_step_plan(struct core *core, struct model_service_entry *entry, int64_t now)
{
    /* None, if it is ending or has no revision yet. */
    struct rollout_actions wanted = { .wake_usec = INT64_MAX };
    struct replica_plan plan;
    bool is_settled = true;

    service_rollout_list(core, entry, &plan);
    if (!entry->s.is_ending && entry->s.goal)
        service_rollout_decide(core, entry, &plan, &wanted);
    if (wanted.event != ROLLOUT_NOTHING) { /* what follows from it is done once it is durable */
        free(plan.items);
        return INT64_MAX;
    }
    replica_plan(&plan, &wanted);
    service_step_end(core, entry, &plan, now);
    if (!service_step_share(core, entry, &plan))
        service_step_create(core, entry, &plan);
    for (size_t i = 0; i < plan.count; i++)
        is_settled &= plan.items[i].stage == REPLICA_STAGE_READY;
    is_settled &= plan.old_created + plan.new_created == 0
                  && !rollout_is_under_way(&entry->rollout.state);
    free(plan.items);
    return is_settled ? wanted.wake_usec : AQ_MIN(wanted.wake_usec, now + CHECK_USEC);
}

/* ---- the step ---- */

static void service_propose_end(struct core *core, struct model_service_entry *entry)
{
    struct event *e = proposal_add(core, &entry->durable, EVENT_SERVICE_CHANGED);

    e->service.row = aq_alloc(sizeof(*e->service.row));
    model_service_copy(e->service.row, &entry->s);
    e->service.row->version++;
    e->service.row->ended_usec = clock_realtime_usec();
    e->service.reason = "all replicas have ended";
    AQ_FAULT("core.serving.ended.proposed");
}

static void service_step(struct core *core, struct durable *d)
{
    struct model_service_entry *entry = service_of(d);
    int64_t now = clock_realtime_usec(), due = INT64_MAX, next;

    if (core->is_stopping)
        return;
    if (entry->s.is_ending && list_is_empty(&entry->replicas) && !entry->creating) {
        service_propose_end(core, entry);
        return;
    }
    service_token_step(core, entry);
    LIST_FOREACH(link, &entry->replicas) {
        next = service_step_replica(core, entry, LIST_ENTRY(link, struct replica_entry, link), now);
        due = AQ_MIN(due, next);
    }
    next = service_step_plan(core, entry, now);
    due = AQ_MIN(due, next);
    if (due < INT64_MAX)
        durable_wake_at(core, d, clock_monotonic_usec() + AQ_MAX(AQ_MIN(due - now, CHECK_USEC), 1));
    due = service_share_step(core, entry);
    if (due < INT64_MAX)
        durable_wake_at(core, d, due);
}

static void service_returned(struct core *core, struct durable *d, int result,
                             const struct aq_error *err)
{
    (void)err;
    service_token_returned(core, service_of(d), result);
}

static void service_free(struct durable *d)
{
    model_service_entry_free(service_of(d));
}

const struct durable_ops service_durable_ops = {
    .step = service_step,
    .returned = service_returned,
    .free = service_free,
};

/* ---- what is durable ---- */

static void service_apply_change(struct core *core, struct event *e)
{
    struct model_service_entry *entry = model_service_entry_find(core, &e->service.row->id);

    if (!entry)
        return;
    if (e->service.row->goal != entry->s.goal || e->service.has_revision || !entry->s.replicas)
        service_replica_forgive(entry);
    if (!e->service.is_rollout || e->service.row->goal != entry->s.goal)
        entry->base_version = e->service.row->version;
    if (e->service.is_rollout && e->service.reason)
        log_info("model service '%s': %s", entry->s.name, e->service.reason);
    model_service_entry_replace(entry, e->service.row);
    service_rollout_load(entry);
    model_service_entry_note_change(core, entry);
    if (entry->s.ended_usec)
        model_service_entry_retire(core, entry);
}

static void service_apply_replica(struct core *core, const struct event *e)
{
    struct session_entry *l = session_entry_find(core, &e->replica_change.id);
    const struct session_replica *to = &e->replica_change.to;
    unsigned what = e->replica_change.what;

    if (!l || !l->s.replica)
        return;
    if (what & REPLICA_READY)
        l->s.replica->ready_usec = to->ready_usec;
    if (what & REPLICA_DRAINING)
        l->s.replica->draining_usec = to->draining_usec;
    if (what & REPLICA_RATIO)
        l->s.replica->ratio_ppm = to->ratio_ppm;
    if (what & REPLICA_HALF)
        l->s.replica->has_half_share = to->has_half_share;
    if (what & REPLICA_FAILED && to->failed_usec)
        service_rollout_count_failure(l, to->failed_usec);
    else if (what & REPLICA_FAILED)
        l->s.replica->failed_usec = 0;
    if (l->replica)
        model_service_entry_note_change(core, l->replica->service);
}

void service_apply(struct core *core, struct event *e)
{
    struct model_service_entry *entry;

    switch (e->kind) {
    case EVENT_SERVICE_CREATED:
        entry = model_service_entry_add(core, e->service.row, e->service.last_replica);
        service_rollout_load(entry);
        model_service_entry_note_change(core, entry);
        break;
    case EVENT_SERVICE_CHANGED:
        service_apply_change(core, e);
        break;
    case EVENT_REPLICA_CHANGED:
        service_apply_replica(core, e);
        break;
    default:
        service_token_apply(core, e);
        break;
    }
}

/* ---- what happens elsewhere ---- */

void service_note_status(struct core *core, struct session_entry *l, bool is_failure)
{
    struct model_service_entry *entry = l->replica ? l->replica->service : NULL;

    if (!entry)
        return;
    if (is_failure)
        service_rollout_count_failure(l, l->s.status_changed_usec);
    if (session_is_terminal(l->s.status))
        service_replica_ended(core, entry, l);
    model_service_entry_note_change(core, entry);
}

void service_note_agents(struct core *core)
{
    LIST_FOREACH(link, &core->services)
        model_service_entry_note_change(core,
                                        LIST_ENTRY(link, struct model_service_entry, all_link));
}

void service_note_accounts(struct core *core)
{
    LIST_FOREACH(link, &core->services) {
        struct model_service_entry *entry = LIST_ENTRY(link, struct model_service_entry, all_link);

        if (entry->failure.retry_usec)
            durable_touch(core, &entry->durable);
    }
}

void service_tell(struct core *core)
{
    struct list *link;

    while ((link = list_take(&core->changed_services))) {
        const struct model_service_entry *entry = LIST_ENTRY(link, struct model_service_entry,
                                                             changed_link);
        struct uuid id = entry->s.id;

        if (core->serving.changed)
            core->serving.changed(core->serving.changed_data, &id);
    }
}

/* ---- in words ---- */

static void service_describe_starting(const struct replica_entry *replica, struct strbuf *out)
{
    const struct model_service_entry *entry = replica->service;
    const struct session *s = &replica->session->s;
    AQ_CLEANUP(strbuf_donep) struct strbuf said = STRBUF_INIT;

    if (s->status == SESSION_PENDING) {
        core_status_text(s->status_data, &said);
        if (rollout_is_under_way(&entry->rollout.state)
            && s->replica->revision == entry->rollout.state.to)
            strbuf_addf(out, "the rollout to revision %" PRId64 " waits: ", s->replica->revision);
        strbuf_addf(out, "replica '%s' waits for resources%s%s", s->name, said.len ? ": " : "",
                    said.len ? said.data : "");
    } else if (s->status == SESSION_RUNNING && replica->health_text) {
        strbuf_addf(out, "replica '%s' is not ready: %s", s->name, replica->health_text);
    }
}

static char *service_describe_problem(const struct core *core,
                                      const struct model_service_entry *entry)
{
    struct strbuf text = STRBUF_INIT;
    int64_t ready = 0;

    LIST_FOREACH(link, &entry->replicas) {
        const struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);

        ready += service_replica_stage(core, replica) == REPLICA_STAGE_READY
                 && replica->session->s.replica->revision == entry->s.goal;
    }
    if (ready >= entry->s.replicas || entry->s.is_ending)
        return NULL;
    if (!entry->s.goal)
        return aq_strdup("it has no revision yet: add one, which says what its replicas run");
    if (entry->failure.text)
        return aq_strdup(entry->failure.text);
    LIST_FOREACH(link, &entry->replicas) {
        const struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);
        enum replica_stage stage = service_replica_stage(core, replica);

        if (!text.len && stage == REPLICA_STAGE_UNHEALTHY)
            strbuf_addf(&text, "replica '%s' does not answer%s%s", replica->session->s.name,
                        replica->health_text ? ": " : "",
                        replica->health_text ? replica->health_text : "");
        else if (!text.len && stage == REPLICA_STAGE_STARTING)
            service_describe_starting(replica, &text);
    }
    return text.len ? strbuf_steal(&text) : NULL;
}

const char *core_service_problem(const struct core *core, const struct model_service *service)
{
    struct model_service_entry *entry = model_service_entry_find(core, &service->id);

    if (!entry)
        return NULL;
    free(entry->problem);
    entry->problem = service_describe_problem(core, entry);
    return entry->problem;
}

int64_t core_service_retry_usec(const struct core *core, const struct model_service *service)
{
    const struct model_service_entry *entry = model_service_entry_find(core, &service->id);
    int64_t now = clock_monotonic_usec();

    return entry && entry->failure.retry_usec > now
               ? clock_realtime_usec() + entry->failure.retry_usec - now
               : 0;
}

bool core_service_is_failing(const struct core *core, const struct model_service *service)
{
    const struct model_service_entry *entry = model_service_entry_find(core, &service->id);

    return entry && entry->failure.is_trial;
}

int64_t core_service_failures(const struct core *core, const struct model_service *service)
{
    const struct model_service_entry *entry = model_service_entry_find(core, &service->id);

    return entry ? entry->failure.count : 0;
}

int core_retry_service(struct core *core, const struct uuid *id, struct aq_error *err)
{
    struct model_service_entry *entry = model_service_entry_find(core, id);

    if (!entry)
        return aq_fail_kind(err, ENOENT, "object-not-found", "No such model service.");
    service_replica_forgive(entry);
    model_service_entry_note_change(core, entry);
    return 0;
}
