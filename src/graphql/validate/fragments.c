/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for fragments: known, unique, used, possible, not in circles. */
#include "graphql/validate/rules.h"

void rule_inline_on_composite(struct validator *v, const struct ast_selection *s)
{
    if (s->name.symbol && s->type && !type_is_composite(s->type))
        (void)rule_error(v, s->name.at, "Fragment cannot condition on non composite type \"%s\".",
                         s->type->name);
}

void rule_fragment_on_composite(struct validator *v, const struct ast_definition *def)
{
    const struct gql_type *type = def->fragment.type;

    if (type && !type_is_composite(type))
        (void)rule_error(v, def->fragment.condition.at,
                         "Fragment \"%s\" cannot condition on non composite type \"%s\".",
                         def->name.symbol->text, type->name);
}

void rule_unique_fragment_name(struct validator *v, const struct ast_definition *def)
{
    const struct ast_name **known = &v->named_fragments[def->name.symbol->index];
    struct error *error;

    if (!*known) {
        *known = &def->name;
        return;
    }
    error = rule_error(v, (*known)->at, "There can be only one fragment named \"%s\".",
                       def->name.symbol->text);
    rule_error_at(v, error, def->name.at);
}

void rule_known_fragment(struct validator *v, const struct ast_selection *spread)
{
    if (!spread->name.symbol->fragment)
        (void)rule_error(v, spread->name.at, "Unknown fragment \"%s\".", spread->name.symbol->text);
}

/* Whether an object can be of both types. */
static bool fragments_overlap(const struct gql_type *a, const struct gql_type *b)
{
    if (a == b)
        return true;
    if (a->kind == GQL_TYPE_OBJECT)
        return gql_type_is_subtype(a, b);
    for (uint32_t i = 0; i < a->possible_count; i++)
        if (gql_type_is_subtype(a->possible[i], b))
            return true;
    return false;
}

void rule_possible_spread(struct validator *v, const struct ast_selection *s,
                          const struct gql_type *parent)
{
    const struct ast_fragment *fragment = s->kind == AST_SPREAD ? s->name.symbol->fragment : NULL;
    const struct gql_type *type = s->kind == AST_INLINE ? s->type
                                  : fragment            ? fragment->type
                                                        : NULL;
    bool named = fragment != NULL;

    if (!parent || !type || !type_is_composite(type) || fragments_overlap(type, parent))
        return;
    (void)rule_error(v, s->at,
                     "Fragment %s%s%scannot be spread here as objects of type \"%s\" can never be "
                     "of type \"%s\".",
                     named ? "\"" : "", named ? s->name.symbol->text : "", named ? "\" " : "",
                     parent->name, type->name);
}

struct set_stack {
    const struct ast_set **items;
    uint32_t count, cap;
};

static void fragments_push_set(struct validator *v, struct set_stack *stack,
                               const struct ast_set *set)
{
    if (stack->count == stack->cap) {
        uint32_t cap = stack->cap ? stack->cap * 2 : 16;
        const struct ast_set **grown = rule_alloc(v, cap, sizeof(*grown));

        if (stack->count)
            memcpy(grown, stack->items, stack->count * sizeof(*grown));
        stack->items = grown;
        stack->cap = cap;
    }
    stack->items[stack->count++] = set;
}

/* Spreads of a set and all sets in it, the last set first, into 'items' or only counted. */
static uint32_t fragments_list_spreads(struct validator *v, const struct ast_set *set,
                                       const struct ast_selection **items)
{
    struct set_stack stack = { .items = NULL };
    uint32_t count = 0;

    fragments_push_set(v, &stack, set);
    while (stack.count > 0 && !v->stop) {
        set = stack.items[--stack.count];
        for (const struct ast_selection *s = set->first; s; s = s->next) {
            if (s->kind != AST_SPREAD) {
                if (s->set)
                    fragments_push_set(v, &stack, s->set);
                continue;
            }
            if (items)
                items[count] = s;
            count++;
        }
    }
    return count;
}

const struct spreads *definition_spreads(struct validator *v, const struct ast_definition *def)
{
    struct spreads *spreads = &v->spreads[def->index];

    if (spreads->known)
        return spreads;
    spreads->known = true;
    if (v->doc->fragment_count == 0)
        return spreads;
    spreads->count = fragments_list_spreads(v, def->set, NULL);
    spreads->items = rule_alloc(v, spreads->count, sizeof(*spreads->items));
    (void)fragments_list_spreads(v, def->set, spreads->items);
    if (v->stop)
        spreads->count = 0; /* of which some are missing */
    return spreads;
}

/* The way to the fragment at hand, for messages about circles. */
struct cycles {
    bool *visited;      /* by symbol */
    uint32_t *position; /* + 1 in the path, by symbol */
    const struct ast_selection **path;
    uint32_t depth, cap;
};

static void fragments_push_path(struct validator *v, const struct ast_selection *spread)
{
    struct cycles *c = v->cycles;

    if (c->depth == c->cap) {
        uint32_t cap = c->cap ? c->cap * 2 : 16;
        const struct ast_selection **grown = rule_alloc(v, cap, sizeof(*grown));

        if (c->depth)
            memcpy(grown, c->path, c->depth * sizeof(*grown));
        c->path = grown;
        c->cap = cap;
    }
    c->path[c->depth++] = spread;
}

static void fragments_report_cycle(struct validator *v, uint32_t from)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct cycles *c = v->cycles;
    struct error *error;

    strbuf_addf(&text, "Cannot spread fragment \"%s\" within itself",
                c->path[c->depth - 1]->name.symbol->text);
    for (uint32_t i = from; i + 1 < c->depth; i++)
        strbuf_addf(&text, "%s\"%s\"", i == from ? " via " : ", ", c->path[i]->name.symbol->text);
    strbuf_addc(&text, '.');
    error = rule_error_text(v, UINT32_MAX, &text);
    for (uint32_t i = from; i < c->depth; i++)
        rule_error_at(v, error, c->path[i]->at);
}

static void fragments_find_cycles(struct validator *v, const struct ast_definition *def)
{
    struct cycles *c = v->cycles;
    uint32_t symbol = def->name.symbol->index;
    const struct spreads *spreads;

    if (c->visited[symbol])
        return;
    c->visited[symbol] = true;
    spreads = definition_spreads(v, def);
    c->position[symbol] = c->depth + 1;
    for (uint32_t i = 0; i < spreads->count && !v->stop; i++) {
        const struct symbol *name = spreads->items[i]->name.symbol;
        uint32_t position = c->position[name->index];

        if (!rule_spend(v, 1, spreads->items[i]->at))
            return;
        fragments_push_path(v, spreads->items[i]);
        if (position > 0)
            fragments_report_cycle(v, position - 1);
        else if (name->fragment && c->depth < RULE_DEPTH_MAX)
            fragments_find_cycles(v, name->fragment->definition);
        else if (name->fragment)
            (void)rule_spend(v, UINT64_MAX, spreads->items[i]->at);
        c->depth--;
    }
    c->position[symbol] = 0;
}

void rule_no_cycles(struct validator *v, const struct ast_definition *def)
{
    if (!v->cycles) {
        struct cycles *c = rule_alloc(v, 1, sizeof(*c));

        c->visited = rule_alloc(v, v->doc->symbol_count, sizeof(*c->visited));
        c->position = rule_alloc(v, v->doc->symbol_count, sizeof(*c->position));
        v->cycles = c;
    }
    if (!v->stop)
        fragments_find_cycles(v, def);
}

/* The fragments reached, and those of them that are still to be looked into. */
struct reach {
    const struct ast_fragment **list, **stack;
    uint32_t count, depth;
};

static bool fragments_reach(struct validator *v, const struct ast_definition *def, struct reach *r)
{
    const struct spreads *spreads = definition_spreads(v, def);

    if (!rule_spend(v, spreads->count, def->at))
        return false;
    for (uint32_t i = 0; i < spreads->count; i++) {
        const struct symbol *name = spreads->items[i]->name.symbol;

        if (v->marks[name->index] == v->mark)
            continue;
        v->marks[name->index] = v->mark;
        if (name->fragment)
            r->stack[r->depth++] = r->list[r->count++] = name->fragment;
    }
    return true;
}

const struct ast_fragment **reached_fragments(struct validator *v,
                                              const struct ast_definition *only,
                                              uint32_t *ret_count)
{
    struct reach r = { .count = 0 };

    r.list = rule_alloc(v, v->doc->fragment_count, sizeof(*r.list));
    r.stack = rule_alloc(v, v->doc->fragment_count, sizeof(*r.stack));
    if (v->stop)
        return NULL;
    (void)rule_mark(v);
    for (const struct ast_definition *def = v->doc->first; def; def = def->next)
        if (ast_is_operation(def) && (!only || def == only) && !fragments_reach(v, def, &r))
            return NULL;
    while (r.depth > 0)
        if (!fragments_reach(v, r.stack[--r.depth]->definition, &r))
            return NULL;
    *ret_count = r.count;
    return r.list;
}

void rule_no_unused_fragments(struct validator *v)
{
    uint32_t count;

    if (v->doc->fragment_count == 0 || v->stop || !reached_fragments(v, NULL, &count))
        return;
    for (const struct ast_definition *def = v->doc->first; def; def = def->next)
        if (def->kind == AST_FRAGMENT && v->marks[def->name.symbol->index] != v->mark)
            (void)rule_error(v, def->at, "Fragment \"%s\" is never used.", def->name.symbol->text);
}
