/* SPDX-License-Identifier: Apache-2.0 */
/* A document against a schema: every rule of the specification for executable documents, with
 * the messages, places and order of graphql-js.
 */
#include "graphql/validate/validate.h"

#include <stdarg.h>

#include "graphql/limits.h"
#include "graphql/validate/rules.h"

void *rule_alloc(struct validator *v, size_t count, size_t size)
{
    void *memory = arena_array(v->arena, count, size);

    v->stop |= arena_is_over(v->arena);
    return memory;
}

struct error *rule_error_text(struct validator *v, uint32_t at, const struct strbuf *text)
{
    if (v->stop)
        return NULL;
    if (v->errors->count >= VALIDATION_ERRORS_MAX) {
        v->stop = true;
        (void)errors_add(v->errors, UINT32_MAX,
                         "Too many validation errors, error limit reached. Validation aborted.");
        return NULL;
    }
    return errors_add_text(v->errors, at, text);
}

struct error *rule_error(struct validator *v, uint32_t at, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&text, fmt, args);
    va_end(args);
    return rule_error_text(v, at, &text);
}

void rule_error_at(struct validator *v, struct error *error, uint32_t at)
{
    if (error)
        error_add_place(v->errors, error, at);
}

bool rule_spend(struct validator *v, uint64_t steps, uint32_t at)
{
    if (v->stop)
        return false;
    if (steps <= v->work_left) {
        v->work_left -= steps;
        return true;
    }
    v->stop = true;
    (void)errors_add(v->errors, at, "Validation aborted.");
    return false;
}

uint32_t rule_mark(struct validator *v)
{
    return ++v->mark;
}

static void validate_visit_arguments(struct validator *v, const struct ast_argument *args,
                                     const struct ast_selection *field)
{
    for (const struct ast_argument *a = args; a && !v->stop; a = a->next) {
        struct gql_ref type = { NULL, 0 };

        if (a->def)
            type = a->def->type;
        if (field)
            rule_known_argument(v, field, a);
        rule_value(v, a->value, type, true);
    }
}

static void validate_visit_directives(struct validator *v, const struct ast_directive *directives,
                                      enum gql_location location)
{
    for (const struct ast_directive *d = directives; d && !v->stop; d = d->next) {
        rule_known_directive(v, d, location);
        rule_directive_arguments(v, d);
        rule_unique_arguments(v, d->args);
        validate_visit_arguments(v, d->args, NULL);
        rule_directive_required(v, d);
    }
}

static void validate_visit_set(struct validator *v, const struct ast_set *set,
                               const struct gql_type *parent);

static void validate_visit_field(struct validator *v, const struct ast_selection *s)
{
    rule_scalar_leaf(v, s);
    rule_known_field(v, s);
    rule_unique_directives(v, s->directives);
    rule_unique_arguments(v, s->args);
    rule_introspection_depth(v, s);
    validate_visit_arguments(v, s->args, s);
    validate_visit_directives(v, s->directives, LOCATION_FIELD);
    if (s->set)
        validate_visit_set(v, s->set, s->def ? s->def->type.type : NULL);
    rule_required_arguments(v, s);
}

static void validate_visit_inline(struct validator *v, const struct ast_selection *s,
                                  const struct gql_type *parent)
{
    rule_inline_on_composite(v, s);
    rule_possible_spread(v, s, parent);
    rule_unique_directives(v, s->directives);
    if (s->name.symbol)
        rule_known_type(v, &s->name);
    validate_visit_directives(v, s->directives, LOCATION_INLINE_FRAGMENT);
    validate_visit_set(v, s->set, s->type);
}

static void validate_visit_spread(struct validator *v, const struct ast_selection *s,
                                  const struct gql_type *parent)
{
    rule_known_fragment(v, s);
    rule_possible_spread(v, s, parent);
    rule_unique_directives(v, s->directives);
    validate_visit_directives(v, s->directives, LOCATION_FRAGMENT_SPREAD);
}

static void validate_visit_set(struct validator *v, const struct ast_set *set,
                               const struct gql_type *parent)
{
    if (parent && !type_is_composite(parent))
        parent = NULL;
    rule_overlapping_fields(v, set, parent);
    for (const struct ast_selection *s = set->first; s && !v->stop; s = s->next) {
        if (s->kind == AST_FIELD)
            validate_visit_field(v, s);
        else if (s->kind == AST_INLINE)
            validate_visit_inline(v, s, parent);
        else
            validate_visit_spread(v, s, parent);
    }
}

static void validate_visit_variable(struct validator *v, const struct ast_variable *variable)
{
    struct gql_ref type = variable->ref;

    rule_variable_is_input(v, variable);
    rule_unique_directives(v, variable->directives);
    rule_known_type(v, &variable->type.name);
    if (!ref_is_input(type))
        type.type = NULL;
    if (variable->default_value)
        rule_value(v, variable->default_value, type, true);
    validate_visit_directives(v, variable->directives, LOCATION_VARIABLE_DEFINITION);
}

static void validate_visit_operation(struct validator *v, const struct ast_definition *def)
{
    static const uint8_t locations[] = { LOCATION_QUERY, LOCATION_MUTATION, LOCATION_SUBSCRIPTION };

    rule_unique_operation_name(v, def);
    rule_lone_anonymous_operation(v, def);
    rule_single_field_subscription(v, def);
    rule_unique_variables(v, def);
    rule_unique_directives(v, def->directives);
    for (const struct ast_variable *x = def->operation.variables; x && !v->stop; x = x->next)
        validate_visit_variable(v, x);
    validate_visit_directives(v, def->directives, (enum gql_location)locations[def->kind]);
    validate_visit_set(v, def->set, def->operation.root);
    rule_variable_usages(v, def);
}

static void validate_visit_fragment(struct validator *v, const struct ast_definition *def)
{
    rule_fragment_on_composite(v, def);
    rule_unique_fragment_name(v, def);
    rule_no_cycles(v, def);
    rule_unique_directives(v, def->directives);
    rule_known_type(v, &def->fragment.condition);
    validate_visit_directives(v, def->directives, LOCATION_FRAGMENT_DEFINITION);
    validate_visit_set(v, def->set, def->fragment.type);
}

static void validate_refuse_type_system(struct validator *v)
{
    for (const struct ast_definition *def = v->doc->first; def; def = def->next) {
        if (def->kind != AST_TYPE_SYSTEM)
            continue;
        if (!def->name.symbol)
            (void)rule_error(v, def->at, "The schema definition is not executable.");
        else
            (void)rule_error(v, def->at, "The \"%s\" definition is not executable.",
                             def->name.symbol->text);
    }
}

static void validate_prepare(struct validator *v, struct gql_document *doc)
{
    size_t symbols = doc->symbol_count, definitions = doc->definition_count;

    v->usages = rule_alloc(v, definitions, sizeof(*v->usages));
    v->spreads = rule_alloc(v, definitions, sizeof(*v->spreads));
    v->named_operations = rule_alloc(v, symbols, sizeof(*v->named_operations));
    v->named_fragments = rule_alloc(v, symbols, sizeof(*v->named_fragments));
    v->variables = rule_alloc(v, symbols, sizeof(*v->variables));
    v->marks = rule_alloc(v, symbols, sizeof(*v->marks));
    document_annotate(doc, v->schema, v->arena, v->usages);
}

bool document_validate(struct gql_document *doc, const struct gql_conf *conf,
                       const gql_scalar_fn *scalars, struct errors *errors)
{
    const struct gql_limits *limits = &conf->limits;
    struct validator v = {
        .doc = doc,
        .schema = conf->schema,
        .scalars = scalars,
        .errors = errors,
        .arena = errors->arena,
        .work_left = limits->work ? limits->work : UINT64_MAX,
    };

    validate_prepare(&v, doc);
    validate_refuse_type_system(&v);
    for (const struct ast_definition *def = doc->first; def && !v.stop; def = def->next) {
        v.definition = def;
        if (ast_is_operation(def))
            validate_visit_operation(&v, v.operation = def);
        else if (def->kind == AST_FRAGMENT)
            validate_visit_fragment(&v, def);
    }
    if (!conf->is_lenient)
        rule_no_unused_fragments(&v);
    overlap_done(&v);
    return !v.stop && errors->count == 0 && limits_check_size(doc, limits, errors);
}
