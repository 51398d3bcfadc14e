/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of a session's container, as ports of this machine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/host_port.h"
#include "cli/tunnel/forward.h"
#include "cli/verbs.h"

struct port_forward_opts {
    const char *address, *stdio, *kernel;
};

/* "8080", "18080:8080", "0:8080" or ":8080". */
static int port_forward_parse(const char *word, struct forward_port *ret, struct aq_error *err)
{
    const char *colon = strchr(word, ':');
    char local[16];
    int r = tunnel_parse_port(colon ? colon + 1 : word, false, &ret->remote, err);

    ret->local = ret->remote;
    if (r < 0 || !colon)
        return r;
    (void)snprintf(local, sizeof(local), "%.*s", (int)(colon - word), word);
    return tunnel_parse_port(local[0] ? local : "0", true, &ret->local, err);
}

static int port_forward_on_ready(void *data, struct aq_error *err)
{
    const struct forward_job *job = data;
    char address[HOST_PORT_MAX];

    for (size_t i = 0; i < job->count; i++)
        (void)printf("Forwarding from %s -> %u\n",
                     host_port_write(job->address, job->ports[i].local, address),
                     job->ports[i].remote);
    return fflush(stdout) < 0 ? aq_fail_errno(err, "standard output") : 0;
}

static int port_forward_run_stdio(struct cli *cli, const char *name,
                                  const struct port_forward_opts *opts, struct aq_error *err)
{
    struct follow_session session;
    uint16_t port;
    int r = tunnel_parse_port(opts->stdio, false, &port, err);

    if (r == 0)
        r = session_await_kernel(cli, name, opts->kernel, &session, err);
    return r < 0 ? r : tunnel_run_stdio(cli, &session, port, err);
}

static int port_forward_run(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    const struct port_forward_opts *opts = data;
    struct forward_job job = { .cli = cli,
                               .address = opts->address ? opts->address : "127.0.0.1",
                               .on_ready = port_forward_on_ready };
    int r = 0;

    if (!opts->stdio == (argc == 1))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "either ports or --stdio PORT: aliquot port-forward SESSION PORT");
    if (opts->stdio)
        return port_forward_run_stdio(cli, argv[0], opts, err);
    if (argc - 1 > FORWARD_PORTS_MAX)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "more than %d ports", FORWARD_PORTS_MAX);
    for (; r == 0 && job.count < (size_t)argc - 1; job.count++)
        r = port_forward_parse(argv[job.count + 1], &job.ports[job.count], err);
    if (r == 0)
        r = session_await_kernel(cli, argv[0], opts->kernel, &job.session, err);
    job.data = &job;
    return r < 0 ? r : forward_run(&job, err);
}

static const struct cli_opt port_forward_options[] = {
    { 0, "address", CLI_STR, offsetof(struct port_forward_opts, address), "ADDRESS",
      "Listen on this address; default 127.0.0.1" },
    { 0, "stdio", CLI_STR, offsetof(struct port_forward_opts, stdio), "PORT",
      "Connect standard input and output to this port instead" },
    SESSION_KERNEL_OPT_ROW(struct port_forward_opts, kernel),
    CLI_OPT_END,
};

const struct cli_verb verb_port_forward = {
    .name = "port-forward",
    .args = "SESSION [[LOCAL:]PORT...]",
    .summary = "Reach ports in a session from this machine",
    .details = "Whoever connects to LOCAL here is connected to PORT in the session's\n"
               "container, where something may listen on 127.0.0.1 alone. Nothing has to be\n"
               "published, and the session's node need not be reachable: bytes go through the\n"
               "manager. LOCAL is PORT if it is not given; 0 is any free port, which is shown.\n"
               "Up to 32 connections are open at a time, further ones wait. It goes on until\n"
               "Ctrl-C or the end of the session, also when a connection fails or the manager\n"
               "restarts. A session that waits is waited for.",
    .examples = "aliquot port-forward notebook 8888\n"
                "aliquot port-forward notebook 18080:80 0:5432\n"
                "aliquot port-forward --address 0.0.0.0 notebook 8888\n"
                "echo PING | aliquot port-forward --stdio 6379 store",
    .opts = port_forward_options,
    .opts_size = sizeof(struct port_forward_opts),
    .min_args = 1,
    .max_args = -1,
    .run = port_forward_run,
};
