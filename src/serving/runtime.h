/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - runtime variants: the inference servers that a model service can run by name
 *
 * A runtime says what a server's users would otherwise have to look up: its command, its port and
 * where it answers whether it is ready. Names and ports are Backend.AI's. Pure.
 */
#ifndef AQ_SERVING_RUNTIME_H
#define AQ_SERVING_RUNTIME_H

#include "model/model_service.h"

#define SERVING_RUNTIME_DEFAULT "custom"
#define SERVING_MODEL_TARGET \
    "/models" /* where the model folder is mounted unless a target is given */

struct serving_runtime {
    const char *name;        /* "vllm" */
    const char *title;       /* for people: "vLLM" */
    const char *command;     /* with {model_path} and {port}; NULL = the image's own */
    const char *health_path; /* NULL = a connection that is accepted will do */
    const char
        *port_variable;       /* variable by which the image's own command gets the port, or NULL */
    int64_t port;             /* 0 = it must be given */
    bool needs_models_target; /* the model folder must be mounted at SERVING_MODEL_TARGET */
};

/* All, in the order in which they are listed; ends with one whose name is NULL. */
extern const struct serving_runtime serving_runtimes[];

/* NULL = there is none of that name, which is compared exactly. */
const struct serving_runtime *serving_runtime_find(const char *name) AQ_UNTRUSTED;

/* Complete 'spec' by its runtime (spec->runtime, NULL = SERVING_RUNTIME_DEFAULT): command, port,
 * health path, and the variables BACKEND_MODEL_NAME and BACKEND_MODEL_PATH where it has a model. A
 * member that is there stays; but without a definition (spec->definition_path is NULL) the command of
 * a spec with a model folder is made to start in that folder, with {model_path} and {port} replaced.
 * Call it once, after model_definition_apply(). Texts are of 'arena'. -EINVAL with field "runtime",
 * "port" or "model_target".
 */
int serving_runtime_apply(struct model_service_spec *spec, struct arena *arena,
                          struct aq_error *err) AQ_UNTRUSTED;

#endif
