/* SPDX-License-Identifier: Apache-2.0 */
/* up.h - a manager and agents on this machine, watched over
 *
 * Below the state directory: manager/, agent/, agent2/ ..., proxy/, storage/, web/ are the
 * programs' own, manager.log, agent.log ... and up.log what they said, up.json where everything
 * is while it runs ({"pid", "manager_pid", "agent_pids", "endpoint", "link"}),
 * lock held by the one that runs.
 */
#ifndef AQ_UP_UP_H
#define AQ_UP_UP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct up_options {
    bool is_dev;
    const char *state_dir; /* absolute */
    uint16_t port, link_port;
    uint16_t offset;           /* of a second cluster, added to the ports of /metrics; 0 = none */
    uint16_t proxy_port;       /* 0 = no proxy */
    uint16_t storage_port;     /* 0 = no storage host */
    uint16_t web_port;         /* 0 = no web server */
    const char *static_dir;    /* absolute: what the web server serves; NULL = the console */
    const char *const *agents; /* a configuration file for each agent */
    size_t agent_count;        /* 0 = one agent with the usual configuration */
};

/* Start, watch, and stop at SIGINT or SIGTERM. 0 after an orderly stop. */
int up_run(const struct up_options *options, struct aq_error *err);

#endif
