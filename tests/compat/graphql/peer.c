/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - the engine over the data source of oracle.mjs
 *
 * "peer LIBRARY" answers one JSON request a line from standard input with one
 * line. The library has the schema's tables (tables.mjs). What a field gives
 * follows from its type and seed, as oracle.mjs describes.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "graphql/graphql.h"
#include "graphql/schema.h"

struct thing {
    uint32_t seed;
};

static uint32_t fnv(const char *text, size_t len)
{
    uint32_t hash = 0x811c9dc5;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x01000193u;
    return hash;
}

static void write_value(struct jsonw *w, const struct gql_type *type,
                        const struct gql_value *value);

static void write_input(struct jsonw *w, const struct gql_input_def *defs, uint32_t count,
                        const struct gql_value *values)
{
    jsonw_object_begin(w);
    for (uint32_t i = 0; i < count; i++) {
        if (values[i].kind == GQL_ABSENT)
            continue;
        jsonw_key(w, defs[i].name);
        write_value(w, defs[i].type.type, &values[i]);
    }
    jsonw_object_end(w);
}

/* As JSON.stringify() writes it. */
static void write_value(struct jsonw *w, const struct gql_type *type, const struct gql_value *value)
{
    switch (value->kind) {
    case GQL_BOOL:
        jsonw_bool(w, value->boolean);
        break;
    case GQL_INT:
        jsonw_int(w, value->integer);
        break;
    case GQL_FLOAT:
        jsonw_double(w, value->real);
        break;
    case GQL_STRING:
        jsonw_strn(w, value->text, value->count);
        break;
    case GQL_ENUM:
        jsonw_str(w, type->values[value->integer].name);
        break;
    case GQL_INPUT:
        write_input(w, type->inputs, type->input_count, value->items);
        break;
    case GQL_LIST:
        jsonw_array_begin(w);
        for (uint32_t i = 0; i < value->count; i++)
            write_value(w, type, &value->items[i]);
        jsonw_array_end(w);
        break;
    case GQL_MAP:
        jsonw_object_begin(w);
        for (uint32_t i = 0; i < value->count; i++) {
            jsonw_key(w, value->members[i].name);
            write_value(w, type, &value->members[i].value);
        }
        jsonw_object_end(w);
        break;
    default:
        jsonw_null(w);
    }
}

static uint32_t field_seed(uint32_t seed, const struct gql_call *call)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    strbuf_addf(&text, "%" PRIu32 "/%s/", seed, call->field->name);
    write_input(&w, call->field->args, call->field->arg_count, call->args);
    return fnv(text.data, text.len);
}

/* 'before', the seed in decimal (or 8 hexadecimal digits), 'after'. */
static struct gql_value text_of(struct arena *arena, const char *before, uint32_t seed, bool hex,
                                const char *after)
{
    char text[80];
    int len = hex ? snprintf(text, sizeof(text), "%s%08" PRIx32 "%s", before, seed, after)
                  : snprintf(text, sizeof(text), "%s%" PRIu32 "%s", before, seed, after);

    return gql_textn(arena_strndup(arena, text, (size_t)len), (size_t)len);
}

static struct gql_value leaf(struct arena *arena, const struct gql_type *type, uint32_t seed)
{
    if (type->kind == GQL_TYPE_ENUM)
        return gql_enum(seed % type->value_count);
    if (strcmp(type->name, "Int") == 0)
        return gql_int((int64_t)(seed % 2001) - 1000);
    if (strcmp(type->name, "Float") == 0)
        return gql_float((seed % 8001) / 8.0 - 500);
    if (strcmp(type->name, "Boolean") == 0)
        return gql_bool(seed % 2 == 0);
    if (strcmp(type->name, "ID") == 0)
        return text_of(arena, "id-", seed % 100000, false, "");
    if (strcmp(type->name, "BigInt") == 0)
        return gql_int((int64_t)seed * 64);
    if (strcmp(type->name, "UUID") == 0)
        return text_of(arena, "00000000-0000-4000-8000-0000", seed, true, "");
    if (strcmp(type->name, "DateTime") == 0)
        return gql_text("2026-11-21T01:02:03+00:00");
    if (strcmp(type->name, "JSONString") == 0)
        return text_of(arena, "{\"seed\": ", seed, false, "}");
    return text_of(arena, "text ", seed, false, " \"\xc3\xa9\n\"");
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct gql_type *const *)a)->name,
                  (*(const struct gql_type *const *)b)->name);
}

static const struct gql_type *choose(const struct gql_type *type, uint32_t seed)
{
    const struct gql_type *sorted[16];

    memcpy(sorted, type->possible, type->possible_count * sizeof(sorted[0]));
    qsort(sorted, type->possible_count, sizeof(sorted[0]), by_name);
    return sorted[(seed >> 5) % type->possible_count];
}

static struct gql_value produce(struct arena *arena, struct gql_ref ref, uint32_t seed)
{
    bool strict = gql_ref_is_non_null(ref);
    struct thing *thing;

    ref = gql_ref_nullable(ref);
    if (seed % (strict ? 211 : 23) == 7)
        return gql_error(arena, "no luck with %" PRIu32, seed);
    if (seed % (strict ? 199 : 17) == 5)
        return gql_null();
    if (gql_ref_is_list(ref)) {
        uint32_t count = (seed >> 3) % 4;
        struct gql_value *items = arena_array(arena, count, sizeof(*items));

        for (uint32_t i = 0; i < count; i++) {
            char text[32];
            int len = snprintf(text, sizeof(text), "%" PRIu32 "#%" PRIu32, seed, i);

            items[i] = produce(arena, gql_ref_inner(ref), fnv(text, (size_t)len));
        }
        return gql_list(items, count);
    }
    if (ref.type->kind == GQL_TYPE_SCALAR || ref.type->kind == GQL_TYPE_ENUM)
        return leaf(arena, ref.type, seed);
    thing = arena_alloc(arena, sizeof(*thing));
    thing->seed = seed;
    if (ref.type->kind == GQL_TYPE_OBJECT)
        return gql_object(thing);
    return gql_object_of(choose(ref.type, seed)->id, thing);
}

static int resolve(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count; i++) {
        const struct thing *parent = call->parents[i];

        call->results[i] = produce(call->arena, call->field->type, field_seed(parent->seed, call));
    }
    return GQL_DONE;
}

static void on_done(void *data, const struct gql_result *result)
{
    (void)data;
    if (result->code < 0)
        exit(1);
}

static void answer(struct gql_engine *engine, const char *line)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *body = json_loads(line, JSON_ALLOW_NUL, NULL);
    struct aq_error err = { 0 };
    const struct thing root = { .seed = 1 };
    struct gql_params params;

    if (!body || gql_params_from_json(body, &params, &err) < 0) {
        (void)printf("{\"errors\":[{\"message\":\"bad request: %s\"}]}\n", err.text);
    } else {
        params.root = &root;
        gql_execute(engine, &params, &out, on_done, NULL);
        (void)printf("%s\n", out.data);
    }
    (void)fflush(stdout);
    json_decref(body);
}

static int serve(const struct gql_schema *schema)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = NULL;
    AQ_CLEANUP(aq_freep) struct gql_resolver *resolvers = calloc(schema->field_count,
                                                                 sizeof(*resolvers));
    AQ_CLEANUP(aq_freep) char *line = NULL;
    const struct gql_conf conf = { .schema = schema,
                                   .resolvers = resolvers,
                                   .cache_documents = 16 };
    struct aq_error err = { 0 };
    size_t cap = 0;

    for (uint32_t i = 0; resolvers && i < schema->field_count; i++)
        resolvers[i] = (struct gql_resolver)GQL_CALL(resolve);
    if (gql_engine_new(&conf, &engine, &err) < 0) {
        (void)fprintf(stderr, "peer: %s\n", err.text);
        return 1;
    }
    while (getline(&line, &cap, stdin) > 0)
        answer(engine, line);
    return 0;
}

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    const struct gql_schema *schema = library ? dlsym(library, "schema_schema") : NULL;

    if (!schema) {
        (void)fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: peer LIBRARY");
        return 1;
    }
    return serve(schema);
}
