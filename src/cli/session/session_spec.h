/* SPDX-License-Identifier: Apache-2.0 */
/* session_spec.h - what a new session shall be: the options that "run" and "session create" share
 */
#ifndef AQ_CLI_SESSION_SESSION_SPEC_H
#define AQ_CLI_SESSION_SESSION_SPEC_H

#include "cli/cli.h"

struct spec_opts {
    struct cli_list resources, resource_opts, environ, after;
    const char *template; /* NULL = none */
    const char *name, *image, *group, *resource_group, *starts_at, *tag, *callback_url;
    struct cli_list agents, ports, mounts, roles;
    const char *cluster; /* "4" or "2-8" */
    int cluster_mode;    /* CLI_CHOICE: single-node, multi-node */
    const char *spread, *pack;
    const char *on_failure, *on_node_loss, *network;
    const char *retry_on, *resume_command, *signal, *checkpoint_signal;
    const char *reservation; /* NULL = none */
    struct cli_int retry, retry_delay, retry_factor, grace;
    const char *input;    /* "stream" or "terminal"; NULL = none; no option says it */
    const char *array;    /* indices and limit; no row of SPEC_OPT_ROWS */
    unsigned array_count; /* how many are created alike; 0 = it is alone; no option says it */
    bool is_interactive;  /* and is said to be so; no option says it */
    bool needs_rdma, prefer_agents, group_strict, is_preemptible, is_movable, waits_for_capacity,
        no_auto_mount;
    struct cli_int priority, job_priority, timeout, cluster_size;
};

/* The rows for a struct whose member 'spec' is the above. 'name_letter' is that of --name, 0 =
 * none.
 */
/* clang-format off */
#define SPEC_OPT_ROWS(type, name_letter)                                                           \
    { 'r', "resource", CLI_LIST, offsetof(type, spec.resources), "SLOT=AMOUNT",                    \
      "what it needs: cpu=2, mem=4g, cuda.shares=0.25; repeatable" },                              \
    { 0, "resource-opts", CLI_LIST, offsetof(type, spec.resource_opts), "NAME=VALUE",              \
      "shmem=1g, allow_fractional_resource_fragmentation=yes; repeatable" },                       \
    { 'e', "env", CLI_LIST, offsetof(type, spec.environ), "NAME[=VALUE]",                          \
      "environment variable; without value: as it is here" },                                      \
    { 'v', "mount", CLI_LIST, offsetof(type, spec.mounts), "FOLDER[/PATH][:TARGET][:ro]",          \
      "folder to mount, by default at /home/work/FOLDER; repeatable" },                            \
    { 0, "no-auto-mount", CLI_FLAG, offsetof(type, spec.no_auto_mount), NULL,                      \
      "without the folders whose names begin with a dot" },                                        \
    { name_letter, "name", CLI_STR, offsetof(type, spec.name), "NAME", "name of the session" },    \
    { 0, "template", CLI_STR, offsetof(type, spec.template), "TEMPLATE",                           \
      "what it is like, where no other option says so: see aliquot template" },                    \
    { 0, "image", CLI_STR, offsetof(type, spec.image), "IMAGE", "what it runs in" },               \
    { 'g', "group", CLI_STR, offsetof(type, spec.group), "PROJECT", "project it belongs to" },     \
    { 0, "resource-group", CLI_STR, offsetof(type, spec.resource_group), "RESOURCE-GROUP",         \
      "group of agents it may run on" },                                                           \
    { 'p', "priority", CLI_INT, offsetof(type, spec.priority), "N",                                \
      "0 to 100; higher goes first, default 10" },                                            \
    { 0, "job-priority", CLI_INT, offsetof(type, spec.job_priority), "N",                          \
      "0 to 100; preempts preemptible sessions with a lower one" },                                \
    { 0, "movable", CLI_FLAG, offsetof(type, spec.is_movable), NULL,                               \
      "may be stopped and started again on another agent" },                                       \
    { 0, "preemptible", CLI_FLAG, offsetof(type, spec.is_preemptible), NULL,                       \
      "more important sessions may preempt it" },                                                  \
    { 0, "spread", CLI_STR, offsetof(type, spec.spread), "NAME",                                   \
      "keep apart from your sessions that name the same" },                                        \
    { 0, "pack", CLI_STR, offsetof(type, spec.pack), "NAME",                                       \
      "keep together with your sessions that name the same" },                                     \
    { 0, "strict", CLI_FLAG, offsetof(type, spec.group_strict), NULL,                              \
      "wait rather than not to keep apart or together" },                                          \
    { 0, "agent", CLI_LIST, offsetof(type, spec.agents), "AGENT",                                  \
      "only on this agent; repeatable; superadmins only" },                                        \
    { 0, "prefer-agents", CLI_FLAG, offsetof(type, spec.prefer_agents), NULL,                      \
      "other agents will do if those have no room" },                                              \
    { 0, "wait-for-capacity", CLI_FLAG, offsetof(type, spec.waits_for_capacity), NULL,             \
      "may ask for more than any agent has, and waits for one" },                                  \
    { 0, "reservation", CLI_STR, offsetof(type, spec.reservation), "NAME",                          \
      "run in this reservation: in its time, on its resources" },                                   \
    { 0, "starts-at", CLI_STR, offsetof(type, spec.starts_at), "TIME",                             \
      "not before this date (local time), or this long from now" },                                             \
    { 0, "after", CLI_LIST, offsetof(type, spec.after), "[CONDITION:]SESSION",                     \
      "only after this session, array or ARRAY[INDEX]; repeatable" },                      \
    { 0, "timeout", CLI_DURATION, offsetof(type, spec.timeout), "TIME",                            \
      "end the program after this long; default 0, no limit" },                                                         \
    { 0, "cluster", CLI_STR, offsetof(type, spec.cluster), "[MIN-]N",                              \
      "N kernels, on one node or several; MIN are enough to start" },                      \
    { 0, "cluster-size", CLI_INT, offsetof(type, spec.cluster_size), "N",                          \
      "N kernels, on one node unless --cluster-mode is multi-node" },                              \
    { 0, "cluster-mode", CLI_CHOICE, offsetof(type, spec.cluster_mode), "single-node|multi-node",  \
      "whether its kernels may be on several nodes" },                                             \
    { 0, "role", CLI_LIST, offsetof(type, spec.roles), "NAME=COUNT[,...]", \
      "kernels with own image=, SLOT=, env.X=, command=; repeatable" },  \
    { 0, "on-failure", CLI_STR, offsetof(type, spec.on_failure), "end|continue",                   \
      "when one of several kernels fails; end is the default for batch" },                         \
    { 0, "on-node-loss", CLI_STR, offsetof(type, spec.on_node_loss),                               \
      "end|restart-kernel|restart-all",                                                            \
      "when a kernel's node is lost; default: as the resource group says" },                       \
    { 0, "network", CLI_STR, offsetof(type, spec.network), "private|host",                         \
      "host: the network of its nodes, if that is allowed; default private" },                     \
    { 0, "rdma", CLI_FLAG, offsetof(type, spec.needs_rdma), NULL,                                  \
      "give it the InfiniBand and RoCE devices of its nodes, if allowed" },                        \
    { 0, "retry", CLI_INT, offsetof(type, spec.retry), "N",                                        \
      "run it again up to N times if it does not succeed; batch only" },                           \
    { 0, "retry-on", CLI_STR, offsetof(type, spec.retry_on), "END[:N],...",                        \
      "failure, exit=N, oom, gpu-oom, node-lost, timeout, preempted, start" },           \
    { 0, "retry-delay", CLI_DURATION, offsetof(type, spec.retry_delay), "TIME",                    \
      "delay before the first retry, then doubled; default 10s" },                                 \
    { 0, "retry-factor", CLI_INT, offsetof(type, spec.retry_factor), "N",                          \
      "how much longer each further delay is, up to 10 minutes; 1 = not" },                        \
    { 0, "signal", CLI_STR, offsetof(type, spec.signal), "SIGNAL[@SECONDS]",                       \
      "signal to send SECONDS before --timeout expires; default 60" },                             \
    { 0, "checkpoint-signal", CLI_STR, offsetof(type, spec.checkpoint_signal), "SIGNAL",           \
      "sent first when it is preempted, moved or over its time limit" },                           \
    { 0, "grace", CLI_DURATION, offsetof(type, spec.grace), "TIME",                                \
      "time between the checkpoint signal and SIGTERM; default 30s" },                             \
    { 0, "resume-command", CLI_STR, offsetof(type, spec.resume_command), "COMMAND",                \
      "what it runs instead from the second attempt on" },                                         \
    { 0, "port", CLI_LIST, offsetof(type, spec.ports), "PORT",                                     \
      "a port of the container to be reached by one of its node; repeatable" },                    \
    { 0, "tag", CLI_STR, offsetof(type, spec.tag), "TEXT", "a note that lists show" },    \
    { 0, "callback-url", CLI_STR, offsetof(type, spec.callback_url), "URL",                        \
      "each change of its status is sent there by POST" }
/* clang-format on */

/* The body of a request that creates a session. 'argv' is the command: one
 * word is a line for the shell, several are a program and its arguments. NULL
 * = none. The name is that of the options, else made from the command and
 * chance; 'index' > 0 is appended to it. With spec->array_count the session's
 * environment has its index, from 0, and the count.
 */
int spec_to_json(const struct cli *cli, const struct spec_opts *spec, bool is_batch, int argc,
                 char *const argv[], unsigned index, json_t **ret, struct aq_error *err);

/* The variables that --env gives into the object, the last of a name counts: "NAME=VALUE", or
 * "NAME" with the value that it has here; without one there is none in the object.
 */
int spec_add_environ(const struct cli_list *list, json_t *object, struct aq_error *err);

/* Choose the name once for several: the name of the options, or one made up. Caller frees. */
char *spec_make_name(const struct spec_opts *spec, int argc, char *const argv[]);

/* Append the words as a line for the shell that gives them back unchanged. */
void spec_quote_command(int argc, char *const argv[], struct strbuf *out);

#endif
