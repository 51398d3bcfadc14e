/* SPDX-License-Identifier: Apache-2.0 */
/* service_health.c - which replicas take requests
 *
 * A replica is ready once its agent has said so; its row keeps since when, so that a manager that
 * starts again takes it for ready until its agent says otherwise. What a replica was before it was
 * started again does not count: ready_usec has to be later than running_usec.
 */
#include "manager/core/serving/service_health.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "link/message.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/serving/service_rollout.h"
#include "manager/core/serving/service_share.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define HEALTH_TEXT_MAX 512
#define LAST_LINES_MAX 2048
#define RATIO_MAX INT64_C(1000000000) /* a thousand times as much as others */

static bool service_replica_runs(const struct replica_entry *replica)
{
    const struct session_entry *l = replica->session;

    return !l->commands.end_reason
           && (l->s.status == SESSION_RUNNING || l->s.status == SESSION_RUNNING_DEGRADED);
}

/* What its agent said is of the attempt that runs. */
static bool service_replica_is_heard(const struct replica_entry *replica)
{
    return replica->attempt == (int64_t)replica->session->s.kernels[0].attempt;
}

static bool service_replica_is_ready(const struct session *s)
{
    return s->replica->ready_usec && s->replica->ready_usec >= s->running_usec;
}

/* The agent of its main kernel does not answer the manager. */
static bool service_replica_is_lost(const struct core *core, const struct replica_entry *replica)
{
    const struct agent *a = core_find_agent(core, replica->session->s.kernels[0].agent_id);

    return a && a->status == AGENT_LOST;
}

enum core_replica_health service_replica_health(const struct core *core,
                                                const struct replica_entry *replica)
{
    if (!service_replica_runs(replica) || !service_replica_is_ready(&replica->session->s))
        return CORE_REPLICA_STARTING;
    if (service_replica_is_lost(core, replica)
        || (service_replica_is_heard(replica) && replica->health == CORE_REPLICA_UNHEALTHY))
        return CORE_REPLICA_UNHEALTHY;
    return CORE_REPLICA_READY;
}

bool service_replica_became_ready(const struct replica_entry *replica)
{
    return service_replica_runs(replica) && service_replica_is_heard(replica)
           && replica->health == CORE_REPLICA_READY
           && !service_replica_is_ready(&replica->session->s);
}

enum replica_stage service_replica_stage(const struct core *core,
                                         const struct replica_entry *replica)
{
    const struct session_entry *l = replica->session;

    if (l->s.replica->draining_usec || l->commands.end_reason || l->s.status == SESSION_TERMINATING)
        return REPLICA_STAGE_LEAVING;
    if (service_replica_became_ready(replica))
        return REPLICA_STAGE_READY;
    switch (service_replica_health(core, replica)) {
    case CORE_REPLICA_READY:
        return REPLICA_STAGE_READY;
    case CORE_REPLICA_UNHEALTHY:
        return REPLICA_STAGE_UNHEALTHY;
    case CORE_REPLICA_STARTING:
        break;
    }
    return REPLICA_STAGE_STARTING;
}

/* What a rollout gives it of requests. */
static int64_t service_replica_rollout_ratio(const struct replica_entry *replica)
{
    const struct model_service_entry *entry = replica->service;

    if (!entry->rollout.ratios.to)
        return ROLLOUT_FULL_PPM;
    return replica->session->s.replica->revision == entry->rollout.ratios.to
               ? entry->rollout.ratios.new_ppm
               : entry->rollout.ratios.old_ppm;
}

bool core_find_replica(const struct core *core, const struct session *session,
                       struct core_replica *ret)
{
    const struct session_entry *l = session_entry_of(session);
    const struct replica_entry *replica = l->replica;

    if (!replica)
        return false;
    *ret = (struct core_replica){
        .service = &replica->service->s,
        .revision = l->s.replica->revision,
        .number = l->s.replica->number,
        .health = service_replica_health(core, replica),
        .health_text = service_replica_is_lost(core, replica) ? "its agent is lost"
                       : service_replica_is_heard(replica)    ? replica->health_text
                                                              : NULL,
        .ready_usec = service_replica_is_ready(&l->s) ? l->s.replica->ready_usec : 0,
        .is_draining = l->s.replica->draining_usec || l->commands.end_reason
                       || l->s.status == SESSION_TERMINATING,
        .ratio_ppm = l->s.replica->ratio_ppm,
        .rollout_ratio_ppm = service_replica_rollout_ratio(replica),
    };
    service_share_describe(core, replica, ret);
    return true;
}

void service_note_health(struct core *core, const char *agent_id,
                         const struct msg_kernel_health *health)
{
    struct session_entry *l = map_get(&core->kernels_by_id, health->kernel_id.bytes,
                                      sizeof(health->kernel_id.bytes));
    struct replica_entry *replica = l ? l->replica : NULL;
    const struct kernel *k = replica ? &l->s.kernels[0] : NULL;
    enum core_replica_health was;

    if (!replica || !uuid_equals(&k->id, &health->kernel_id) || !k->agent_id
        || strcmp(k->agent_id, agent_id) != 0 || health->attempt != (int64_t)k->attempt)
        return;
    was = service_replica_health(core, replica);
    replica->attempt = health->attempt;
    replica->health = strcmp(health->state, "ready") == 0       ? CORE_REPLICA_READY
                      : strcmp(health->state, "unhealthy") == 0 ? CORE_REPLICA_UNHEALTHY
                                                                : CORE_REPLICA_STARTING;
    free(replica->health_text);
    replica->health_text = health->text
                               ? aq_strndup(health->text, strnlen(health->text, HEALTH_TEXT_MAX))
                               : NULL;
    if (was == CORE_REPLICA_READY && replica->health == CORE_REPLICA_UNHEALTHY
        && !l->s.replica->draining_usec && !l->s.replica->failed_usec
        && service_rollout_is_to(replica->service, l->s.replica->revision))
        replica->is_failing = true;
    model_service_entry_note_change(core, replica->service);
}

void service_note_last_lines(struct session_entry *l, size_t rank, const char *lines)
{
    if (!l->replica || rank > 0 || !lines)
        return;
    free(l->replica->last_lines);
    l->replica->last_lines = aq_strndup(lines, strnlen(lines, LAST_LINES_MAX));
}

void core_note_replica_idle(struct core *core, const struct uuid *session_id)
{
    struct session_entry *l = session_entry_find(core, session_id);

    if (!l || !l->replica || !l->s.replica->draining_usec || l->replica->is_idle)
        return;
    l->replica->is_idle = true;
    durable_touch(core, &l->replica->service->durable);
}

void core_note_replica_figures(struct core *core, const struct uuid *session_id,
                               const struct core_replica_figures *figures)
{
    struct session_entry *l = session_entry_find(core, session_id);

    if (!l || !l->replica)
        return;
    l->replica->figures = *figures;
    if (rollout_is_under_way(&l->replica->service->rollout.state))
        durable_touch(core, &l->replica->service->durable);
}

void core_set_replica_ratio(struct core *core, const struct uuid *session_id, int64_t ratio_ppm,
                            const struct audit_who *by, core_done_fn done, void *data)
{
    const struct session_entry *l = session_entry_find(core, session_id);
    const struct model_service *s = l && l->replica ? &l->replica->service->s : NULL;
    char id[UUID_TEXT_MAX], before[64], after[64];
    struct audit_change change = { .action = "set-replica-ratio",
                                   .object_kind = "model-service",
                                   .before = before,
                                   .after = after };
    struct event_batch *batch;
    struct aq_error err;
    struct event *e;
    int r = 0;

    if (!s)
        r = aq_fail_kind(&err, ENOENT, "object-not-found", "No such replica.");
    else if (ratio_ppm < 0 || ratio_ppm > RATIO_MAX)
        r = aq_fail_field(&err, EINVAL, "ratio", "ratio must be from 0 to 1000");
    if (r < 0) {
        core_defer(core, done, data, r, &err);
        return;
    }
    batch = event_batch_new();
    e = event_batch_add(batch, EVENT_REPLICA_CHANGED, clock_realtime_usec());
    e->replica_change.id = *session_id;
    e->replica_change.what = REPLICA_RATIO;
    e->replica_change.to.ratio_ppm = ratio_ppm;
    (void)snprintf(before, sizeof(before), "{\"ratio\":%g}", (double)l->s.replica->ratio_ppm / 1e6);
    (void)snprintf(after, sizeof(after), "{\"ratio\":%g}", (double)ratio_ppm / 1e6);
    change.object_id = uuid_format(&s->id, id);
    change.object_name = s->name;
    change.object_domain = s->domain;
    AQ_FAULT("core.serving.ratio.proposed");
    proposal_commit_audited(core, batch, by, &change, done, data);
}
