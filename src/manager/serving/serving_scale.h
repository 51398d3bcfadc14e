/* SPDX-License-Identifier: Apache-2.0 */
/* serving_scale.h - sets how many replicas model services want, by what proxies
 * report
 *
 * A service whose bounds, of replicas or of their share, leave room is looked at
 * each second, and at once when
 * a report of a proxy says that its requests wait or that more are under way.
 * What is wanted then is decided by serving/autoscale.h; without rules by the
 * requests under way in relation to the cap of a replica. Reports that lack (no
 * proxy is connected) change nothing. State is in memory: after a restart the
 * present number of replicas counts as needed for one window. Loop's thread
 * only.
 */
#ifndef AQ_MANAGER_SERVING_SERVING_SCALE_H
#define AQ_MANAGER_SERVING_SERVING_SCALE_H

#include "manager/serving/serving_signals.h"
#include "manager/serving/serving_use.h"
#include "model/model_service.h"
#include "serving/autoscale.h"

struct serving_scale;

/* 'use' and 'signals' are borrowed. */
struct serving_scale *serving_scale_new(struct core *core, const struct serving_use *use,
                                        struct serving_signals *signals);
void serving_scale_stop(struct serving_scale *scale);
void serving_scale_free(struct serving_scale *scale); /* NULL is fine */

/* A proxy has reported of these services, or one of them has changed: look at
 * once. */
void serving_scale_look(struct serving_scale *scale, const struct uuid *service_id);
/* The service has ended. */
void serving_scale_forget(struct serving_scale *scale, const struct uuid *service_id);

/* Why as many are wanted as now; "" = nothing has been decided yet. Valid until
 * the loop runs again.
 */
const char *serving_scale_reason(const struct serving_scale *scale, const struct uuid *service_id);

/* When the step of this index in the service's rules last changed the number of replicas, wall clock;
 * 0 = not since the rules were changed.
 */
int64_t serving_scale_fired_usec(const struct model_service *s, size_t rule);
/* Which of its rules has no value now, and why, for people; NULL = none. Valid likewise. */
const char *serving_scale_problem(const struct serving_scale *scale, const struct uuid *service_id);

/* The rules of a service: its own, or those that follow from its cap. Texts are
 * in 'arena'. -EINVAL with the field, of rules that cannot be measured here,
 * too.
 */
int serving_scale_rules(const struct model_service *s, struct arena *arena, struct autoscale *ret,
                        struct aq_error *err);

#endif
