/* SPDX-License-Identifier: Apache-2.0 */
/* EndpointAutoScalingRuleNode: rules of model services that add or remove replicas when a metric
 * passes a threshold.
 *
 * They are the rules with steps of model_service.scaling (serving/autoscale.h). The id of a rule that
 * was made here is a UUID of version 7, which holds when that was.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/call/decode.h"
#include "manager/call/graphql/mutation.h"
#include "manager/call/graphql/node.h"
#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_scale.h"
#include "manager/serving/serving_view.h"
#include "serving/autoscale.h"

#define RULE_NAME_MAX 256 /* characters of a metric, or of a query */
#define RULES_USUAL 5

/* In the request's arena. */
struct rule_row {
    struct uuid id, service_id;
    const char *id_text, *source, *name, *comparator, *threshold;
    int64_t step, cooldown_sec, min, max; /* min, max: -1 = as of the service */
    int64_t created_usec, triggered_usec; /* 0 = not known, not yet */
};

/* The scaling of a service, and one of its rules. */
struct rule_place {
    const struct model_service *service;
    struct autoscale scaling;
    size_t index;
};

/* ---- ids ---- */

static int64_t rule_id_usec(const struct uuid *id)
{
    uint64_t msec = 0;

    if (id->bytes[6] >> 4 != 7)
        return 0;
    for (size_t i = 0; i < 6; i++)
        msec = msec << 8 | id->bytes[i];
    return (int64_t)msec * USEC_PER_MSEC;
}

/* Rules that were not made here may have any id, or none: then their place makes one. */
static struct uuid rule_id_of(const struct model_service *s, const struct autoscale_rule *rule,
                              size_t index)
{
    char service[UUID_TEXT_MAX];
    AQ_CLEANUP(aq_freep) char *name = NULL;
    struct uuid id;

    if (rule->id && uuid_parse(rule->id, &id) == 0)
        return id;
    name = rule->id ? aq_format("%s/%s", uuid_format(&s->id, service), rule->id)
                    : aq_format("%s/%zu", uuid_format(&s->id, service), index);
    return gql_uuid_of_name(name);
}

/* ---- rows ---- */

static int rule_read_scaling(const struct model_service *s, struct arena *arena,
                             struct autoscale *ret, struct aq_error *err)
{
    const char *text = s->scaling ? s->scaling : "{}";

    return autoscale_parse(text, strlen(text), arena, ret, err);
}

static const char *rule_source(const struct autoscale_rule *rule)
{
    if (rule->signal == AUTOSCALE_PROMETHEUS)
        return "PROMETHEUS";
    return rule->source && strcmp(rule->source, "kernel") == 0 ? "KERNEL" : "INFERENCE_FRAMEWORK";
}

static const char *rule_comparator(const struct autoscale_rule *rule)
{
    if (isnan(rule->above))
        return rule->is_inclusive ? "LESS_THAN_OR_EQUAL" : "LESS_THAN";
    return rule->is_inclusive ? "GREATER_THAN_OR_EQUAL" : "GREATER_THAN";
}

static void rule_fill(const struct gql_call *call, const struct rule_place *at,
                      struct rule_row *ret)
{
    const struct api *api = ((const struct gql_context *)call->context)->api;
    struct arena *arena = call->arena;
    const struct autoscale_rule *rule = &at->scaling.rules[at->index];
    bool is_below = isnan(rule->above);
    char id[UUID_TEXT_MAX], threshold[32];

    *ret = (struct rule_row){ .id = rule_id_of(at->service, rule, at->index),
                              .service_id = at->service->id,
                              .source = rule_source(rule),
                              .comparator = rule_comparator(rule),
                              .step = is_below ? rule->below_step : rule->above_step,
                              .cooldown_sec = rule->cooldown_usec / USEC_PER_SEC,
                              .min = rule->replicas_min,
                              .max = rule->replicas_max };
    (void)snprintf(threshold, sizeof(threshold), "%.15g", is_below ? rule->below : rule->above);
    ret->threshold = arena_strdup(arena, threshold);
    ret->name = arena_strdup(arena, rule->query ? rule->query : rule->name ? rule->name : "");
    ret->id_text = arena_strdup(arena, uuid_format(&ret->id, id));
    ret->created_usec = rule_id_usec(&ret->id);
    ret->triggered_usec = serving_scale_fired_usec(api->serving->scale, &at->service->id,
                                                   at->index);
}

/* Those that clients of Backend.AI know: steps by a metric or a query. */
static bool rule_is_shown(const struct autoscale_rule *rule)
{
    return rule->is_step
           && (rule->signal == AUTOSCALE_METRIC || rule->signal == AUTOSCALE_PROMETHEUS);
}

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

/* A service that lives and that the caller may see, by its id, global or not. */
static const struct model_service *rule_find_service(const struct gql_call *call, const char *text,
                                                     struct aq_error *err)
{
    const struct gql_context *context = call->context;
    const char *type, *id = relay_global_id_parse(call->arena, text, &type);
    const struct model_service *s = core_find_service(context->api->core, id);

    if (s && serving_view_may(context->req, s))
        return s;
    (void)serving_view_set_unknown(id, err);
    return NULL;
}

/* -ENOENT. */
static int rule_find(const struct gql_call *call, const char *text, struct rule_place *ret,
                     struct aq_error *err)
{
    const struct gql_context *context = call->context;
    const char *type, *id_text = relay_global_id_parse(call->arena, text, &type);
    const struct core *core = context->api->core;
    struct uuid id, found;

    if (uuid_parse(id_text, &id) < 0)
        return aq_fail(err, EINVAL, "id: '%.64s' is not a UUID", id_text);
    for (const struct model_service *s = NULL;
         !arena_is_over(call->arena) && (s = core_next_service(core, s));) {
        struct rule_place at = { .service = s };

        if (!s->scaling || !serving_view_may(context->req, s)
            || rule_read_scaling(s, call->arena, &at.scaling, err) < 0)
            continue;
        for (; at.index < at.scaling.rule_count; at.index++) {
            const struct autoscale_rule *rule = &at.scaling.rules[at.index];

            found = rule_id_of(s, rule, at.index);
            if (rule_is_shown(rule) && uuid_equals(&found, &id)) {
                *ret = at;
                return 0;
            }
        }
    }
    return aq_fail_kind(err, ENOENT, "object-not-found", "there is no auto-scaling rule '%s'",
                        id_text);
}

static int rule_get_node(struct gql_call *call, const char *id, uint32_t type)
{
    struct rule_row *row = arena_alloc(call->arena, sizeof(*row));
    struct rule_place at;
    struct aq_error err = { 0 };

    if (rule_find(call, id, &at, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    rule_fill(call, &at, row);
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

    at.service = rule_find_service(
        call, gql_arg_text(call, SCHEMA_ARG_Queries_endpoint_auto_scaling_rule_nodes_endpoint),
        &err);
    if (!at.service || rule_read_scaling(at.service, call->arena, &at.scaling, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    rows = arena_array(call->arena, at.scaling.rule_count + 1, sizeof(*rows));
    for (; at.index < at.scaling.rule_count; at.index++)
        if (rule_is_shown(&at.scaling.rules[at.index]))
            rule_fill(call, &at, &rows[count++]);
    call->results[0] = gql_node_connect(call, &backendai_rule_node, rows, sizeof(*rows), count);
    return GQL_DONE;
}

/* ---- mutations ---- */

struct rule_mutation {
    struct gql_call *call;
    struct rule_row row; /* as it is then */
};

/* Absent, null or given. */
static struct gql_value rule_prop(const struct gql_call *call, const char *name)
{
    const struct gql_type *type = call->field->args[1].type.type;
    const struct gql_input_def *def = gql_input_find(type->inputs, type->input_count, name,
                                                     strlen(name));

    return def ? call->args[1].items[def - type->inputs] : (struct gql_value){ .kind = GQL_ABSENT };
}

static int rule_read_source(const struct gql_call *call, struct autoscale_rule *rule,
                            struct aq_error *err)
{
    struct gql_value source = rule_prop(call, "metric_source");
    struct gql_value name = rule_prop(call, "metric_name");
    const char *text = gql_is_given(name) ? name.text : rule->query ? rule->query : rule->name;
    uint32_t code;

    if (gql_is_given(name)
        && (!*name.text || strlen(name.text) > RULE_NAME_MAX
            || !decode_is_plain(name.text, strlen(name.text), false, &code)))
        return api_fail_param(err, "metric_name",
                              "must have 1 to %d characters, none of them a control character",
                              RULE_NAME_MAX);
    if (gql_is_given(source)) {
        if (source.kind != GQL_STRING)
            return api_fail_param(err, "metric_source", "must be a text such as KERNEL");
        rule->signal = strcasecmp(source.text, "prometheus") == 0 ? AUTOSCALE_PROMETHEUS
                                                                  : AUTOSCALE_METRIC;
        rule->source = strcasecmp(source.text, "kernel") == 0 ? "kernel" : "inference_framework";
        if (rule->signal == AUTOSCALE_METRIC && strcasecmp(source.text, rule->source) != 0)
            return api_fail_param(err, "metric_source",
                                  "'%.40s' is none of KERNEL, INFERENCE_FRAMEWORK, PROMETHEUS",
                                  source.text);
    }
    rule->query = rule->signal == AUTOSCALE_PROMETHEUS ? text : NULL;
    rule->name = rule->signal == AUTOSCALE_METRIC ? text : NULL;
    rule->source = rule->signal == AUTOSCALE_METRIC ? rule->source : NULL;
    rule->is_mean = rule->signal == AUTOSCALE_METRIC;
    return 0;
}

/* The comparator and the threshold, of which each may be given alone. */
static int rule_read_comparison(const struct gql_call *call, struct autoscale_rule *rule,
                                struct aq_error *err)
{
    static const char *const names[] = { "LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN",
                                         "GREATER_THAN_OR_EQUAL" };
    struct gql_value comparator = rule_prop(call, "comparator");
    struct gql_value threshold = rule_prop(call, "threshold");
    struct gql_value step = rule_prop(call, "step_size");
    const char *name = gql_is_given(comparator) && comparator.kind == GQL_STRING
                           ? comparator.text
                           : rule_comparator(rule);
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

/* -1 is "no bound", as the command line calls it; so is null. */
static int rule_read_bound(const struct gql_call *call, const char *name, int64_t *bound,
                           struct aq_error *err)
{
    struct gql_value value = rule_prop(call, name);

    if (value.kind == GQL_ABSENT)
        return 0;
    *bound = value.kind == GQL_NULL ? -1 : value.integer;
    if (*bound < -1 || *bound > MODEL_SERVICE_REPLICAS_MAX)
        return api_fail_param(err, name, "must be within 0..%d, or -1 or null for no bound",
                              MODEL_SERVICE_REPLICAS_MAX);
    return 0;
}

static int rule_read_props(const struct gql_call *call, struct autoscale_rule *rule,
                           struct aq_error *err)
{
    struct gql_value cooldown = rule_prop(call, "cooldown_seconds");
    int r;

    if ((r = rule_read_source(call, rule, err)) < 0
        || (r = rule_read_comparison(call, rule, err)) < 0
        || (r = rule_read_bound(call, "min_replicas", &rule->replicas_min, err)) < 0
        || (r = rule_read_bound(call, "max_replicas", &rule->replicas_max, err)) < 0)
        return r;
    if (gql_is_given(cooldown)) {
        if (cooldown.integer < 0 || cooldown.integer > 86400)
            return api_fail_param(err, "cooldown_seconds", "must be within 0..86400");
        rule->cooldown_usec = cooldown.integer * USEC_PER_SEC;
    }
    return 0;
}

static void rule_on_saved(void *data, int r, const struct aq_error *err)
{
    struct rule_mutation *m = data;

    (void)(r < 0 ? mutation_fail(m->call, err) : mutation_succeed(m->call, &m->row));
    gql_call_done(m->call);
}

/* What is written is read again first, which checks all of it. */
static int rule_save(struct gql_call *call, const struct rule_place *at, bool is_removed)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct rule_mutation *m = arena_alloc(call->arena, sizeof(*m));
    struct rule_place saved = { .service = at->service, .index = at->index };
    struct model_service changed;
    struct aq_error err = { 0 };

    autoscale_write(&at->scaling, &w);
    if (autoscale_parse(text.data, text.len, call->arena, &saved.scaling, &err) < 0)
        return mutation_fail(call, &err);
    m->call = call;
    if (!is_removed)
        rule_fill(call, &saved, &m->row);
    model_service_copy(&changed, at->service);
    free(changed.scaling);
    changed.scaling = saved.scaling.rule_count ? aq_strdup(text.data) : NULL;
    if (changed.scaling && serving_scale_rules(&changed, call->arena, &saved.scaling, &err) < 0) {
        model_service_done(&changed);
        return mutation_fail(call, &err);
    }
    endpoint_set_bounds(&changed, &saved.scaling);
    core_change_service(mutation_api(call)->core, &changed, NULL, mutation_who(call), rule_on_saved,
                        m);
    model_service_done(&changed);
    return GQL_LATER;
}

/* False after the call has failed. */
static bool rule_may_change(struct gql_call *call)
{
    if (!mutation_api(call)->is_frozen)
        return true;
    (void)gql_call_fail(call, "the manager is frozen by an administrator; try later");
    return false;
}

static int rule_create(struct gql_call *call)
{
    struct rule_place at = { .index = 0 };
    struct autoscale_rule *rules;
    struct aq_error err = { 0 };
    char id[UUID_TEXT_MAX];
    struct uuid made = uuid_ordered();

    if (!rule_may_change(call))
        return GQL_DONE;
    at.service = rule_find_service(call, gql_arg_text(call, 0), &err);
    if (!at.service || rule_read_scaling(at.service, call->arena, &at.scaling, &err) < 0)
        return mutation_fail(call, &err);
    at.index = at.scaling.rule_count++;
    rules = arena_array(call->arena, at.scaling.rule_count, sizeof(*rules));
    for (size_t i = 0; i < at.index; i++)
        rules[i] = at.scaling.rules[i];
    rules[at.index] = (struct autoscale_rule){ .id = uuid_format(&made, id),
                                               .is_step = true,
                                               .above = NAN,
                                               .below = NAN,
                                               .cooldown_usec = AUTOSCALE_COOLDOWN_USEC,
                                               .replicas_min = -1,
                                               .replicas_max = -1 };
    at.scaling.rules = rules;
    if (rule_read_props(call, &rules[at.index], &err) < 0)
        return mutation_fail(call, &err);
    return rule_save(call, &at, false);
}

static int rule_modify(struct gql_call *call)
{
    struct rule_place at;
    struct aq_error err = { 0 };

    if (!rule_may_change(call))
        return GQL_DONE;
    if (rule_find(call, gql_arg_text(call, 0), &at, &err) < 0
        || rule_read_props(call, &at.scaling.rules[at.index], &err) < 0)
        return mutation_fail(call, &err);
    return rule_save(call, &at, false);
}

static int rule_delete(struct gql_call *call)
{
    struct rule_place at;
    struct aq_error err = { 0 };

    if (!rule_may_change(call))
        return GQL_DONE;
    if (rule_find(call, gql_arg_text(call, 0), &at, &err) < 0)
        return mutation_fail(call, &err);
    memmove(&at.scaling.rules[at.index], &at.scaling.rules[at.index + 1],
            (--at.scaling.rule_count - at.index) * sizeof(*at.scaling.rules));
    return rule_save(call, &at, true);
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
