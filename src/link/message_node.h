/* SPDX-License-Identifier: Apache-2.0 */
/* message_node.h - messages about an agent as a node: its network, its images and its own service
 *
 * Older agents do not answer service.order. See message.h for the form of a message.
 */
#ifndef AQ_LINK_MESSAGE_NODE_H
#define AQ_LINK_MESSAGE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lists.h"
#include "base/uuid.h"

struct msg_network_peers { /* agents to which the way is checked all the time */
    const char *network;   /* JSON of model/cluster_network.h; "agents" empty = none */
};

struct msg_network_reach {                  /* on each change, and every minute */
    struct str_list reachable, unreachable; /* ids of agents that are checked */
};

struct msg_image_logins {
    const char *auths; /* JSON: "auths" of containers-auth.json(5); NULL = there are none */
};

struct msg_drain {
    bool on; /* true: kernel.create is answered with ERROR "draining" */
};

struct msg_image_command {
    struct uuid job_id; /* what image.status answers to */
    const char *action; /* "pull", "remove", "collect", "cancel" */
    const char *image;  /* pull, remove: its name */
    bool always;        /* pull: ask the registry although it is there */
    bool all;           /* collect: everything unused */
};

struct msg_image_status {
    struct uuid job_id;                /* nil: not ordered, a kernel needs it */
    struct uuid session_id, kernel_id; /* nil: ordered */
    const char *image;
    const char *state; /* "resolving", "retrying", "fetching", "unpacking", "ready", "failed"; the
                                 last two end the job */
    int64_t done_bytes, total_bytes;
    int64_t freed_bytes;                 /* remove, collect */
    const char *digest;                  /* pull: once ready */
    const char *error_kind, *error_text; /* failed; retrying: the last try, by the text alone */
};

struct msg_image_list { /* all images of the node: after connecting and when they change */
    const char *images; /* JSON list [{"digest","names","size_bytes","architecture",
                                 "fetched_at","used_at","holds","labels"}]; times in microseconds */
};

struct msg_service_command {
    struct uuid job_id; /* what service.status answers to */
    const char *action; /* "status", "stop", "restart" */
};

struct msg_service_status { /* of stop and restart the end of the connection is an answer, too */
    struct uuid job_id;
    const char *unit;  /* "aliquot-agent.service"; NULL = not known */
    const char *state; /* as systemctl says it; NULL = the command failed */
    const char *error_text;
};

#endif
