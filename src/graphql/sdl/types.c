/* SPDX-License-Identifier: Apache-2.0 */
/* Schema text into types, fields and directives. */
#include "graphql/sdl/sdl.h"

#include <errno.h>
#include <stdarg.h>

#include "graphql/parser.h"

/* The schema and where all of it lies. */
struct sdl_owner {
    struct gql_schema schema;
    struct arena arena;
};

bool sdl_fail(struct sdl *sdl, uint32_t at, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&text, fmt, args);
    va_end(args);
    (void)errors_add_text(sdl->errors, at, &text);
    return false;
}

void *sdl_alloc(struct sdl *sdl, size_t count, size_t size)
{
    void *memory = arena_array(sdl->arena, count, size);

    if (!memory)
        sdl->errors->no_memory = true;
    return memory;
}

char *sdl_copy(struct sdl *sdl, const char *text, size_t len)
{
    char *copy = arena_strndup(sdl->arena, text, len);

    if (!copy)
        sdl->errors->no_memory = true;
    return copy;
}

static const char *sdl_types_copy_value(struct sdl *sdl, const struct ast_value *value)
{
    return value ? sdl_copy(sdl, value->text, value->count) : NULL;
}

const struct ast_directive *sdl_directive(const struct ast_directive *directives, const char *name)
{
    for (; directives; directives = directives->next)
        if (strcmp(directives->name.symbol->text, name) == 0)
            return directives;
    return NULL;
}

const struct ast_value *sdl_directive_value(const struct ast_directive *directives,
                                            const char *directive, const char *arg)
{
    const struct ast_directive *found = sdl_directive(directives, directive);

    for (const struct ast_argument *a = found ? found->args : NULL; a; a = a->next)
        if (strcmp(a->name.symbol->text, arg) == 0 && a->value->kind != AST_NULL)
            return a->value;
    return NULL;
}

static bool sdl_types_read_deprecated(struct sdl *sdl, const struct ast_directive *directives,
                                      const char **ret)
{
    const struct ast_value *reason = sdl_directive_value(directives, "deprecated", "reason");

    if (!sdl_directive(directives, "deprecated"))
        return true;
    if (reason && reason->kind != AST_STRING && reason->kind != AST_BLOCK_STRING)
        return sdl_fail(sdl, reason->at, "The reason of @deprecated must be a string.");
    *ret = reason ? sdl_types_copy_value(sdl, reason) : "No longer supported";
    return *ret != NULL;
}

static struct sdl_type *sdl_types_find_type(struct sdl *sdl, const struct ast_name *name)
{
    struct sdl_type *type = map_get(&sdl->types, name->symbol->text, name->symbol->len);

    if (!type)
        (void)sdl_fail(sdl, name->at, "Unknown type \"%s\".", name->symbol->text);
    return type;
}

static bool sdl_types_make_ref(struct sdl *sdl, const struct ast_type *ast, struct gql_ref *ret)
{
    struct sdl_type *type = sdl_types_find_type(sdl, &ast->name);

    if (!type)
        return false;
    *ret = (struct gql_ref){ &type->type, ast->wraps };
    return true;
}

static bool sdl_types_is_reserved(const struct ast_name *name)
{
    return name->symbol->len >= 2 && memcmp(name->symbol->text, "__", 2) == 0;
}

/* A name that a schema's own text introduces. */
static bool sdl_types_check_name(struct sdl *sdl, const struct ast_name *name, bool builtin)
{
    if (builtin || !sdl_types_is_reserved(name))
        return true;
    return sdl_fail(sdl, name->at,
                    "Name \"%s\" must not begin with \"__\", which is reserved by GraphQL "
                    "introspection.",
                    name->symbol->text);
}

static bool sdl_types_make_inputs(struct sdl *sdl, const struct ast_input *ast, bool builtin,
                                  const char *what, const char *owner, struct gql_input_def *inputs,
                                  uint32_t *count)
{
    for (; ast; ast = ast->next) {
        struct gql_input_def *input = &inputs[*count];

        if (gql_input_find(inputs, *count, ast->name.symbol->text, ast->name.symbol->len))
            return sdl_fail(sdl, ast->name.at, "%s \"%s%s%s\" can only be defined once.", what,
                            owner, *owner ? "." : "", ast->name.symbol->text);
        if (!sdl_types_check_name(sdl, &ast->name, builtin))
            return false;
        input->name = sdl_copy(sdl, ast->name.symbol->text, ast->name.symbol->len);
        input->description = sdl_types_copy_value(sdl, ast->description);
        /* its value is known later (set_defaults), that there is one already now */
        input->default_value.kind = ast->default_value ? GQL_NULL : GQL_ABSENT;
        if (!input->name || !sdl_types_make_ref(sdl, &ast->type, &input->type)
            || !sdl_types_read_deprecated(sdl, ast->directives, &input->deprecated))
            return false;
        ++*count;
    }
    return !sdl->errors->no_memory;
}

static size_t sdl_types_count_inputs(const struct ast_input *ast)
{
    size_t n = 0;

    for (; ast; ast = ast->next)
        n++;
    return n;
}

static size_t sdl_types_count_members(const struct ast_definition *def)
{
    size_t n = sdl_types_count_inputs(def->type.inputs);

    for (const struct ast_member *m = def->type.members; m; m = m->next)
        n++;
    return n;
}

static size_t sdl_types_count_names(const struct ast_names *names)
{
    size_t n = 0;

    for (; names; names = names->next)
        n++;
    return n;
}

static bool sdl_types_make_field(struct sdl *sdl, const struct sdl_type *type,
                                 const struct ast_member *ast, struct gql_field_def *field)
{
    struct gql_input_def *args = sdl_alloc(sdl, sdl_types_count_inputs(ast->args), sizeof(*args));

    if (!args || !sdl_types_check_name(sdl, &ast->name, type->builtin))
        return false;
    field->name = sdl_copy(sdl, ast->name.symbol->text, ast->name.symbol->len);
    field->description = sdl_types_copy_value(sdl, ast->description);
    field->parent = &type->type;
    field->args = args;
    return field->name && sdl_types_make_ref(sdl, &ast->type, &field->type)
           && sdl_types_read_deprecated(sdl, ast->directives, &field->deprecated)
           && sdl_types_make_inputs(sdl, ast->args, type->builtin, "Argument", "", args,
                                    &field->arg_count);
}

static bool sdl_types_make_fields(struct sdl *sdl, struct sdl_type *type,
                                  const struct ast_definition *def, struct gql_field_def *fields)
{
    uint32_t *count = &type->type.field_count;

    for (const struct ast_member *m = def->type.members; m; m = m->next) {
        for (uint32_t i = 0; i < *count; i++)
            if (strcmp(fields[i].name, m->name.symbol->text) == 0)
                return sdl_fail(sdl, m->name.at, "Field \"%s.%s\" can only be defined once.",
                                type->type.name, m->name.symbol->text);
        if (!sdl_types_make_field(sdl, type, m, &fields[*count]))
            return false;
        ++*count;
    }
    return true;
}

static bool sdl_types_make_enum(struct sdl *sdl, struct sdl_type *type,
                                const struct ast_definition *def, struct gql_enum_def *values)
{
    uint32_t *count = &type->type.value_count;

    for (const struct ast_member *m = def->type.members; m; m = m->next) {
        struct gql_enum_def *value = &values[*count];

        for (uint32_t i = 0; i < *count; i++)
            if (strcmp(values[i].name, m->name.symbol->text) == 0)
                return sdl_fail(sdl, m->name.at, "Enum value \"%s.%s\" can only be defined once.",
                                type->type.name, m->name.symbol->text);
        if (!sdl_types_check_name(sdl, &m->name, type->builtin)
            || !sdl_types_read_deprecated(sdl, m->directives, &value->deprecated))
            return false;
        value->name = sdl_copy(sdl, m->name.symbol->text, m->name.symbol->len);
        value->description = sdl_types_copy_value(sdl, m->description);
        if (!value->name)
            return false;
        ++*count;
    }
    return true;
}

static bool sdl_types_make_names(struct sdl *sdl, const struct ast_names *names,
                                 const struct gql_type **types, uint32_t *count)
{
    for (; names; names = names->next) {
        struct sdl_type *found = sdl_types_find_type(sdl, &names->name);

        if (!found)
            return false;
        types[(*count)++] = &found->type;
    }
    return true;
}

static bool sdl_types_read_type_directives(struct sdl *sdl, struct sdl_type *type,
                                           const struct ast_definition *def)
{
    const struct ast_value *url = sdl_directive_value(def->directives, "specifiedBy", "url");

    if (url && url->kind != AST_STRING && url->kind != AST_BLOCK_STRING)
        return sdl_fail(sdl, url->at, "The url of @specifiedBy must be a string.");
    if (url && type->type.kind == GQL_TYPE_SCALAR)
        type->type.specified_by = sdl_types_copy_value(sdl, url);
    if (sdl_directive(def->directives, "oneOf"))
        type->type.one_of = true;
    return true;
}

/* What one definition or extension adds to a type; arrays are large enough. */
static bool sdl_types_add_definition(struct sdl *sdl, struct sdl_type *type,
                                     const struct ast_definition *def)
{
    struct gql_type *t = &type->type;

    if (!sdl_types_read_type_directives(sdl, type, def))
        return false;
    switch ((enum gql_type_kind)t->kind) {
    case GQL_TYPE_OBJECT:
    case GQL_TYPE_INTERFACE:
        return sdl_types_make_names(sdl, def->type.types, (const struct gql_type **)t->interfaces,
                                    &t->interface_count)
               && sdl_types_make_fields(sdl, type, def, (struct gql_field_def *)t->fields);
    case GQL_TYPE_UNION:
        return sdl_types_make_names(sdl, def->type.types, (const struct gql_type **)t->possible,
                                    &t->possible_count);
    case GQL_TYPE_ENUM:
        return sdl_types_make_enum(sdl, type, def, (struct gql_enum_def *)t->values);
    case GQL_TYPE_INPUT:
        return sdl_types_make_inputs(sdl, def->type.inputs, type->builtin, "Field", t->name,
                                     (struct gql_input_def *)t->inputs, &t->input_count);
    case GQL_TYPE_SCALAR:
        break;
    }
    return true;
}

static bool sdl_types_make_type(struct sdl *sdl, struct sdl_type *type)
{
    struct gql_type *t = &type->type;
    size_t members = sdl_types_count_members(type->def),
           names = sdl_types_count_names(type->def->type.types);

    for (uint32_t i = 0; i < type->extension_count; i++) {
        members += sdl_types_count_members(type->extensions[i]);
        names += sdl_types_count_names(type->extensions[i]->type.types);
    }
    if (t->kind == GQL_TYPE_ENUM)
        t->values = sdl_alloc(sdl, members, sizeof(*t->values));
    else if (t->kind == GQL_TYPE_INPUT)
        t->inputs = sdl_alloc(sdl, members, sizeof(*t->inputs));
    else
        t->fields = sdl_alloc(sdl, members, sizeof(*t->fields));
    if (t->kind == GQL_TYPE_UNION)
        t->possible = sdl_alloc(sdl, names, sizeof(void *));
    else
        t->interfaces = sdl_alloc(sdl, names, sizeof(void *));
    if (sdl->errors->no_memory || !sdl_types_add_definition(sdl, type, type->def))
        return false;
    for (uint32_t i = 0; i < type->extension_count; i++)
        if (!sdl_types_add_definition(sdl, type, type->extensions[i]))
            return false;
    return true;
}

static enum gql_scalar_kind sdl_types_scalar_named(const char *name)
{
    static const char *const names[] = {
        [GQL_SCALAR_INT] = "Int",
        [GQL_SCALAR_FLOAT] = "Float",
        [GQL_SCALAR_STRING] = "String",
        [GQL_SCALAR_BOOLEAN] = "Boolean",
        [GQL_SCALAR_ID] = "ID",
        [GQL_SCALAR_BIGINT] = "BigInt",
        [GQL_SCALAR_DATETIME] = "DateTime",
        [GQL_SCALAR_JSONSTRING] = "JSONString",
        [GQL_SCALAR_UUID] = "UUID",
    };

    for (size_t i = GQL_SCALAR_INT; i < AQ_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return (enum gql_scalar_kind)i;
    return GQL_SCALAR_OTHER;
}

static bool sdl_types_declare_type(struct sdl *sdl, const struct ast_definition *def, bool builtin)
{
    struct sdl_type *type = map_get(&sdl->types, def->name.symbol->text, def->name.symbol->len);

    if (type && !builtin && type->builtin) {
        type->own = true; /* the language's types cannot be redefined, only repeated */
        return true;
    }
    if (type)
        return sdl_fail(sdl, def->name.at, "There can be only one type named \"%s\".",
                        def->name.symbol->text);
    if (!sdl_types_check_name(sdl, &def->name, builtin))
        return false;
    type = sdl_alloc(sdl, 1, sizeof(*type));
    if (!type)
        return false;
    type->def = def;
    type->builtin = builtin;
    type->own = !builtin;
    type->type.kind = (uint8_t)def->type.kind;
    type->type.name = sdl_copy(sdl, def->name.symbol->text, def->name.symbol->len);
    type->type.description = sdl_types_copy_value(sdl, def->description);
    if (!type->type.name)
        return false;
    if (def->type.kind == GQL_TYPE_SCALAR)
        type->type.scalar = (uint8_t)sdl_types_scalar_named(type->type.name);
    if (map_set(&sdl->types, def->name.symbol->text, def->name.symbol->len, type) == 0)
        return true;
    sdl->errors->no_memory = true;
    return false;
}

static bool sdl_types_declare_extension(struct sdl *sdl, const struct ast_definition *def)
{
    struct sdl_type *type = map_get(&sdl->types, def->name.symbol->text, def->name.symbol->len);
    const struct ast_definition **grown;

    if (!type || type->builtin)
        return sdl_fail(sdl, def->name.at, "Cannot extend type \"%s\" because it is not defined.",
                        def->name.symbol->text);
    if (type->def->type.kind != def->type.kind)
        return sdl_fail(sdl, def->at, "Cannot extend type \"%s\" as another kind of type.",
                        def->name.symbol->text);
    grown = sdl_alloc(sdl, type->extension_count + 1, sizeof(void *));
    if (!grown)
        return false;
    if (type->extension_count)
        memcpy(grown, type->extensions, type->extension_count * sizeof(void *));
    grown[type->extension_count++] = def;
    type->extensions = grown;
    return true;
}

static bool sdl_types_declare_all(struct sdl *sdl, const struct ast_definition *defs, bool builtin)
{
    for (const struct ast_definition *def = defs; def; def = def->next) {
        if (ast_is_operation(def) || def->kind == AST_FRAGMENT)
            return sdl_fail(sdl, def->at,
                            "A schema document cannot hold operations and fragments.");
        if (def->kind == AST_TYPE && !def->extends && !sdl_types_declare_type(sdl, def, builtin))
            return false;
    }
    for (const struct ast_definition *def = defs; def; def = def->next)
        if (def->kind == AST_TYPE && def->extends && !sdl_types_declare_extension(sdl, def))
            return false;
    return true;
}

static bool sdl_types_make_directive(struct sdl *sdl, const struct ast_definition *def,
                                     bool builtin, struct gql_directive_def *ret)
{
    const struct ast_directive_def *ast = &def->directive;
    struct gql_input_def *args = sdl_alloc(sdl, sdl_types_count_inputs(ast->args), sizeof(*args));
    uint8_t *order = sdl_alloc(sdl, ast->location_count, 1);

    if (!args || !order || !sdl_types_check_name(sdl, &def->name, builtin))
        return false;
    memcpy(order, ast->locations, ast->location_count);
    ret->name = sdl_copy(sdl, def->name.symbol->text, def->name.symbol->len);
    ret->description = sdl_types_copy_value(sdl, def->description);
    ret->args = args;
    ret->location_order = order;
    ret->location_count = ast->location_count;
    for (uint32_t i = 0; i < ret->location_count; i++)
        ret->locations |= 1u << order[i];
    ret->repeatable = ast->repeatable;
    return ret->name
           && sdl_types_make_inputs(sdl, ast->args, builtin, "Argument", "", args, &ret->arg_count);
}

/* The schema's own directives, then those of the language that it does not define itself. */
static bool sdl_types_make_directives(struct sdl *sdl, const struct ast_definition *prelude)
{
    const struct ast_definition *lists[] = { sdl->user, prelude };
    struct gql_directive_def *directives;
    size_t count = 0;

    for (int i = 0; i < 2; i++)
        for (const struct ast_definition *def = lists[i]; def; def = def->next)
            count += def->kind == AST_DIRECTIVE;
    directives = sdl_alloc(sdl, count, sizeof(*directives));
    if (!directives)
        return false;
    sdl->schema->directives = directives;
    for (int i = 0; i < 2; i++) {
        for (const struct ast_definition *def = lists[i]; def; def = def->next) {
            if (def->kind != AST_DIRECTIVE)
                continue;
            if (gql_directive_find(sdl->schema, def->name.symbol->text, def->name.symbol->len)) {
                if (i == 0)
                    return sdl_fail(sdl, def->name.at,
                                    "There can be only one directive named \"@%s\".",
                                    def->name.symbol->text);
                continue;
            }
            if (!sdl_types_make_directive(sdl, def, i == 1,
                                          &directives[sdl->schema->directive_count]))
                return false;
            sdl->schema->directive_count++;
        }
    }
    return true;
}

static bool sdl_types_set_root(struct sdl *sdl, const char *what, const struct ast_name *name,
                               const struct gql_type **ret)
{
    struct sdl_type *type = sdl_types_find_type(sdl, name);

    if (!type)
        return false;
    if (*ret)
        return sdl_fail(sdl, name->at, "There can be only one %s type in schema.", what);
    if (type->type.kind != GQL_TYPE_OBJECT)
        return sdl_fail(sdl, name->at, "The %s root type must be an object type, not %s.", what,
                        type->type.name);
    *ret = &type->type;
    return true;
}

/* Without a schema definition, types called Query, Mutation and Subscription are the roots. */
static bool sdl_types_set_usual_roots(struct sdl *sdl)
{
    const struct gql_type **roots[] = { &sdl->schema->query, &sdl->schema->mutation,
                                        &sdl->schema->subscription };
    static const char *const names[] = { "Query", "Mutation", "Subscription" };

    for (int i = 0; i < 3; i++) {
        struct sdl_type *type = map_gets(&sdl->types, names[i]);

        if (type && type->type.kind != GQL_TYPE_OBJECT)
            return sdl_fail(sdl, type->def->name.at, "%s root type must be an object type.",
                            names[i]);
        if (type)
            *roots[i] = &type->type;
    }
    return true;
}

static bool sdl_types_make_roots(struct sdl *sdl)
{
    const struct gql_type **roots[] = { &sdl->schema->query, &sdl->schema->mutation,
                                        &sdl->schema->subscription };
    static const char *const words[] = { "query", "mutation", "subscription" };
    const struct ast_definition *defined = NULL;

    for (const struct ast_definition *def = sdl->user; def; def = def->next) {
        if (def->kind != AST_SCHEMA)
            continue;
        if (!def->extends && defined)
            return sdl_fail(sdl, def->at, "Must provide only one schema definition.");
        if (!def->extends)
            defined = def;
        for (int i = 0; i < 3; i++)
            if (def->schema.roots[i].symbol
                && !sdl_types_set_root(sdl, words[i], &def->schema.roots[i], roots[i]))
                return false;
    }
    if (defined)
        sdl->schema->description = sdl_types_copy_value(sdl, defined->description);
    else if (!sdl_types_set_usual_roots(sdl))
        return false;
    if (!sdl->schema->query)
        return sdl_fail(sdl, UINT32_MAX, "Query root type must be provided.");
    return true;
}

static bool sdl_types_build(struct sdl *sdl, const struct ast_definition *prelude)
{
    if (!sdl_types_declare_all(sdl, prelude, true) || !sdl_types_declare_all(sdl, sdl->user, false))
        return false;
    for (size_t i = 0; i < sdl->types.count; i++)
        if (!sdl_types_make_type(sdl, sdl->types.entries[i].value))
            return false;
    return sdl_types_make_directives(sdl, prelude) && sdl_types_make_roots(sdl) && sdl_order(sdl)
           && sdl_check_directives(sdl) && sdl_check_types(sdl) && sdl_set_defaults(sdl, prelude);
}

static int sdl_types_report(const struct errors *errors, const char *text, size_t len,
                            struct aq_error *err)
{
    uint32_t line, column;

    if (errors->no_memory || !errors->first)
        return aq_fail_oom(err);
    if (!errors->first->at_count)
        return aq_fail(err, EINVAL, "%s", errors->first->message);
    gql_locate(text, len, errors->first->at[0], &line, &column);
    return aq_fail(err, EINVAL, "%u:%u: %s", line, column, errors->first->message);
}

static struct gql_document *sdl_types_parse_prelude(const struct gql_limits *limits,
                                                    struct errors *errors)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (const char *const *piece = gql_prelude; *piece; piece++)
        strbuf_adds(&text, *piece);
    errors->no_memory |= !strbuf_ok(&text);
    return document_parse(text.data, text.len, limits, false, errors);
}

int gql_schema_parse(const char *text, size_t len, struct gql_schema **ret, struct aq_error *err)
{
    static const struct gql_limits limits = { .bytes = 16 << 20, .nesting = 200 };
    AQ_CLEANUP(arena_donep) struct arena scratch = ARENA_INIT;
    AQ_CLEANUP(document_unrefp) struct gql_document *prelude = NULL, *doc = NULL;
    struct errors errors = { .arena = &scratch };
    struct sdl_owner *owner = calloc(1, sizeof(*owner));
    struct sdl sdl = { .errors = &errors };
    bool ok = false;

    if (!owner)
        return aq_fail_oom(err);
    prelude = sdl_types_parse_prelude(&limits, &errors);
    if (prelude)
        doc = document_parse(text, len, &limits, false, &errors);
    if (doc) {
        sdl.arena = &owner->arena;
        sdl.schema = &owner->schema;
        sdl.user = doc->first;
        ok = sdl_types_build(&sdl, prelude->first) && !errors.no_memory;
    }
    map_done(&sdl.types);
    if (ok) {
        *ret = &owner->schema;
        return 0;
    }
    gql_schema_free(&owner->schema);
    return sdl_types_report(&errors, text, len, err);
}

void gql_schema_free(struct gql_schema *schema)
{
    struct sdl_owner *owner = (struct sdl_owner *)(void *)schema;

    if (!owner)
        return;
    arena_done(&owner->arena);
    free(owner);
}
