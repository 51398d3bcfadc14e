/* SPDX-License-Identifier: Apache-2.0 */
/* AutoScalingRule: a rule with two thresholds, as newer clients of Backend.AI know it. Objects are struct
 * rule_row.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "manager/call/graphql/mutation.h"
#include "manager/call/graphql/node.h"
#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/backendai_input.h"
#include "manager/serving/backendai_rule.h"
#include "manager/serving/serving_feature.h"

#define RULES_USUAL 5

#define IN_ROW(member) .offset = offsetof(struct rule_row, member)
static const struct filter_field rule_fields[] = {
    { "created_at", "", FILTER_TIME, IN_ROW(created_usec) },
    { "last_triggered_at", "", FILTER_TIME, IN_ROW(triggered_usec) },
};

static const char *rule_id_of(const void *row, char scratch[64])
{
    return uuid_format(&((const struct rule_row *)row)->id, scratch);
}

const struct gql_node backendai_rule_v2_node = { .type = SCHEMA_TYPE_AutoScalingRule,
                                                 .id_of = rule_id_of,
                                                 .fields = rule_fields,
                                                 .field_count = AQ_COUNT(rule_fields) };

/* ---- of a service ---- */

static struct gql_value rule_connect(struct gql_call *call, const struct uuid *service_id)
{
    const struct api *api = mutation_api(call);
    struct rule_place at = { .service = core_find_service_by_id(api->core, service_id) };
    struct rule_row *rows;
    struct aq_error err = { 0 };
    uint32_t count = 0;

    if (at.service && backendai_rule_read_scaling(at.service, call->arena, &at.scaling, &err) < 0)
        return gql_error(call->arena, "%s", err.text);
    rows = arena_array(call->arena, at.scaling.rule_count + 1, sizeof(*rows));
    for (; at.index < at.scaling.rule_count; at.index++)
        if (backendai_rule_is_shown(&at.scaling.rules[at.index]))
            backendai_rule_fill(call, &at, &rows[count++]);
    return gql_node_connect(call, &backendai_rule_v2_node, rows, sizeof(*rows), count);
}

static int rule_list(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++)
        call->results[i] = rule_connect(call, &((const struct endpoint_row *)call->parents[i])->id);
    return GQL_DONE;
}

/* ---- mutations ---- */

static int rule_read_threshold(const struct gql_call *call, const char *name, const char *shown,
                               double *threshold, struct aq_error *err)
{
    struct gql_value value = backendai_rule_prop(call, name);
    char *end;

    if (value.kind == GQL_NULL)
        *threshold = (double)NAN;
    if (!gql_is_given(value))
        return 0;
    *threshold = strtod(value.text, &end);
    if (end == value.text || *end || !isfinite(*threshold))
        return api_fail_param(err, shown, "'%.40s' is not a number", value.text);
    return 0;
}

static int rule_read_thresholds(const struct gql_call *call, struct autoscale_rule *rule,
                                struct aq_error *err)
{
    struct gql_value step = backendai_rule_prop(call, "step_size");
    int64_t steps = isnan(rule->above) ? llabs(rule->below_step) : llabs(rule->above_step);
    int r;

    if ((r = rule_read_threshold(call, "min_threshold", "minThreshold", &rule->below, err)) < 0
        || (r = rule_read_threshold(call, "max_threshold", "maxThreshold", &rule->above, err)) < 0)
        return r;
    if (isnan(rule->below) && isnan(rule->above))
        return api_fail_param(err, "maxThreshold", "give it, minThreshold, or both");
    if (rule->below >= rule->above)
        return api_fail_param(err, "minThreshold", "must be less than maxThreshold");
    if (gql_is_given(step))
        steps = step.integer;
    if (steps < 1 || steps > MODEL_SERVICE_REPLICAS_MAX)
        return api_fail_param(err, "stepSize", "%" PRId64 " is not within 1..%d", steps,
                              MODEL_SERVICE_REPLICAS_MAX);
    rule->above_step = isnan(rule->above) ? 0 : steps;
    rule->below_step = isnan(rule->below) ? 0 : -steps;
    return 0;
}

static int rule_read(const struct gql_call *call, struct autoscale_rule *rule, struct aq_error *err)
{
    struct gql_value window = backendai_rule_prop(call, "time_window");
    int r;

    if (gql_is_given(backendai_rule_prop(call, "prometheus_query_preset_id")))
        return api_fail_param(err, "prometheusQueryPresetId",
                              "must be null: there are no presets; metricName is the query");
    if ((r = backendai_rule_read_source(call, rule, err)) < 0
        || (r = rule_read_thresholds(call, rule, err)) < 0
        || (r = backendai_rule_read_bound(call, "min_replicas", &rule->replicas_min, err)) < 0
        || (r = backendai_rule_read_bound(call, "max_replicas", &rule->replicas_max, err)) < 0)
        return r;
    if (gql_is_given(window)) {
        if (window.integer < 0 || window.integer > 86400)
            return api_fail_param(err, "timeWindow", "%" PRId64 " is not within 0..86400 seconds",
                                  window.integer);
        rule->cooldown_usec = window.integer * USEC_PER_SEC;
    }
    return 0;
}

/* In the names of the input. */
static int rule_fail(struct gql_call *call, struct aq_error *err)
{
    static const char *const names[][2] = {
        { "metric_source", "metricSource" },
        { "metric_name", "metricName" },
        { "min_replicas", "minReplicas" },
        { "max_replicas", "maxReplicas" },
    };

    backendai_input_rename(names, AQ_COUNT(names), err);
    return mutation_fail(call, err);
}

static const char *rule_id_given(struct gql_call *call, const char *member)
{
    return gql_arg_member(call, "input", member).text;
}

static int rule_create(struct gql_call *call)
{
    struct rule_place at;
    struct aq_error err = { 0 };

    if (!backendai_rule_may_change(call))
        return GQL_DONE;
    if (backendai_rule_add(call, rule_id_given(call, "modelDeploymentId"), &at, &err) < 0
        || rule_read(call, &at.scaling.rules[at.index], &err) < 0)
        return rule_fail(call, &err);
    return backendai_rule_save(call, &at, NULL);
}

static int rule_update(struct gql_call *call)
{
    struct rule_place at;
    struct aq_error err = { 0 };

    if (!backendai_rule_may_change(call))
        return GQL_DONE;
    if (backendai_rule_find(call, rule_id_given(call, "id"), &at, &err) < 0
        || rule_read(call, &at.scaling.rules[at.index], &err) < 0)
        return rule_fail(call, &err);
    return backendai_rule_save(call, &at, NULL);
}

static int rule_delete(struct gql_call *call)
{
    return backendai_rule_remove(call, rule_id_given(call, "id"));
}

/* ---- fields ---- */

static struct gql_value rule_get_removed(struct gql_get *get, const void *parent)
{
    const struct rule_row *row = ((const struct mutation_result *)parent)->object;
    char id[UUID_TEXT_MAX];

    return gql_text(relay_global_id(get->arena, "AutoScalingRule", uuid_format(&row->id, id)));
}

static struct gql_value rule_get_step(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_int_clamped(llabs(((const struct rule_row *)parent)->step));
}

/* -1 is null. */
static struct gql_value rule_get_bound(struct gql_get *get, const void *parent)
{
    int64_t bound = *(const int64_t *)(const void *)((const char *)parent + get->offset);

    return bound < 0 ? gql_null() : gql_int_clamped(bound);
}

#define OF(type, name) SCHEMA_FIELD_##type##_##name
#define RULE(name) OF(AutoScalingRule, name)
#define TEXT(member) GQL_TEXT_AT(struct rule_row, member)
#define MUTATION(name, fn)                                        \
    {                                                             \
        OF(Mutations, name), GQL_CALL_COST(fn, GQL_COST_WRITE, 1) \
    }
#define SAVED(type)                                                   \
    {                                                                 \
        OF(type, rule), GQL_OBJECT_AT(struct mutation_result, object) \
    }
/* clang-format off */
#define BOUND(member)                                                                              \
    { .how = GQL_HOW_GET, .offset = (uint32_t)offsetof(struct rule_row, member),                   \
      .get = rule_get_bound }
/* clang-format on */

static const struct gql_entry backendai_rule_v2_entries[] = {
    { OF(ModelDeployment, autoScalingRules),
      GQL_CALL_SHORT(rule_list, GQL_COST_MADE, RULES_USUAL) },
    MUTATION(createAutoScalingRule, rule_create),
    MUTATION(updateAutoScalingRule, rule_update),
    MUTATION(deleteAutoScalingRule, rule_delete),
    SAVED(CreateAutoScalingRulePayload),
    SAVED(UpdateAutoScalingRulePayload),
    { OF(DeleteAutoScalingRulePayload, id), GQL_GET(rule_get_removed) },
    { RULE(id), GQL_GET(gql_node_get_id) },
    { RULE(metricSource), TEXT(source) },
    { RULE(metricName), TEXT(name) },
    { RULE(minThreshold), TEXT(below) },
    { RULE(maxThreshold), TEXT(above) },
    { RULE(stepSize), GQL_GET(rule_get_step) },
    { RULE(timeWindow), GQL_COUNT_AT(struct rule_row, cooldown_sec) },
    { RULE(minReplicas), BOUND(min) },
    { RULE(maxReplicas), BOUND(max) },
    { RULE(prometheusQueryPresetId), GQL_ALWAYS_NULL },
    { RULE(createdAt), GQL_TIME_AT(struct rule_row, created_usec) },
    { RULE(lastTriggeredAt), GQL_ALWAYS_NULL },
    NODE_CONNECTION(AutoScalingRule),
};
GQL_ENTRIES_END(backendai_rule_v2);
