/* SPDX-License-Identifier: Apache-2.0 */
/* POST /admin/gql: the schema of schema.graphql over memory and store. */
#include "manager/call/graphql/gql.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "manager/call/graphql/entity_fields.h"
#include "manager/call/graphql/node.h"
#include "manager/call/graphql/subscription_gql.h"
#include "manager/call/turns.h"

/* ---- the engine ---- */

/* A list of 100 sessions with all fields and those of their kernels costs 21,000. */
#define COST_MAX 300000
#define REPLY_MAX (8 << 20)
#define MEMORY_MAX (32 << 20) /* exceeded by one call at most: the edges of rows of GQL_KEPT_MAX */

static struct gql_resolver resolvers[SCHEMA_FIELD_COUNT];

static int gql_add_entries(const struct feature *feature, const struct gql_table *table,
                           struct aq_error *err)
{
    for (size_t i = 0; i < table->count; i++) {
        struct gql_resolver *resolver = &resolvers[table->entries[i].field];

        if (resolver->how != GQL_HOW_NONE)
            return aq_fail(err, EINVAL, "feature %s: entry %zu resolves a GraphQL field again",
                           feature->name, i);
        *resolver = table->entries[i].resolver;
    }
    return 0;
}

static void gql_share_resolvers(const struct gql_same *same_types)
{
    const struct gql_type *from = schema_schema.types[same_types->as - 1];
    const struct gql_type *to = schema_schema.types[same_types->type - 1];

    for (uint32_t i = 0; i < to->field_count; i++) {
        struct gql_resolver *resolver = &resolvers[to->fields[i].id];
        const char *name = to->fields[i].name;
        const struct gql_field_def *same = gql_field_find(from, name, strlen(name));

        if (resolver->how == GQL_HOW_NONE && same)
            *resolver = resolvers[same->id];
    }
}

/* How a scalar of texts is read. */
static const char *gql_parse_text(struct arena *arena, const struct gql_value *in,
                                  struct gql_value *ret)
{
    (void)arena;
    if (in->kind != GQL_STRING || strlen(in->text) != in->count)
        return "it is a text";
    *ret = *in;
    return NULL;
}

static const struct gql_scalar texts[] = {
    { "GlobalIDField", gql_parse_text },
    { "ScopeField", gql_parse_text },
    { "AgentPermissionField", gql_parse_text },
    { "DomainPermissionValueField", gql_parse_text },
    { "GroupPermissionField", gql_parse_text },
    { "ImagePermissionValueField", gql_parse_text },
    { "SessionPermissionValueField", gql_parse_text },
    { "VFolderPermissionValueField", gql_parse_text },
    { "ContainerRegistryTypeField", gql_parse_text },
    { NULL, NULL },
};

/* Entries come first: the others only fill in what these leave. */
static int gql_fill_resolvers(const struct feature *const *features, struct aq_error *err)
{
    int r;

    memset(resolvers, 0, sizeof(resolvers));
    for (const struct feature *const *f = features; *f; f++)
        for (const struct gql_table *const *table = (*f)->gql; table && *table; table++)
            if ((r = gql_add_entries(*f, *table, err)) < 0)
                return r;
    for (const struct feature *const *f = features; *f; f++)
        for (const struct gql_entity *one = (*f)->entities; one && one->entity; one++)
            entity_fields_resolve(resolvers, schema_schema.types[one->type - 1], one->entity);
    for (const struct feature *const *f = features; *f; f++)
        for (const struct gql_same *same = (*f)->same; same && same->type; same++)
            gql_share_resolvers(same);
    return 0;
}

int gql_new(const struct feature *const *features, struct gql_engine **ret, struct aq_error *err)
{
    static const struct gql_limits standard = GQL_LIMITS_DEFAULT;
    struct gql_conf conf = {
        .schema = &schema_schema,
        .resolvers = resolvers,
        .scalars = texts,
        .limits = standard,
        .is_lenient = true, /* Backend.AI's web UI drops fields that are newer than
                                              the manager, and not their fragments */
        .cache_documents = 256,
    };

    conf.limits.cost = COST_MAX;
    conf.limits.reply = REPLY_MAX;
    conf.limits.memory = MEMORY_MAX;
    if (gql_fill_resolvers(features, err) < 0)
        return -err->code;
    gql_node_set_features(features);
    return gql_engine_new(&conf, ret, err);
}

/* ---- requests ---- */

struct gql_run {
    struct gql_context context; /* first */
    struct turn turn;
    struct gql_request *paused; /* goes on at its turn */
    struct uuid user_id;
    bool has_turn;
    bool is_legacy; /* bare data, errors as a problem */
};

static void gql_run_free(struct gql_run *run)
{
    for (struct gql_page *kept = run->context.pages; kept; kept = kept->next)
        store_page_free(kept->page);
    slot_types_unref(run->context.types); /* NULL before its turn */
    strbuf_done(&run->context.out);
    if (run->has_turn)
        turns_leave(run->context.api->turns, &run->user_id);
    free(run);
}

/* {"data": X} without its wrapping, or the errors as a graphql-error. */
static void gql_reply_legacy(struct request *req, const struct strbuf *out)
{
    json_auto_t *reply = json_load_text(out->data, out->len, 0, NULL);
    const json_t *errors = json_object_get(reply, "errors");
    AQ_CLEANUP(aq_freep) char *text = NULL;
    struct aq_error err = { 0 };

    text = json_dump_text(errors ? errors : json_object_get(reply, "data"), JSON_COMPACT);
    if (errors) {
        aq_fail_kind(&err, EINVAL, "graphql-error", "the query failed");
        request_fail_data(req, &err, text);
    } else {
        request_reply(req, 200, "application/json", text, strlen(text));
    }
}

static void gql_run_fail(struct gql_run *run, const struct aq_error *err)
{
    struct gql_feed *feed = run->context.feed;
    struct request *req = run->context.req;

    gql_run_free(run);
    if (feed)
        gql_feed_fail(feed, err);
    else
        request_fail(req, err);
}

static void gql_on_executed(void *data, const struct gql_result *result)
{
    struct gql_run *run = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = run->context.out;
    struct gql_feed *feed = run->context.feed;
    struct request *req = run->context.req;
    bool is_legacy = run->is_legacy;
    struct aq_error err = { 0 };

    strbuf_init(&run->context.out);
    if (result->code < 0) {
        aq_fail_field(&err, EINVAL, "query",
                      "the query needs more than %d MiB of memory: ask for fewer fields or rows",
                      MEMORY_MAX >> 20);
        gql_run_fail(run, &err);
        return;
    }
    gql_run_free(run); /* the user's next request may take its turn, and nobody finds the run */
    if (feed)
        gql_feed_take(feed, &out);
    else if (is_legacy)
        gql_reply_legacy(req, &out);
    else
        request_reply_json(req, 200, &out);
}

static void gql_run_resume(struct turn *turn)
{
    struct gql_run *run = LIST_ENTRY(&turn->link, struct gql_run, turn.link);

    gql_resume(run->paused);
}

static void gql_run_pause(void *context, struct gql_request *request)
{
    struct gql_run *run = context;

    run->paused = request;
    run->turn.fn = gql_run_resume;
    turns_wait(run->context.api->turns, &run->turn);
}

static int gql_run_parse(const struct gql_context *context, json_t **ret, struct aq_error *err)
{
    return context->feed ? gql_feed_parse(context->feed, ret, err)
                         : api_parse(context->req, ret, err);
}

/* The user's turn has come: the body is parsed now and not before. */
static void gql_run_start(struct turn *turn)
{
    struct gql_run *run = LIST_ENTRY(&turn->link, struct gql_run, turn.link);
    struct gql_context *context = &run->context;
    struct gql_params params = { 0 };
    json_auto_t *body = NULL;
    struct aq_error err = { 0 };

    run->has_turn = true;
    if (api_check_caller(context->api, context->req, &err) < 0
        || gql_run_parse(context, &body, &err) < 0
        || gql_params_from_json(body, &params, &err) < 0) {
        gql_run_fail(run, &err);
        return;
    }
    context->types = slot_types_ref(core_slot_types(context->api->core));
    params.context = context;
    params.pause = gql_run_pause;
    gql_execute(context->api->gql, &params, &context->out, gql_on_executed, run);
}

/* 'feed' NULL: answered by one reply. */
static void gql_run_begin(struct request *req, struct api *api, struct gql_feed *feed,
                          bool is_legacy)
{
    struct gql_run *run = aq_alloc(sizeof(*run));
    struct aq_error err = { 0 };

    run->is_legacy = is_legacy;
    run->user_id = api_principal(req)->user_id;
    run->turn.fn = gql_run_start;
    run->context = (struct gql_context){
        .api = api, .req = req, .who = api_principal(req), .feed = feed, .out = STRBUF_INIT
    };
    if (turns_enter(api->turns, request_get_loop(req), &run->user_id, &run->turn, &err) < 0)
        gql_run_fail(run, &err);
}

static void gql_feed_run(struct gql_feed *feed)
{
    gql_run_begin(gql_feed_request(feed), gql_feed_api(feed), feed, false);
}

static void gql_on_request(struct request *req, void *data)
{
    gql_run_begin(req, data, gql_feed_new(data, req, gql_feed_run), false);
}

static void gql_on_legacy_request(struct request *req, void *data)
{
    gql_run_begin(req, data, NULL, true);
}

struct documented {
    const char *query;
};

static const struct field gql_fields[] = {
    { "query", FIELD_STR, FIELD_REQUIRED, offsetof(struct documented, query), 1, 1 << 20 },
    { "variables", FIELD_OBJECT, FIELD_NULLABLE },
    { "operationName|operation_name", FIELD_STR, FIELD_NULLABLE },
    FIELD_END,
};

static const struct route gql_routes[] = {
    { METHOD_POST, "/admin/gql", API_USER, gql_on_request, gql_fields, "Run a GraphQL request",
      .answer = { .types = "application/json|text/event-stream" } },
    { METHOD_POST, "/admin/graphql", API_USER, gql_on_legacy_request, gql_fields,
      "Run a GraphQL request as before v6.20210815: bare data, errors as a problem" },
};
API_ROUTES_END(gql);

static const struct route_table *const gql_tables[] = { &gql_route_table, NULL };
static const struct gql_table *const gql_types[] = { &node_gql_table, &node_related_gql_table,
                                                     &subscription_gql_table, NULL };

const struct feature gql_feature = { .name = "graphql", .routes = gql_tables, .gql = gql_types };
