/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on agents: ls, info, set, drain, undrain, rm, revoke, token, join. */
#include <errno.h>
#include <string.h>

#include "cli/admin/agent_picture.h"
#include "cli/admin/join_token.h"
#include "cli/list.h"
#include "cli/output/resource_usage.h"
#include "cli/request.h"
#include "cli/verbs.h"

static const struct column agent_columns[] = {
    { "id", "AGENT", COLUMN_TEXT, COLUMN_IS_NAME },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "schedulable", "SCHEDULABLE", COLUMN_BOOL, 0 },
    { "connected", "CONNECTED", COLUMN_BOOL, COLUMN_IS_WIDE },
    { "available_slots", "RESOURCES", COLUMN_SLOTS, 0 },
    { "occupied_slots", "OCCUPIED", COLUMN_SLOTS, 0 },
    { "resource_group", "RESOURCE-GROUP", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "assigned_group", "ASSIGNED", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "architecture", "ARCHITECTURE", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "runtime", "RUNTIME", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "runtime_notes", "NOTES", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "volumes", "VOLUMES", COLUMN_NAMES, COLUMN_IS_EXTRA },
    { "gpu_misuse", "MISUSE OF GPUS", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "version", "VERSION", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "addr", "ADDRESS", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "region", "REGION", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "topology", "TOPOLOGY", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "assigned_topology", "ASSIGNED TOPOLOGY", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "drain_reason", "DRAINED", COLUMN_TEXT, COLUMN_MAY_SHRINK | COLUMN_IS_WIDE },
    { "ends_sessions", "ENDS-SESSIONS", COLUMN_BOOL, COLUMN_IS_EXTRA },
    { "last_contact", "HEARD", COLUMN_TIME, 0 },
    { "first_contact", "AGE", COLUMN_TIME, 0 },
    { "status_changed", "CHANGED", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "lost_at", "LOST", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "devices", "DEVICES", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "statistics", "STATISTICS", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "network", "NETWORK", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "plugins", "PLUGINS", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    COLUMN_END,
};

static const struct cli_things agents = { "/aliquot/v1/agents/", "agent" };

/* ---- ls, info ---- */

struct agent_ls_opts {
    struct list_opts list;
    const char *status, *resource_group;
};

static const struct cli_opt ls_opts[] = {
    { 's', "status", CLI_STR, offsetof(struct agent_ls_opts, status), "STATUS",
      "only these: ALIVE, LOST, RESTARTING, TERMINATED", "status" },
    { 0, "resource-group", CLI_STR, offsetof(struct agent_ls_opts, resource_group),
      "RESOURCE-GROUP", "only those of this group", "resource_group" },
    LIST_OPT_ROWS(struct agent_ls_opts),
    CLI_OPT_END,
};

static int agent_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct agent_ls_opts *opts = data;

    (void)argc;
    (void)argv;
    strbuf_adds(&path, "/aliquot/v1/agents");
    cli_path_options(&path, ls_opts, opts);
    return list_show(cli, path.data, &opts->list, agent_columns, err);
}

const struct cli_verb verb_agent_ls = {
    .name = "agent ls",
    .args = "",
    .summary = "List agents and what they offer",
    .examples = "aliquot agent ls\naliquot agent ls --watch 2s",
    .if_empty = "no machine has joined; make a token for one: aliquot agent token",
    .opts = ls_opts,
    .opts_size = sizeof(struct agent_ls_opts),
    .run = agent_ls,
};

/* "network     wireguard-go, 192.0.2.7:51871/udp, MTU 1420" */
static void agent_write_network(const json_t *network, struct strbuf *out)
{
    const char *mode = json_string_value(json_object_get(network, "mode"));
    const char *endpoint = json_string_value(json_object_get(network, "endpoint"));
    const char *note = json_string_value(json_object_get(network, "note"));
    const char *host = json_string_value(json_object_get(network, "host"));
    const json_t *unreachable = json_object_get(network, "unreachable"), *id;
    const json_t *rdma = json_object_get(network, "rdma");
    size_t i;

    if (!mode)
        return;
    strbuf_addf(out, "\nnetwork between nodes\n  %s", mode);
    if (endpoint && strcmp(mode, "none") != 0)
        strbuf_addf(out, ", %s/udp, MTU %lld", endpoint,
                    (long long)json_integer_value(json_object_get(network, "mtu")));
    if (host)
        strbuf_addf(out, "\n  host network, %s", host);
    json_array_foreach(rdma, i, id)
        strbuf_addf(out, "%s%s", i ? ", " : "\n  RDMA devices ", json_string_value(id));
    strbuf_adds(out, "\n");
    if (note)
        strbuf_addf(out, "  %s\n", note);
    json_array_foreach(unreachable, i, id)
        strbuf_addf(out, "%s%s", i ? ", " : "  agents that do not answer: ", json_string_value(id));
    if (json_array_size(unreachable))
        strbuf_adds(out, "\n");
}

static int agent_draw(struct cli *cli, const json_t *agent, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, usage = STRBUF_INIT;

    agent_picture_write(&cli->output, agent, &out);
    usage_write_node(&cli->output, json_object_get(agent, "statistics"), &usage);
    if (usage.len) /* else nothing was measured yet */
        strbuf_addf(&out, "\nin use now\n%s", usage.data);
    agent_write_network(json_object_get(agent, "network"), &out);
    return cli_print(&out, err);
}

static int agent_info(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    int r = 0;

    (void)data;
    for (int i = 0; r == 0 && i < argc; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
        json_t *agent = NULL;

        cli_thing_path(&agents, argv[i], "", &path);
        r = record_show(cli, path.data, agent_columns, NULL, &agent, err);
        if (r == 0 && output_is_human(&cli->output))
            r = agent_draw(cli, agent, err);
        if (r < 0)
            r = aq_error_wrap(err, "agent '%s'", argv[i]);
        json_decref(agent);
    }
    return r;
}

const struct cli_verb verb_agent_info = {
    .name = "agent info",
    .args = "AGENT...",
    .summary = "Show everything about an agent, its devices as a picture",
    .examples = "aliquot agent info node1",
    .min_args = 1,
    .max_args = -1,
    .run = agent_info,
};

/* ---- set, drain, undrain, rm, revoke ---- */

struct agent_set_opts {
    const char *resource_group, *topology;
    bool own_group, own_topology;
};

static const struct cli_opt set_opts[] = {
    { 0, "resource-group", CLI_STR, offsetof(struct agent_set_opts, resource_group),
      "RESOURCE-GROUP", "to which it belongs from now on", "resource_group" },
    { 0, "own-resource-group", CLI_FLAG, offsetof(struct agent_set_opts, own_group), NULL,
      "belong to the group of its own settings again" },
    { 0, "topology", CLI_STR, offsetof(struct agent_set_opts, topology), "LABEL",
      "where it is, as zone-a/rack-3/switch-1", "topology" },
    { 0, "own-topology", CLI_FLAG, offsetof(struct agent_set_opts, own_topology), NULL,
      "be where its own settings say again" },
    CLI_OPT_END,
};

static int agent_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct agent_set_opts *opts = data;
    json_auto_t *body = json_object();
    int r;

    if (opts->resource_group && opts->own_group)
        return aq_fail(err, EINVAL, "give either --resource-group or --own-resource-group");
    if (opts->topology && opts->own_topology)
        return aq_fail(err, EINVAL, "give either --topology or --own-topology");
    if (opts->own_group)
        json_object_set_new(body, "resource_group", json_string(""));
    if (opts->own_topology)
        json_object_set_new(body, "topology", json_string(""));
    r = cli_options_add(set_opts, opts, body, err);
    if (r == 0 && json_object_size(body) == 0)
        return aq_fail(err, EINVAL,
                       "nothing to change: give either --resource-group or --topology");
    return r < 0 ? r : cli_things_call(cli, METHOD_PATCH, &agents, "", body, argc, argv, err);
}

const struct cli_verb verb_agent_set = {
    .name = "agent set",
    .args = "AGENT...",
    .summary = "Move an agent to another resource group, or say where it is",
    .details =
        "This holds over resource_group and topology of the agent's own settings, also when\n"
        "it joins again. Its sessions stay where they are; only others of the new group\n"
        "follow.",
    .examples = "aliquot agent set --resource-group night node1\n"
                "aliquot agent set --own-resource-group node1\n"
                "aliquot agent set --topology zone-a/rack-3/switch-1 node1 node2",
    .opts = set_opts,
    .opts_size = sizeof(struct agent_set_opts),
    .min_args = 1,
    .max_args = -1,
    .run = agent_set,
};

struct drain_opts {
    const char *reason;
    bool end;
};

static const struct cli_opt drain_opts[] = {
    { 0, "reason", CLI_STR, offsetof(struct drain_opts, reason), "TEXT", "shown in lists",
      "reason" },
    { 0, "end", CLI_FLAG, offsetof(struct drain_opts, end), NULL,
      "requeue or end the sessions on it, after their signal and grace", "end" },
    CLI_OPT_END,
};

static int agent_drain(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *body = json_object();
    int r = cli_options_add(drain_opts, data, body, err);

    return r < 0 ? r : cli_things_call(cli, METHOD_POST, &agents, "/drain", body, argc, argv, err);
}

const struct cli_verb verb_agent_drain = {
    .name = "agent drain",
    .args = "AGENT...",
    .summary = "Place no new sessions on an agent; those that run go on",
    .details =
        "With --end they do not: a session that the loss of the agent would restart, or that\n"
        "may be moved, goes back to the queue, also one with a retry for node-lost; others\n"
        "end. Programs get their checkpoint signal and grace first.",
    .examples = "aliquot agent drain --reason 'new disks' node1\n"
                "aliquot agent drain --end --reason 'new disks' node1",
    .opts = drain_opts,
    .opts_size = sizeof(struct drain_opts),
    .min_args = 1,
    .max_args = -1,
    .run = agent_drain,
};

static int agent_undrain(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return cli_things_call(cli, METHOD_POST, &agents, "/undrain", NULL, argc, argv, err);
}

const struct cli_verb verb_agent_undrain = {
    .name = "agent undrain",
    .args = "AGENT...",
    .summary = "Place sessions on an agent again",
    .examples = "aliquot agent undrain node1",
    .min_args = 1,
    .max_args = -1,
    .run = agent_undrain,
};

struct agent_rm_opts {
    bool yes;
};

static const struct cli_opt rm_opts[] = {
    { 'y', "yes", CLI_FLAG, offsetof(struct agent_rm_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

static int agent_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct agent_rm_opts *opts = data;
    int r = cli_confirm(opts->yes, err, "Forget %d agent%s? It must join again to come back.", argc,
                        argc == 1 ? "" : "s");

    return r != 0 ? r : cli_things_call(cli, METHOD_DELETE, &agents, "", NULL, argc, argv, err);
}

const struct cli_verb verb_agent_rm = {
    .name = "agent rm",
    .args = "AGENT...",
    .summary = "Remove agents that hold nothing from the cluster",
    .details = "Their certificates are revoked: one that runs ends, and must join again.",
    .examples = "aliquot agent rm --yes node1",
    .opts = rm_opts,
    .opts_size = sizeof(struct agent_rm_opts),
    .min_args = 1,
    .max_args = -1,
    .run = agent_rm,
};

static int agent_revoke(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct agent_rm_opts *opts = data;
    int r = cli_confirm(opts->yes, err, "Never accept the certificates of %d agent%s again?", argc,
                        argc == 1 ? "" : "s");

    return r != 0 ? r
                  : cli_things_call(cli, METHOD_POST, &agents, "/revoke", NULL, argc, argv, err);
}

const struct cli_verb verb_agent_revoke = {
    .name = "agent revoke",
    .args = "AGENT...",
    .summary = "Never accept an agent's certificates again",
    .examples = "aliquot agent revoke --yes stolen-node",
    .opts = rm_opts,
    .opts_size = sizeof(struct agent_rm_opts),
    .min_args = 1,
    .max_args = -1,
    .run = agent_revoke,
};

/* ---- join, token ---- */

struct token_opts {
    struct cli_int expires;
    const char *agent, *proxy, *storage, *web;
};

static const struct cli_opt token_opts[] = {
    { 0, "expires", CLI_DURATION, offsetof(struct token_opts, expires), "TIME",
      "how long it is good for; default 1h", "expires_sec" },
    { 0, "agent", CLI_STR, offsetof(struct token_opts, agent), "AGENT",
      "good for an agent of this name only", "agent_id" },
    { 0, "proxy", CLI_STR, offsetof(struct token_opts, proxy), "NAME",
      "for a proxy of this name, aliquot-proxy, and no agent", "proxy" },
    { 0, "storage", CLI_STR, offsetof(struct token_opts, storage), "NAME",
      "for a storage host of this name, aliquot-storage, and no agent", "storage" },
    { 0, "web", CLI_STR, offsetof(struct token_opts, web), "NAME",
      "for a web server of this name, aliquot-web, and no agent", "web" },
    CLI_OPT_END,
};

static int agent_token(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct token_opts *opts = data;
    const struct join_command command = { .machine = "On the new machine",
                                          .command = opts->proxy     ? "aliquot-proxy join"
                                                     : opts->storage ? "aliquot-storage join"
                                                     : opts->web     ? "aliquot-web join"
                                                                     : "aliquot agent join" };
    json_auto_t *body = json_object();
    int r = cli_options_add(token_opts, opts, body, err);

    (void)argc;
    (void)argv;
    return r < 0 ? r : join_token_create(cli, body, &command, err);
}

const struct cli_verb verb_agent_token = {
    .name = "agent token",
    .args = "",
    .summary = "Make a token that lets one machine join the cluster once",
    .examples = "aliquot agent token\naliquot agent token --agent node7 --expires 15m -o name\n"
                "aliquot agent token --proxy main\naliquot agent token --storage local\n"
                "aliquot agent token --web main",
    .opts = token_opts,
    .opts_size = sizeof(struct token_opts),
    .run = agent_token,
};

static int agent_join(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    char program[] = "aliquot-agent", verb[] = "join";
    char *const args[] = { program, verb, argv[0], argv[1], NULL };

    (void)cli;
    (void)data;
    (void)argc;
    return cli_exec_program("aliquot-agent", args, err);
}

const struct cli_verb verb_agent_join = {
    .name = "agent join",
    .args = "ADDRESS TOKEN",
    .summary = "Make this machine an agent of a cluster",
    .details = "ADDRESS is the manager's link, HOST:8082. TOKEN is from 'aliquot agent token'; it\n"
               "carries the fingerprint of the cluster's certificates, so that nobody can stand\n"
               "between; - reads it from standard input, where other users of the machine do\n"
               "not see it. The same as 'aliquot-agent join'; start aliquot-agent afterwards.",
    .examples = "aliquot agent join manager.example.com:8082 aq1.Zm9v...",
    .min_args = 2,
    .max_args = 2,
    .flags = CLI_NO_CONFIG,
    .run = agent_join,
};
