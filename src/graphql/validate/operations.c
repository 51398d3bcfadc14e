/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for operations as a whole, and for how deep introspection may go. */
#include "graphql/validate/rules.h"

void rule_unique_operation_name(struct validator *v, const struct ast_definition *def)
{
    const struct ast_name **known;
    struct error *error;

    if (!def->name.symbol)
        return;
    known = &v->named_operations[def->name.symbol->index];
    if (!*known) {
        *known = &def->name;
        return;
    }
    error = rule_error(v, (*known)->at, "There can be only one operation named \"%s\".",
                       def->name.symbol->text);
    rule_error_at(v, error, def->name.at);
}

void rule_lone_anonymous_operation(struct validator *v, const struct ast_definition *def)
{
    if (!def->name.symbol && v->doc->operation_count > 1)
        (void)rule_error(v, def->at,
                         "This anonymous operation must be the only defined operation.");
}

/* The fields of a subscription, fragments spread. */
struct subscription {
    struct validator *v;
    const struct gql_type *root;
    const struct ast_selection **fields;
    uint32_t count, cap;
    bool *fragments; /* seen, by index */
};

/* Whether a condition says "never", without variables. */
static bool operations_is_left_out(const struct ast_selection *s)
{
    for (const struct ast_directive *d = s->directives; d; d = d->next) {
        bool skip = strcmp(d->name.symbol->text, "skip") == 0;

        if (!skip && strcmp(d->name.symbol->text, "include") != 0)
            continue;
        for (const struct ast_argument *a = d->args; a; a = a->next)
            if (a->value->kind == AST_BOOLEAN && a->value->boolean == skip)
                return true;
    }
    return false;
}

static void operations_add_subscription_field(struct subscription *sub,
                                              const struct ast_selection *s)
{
    if (sub->count == sub->cap) {
        uint32_t cap = sub->cap ? sub->cap * 2 : 8;
        const struct ast_selection **grown = rule_alloc(sub->v, cap, sizeof(*grown));

        if (sub->count)
            memcpy(grown, sub->fields, sub->count * sizeof(*grown));
        sub->fields = grown;
        sub->cap = cap;
    }
    sub->fields[sub->count++] = s;
}

static void operations_collect_subscription(struct subscription *sub, const struct ast_set *set)
{
    for (const struct ast_selection *s = set->first; s && !sub->v->stop; s = s->next) {
        const struct ast_fragment *fragment = s->kind == AST_SPREAD ? s->name.symbol->fragment
                                                                    : NULL;

        if (!rule_spend(sub->v, 1, s->at) || operations_is_left_out(s))
            continue;
        if (s->kind == AST_FIELD)
            operations_add_subscription_field(sub, s);
        if (s->kind == AST_INLINE
            && (!s->name.symbol || (s->type && gql_type_is_subtype(sub->root, s->type))))
            operations_collect_subscription(sub, s->set);
        if (!fragment || sub->fragments[fragment->index])
            continue;
        sub->fragments[fragment->index] = true;
        if (fragment->type && gql_type_is_subtype(sub->root, fragment->type))
            operations_collect_subscription(sub, fragment->definition->set);
    }
}

static bool operations_is_first_of_key(const struct subscription *sub, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (sub->fields[i]->key.symbol == sub->fields[index]->key.symbol)
            return false;
    return true;
}

/* All fields with the same key as the one at 'index', which is the first of them. */
static void operations_add_places(struct subscription *sub, struct error *error, uint32_t index)
{
    for (uint32_t i = index; i < sub->count; i++)
        if (sub->fields[i]->key.symbol == sub->fields[index]->key.symbol)
            rule_error_at(sub->v, error, sub->fields[i]->at);
}

static void operations_check_subscription(struct subscription *sub,
                                          const struct ast_definition *def)
{
    const char *who = def->name.symbol ? "Subscription \"" : "Anonymous Subscription";
    const char *name = def->name.symbol ? def->name.symbol->text : "";
    const char *quote = def->name.symbol ? "\"" : "";
    struct error *error = NULL;

    for (uint32_t i = 1; i < sub->count; i++) {
        if (!operations_is_first_of_key(sub, i))
            continue;
        if (!error)
            error = rule_error(sub->v, UINT32_MAX, "%s%s%s must select only one top level field.",
                               who, name, quote);
        operations_add_places(sub, error, i);
    }
    for (uint32_t i = 0; i < sub->count; i++) {
        if (strncmp(sub->fields[i]->name.symbol->text, "__", 2) != 0
            || !operations_is_first_of_key(sub, i))
            continue;
        error = rule_error(sub->v, UINT32_MAX,
                           "%s%s%s must not select an introspection top level field.", who, name,
                           quote);
        operations_add_places(sub, error, i);
    }
}

void rule_single_field_subscription(struct validator *v, const struct ast_definition *def)
{
    struct subscription sub = { .v = v, .root = v->schema->subscription };

    if (def->kind != AST_SUBSCRIPTION || !sub.root)
        return;
    sub.fragments = rule_alloc(v, v->doc->fragment_count, sizeof(*sub.fragments));
    operations_collect_subscription(&sub, def->set);
    if (rule_spend(v, (uint64_t)sub.count * sub.count, def->at))
        operations_check_subscription(&sub, def);
}

/* How deep lists of introspection may lie in each other: introspection's types
 * refer to each other, so that a short query could ask for an endless reply.
 */
#define LISTS_DEPTH_MAX 3
#define NEVER UINT32_MAX

/* By fragment: the depths of lists in front of it for which it is known. */
struct introspection_depth {
    uint32_t *fine, *exceeded; /* + 1; 0 = not yet */
    uint32_t *visited, *round; /* of the check at hand */
    uint32_t rounds;
};

static bool operations_is_too_deep(struct validator *v, const struct ast_selection *s,
                                   uint32_t depth);

static bool operations_set_is_too_deep(struct validator *v, const struct ast_set *set,
                                       uint32_t depth)
{
    for (const struct ast_selection *s = set ? set->first : NULL; s; s = s->next)
        if (!rule_spend(v, 1, s->at) || operations_is_too_deep(v, s, depth))
            return true;
    return false;
}

static bool operations_fragment_is_too_deep(struct validator *v,
                                            const struct ast_fragment *fragment, uint32_t depth)
{
    struct introspection_depth *d = v->introspection;
    uint32_t i = fragment->index;
    bool seen = d->round[i] == d->rounds;

    if (d->exceeded[i] && d->exceeded[i] - 1 <= depth)
        return true;
    if ((seen && d->visited[i] >= depth) || (d->fine[i] && d->fine[i] - 1 >= depth))
        return false;
    d->round[i] = d->rounds;
    d->visited[i] = depth;
    if (operations_set_is_too_deep(v, fragment->definition->set, depth)) {
        d->exceeded[i] = depth + 1;
        return true;
    }
    d->fine[i] = depth + 1;
    return false;
}

static bool operations_is_too_deep(struct validator *v, const struct ast_selection *s,
                                   uint32_t depth)
{
    static const char *const lists[] = { "fields", "interfaces", "possibleTypes", "inputFields" };

    if (s->kind == AST_SPREAD)
        return s->name.symbol->fragment
               && operations_fragment_is_too_deep(v, s->name.symbol->fragment, depth);
    for (size_t i = 0; s->kind == AST_FIELD && i < AQ_COUNT(lists); i++)
        depth += strcmp(s->name.symbol->text, lists[i]) == 0;
    return depth >= LISTS_DEPTH_MAX || operations_set_is_too_deep(v, s->set, depth);
}

static void operations_prepare_introspection(struct validator *v)
{
    size_t count = v->doc->fragment_count;
    struct introspection_depth *d;

    if (v->introspection)
        return;
    d = rule_alloc(v, 1, sizeof(*d));
    d->fine = rule_alloc(v, count, sizeof(uint32_t));
    d->exceeded = rule_alloc(v, count, sizeof(uint32_t));
    d->visited = rule_alloc(v, count, sizeof(uint32_t));
    d->round = rule_alloc(v, count, sizeof(uint32_t));
    v->introspection = d;
}

void rule_introspection_depth(struct validator *v, const struct ast_selection *field)
{
    const char *name = field->name.symbol->text;

    if (strcmp(name, "__schema") != 0 && strcmp(name, "__type") != 0)
        return;
    operations_prepare_introspection(v);
    v->introspection->rounds++;
    if (operations_is_too_deep(v, field, 0))
        (void)rule_error(v, field->at, "Maximum introspection depth exceeded");
}
