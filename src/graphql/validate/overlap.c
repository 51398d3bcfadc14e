/* SPDX-License-Identifier: Apache-2.0 */
/* Fields with the same key in a reply must be the same field.
 *
 * The algorithm of graphql-js (OverlappingFieldsCanBeMerged): fields of a
 * selection set are grouped by key, with those of inline fragments; spread
 * fragments are compared pair by pair, each pair once. Every comparison is
 * counted, so that no document takes forever.
 */
#include "base/map.h"
#include "graphql/validate/rules.h"

/* So much is said about one conflict, and so many places are named. */
#define DETAIL_MAX 1000
#define PLACES_MAX 20

struct details {
    const struct gql_type *parent;
    const struct ast_selection *node;
    const struct gql_field_def *def; /* NULL: unknown, or a meta field */
    bool simple;                     /* no arguments, no selection */
    struct details *next;
};

struct overlap_group {
    const struct symbol *key;
    struct details *first, *last;
    struct overlap_group *next;
};

struct spread_name {
    const struct symbol *name;
    struct spread_name *next;
};

/* The fields of one selection set and the fragments it spreads. */
struct collected {
    struct overlap_group *first, *last;
    uint32_t count;
    struct overlap_group **table; /* by key; made when it is first looked into */
    uint32_t table_size;
    struct spread_name *fragments, **next_fragment;
};

struct conflict {
    const struct symbol *key;
    const char *reason;
    uint32_t *at1, *at2; /* places in both, PLACES_MAX at most */
    uint32_t count1, count2;
    struct conflict *next;
};

struct conflicts {
    struct conflict *first, **next;
};

struct overlap {
    struct collected **sets;       /* by index of the set */
    struct overlap_group **by_key; /* by symbol, while a set is collected; */
    uint32_t *key_marks;           /* for that set if this is v->mark */
    struct map fragment_pairs;     /* two names -> PAIR_EXCLUSIVE or PAIR_FULL */
    struct map field_pairs;        /* collected and name -> the same */
    uint32_t depth;
};

/* Compared as fields of objects that are never the same one, or fully. */
static const char pair_exclusive, pair_full;
#define PAIR_EXCLUSIVE ((void *)(uintptr_t)&pair_exclusive)
#define PAIR_FULL ((void *)(uintptr_t)&pair_full)

static struct overlap *overlap_get(struct validator *v)
{
    struct overlap *o;

    if (v->overlap)
        return v->overlap;
    o = rule_alloc(v, 1, sizeof(*o));
    o->sets = rule_alloc(v, v->doc->set_count, sizeof(*o->sets));
    o->by_key = rule_alloc(v, v->doc->symbol_count, sizeof(*o->by_key));
    o->key_marks = rule_alloc(v, v->doc->symbol_count, sizeof(*o->key_marks));
    v->overlap = o;
    return v->stop ? NULL : o;
}

void overlap_done(struct validator *v)
{
    if (!v->overlap)
        return;
    map_done(&v->overlap->fragment_pairs);
    map_done(&v->overlap->field_pairs);
}

static bool overlap_enter(struct validator *v, uint32_t at)
{
    if (v->overlap->depth < RULE_DEPTH_MAX) {
        v->overlap->depth++;
        return true;
    }
    return rule_spend(v, UINT64_MAX, at);
}

static void overlap_leave(struct validator *v)
{
    v->overlap->depth--;
}

static void overlap_make_table(struct validator *v, struct collected *c)
{
    uint32_t size = 4;

    while (size < c->count * 2)
        size *= 2;
    c->table = rule_alloc(v, size, sizeof(*c->table));
    c->table_size = size;
    for (struct overlap_group *g = c->first; g; g = g->next) {
        uint32_t slot = g->key->index & (size - 1);

        while (c->table[slot])
            slot = (slot + 1) & (size - 1);
        c->table[slot] = g;
    }
}

static struct overlap_group *overlap_find_group(struct validator *v, struct collected *c,
                                                const struct symbol *key)
{
    uint32_t slot;

    if (!c->table)
        overlap_make_table(v, c);
    slot = key->index & (c->table_size - 1);
    while (c->table[slot] && c->table[slot]->key != key)
        slot = (slot + 1) & (c->table_size - 1);
    return c->table[slot];
}

static bool overlap_is_meta(const struct validator *v, const struct gql_field_def *def)
{
    return def >= v->schema->meta && def < v->schema->meta + GQL_META_COUNT;
}

static void overlap_collect_field(struct validator *v, struct collected *c,
                                  const struct gql_type *parent, const struct ast_selection *s)
{
    uint32_t key = s->key.symbol->index;
    struct overlap *o = v->overlap;
    struct overlap_group *group = o->key_marks[key] == v->mark ? o->by_key[key] : NULL;
    struct details *details = rule_alloc(v, 1, sizeof(*details));

    *details = (struct details){
        .parent = parent,
        .node = s,
        .def = s->def && !overlap_is_meta(v, s->def) ? s->def : NULL,
        .simple = !s->args && !s->set,
    };
    if (group) {
        group->last->next = details;
        group->last = details;
        return;
    }
    group = rule_alloc(v, 1, sizeof(*group));
    *group = (struct overlap_group){ s->key.symbol, details, details, NULL };
    o->by_key[key] = group;
    o->key_marks[key] = v->mark;
    if (c->last)
        c->last->next = group;
    else
        c->first = group;
    c->last = group;
    c->count++;
}

static void overlap_collect_set(struct validator *v, struct collected *c,
                                const struct gql_type *parent, const struct ast_set *set)
{
    for (const struct ast_selection *s = set->first; s && !v->stop; s = s->next) {
        struct spread_name *name;

        if (s->kind == AST_FIELD) {
            overlap_collect_field(v, c, parent, s);
        } else if (s->kind == AST_INLINE) {
            overlap_collect_set(v, c, s->name.symbol ? s->type : parent, s->set);
        } else if (v->marks[s->name.symbol->index] != v->mark) {
            v->marks[s->name.symbol->index] = v->mark;
            name = rule_alloc(v, 1, sizeof(*name));
            name->name = s->name.symbol;
            *c->next_fragment = name;
            c->next_fragment = &name->next;
        }
    }
}

static struct collected *overlap_collected_of(struct validator *v, const struct gql_type *parent,
                                              const struct ast_set *set)
{
    struct collected **known = &v->overlap->sets[set->index];

    if (*known)
        return *known;
    *known = rule_alloc(v, 1, sizeof(**known));
    (*known)->next_fragment = &(*known)->fragments;
    (void)rule_mark(v);
    overlap_collect_set(v, *known, parent, set);
    return v->stop ? NULL : *known;
}

static struct collected *overlap_collected_fragment(struct validator *v, const struct symbol *name)
{
    return overlap_collected_of(v, name->fragment->type, name->fragment->definition->set);
}

static bool overlap_same_value(struct validator *v, const struct ast_value *a,
                               const struct ast_value *b);

static bool overlap_same_list(struct validator *v, const struct ast_value *a,
                              const struct ast_value *b)
{
    const struct ast_value *x = a->items, *y = b->items;

    for (; x && y; x = x->next, y = y->next)
        if (!overlap_same_value(v, x, y))
            return false;
    return !x && !y;
}

static bool overlap_same_fields(struct validator *v, const struct ast_value *a,
                                const struct ast_value *b)
{
    if (a->count != b->count)
        return false;
    for (const struct ast_argument *x = a->fields; x; x = x->next) {
        const struct ast_argument *y = b->fields;

        while (y && y->name.symbol != x->name.symbol && rule_spend(v, 1, a->at))
            y = y->next;
        if (!y || v->stop || !overlap_same_value(v, x->value, y->value))
            return false;
    }
    return true;
}

static bool overlap_same_value(struct validator *v, const struct ast_value *a,
                               const struct ast_value *b)
{
    if (a->kind != b->kind || !rule_spend(v, 1, a->at))
        return false;
    switch ((enum ast_value_kind)a->kind) {
    case AST_VARIABLE:
    case AST_ENUM:
        return a->symbol == b->symbol;
    case AST_BOOLEAN:
        return a->boolean == b->boolean;
    case AST_LIST:
        return overlap_same_list(v, a, b);
    case AST_OBJECT:
        return overlap_same_fields(v, a, b);
    case AST_NULL:
        return true;
    default:
        return a->count == b->count && memcmp(a->text, b->text, a->count) == 0;
    }
}

static uint32_t overlap_count_args(const struct ast_argument *args)
{
    uint32_t n = 0;

    for (; args; args = args->next)
        n++;
    return n;
}

static bool overlap_same_arguments(struct validator *v, const struct ast_argument *a,
                                   const struct ast_argument *b)
{
    if (overlap_count_args(a) != overlap_count_args(b))
        return false;
    for (; a; a = a->next) {
        const struct ast_argument *same = NULL;

        for (const struct ast_argument *x = b; x && rule_spend(v, 1, a->name.at); x = x->next)
            if (x->name.symbol == a->name.symbol)
                same = x;
        if (!same || !overlap_same_value(v, a->value, same->value))
            return false;
    }
    return true;
}

/* Whether no value can be of both types. Fields of objects are compared elsewhere. */
static bool overlap_types_conflict(struct gql_ref a, struct gql_ref b)
{
    return a.wraps != b.wraps
           || (a.type != b.type && (type_is_leaf(a.type) || type_is_leaf(b.type)));
}

static void overlap_abbreviate(struct strbuf *text)
{
    if (text->len <= DETAIL_MAX)
        return;
    strbuf_truncate(text, DETAIL_MAX);
    strbuf_adds(text, "...");
}

static void overlap_add_name(struct strbuf *out, const struct symbol *name)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_add(&text, name->text, name->len);
    overlap_abbreviate(&text);
    strbuf_addf(out, "\"%s\"", text.data);
}

static struct conflict *overlap_new_conflict(struct validator *v, const struct symbol *key,
                                             const struct strbuf *reason, uint32_t places)
{
    struct conflict *conflict = rule_alloc(v, 1, sizeof(*conflict));
    uint32_t *at = rule_alloc(v, 2 * (size_t)places, sizeof(*at));
    char *copy = rule_alloc(v, reason->len + 1, 1);

    memcpy(copy, reason->data, reason->len);
    *conflict = (struct conflict){ .key = key, .reason = copy, .at1 = at, .at2 = at + places };
    return conflict;
}

static struct conflict *overlap_field_conflict(struct validator *v, const struct symbol *key,
                                               const struct strbuf *reason, const struct details *a,
                                               const struct details *b)
{
    struct conflict *conflict = overlap_new_conflict(v, key, reason, 1);

    conflict->at1[conflict->count1++] = a->node->at;
    conflict->at2[conflict->count2++] = b->node->at;
    return conflict;
}

/* The last places of a conflict below, as many as there is room for. */
static void overlap_add_places(uint32_t *at, uint32_t *count, const uint32_t *below,
                               uint32_t below_count)
{
    uint32_t room = PLACES_MAX - *count, skip = below_count > room ? below_count - room : 0;

    memcpy(at + *count, below + skip, (below_count - skip) * sizeof(*at));
    *count += below_count - skip;
}

/* One conflict for all that was found below two fields. */
static struct conflict *overlap_subfield_conflict(struct validator *v,
                                                  const struct conflicts *below,
                                                  const struct symbol *key, const struct details *a,
                                                  const struct details *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct conflict *conflict;

    if (!below->first || v->stop)
        return NULL;
    for (const struct conflict *c = below->first; c && text.len <= DETAIL_MAX; c = c->next) {
        strbuf_adds(&text, text.len ? " and subfields " : "subfields ");
        overlap_add_name(&text, c->key);
        strbuf_addf(&text, " conflict because %s", c->reason);
    }
    overlap_abbreviate(&text);
    conflict = overlap_new_conflict(v, key, &text, PLACES_MAX);
    conflict->at1[conflict->count1++] = a->node->at;
    conflict->at2[conflict->count2++] = b->node->at;
    for (const struct conflict *c = below->first; c && conflict->count1 < PLACES_MAX; c = c->next)
        overlap_add_places(conflict->at1, &conflict->count1, c->at1, c->count1);
    for (const struct conflict *c = below->first; c && conflict->count2 < PLACES_MAX; c = c->next)
        overlap_add_places(conflict->at2, &conflict->count2, c->at2, c->count2);
    return conflict;
}

static void overlap_compare_sets(struct validator *v, bool exclusive, const struct details *a,
                                 const struct details *b, struct conflicts *out);

/* What is wrong with two fields of one key, or NULL. */
static struct conflict *overlap_compare_fields(struct validator *v, bool exclusive,
                                               const struct symbol *key, const struct details *a,
                                               const struct details *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf reason = STRBUF_INIT;
    const struct symbol *name1 = a->node->name.symbol, *name2 = b->node->name.symbol;
    struct conflicts below = { NULL, NULL };

    if (!rule_spend(v, 2, a->node->at))
        return NULL;
    if (a->simple && b->simple && a->def == b->def && name1 == name2)
        return NULL;
    exclusive = exclusive
                || (a->parent != b->parent && a->parent && b->parent
                    && a->parent->kind == GQL_TYPE_OBJECT && b->parent->kind == GQL_TYPE_OBJECT);
    if (!exclusive && name1 != name2) {
        overlap_add_name(&reason, name1);
        strbuf_adds(&reason, " and ");
        overlap_add_name(&reason, name2);
        strbuf_adds(&reason, " are different fields");
        return overlap_field_conflict(v, key, &reason, a, b);
    }
    if (!exclusive && !overlap_same_arguments(v, a->node->args, b->node->args)) {
        strbuf_adds(&reason, "they have differing arguments");
        return v->stop ? NULL : overlap_field_conflict(v, key, &reason, a, b);
    }
    if (a->def && b->def && overlap_types_conflict(a->def->type, b->def->type)) {
        strbuf_adds(&reason, "they return conflicting types \"");
        gql_ref_print(a->def->type, &reason);
        strbuf_adds(&reason, "\" and \"");
        gql_ref_print(b->def->type, &reason);
        strbuf_addc(&reason, '"');
        return overlap_field_conflict(v, key, &reason, a, b);
    }
    if (!a->node->set || !b->node->set || !overlap_enter(v, a->node->at))
        return NULL;
    below.next = &below.first;
    overlap_compare_sets(v, exclusive, a, b, &below);
    overlap_leave(v);
    return overlap_subfield_conflict(v, &below, key, a, b);
}

static void overlap_add_conflict(struct conflicts *out, struct conflict *conflict)
{
    if (!conflict)
        return;
    *out->next = conflict;
    out->next = &conflict->next;
}

static void overlap_compare_collected(struct validator *v, bool exclusive, struct collected *a,
                                      struct collected *b, struct conflicts *out)
{
    if (a->count == 0 || b->count == 0)
        return;
    for (const struct overlap_group *g = a->first; g && !v->stop; g = g->next) {
        const struct overlap_group *same;

        if (!rule_spend(v, 1, g->first->node->at))
            return;
        same = overlap_find_group(v, b, g->key);
        for (const struct details *x = same ? g->first : NULL; x && !v->stop; x = x->next)
            for (const struct details *y = same->first; y && !v->stop; y = y->next)
                overlap_add_conflict(out, overlap_compare_fields(v, exclusive, g->key, x, y));
    }
}

/* Whether a pair still needs to be compared; then it is noted that it was. */
static bool overlap_is_new_pair(struct map *pairs, const void *a, const void *b, bool exclusive,
                                bool both_ways)
{
    const void *key[2] = { a, b }, *reverse[2] = { b, a };
    const void *known = map_get(pairs, key, sizeof(key));
    const void *other = both_ways ? map_get(pairs, reverse, sizeof(reverse)) : NULL;

    if (known == PAIR_FULL || other == PAIR_FULL || (exclusive && (known || other)))
        return false;
    (void)map_set(pairs, key, sizeof(key), exclusive ? PAIR_EXCLUSIVE : PAIR_FULL);
    return true;
}

static void overlap_compare_with_fragment(struct validator *v, bool exclusive, struct collected *c,
                                          const struct symbol *name, struct conflicts *out)
{
    struct collected *other;
    uint32_t at = v->definition->at;

    if (!rule_spend(v, 1, at) || c->count == 0
        || !overlap_is_new_pair(&v->overlap->field_pairs, c, name, exclusive, false)
        || !name->fragment)
        return;
    other = overlap_collected_fragment(v, name);
    if (!other || other == c || !overlap_enter(v, at))
        return;
    overlap_compare_collected(v, exclusive, c, other, out);
    for (const struct spread_name *s = other->fragments; s && !v->stop; s = s->next)
        overlap_compare_with_fragment(v, exclusive, c, s->name, out);
    overlap_leave(v);
}

static void overlap_compare_fragments(struct validator *v, bool exclusive, const struct symbol *a,
                                      const struct symbol *b, struct conflicts *out)
{
    struct collected *c1, *c2;
    uint32_t at = v->definition->at;

    if (!rule_spend(v, 2, at) || a == b
        || !overlap_is_new_pair(&v->overlap->fragment_pairs, a, b, exclusive, true) || !a->fragment
        || !b->fragment)
        return;
    c1 = overlap_collected_fragment(v, a);
    c2 = c1 ? overlap_collected_fragment(v, b) : NULL;
    if (!c2 || !overlap_enter(v, at))
        return;
    overlap_compare_collected(v, exclusive, c1, c2, out);
    for (const struct spread_name *s = c2->fragments; s && !v->stop; s = s->next)
        overlap_compare_fragments(v, exclusive, a, s->name, out);
    for (const struct spread_name *s = c1->fragments; s && !v->stop; s = s->next)
        overlap_compare_fragments(v, exclusive, s->name, b, out);
    overlap_leave(v);
}

/* The selections of two fields. */
static void overlap_compare_sets(struct validator *v, bool exclusive, const struct details *a,
                                 const struct details *b, struct conflicts *out)
{
    struct collected *c1 = overlap_collected_of(v, a->def ? a->def->type.type : NULL, a->node->set);
    struct collected *c2 = c1 ? overlap_collected_of(v, b->def ? b->def->type.type : NULL,
                                                     b->node->set)
                              : NULL;

    if (!c2)
        return;
    overlap_compare_collected(v, exclusive, c1, c2, out);
    for (const struct spread_name *s = c2->fragments; s && !v->stop; s = s->next)
        overlap_compare_with_fragment(v, exclusive, c1, s->name, out);
    for (const struct spread_name *s = c1->fragments; s && !v->stop; s = s->next)
        overlap_compare_with_fragment(v, exclusive, c2, s->name, out);
    for (const struct spread_name *s = c1->fragments; s && !v->stop; s = s->next)
        for (const struct spread_name *t = c2->fragments; t && !v->stop; t = t->next)
            overlap_compare_fragments(v, exclusive, s->name, t->name, out);
}

static void overlap_compare_within(struct validator *v, struct collected *c, struct conflicts *out)
{
    for (const struct overlap_group *g = c->first; g && !v->stop; g = g->next)
        for (const struct details *a = g->first; a && !v->stop; a = a->next)
            for (const struct details *b = a->next; b && !v->stop; b = b->next)
                overlap_add_conflict(out, overlap_compare_fields(v, false, g->key, a, b));
    if (c->count == 0 && c->fragments && !c->fragments->next)
        return; /* nothing to compare the only fragment with */
    for (const struct spread_name *s = c->fragments; s && !v->stop; s = s->next) {
        overlap_compare_with_fragment(v, false, c, s->name, out);
        for (const struct spread_name *t = s->next; t && !v->stop; t = t->next)
            overlap_compare_fragments(v, false, s->name, t->name, out);
    }
}

static void overlap_report(struct validator *v, const struct conflict *conflict)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct error *error;

    strbuf_adds(&text, "Fields ");
    overlap_add_name(&text, conflict->key);
    strbuf_addf(&text,
                " conflict because %s. Use different aliases on the fields to fetch both if this "
                "was intentional.",
                conflict->reason);
    error = rule_error_text(v, UINT32_MAX, &text);
    for (uint32_t i = 0; i < conflict->count1; i++)
        rule_error_at(v, error, conflict->at1[i]);
    for (uint32_t i = 0; i < conflict->count2; i++)
        rule_error_at(v, error, conflict->at2[i]);
}

void rule_overlapping_fields(struct validator *v, const struct ast_set *set,
                             const struct gql_type *parent)
{
    struct conflicts conflicts = { NULL, NULL };
    struct collected *c;

    if (v->stop || (set->count <= 1 && set->first->kind != AST_INLINE) || !overlap_get(v))
        return; /* nothing to compare */
    conflicts.next = &conflicts.first;
    c = overlap_collected_of(v, parent, set);
    if (c)
        overlap_compare_within(v, c, &conflicts);
    for (const struct conflict *conflict = conflicts.first; conflict; conflict = conflict->next)
        overlap_report(v, conflict);
}
