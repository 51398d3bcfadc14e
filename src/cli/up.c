/* SPDX-License-Identifier: Apache-2.0 */
/* "up": hands over to aliquot-up, so that this program stays small. */
#include <errno.h>
#include <stdio.h>

#include "base/memory.h"
#include "cli/verbs.h"

struct up_opts {
    bool dev;
    const char *state;
    struct cli_int offset, port, link_port, proxy_port, storage_port, web_port;
    const char *static_dir;
    struct cli_list agents;
};

static const struct cli_opt up_opts[] = {
    { 0, "dev", CLI_FLAG, offsetof(struct up_opts, dev), NULL,
      "stock development users and keys, on loopback" },
    { 0, "state", CLI_STR, offsetof(struct up_opts, state), "DIR",
      "where everything is kept; asked for again, it goes on from there" },
    { 0, "port-offset", CLI_INT, offsetof(struct up_opts, offset), "N",
      "added to all default ports, for a second cluster" },
    { 0, "port", CLI_INT, offsetof(struct up_opts, port), "N", "of the API; default 8081" },
    { 0, "link-port", CLI_INT, offsetof(struct up_opts, link_port), "N",
      "for agents; default 8082" },
    { 0, "proxy-port", CLI_INT, offsetof(struct up_opts, proxy_port), "N",
      "for apps in the browser; default 5050, with --port alone none" },
    { 0, "storage-port", CLI_INT, offsetof(struct up_opts, storage_port), "N",
      "for files of folders; default 6021, with --port alone none" },
    { 0, "web-port", CLI_INT, offsetof(struct up_opts, web_port), "N",
      "for pages in the browser; default 8090, with --port alone none" },
    { 0, "static", CLI_STR, offsetof(struct up_opts, static_dir), "DIR",
      "files of Backend.AI's WebUI, which it serves in place of the console" },
    { 0, "agent", CLI_LIST, offsetof(struct up_opts, agents), "FILE",
      "an agent with this configuration file; may be repeated" },
    CLI_OPT_END,
};

static int up_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct up_opts *opts = data;
    char program[] = "aliquot-up", dev[] = "--dev", state[] = "--state", port[] = "--port",
         link_port[] = "--link-port", proxy_port[] = "--proxy-port",
         storage_port[] = "--storage-port", web_port[] = "--web-port", static_dir[] = "--static",
         agent[] = "--agent", offset[] = "--port-offset", numbers[6][24];
    const struct {
        char *option;
        const struct cli_int *value;
    } ports[AQ_COUNT(numbers)] = { { offset, &opts->offset },
                                   { port, &opts->port },
                                   { link_port, &opts->link_port },
                                   { proxy_port, &opts->proxy_port },
                                   { storage_port, &opts->storage_port },
                                   { web_port, &opts->web_port } };
    AQ_CLEANUP(aq_freep) char **args = aq_alloc_array(20 + 2 * opts->agents.count, sizeof(*args));
    size_t count = 0;

    (void)cli;
    (void)argc;
    (void)argv;
    args[count++] = program;
    if (opts->dev)
        args[count++] = dev;
    if (opts->state) {
        args[count++] = state;
        args[count++] = (char *)opts->state;
    }
    for (size_t i = 0; i < AQ_COUNT(ports); i++) {
        if (!ports[i].value->is_set)
            continue;
        (void)snprintf(numbers[i], sizeof(numbers[i]), "%lld", (long long)ports[i].value->value);
        args[count++] = ports[i].option;
        args[count++] = numbers[i];
    }
    if (opts->static_dir) {
        args[count++] = static_dir;
        args[count++] = (char *)opts->static_dir;
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
    .details =
        "Starts manager, agents, proxy, storage host and web server, joins them, prints where\n"
        "they are, and restarts processes that die. Ctrl-C ends everything that it started; with --dev the\n"
        "sessions, too. The state stays: the next 'aliquot up' goes on from there.",
    .examples = "aliquot up --dev\n"
                "aliquot up --state ~/cluster --port 9000\n"
                "aliquot up --dev --state second --port-offset 100\n"
                "aliquot up --dev --agent first.toml --agent second.toml",
    .opts = up_opts,
    .opts_size = sizeof(struct up_opts),
    .flags = CLI_NO_CONFIG,
    .run = up_run,
};
