/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for variables: of input types, unique, defined, used, in their place. */
#include "graphql/validate/rules.h"

void rule_variable_is_input(struct validator *v, const struct ast_variable *variable)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (!variable->ref.type || ref_is_input(variable->ref))
        return;
    strbuf_addf(&text, "Variable \"$%s\" cannot be non-input type \"", variable->name.symbol->text);
    gql_ref_print(variable->ref, &text);
    strbuf_adds(&text, "\".");
    (void)rule_error_text(v, variable->type.at, &text);
}

void rule_unique_variables(struct validator *v, const struct ast_definition *def)
{
    const struct ast_variable *first = def->operation.variables;
    uint32_t once, twice;
    bool any = false;

    if (!first || !first->next)
        return;
    once = rule_mark(v);
    twice = rule_mark(v);
    for (const struct ast_variable *x = first; x; x = x->next) {
        uint32_t *mark = &v->marks[x->name.symbol->index];

        any |= *mark == once;
        *mark = *mark == once || *mark == twice ? twice : once;
    }
    for (const struct ast_variable *x = first; any && x && !v->stop; x = x->next) {
        struct error *error;

        if (v->marks[x->name.symbol->index] != twice)
            continue;
        v->marks[x->name.symbol->index] = 0; /* reported */
        error = rule_error(v, UINT32_MAX, "There can be only one variable named \"$%s\".",
                           x->name.symbol->text);
        for (const struct ast_variable *same = x; same && rule_spend(v, 1, x->at);
             same = same->next)
            if (same->name.symbol == x->name.symbol)
                rule_error_at(v, error, same->name.at);
    }
}

/* Whether a variable of type 'sub' may stand where 'super' is expected. */
static bool variables_is_subtype(struct gql_ref sub, struct gql_ref super)
{
    for (;;) {
        if (gql_ref_is_non_null(super) && !gql_ref_is_non_null(sub))
            return false;
        if (gql_ref_is_non_null(super))
            super = gql_ref_inner(super);
        if (gql_ref_is_non_null(sub))
            sub = gql_ref_inner(sub);
        if (gql_ref_is_list(super) != gql_ref_is_list(sub))
            return false;
        if (!gql_ref_is_list(super))
            return sub.type == super.type;
        super = gql_ref_inner(super);
        sub = gql_ref_inner(sub);
    }
}

static bool variables_is_allowed(const struct ast_variable *variable,
                                 const struct variable_usage *usage)
{
    struct gql_ref place = usage->type;
    bool has_default = variable->default_value && variable->default_value->kind != AST_NULL;

    if (gql_ref_is_non_null(place) && !gql_ref_is_non_null(variable->ref)) {
        if (!has_default && !usage->has_default)
            return false;
        place = gql_ref_inner(place);
    }
    return variables_is_subtype(variable->ref, place);
}

static void variables_check_position(struct validator *v, const struct ast_variable *variable,
                                     const struct variable_usage *usage)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct error *error;

    if (!usage->type.type || !variable->ref.type)
        return;
    if (!variables_is_allowed(variable, usage)) {
        strbuf_addf(&text, "Variable \"$%s\" of type \"", variable->name.symbol->text);
        gql_ref_print(variable->ref, &text);
        strbuf_adds(&text, "\" used in position expecting type \"");
        gql_ref_print(usage->type, &text);
        strbuf_adds(&text, "\".");
        error = rule_error_text(v, variable->at, &text);
        rule_error_at(v, error, usage->value->at);
    }
    if (usage->parent && usage->parent->one_of && !gql_ref_is_non_null(variable->ref)) {
        strbuf_clear(&text);
        strbuf_addf(&text, "Variable \"$%s\" is of type \"", variable->name.symbol->text);
        gql_ref_print(variable->ref, &text);
        strbuf_addf(&text, "\" but must be non-nullable to be used for OneOf Input Object \"%s\".",
                    usage->parent->name);
        error = rule_error_text(v, variable->at, &text);
        rule_error_at(v, error, usage->value->at);
    }
}

/* All usages that one operation reaches: its own, then those of each fragment. */
struct reached {
    const struct variable_usage **lists;
    uint32_t count;
};

static bool variables_gather_usages(struct validator *v, const struct ast_definition *def,
                                    struct reached *ret)
{
    const struct ast_fragment **fragments = NULL;
    uint32_t count = 0;

    if (v->doc->fragment_count && !(fragments = reached_fragments(v, def, &count)))
        return false;
    ret->lists = rule_alloc(v, count + 1u, sizeof(*ret->lists));
    ret->lists[0] = v->usages[def->index];
    for (uint32_t i = 0; i < count; i++)
        ret->lists[i + 1] = v->usages[fragments[i]->definition->index];
    ret->count = count + 1;
    for (uint32_t i = 0; i < ret->count; i++)
        for (const struct variable_usage *u = ret->lists[i]; u; u = u->next)
            if (!rule_spend(v, 1, def->at))
                return false;
    return true;
}

#define FOR_EACH_USAGE(reached, usage)                 \
    for (uint32_t i_ = 0; i_ < (reached)->count; i_++) \
        for (const struct variable_usage *usage = (reached)->lists[i_]; usage; usage = usage->next)

static void variables_check_defined(struct validator *v, const struct ast_definition *def,
                                    const struct reached *reached)
{
    FOR_EACH_USAGE(reached, usage)
    {
        const struct symbol *name = usage->value->symbol;
        struct error *error;

        if (v->variables[name->index])
            continue;
        error = def->name.symbol
                    ? rule_error(v, usage->value->at,
                                 "Variable \"$%s\" is not defined by operation \"%s\".", name->text,
                                 def->name.symbol->text)
                    : rule_error(v, usage->value->at, "Variable \"$%s\" is not defined.",
                                 name->text);
        rule_error_at(v, error, def->at);
    }
}

static void variables_check_used(struct validator *v, const struct ast_definition *def,
                                 const struct reached *reached)
{
    uint32_t used = rule_mark(v);

    FOR_EACH_USAGE(reached, usage)
    v->marks[usage->value->symbol->index] = used;
    for (const struct ast_variable *x = def->operation.variables; x; x = x->next) {
        if (v->marks[x->name.symbol->index] == used)
            continue;
        if (def->name.symbol)
            (void)rule_error(v, x->at, "Variable \"$%s\" is never used in operation \"%s\".",
                             x->name.symbol->text, def->name.symbol->text);
        else
            (void)rule_error(v, x->at, "Variable \"$%s\" is never used.", x->name.symbol->text);
    }
}

void rule_variable_usages(struct validator *v, const struct ast_definition *def)
{
    struct reached reached;

    if (v->stop || !variables_gather_usages(v, def, &reached))
        return;
    for (const struct ast_variable *x = def->operation.variables; x; x = x->next)
        v->variables[x->name.symbol->index] = x;
    variables_check_defined(v, def, &reached);
    variables_check_used(v, def, &reached);
    FOR_EACH_USAGE(&reached, usage)
    {
        const struct ast_variable *variable = v->variables[usage->value->symbol->index];

        if (variable)
            variables_check_position(v, variable, usage);
    }
    for (const struct ast_variable *x = def->operation.variables; x; x = x->next)
        v->variables[x->name.symbol->index] = NULL;
}
