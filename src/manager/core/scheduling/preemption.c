/* SPDX-License-Identifier: Apache-2.0 */
/* preemption.c - who is preempted by whom: a group's settings, and what follows from a pass
 *
 * The scheduler holds a place for the session that preempts others and says
 * who they are. The request is kept here, in memory: lifecycle.c turns it into changes
 * of the victims, which are durable, as are the places of both (reservation.c).
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/suggest.h"
#include "manager/core/scheduling/kernel_queue.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/reservation.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define RUNTIME_MAX (1 << 30)
#define GRACE_MAX 86400
#define GRACE_DEFAULT 300
#define REPLICA_JOB_PRIORITY 101 /* of model services: above that of all jobs */

/* ---- settings ---- */

static const char *const orders[] = { [SCHED_OLDEST] = "oldest",
                                      [SCHED_NEWEST] = "newest",
                                      [SCHED_FEWEST] = "fewest-sessions",
                                      [SCHED_SMALLEST] = "smallest-resources" };
static const char *const scopes[] = { [CORE_SCOPE_USER] = "user",
                                      [CORE_SCOPE_PROJECT] = "project",
                                      [CORE_SCOPE_DOMAIN] = "domain",
                                      [CORE_SCOPE_GROUP] = "group" };
static const char *const fates[] = {
    [CORE_RESCHEDULED] = "reschedule", [CORE_TERMINATED] = "terminate", [CORE_SKIPPED] = "skip"
};

/* The index of a word among 'count'; -EINVAL names the key and the words. */
static int preemption_read_word(const json_t *from, const char *key, const char *const *words,
                                size_t count, int *ret, struct aq_error *err)
{
    const json_t *value = json_object_get(from, key);
    AQ_CLEANUP(strbuf_donep) struct strbuf known = STRBUF_INIT;

    if (!value)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), words[i]) == 0) {
            *ret = (int)i;
            return 0;
        }
        strbuf_addf(&known, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", words[i]);
    }
    return aq_fail_field(err, EINVAL, "preemption", "preemption.%s must be %s", key, known.data);
}

static int preemption_read_number(const json_t *from, const char *key, int64_t max, int64_t *ret,
                                  struct aq_error *err)
{
    const json_t *value = json_object_get(from, key);

    if (!value)
        return 0;
    if (!json_is_number(value) || json_number_value(value) < 0
        || json_number_value(value) > (double)max)
        return aq_fail_field(err, EINVAL, "preemption",
                             "preemption.%s must be a number from 0 "
                             "to %lld",
                             key, (long long)max);
    *ret = (int64_t)json_number_value(value);
    return 0;
}

static const char *const preemption_keys[] = { "enabled",
                                               "order",
                                               "mode",
                                               "interactive",
                                               "victim_scope",
                                               "preemption_min_runtime",
                                               "preemptible_priority",
                                               "moving",
                                               "max_grace" };

static int preemption_fail_unknown(const char *key, struct aq_error *err)
{
    struct suggest suggest = suggest_for(key, strlen(key));
    char known[160];
    size_t len = 0;

    for (size_t i = 0; i < AQ_COUNT(preemption_keys) && len < sizeof(known); i++) {
        suggest_offer(&suggest, preemption_keys[i]);
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
                                preemption_keys[i]);
    }
    return aq_fail_field(err, EINVAL, "preemption", "preemption has no '%.40s'%s%s%s it has %s",
                         key, suggest.best ? "; did you mean '" : "",
                         suggest.best ? suggest.best : "", suggest.best ? "'?" : ";", known);
}

static int preemption_check_keys(json_t *from, struct aq_error *err)
{
    static const char *const switches[] = { "enabled", "moving" };
    const char *key;
    json_t *value;

    json_object_foreach(from, key, value) {
        bool is_known = false;

        for (size_t i = 0; i < AQ_COUNT(preemption_keys); i++)
            is_known |= strcmp(key, preemption_keys[i]) == 0;
        if (!is_known)
            return preemption_fail_unknown(key, err);
    }
    for (size_t i = 0; i < AQ_COUNT(switches); i++) {
        value = json_object_get(from, switches[i]);
        if (value && !json_is_boolean(value))
            return aq_fail_field(err, EINVAL, "preemption", "preemption.%s must be true or false",
                                 switches[i]);
    }
    return 0;
}

int preemption_read(struct json_t *from, struct core_scheduling *ret, struct aq_error *err)
{
    int64_t runtime = 0, priority = PRIORITY_COUNT - 1, grace = GRACE_DEFAULT;
    int order = SCHED_OLDEST, scope = CORE_SCOPE_USER, batch = CORE_RESCHEDULED;
    int interactive = CORE_SKIPPED, r;

    if (from && !json_is_object(from))
        return aq_fail_field(err, EINVAL, "preemption", "must be an object");
    if ((r = preemption_check_keys(from, err)) < 0
        || (r = preemption_read_word(from, "order", orders, AQ_COUNT(orders), &order, err)) < 0
        || (r = preemption_read_word(from, "victim_scope", scopes, AQ_COUNT(scopes), &scope, err))
               < 0
        || (r = preemption_read_word(from, "mode", fates, CORE_SKIPPED, &batch, err)) < 0
        || (r = preemption_read_word(from, "interactive", fates, AQ_COUNT(fates), &interactive,
                                     err))
               < 0
        || (r = preemption_read_number(from, "preemption_min_runtime", RUNTIME_MAX, &runtime, err))
               < 0
        || (r = preemption_read_number(from, "max_grace", GRACE_MAX, &grace, err)) < 0
        || (r = preemption_read_number(from, "preemptible_priority", PRIORITY_COUNT - 1, &priority,
                                       err))
               < 0)
        return r;
    ret->options.preemption = (struct sched_preemption){
        .enabled = json_is_true(json_object_get(from, "enabled")),
        .moves = json_is_true(json_object_get(from, "moving")),
        .order = (enum sched_victims)order,
        .min_runtime_usec = runtime * USEC_PER_SEC,
    };
    ret->max_grace_usec = grace * USEC_PER_SEC;
    ret->preempted_batch = (enum core_fate)batch;
    ret->preempted_interactive = (enum core_fate)interactive;
    ret->victim_scope = (enum core_scope)scope;
    ret->preemptible_priority = (int)priority;
    return 0;
}

void core_write_preemption(const struct core_scheduling *s, struct jsonw *w)
{
    const struct sched_preemption *p = &s->options.preemption;

    jsonw_object_begin(w);
    jsonw_member_bool(w, "enabled", p->enabled);
    jsonw_member_bool(w, "moving", p->moves);
    jsonw_member_str(w, "order", orders[p->order]);
    jsonw_member_str(w, "mode", fates[s->preempted_batch]);
    jsonw_member_str(w, "interactive", fates[s->preempted_interactive]);
    jsonw_member_str(w, "victim_scope", scopes[s->victim_scope]);
    jsonw_member_int(w, "preemption_min_runtime", p->min_runtime_usec / USEC_PER_SEC);
    jsonw_member_int(w, "preemptible_priority", s->preemptible_priority);
    jsonw_member_int(w, "max_grace", s->max_grace_usec / USEC_PER_SEC);
    jsonw_object_end(w);
}

/* ---- what the scheduler is told ---- */

enum core_fate preemption_fate(const struct session_entry *l)
{
    const struct core_scheduling *s = &l->resource_group->scheduling;

    if (l->s.type == SESSION_SYSTEM || l->s.type == SESSION_INFERENCE)
        return CORE_SKIPPED;
    return l->s.type == SESSION_BATCH ? s->preempted_batch : s->preempted_interactive;
}

static const char *preemption_find_scope(struct core *core, const struct session_entry *l)
{
    char text[UUID_TEXT_MAX];

    switch (l->resource_group->scheduling.victim_scope) {
    case CORE_SCOPE_USER:
        return arena_strdup(&core->scratch, uuid_format(&l->s.user_id, text));
    case CORE_SCOPE_PROJECT:
        return arena_strdup(&core->scratch, uuid_format(&l->s.project_id, text));
    case CORE_SCOPE_DOMAIN:
        return l->s.domain;
    case CORE_SCOPE_GROUP:
        break;
    }
    return NULL;
}

void preemption_describe(struct core *core, const struct session_entry *l,
                         struct sched_session *ret)
{
    const struct core_scheduling *s = &l->resource_group->scheduling;

    if (!preemption_is_on(&s->options.preemption))
        return;
    ret->is_movable &= preemption_fate(l) == CORE_RESCHEDULED;
    ret->is_preemptible &= ret->job_priority <= s->preemptible_priority
                           && preemption_fate(l) != CORE_SKIPPED;
    ret->scope = preemption_find_scope(core, l);
    if (l->s.type == SESSION_INFERENCE)
        ret->job_priority = REPLICA_JOB_PRIORITY;
}

bool preemption_may_preempt(const struct session_entry *l)
{
    return l->s.type == SESSION_INFERENCE || l->s.spec->job_priority > 0;
}

bool preemption_is_on(const struct sched_preemption *p)
{
    return p->enabled || p->moves;
}

bool preemption_is_leaving(const struct session *s)
{
    return s->status == SESSION_PREEMPTED || s->status == SESSION_RESCHEDULING
           || s->status == SESSION_TERMINATING;
}

char *preemption_data(const struct session_entry *l)
{
    struct strbuf json = STRBUF_INIT;
    struct jsonw w = jsonw_make(&json);
    char id[UUID_TEXT_MAX];

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "preempted_by", uuid_format(&l->preemption.by, id));
    reservation_write(l, RESERVATION_MIGRATED, &w);
    jsonw_object_end(&w);
    return strbuf_steal(&json);
}

/* ---- what follows from a pass ---- */

static void preemption_set_places(const struct resource_group_entry *g, struct core *core,
                                  struct session_entry *l, const uint32_t *nodes)
{
    const char **agents = arena_array(&core->scratch, l->s.kernel_count, sizeof(*agents));

    for (size_t k = 0; k < session_least_kernels(&l->s); k++)
        agents[k] = g->nodes[nodes[k]]->a.id;
    reservation_set(l, agents);
}

void preemption_call_victims(const struct resource_group_entry *g, struct core *core,
                             const struct uuid *by, const struct sched_outcome *out)
{
    for (size_t i = 0; i < out->victim_count; i++) {
        struct session_entry *victim = g->members[out->victims[i]];
        size_t rank = kernel_queue_find(victim, out->victims[i]);

        if (rank > 0) {
            victim->kernels[rank].single.is_preempted = true;
        } else {
            victim->preemption.is_preempted = true;
            victim->preemption.by = *by;
        }
        if (out->targets)
            preemption_set_places(g, core, victim, out->targets[i]);
        durable_touch(core, &victim->durable);
    }
    AQ_FAULT("core.preempt.decided");
}

void preemption_begin(struct resource_group_entry *g, struct core *core, struct session_entry *l,
                      const struct sched_outcome *out)
{
    l->queue.verdict = out->verdict;
    l->preemption.is_preempting = true;
    preemption_set_places(g, core, l, out->agents);
    l->reservation.is_unsaved = true;
    if (!l->commands.end_reason)
        preemption_call_victims(g, core, &l->s.id, out);
}
