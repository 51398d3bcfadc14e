/* SPDX-License-Identifier: Apache-2.0 */
/* A query, then after a NUL variables as JSON, over the zoo: the reply is
 * always JSON, also when the query comes from the cache.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../../unit/graphql/zoo_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_done(void *data, const struct gql_result *result)
{
    *(struct gql_result *)data = *result;
}

static void run(struct gql_engine *engine, const char *query, size_t len, const json_t *variables,
                struct strbuf *out)
{
    struct gql_params params = { .query = query, .query_len = len, .variables = variables };
    struct gql_result result = { .code = 1 };
    json_t *reply;

    gql_execute(engine, &params, out, on_done, &result);
    if (result.code == 1)
        abort();
    if (result.code < 0)
        return; /* over the memory limit */
    reply = json_loadb(out->data, out->len, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(reply) || (!json_object_get(reply, "data") != !result.executed)
        || json_array_size(json_object_get(reply, "errors")) != result.errors)
        abort();
    json_decref(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct gql_limits limits = {
        .bytes = 20000,
        .tokens = 5000,
        .nesting = 100,
        .depth = 12,
        .fields = 500,
        .aliases = 300,
        .directives = 300,
        .cost = 20000,
        .work = 100000,
        .memory = 64 << 20,
    };
    static struct gql_engine *engine;
    AQ_CLEANUP(strbuf_donep) struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
    const char *text = (const char *)data, *nul = size ? memchr(text, '\0', size) : NULL;
    size_t len = nul ? (size_t)(nul - text) : size;
    json_t *body = NULL, *variables = NULL;
    struct gql_params params;
    struct aq_error err;

    if (!engine)
        engine = zoo_engine(&limits, 64);
    if (nul)
        variables = json_loadb(nul + 1, size - len - 1, JSON_ALLOW_NUL, NULL);
    zoo_reset();
    run(engine, text, len, variables, &first);
    zoo_reset();
    run(engine, text, len, variables, &second);
    if (strcmp(first.data, second.data) != 0)
        abort();
    body = json_loadb(text, size, JSON_DECODE_ANY, NULL);
    strbuf_clear(&first);
    if (body && gql_params_from_json(body, &params, &err) == 0)
        run(engine, params.query, params.query_len, params.variables, &first);
    json_decref(body);
    json_decref(variables);
    return 0;
}
