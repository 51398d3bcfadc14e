/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - runtime variants */
#include "serving/runtime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "serving/command.h"

/* Servers listen at all addresses: proxies reach a replica from outside of its network. */
const struct serving_runtime serving_runtimes[] = {
    { .name = "custom", .title = "Custom (by model-definition.yaml)" },
    { .name = "cmd", .title = "Command of the image or the service" },
    { .name = "vllm",
      .title = "vLLM",
      .command = "vllm serve {model_path} --host 0.0.0.0 --port {port}",
      .health_path = "/health",
      .port = 8000,
      .needs_models_target = true },
    { .name = "nim",
      .title = "NVIDIA NIM",
      .health_path = "/v1/health/ready",
      .port_variable = "NIM_HTTP_API_PORT",
      .port = 8000,
      .needs_models_target = true },
    { .name = "huggingface-tgi",
      .title = "Hugging Face Text Generation Inference",
      .command = "text-generation-launcher --model-id {model_path} --hostname 0.0.0.0 "
                 "--port {port}",
      .health_path = "/info",
      .port = 3000,
      .needs_models_target = true },
    { .name = "sglang",
      .title = "SGLang",
      .command = "python3 -m sglang.launch_server --model-path {model_path} --host 0.0.0.0 "
                 "--port {port}",
      .health_path = "/health",
      .port = 9001,
      .needs_models_target = true },
    { .name = "modular-max",
      .title = "Modular MAX",
      .command = "max serve --model-path {model_path} --port {port}",
      .health_path = "/health",
      .port = 8000,
      .needs_models_target = true },
    { .name = NULL },
};

const struct serving_runtime *serving_runtime_find(const char *name)
{
    for (const struct serving_runtime *rt = serving_runtimes; rt->name; rt++)
        if (strcmp(rt->name, name) == 0)
            return rt;
    return NULL;
}

static int runtime_fail_unknown(const char *name, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf known = STRBUF_INIT;
    struct suggest suggest = suggest_for(name, strlen(name));

    for (const struct serving_runtime *rt = serving_runtimes; rt->name; rt++) {
        strbuf_addf(&known, "%s%s", known.len ? ", " : "", rt->name);
        suggest_offer(&suggest, rt->name);
    }
    return suggest.best
               ? aq_fail_field(err, EINVAL, "runtime",
                               "unknown runtime '%.40s'; did you mean '%s'?", name, suggest.best)
               : aq_fail_field(err, EINVAL, "runtime",
                               "unknown runtime '%.40s'; expected one of %s", name, known.data);
}

/* Start a command in the model's folder, with this model and port. */
static void runtime_set_command(const char *command, const char *model_path,
                                struct model_service_spec *spec, struct arena *arena)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf quoted = STRBUF_INIT, line = STRBUF_INIT,
                                           start = STRBUF_INIT;
    char port[24];
    struct text_pair pairs[] = { { "model_path", model_path }, { "port", port } };
    struct pair_list variables = { pairs, AQ_COUNT(pairs) };

    (void)snprintf(port, sizeof(port), "%" PRId64, spec->port);
    if (!command_is_plain(model_path)) {
        command_quote(model_path, &quoted);
        pairs[0].value = quoted.data;
    }
    command_expand(command, &variables, &line);
    command_start(line.data, "", spec->model ? model_path : NULL, &start);
    spec->session.command = arena_strdup(arena, start.data);
}

int serving_runtime_apply(struct model_service_spec *spec, struct arena *arena,
                          struct aq_error *err)
{
    const char *name = spec->runtime ? spec->runtime : SERVING_RUNTIME_DEFAULT;
    const char *target = spec->model_target ? spec->model_target : SERVING_MODEL_TARGET;
    const struct serving_runtime *rt = serving_runtime_find(name);
    char port[24];

    if (!rt)
        return runtime_fail_unknown(name, err);
    if (rt->needs_models_target && spec->model && strcmp(target, SERVING_MODEL_TARGET) != 0)
        return aq_fail_field(err, EINVAL, "model_target",
                             "runtime '%s' requires the model at '" SERVING_MODEL_TARGET
                             "', not '%.100s'; leave out the target",
                             name, target);
    if (!spec->port && !rt->port)
        return aq_fail_field(err, EINVAL, "port",
                             "is missing, and runtime '%s' has no default; name the port at which "
                             "a replica takes requests, or service.port in the model definition",
                             name);
    if (!spec->port)
        spec->port = rt->port;
    if (!spec->health_path)
        spec->health_path = rt->health_path;
    if (!spec->session.command && rt->command)
        runtime_set_command(rt->command, target, spec, arena);
    else if (spec->session.command && spec->model && !spec->definition_path)
        runtime_set_command(spec->session.command, target, spec, arena);
    if (rt->port_variable) {
        (void)snprintf(port, sizeof(port), "%" PRId64, spec->port);
        command_set_variable(&spec->session.environ, arena, rt->port_variable, port);
    }
    if (spec->model) {
        const char *model = spec->model_name ? spec->model_name : spec->model;

        command_set_variable(&spec->session.environ, arena, "BACKEND_MODEL_NAME", model);
        command_set_variable(&spec->session.environ, arena, "BACKEND_MODEL_PATH", target);
    }
    return 0;
}
