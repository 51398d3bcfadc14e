/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions: a request is parsed, validated, planned and executed. */
#include <errno.h>

#include "base/memory.h"
#include "graphql/cache.h"
#include "graphql/limits.h"
#include "graphql/request.h"
#include "graphql/validate/validate.h"

static gql_scalar_fn *engine_make_scalars(const struct gql_conf *conf)
{
    gql_scalar_fn *scalars = aq_alloc_array(conf->schema->type_count, sizeof(*scalars));

    for (uint32_t i = 0; i < conf->schema->type_count; i++) {
        const struct gql_type *type = conf->schema->types[i];

        if (type->kind != GQL_TYPE_SCALAR)
            continue;
        scalars[i] = coerce_builtin((enum gql_scalar_kind)type->scalar);
        for (const struct gql_scalar *s = conf->scalars; s && s->name; s++)
            if (strcmp(s->name, type->name) == 0)
                scalars[i] = s->parse;
    }
    return scalars;
}

static int engine_check_resolvers(const struct gql_conf *conf, struct aq_error *err)
{
    for (uint32_t i = 0; i < conf->schema->type_count; i++) {
        const struct gql_type *type = conf->schema->types[i];

        for (uint32_t f = 0; type->kind == GQL_TYPE_OBJECT && f < type->field_count; f++) {
            const struct gql_field_def *field = &type->fields[f];
            bool is_int = field->type.type->kind == GQL_TYPE_SCALAR
                          && field->type.type->scalar == GQL_SCALAR_INT;
            enum gql_how how = field->id < conf->schema->field_count
                                   ? conf->resolvers[field->id].how
                                   : GQL_HOW_CONST;

            if (how == GQL_HOW_NONE)
                return aq_fail(err, EINVAL, "GraphQL field %s.%s has no resolver", type->name,
                               field->name);
            if (how == GQL_HOW_INT64 && is_int)
                return aq_fail(err, EINVAL, "GraphQL field %s.%s is an Int, with 64 bits",
                               type->name, field->name);
        }
    }
    return 0;
}

int gql_engine_new(const struct gql_conf *conf, struct gql_engine **ret, struct aq_error *err)
{
    struct gql_engine *engine;
    int r = engine_check_resolvers(conf, err);

    if (r < 0)
        return r;
    engine = aq_alloc(sizeof(*engine));
    engine->conf = *conf;
    engine->skip = gql_directive_find(conf->schema, "skip", 4);
    engine->include = gql_directive_find(conf->schema, "include", 7);
    engine->scalars = engine_make_scalars(conf);
    engine->resolvers = introspection_resolvers(conf->schema);
    engine->cache = cache_new(conf->cache_documents);
    *ret = engine;
    return 0;
}

void gql_engine_free(struct gql_engine *engine)
{
    if (!engine)
        return;
    cache_free(engine->cache);
    free(engine->scalars);
    free(engine->resolvers);
    arena_done(&engine->spare);
    free(engine);
}

void gql_engine_get_stats(const struct gql_engine *engine, struct gql_stats *ret)
{
    cache_get_stats(engine->cache, ret);
}

int gql_params_from_json(const json_t *body, struct gql_params *ret, struct aq_error *err)
{
    const json_t *query = json_object_get(body, "query");
    const json_t *variables = json_object_get(body, "variables");
    const json_t *operation = json_object_get(body, "operationName");

    if (!operation || json_is_null(operation))
        operation = json_object_get(body, "operation_name");
    if (!json_is_object(body))
        return aq_fail(err, EINVAL, "the body of a GraphQL request must be a JSON object");
    if (!json_is_string(query))
        return aq_fail_field(err, EINVAL, "query", "query must be a string");
    if (variables && !json_is_null(variables) && !json_is_object(variables))
        return aq_fail_field(err, EINVAL, "variables", "variables must be an object");
    if (operation && !json_is_null(operation) && !json_is_string(operation))
        return aq_fail_field(err, EINVAL, "operationName", "operationName must be a string");
    *ret = (struct gql_params){
        .query = json_string_value(query),
        .query_len = json_string_length(query),
        .operation = json_string_value(operation),
        .variables = json_is_object(variables) ? variables : NULL,
    };
    return 0;
}

/* The validated document, from the cache or new; NULL with errors. */
static struct gql_document *engine_get_document(struct gql_engine *engine, const char *text,
                                                size_t len, struct errors *errors)
{
    const struct gql_conf *conf = &engine->conf;
    struct gql_document *doc = cache_find(engine->cache, text, len);

    if (doc)
        return doc;
    doc = document_parse(text, len, &conf->limits, conf->is_lenient, errors);
    if (!doc)
        return NULL;
    if (!document_validate(doc, conf, engine->scalars, errors)) {
        document_unref(doc);
        return NULL;
    }
    cache_add(engine->cache, doc);
    return doc;
}

/* The operation to run; NULL with an error. */
static const struct ast_definition *engine_choose_operation(const struct gql_document *doc,
                                                            const char *name, struct errors *errors)
{
    const struct ast_definition *found = NULL;

    for (const struct ast_definition *def = doc->first; def; def = def->next) {
        if (!ast_is_operation(def))
            continue;
        if (!name && found) {
            (void)errors_add(errors, UINT32_MAX,
                             "Must provide operation name if query contains multiple operations.");
            return NULL;
        }
        if (!name || (def->name.symbol && strcmp(def->name.symbol->text, name) == 0))
            found = def;
    }
    if (!found && name)
        (void)errors_add(errors, UINT32_MAX, "Unknown operation named \"%s\".", name);
    else if (!found)
        (void)errors_add(errors, UINT32_MAX, "Must provide an operation.");
    return found;
}

static bool engine_prepare_variables(struct gql_request *r, const json_t *json)
{
    struct coerce c = { .arena = &r->arena, .scalars = r->engine->scalars };
    uint32_t symbols = r->doc->symbol_count, fragments = r->doc->fragment_count;

    r->variables = request_alloc(r, symbols, sizeof(*r->variables));
    r->symbol_marks = request_alloc(r, 2 * (size_t)symbols + fragments, sizeof(uint32_t));
    r->symbol_fields = r->symbol_marks + symbols;
    r->fragment_marks = r->symbol_fields + symbols;
    for (uint32_t i = 0; i < symbols; i++)
        r->variables[i].kind = GQL_ABSENT;
    coerce_variables(&c, r->operation->operation.variables, json, r->variables, &r->errors);
    return !request_is_over(r) && r->errors.count == 0;
}

/* Everything that can be refused before the first resolver runs. */
static bool engine_prepare(struct gql_request *r, const struct gql_params *params)
{
    r->doc = engine_get_document(r->engine, params->query, params->query_len, &r->errors);
    if (!r->doc)
        return false;
    r->operation = engine_choose_operation(r->doc, params->operation, &r->errors);
    return r->operation && engine_prepare_variables(r, params->variables) && limits_check_cost(r);
}

/* The request ends before anything ran. */
static void engine_refuse(struct gql_request *r, const struct gql_params *params)
{
    struct gql_result result = { .errors = r->errors.count };

    if (request_is_over(r)) {
        result.code = -ENOMEM;
    } else {
        jsonw_object_begin(&r->writer);
        errors_write(&r->errors, params->query, params->query_len, &r->writer);
        jsonw_object_end(&r->writer);
    }
    r->done(r->data, &result);
    request_free(r);
}

void gql_execute(struct gql_engine *engine, const struct gql_params *params, struct strbuf *out,
                 gql_done_fn done, void *data)
{
    struct gql_request *r = aq_alloc(sizeof(*r));

    r->engine = engine;
    r->arena = engine->spare;
    engine->spare = (struct arena)ARENA_INIT;
    r->arena.limit = engine->conf.limits.memory;
    r->errors.arena = &r->arena;
    r->context = params->context;
    r->root = params->root;
    r->pause = params->pause;
    r->out = out;
    r->start = out->len;
    r->writer = jsonw_make(out);
    r->done = done;
    r->data = data;
    if (engine_prepare(r, params))
        request_run(r);
    else
        engine_refuse(r, params);
}
