/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for model services: the first byte chooses the kind, the rest is the JSON. A revision that
 * is taken can be written, read back and changed once more; a change that is made again changes
 * nothing; an error names a field.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "manager/serving/serving_params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check_spec(const struct model_service_spec *spec, struct arena *arena)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct model_service_spec again;
    struct aq_error err = { 0 };

    if (model_service_spec_check(spec, &err) == 0) {
        model_service_spec_write(spec, &w);
        require(model_service_spec_parse(text.data, arena, &again, &err) == 0);
        require(again.port == spec->port && again.resources.count == spec->resources.count);
    }
    strbuf_done(&text);
}

static void check_service(const struct field *fields, const json_t *tree, struct arena *arena)
{
    static struct slot_types *types;
    struct serving_params params = { .name = NULL };
    struct model_service s = { .replicas = 3 };
    struct model_service_spec spec = { .port = 0 };
    struct aq_error err = { 0 };
    int r = decode_object(fields, tree, arena, &params, &err);

    types = types ? types : slot_types_new();
    if (r == 0) {
        serving_params_keep(&params, arena);
        r = serving_params_apply(&params, tree, &s, &err);
    }
    if (r == 0) {
        struct model_service again;

        model_service_copy(&again, &s);
        require(serving_params_apply(&params, tree, &again, &err) == 0);
        require(model_service_equals(&again, &s));
        model_service_done(&again);
        r = serving_params_apply_spec(&params, tree, types, arena, &spec, &err);
    }
    require(r == 0 || ((r == -EINVAL || r == -E2BIG) && err.field[0] && err.text[0]));
    require(s.replicas_min <= s.replicas_max && s.replicas_max <= MODEL_SERVICE_REPLICAS_MAX);
    if (r == 0)
        check_spec(&spec, arena);
    model_service_done(&s);
}

static void check_token(const json_t *tree, struct arena *arena)
{
    struct serving_token_params params = { .label = NULL };
    struct model_service_token token = { .label = NULL };
    char text[SERVING_TOKEN_TEXT_MAX];
    struct aq_error err = { 0 };
    int r = decode_object(serving_token_fields, tree, arena, &params, &err);

    if (r == 0)
        r = serving_token_make(&params, INT64_C(1000000), &token, text, &err);
    require(r == 0 || (r == -EINVAL && err.field[0] && err.text[0]));
    require(r < 0 || token.paths.count <= SERVING_TOKEN_PATHS_MAX);
    model_service_token_done(&token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    struct aq_error err = { 0 };
    json_t *tree = NULL;

    if (size && decode_json((const char *)data + 1, size - 1, &tree, &err) == 0
        && json_is_object(tree)) {
        if (data[0] % 4 == 0)
            check_service(serving_create_fields, tree, &arena);
        else if (data[0] % 4 == 1)
            check_service(serving_change_fields, tree, &arena);
        else if (data[0] % 4 == 2)
            check_service(serving_revision_fields, tree, &arena);
        else
            check_token(tree, &arena);
    }
    json_decref(tree);
    arena_done(&arena);
    return 0;
}
