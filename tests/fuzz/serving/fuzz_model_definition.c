/* SPDX-License-Identifier: Apache-2.0 */
/* Model definitions: one that is accepted completes a spec within the limits of its texts, or says
 * which member does not; one that is not has an error.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serving/command.h"
#include "serving/definition.h"
#include "serving/runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check_apply(const struct model_definition *d)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct model_service_spec spec = { .model = "id", .definition_path = "d" };
    struct str_list warnings = { 0 };
    struct aq_error err = { 0 };

    if (model_definition_apply(d, &spec, &arena, &warnings, &err) < 0) {
        require(err.text[0] && err.field[0]);
        return;
    }
    require(spec.port >= 2 && spec.port <= 65535);
    require(!spec.session.command || strlen(spec.session.command) <= SESSION_COMMAND_MAX);
    require(!spec.session.bootstrap || strlen(spec.session.bootstrap) <= SESSION_BOOTSTRAP_MAX);
    require(serving_runtime_apply(&spec, &arena, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct text_pair pair = { "model_path", "/models" };
    static const struct pair_list variables = { &pair, 1 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *text = NULL;
    struct model_definition *d = NULL;
    struct model_service_spec spec = { 0 };
    struct aq_error err = { 0 };
    struct arena arena = ARENA_INIT;

    if (model_definition_parse((const char *)data, size, &d, &err) == 0) {
        require(d->model_count > 0 && d->warnings.count <= MODEL_DEFINITION_WARNINGS_MAX);
        check_apply(d);
        model_definition_free(d);
    } else {
        require(err.text[0]);
    }
    text = strndup((const char *)data, size);
    command_expand(text, &variables, &out);
    require(out.len <= 8 * size);
    spec.runtime = text;
    (void)serving_runtime_apply(&spec, &arena, &err);
    arena_done(&arena);
    return 0;
}
