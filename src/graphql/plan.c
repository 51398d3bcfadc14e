/* SPDX-License-Identifier: Apache-2.0 */
/* What a selection set amounts to for one type: its fields, merged, with arguments. */
#include "graphql/request.h"

static void plan_refuse(struct gql_request *r, struct refusal *refusal,
                        const struct strbuf *message, uint32_t at)
{
    refusal->message = arena_strndup(&r->arena, message->data, message->len);
    refusal->at = at;
}

/* The 'if' of a condition; false with a refusal if it has no value. */
static bool plan_read_condition(struct gql_request *r, const struct ast_directive *directive,
                                bool *ret, struct refusal *refusal)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf message = STRBUF_INIT;
    struct coerce c = { &r->arena, r->engine->scalars, r->variables };
    struct gql_value value;
    uint32_t at;

    if (!coerce_arguments(&c, directive->def->args, 1, directive->args, directive->at, &value,
                          &message, &at)) {
        plan_refuse(r, refusal, &message, at);
        return false;
    }
    *ret = value.kind == GQL_BOOL && value.boolean;
    return true;
}

bool plan_includes(struct gql_request *r, const struct ast_directive *directives,
                   struct refusal *refusal)
{
    const struct ast_directive *skip = NULL, *include = NULL;
    bool value;

    for (const struct ast_directive *d = directives; d; d = d->next) {
        if (d->def == r->engine->skip && !skip)
            skip = d;
        if (d->def == r->engine->include && !include)
            include = d;
    }
    if (skip && skip->def && (!plan_read_condition(r, skip, &value, refusal) || value))
        return false;
    if (include && include->def && (!plan_read_condition(r, include, &value, refusal) || !value))
        return false;
    return true;
}

static const struct gql_resolver *plan_resolver_of(const struct gql_engine *engine,
                                                   const struct gql_field_def *def)
{
    uint32_t own = engine->conf.schema->field_count;

    return def->id < own ? &engine->conf.resolvers[def->id] : &engine->resolvers[def->id - own];
}

static void plan_set_arguments(struct gql_request *r, struct plan_field *field,
                               const struct ast_selection *s)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf message = STRBUF_INIT;
    struct coerce c = { &r->arena, r->engine->scalars, r->variables };
    uint32_t at;

    field->args = request_alloc(r, field->def->arg_count, sizeof(*field->args));
    if (!coerce_arguments(&c, field->def->args, field->def->arg_count, s->args, s->at, field->args,
                          &message, &at))
        plan_refuse(r, &field->refusal, &message, at);
}

static const char *plan_make_label(struct gql_request *r, const struct symbol *key)
{
    char *label = request_alloc(r, key->len + 3u, 1);

    label[0] = '"';
    memcpy(label + 1, key->text, key->len);
    memcpy(label + 1 + key->len, "\":", 2);
    return label;
}

static struct plan_field *plan_grow(struct gql_request *r, struct field_plan *plan)
{
    if (plan->count == plan->cap) {
        uint32_t cap = plan->cap ? plan->cap * 2 : 8;
        struct plan_field *grown = request_alloc(r, cap, sizeof(*grown));

        if (plan->count)
            memcpy(grown, plan->fields, plan->count * sizeof(*grown));
        plan->fields = grown;
        plan->cap = cap;
    }
    return &plan->fields[plan->count];
}

/* Fields that the type does not have are left out, as graphql-js does. */
static void plan_add_field(struct gql_request *r, struct field_plan *plan,
                           const struct ast_selection *s)
{
    const struct gql_schema *schema = r->engine->conf.schema;
    uint32_t symbol = s->key.symbol->index;
    struct plan_node *node = request_alloc(r, 1, sizeof(*node));
    struct plan_field *field;

    node->field = s;
    if (r->symbol_marks[symbol] == r->mark) {
        field = &plan->fields[r->symbol_fields[symbol]];
        field->last_node->next = node;
        field->last_node = node;
        return;
    }
    field = plan_grow(r, plan);
    field->def = s->type == plan->type ? s->def : schema_field(schema, plan->type, s->name.symbol);
    if (!field->def)
        return;
    field->key = s->key.symbol->text;
    field->label = plan_make_label(r, s->key.symbol);
    field->label_len = s->key.symbol->len + 3;
    field->nodes = field->last_node = node;
    field->resolver = plan_resolver_of(r->engine, field->def);
    field->has_column = type_is_composite(field->def->type.type)
                        || field->resolver->how == GQL_HOW_CALL;
    if (field->def->arg_count)
        plan_set_arguments(r, field, s);
    r->symbol_marks[symbol] = r->mark;
    r->symbol_fields[symbol] = plan->count++;
}

static bool plan_applies(const struct gql_type *condition, const struct gql_type *type)
{
    return !condition || gql_type_is_subtype(type, condition);
}

static void plan_collect(struct gql_request *r, struct field_plan *plan, const struct ast_set *set)
{
    for (const struct ast_selection *s = set->first;
         s && !plan->refusal.message && !request_is_over(r); s = s->next) {
        const struct ast_fragment *fragment = NULL;

        if (s->kind == AST_SPREAD) {
            fragment = s->name.symbol->fragment;
            if (!fragment || r->fragment_marks[fragment->index] == r->mark)
                continue;
        }
        if (s->directives && !plan_includes(r, s->directives, &plan->refusal))
            continue;
        if (s->kind == AST_FIELD) {
            plan_add_field(r, plan, s);
        } else if (s->kind == AST_INLINE) {
            if (!s->name.symbol || plan_applies(s->type, plan->type))
                plan_collect(r, plan, s->set);
        } else {
            r->fragment_marks[fragment->index] = r->mark;
            if (plan_applies(fragment->type, plan->type))
                plan_collect(r, plan, fragment->definition->set);
        }
    }
}

struct field_plan *plan_new(struct gql_request *r, const struct gql_type *type,
                            const struct plan_node *nodes, const struct ast_set *set)
{
    struct field_plan *plan = request_alloc(r, 1, sizeof(*plan));

    plan->type = type;
    r->mark++;
    if (set)
        plan_collect(r, plan, set);
    for (; nodes; nodes = nodes->next)
        if (nodes->field->set)
            plan_collect(r, plan, nodes->field->set);
    return plan;
}

struct field_plan *plan_find(struct gql_request *r, struct plan_field *field,
                             const struct gql_type *type)
{
    struct field_plan **at = &field->plans;

    while (*at && (*at)->type != type)
        at = &(*at)->next;
    if (!*at)
        *at = plan_new(r, type, field->nodes, NULL);
    return *at;
}
