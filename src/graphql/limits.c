/* SPDX-License-Identifier: Apache-2.0 */
/* How much work a document asks for, fragments spread. */
#include "graphql/limits.h"

/* What a selection set amounts to. A fragment is measured once, however often
 * it is spread; sums stop at UINT64_MAX.
 */
struct size {
    uint64_t fields, aliases, directives, cost;
    uint32_t depth;
    bool known;
};

struct measure {
    const struct gql_document *doc;
    const struct gql_limits *limits;
    struct errors *errors;
    struct gql_request *request; /* NULL: without cost */
    struct size *fragments;      /* by index */
};

static uint64_t limits_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t limits_multiply(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static bool limits_exceeded(struct measure *m, uint32_t at, const char *what, uint64_t max)
{
    (void)errors_add(m->errors, at, "Query has %s: at most %llu are allowed.", what,
                     (unsigned long long)max);
    return false;
}

static bool limits_check(struct measure *m, const struct size *size, uint32_t at)
{
    const struct gql_limits *l = m->limits;

    if (m->request)
        return !l->cost || size->cost <= l->cost
               || limits_exceeded(m, at, "too high a cost of list sizes and fields", l->cost);
    if (l->depth && size->depth > l->depth)
        return limits_exceeded(m, at, "too many levels of fields", l->depth);
    if (l->fields && size->fields > l->fields)
        return limits_exceeded(m, at, "too many fields", l->fields);
    if (l->aliases && size->aliases > l->aliases)
        return limits_exceeded(m, at, "too many aliases", l->aliases);
    if (l->directives && size->directives > l->directives)
        return limits_exceeded(m, at, "too many directives", l->directives);
    return true;
}

static const struct gql_resolver *limits_resolver(const struct measure *m,
                                                  const struct ast_selection *s)
{
    const struct gql_conf *conf = &m->request->engine->conf;

    return s->def && s->def->id < conf->schema->field_count && s->type->kind == GQL_TYPE_OBJECT
               ? &conf->resolvers[s->def->id]
               : NULL;
}

/* How many rows a field may give: its argument first, last or limit. */
static uint64_t limits_rows_of(const struct measure *m, const struct ast_selection *s)
{
    static const char *const names[] = { "first", "last", "limit" };
    struct coerce c = { &m->request->arena, m->request->engine->scalars, m->request->variables };
    const struct gql_resolver *resolver = limits_resolver(m, s);
    uint64_t rows = resolver ? AQ_MAX(resolver->rows, 1u) : 1;

    if (resolver && resolver->is_short)
        return rows;
    for (size_t i = 0; s->def && i < AQ_COUNT(names); i++) {
        const struct gql_input_def *def = gql_input_find(s->def->args, s->def->arg_count, names[i],
                                                         strlen(names[i]));
        const struct ast_argument *a = s->args;
        struct gql_value value = def ? def->default_value : gql_null();

        while (a && a->def != def)
            a = a->next;
        if (def && a
            && (!def->type.type->scalar || !coerce_literal(&c, a->value, def->type, &value)))
            continue;
        if (value.kind == GQL_INT && value.integer > 1)
            rows = AQ_MAX(rows, (uint64_t)value.integer);
    }
    return rows;
}

static uint64_t limits_own_cost(const struct measure *m, const struct ast_selection *s)
{
    const struct gql_resolver *resolver = limits_resolver(m, s);

    return resolver ? AQ_MAX(resolver->cost, 1u) : 1;
}

/* What is in a fragment counts where it is spread. */
static void limits_add_size(struct size *size, const struct size *more)
{
    size->depth = AQ_MAX(size->depth, more->depth);
    size->fields = limits_add(size->fields, more->fields);
    size->aliases = limits_add(size->aliases, more->aliases);
    size->directives = limits_add(size->directives, more->directives);
    size->cost = limits_add(size->cost, more->cost);
}

static bool limits_measure_set(struct measure *m, const struct ast_set *set, struct size *size);

static bool limits_measure_field(struct measure *m, const struct ast_selection *s,
                                 struct size *size)
{
    struct size below = { .depth = 0 };

    if (s->set && !limits_measure_set(m, s->set, &below))
        return false;
    below.depth++;
    below.fields = limits_add(below.fields, 1);
    below.aliases = limits_add(below.aliases, s->has_alias);
    if (m->request)
        below.cost = limits_add(limits_own_cost(m, s),
                                limits_multiply(below.cost, limits_rows_of(m, s)));
    limits_add_size(size, &below);
    return limits_check(m, size, s->at);
}

static bool limits_measure_fragment(struct measure *m, const struct ast_selection *s,
                                    struct size *size)
{
    const struct ast_fragment *fragment = s->name.symbol->fragment;
    struct size *known;

    if (!fragment)
        return true;
    known = &m->fragments[fragment->index];
    if (!known->known) {
        known->known = true;
        if (!limits_measure_set(m, fragment->definition->set, known))
            return false;
    }
    limits_add_size(size, known);
    return limits_check(m, size, s->at);
}

static bool limits_measure_set(struct measure *m, const struct ast_set *set, struct size *size)
{
    for (const struct ast_selection *s = set->first; s; s = s->next) {
        struct size inner = { .depth = 0 };

        for (const struct ast_directive *d = s->directives; d; d = d->next)
            size->directives = limits_add(size->directives, 1);
        if (s->kind == AST_FIELD && !limits_measure_field(m, s, size))
            return false;
        if (s->kind == AST_SPREAD && !limits_measure_fragment(m, s, size))
            return false;
        if (s->kind == AST_INLINE) {
            if (!limits_measure_set(m, s->set, &inner))
                return false;
            limits_add_size(size, &inner);
            if (!limits_check(m, size, s->at))
                return false;
        }
    }
    return true;
}

bool limits_check_size(const struct gql_document *doc, const struct gql_limits *limits,
                       struct errors *errors)
{
    struct measure m = { .doc = doc, .limits = limits, .errors = errors };

    if (!limits->depth && !limits->fields && !limits->aliases && !limits->directives)
        return true;
    m.fragments = arena_array(errors->arena, doc->fragment_count, sizeof(*m.fragments));
    for (const struct ast_definition *def = doc->first; def; def = def->next) {
        struct size size = { .depth = 0 };

        if (ast_is_operation(def) && !limits_measure_set(&m, def->set, &size))
            return false;
    }
    return true;
}

bool limits_check_cost(struct gql_request *r)
{
    const struct gql_limits *limits = &r->engine->conf.limits;
    struct measure m = { r->doc, limits, &r->errors, r, NULL };
    struct size size = { .depth = 0 };

    if (!limits->cost)
        return true;
    m.fragments = arena_array(&r->arena, r->doc->fragment_count, sizeof(*m.fragments));
    return limits_measure_set(&m, r->operation->set, &size);
}
