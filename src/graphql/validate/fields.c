/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for fields, their arguments and names of types. */
#include "graphql/validate/rules.h"
#include "graphql/hint.h"

void rule_known_type(struct validator *v, const struct ast_name *name)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct hint hint;

    if (gql_type_find(v->schema, name->symbol->text, name->symbol->len))
        return;
    hint = hint_make(name->symbol->text, name->symbol->len);
    for (uint32_t i = 0; i < v->schema->type_count; i++)
        hint_offer(&hint, v->schema->types[i]->name);
    strbuf_addf(&text, "Unknown type \"%s\".", name->symbol->text);
    hint_print(&hint, "", &text);
    (void)rule_error_text(v, name->at, &text);
}

void rule_scalar_leaf(struct validator *v, const struct ast_selection *field)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *name = field->name.symbol->text;

    if (!field->def || type_is_leaf(field->def->type.type) == !field->set)
        return;
    strbuf_addf(&text, "Field \"%s\" ", name);
    strbuf_adds(&text, field->set ? "must not have a selection since type \"" : "of type \"");
    gql_ref_print(field->def->type, &text);
    if (field->set)
        strbuf_adds(&text, "\" has no subfields.");
    else
        strbuf_addf(&text, "\" must have a selection of subfields. Did you mean \"%s { ... }\"?",
                    name);
    (void)rule_error_text(v, field->set ? field->set->at : field->at, &text);
}

/* A type that has the field which an interface or union has not. */
struct candidate {
    const struct gql_type *type;
    uint32_t uses;
};

static bool fields_comes_before(const struct candidate *a, const struct candidate *b)
{
    if (a->uses != b->uses)
        return a->uses > b->uses;
    if (a->type->kind == GQL_TYPE_INTERFACE && gql_type_is_subtype(b->type, a->type))
        return true;
    if (b->type->kind == GQL_TYPE_INTERFACE && gql_type_is_subtype(a->type, b->type))
        return false;
    return hint_compare(a->type->name, b->type->name) < 0;
}

static void fields_count_use(struct candidate *candidates, uint32_t *count,
                             const struct gql_type *type)
{
    uint32_t i = 0;

    while (i < *count && candidates[i].type != type)
        i++;
    candidates[i].type = type;
    candidates[i].uses++;
    *count += i == *count;
}

/* Types to suggest an inline fragment on. Returns how many were printed. */
static uint32_t fields_hint_types(struct validator *v, const struct gql_type *type,
                                  const struct symbol *name, struct strbuf *out)
{
    struct candidate *candidates = rule_alloc(v, v->schema->type_count, sizeof(*candidates));
    const char *names[HINT_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < type->possible_count; i++) {
        const struct gql_type *possible = type->possible[i];

        if (!gql_field_find(possible, name->text, name->len))
            continue;
        fields_count_use(candidates, &count, possible);
        for (uint32_t n = 0; n < possible->interface_count; n++)
            if (gql_field_find(possible->interfaces[n], name->text, name->len))
                fields_count_use(candidates, &count, possible->interfaces[n]);
    }
    for (uint32_t i = 1; i < count; i++) {
        struct candidate c = candidates[i];
        uint32_t at = i;

        for (; at > 0 && fields_comes_before(&c, &candidates[at - 1]); at--)
            candidates[at] = candidates[at - 1];
        candidates[at] = c;
    }
    for (uint32_t i = 0; i < AQ_MIN(count, (uint32_t)HINT_MAX); i++)
        names[i] = candidates[i].type->name;
    hint_print_names(names, count, "to use an inline fragment on", out);
    return count;
}

void rule_known_field(struct validator *v, const struct ast_selection *field)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct symbol *name = field->name.symbol;
    const struct gql_type *type = field->type;
    struct hint hint;

    if (!type || field->def)
        return;
    strbuf_addf(&text, "Cannot query field \"%s\" on type \"%s\".", name->text, type->name);
    if (type->kind == GQL_TYPE_OBJECT || fields_hint_types(v, type, name, &text) == 0) {
        hint = hint_make(name->text, name->len);
        for (uint32_t i = 0; i < type->field_count; i++)
            hint_offer(&hint, type->fields[i].name);
        hint_print(&hint, "", &text);
    }
    (void)rule_error_text(v, field->at, &text);
}

void rule_known_argument(struct validator *v, const struct ast_selection *field,
                         const struct ast_argument *arg)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (arg->def || !field->def)
        return;
    strbuf_addf(&text, "Unknown argument \"%s\" on field \"%s.%s\".", arg->name.symbol->text,
                field->type->name, field->def->name);
    hint_print_inputs(arg->name.symbol->text, arg->name.symbol->len, field->def->args,
                      field->def->arg_count, &text);
    (void)rule_error_text(v, arg->name.at, &text);
}

void rule_unique_arguments(struct validator *v, const struct ast_argument *args)
{
    uint32_t once, twice;
    bool any = false;

    if (!args || !args->next)
        return;
    once = rule_mark(v);
    twice = rule_mark(v);
    for (const struct ast_argument *a = args; a; a = a->next) {
        uint32_t *mark = &v->marks[a->name.symbol->index];

        any |= *mark == once;
        *mark = *mark == once || *mark == twice ? twice : once;
    }
    for (const struct ast_argument *a = args; any && a && !v->stop; a = a->next) {
        struct error *error;

        if (v->marks[a->name.symbol->index] != twice)
            continue;
        v->marks[a->name.symbol->index] = 0; /* reported */
        error = rule_error(v, UINT32_MAX, "There can be only one argument named \"%s\".",
                           a->name.symbol->text);
        for (const struct ast_argument *same = a; same && rule_spend(v, 1, a->name.at);
             same = same->next)
            if (same->name.symbol == a->name.symbol)
                rule_error_at(v, error, same->name.at);
    }
}

void rule_required_arguments(struct validator *v, const struct ast_selection *field)
{
    for (uint32_t i = 0; field->def && i < field->def->arg_count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        const struct gql_input_def *def = &field->def->args[i];
        const struct ast_argument *arg = field->args;

        if (!input_is_required(def))
            continue;
        while (arg && arg->def != def)
            arg = arg->next;
        if (arg)
            continue;
        strbuf_addf(&text, "Field \"%s\" argument \"%s\" of type \"", field->def->name, def->name);
        gql_ref_print(def->type, &text);
        strbuf_adds(&text, "\" is required, but it was not provided.");
        (void)rule_error_text(v, field->at, &text);
    }
}
