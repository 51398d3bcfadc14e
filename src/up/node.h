/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - one agent that aliquot-up starts, or a front daemon: its places, its join, its program
 *
 * The first has STATE/agent, agent.log and agent.notify, the second
 * STATE/agent2, and so on. Each may have a configuration file of its own, so
 * that several share one machine.
 */
#ifndef AQ_UP_NODE_H
#define AQ_UP_NODE_H

#include "up/child.h"
#include "up/paths.h"

#define NODES_MAX 64

/* A daemon that clients reach beside the manager. */
struct node_front {
    const char *program; /* "proxy": aliquot-proxy, and its folder */
    const char *name;    /* in the cluster: the default of its settings */
    const char *shown;   /* in the welcome */
    uint16_t metrics;    /* the port of /metrics: the default of its settings */
};
extern const struct node_front node_proxy, node_storage, node_web;

struct node {
    const char *config;             /* file given by the user; NULL = the usual one */
    bool is_dev;                    /* what an agent offers for development only, too */
    char *volume;                   /* of folders, for an agent; NULL = none */
    const struct node_front *front; /* NULL = an agent; else it is at 'listen' */
    char listen[24];
    char *state, *log, *notify;
    char *argv[10];
    struct child_spec spec;
    char name[16];    /* "agent", "agent2" */
    char metrics[64]; /* a variable of its environment; empty = none */
    struct child *child;
};

/* Make its state directory (0700) and say how to start it; 'index' from 0. 'config' and 'paths'
 * must outlive the node. If 'paths' have a storage host its usual volume is the agent's,
 * too. After a failure, too, node_done().
 */
int node_init(struct node *node, size_t index, const char *config, bool is_dev,
              const struct paths *paths, struct aq_error *err);
/* A front daemon, which listens on this port of 127.0.0.1; likewise. An offset other than 0 is
 * added to the port of its /metrics.
 */
int node_init_front(struct node *node, const struct node_front *front, uint16_t port,
                    uint16_t offset, const struct paths *paths, struct aq_error *err);
/* Write the variable by which a daemon serves /metrics on this port of 127.0.0.1 to 'ret', unless
 * the environment has it already.
 */
void node_choose_metrics(char *ret, size_t size, unsigned port);
/* The child must be gone (child_free(), then the loop has run). */
void node_done(struct node *node);

/* Join with a token that is made by the API, as an administrator would, unless
 * it has joined before: then its certificate is there. Blocks.
 */
int node_join(struct node *node, const struct paths *paths, const char *endpoint, const char *link,
              struct aq_error *err);

#endif
