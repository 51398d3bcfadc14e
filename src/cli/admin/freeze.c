/* SPDX-License-Identifier: Apache-2.0 */
/* admin freeze, unfreeze: a cluster that takes no changes of sessions for a while. */
#include "cli/client.h"
#include "cli/verbs.h"

struct freeze_opts {
    bool end_sessions, yes;
};

static const struct cli_opt freeze_opts[] = {
    { 0, "end-sessions", CLI_FLAG, offsetof(struct freeze_opts, end_sessions), NULL,
      "end all sessions of everybody at once, queued ones too" },
    { 'y', "yes", CLI_FLAG, offsetof(struct freeze_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

static int freeze_send(struct cli *cli, const char *status, bool end_sessions, struct aq_error *err)
{
    json_auto_t *body = json_pack("{s:s, s:b}", "status", status, "force_kill", end_sessions);

    return cli_call(cli, METHOD_PUT, "/manager/status", body, NULL, err);
}

static int freeze_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct freeze_opts *opts = data;
    int r = opts->end_sessions
                ? cli_confirm(opts->yes, err, "Freeze, and end all sessions of everybody?")
                : 0;

    (void)argc;
    (void)argv;
    if (r == 0)
        r = freeze_send(cli, "frozen", opts->end_sessions, err);
    if (r == 0)
        cli_note(cli, "The cluster is frozen; this ends it: aliquot admin unfreeze");
    return r;
}

const struct cli_verb verb_admin_freeze = {
    .name = "admin freeze",
    .args = "",
    .summary = "Refuse whatever makes, changes or ends sessions, until 'admin unfreeze'",
    .details =
        "Nobody can start, end, restart or change sessions then. Those that run go on, and those\n"
        "that wait still start: to stop that as well, drain the agents. Who is refused reads\n"
        "the announcement ('aliquot admin announcement set').",
    .examples = "aliquot admin freeze\n"
                "aliquot admin freeze --end-sessions --yes",
    .opts = freeze_opts,
    .opts_size = sizeof(struct freeze_opts),
    .run = freeze_run,
};

static int freeze_end(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    (void)argv;
    return freeze_send(cli, "running", false, err);
}

const struct cli_verb verb_admin_unfreeze = {
    .name = "admin unfreeze",
    .args = "",
    .summary = "Take changes of sessions again",
    .examples = "aliquot admin unfreeze",
    .run = freeze_end,
};
