/* SPDX-License-Identifier: Apache-2.0 */
/* serving_signals.h - what scaling rules measure outside of the manager: metrics of the replicas' own
 * pages, and queries to a Prometheus server
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_SERVING_SERVING_SIGNALS_H
#define AQ_MANAGER_SERVING_SERVING_SIGNALS_H

#include "manager/core/services.h"
#include "manager/serving/serving_prometheus.h"
#include "serving/autoscale.h"

struct serving_signals;

struct serving_signals *serving_signals_new(struct core *core);
/* 'settings' are borrowed. As serving_prometheus_new(); before the loop runs. */
int serving_signals_set_prometheus(struct serving_signals *signals,
                                   const struct prometheus_settings *settings,
                                   struct aq_error *err);
void serving_signals_stop(struct serving_signals *signals);
/* NULL is fine. */
void serving_signals_free(struct serving_signals *signals);

/* Can this rule be measured? -EINVAL or -E2BIG with words that follow "rule N". */
int serving_signals_check(const struct autoscale_rule *rule, struct arena *arena,
                          struct aq_error *err);

/* The rules of a service are used: every second, for each. */
void serving_signals_want(struct serving_signals *signals, const struct model_service *s,
                          const struct autoscale *rules);
/* What was wanted since the last call is measured; nothing else is. */
void serving_signals_run(struct serving_signals *signals);

/* The value of such a rule; NAN if it is not known: *ret_problem, unless NULL, says why, or is NULL if
 * that is nothing to speak of (no replica is ready, or the first value is on its way). Valid until the
 * loop runs again.
 */
double serving_signals_get(const struct serving_signals *signals, const struct model_service *s,
                           const struct autoscale_rule *rule, const char **ret_problem);

#endif
