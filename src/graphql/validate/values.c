/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for literals: of the right type, and no field of an object twice. */
#include "graphql/print.h"
#include "graphql/validate/rules.h"
#include "graphql/hint.h"

static void values_expected(struct validator *v, const struct ast_value *value, struct gql_ref type,
                            const char *reason)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_adds(&text, "Expected value of type \"");
    gql_ref_print(type, &text);
    strbuf_adds(&text, "\", found ");
    print_value(value, &text);
    if (reason)
        strbuf_addf(&text, "; %s", reason);
    else
        strbuf_addc(&text, '.');
    (void)rule_error_text(v, value->at, &text);
}

/* A literal that stands for a scalar or enum, or should. */
static void values_check_leaf(struct validator *v, const struct ast_value *value,
                              struct gql_ref type)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf message = STRBUF_INIT;
    struct coerce c = { .arena = v->arena, .scalars = v->scalars };
    struct gql_value ignored;
    bool whole = false;

    if (!type.type)
        return;
    if (!type_is_leaf(type.type)) {
        values_expected(v, value, type, NULL);
    } else if (!coerce_leaf_literal(&c, value, type.type, &ignored, &message, &whole)) {
        if (whole)
            (void)rule_error_text(v, value->at, &message);
        else
            values_expected(v, value, type, message.data);
    }
}

/* The field of that name that counts: the last one. */
static const struct ast_argument *values_field_for(const struct ast_value *object,
                                                   const struct gql_input_def *def)
{
    const struct ast_argument *found = NULL;

    for (const struct ast_argument *f = object->fields; f; f = f->next)
        if (f->def == def)
            found = f;
    return found;
}

/* Whether the last operation (as graphql-js has it) defines the variable as nullable. */
static bool values_is_nullable_variable(const struct validator *v, const struct symbol *name)
{
    const struct ast_variable *found = NULL;

    for (const struct ast_variable *x = v->operation ? v->operation->operation.variables : NULL; x;
         x = x->next)
        if (x->name.symbol == name)
            found = x;
    return found && (found->type.wraps & 3) != GQL_WRAP_NON_NULL;
}

static void values_check_one_of(struct validator *v, const struct ast_value *value,
                                const struct gql_type *type)
{
    const struct ast_argument *last = value->fields;
    bool one = last != NULL;

    for (const struct ast_argument *f = value->fields; f; f = f->next) {
        one &= f->name.symbol == value->fields->name.symbol;
        last = f;
    }
    if (!one)
        (void)rule_error(v, value->at, "OneOf Input Object \"%s\" must specify exactly one key.",
                         type->name);
    else if (last->value->kind == AST_NULL)
        (void)rule_error(v, value->at, "Field \"%s.%s\" must be non-null.", type->name,
                         last->name.symbol->text);
    else if (last->value->kind == AST_VARIABLE
             && values_is_nullable_variable(v, last->value->symbol))
        (void)rule_error(v, value->at,
                         "Variable \"%s\" must be non-nullable to be used for OneOf Input Object "
                         "\"%s\".",
                         last->value->symbol->text, type->name);
}

static void values_check_object(struct validator *v, const struct ast_value *value,
                                const struct gql_type *type)
{
    for (uint32_t i = 0; i < type->input_count && rule_spend(v, value->count / 8, value->at); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        const struct gql_input_def *def = &type->inputs[i];

        if (!input_is_required(def) || values_field_for(value, def))
            continue;
        strbuf_addf(&text, "Field \"%s.%s\" of required type \"", type->name, def->name);
        gql_ref_print(def->type, &text);
        strbuf_adds(&text, "\" was not provided.");
        (void)rule_error_text(v, value->at, &text);
    }
    if (type->one_of)
        values_check_one_of(v, value, type);
}

static void values_check_known_field(struct validator *v, const struct ast_argument *field,
                                     const struct gql_type *type)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_addf(&text, "Field \"%s\" is not defined by type \"%s\".", field->name.symbol->text,
                type->name);
    hint_print_inputs(field->name.symbol->text, field->name.symbol->len, type->inputs,
                      type->input_count, &text);
    (void)rule_error_text(v, field->name.at, &text);
}

static void values_check_unique(struct validator *v, const struct ast_value *object,
                                const struct ast_argument *field)
{
    const struct ast_argument *first = object->fields;
    struct error *error;

    while (first->name.symbol != field->name.symbol) {
        if (!rule_spend(v, 1, field->name.at))
            return;
        first = first->next;
    }
    if (first == field)
        return;
    error = rule_error(v, first->name.at, "There can be only one input field named \"%s\".",
                       field->name.symbol->text);
    rule_error_at(v, error, field->name.at);
}

static void values_visit_object(struct validator *v, const struct ast_value *value,
                                struct gql_ref type, bool check)
{
    bool is_input = type.type && type.type->kind == GQL_TYPE_INPUT;

    if (check && is_input)
        values_check_object(v, value, type.type);
    else if (check)
        values_check_leaf(v, value, type);
    check = check && is_input;
    for (const struct ast_argument *f = value->fields; f && !v->stop; f = f->next) {
        struct gql_ref inner = { NULL, 0 };

        if (f->def)
            inner = f->def->type;
        else if (check)
            values_check_known_field(v, f, type.type);
        values_check_unique(v, value, f);
        rule_value(v, f->value, inner, check);
    }
}

void rule_value(struct validator *v, const struct ast_value *value, struct gql_ref type, bool check)
{
    struct gql_ref item = type.type ? ref_item(type) : type;

    if (v->stop)
        return;
    switch ((enum ast_value_kind)value->kind) {
    case AST_VARIABLE:
        break;
    case AST_NULL:
        if (check && type.type && gql_ref_is_non_null(type))
            values_expected(v, value, type, NULL);
        break;
    case AST_LIST:
        if (check && !(type.type && gql_ref_is_list(gql_ref_nullable(type)))) {
            values_check_leaf(v, value, item);
            check = false;
        }
        for (const struct ast_value *i = value->items; i && !v->stop; i = i->next)
            rule_value(v, i, item, check);
        break;
    case AST_OBJECT:
        values_visit_object(v, value, type, check);
        break;
    default:
        if (check)
            values_check_leaf(v, value, type);
        break;
    }
}
