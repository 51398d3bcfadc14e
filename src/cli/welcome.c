/* SPDX-License-Identifier: Apache-2.0 */
/* What to do first, for one who is not logged in. */
#include "cli/welcome.h"

#include <errno.h>
#include <string.h>

#include "cli/client.h"

bool welcome_is_stranger(const struct cli *cli)
{
    return !cli_config_get(&cli->config, SETTING_ACCESS_KEY)
           || !cli_config_get(&cli->config, SETTING_SECRET_KEY);
}

static bool welcome_has_endpoint(const struct cli *cli)
{
    return strcmp(cli->config.origins[SETTING_ENDPOINT], "default") != 0;
}

static bool welcome_manager_answers(struct cli *cli)
{
    struct client_reply reply = CLIENT_REPLY_INIT;
    int r = cli_fetch(cli, METHOD_GET, "/aliquot/v1/health", NULL, &reply, NULL);
    bool answers = r == 0 && reply.status == 200;

    client_reply_done(&reply);
    return answers;
}

void welcome_write(struct cli *cli, struct strbuf *out)
{
    const char *endpoint = cli_config_get(&cli->config, SETTING_ENDPOINT);

    strbuf_adds(out, "Aliquot runs programs with exact shares of CPUs, memory and GPUs.\n");
    if (welcome_manager_answers(cli))
        strbuf_addf(out,
                    "\nA cluster answers at %s, and you are not logged in. To go on:\n"
                    "  aliquot login --dev            if 'aliquot up --dev' started it here\n"
                    "  aliquot login                  with your e-mail or access key\n",
                    endpoint);
    else if (welcome_has_endpoint(cli))
        strbuf_addf(out,
                    "\nNo cluster answers at %s. Two ways to go on:\n"
                    "  aliquot config show            says where that address comes from\n"
                    "  aliquot login https://HOST     log in to another cluster\n",
                    endpoint);
    else
        strbuf_adds(out,
                    "\nThere is no cluster on this machine yet. Two ways to go on:\n"
                    "  aliquot up --dev               start one here, then: aliquot login --dev\n"
                    "  aliquot login https://HOST     log in to one that is there\n");
    strbuf_adds(out, "\nAll commands: aliquot help\n");
}

void welcome_explain(struct cli *cli, struct aq_error *err)
{
    const char *endpoint = cli_config_get(&cli->config, SETTING_ENDPOINT);
    bool is_refused = err->kind
                      && (strcmp(err->kind, "invalid-auth-params") == 0
                          || strcmp(err->kind, "auth-failed") == 0);

    if (!welcome_is_stranger(cli))
        return;
    if (cli_profile_check(&cli->config, err) < 0) {
        cli_hint(cli, "log in for it: aliquot login --profile %s; others: aliquot profile ls",
                 cli->config.profile);
    } else if (is_refused) {
        aq_fail(err, EACCES, "you are not logged in to %s", endpoint);
        cli_hint(cli,
                 "log in: aliquot login; if 'aliquot up --dev' started it: aliquot login --dev");
    } else if (err->kind && strcmp(err->kind, CLI_KIND_UNREACHABLE) == 0
               && !welcome_has_endpoint(cli)) {
        cli_hint(cli, "start a cluster here: aliquot up --dev; "
                      "or log in to one that is there: aliquot login https://HOST");
    }
}
