/* SPDX-License-Identifier: Apache-2.0 */
/* bench-graphql-engine query|cached SECONDS [ROWS] - requests answered in a second
 * bench-graphql-engine list|jansson SECONDS [ROWS] - replies written in a second
 *
 * 'query' parses, validates and executes the session list of the real clients
 * each time, 'cached' finds the validated document; 'list' is 'cached' with
 * many rows, and 'jansson' builds and dumps the same reply as a tree. Prints
 * one JSON object; 'document_bytes' is what the cached document takes. With
 * SECONDS 0 the reply itself is printed, to compare.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "graphql/graphql.h"
#include "sessions.h"

static const char query[] =
    "query($limit:Int!, $offset:Int!, $status: String, $access_key: String, $filter: String, "
    "$order: String) {\n"
    "  compute_session_list(limit:$limit, offset:$offset, status:$status, access_key:$access_key, "
    "filter:$filter, order:$order) {\n"
    "    items { name access_key session_id group_name id image type status status_info "
    "status_changed result } total_count } }";

static const char variables[] =
    "{\"status\":\"PENDING,SCHEDULED,PREPARING,PULLING,RUNNING,RESTARTING,TERMINATING,RESIZING,"
    "SUSPENDED,ERROR\",\"access_key\":null,\"filter\":null,\"order\":null,\"limit\":20,"
    "\"offset\":0}";

struct session {
    struct uuid id;
    char name[32];
    const char *access_key, *group_name, *image, *type, *status, *status_info, *result;
    int64_t status_changed_usec;
};

struct list {
    struct gql_value items;
    int64_t total;
};

struct bench {
    struct session *sessions;
    uint32_t count;
};

static int resolve_list(struct gql_call *call)
{
    const struct bench *bench = call->context;
    struct list *list = arena_alloc(call->arena, sizeof(*list));

    list->items = gql_rows_of(call->arena, bench->sessions, bench->count, sizeof(struct session));
    list->total = bench->count;
    call->results[0] = gql_object(list);
    return GQL_DONE;
}

static const struct gql_resolver resolvers[SESSIONS_FIELD_COUNT] = {
    [SESSIONS_FIELD_Query_compute_session_list] = GQL_CALL(resolve_list),
    [SESSIONS_FIELD_ComputeSessionList_items] = GQL_VALUE_AT(struct list, items),
    [SESSIONS_FIELD_ComputeSessionList_total_count] = GQL_COUNT_AT(struct list, total),
    [SESSIONS_FIELD_ComputeSession_id] = GQL_UUID_AT(struct session, id),
    [SESSIONS_FIELD_ComputeSession_session_id] = GQL_UUID_AT(struct session, id),
    [SESSIONS_FIELD_ComputeSession_name] = GQL_CHARS_AT(struct session, name),
    [SESSIONS_FIELD_ComputeSession_type] = GQL_TEXT_AT(struct session, type),
    [SESSIONS_FIELD_ComputeSession_access_key] = GQL_TEXT_AT(struct session, access_key),
    [SESSIONS_FIELD_ComputeSession_group_name] = GQL_TEXT_AT(struct session, group_name),
    [SESSIONS_FIELD_ComputeSession_image] = GQL_TEXT_AT(struct session, image),
    [SESSIONS_FIELD_ComputeSession_status] = GQL_TEXT_AT(struct session, status),
    [SESSIONS_FIELD_ComputeSession_status_info] = GQL_TEXT_AT(struct session, status_info),
    [SESSIONS_FIELD_ComputeSession_status_changed] = GQL_TIME_AT(struct session,
                                                                 status_changed_usec),
    [SESSIONS_FIELD_ComputeSession_result] = GQL_TEXT_AT(struct session, result),
    [SESSIONS_FIELD_ComputeSession_priority] = GQL_ALWAYS_NULL,
};

static struct session *make_sessions(uint32_t count)
{
    struct session *sessions = aq_alloc_array(count, sizeof(*sessions));

    for (uint32_t i = 0; i < count; i++) {
        struct session *s = &sessions[i];

        for (size_t b = 0; b < sizeof(s->id.bytes); b++)
            s->id.bytes[b] = (uint8_t)(i * 37 + b * 11 + 1);
        (void)snprintf(s->name, sizeof(s->name), "session-%u", i);
        s->access_key = "AKIAIOSFODNN7EXAMPLE";
        s->group_name = "default";
        s->image = "registry.example/stable/python:3.11-ubuntu22.04";
        s->type = "INTERACTIVE";
        s->status = "RUNNING";
        s->result = "UNDEFINED";
        s->status_changed_usec = INT64_C(1795222923456789) + i;
    }
    return sessions;
}

static void on_done(void *data, const struct gql_result *result)
{
    *(struct gql_result *)data = *result;
}

static bool answer(struct gql_engine *engine, struct bench *bench, const json_t *values,
                   struct strbuf *out)
{
    struct gql_params params = {
        .query = query,
        .query_len = sizeof(query) - 1,
        .variables = values,
        .context = bench,
    };
    struct gql_result result = { .code = 1 };

    strbuf_clear(out);
    gql_execute(engine, &params, out, on_done, &result);
    return result.code == 0 && result.errors == 0;
}

static void set_text(json_t *object, const char *key, const char *text)
{
    (void)json_object_set_new_nocheck(object, key, text ? json_string_nocheck(text) : json_null());
}

static json_t *session_json(const struct session *s)
{
    json_t *object = json_object();
    char id[UUID_TEXT_MAX], time[CLOCK_ISO_MAX];

    (void)uuid_format(&s->id, id);
    set_text(object, "name", s->name);
    set_text(object, "access_key", s->access_key);
    set_text(object, "session_id", id);
    set_text(object, "group_name", s->group_name);
    set_text(object, "id", id);
    set_text(object, "image", s->image);
    set_text(object, "type", s->type);
    set_text(object, "status", s->status);
    set_text(object, "status_info", s->status_info);
    set_text(object, "status_changed", clock_format_iso(s->status_changed_usec, time));
    set_text(object, "result", s->result);
    return object;
}

/* The same reply as a tree, dumped. */
static char *jansson_reply(const struct bench *bench)
{
    json_t *items = json_array(), *list = json_object(), *data = json_object(),
           *reply = json_object();
    char *text;

    for (uint32_t i = 0; i < bench->count; i++)
        (void)json_array_append_new(items, session_json(&bench->sessions[i]));
    (void)json_object_set_new_nocheck(list, "items", items);
    (void)json_object_set_new_nocheck(list, "total_count", json_integer(bench->count));
    (void)json_object_set_new_nocheck(data, "compute_session_list", list);
    (void)json_object_set_new_nocheck(reply, "data", data);
    text = json_dumps(reply, JSON_COMPACT);
    json_decref(reply);
    return text;
}

static int64_t run_once(const char *what, struct gql_engine *engine, struct bench *bench,
                        const json_t *values, struct strbuf *out)
{
    char *text;

    if (strcmp(what, "jansson") != 0)
        return answer(engine, bench, values, out) ? (int64_t)out->len : -1;
    text = jansson_reply(bench);
    strbuf_clear(out);
    strbuf_adds(out, text);
    free(text);
    return (int64_t)out->len;
}

int main(int argc, char **argv)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const char *what = argc > 1 ? argv[1] : "query";
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    struct bench bench = { .count = argc > 3 ? (uint32_t)atoi(argv[3]) : 20 };
    struct gql_conf conf = {
        .schema = &sessions_schema,
        .resolvers = resolvers,
        .limits = GQL_LIMITS_DEFAULT,
        .cache_documents = strcmp(what, "query") == 0 ? 0 : 16,
    };
    json_t *values = json_loads(variables, 0, NULL);
    struct gql_stats stats;
    struct aq_error err;
    int64_t start, now, runs = 0, bytes = 0;

    bench.sessions = make_sessions(bench.count);
    if (gql_engine_new(&conf, &engine, &err) < 0) {
        (void)fprintf(stderr, "bench-graphql-engine: %s\n", err.text);
        return 1;
    }
    start = now = clock_monotonic_usec();
    do {
        bytes = run_once(what, engine, &bench, values, &out);
        runs++;
        now = clock_monotonic_usec();
    } while (bytes >= 0 && now - start < (int64_t)(seconds * 1e6));
    gql_engine_get_stats(engine, &stats);
    json_decref(values);
    free(bench.sessions);
    if (bytes < 0)
        return 1;
    if (seconds == 0)
        (void)puts(out.data);
    else
        (void)printf("{\"per_second\": %.1f, \"reply_bytes\": %lld, \"document_bytes\": %zu}\n",
                     (double)runs * 1e6 / (double)(now - start), (long long)bytes, stats.bytes);
    return 0;
}
