/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for directives: known, in their place, once, with their arguments. */
#include "graphql/validate/rules.h"
#include "graphql/hint.h"

void rule_unique_directives(struct validator *v, const struct ast_directive *directives)
{
    for (const struct ast_directive *d = directives; d && !v->stop; d = d->next) {
        const struct ast_directive *first = directives;
        struct error *error;

        if (!d->def || d->def->repeatable)
            continue;
        while (first->name.symbol != d->name.symbol && rule_spend(v, 1, d->at))
            first = first->next;
        if (first == d || v->stop)
            continue;
        error = rule_error(v, first->at,
                           "The directive \"@%s\" can only be used once at this location.",
                           d->def->name);
        rule_error_at(v, error, d->at);
    }
}

void rule_known_directive(struct validator *v, const struct ast_directive *directive,
                          enum gql_location location)
{
    const char *name = directive->name.symbol->text;

    if (!directive->def)
        (void)rule_error(v, directive->at, "Unknown directive \"@%s\".", name);
    else if (!(directive->def->locations & 1u << location))
        (void)rule_error(v, directive->at, "Directive \"@%s\" may not be used on %s.", name,
                         gql_location_names[location]);
}

void rule_directive_arguments(struct validator *v, const struct ast_directive *directive)
{
    const struct gql_directive_def *def = directive->def;

    for (const struct ast_argument *a = def ? directive->args : NULL; a; a = a->next) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        if (a->def)
            continue;
        strbuf_addf(&text, "Unknown argument \"%s\" on directive \"@%s\".", a->name.symbol->text,
                    def->name);
        hint_print_inputs(a->name.symbol->text, a->name.symbol->len, def->args, def->arg_count,
                          &text);
        (void)rule_error_text(v, a->name.at, &text);
    }
}

void rule_directive_required(struct validator *v, const struct ast_directive *directive)
{
    const struct gql_directive_def *def = directive->def;

    for (uint32_t i = 0; def && i < def->arg_count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        const struct ast_argument *arg = directive->args;

        if (!input_is_required(&def->args[i]))
            continue;
        while (arg && arg->def != &def->args[i])
            arg = arg->next;
        if (arg)
            continue;
        strbuf_addf(&text, "Directive \"@%s\" argument \"%s\" of type \"", def->name,
                    def->args[i].name);
        gql_ref_print(def->args[i].type, &text);
        strbuf_adds(&text, "\" is required, but it was not provided.");
        (void)rule_error_text(v, directive->at, &text);
    }
}
