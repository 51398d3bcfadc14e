/* SPDX-License-Identifier: Apache-2.0 */
/* serving_signals.c - see serving_signals.h */
#include "manager/serving/serving_signals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "http/exposition_scan.h"
#include "manager/serving/serving_metrics.h"

#define METRICS_PATH "/metrics"
#define SERVICE_MARK "{{service}}"

struct serving_signals {
    struct core *core;
    struct serving_metrics *metrics;
    struct serving_prometheus *prometheus; /* NULL before serving_signals_set_prometheus() */
};

int serving_signals_check(const struct autoscale_rule *rule, struct arena *arena,
                          struct aq_error *err)
{
    struct exposition_selector selector;

    return rule->signal == AUTOSCALE_METRIC && strcmp(rule->source, "kernel") != 0
               ? exposition_selector_parse(rule->name, arena, &selector, err)
               : 0;
}

/* ---- pages of replicas ---- */

/* Does the rule count this replica? *ret is the rule's metric of it. */
static bool signal_find_metric(const struct core *core, const struct model_service *s,
                               const struct session *replica, const struct autoscale_rule *rule,
                               struct serving_metric *ret)
{
    struct core_replica known;
    const struct model_service_revision *revision;

    if (!core_find_replica(core, replica, &known) || known.health != CORE_REPLICA_READY
        || known.is_draining || !(revision = model_service_find_revision(s, known.revision)))
        return false;
    *ret = (struct serving_metric){ .replica = replica,
                                    .port = rule->port ? rule->port : revision->spec->port,
                                    .path = rule->path ? rule->path : METRICS_PATH,
                                    .name = rule->name };
    return true;
}

/* The mean over ready replicas, of which some may have no value yet: for a target they count as idle
 * while the others are beyond it, and as being at it while the others are below, so that they alone
 * cause neither more replicas nor fewer.
 */
static double signal_mean(const struct autoscale_rule *rule, double sum, size_t known, size_t ready)
{
    double mean = known ? sum / (double)known : (double)NAN;

    if (!known || known == ready || rule->is_step)
        return mean;
    return mean > rule->target ? AQ_MAX(sum / (double)ready, rule->target)
                               : (sum + (double)(ready - known) * rule->target) / (double)ready;
}

static double signal_get_metric(const struct serving_signals *signals,
                                const struct model_service *s, const struct autoscale_rule *rule,
                                const char **ret_problem)
{
    struct serving_metric metric;
    double sum = 0;
    size_t known = 0, ready = 0;

    for (const struct session *r = NULL; (r = core_next_replica(signals->core, s, r));) {
        const char *text;
        double value;

        if (!signal_find_metric(signals->core, s, r, rule, &metric))
            continue;
        ready++;
        value = serving_metrics_get(signals->metrics, &metric, &text);
        if (isnan(value)) {
            *ret_problem = *ret_problem ? *ret_problem : text;
            continue;
        }
        sum += value;
        known++;
    }
    return signal_mean(rule, sum, known, ready);
}

/* ---- queries ---- */

/* The rule's query for this service; a name of a service needs no escapes in PromQL. */
static char *signal_write_query(const struct model_service *s, const struct autoscale_rule *rule)
{
    struct strbuf out = STRBUF_INIT;
    const char *at = rule->query, *mark;

    for (; (mark = strstr(at, SERVICE_MARK)); at = mark + strlen(SERVICE_MARK)) {
        strbuf_add(&out, at, (size_t)(mark - at));
        strbuf_adds(&out, s->name);
    }
    strbuf_adds(&out, at);
    return strbuf_steal(&out);
}

/* ---- rules ---- */

void serving_signals_want(struct serving_signals *signals, const struct model_service *s,
                          const struct autoscale *rules)
{
    for (size_t i = 0; i < rules->rule_count; i++) {
        const struct autoscale_rule *rule = &rules->rules[i];
        struct serving_metric metric;

        if (rule->signal == AUTOSCALE_PROMETHEUS && signals->prometheus) {
            AQ_CLEANUP(aq_freep) char *query = signal_write_query(s, rule);

            serving_prometheus_want(signals->prometheus, query, &s->user_id);
        }
        if (rule->signal != AUTOSCALE_METRIC || strcmp(rule->source, "kernel") == 0)
            continue;
        for (const struct session *r = NULL; (r = core_next_replica(signals->core, s, r));)
            if (signal_find_metric(signals->core, s, r, rule, &metric))
                serving_metrics_want(signals->metrics, &metric);
    }
}

void serving_signals_run(struct serving_signals *signals)
{
    serving_metrics_flush(signals->metrics);
    if (signals->prometheus)
        serving_prometheus_run(signals->prometheus);
}

double serving_signals_get(const struct serving_signals *signals, const struct model_service *s,
                           const struct autoscale_rule *rule, const char **ret_problem)
{
    AQ_CLEANUP(aq_freep) char *query = NULL;
    const char *problem = NULL;
    double value = NAN;

    if (rule->signal == AUTOSCALE_METRIC) {
        value = signal_get_metric(signals, s, rule, &problem);
    } else if (rule->signal == AUTOSCALE_PROMETHEUS && signals->prometheus) {
        query = signal_write_query(s, rule);
        value = serving_prometheus_get(signals->prometheus, query, &problem);
    }
    if (ret_problem)
        *ret_problem = isnan(value) ? problem : NULL;
    return value;
}

/* ---- begin and end ---- */

struct serving_signals *serving_signals_new(struct core *core)
{
    struct serving_signals *signals = aq_alloc(sizeof(*signals));

    signals->core = core;
    signals->metrics = serving_metrics_new(core);
    return signals;
}

int serving_signals_set_prometheus(struct serving_signals *signals,
                                   const struct prometheus_settings *settings, struct aq_error *err)
{
    return serving_prometheus_new(core_loop(signals->core), settings, &signals->prometheus, err);
}

void serving_signals_stop(struct serving_signals *signals)
{
    serving_metrics_stop(signals->metrics);
    serving_prometheus_free(AQ_TAKE(signals->prometheus));
}

void serving_signals_free(struct serving_signals *signals)
{
    if (!signals)
        return;
    serving_metrics_free(signals->metrics);
    serving_prometheus_free(signals->prometheus);
    free(signals);
}
