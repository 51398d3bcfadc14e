/* SPDX-License-Identifier: Apache-2.0 */
/* "agent restart", "agent stop": agents as services of their machines. */
#include "cli/request.h"
#include "cli/verbs.h"

/* One after another: the next one is left alone when one fails. */
static int agent_service_tell(struct cli *cli, const char *path, int argc, char **argv,
                              struct aq_error *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < argc; i++) {
        json_auto_t *answer = NULL;

        r = cli_send(cli, METHOD_POST, path, json_pack("{s:s}", "agent_id", argv[i]),
                     "an argument is not UTF-8", &answer, err);
        if (r == 0)
            cli_note(cli, "%s", json_string_value(json_object_get(answer, "message")));
    }
    return r;
}

static int agent_service_restart(struct cli *cli, void *data, int argc, char **argv,
                                 struct aq_error *err)
{
    (void)data;
    return agent_service_tell(cli, "/resource/watcher/agent/restart", argc, argv, err);
}

const struct cli_verb verb_agent_restart = {
    .name = "agent restart",
    .args = "AGENT...",
    .summary = "Have systemd restart agents; sessions go on",
    .details =
        "The agent asks the systemctl of its machine. One that systemd does not run, or that "
        "is not\nconnected, says so.",
    .examples = "aliquot agent restart node1",
    .min_args = 1,
    .max_args = -1,
    .run = agent_service_restart,
};

struct agent_stop_opts {
    bool yes;
};

static const struct cli_opt stop_opts[] = {
    { 'y', "yes", CLI_FLAG, offsetof(struct agent_stop_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

static int agent_service_stop(struct cli *cli, void *data, int argc, char **argv,
                              struct aq_error *err)
{
    const struct agent_stop_opts *given = data;
    int r = cli_confirm(given->yes, err,
                        "Stop %d agent%s, which can be started on the machine%s only?", argc,
                        argc == 1 ? "" : "s", argc == 1 ? "" : "s");

    return r != 0 ? r : agent_service_tell(cli, "/resource/watcher/agent/stop", argc, argv, err);
}

const struct cli_verb verb_agent_stop = {
    .name = "agent stop",
    .args = "AGENT...",
    .summary = "Have systemd stop agents",
    .details = "Programs of sessions go on, but after a while the agent is lost, and its sessions "
               "with it.\nIt is started on its machine: systemctl start aliquot-agent.",
    .examples = "aliquot agent stop --yes node1",
    .opts = stop_opts,
    .opts_size = sizeof(struct agent_stop_opts),
    .min_args = 1,
    .max_args = -1,
    .run = agent_service_stop,
};
