/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_rule.h - rules of model services that add or remove replicas when a metric passes a
 * threshold, as clients of Backend.AI know them
 *
 * They are the rules with steps of model_service.scaling (serving/autoscale.h). The id of a rule that
 * was made for such a client is a UUID of version 7, which holds when that was. Rows and texts are in
 * the request's arena.
 */
#ifndef AQ_MANAGER_SERVING_BACKENDAI_RULE_H
#define AQ_MANAGER_SERVING_BACKENDAI_RULE_H

#include "manager/call/graphql/resolve.h"
#include "model/model_service.h"
#include "serving/autoscale.h"

struct rule_row {
    struct uuid id, service_id;
    const char *id_text, *source, *name, *comparator, *threshold;
    const char *below, *above;            /* both thresholds; NULL = none */
    int64_t step, cooldown_sec, min, max; /* min, max: -1 = as of the service */
    int64_t created_usec;                 /* 0 = not known */
    int64_t triggered_usec;               /* 0 = not yet */
};

/* The scaling of a service, and one of its rules. */
struct rule_place {
    const struct model_service *service;
    struct autoscale scaling;
    size_t index;
};

/* Those that clients of Backend.AI know: steps by a metric or a query. */
bool backendai_rule_is_shown(const struct autoscale_rule *rule);
const char *backendai_rule_comparator(const struct autoscale_rule *rule);
void backendai_rule_fill(const struct gql_call *call, const struct rule_place *at,
                         struct rule_row *ret);
int backendai_rule_read_scaling(const struct model_service *s, struct arena *arena,
                                struct autoscale *ret, struct aq_error *err);

/* A service that lives and that the caller may see, by its id, global or not. NULL with an error. */
const struct model_service *backendai_rule_find_service(const struct gql_call *call,
                                                        const char *text, struct aq_error *err);
/* The rule of this id, global or not, of those services. -EINVAL, -ENOENT. */
int backendai_rule_find(const struct gql_call *call, const char *text, struct rule_place *ret,
                        struct aq_error *err);

/* A member of the last argument, by its name in snake_case: absent, null or given. */
struct gql_value backendai_rule_prop(const struct gql_call *call, const char *name);
/* metric_source and metric_name; and one of min_replicas and max_replicas, where -1 and null are no
 * bound. -EINVAL names the member.
 */
int backendai_rule_read_source(const struct gql_call *call, struct autoscale_rule *rule,
                               struct aq_error *err);
int backendai_rule_read_bound(const struct gql_call *call, const char *name, int64_t *bound,
                              struct aq_error *err);

/* False after the call has failed: the manager is frozen. */
bool backendai_rule_may_change(struct gql_call *call);
/* A new rule at the end, still without a metric and thresholds. */
int backendai_rule_add(struct gql_call *call, const char *service, struct rule_place *ret,
                       struct aq_error *err);
/* Check and save the scaling; the mutation's object is the rule's row, of one that was 'removed'
 * (NULL = none was) its id alone. Both return what the resolver returns.
 */
int backendai_rule_save(struct gql_call *call, const struct rule_place *at,
                        const struct uuid *removed);
int backendai_rule_remove(struct gql_call *call, const char *text);

#endif
