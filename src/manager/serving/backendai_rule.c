/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_rule.c - see backendai_rule.h */
#include "manager/serving/backendai_rule.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "graphql/relay.h"
#include "manager/call/decode.h"
#include "manager/call/graphql/mutation.h"
#include "manager/call/graphql/newer.h"
#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_scale.h"
#include "manager/serving/serving_view.h"

#define RULE_NAME_MAX 256 /* characters of a metric, or of a query */

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

int backendai_rule_read_scaling(const struct model_service *s, struct arena *arena,
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

const char *backendai_rule_comparator(const struct autoscale_rule *rule)
{
    if (isnan(rule->above))
        return rule->is_inclusive ? "LESS_THAN_OR_EQUAL" : "LESS_THAN";
    return rule->is_inclusive ? "GREATER_THAN_OR_EQUAL" : "GREATER_THAN";
}

static const char *rule_threshold(struct arena *arena, double value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%.15g", value);
    return isnan(value) ? NULL : arena_strdup(arena, text);
}

void backendai_rule_fill(const struct gql_call *call, const struct rule_place *at,
                         struct rule_row *ret)
{
    struct arena *arena = call->arena;
    const struct autoscale_rule *rule = &at->scaling.rules[at->index];
    bool is_below = isnan(rule->above);
    char id[UUID_TEXT_MAX];

    *ret = (struct rule_row){ .id = rule_id_of(at->service, rule, at->index),
                              .service_id = at->service->id,
                              .source = rule_source(rule),
                              .comparator = backendai_rule_comparator(rule),
                              .step = is_below ? rule->below_step : rule->above_step,
                              .cooldown_sec = rule->cooldown_usec / USEC_PER_SEC,
                              .min = rule->replicas_min,
                              .max = rule->replicas_max };
    ret->below = rule_threshold(arena, rule->below);
    ret->above = rule_threshold(arena, rule->above);
    ret->threshold = is_below ? ret->below : ret->above;
    ret->name = arena_strdup(arena, rule->query ? rule->query : rule->name ? rule->name : "");
    ret->id_text = arena_strdup(arena, uuid_format(&ret->id, id));
    ret->created_usec = rule_id_usec(&ret->id);
    ret->triggered_usec = serving_scale_fired_usec(at->service, at->index);
}

/* Those that clients of Backend.AI know: steps by a metric or a query. */
bool backendai_rule_is_shown(const struct autoscale_rule *rule)
{
    return rule->is_step
           && (rule->signal == AUTOSCALE_METRIC || rule->signal == AUTOSCALE_PROMETHEUS);
}

/* ---- one ---- */

/* A service that lives and that the caller may see, by its id, global or not. */
const struct model_service *backendai_rule_find_service(const struct gql_call *call,
                                                        const char *text, struct aq_error *err)
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
int backendai_rule_find(const struct gql_call *call, const char *text, struct rule_place *ret,
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
            || backendai_rule_read_scaling(s, call->arena, &at.scaling, err) < 0)
            continue;
        for (; at.index < at.scaling.rule_count; at.index++) {
            const struct autoscale_rule *rule = &at.scaling.rules[at.index];

            found = rule_id_of(s, rule, at.index);
            if (backendai_rule_is_shown(rule) && uuid_equals(&found, &id)) {
                *ret = at;
                return 0;
            }
        }
    }
    return aq_fail_kind(err, ENOENT, "object-not-found", "there is no auto-scaling rule '%s'",
                        id_text);
}

/* ---- what is given ---- */

/* The object that is given: the last argument. */
struct gql_value backendai_rule_prop(const struct gql_call *call, const char *name)
{
    const struct gql_input_def *arg = &call->field->args[call->field->arg_count - 1];
    const struct gql_type *type = arg->type.type;
    char snake[64];

    for (uint32_t i = 0; i < type->input_count; i++) {
        newer_snake_case(type->inputs[i].name, snake, sizeof(snake));
        if (strcmp(snake, name) == 0)
            return call->args[arg - call->field->args].items[i];
    }
    return (struct gql_value){ .kind = GQL_ABSENT };
}

int backendai_rule_read_source(const struct gql_call *call, struct autoscale_rule *rule,
                               struct aq_error *err)
{
    struct gql_value source = backendai_rule_prop(call, "metric_source");
    struct gql_value name = backendai_rule_prop(call, "metric_name");
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

/* -1 is "no bound", as the command line calls it; so is null. */
int backendai_rule_read_bound(const struct gql_call *call, const char *name, int64_t *bound,
                              struct aq_error *err)
{
    struct gql_value value = backendai_rule_prop(call, name);

    if (value.kind == GQL_ABSENT)
        return 0;
    *bound = value.kind == GQL_NULL ? -1 : value.integer;
    if (*bound < -1 || *bound > MODEL_SERVICE_REPLICAS_MAX)
        return api_fail_param(err, name, "must be within 0..%d, or -1 or null for no bound",
                              MODEL_SERVICE_REPLICAS_MAX);
    return 0;
}

/* ---- changes ---- */

struct rule_mutation {
    struct gql_call *call;
    struct rule_row row; /* as it is then */
};

static void rule_on_saved(void *data, int r, const struct aq_error *err)
{
    struct rule_mutation *m = data;

    (void)(r < 0 ? mutation_fail(m->call, err) : mutation_succeed(m->call, &m->row));
    gql_call_done(m->call);
}

/* What is written is read again first, which checks all of it. */
int backendai_rule_save(struct gql_call *call, const struct rule_place *at,
                        const struct uuid *removed)
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
    if (removed)
        m->row.id = *removed;
    else
        backendai_rule_fill(call, &saved, &m->row);
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
bool backendai_rule_may_change(struct gql_call *call)
{
    if (!mutation_api(call)->is_frozen)
        return true;
    (void)gql_call_fail(call, "the manager is frozen by an administrator; try later");
    return false;
}

int backendai_rule_add(struct gql_call *call, const char *service, struct rule_place *ret,
                       struct aq_error *err)
{
    struct autoscale_rule *rules;
    char id[UUID_TEXT_MAX];
    struct uuid made = uuid_ordered();

    *ret = (struct rule_place){ .service = backendai_rule_find_service(call, service, err) };
    if (!ret->service
        || backendai_rule_read_scaling(ret->service, call->arena, &ret->scaling, err) < 0)
        return -err->code;
    ret->index = ret->scaling.rule_count++;
    rules = arena_array(call->arena, ret->scaling.rule_count, sizeof(*rules));
    for (size_t i = 0; i < ret->index; i++)
        rules[i] = ret->scaling.rules[i];
    rules[ret->index] = (struct autoscale_rule){
        .id = arena_strdup(call->arena, uuid_format(&made, id)),
        .is_step = true,
        .above = NAN,
        .below = NAN,
        .cooldown_usec = AUTOSCALE_COOLDOWN_USEC,
        .replicas_min = -1,
        .replicas_max = -1,
    };
    ret->scaling.rules = rules;
    return 0;
}

int backendai_rule_remove(struct gql_call *call, const char *text)
{
    struct rule_place at;
    struct aq_error err = { 0 };
    struct uuid id;

    if (!backendai_rule_may_change(call))
        return GQL_DONE;
    if (backendai_rule_find(call, text, &at, &err) < 0)
        return mutation_fail(call, &err);
    id = rule_id_of(at.service, &at.scaling.rules[at.index], at.index);
    memmove(&at.scaling.rules[at.index], &at.scaling.rules[at.index + 1],
            (--at.scaling.rule_count - at.index) * sizeof(*at.scaling.rules));
    return backendai_rule_save(call, &at, &id);
}
