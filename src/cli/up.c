/* SPDX-License-Identifier: Apache-2.0 */
/* "up": hands over to aliquot-up, so that this program stays small. */
#include <errno.h>
#include <stdio.h>

#include "cli/verbs.h"

struct up_opts {
    bool dev;
    const char *state;
    struct cli_int port, link_port, proxy_port;
    struct cli_list agents;
};

static const struct cli_opt up_opts[] = {
    { 0, "dev", CLI_FLAG, offsetof(struct up_opts, dev), NULL,
      "stock development users and keys, on loopback" },
    { 0, "state", CLI_STR, offsetof(struct up_opts, state), "DIR",
      "where everything is kept; asked for again, it goes on from there" },
    { 0, "port", CLI_INT, offsetof(struct up_opts, port), "N", "of the API; default 8081" },
    { 0, "link-port", CLI_INT, offsetof(struct up_opts, link_port), "N",
      "for agents; default 8082" },
    { 0, "proxy-port", CLI_INT, offsetof(struct up_opts, proxy_port), "N",
      "for apps in the browser; default 5050, with --port none" },
    { 0, "agent", CLI_LIST, offsetof(struct up_opts, agents), "FILE",
      "an agent with this configuration file; may be repeated" },
    CLI_OPT_END,
};

static int up_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct up_opts *opts = data;
    char program[] = "aliquot-up", dev[] = "--dev", state[] = "--state", port[] = "--port",
         link_port[] = "--link-port", proxy_port[] = "--proxy-port", agent[] = "--agent",
         numbers[3][24];
    AQ_CLEANUP(aq_freep) char **args = calloc(14 + 2 * opts->agents.count, sizeof(*args));
    size_t count = 0;

    (void)cli;
    (void)argc;
    (void)argv;
    if (!args)
        return aq_fail_oom(err);
    args[count++] = program;
    if (opts->dev)
        args[count++] = dev;
    if (opts->state) {
        args[count++] = state;
        args[count++] = (char *)opts->state;
    }
    if (opts->port.is_set) {
        (void)snprintf(numbers[0], sizeof(numbers[0]), "%lld", (long long)opts->port.value);
        args[count++] = port;
        args[count++] = numbers[0];
    }
    if (opts->link_port.is_set) {
        (void)snprintf(numbers[1], sizeof(numbers[1]), "%lld", (long long)opts->link_port.value);
        args[count++] = link_port;
        args[count++] = numbers[1];
    }
    if (opts->proxy_port.is_set) {
        (void)snprintf(numbers[2], sizeof(numbers[2]), "%lld", (long long)opts->proxy_port.value);
        args[count++] = proxy_port;
        args[count++] = numbers[2];
    }
    for (size_t i = 0; i < opts->agents.count; i++) {
        args[count++] = agent;
        args[count++] = (char *)opts->agents.items[i];
    }
    return cli_exec_program("aliquot-up", args, err);
}

const struct cli_verb verb_up = {
    .name = "up",
    .args = "",
    .summary = "Start a whole cluster on this machine and watch over it",
    .details = "Starts manager, agents and proxy, joins them, prints where they are, and restarts\n"
               "processes that die. Ctrl-C ends everything that it started; with --dev the\n"
               "sessions, too. The state stays: the next 'aliquot up' goes on from there.",
    .examples = "aliquot up --dev\n"
                "aliquot up --state ~/cluster --port 9000\n"
                "aliquot up --dev --agent first.toml --agent second.toml",
    .opts = up_opts,
    .opts_size = sizeof(struct up_opts),
    .flags = CLI_NO_CONFIG,
    .run = up_run,
};
