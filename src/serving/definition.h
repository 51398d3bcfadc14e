/* SPDX-License-Identifier: Apache-2.0 */
/* definition.h - model-definition.yaml: how a model is served, as its folder says it
 *
 *     models:
 *       - name: digits
 *         model_path: /models/digits
 *         service:
 *           pre_start_actions:
 *             - {action: write_file, args: {filename: /tmp/a.json, body: ["{}"], mode: "644"}}
 *           start_command: python serve.py --model {model_path}
 *           shell: /bin/bash
 *           port: 8000
 *           health_check: {path: /health, interval: 10, max_retries: 10}
 *         metadata: {title: Digits}
 *
 * The file is Backend.AI's and is read as there, with three differences. A health_check without
 * 'enable' is enabled, as it was before 26. 'initial_delay' lengthens the time until a replica has
 * to be ready, and never shortens it. Unknown members are ignored with a warning. Pure.
 */
#ifndef AQ_SERVING_DEFINITION_H
#define AQ_SERVING_DEFINITION_H

#include <jansson.h>

#include "model/model_service.h"

#define MODEL_DEFINITION_NAME "model-definition.yaml" /* read from a folder's root by default */
#define MODEL_DEFINITION_BYTES_MAX (256 << 10)
#define MODEL_DEFINITION_MODELS_MAX 16
#define MODEL_DEFINITION_ACTIONS_MAX 64  /* of one model */
#define MODEL_DEFINITION_ITEMS_MAX 4096  /* of a list of texts */
#define MODEL_DEFINITION_WARNINGS_MAX 32 /* further ones are counted in the last */

enum model_action_kind {
    MODEL_ACTION_WRITE_FILE,
    MODEL_ACTION_WRITE_TEMPFILE,
    MODEL_ACTION_RUN_COMMAND,
    MODEL_ACTION_MKDIR,
    MODEL_ACTION_LOG,
};

/* Something that is done before a model's server starts. */
struct model_action {
    enum model_action_kind kind;
    const char *path;      /* file or folder; of write_tempfile the one that it makes */
    struct str_list words; /* lines of the file, words of the command, the message */
    unsigned mode;         /* of the file */
    bool appends;          /* to the file */
    const char *ref;       /* variable in later texts that has the path; NULL = none */
};

struct model_health {
    const char *path; /* NULL = none is asked: a connection that is accepted will do */
    int64_t status;   /* 0 = 200 */
    int64_t interval_usec, timeout_usec, initial_delay_usec; /* 0 = not given */
    int64_t retries;                                         /* 0 = not given */
};

/* One model of the file. Texts are of the definition. */
struct model_entry {
    const char *name, *path;
    bool is_served;      /* it has a service; the rest is zeroed else, but for metadata */
    const char *command; /* a line for a shell; NULL = the image's own */
    const char *shell;   /* "" = not given; NULL = none: the words of the command are executed */
    int64_t port;
    struct model_health health;
    struct model_action *actions;
    size_t action_count;
    struct pair_list variables; /* {model_path} and references to files */
    const json_t *metadata;     /* checked; NULL = none */
};

struct model_definition {
    struct arena arena;
    json_t *root;
    struct model_entry *models;
    size_t model_count;
    struct str_list warnings; /* "models[0].service.prot: unknown member; did you mean 'port'?" */
};

/* Read a file, whole. -EINVAL, -E2BIG: the field is the member and the text begins with it:
 * "models[0].service.port: expected a port from 2 to 65535, got '0' (line 7)".
 */
int model_definition_parse(const char *text, size_t len, struct model_definition **ret,
                           struct aq_error *err) AQ_UNTRUSTED;
void model_definition_free(struct model_definition *d);
AQ_DEFINE_CLEANUP(struct model_definition, model_definition_free)

/* The model that a service serves: the first that has a service; NULL = none has. */
const struct model_entry *model_definition_find_served(const struct model_definition *d);

/* Complete 'spec' by the definition: command, bootstrap, variables, port, health and time until
 * ready. A member that is there stays, with two exceptions: the spec's command replaces
 * start_command but starts in the same folder and shell, with the same variables; and its bootstrap
 * script runs after the actions. Texts are of 'arena'; so is the list of warnings, which is appended to
 * and may be NULL. -EINVAL: no model has a service, or a command needs a shell that the file turns
 * off; -E2BIG: SESSION_COMMAND_MAX or SESSION_BOOTSTRAP_MAX; with the member as field.
 */
int model_definition_apply(const struct model_definition *d, struct model_service_spec *spec,
                           struct arena *arena, struct str_list *warnings, struct aq_error *err);

#endif
