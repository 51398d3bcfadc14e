/* SPDX-License-Identifier: Apache-2.0 */
/* What a revision of a model service says: options of "service create" and "service deploy". */
#include "cli/service/service_spec.h"

#include <errno.h>
#include <string.h>

#include "cli/service/service.h"
#include "cli/session/session_spec.h"

#define BOOTSTRAP_MAX (64u << 10) /* bytes, as the manager takes it */

/* "FOLDER[:TARGET]" */
static int service_spec_add_model(const char *text, json_t *body, struct aq_error *err)
{
    size_t len = strcspn(text, ":");

    if (text[0] == '/')
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--model takes a folder of the cluster, not a directory of this "
                            "machine, as '%.60s' is; aliquot folder create NAME makes one, and "
                            "aliquot folder cp -r %.60s NAME: fills it",
                            text, text);
    if (len == 0 || (text[len] && text[len + 1] != '/'))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--model takes FOLDER or FOLDER:TARGET, where TARGET is an absolute "
                            "path in the container, not '%.60s'",
                            text);
    if (json_object_set_new(body, "model", json_stringn(text, len)) < 0
        || (text[len]
            && json_object_set_new(body, "model_target", json_string(text + len + 1)) < 0))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--model is not UTF-8");
    return 0;
}

/* The variables of the goal with those of the options over them. */
static int service_spec_add_environ(const struct cli_list *list, const json_t *goal, json_t *body,
                                    struct aq_error *err)
{
    const json_t *before = json_object_get(goal, "environ");
    json_t *environ = json_is_object(before) ? json_deep_copy(before) : json_object();

    (void)json_object_set_new(body, "environ", environ);
    return spec_add_environ(list, environ, err);
}

/* One word is a line for the shell, several are a program and its arguments. */
static int service_spec_add_command(int argc, char *const argv[], json_t *body,
                                    struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;

    if (argc == 1)
        strbuf_adds(&line, argv[0]);
    else
        spec_quote_command(argc, argv, &line);
    if (json_object_set_new(body, "command", json_string(line.data)) < 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the command is not UTF-8");
    return 0;
}

static int service_spec_add_bootstrap(const char *path, json_t *body, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf script = STRBUF_INIT;
    int r = cli_read_file(path, BOOTSTRAP_MAX, &script, err);

    if (r < 0)
        return aq_error_wrap(err, "--bootstrap");
    if (json_object_set_new(body, "bootstrap", json_stringn(script.data, script.len)) < 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--bootstrap: %.100s is not UTF-8", path);
    return 0;
}

/* Amounts that are not named stay as they are in the goal. */
static void service_spec_merge_resources(const json_t *goal, json_t *body)
{
    const json_t *before = json_object_get(goal, "resources");
    json_t *named = json_object_get(body, "resources"), *merged;

    if (!json_is_object(before) || !json_is_object(named))
        return;
    merged = json_deep_copy(before);
    (void)json_object_update(merged, named);
    (void)json_object_set_new(body, "resources", merged);
}

int service_spec_add(const struct cli_opt *rows, const void *target,
                     const struct service_spec_opts *spec, const json_t *goal, int argc,
                     char *const argv[], json_t *body, struct aq_error *err)
{
    int r = cli_options_add(rows, target, body, err);

    if (r == 0 && spec->model)
        r = service_spec_add_model(spec->model, body, err);
    if (r == 0 && spec->environ.count)
        r = service_spec_add_environ(&spec->environ, goal, body, err);
    if (r == 0 && spec->bootstrap)
        r = service_spec_add_bootstrap(spec->bootstrap, body, err);
    if (r == 0 && argc > 0)
        r = service_spec_add_command(argc, argv, body, err);
    if (r < 0)
        return r;
    service_nest(body);
    service_spec_merge_resources(goal, body);
    return 0;
}
