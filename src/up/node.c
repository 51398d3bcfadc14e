/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - one agent that aliquot-up starts: its places, its join, its program */
#include "up/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/program.h"
#include "base/strbuf.h"

#define JOIN_MSEC 30000

static char config_flag[] = "--config", state_flag[] = "--state", shared_flag[] = "--shared",
            dev_flag[] = "--dev", listen_flag[] = "--listen", volume_flag[] = "--volume";

const struct node_front node_proxy = { "proxy", "main", "apps ", 5051 },
                        node_storage = { "storage", "local", "files", 6023 },
                        node_web = { "web", "main", "web  ", 8093 };

void node_choose_metrics(char *ret, size_t size, unsigned port)
{
    if (!getenv("ALIQUOT_METRICS_LISTEN"))
        (void)snprintf(ret, size, "ALIQUOT_METRICS_LISTEN=127.0.0.1:%u", port);
}

/* The program and the options that every call of it has; returns their count. */
static int up_put_options(struct node *node, const struct paths *paths, char **argv)
{
    int n = 0;

    argv[n++] = node->front == &node_proxy     ? paths->proxy
                : node->front == &node_storage ? paths->storage
                : node->front == &node_web     ? paths->web
                                               : paths->agent;
    if (node->config) {
        argv[n++] = config_flag;
        argv[n++] = (char *)node->config;
    }
    argv[n++] = state_flag;
    argv[n++] = node->state;
    if (node->front) {
        argv[n++] = listen_flag;
        argv[n++] = node->listen;
        return n;
    }
    argv[n++] = shared_flag; /* the machine may have an agent besides */
    if (node->is_dev)
        argv[n++] = dev_flag;
    if (node->volume) {
        argv[n++] = volume_flag;
        argv[n++] = node->volume;
    }
    return n;
}

static int up_name_places(struct node *node, const struct paths *paths, struct aq_error *err)
{
    node->state = aq_format("%s/%s", paths->state, node->name);
    node->log = aq_format("%s/%s.log", paths->state, node->name);
    node->notify = aq_format("%s/%s.notify", paths->state, node->name);
    (void)up_put_options(node, paths, node->argv);
    node->spec = (struct child_spec){ node->name, node->argv, node->log, node->notify,
                                      node->metrics[0] ? node->metrics : NULL };
    return fs_mkdirs(node->state, 0700, err);
}

int node_init(struct node *node, size_t index, const char *config, bool is_dev,
              const struct paths *paths, struct aq_error *err)
{
    *node = (struct node){ .config = config, .is_dev = is_dev };
    if (index == 0)
        (void)snprintf(node->name, sizeof(node->name), "agent");
    else
        (void)snprintf(node->name, sizeof(node->name), "agent%zu", index + 1);
    if (paths->storage && !getenv("ALIQUOT_STORAGE_VOLUMES"))
        node->volume = aq_format("%s:volume1=%s/storage/volume1", node_storage.name, paths->state);
    return up_name_places(node, paths, err);
}

int node_init_front(struct node *node, const struct node_front *front, uint16_t port,
                    uint16_t offset, const struct paths *paths, struct aq_error *err)
{
    *node = (struct node){ .front = front };
    (void)snprintf(node->name, sizeof(node->name), "%s", front->program);
    (void)snprintf(node->listen, sizeof(node->listen), "127.0.0.1:%u", (unsigned)port);
    if (offset) /* agents choose a free port themselves */
        node_choose_metrics(node->metrics, sizeof(node->metrics), front->metrics + offset);
    return up_name_places(node, paths, err);
}

void node_done(struct node *node)
{
    free(node->state);
    free(node->log);
    free(node->notify);
    free(node->volume);
    *node = (struct node){ .state = NULL };
}

int node_join(struct node *node, const struct paths *paths, const char *endpoint, const char *link,
              struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *cert = aq_format("%s/%s.crt", node->state,
                                                node->front ? node->front->program : "agent");
    AQ_CLEANUP(aq_freep) char *kind = aq_format("--%s", node->front ? node->front->program : "");
    AQ_CLEANUP(strbuf_donep) struct strbuf token = STRBUF_INIT, out = STRBUF_INIT;
    char agent[] = "agent", make[] = "token", format[] = "--output", name[] = "name",
         where[] = "--endpoint", join[] = "join";
    char *const token_argv[] = { paths->cli,
                                 agent,
                                 make,
                                 format,
                                 name,
                                 where,
                                 (char *)endpoint,
                                 node->front ? kind : NULL,
                                 node->front ? (char *)node->front->name : NULL,
                                 NULL };
    char *join_argv[12] = { NULL };
    int n, r;

    if (access(cert, F_OK) == 0)
        return 0;
    r = program_run(token_argv, paths->log, JOIN_MSEC, &token, err);
    if (r < 0)
        return r;
    strbuf_truncate(&token, strcspn(token.data, "\r\n"));
    n = up_put_options(node, paths, join_argv);
    join_argv[n++] = join;
    join_argv[n++] = (char *)link;
    join_argv[n] = token.data;
    return program_run(join_argv, paths->log, JOIN_MSEC, &out, err);
}
