/* SPDX-License-Identifier: Apache-2.0 */
/* "service create": a model service, its URL, and a first token. */
#include <errno.h>
#include <string.h>

#include "cli/service/service.h"
#include "cli/service/service_rollout.h"
#include "cli/service/service_settings.h"
#include "cli/service/service_spec.h"
#include "cli/verbs.h"
#include "model/session.h"

#define TOKEN_LABEL "default" /* of the token that is made with a service */

struct service_create_opts {
    struct service_spec_opts spec;
    struct service_settings settings;
    const char *group, *resource_group, *token;
    bool public, no_token;
    struct service_rollout_opts rollout;
    struct service_wait_opts waiting;
};

static const struct cli_opt create_opts[] = {
    SERVICE_SPEC_ROWS(struct service_create_opts),
    SERVICE_SETTINGS_ROWS(struct service_create_opts),
    SERVICE_ROLLOUT_ROWS(struct service_create_opts),
    { 0, "public", CLI_FLAG, offsetof(struct service_create_opts, public), NULL,
      "accept requests without a token from all who reach the proxy", "public" },
    { 'g', "project", CLI_STR, offsetof(struct service_create_opts, group), "PROJECT",
      "project it belongs to", "group" },
    { 0, "resource-group", CLI_STR, offsetof(struct service_create_opts, resource_group),
      "RESOURCE-GROUP", "group of agents its replicas may run on", "resource_group" },
    { 0, "token", CLI_STR, offsetof(struct service_create_opts, token), "LABEL",
      "label of the token that is created with it; default \"" TOKEN_LABEL "\"" },
    { 0, "no-token", CLI_FLAG, offsetof(struct service_create_opts, no_token), NULL,
      "create no token" },
    SERVICE_WAIT_ROWS(offsetof(struct service_create_opts, waiting)),
    CLI_OPT_END,
};

/* Folders need a container; the usual image of a user may be that of plain processes. */
static int service_check_image(const json_t *body, struct aq_error *err)
{
    bool has_folder = json_object_get(body, "model") || json_object_get(body, "mounts");

    if (!has_folder || strcmp(output_text(body, "image"), IMAGE_OF_PROCESSES) != 0)
        return 0;
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                        "--image is missing: folders are mounted into containers, which need an "
                        "image");
}

int service_add_usual(const struct cli *cli, json_t *body, struct aq_error *err)
{
    static const struct {
        const char *member;
        enum cli_setting setting;
    } usual[] = {
        { "image", SETTING_IMAGE },
        { "group", SETTING_GROUP },
        { "resource_group", SETTING_RESOURCE_GROUP },
    };
    const char *domain = cli_config_get_chosen(&cli->config, SETTING_DOMAIN);

    for (size_t i = 0; i < AQ_COUNT(usual); i++) {
        const char *value = cli_config_get(&cli->config, usual[i].setting);

        if (value && !json_object_get(body, usual[i].member))
            (void)json_object_set_new(body, usual[i].member, json_string(value));
    }
    if (domain)
        (void)json_object_set_new(body, "domain", json_string(domain));
    if (cli->globals.owner)
        (void)json_object_set_new(body, "owner_access_key", json_string(cli->globals.owner));
    return service_check_image(body, err);
}

static int service_create_body(const struct cli *cli, const struct service_create_opts *opts,
                               int argc, char **argv, json_t *body, struct aq_error *err)
{
    int r = service_settings_add(&opts->settings, body, err);

    if (r == 0)
        r = service_rollout_add(&opts->rollout, body, err);
    if (r == 0)
        r = service_spec_add(create_opts, opts, &opts->spec, NULL, argc - 1, argv + 1, body, err);
    return r < 0 ? r : service_add_usual(cli, body, err);
}

/* For users: what to paste into a shell. */
static int service_create_print(struct cli *cli, json_t *service, const json_t *token,
                                struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const char *url = output_text(service, "url"), *secret = output_text(token, "token");
    size_t len = strlen(url);

    if (token)
        (void)json_object_set(service, "token", (json_t *)token);
    if (!output_is_human(&cli->output))
        return service_print(cli, service, err);
    strbuf_addf(&out, "service  %s\nURL      %s\n", output_text(service, "name"),
                len ? url : "none yet: no proxy is connected; see 'aliquot service url'");
    if (*secret)
        strbuf_addf(&out, "token    %s  (shown only now)\n", secret);
    if (len && *secret)
        strbuf_addf(&out,
                    "\ncurl -H 'Authorization: Bearer %s' %s\n"
                    "export OPENAI_BASE_URL=%s%sv1 OPENAI_API_KEY=%s\n",
                    secret, url, url, url[len - 1] == '/' ? "" : "/", secret);
    else if (len && json_is_true(json_object_get(service, "public")))
        strbuf_addf(&out, "\ncurl %s\n", url);
    return cli_print(&out, err);
}

/* The service is there already: a failure says how to get a token for it. */
static int service_create_token(struct cli *cli, const struct service_create_opts *opts,
                                const json_t *service, json_t **ret, struct aq_error *err)
{
    const char *name = output_text(service, "name"), *id = output_text(service, "id");
    json_auto_t *body = json_pack("{s:s}", "label", opts->token ? opts->token : TOKEN_LABEL);
    int r;

    if (opts->no_token || (opts->public && !opts->token))
        return 0;
    if (!body)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--token is not UTF-8");
    else
        r = service_add_token(cli, id, body, ret, err);
    if (r == 0)
        return 0;
    cli_hint(cli, "aliquot service token create %s", name);
    return aq_error_wrap(err, "service '%s' was created, but not its token", name);
}

static int service_create(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct service_create_opts *opts = data;
    json_auto_t *body = json_pack("{s:s}", "name", argv[0]), *service = NULL, *token = NULL;
    int r;

    if (!body)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the name is not UTF-8");
    if (opts->token && !opts->token[0])
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--token takes a label, such as crawler; --no-token makes no token");
    if (opts->token && opts->no_token)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--token and --no-token exclude each other");
    if ((r = service_create_body(cli, opts, argc, argv, body, err)) < 0
        || (r = cli_call_once(cli, SERVICES_PATH, body, &service, err)) < 0
        || (r = service_create_token(cli, opts, service, &token, err)) < 0
        || (r = service_create_print(cli, service, token, err)) < 0)
        return r;
    return service_wait_if(cli, &opts->waiting, output_text(service, "id"), 0, err);
}

const struct cli_verb verb_service_create = {
    .name = "service create",
    .args = "NAME [COMMAND [ARG]...]",
    .summary = "Serve a model: create a service, and print its URL and a token",
    .details =
        "A service keeps --replicas replicas running and spreads requests over them. A replica\n"
        "runs COMMAND, or what --runtime or the file model-definition.yaml in the folder of the\n"
        "model contains, else the program of the image. The token is shown once; clients send\n"
        "it as 'Authorization: Bearer TOKEN'. A --public service has none unless --token is\n"
        "given. Ctrl-C during --wait ends the command, not the service.\n\n"
        "One COMMAND word is a line for the shell; several are the program and its arguments.",
    .examples =
        "aliquot service create digits --model digits --image python:3.12 \\\n"
        "    -r cuda.shares=0.25 --replicas 2 --port 8000 --health /health \\\n"
        "    -- python3 /models/serve.py\n"
        "aliquot service create chat --model llama --runtime vllm --image vllm/vllm-openai \\\n"
        "    -r cuda.device=1 --cap 32 --affinity prompt --wait",
    .opts = create_opts,
    .opts_size = sizeof(struct service_create_opts),
    .min_args = 1,
    .max_args = -1,
    .run = service_create,
};
