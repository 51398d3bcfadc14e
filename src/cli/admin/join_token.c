/* SPDX-License-Identifier: Apache-2.0 */
/* join_token.c - see join_token.h */
#include "cli/admin/join_token.h"

#include <stdio.h>

#include "base/host_port.h"
#include "cli/list.h"
#include "cli/request.h"
#include "http/url.h"

static const struct column token_columns[] = {
    { "token", "TOKEN", COLUMN_TEXT, COLUMN_IS_NAME },
    { "expires_at", "EXPIRES", COLUMN_TIME, 0 },
    COLUMN_END,
};

static void join_token_note_command(struct cli *cli, const json_t *answer,
                                    const struct join_command *command)
{
    const char *host = json_string_value(json_object_get(answer, "link_host"));
    char link[HOST_PORT_MAX];
    struct url url;

    if (url_parse(cli_client_endpoint(cli), &url, NULL) < 0)
        return;
    if (host)
        (void)snprintf(url.address.host, sizeof(url.address.host), "%s", host);
    host_port_write(url.address.host,
                    (unsigned)json_integer_value(json_object_get(answer, "link_port")), link);
    cli_note(cli, "\n%s:\n  %s %s %s%s%s", command->machine, command->command, link,
             output_text(answer, "token"), command->name ? " --name " : "",
             command->name ? command->name : "");
    if (address_is_local(&url.address))
        cli_note(cli,
                 "%s can be reached from the manager's machine only; to let other machines join, "
                 "set [link] listen in manager.toml to another address",
                 link);
}

int join_token_create(struct cli *cli, const json_t *request, const struct join_command *command,
                      struct aq_error *err)
{
    json_auto_t *answer = NULL;
    int r = cli_call(cli, METHOD_POST, "/aliquot/v1/join-tokens", request, &answer, err);

    if (r == 0)
        r = record_print(cli, token_columns, answer, err);
    if (r == 0 && output_is_human(&cli->output))
        join_token_note_command(cli, answer, command);
    return r;
}
