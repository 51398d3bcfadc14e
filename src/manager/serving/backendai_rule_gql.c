/* SPDX-License-Identifier: Apache-2.0 */
/* EndpointAutoScalingRuleNode: a rule with one threshold. Objects are struct rule_row. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "manager/call/graphql/mutation.h"
#include "manager/call/graphql/node.h"
#include "manager/serving/backendai_rule.h"
#include "manager/serving/serving_feature.h"

#define RULES_USUAL 5

static const char *rule_id_text(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct rule_row *)row)->id_text;
}

#define IN_ROW(member) .offset = offsetof(struct rule_row, member)
static const struct filter_field rule_fields[] = {
    { "id", "", FILTER_UUID, IN_ROW(id_text) },
    { "row_id", "", FILTER_UUID, IN_ROW(id_text) },
    { "metric_source", "", FILTER_UPPER, IN_ROW(source) },
    { "metric_name", "", FILTER_STRING, IN_ROW(name) },
    { "threshold", "", FILTER_STRING, IN_ROW(threshold) },
    { "comparator", "", FILTER_UPPER, IN_ROW(comparator) },
    { "step_size", "", FILTER_INT, IN_ROW(step) },
    { "cooldown_seconds", "", FILTER_INT, IN_ROW(cooldown_sec) },
    { "min_replicas", "", FILTER_INT, IN_ROW(min) },
    { "max_replicas", "", FILTER_INT, IN_ROW(max) },
    { "created_at", "", FILTER_TIME, IN_ROW(created_usec) },
};

static int rule_get_node(struct gql_call *call, const char *id, uint32_t type);

const struct gql_node backendai_rule_node = { .type = SCHEMA_TYPE_EndpointAutoScalingRuleNode,
                                              .id_of = rule_id_text,
                                              .get = rule_get_node,
                                              .fields = rule_fields,
                                              .field_count = AQ_COUNT(rule_fields) };

/* ---- queries ---- */

static int rule_get_node(struct gql_call *call, const char *id, uint32_t type)
{
    struct rule_row *row = arena_alloc(call->arena, sizeof(*row));
    struct rule_place at;
    struct aq_error err = { 0 };

    if (backendai_rule_find(call, id, &at, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    backendai_rule_fill(call, &at, row);
    call->results[0] = gql_object_of(type, row);
    return GQL_DONE;
}

static int rule_get(struct gql_call *call)
{
    return rule_get_node(call, gql_arg_text(call, 0), 0);
}

static int rule_list(struct gql_call *call)
{
    struct rule_place at = { .index = 0 };
    struct rule_row *rows;
    struct aq_error err = { 0 };
    uint32_t count = 0;

    at.service = backendai_rule_find_service(
        call, gql_arg_text(call, SCHEMA_ARG_Queries_endpoint_auto_scaling_rule_nodes_endpoint),
        &err);
    if (!at.service || backendai_rule_read_scaling(at.service, call->arena, &at.scaling, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    rows = arena_array(call->arena, at.scaling.rule_count + 1, sizeof(*rows));
    for (; at.index < at.scaling.rule_count; at.index++)
        if (backendai_rule_is_shown(&at.scaling.rules[at.index]))
            backendai_rule_fill(call, &at, &rows[count++]);
    call->results[0] = gql_node_connect(call, &backendai_rule_node, rows, sizeof(*rows), count);
    return GQL_DONE;
}

/* ---- mutations ---- */

/* The comparator and the threshold, of which each may be given alone. */
static int rule_read_comparison(const struct gql_call *call, struct autoscale_rule *rule,
                                struct aq_error *err)
{
    static const char *const names[] = { "LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN",
                                         "GREATER_THAN_OR_EQUAL" };
    struct gql_value comparator = backendai_rule_prop(call, "comparator");
    struct gql_value threshold = backendai_rule_prop(call, "threshold");
    struct gql_value step = backendai_rule_prop(call, "step_size");
    const char *name = gql_is_given(comparator) && comparator.kind == GQL_STRING
                           ? comparator.text
                           : backendai_rule_comparator(rule);
    bool was_below = isnan(rule->above);
    int64_t steps = was_below ? rule->below_step : rule->above_step;
    double value = was_below ? rule->below : rule->above;
    size_t which = 0;

    while (which < AQ_COUNT(names) && strcasecmp(names[which], name) != 0)
        which++;
    if (which == AQ_COUNT(names) || (gql_is_given(comparator) && comparator.kind != GQL_STRING))
        return api_fail_param(err, "comparator",
                              "'%.40s' is none of LESS_THAN, LESS_THAN_OR_EQUAL, GREATER_THAN, "
                              "GREATER_THAN_OR_EQUAL",
                              name);
    if (gql_is_given(threshold)) {
        char *end;

        value = strtod(threshold.text, &end);
        if (end == threshold.text || *end || !isfinite(value))
            return api_fail_param(err, "threshold", "'%.40s' is not a number", threshold.text);
    }
    if (gql_is_given(step)) {
        steps = step.integer;
        if (steps == 0 || steps < -MODEL_SERVICE_REPLICAS_MAX || steps > MODEL_SERVICE_REPLICAS_MAX)
            return api_fail_param(err, "step_size",
                                  "%" PRId64 " is not a number of replicas up to %d, negative for "
                                  "fewer",
                                  steps, MODEL_SERVICE_REPLICAS_MAX);
    }
    rule->above = which >= 2 ? value : (double)NAN;
    rule->below = which >= 2 ? (double)NAN : value;
    rule->above_step = which >= 2 ? steps : 0;
    rule->below_step = which >= 2 ? 0 : steps;
    rule->is_inclusive = which % 2;
    return 0;
}

static int rule_read_props(const struct gql_call *call, struct autoscale_rule *rule,
                           struct aq_error *err)
{
    struct gql_value cooldown = backendai_rule_prop(call, "cooldown_seconds");
    int r;

    if ((r = backendai_rule_read_source(call, rule, err)) < 0
        || (r = rule_read_comparison(call, rule, err)) < 0
        || (r = backendai_rule_read_bound(call, "min_replicas", &rule->replicas_min, err)) < 0
        || (r = backendai_rule_read_bound(call, "max_replicas", &rule->replicas_max, err)) < 0)
        return r;
    if (gql_is_given(cooldown)) {
        if (cooldown.integer < 0 || cooldown.integer > 86400)
            return api_fail_param(err, "cooldown_seconds", "must be within 0..86400");
        rule->cooldown_usec = cooldown.integer * USEC_PER_SEC;
    }
    return 0;
}

static int rule_create(struct gql_call *call)
{
    struct rule_place at;
    struct aq_error err = { 0 };

    if (!backendai_rule_may_change(call))
        return GQL_DONE;
    if (backendai_rule_add(call, gql_arg_text(call, 0), &at, &err) < 0
        || rule_read_props(call, &at.scaling.rules[at.index], &err) < 0)
        return mutation_fail(call, &err);
    return backendai_rule_save(call, &at, NULL);
}

static int rule_modify(struct gql_call *call)
{
    struct rule_place at;
    struct aq_error err = { 0 };

    if (!backendai_rule_may_change(call))
        return GQL_DONE;
    if (backendai_rule_find(call, gql_arg_text(call, 0), &at, &err) < 0
        || rule_read_props(call, &at.scaling.rules[at.index], &err) < 0)
        return mutation_fail(call, &err);
    return backendai_rule_save(call, &at, NULL);
}

static int rule_delete(struct gql_call *call)
{
    return backendai_rule_remove(call, gql_arg_text(call, 0));
}

/* ---- fields ---- */

/* -1 is null. */
static struct gql_value rule_get_bound(struct gql_get *get, const void *parent)
{
    int64_t bound = *(const int64_t *)(const void *)((const char *)parent + get->offset);

    return bound < 0 ? gql_null() : gql_int_clamped(bound);
}

#define NODE(name) SCHEMA_FIELD_EndpointAutoScalingRuleNode_##name
#define TEXT_AT(member) GQL_TEXT_AT(struct rule_row, member)
/* clang-format off */
#define BOUND_AT(member)                                                                           \
    { .how = GQL_HOW_GET, .offset = (uint32_t)offsetof(struct rule_row, member),                   \
      .get = rule_get_bound }
#define RULE_MUTATION(type) MUTATION_RESULT(type),                                                 \
    { SCHEMA_FIELD_##type##_rule, GQL_OBJECT_AT(struct mutation_result, object) }
/* clang-format on */

static const struct gql_entry backendai_rule_entries[] = {
    { SCHEMA_FIELD_Queries_endpoint_auto_scaling_rule_node,
      GQL_CALL_COST(rule_get, GQL_COST_WALK, 1) },
    { SCHEMA_FIELD_Queries_endpoint_auto_scaling_rule_nodes,
      GQL_CALL_SHORT(rule_list, GQL_COST_MADE, RULES_USUAL) },
    { SCHEMA_FIELD_Mutations_create_endpoint_auto_scaling_rule_node,
      GQL_CALL_COST(rule_create, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_modify_endpoint_auto_scaling_rule_node,
      GQL_CALL_COST(rule_modify, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_delete_endpoint_auto_scaling_rule_node,
      GQL_CALL_COST(rule_delete, GQL_COST_WRITE, 1) },
    RULE_MUTATION(CreateEndpointAutoScalingRuleNode),
    RULE_MUTATION(ModifyEndpointAutoScalingRuleNode),
    MUTATION_RESULT(DeleteEndpointAutoScalingRuleNode),
    { NODE(id), GQL_GET(gql_node_get_id) },
    { NODE(row_id), GQL_UUID_AT(struct rule_row, id) },
    { NODE(metric_source), TEXT_AT(source) },
    { NODE(metric_name), TEXT_AT(name) },
    { NODE(threshold), TEXT_AT(threshold) },
    { NODE(comparator), TEXT_AT(comparator) },
    { NODE(step_size), GQL_COUNT_AT(struct rule_row, step) },
    { NODE(cooldown_seconds), GQL_COUNT_AT(struct rule_row, cooldown_sec) },
    { NODE(min_replicas), BOUND_AT(min) },
    { NODE(max_replicas), BOUND_AT(max) },
    { NODE(created_at), GQL_TIME_AT(struct rule_row, created_usec) },
    { NODE(last_triggered_at), GQL_TIME_AT(struct rule_row, triggered_usec) },
    { NODE(endpoint), GQL_UUID_AT(struct rule_row, service_id) },
    NODE_CONNECTION(EndpointAutoScalingRule),
};
GQL_ENTRIES_END(backendai_rule);
