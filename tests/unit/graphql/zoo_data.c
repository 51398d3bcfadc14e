/* SPDX-License-Identifier: Apache-2.0 */
#include "zoo_data.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/jsonw.h"

struct owner;

struct animal {
    const char *id, *name;
    const struct owner *owner;
    int size;
};

struct owner {
    const char *id, *name;
    const struct animal *pets[3];
    uint32_t type_ids[3];
    uint32_t pet_count;
};

static const struct animal cats[2];
static const struct animal dogs[2];

static const struct owner owners[] = {
    { "1", "Ann", { &cats[0], &dogs[0], NULL }, { ZOO_TYPE_Cat, ZOO_TYPE_Dog, 0 }, 3 },
    { "2", "Bob", { &cats[1] }, { ZOO_TYPE_Cat }, 1 },
    { "3", "Cyd", { NULL }, { 0 }, 0 },
};
static const struct animal cats[2] = {
    { "c0", "Tom", &owners[0], 0 },
    { "c1", NULL, &owners[1], 0 },
};
static const struct animal dogs[2] = {
    { "d0", "Rex", &owners[0], ZOO_VALUE_Size_LARGE },
    { "d1", "Stray", NULL, 99 },
};

struct zoo_seen zoo_seen;

void zoo_reset(void)
{
    memset(&zoo_seen, 0, sizeof(zoo_seen));
}

static struct gql_value animal_value(uint32_t type_id, const struct animal *animal)
{
    return gql_object_of(type_id, animal);
}

static int resolve_cat(struct gql_call *call)
{
    call->results[0] = gql_object(&cats[0]);
    return GQL_DONE;
}

static int resolve_dog(struct gql_call *call)
{
    call->results[0] = gql_object(&dogs[0]);
    return GQL_DONE;
}

static int resolve_animals(struct gql_call *call)
{
    struct gql_value *items = arena_array(call->arena, 6, sizeof(*items));

    items[0] = animal_value(ZOO_TYPE_Cat, &cats[0]);
    items[1] = animal_value(ZOO_TYPE_Dog, &dogs[0]);
    items[3] = animal_value(ZOO_TYPE_Cat, &cats[1]);
    items[4] = gql_error(call->arena, "this one ran away");
    items[5] = animal_value(ZOO_TYPE_Dog, &dogs[1]);
    call->results[0] = gql_list(items, 6);
    return GQL_DONE;
}

static int resolve_node(struct gql_call *call)
{
    const char *id = call->args[ZOO_ARG_Query_node_id].text;

    if (strcmp(id, "c0") == 0)
        call->results[0] = gql_object_of(ZOO_TYPE_Cat, &cats[0]);
    else if (strcmp(id, "owner") == 0)
        call->results[0] = gql_object_of(ZOO_TYPE_Owner, &owners[0]);
    else if (strcmp(id, "untyped") == 0)
        call->results[0] = gql_object(&owners[0]);
    else if (strcmp(id, "text") == 0)
        call->results[0] = gql_text("no object");
    return GQL_DONE;
}

static int resolve_owner(struct gql_call *call)
{
    zoo_seen.cats_selected = gql_call_selects(call, "cats");
    call->results[0] = gql_object(&owners[0]);
    return GQL_DONE;
}

static int resolve_owners(struct gql_call *call)
{
    int64_t limit = call->args[ZOO_ARG_Query_owners_limit].integer;

    limit = AQ_MAX(0, AQ_MIN(limit, (int64_t)AQ_COUNT(owners)));
    call->results[0] = gql_rows_of(call->arena, owners, (uint32_t)limit, sizeof(owners[0]));
    return GQL_DONE;
}

static int resolve_animal_owner(struct gql_call *call)
{
    zoo_seen.owner_calls++;
    zoo_seen.owner_parents += call->count;
    zoo_seen.memory = call->arena->used;
    for (uint32_t i = 0; i < call->count; i++)
        call->results[i] = gql_object(((const struct animal *)call->parents[i])->owner);
    return GQL_DONE;
}

static struct gql_value get_friends(struct gql_get *get, const void *parent)
{
    struct gql_value *items = arena_array(get->arena, 2, sizeof(*items));

    items[0] = animal_value(ZOO_TYPE_Dog, &dogs[0]);
    items[1] = parent == &cats[0] ? animal_value(ZOO_TYPE_Dog, &dogs[1]) : gql_null();
    return gql_list(items, 2);
}

static struct gql_value get_lives(struct gql_get *get, const void *parent)
{
    (void)parent;
    return gql_int(get->args[0].kind == GQL_BOOL && get->args[0].boolean ? 7 : 9);
}

static struct gql_value get_barks(struct gql_get *get, const void *parent)
{
    (void)parent;
    (void)snprintf(get->scratch, sizeof(get->scratch), "%lld barks at %d",
                   (long long)get->args[0].integer,
                   get->args[1].kind == GQL_LIST ? (int)get->args[1].count : -1);
    return gql_text(get->scratch);
}

static struct gql_value get_pets(struct gql_get *get, const void *parent)
{
    const struct owner *owner = parent;
    struct gql_value *items = arena_array(get->arena, owner->pet_count, sizeof(*items));

    for (uint32_t i = 0; i < owner->pet_count; i++)
        items[i] = animal_value(owner->type_ids[i], owner->pets[i]);
    return gql_list(items, owner->pet_count);
}

static struct gql_value get_cats(struct gql_get *get, const void *parent)
{
    static const void *const rows[] = { &cats[0], &cats[1] };

    (void)parent;
    return gql_rows(rows, (uint32_t)AQ_MAX(0, AQ_MIN(get->args[0].integer, 2)));
}

/* Coerced arguments as JSON: what a resolver sees. */
static void show(struct strbuf *out, const struct gql_value *value, const struct gql_ref *type)
{
    struct jsonw w = jsonw_make(out);
    struct gql_ref ref = gql_ref_nullable(*type);
    struct gql_ref item = gql_ref_is_list(ref) ? gql_ref_inner(ref) : ref;

    switch ((enum gql_kind)value->kind) {
    case GQL_LIST:
        strbuf_addc(out, '[');
        for (uint32_t i = 0; i < value->count; i++) {
            strbuf_adds(out, i ? "," : "");
            show(out, &value->items[i], &item);
        }
        strbuf_addc(out, ']');
        break;
    case GQL_INPUT:
        strbuf_addc(out, '{');
        for (uint32_t i = 0, n = 0; i < value->count; i++) {
            if (value->items[i].kind == GQL_ABSENT)
                continue;
            strbuf_addf(out, "%s%s:", n++ ? "," : "", ref.type->inputs[i].name);
            show(out, &value->items[i], &ref.type->inputs[i].type);
        }
        strbuf_addc(out, '}');
        break;
    case GQL_MAP:
        strbuf_addc(out, '{');
        for (uint32_t i = 0; i < value->count; i++) {
            strbuf_addf(out, "%s%s:", i ? "," : "", value->members[i].name);
            show(out, &value->members[i].value, &ref);
        }
        strbuf_addc(out, '}');
        break;
    case GQL_STRING:
        jsonw_strn(&w, value->text, value->count);
        break;
    case GQL_INT:
        jsonw_int(&w, value->integer);
        break;
    case GQL_FLOAT:
        jsonw_double(&w, value->real);
        break;
    case GQL_BOOL:
        jsonw_bool(&w, value->boolean);
        break;
    case GQL_ENUM:
        strbuf_adds(out, ref.type->values[value->integer].name);
        break;
    default:
        strbuf_adds(out, "null");
        break;
    }
}

static int resolve_echo(struct gql_call *call)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    for (uint32_t i = 0; i < call->field->arg_count; i++) {
        if (call->args[i].kind == GQL_ABSENT)
            continue;
        strbuf_addf(&out, "%s%s=", out.len ? " " : "", call->field->args[i].name);
        show(&out, &call->args[i], &call->field->args[i].type);
    }
    call->results[0] = gql_text(arena_strdup(call->arena, out.data));
    return GQL_DONE;
}

static int resolve_json(struct gql_call *call)
{
    call->results[0] = gql_raw("{\"a\":[1,null]}", 14);
    return GQL_DONE;
}

static int resolve_slow(struct gql_call *call)
{
    if (zoo_seen.slow_later) {
        zoo_seen.slow = call;
        return GQL_LATER;
    }
    call->results[0] = gql_text("not slow at all");
    return GQL_DONE;
}

static int resolve_strict(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count; i++)
        call->results[i] = gql_object("strict");
    return GQL_DONE;
}

static int resolve_nested(struct gql_call *call)
{
    return gql_call_fail(call, "nothing is nested in %u", call->count);
}

static int resolve_set(struct gql_call *call)
{
    zoo_seen.sets++;
    call->results[0] = call->args[0].integer < 0 ? gql_error(call->arena, "below zero")
                                                 : call->args[0];
    return GQL_DONE;
}

static int resolve_get(struct gql_call *call)
{
    call->results[0] = gql_int(zoo_seen.sets);
    return GQL_DONE;
}

static const struct gql_value strict_items[] = {
    { .kind = GQL_INT, .integer = 1 },
    { .kind = GQL_NULL },
};

const struct gql_resolver zoo_resolvers[ZOO_FIELD_COUNT] = {
    [ZOO_FIELD_Cat_id] = GQL_TEXT_AT(struct animal, id),
    [ZOO_FIELD_Cat_name] = GQL_TEXT_AT(struct animal, name),
    [ZOO_FIELD_Cat_lives] = GQL_GET(get_lives),
    [ZOO_FIELD_Cat_friends] = GQL_GET(get_friends),
    [ZOO_FIELD_Cat_owner] = GQL_CALL(resolve_animal_owner),
    [ZOO_FIELD_Dog_id] = GQL_TEXT_AT(struct animal, id),
    [ZOO_FIELD_Dog_name] = GQL_TEXT_AT(struct animal, name),
    [ZOO_FIELD_Dog_barks] = GQL_GET(get_barks),
    [ZOO_FIELD_Dog_size] = GQL_ENUM_AT(struct animal, size),
    [ZOO_FIELD_Dog_owner] = GQL_CALL(resolve_animal_owner),
    [ZOO_FIELD_Dog_old] = GQL_ALWAYS_NULL,
    [ZOO_FIELD_Owner_id] = GQL_TEXT_AT(struct owner, id),
    [ZOO_FIELD_Owner_name] = GQL_TEXT_AT(struct owner, name),
    [ZOO_FIELD_Owner_pets] = GQL_GET(get_pets),
    [ZOO_FIELD_Owner_cats] = GQL_GET(get_cats),
    [ZOO_FIELD_Owner_strict] = GQL_CALL(resolve_strict),
    [ZOO_FIELD_Strict_value] = GQL_ALWAYS_NULL,
    [ZOO_FIELD_Strict_list] = { .how = GQL_HOW_CONST,
                                .value = { .kind = GQL_LIST, .count = 2, .items = strict_items } },
    [ZOO_FIELD_Strict_nested] = GQL_CALL(resolve_nested),
    [ZOO_FIELD_Strict_maybe] = { .how = GQL_HOW_CONST,
                                 .value = { .kind = GQL_STRING, .count = 1, .text = "x" } },
    [ZOO_FIELD_Query_cat] = GQL_CALL(resolve_cat),
    [ZOO_FIELD_Query_dog] = GQL_CALL(resolve_dog),
    [ZOO_FIELD_Query_animals] = GQL_CALL(resolve_animals),
    [ZOO_FIELD_Query_node] = GQL_CALL(resolve_node),
    [ZOO_FIELD_Query_owner] = GQL_CALL(resolve_owner),
    [ZOO_FIELD_Query_owners] = GQL_CALL(resolve_owners),
    [ZOO_FIELD_Query_echo] = GQL_CALL(resolve_echo),
    [ZOO_FIELD_Query_must] = GQL_CALL(resolve_echo),
    [ZOO_FIELD_Query_big] = { .how = GQL_HOW_CONST,
                              .value = { .kind = GQL_INT, .integer = INT64_C(9007199254740993) } },
    [ZOO_FIELD_Query_json] = GQL_CALL(resolve_json),
    [ZOO_FIELD_Query_size] = { .how = GQL_HOW_CONST,
                               .value = { .kind = GQL_STRING, .count = 4, .text = "HUGE" } },
    [ZOO_FIELD_Query_strict] = GQL_CALL(resolve_strict),
    [ZOO_FIELD_Query_slow] = GQL_CALL(resolve_slow),
    [ZOO_FIELD_Mutation_set] = GQL_CALL(resolve_set),
    [ZOO_FIELD_Mutation_fail] = GQL_ALWAYS_NULL,
    [ZOO_FIELD_Mutation_get] = GQL_CALL(resolve_get),
    [ZOO_FIELD_Subscription_tick] = GQL_ALWAYS_NULL,
    [ZOO_FIELD_Subscription_tock] = GQL_ALWAYS_NULL,
};

static struct gql_engine *zoo_make(struct gql_conf conf)
{
    struct gql_engine *engine;
    struct aq_error err = { 0 };

    conf.schema = &zoo_schema;
    conf.resolvers = zoo_resolvers;
    if (gql_engine_new(&conf, &engine, &err) == 0)
        return engine;
    (void)fprintf(stderr, "%s\n", err.text);
    abort();
}

struct gql_engine *zoo_engine(const struct gql_limits *limits, size_t cache_documents)
{
    static const struct gql_limits none;

    return zoo_make(
        (struct gql_conf){ .limits = limits ? *limits : none, .cache_documents = cache_documents });
}

struct gql_engine *zoo_lenient_engine(void)
{
    return zoo_make((struct gql_conf){ .is_lenient = true });
}

static void on_done(void *data, const struct gql_result *result)
{
    *(struct gql_result *)data = *result;
}

static struct gql_request *zoo_paused;

static void on_pause(void *context, struct gql_request *request)
{
    (void)context;
    zoo_seen.pauses++;
    zoo_paused = request;
}

struct gql_result zoo_run(struct gql_engine *engine, const char *query, const char *variables,
                          const char *operation, struct strbuf *out)
{
    json_t *json = variables ? json_loads(variables, 0, NULL) : NULL;
    struct gql_params params = {
        .query = query,
        .query_len = strlen(query),
        .operation = operation,
        .variables = json,
        .pause = on_pause,
    };
    struct gql_result result = { .code = 1 };

    gql_execute(engine, &params, out, on_done, &result);
    json_decref(json);
    while (zoo_paused) {
        struct gql_request *request = zoo_paused;

        zoo_paused = NULL;
        gql_resume(request);
    }
    return result;
}
