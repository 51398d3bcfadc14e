/* SPDX-License-Identifier: Apache-2.0 */
/* service_rollout.c - how a model service goes from one revision to another
 *
 * What is decided follows from the row, the replicas and the time, so a manager that starts again
 * decides the same. Failures of replicas are counted with the revision, in the transaction that ends
 * the replica; the state knows how many there were when the rollout began.
 */
#include "manager/core/serving/service_rollout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/serving/service_health.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* ---- rows ---- */

static int service_rollout_read(const struct model_service *s, struct rollout *ret,
                                struct rollout_state *ret_state, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;

    *ret = rollout_default();
    *ret_state = (struct rollout_state){ .phase = ROLLOUT_NONE };
    return s->rollout ? rollout_parse(s->rollout, strlen(s->rollout), &arena, ret, ret_state, err)
                      : 0;
}

static char *service_rollout_text(const struct rollout *rollout, const struct rollout_state *state)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    rollout_write(rollout, state->phase == ROLLOUT_NONE ? NULL : state, &w);
    return strbuf_steal(&text);
}

void service_rollout_load(struct model_service_entry *entry)
{
    struct aq_error err;

    if (service_rollout_read(&entry->s, &entry->rollout.settings, &entry->rollout.state, &err) < 0)
        log_warning("model service '%s': cannot read its rollout, using the defaults: %s",
                    entry->s.name, err.text);
}

bool core_service_rollout(const struct core *core, const struct model_service *service,
                          struct rollout *ret, struct rollout_state *ret_state)
{
    struct aq_error err;

    (void)core;
    (void)service_rollout_read(service, ret, ret_state, &err);
    return ret_state->phase != ROLLOUT_NONE;
}

/* ---- replicas ---- */

void service_rollout_list(const struct core *core, const struct model_service_entry *entry,
                          struct replica_plan *ret)
{
    int64_t now = clock_monotonic_usec();
    size_t count = 0;

    LIST_FOREACH(link, &entry->replicas)
        count++;
    *ret = (struct replica_plan){ .goal = entry->s.goal,
                                  .items = aq_alloc_array(AQ_MAX(count, 1), sizeof(*ret->items)) };
    LIST_FOREACH(link, &entry->replicas) {
        const struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);

        ret->items[ret->count++] = (struct replica_plan_item){
            .number = replica->session->s.replica->number,
            .revision = replica->session->s.replica->revision,
            .stage = service_replica_stage(core, replica),
            .is_unplaced = replica->pending_usec
                           && now - replica->pending_usec >= SERVICE_UNPLACED_USEC,
            .had_half_share = replica->session->s.replica->has_half_share,
        };
    }
}

/* Add what was counted of requests to one side. */
static void service_rollout_add_figures(struct rollout_side *side,
                                        const struct core_replica_figures *figures)
{
    double total = side->latency_sec * (double)side->requests
                   + figures->latency_sec * (double)figures->requests;

    side->requests += figures->requests;
    side->errors += figures->errors;
    side->latency_sec = side->requests > 0 ? total / (double)side->requests : 0;
}

static struct rollout_sample service_rollout_sample(const struct model_service_entry *entry,
                                                    const struct rollout_state *state,
                                                    const struct replica_plan *plan)
{
    struct rollout_sample sample = { .now_usec = clock_realtime_usec(), .goal = entry->s.replicas };

    replica_plan_count(plan, &sample.old, &sample.new);
    LIST_FOREACH(link, &entry->replicas) {
        const struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);
        bool is_new = replica->session->s.replica->revision == plan->goal;

        service_rollout_add_figures(is_new ? &sample.new : &sample.old, &replica->figures);
    }
    sample.new.failures = state->failures;
    return sample;
}

/* The revision to go back to: that of which most replicas have been ready, the older one of two. 0 =
 * no other one has.
 */
static int64_t service_rollout_find_from(const struct model_service *s,
                                         const struct replica_plan *plan, int64_t to)
{
    int64_t most = 0, from = 0;

    for (size_t i = 0; i < plan->count; i++) {
        int64_t revision = plan->items[i].revision, count = 0;

        if (revision == to || !model_service_find_revision(s, revision))
            continue;
        for (size_t k = 0; k < plan->count; k++)
            count += plan->items[k].revision == revision
                     && (plan->items[k].stage == REPLICA_STAGE_READY
                         || plan->items[k].stage == REPLICA_STAGE_UNHEALTHY);
        if (count > most) {
            most = count;
            from = revision;
        }
    }
    return from;
}

static bool service_rollout_has_others(const struct replica_plan *plan, int64_t goal)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].revision != goal && plan->items[i].stage != REPLICA_STAGE_LEAVING)
            return true;
    return false;
}

/* Failures of a revision so far; 0 if it is not kept. */
static int64_t service_rollout_failures(const struct model_service *s, int64_t number)
{
    const struct model_service_revision *revision = model_service_find_revision(s, number);

    return revision ? revision->failures : 0;
}

/* A revision of which replicas are ready answers requests already: going back to it, or on with it, is
 * not tried out first.
 */
static struct rollout_state service_rollout_begin(const struct model_service *s,
                                                  const struct replica_plan *plan, int64_t to)
{
    struct rollout_state state = rollout_begin(service_rollout_find_from(s, plan, to), to,
                                               clock_realtime_usec());

    state.failures_before = service_rollout_failures(s, to);
    for (size_t i = 0; i < plan->count; i++)
        state.is_rolling |= plan->items[i].revision == to
                            && plan->items[i].stage == REPLICA_STAGE_READY;
    return state;
}

/* ---- in words ---- */

static char *service_rollout_describe_begin(const struct rollout *rollout,
                                            const struct rollout_state *state)
{
    const char *strategy = rollout_strategy_name(state->is_rolling ? ROLLOUT_ROLLING
                                                                   : rollout->strategy);

    return state->from
               ? aq_format("%s rollout from revision %" PRId64 " to %" PRId64 " begins", strategy,
                           state->from, state->to)
               : aq_format("%s rollout to revision %" PRId64 " begins", strategy, state->to);
}

/* NULL = nothing that people would ask for. 'failure': how a replica failed last, NULL = none has. */
static char *service_rollout_describe(const struct rollout_state *state, enum rollout_event event,
                                      const char *failure)
{
    size_t len = failure ? strcspn(failure, "\n") : 0;

    switch (event) {
    case ROLLOUT_NOTHING:
        return NULL;
    case ROLLOUT_ABORTS:
        return aq_format("rollout to revision %" PRId64 " is aborted: %s; going back to revision "
                         "%" PRId64 "%s%.*s",
                         state->from, state->reason, state->to, len ? "; last failure: " : "",
                         (int)len, len ? failure : "");
    case ROLLOUT_ENDED:
        if (state->phase == ROLLOUT_ABORTED)
            return aq_format("revision %" PRId64 " is back after the aborted rollout to revision "
                             "%" PRId64,
                             state->to, state->from);
        return aq_format("rollout to revision %" PRId64 " is complete", state->to);
    case ROLLOUT_STEPPED:
    case ROLLOUT_IS_READY:
    case ROLLOUT_PROMOTED:
        break;
    }
    return aq_format("rollout to revision %" PRId64 ": %s", state->to, state->reason);
}

/* ---- steps ---- */

static void service_rollout_fault(enum rollout_event event)
{
    switch (event) {
    case ROLLOUT_NOTHING:
        AQ_FAULT("core.serving.rollout.noted");
        break;
    case ROLLOUT_STEPPED:
        AQ_FAULT("core.serving.rollout.stepped");
        break;
    case ROLLOUT_IS_READY:
        AQ_FAULT("core.serving.rollout.ready");
        break;
    case ROLLOUT_PROMOTED:
        AQ_FAULT("core.serving.rollout.promoted");
        break;
    case ROLLOUT_ABORTS:
        AQ_FAULT("core.serving.rollout.aborts");
        break;
    case ROLLOUT_ENDED:
        AQ_FAULT("core.serving.rollout.ended");
        break;
    }
}

static void service_rollout_propose(struct core *core, struct model_service_entry *entry,
                                    const struct rollout_state *state, enum rollout_event event)
{
    AQ_CLEANUP(aq_freep) char *was = service_rollout_text(&entry->rollout.settings,
                                                          &entry->rollout.state);
    AQ_CLEANUP(aq_freep) char *text = service_rollout_text(&entry->rollout.settings, state);
    AQ_CLEANUP(aq_freep) char *reason = service_rollout_describe(state, event, entry->failure.text);
    struct model_service *row;
    struct event *e;

    if (strcmp(was, text) == 0)
        return;
    e = proposal_add(core, &entry->durable, EVENT_SERVICE_CHANGED);
    row = e->service.row = aq_alloc(sizeof(*row));
    model_service_copy(row, &entry->s);
    row->version++;
    free(row->rollout);
    row->rollout = AQ_TAKE(text);
    if (event == ROLLOUT_ABORTS)
        row->goal = state->to;
    e->service.is_rollout = true;
    e->service.reason = reason ? arena_strdup(proposal_arena(core), reason) : NULL;
    service_rollout_fault(event);
}

/* Routes follow. */
static void service_rollout_set_ratios(struct core *core, struct model_service_entry *entry,
                                       int64_t to, const struct rollout_actions *actions)
{
    if (entry->rollout.ratios.to == to && entry->rollout.ratios.old_ppm == actions->old_ratio_ppm
        && entry->rollout.ratios.new_ppm == actions->new_ratio_ppm)
        return;
    entry->rollout.ratios.to = to;
    entry->rollout.ratios.old_ppm = actions->old_ratio_ppm;
    entry->rollout.ratios.new_ppm = actions->new_ratio_ppm;
    model_service_entry_note_change(core, entry);
}

void service_rollout_decide(struct core *core, struct model_service_entry *entry,
                            struct replica_plan *plan, struct rollout_actions *ret)
{
    struct rollout_state state = entry->rollout.state;
    struct rollout_sample sample;

    /* Rows of managers that did not keep a state have replicas of other revisions, too. */
    if ((!rollout_is_under_way(&state) || state.to != entry->s.goal)
        && service_rollout_has_others(plan, entry->s.goal))
        state = service_rollout_begin(&entry->s, plan, entry->s.goal);
    if (rollout_is_under_way(&state))
        state.failures = AQ_MAX(state.failures, service_rollout_failures(&entry->s, state.to)
                                                    - state.failures_before);
    sample = service_rollout_sample(entry, &state, plan);
    rollout_decide(&entry->rollout.settings, &state, &sample, ret);
    if (ret->event == ROLLOUT_ABORTS) {
        plan->goal = state.to;
        state.failures_before = service_rollout_failures(&entry->s, state.to);
    }
    service_rollout_propose(core, entry, &state, ret->event);
    /* What an event changes is done when it is durable. */
    if (ret->event == ROLLOUT_NOTHING || !entry->rollout.ratios.to)
        service_rollout_set_ratios(core, entry, plan->goal, ret);
}

bool service_rollout_is_to(const struct model_service_entry *entry, int64_t revision)
{
    return rollout_is_under_way(&entry->rollout.state) && revision == entry->rollout.state.to;
}

void service_rollout_count_failure(struct session_entry *l, int64_t at_usec)
{
    struct session_replica *replica = l->s.replica;

    AQ_FAULT("core.serving.rollout.failed");
    l->replica->is_failing = false;
    if (replica->failed_usec)
        return;
    replica->failed_usec = at_usec;
    for (size_t i = 0; i < l->replica->service->s.revision_count; i++) {
        struct model_service_revision *revision = &l->replica->service->s.revisions[i];

        revision->failures += revision->number == replica->revision;
    }
}

/* ---- changes by people ---- */

int service_rollout_merge(const struct core *core, const struct model_service_entry *was,
                          struct model_service *made, char **ret_reason, struct aq_error *err)
{
    struct rollout_state state = { .phase = ROLLOUT_NONE }, given;
    struct rollout rollout;
    int r = service_rollout_read(made, &rollout, &given, err);

    if (r < 0)
        return r;
    if (was)
        state = was->rollout.state;
    if (was && made->goal != was->s.goal) {
        struct replica_plan plan;

        service_rollout_list(core, was, &plan);
        state = service_rollout_begin(made, &plan, made->goal);
        state.failures_before = service_rollout_failures(&was->s, made->goal);
        free(plan.items);
        free(*ret_reason);
        *ret_reason = service_rollout_describe_begin(&rollout, &state);
        AQ_FAULT("core.serving.rollout.begins");
    }
    if (made->rollout || state.phase != ROLLOUT_NONE) {
        free(made->rollout);
        made->rollout = service_rollout_text(&rollout, &state);
    }
    return 0;
}

static int service_rollout_refuse(const struct model_service_entry *was,
                                  enum service_rollout_ask ask, const struct rollout_sample *sample,
                                  struct aq_error *err)
{
    const struct rollout_state *state = &was->rollout.state;
    const struct rollout *rollout = &was->rollout.settings;

    if (!rollout_is_under_way(state))
        return aq_fail_kind(err, EBUSY, "conflict",
                            "no rollout of the model service '%s' is under way", was->s.name);
    if (state->phase == ROLLOUT_ABORTING)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "the rollout of the model service '%s' is being aborted already: %s",
                            was->s.name, state->reason);
    if (ask == SERVICE_ROLLOUT_ABORT)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "no other revision of the model service '%s' was ready when the "
                            "rollout to revision %" PRId64
                            " began; roll the service back to a revision instead",
                            was->s.name, state->to);
    if (rollout->strategy == ROLLOUT_ROLLING || state->is_rolling)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "the rollout of the model service '%s' is rolling and needs no "
                            "promotion",
                            was->s.name);
    if (state->is_promoted)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "revision %" PRId64 " of the model service '%s' is promoted already",
                            state->to, was->s.name);
    if (state->step >= (int64_t)rollout->step_count && rollout->strategy == ROLLOUT_CANARY)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "revision %" PRId64 " of the model service '%s' gets all requests "
                            "already",
                            state->to, was->s.name);
    return aq_fail_kind(err, EBUSY, "conflict",
                        "%" PRId64 " of %" PRId64 " replicas of revision %" PRId64
                        " are ready; promote it when all are",
                        sample->new.ready, sample->new.live - sample->new.draining, state->to);
}

int service_rollout_ask(const struct core *core, const struct model_service_entry *was,
                        enum service_rollout_ask ask, struct model_service *made, char **ret_reason,
                        struct aq_error *err)
{
    struct rollout_state state = was->rollout.state;
    struct rollout_actions actions = { .event = ROLLOUT_NOTHING };
    struct rollout_sample sample;
    struct replica_plan plan;

    service_rollout_list(core, was, &plan);
    sample = service_rollout_sample(was, &state, &plan);
    free(plan.items);
    sample.promote = ask == SERVICE_ROLLOUT_PROMOTE;
    sample.abort = ask == SERVICE_ROLLOUT_ABORT;
    if (state.to == was->s.goal)
        rollout_decide(&was->rollout.settings, &state, &sample, &actions);
    if (sample.abort ? actions.event != ROLLOUT_ABORTS
                     : actions.event != ROLLOUT_PROMOTED && actions.event != ROLLOUT_STEPPED)
        return service_rollout_refuse(was, ask, &sample, err);
    if (actions.event == ROLLOUT_ABORTS) {
        made->goal = state.to;
        state.failures_before = service_rollout_failures(&was->s, state.to);
    }
    free(made->rollout);
    made->rollout = service_rollout_text(&was->rollout.settings, &state);
    free(*ret_reason);
    *ret_reason = service_rollout_describe(&state, actions.event, was->failure.text);
    AQ_FAULT("core.serving.rollout.asked");
    return 0;
}
