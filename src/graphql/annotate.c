/* SPDX-License-Identifier: Apache-2.0 */
/* What the schema says about each part of a document. */
#include "graphql/annotate.h"

struct annotator {
    const struct gql_schema *schema;
    struct arena *arena;
    struct variable_usage **next_usage;
};

const struct gql_field_def *schema_field(const struct gql_schema *schema,
                                         const struct gql_type *type, const struct symbol *name)
{
    if (!type)
        return NULL;
    if (name->text[0] == '_' && name->text[1] == '_') {
        for (int i = 0; i < GQL_META_COUNT; i++)
            if ((i == GQL_META_TYPENAME || type == schema->query)
                && strcmp(schema->meta[i].name, name->text) == 0)
                return &schema->meta[i];
    }
    return gql_field_find(type, name->text, name->len);
}

static void annotate_note_usage(struct annotator *a, const struct ast_value *value,
                                struct gql_ref type, bool has_default,
                                const struct gql_type *parent)
{
    struct variable_usage *usage = arena_alloc(a->arena, sizeof(*usage));

    *usage = (struct variable_usage){ value, type, has_default, parent, NULL };
    *a->next_usage = usage;
    a->next_usage = &usage->next;
}

/* Values in which a variable may stand: 'type' is what is expected there,
 * 'parent' the type of the value around (what graphql-js's TypeInfo calls
 * parent input type).
 */
static void annotate_value(struct annotator *a, struct ast_value *value, struct gql_ref type,
                           bool has_default, const struct gql_type *parent)
{
    if (value->kind == AST_VARIABLE) {
        annotate_note_usage(a, value, type, has_default, parent);
    } else if (value->kind == AST_LIST) {
        struct gql_ref item = type.type ? ref_item(type) : type;
        const struct gql_type *around = type.type && !type.wraps ? type.type : NULL;

        for (struct ast_value *v = value->items; v; v = v->next)
            annotate_value(a, v, item, false, around);
    } else if (value->kind == AST_OBJECT) {
        const struct gql_type *object = type.type && type.type->kind == GQL_TYPE_INPUT ? type.type
                                                                                       : NULL;
        const struct gql_type *around = type.type && !type.wraps ? type.type : NULL;

        for (struct ast_argument *f = value->fields; f; f = f->next) {
            struct gql_ref unknown = { NULL, 0 };

            if (object)
                f->def = gql_input_find(object->inputs, object->input_count, f->name.symbol->text,
                                        f->name.symbol->len);
            annotate_value(a, f->value, f->def ? f->def->type : unknown,
                           f->def && f->def->default_value.kind != GQL_ABSENT, around);
        }
    }
}

static void annotate_arguments(struct annotator *a, struct ast_argument *args,
                               const struct gql_input_def *defs, uint32_t count)
{
    for (; args; args = args->next) {
        struct gql_ref unknown = { NULL, 0 };

        args->def = gql_input_find(defs, count, args->name.symbol->text, args->name.symbol->len);
        annotate_value(a, args->value, args->def ? args->def->type : unknown,
                       args->def && args->def->default_value.kind != GQL_ABSENT, NULL);
    }
}

/* Arguments of an unknown directive are looked at as those of the field
 * around, as graphql-js does.
 */
static void annotate_directives(struct annotator *a, struct ast_directive *directives,
                                const struct gql_field_def *field)
{
    for (struct ast_directive *d = directives; d; d = d->next) {
        d->def = gql_directive_find(a->schema, d->name.symbol->text, d->name.symbol->len);
        if (d->def)
            annotate_arguments(a, d->args, d->def->args, d->def->arg_count);
        else
            annotate_arguments(a, d->args, field ? field->args : NULL,
                               field ? field->arg_count : 0);
    }
}

static void annotate_set(struct annotator *a, struct ast_set *set, const struct gql_type *parent,
                         const struct gql_field_def *field);

static void annotate_field(struct annotator *a, struct ast_selection *s,
                           const struct gql_type *parent)
{
    s->type = parent;
    s->def = schema_field(a->schema, parent, s->name.symbol);
    annotate_arguments(a, s->args, s->def ? s->def->args : NULL, s->def ? s->def->arg_count : 0);
    annotate_directives(a, s->directives, s->def);
    if (s->set)
        annotate_set(a, s->set, s->def ? s->def->type.type : NULL, s->def);
}

static void annotate_set(struct annotator *a, struct ast_set *set, const struct gql_type *parent,
                         const struct gql_field_def *field)
{
    if (parent && !type_is_composite(parent))
        parent = NULL;
    for (struct ast_selection *s = set->first; s; s = s->next) {
        if (s->kind == AST_FIELD) {
            annotate_field(a, s, parent);
            continue;
        }
        annotate_directives(a, s->directives, field);
        if (s->kind == AST_INLINE) {
            s->type = s->name.symbol
                          ? gql_type_find(a->schema, s->name.symbol->text, s->name.symbol->len)
                          : parent;
            annotate_set(a, s->set, s->type, field);
        }
    }
}

static void annotate_variables(struct annotator *a, struct ast_variable *variables)
{
    for (struct ast_variable *v = variables; v; v = v->next) {
        v->ref.type = gql_type_find(a->schema, v->type.name.symbol->text, v->type.name.symbol->len);
        v->ref.wraps = v->type.wraps;
        if (v->default_value) /* constant: only names of input fields are to be found */
            annotate_value(a, v->default_value, v->ref, false, NULL);
        annotate_directives(a, v->directives, NULL);
    }
}

static void annotate_definition(struct annotator *a, struct ast_definition *def)
{
    const struct gql_type *roots[] = { a->schema->query, a->schema->mutation,
                                       a->schema->subscription };

    if (ast_is_operation(def)) {
        annotate_variables(a, def->operation.variables);
        def->operation.root = roots[def->kind];
        annotate_directives(a, def->directives, NULL);
        annotate_set(a, def->set, def->operation.root, NULL);
    } else if (def->kind == AST_FRAGMENT) {
        def->fragment.type = gql_type_find(a->schema, def->fragment.condition.symbol->text,
                                           def->fragment.condition.symbol->len);
        annotate_directives(a, def->directives, NULL);
        annotate_set(a, def->set, def->fragment.type, NULL);
    }
}

void document_annotate(struct gql_document *doc, const struct gql_schema *schema,
                       struct arena *arena, struct variable_usage **usages)
{
    struct annotator a = { .schema = schema, .arena = arena };

    for (struct ast_definition *def = doc->first; def; def = def->next) {
        a.next_usage = &usages[def->index];
        annotate_definition(&a, def);
    }
}
