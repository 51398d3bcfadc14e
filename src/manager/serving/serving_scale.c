/* SPDX-License-Identifier: Apache-2.0 */
/* serving_scale.c - see serving_scale.h */
#include "manager/serving/serving_scale.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/log.h"
#include "base/log_budget.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "http/defer.h"
#include "manager/core/services.h"

#define TICK_MSEC 1000
#define RECENT 10        /* seconds over which rates and latencies are measured */
#define DEFAULT_TARGET 8 /* requests under way in a replica without a cap */

/* What all proxies had counted at some time. */
struct scale_mark {
    int64_t at_usec; /* monotonic; 0 = not yet */
    int64_t arrived, answered, duration_usec;
};

struct scaled {
    struct uuid id;
    char *scaling; /* from which 'rules' were made; NULL = from 'cap' */
    int64_t cap;
    struct arena arena; /* of the rules */
    struct autoscale rules;
    struct autoscale_state state;
    struct scale_mark marks[RECENT]; /* one a second, a ring */
    size_t next_mark;
    int64_t arrived; /* at the last sample */
    bool is_busy;    /* a change is on its way to the store */
    char reason[sizeof(((struct autoscale_wish *)NULL)->reason)];
    char *problem; /* why a rule has no value; NULL = all have one, or nothing is known */
    struct log_budget log;
};

struct serving_scale {
    struct core *core;
    const struct serving_use *use;
    struct serving_signals *signals;
    struct map services; /* id, 16 bytes -> struct scaled */
    struct defer *timer;
};

/* ---- rules ---- */

int serving_scale_rules(const struct model_service *s, struct arena *arena, struct autoscale *ret,
                        struct aq_error *err)
{
    json_auto_t *tree = s->scaling ? json_loads(s->scaling, 0, NULL) : json_object();
    AQ_CLEANUP(aq_freep) char *text = NULL;
    int r;

    if (!json_object_get(tree, "rules"))
        (void)json_object_set_new(
            tree, "rules",
            json_pack("[{s:s, s:I}]", "signal", "in_flight", "target",
                      (json_int_t)(s->limits.cap ? s->limits.cap : DEFAULT_TARGET)));
    text = json_dumps(tree, JSON_COMPACT);
    r = autoscale_parse(text, strlen(text), arena, ret, err);
    for (size_t i = 0; r == 0 && i < ret->rule_count; i++) {
        struct aq_error wrong = { 0 };

        r = serving_signals_check(&ret->rules[i], arena, &wrong);
        if (r < 0)
            (void)aq_fail_field(err, -r, "scaling.rules", "rule %zu: 'name' %s", i, wrong.text);
    }
    return r;
}

int64_t serving_scale_fired_usec(const struct model_service *s, size_t rule)
{
    json_auto_t *times = s->fired ? json_load_string(s->fired, 0) : NULL;

    return AQ_MAX(json_integer_value(json_array_get(times, rule)), INT64_C(0));
}

/* The pause after a step goes on over a restart of the manager. */
static void scaled_restore_fired(struct scaled *of, const struct model_service *s)
{
    int64_t now = clock_monotonic_usec(), wall = clock_realtime_usec();

    for (size_t i = 0; i < of->rules.rule_count; i++) {
        int64_t at = AQ_MIN(serving_scale_fired_usec(s, i), wall); /* the clock may be set back */

        of->state.has_fired[i] = at > 0;
        of->state.fired_usec[i] = at > 0 ? now - (wall - at) : 0;
    }
}

static void scaled_free(struct scaled *of)
{
    arena_done(&of->arena);
    free(of->scaling);
    free(of->problem);
    free(of);
}

/* Parse the rules of the service again if they have changed, and drop what was measured for the old
 * ones. False if there is nothing to scale by.
 */
static bool scaled_keep_rules(struct scaled *of, const struct model_service *s)
{
    bool is_same = of->cap == s->limits.cap
                   && (of->scaling ? s->scaling && strcmp(of->scaling, s->scaling) == 0
                                   : !s->scaling);
    struct aq_error err = { 0 };

    if (is_same && (of->rules.rule_count || s->scaling))
        return of->rules.rule_count > 0;
    arena_done(&of->arena);
    of->arena = (struct arena)ARENA_INIT;
    free(of->scaling);
    of->scaling = s->scaling ? aq_strdup(s->scaling) : NULL;
    of->cap = s->limits.cap;
    of->rules = (struct autoscale){ .rules = NULL };
    of->state = (struct autoscale_state){ .is_started = false };
    if (serving_scale_rules(s, &of->arena, &of->rules, &err) < 0) {
        of->rules = (struct autoscale){ .rules = NULL };
        log_warning("model service '%s': ignoring its scaling rules: %s", s->name, err.text);
    }
    scaled_restore_fired(of, s);
    return of->rules.rule_count > 0;
}

/* ---- what is measured ---- */

static const struct scale_mark *scaled_oldest_mark(const struct scaled *of)
{
    const struct scale_mark *next = &of->marks[of->next_mark];

    return next->at_usec ? next : &of->marks[0];
}

static void scaled_mark(struct scaled *of, const struct serving_figures *now, int64_t now_usec)
{
    of->marks[of->next_mark] = (struct scale_mark){
        .at_usec = now_usec,
        .arrived = now->arrived,
        .answered = now->ok + now->client_errors + now->server_errors,
        .duration_usec = now->duration_usec,
    };
    of->next_mark = (of->next_mark + 1) % RECENT;
}

/* Mean over ready replicas of a metric of their main kernels, in hundredths of
 * its capacity; NAN if none has it.
 */
static double scaled_measure_kernels(const struct core *core, const struct model_service *s,
                                     const char *metric)
{
    double sum = 0;
    size_t count = 0;

    for (const struct session *r = NULL; (r = core_next_replica(core, s, r));) {
        const struct measured *m = r->kernel_count ? core_kernel_measured(core, &r->kernels[0].id)
                                                   : NULL;
        const struct measured_item *item = m ? measured_find(m, metric) : NULL;
        double percent = item ? metric_percent(&item->metric, item->kind) : -1;

        if (percent < 0)
            continue;
        sum += percent;
        count++;
    }
    return count ? sum / (double)count : NAN;
}

static double scaled_measure(const struct serving_scale *scale, const struct scaled *of,
                             const struct model_service *s, const struct autoscale_rule *rule,
                             const struct autoscale_sample *sample,
                             const struct serving_figures *now)
{
    const struct scale_mark *then = scaled_oldest_mark(of);
    double seconds = (double)(sample->now_usec - then->at_usec) / USEC_PER_SEC;
    int64_t answered = now->ok + now->client_errors + now->server_errors - then->answered;

    switch (rule->signal) {
    case AUTOSCALE_IN_FLIGHT:
        return sample->in_flight;
    case AUTOSCALE_RATE:
        return then->at_usec && seconds >= 1 ? (double)(now->arrived - then->arrived) / seconds
                                             : NAN;
    case AUTOSCALE_LATENCY:
        return then->at_usec && answered > 0 ? (double)(now->duration_usec - then->duration_usec)
                                                   / USEC_PER_SEC / (double)answered
                                             : NAN;
    case AUTOSCALE_USE:
        return scaled_measure_kernels(scale->core, s, "cuda_util") / 100;
    case AUTOSCALE_METRIC:
        if (strcmp(rule->source, "kernel") == 0)
            return scaled_measure_kernels(scale->core, s, rule->name);
        return serving_signals_get(scale->signals, s, rule, NULL);
    case AUTOSCALE_PROMETHEUS:
        return serving_signals_get(scale->signals, s, rule, NULL);
    default:
        return NAN;
    }
}

/* ---- deciding ---- */

struct scale_ask {
    struct serving_scale *scale;
    struct uuid id;
};

static struct scaled *scale_find(const struct serving_scale *scale, const struct uuid *id)
{
    return map_get(&scale->services, id->bytes, sizeof(id->bytes));
}

/* core_done_fn: nothing was written on failure, and the next look decides
 * again. */
static void scale_on_done(void *data, int r, const struct aq_error *err)
{
    struct scale_ask *ask = data;
    struct scaled *of = scale_find(ask->scale, &ask->id);

    if (of)
        of->is_busy = false;
    if (r < 0 && r != -ENOENT)
        log_warning("failed to scale a model service: %s", err->text);
    free(ask);
}

static void scale_ask(struct serving_scale *scale, struct scaled *of,
                      const struct autoscale_wish *wish)
{
    struct scale_ask *ask = aq_alloc(sizeof(*ask));
    bool is_step = wish->rule >= 0 && of->rules.rules[wish->rule].is_step;

    *ask = (struct scale_ask){ .scale = scale, .id = of->id };
    of->is_busy = true;
    core_scale_service(scale->core, &of->id, wish->replicas, wish->share_micro,
                       is_step ? wish->rule : -1, of->reason, scale_on_done, ask);
}

static int64_t scale_count_ready(const struct core *core, const struct model_service *s)
{
    struct core_replica replica;
    int64_t ready = 0;

    for (const struct session *r = NULL; (r = core_next_replica(core, s, r));)
        ready += core_find_replica(core, r, &replica) && replica.health == CORE_REPLICA_READY
                 && !replica.is_draining;
    return ready;
}

/* A replica that fails, or is not ready in time, is a failure of the service: then it may sleep. */
static bool scale_is_loading(const struct core *core, const struct model_service *s)
{
    struct core_replica replica;

    if (core_service_failures(core, s) > 0)
        return false;
    for (const struct session *r = NULL; (r = core_next_replica(core, s, r));)
        if (r->status != SESSION_PENDING && core_find_replica(core, r, &replica)
            && replica.health == CORE_REPLICA_STARTING && !replica.is_draining)
            return true;
    return false;
}

/* The largest share that each replica can have now, in the order of their creation. */
static size_t scale_list_limits(const struct core *core, const struct model_service *s,
                                int64_t share_max_micro, int64_t limits[MODEL_SERVICE_REPLICAS_MAX])
{
    struct core_replica replica;
    size_t count = 0;

    for (const struct session *r = NULL; share_max_micro && count < MODEL_SERVICE_REPLICAS_MAX
                                         && (r = core_next_replica(core, s, r));)
        if (core_find_replica(core, r, &replica) && !replica.is_draining)
            limits[count++] = replica.share_problem ? replica.share_micro : share_max_micro;
    return count;
}

static void scale_say(const struct model_service *s, const struct autoscale_sample *sample,
                      const struct autoscale_wish *wish)
{
    if (wish->replicas != s->replicas)
        log_info("model service '%s': scaling from %lld to %lld replicas: %s", s->name,
                 (long long)s->replicas, (long long)wish->replicas, wish->reason);
    if (wish->share_micro != sample->share_micro)
        log_info("model service '%s': changing the share of each replica from %g to %g: %s",
                 s->name, (double)sample->share_micro / AMOUNT_ONE,
                 (double)wish->share_micro / AMOUNT_ONE, wish->reason);
}

static void scale_decide(struct serving_scale *scale, struct scaled *of,
                         const struct model_service *s, int64_t now_usec)
{
    struct serving_figures figures = serving_use_get(scale->use, &s->id);
    int64_t share_max_micro = of->rules.share_max_micro, limits[MODEL_SERVICE_REPLICAS_MAX];
    bool is_heard = core_find_front_url(scale->core, FRONT_PROXY, NULL) != NULL;
    struct autoscale_sample sample = {
        .now_usec = now_usec,
        .replicas_min = s->replicas_min,
        .replicas_max = s->replicas_max,
        .wanted = s->replicas,
        .ready = scale_count_ready(scale->core, s),
        .share_micro = share_max_micro ? core_service_share(s) : 0,
        .limits_micro = limits,
        .limit_count = scale_list_limits(scale->core, s, share_max_micro, limits),
        .in_flight = is_heard ? (double)(figures.in_flight + figures.queued) : NAN,
        .arrived = AQ_MAX(figures.arrived - of->arrived, 0),
    };
    struct autoscale_wish wish;

    sample.is_loading = sample.ready == 0 && scale_is_loading(scale->core, s);
    for (size_t i = 0; i < of->rules.rule_count; i++)
        sample.values[i] = scaled_measure(scale, of, s, &of->rules.rules[i], &sample, &figures);
    autoscale_decide(&of->rules, &of->state, &sample, &wish);
    of->arrived = figures.arrived;
    if (wish.replicas == s->replicas && wish.share_micro == sample.share_micro)
        return;
    (void)snprintf(of->reason, sizeof(of->reason), "%s", wish.reason);
    scale_say(s, &sample, &wish);
    scale_ask(scale, of, &wish);
}

/* NULL if the service is not scaled by rules. */
static struct scaled *scale_take(struct serving_scale *scale, const struct model_service *s)
{
    struct scaled *of = scale_find(scale, &s->id);

    if (s->is_ending || s->replicas_max == 0 || (s->replicas_min == s->replicas_max && !s->scaling))
        return NULL;
    if (!of) {
        of = aq_alloc(sizeof(*of));
        of->id = s->id;
        of->arena = (struct arena)ARENA_INIT;
        (void)map_set(&scale->services, of->id.bytes, sizeof(of->id.bytes), of);
    }
    return scaled_keep_rules(of, s) && !of->is_busy
                   && (s->replicas_min < s->replicas_max || of->rules.share_max_micro)
               ? of
               : NULL;
}

void serving_scale_look(struct serving_scale *scale, const struct uuid *service_id)
{
    const struct model_service *s = core_find_service_by_id(scale->core, service_id);
    struct scaled *of = s && scale->timer ? scale_take(scale, s) : NULL;

    if (of)
        scale_decide(scale, of, s, clock_monotonic_usec());
}

/* Also of services that are being changed at this moment, whose pages go on to be read. */
static void scale_want_signals(struct serving_scale *scale)
{
    for (size_t i = 0; i < scale->services.count; i++) {
        struct scaled *of = scale->services.entries[i].value;
        const struct model_service *s = core_find_service_by_id(scale->core, &of->id);

        if (s && !s->is_ending && s->replicas_min < s->replicas_max && of->rules.rule_count)
            serving_signals_want(scale->signals, s, &of->rules);
        else
            free(AQ_TAKE(of->problem)); /* of rules that are not used any more */
    }
    serving_signals_run(scale->signals);
}

/* The first rule without a value is what people see; the log has it when it begins. */
static void scaled_note_problem(const struct serving_scale *scale, struct scaled *of,
                                const struct model_service *s)
{
    const char *text = NULL;
    size_t i = 0;

    for (; !text && i < of->rules.rule_count; i++)
        (void)serving_signals_get(scale->signals, s, &of->rules.rules[i], &text);
    if (text && !of->problem)
        log_limited(&of->log, LOG_LEVEL_WARNING,
                    "model service '%s': scaling rule %zu has no value: %s", s->name, i - 1, text);
    free(of->problem);
    of->problem = text ? aq_format("rule %zu has no value: %s", i - 1, text) : NULL;
}

static void scale_on_timer(void *data)
{
    struct serving_scale *scale = data;
    int64_t now = clock_monotonic_usec();

    for (const struct model_service *s = NULL; (s = core_next_service(scale->core, s));) {
        struct scaled *of = scale_take(scale, s);
        struct serving_figures figures;

        if (!of)
            continue;
        scale_decide(scale, of, s, now);
        figures = serving_use_get(scale->use, &s->id);
        scaled_mark(of, &figures, now);
        scaled_note_problem(scale, of, s);
    }
    scale_want_signals(scale);
    defer_start(scale->timer, TICK_MSEC);
}

const char *serving_scale_reason(const struct serving_scale *scale, const struct uuid *service_id)
{
    const struct scaled *of = scale_find(scale, service_id);

    return of ? of->reason : "";
}

const char *serving_scale_problem(const struct serving_scale *scale, const struct uuid *service_id)
{
    const struct scaled *of = scale_find(scale, service_id);

    return of ? of->problem : NULL;
}

/* ---- begin and end ---- */

struct serving_scale *serving_scale_new(struct core *core, const struct serving_use *use,
                                        struct serving_signals *signals)
{
    struct serving_scale *scale = aq_alloc(sizeof(*scale));

    scale->core = core;
    scale->use = use;
    scale->signals = signals;
    scale->timer = defer_new(core_loop(core), scale_on_timer, scale);
    defer_start(scale->timer, TICK_MSEC);
    return scale;
}

void serving_scale_forget(struct serving_scale *scale, const struct uuid *service_id)
{
    struct scaled *of = map_remove(&scale->services, service_id->bytes, sizeof(service_id->bytes));

    if (of)
        scaled_free(of);
}

void serving_scale_stop(struct serving_scale *scale)
{
    defer_cancel(AQ_TAKE(scale->timer));
}

void serving_scale_free(struct serving_scale *scale)
{
    if (!scale)
        return;
    defer_cancel(scale->timer);
    for (size_t i = 0; i < scale->services.count; i++)
        scaled_free(scale->services.entries[i].value);
    map_done(&scale->services);
    free(scale);
}
