/* SPDX-License-Identifier: Apache-2.0 */
/* message_greeting.h - messages that begin and end a connection, and the list of managers
 *
 * See message.h for the form of a message.
 */
#ifndef AQ_LINK_MESSAGE_GREETING_H
#define AQ_LINK_MESSAGE_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

#define LINK_MANAGERS_MAX 32

struct link_manager {
    const char *name;
    const char *link; /* HOST:PORT where agents, front daemons and other managers reach it */
    const char *api;  /* URL of its API; NULL = not known */
};

struct msg_managers {
    struct link_manager *managers; /* all of the cluster */
    size_t manager_count;
};

/* Beside the members of a message that orders a change: who ordered it, and on which state. */
struct msg_stamp {
    int64_t
        epoch; /* of the manager that leads; 0 = its store has none, or it is an older version */
    int64_t commit; /* number of the store's last commit when it was sent; 0 likewise */
};

struct msg_join {
    const char *secret;   /* pki_token_secret() */
    const char *agent_id; /* wanted id; becomes the certificate's common name */
    const char *csr;      /* PEM; a manager sends none */
    const char *version, *architecture, *hostname;
    int64_t protocol_min, protocol_max;
    /* Of a manager (LINK_MANAGER_PREFIX): where agents and clients reach it, and whether its
     * settings name the database. */
    const char *link, *api;
    bool has_database;
};

/* A manager joins by an id that begins with this, and its certificates have it as their name. */
#define LINK_MANAGER_PREFIX "manager:"

struct msg_joined {
    const char *cert, *ca; /* PEM; a manager gets no certificate: it makes its own with ca_key */
    const char *agent_id;
    const char *note; /* for who runs the join; NULL = nothing to say */
    /* For a manager: the authority's key (PEM), the sealing key of the database (hexadecimal),
     * and the database's URI, NULL where msg_join.has_database. Never logged. */
    const char *ca_key, *seal_key, *database;
};

struct msg_hello {
    int64_t protocol_min, protocol_max;
    const char *agent_id;         /* must be the certificate's common name */
    struct uuid incarnation;      /* random, per agent process */
    struct uuid peer_incarnation; /* manager process that received_seq counts; nil = none yet */
    int64_t received_seq;         /* last message of that manager that was handled */
    int64_t started_usec;         /* when the agent process began */
    const char *version, *architecture, *hostname;
    const char *addr, *region, *resource_group; /* as configured; NULL = manager decides */
    const char *topology;      /* where it is, see topology_check(); NULL = not known */
    const char *slots;         /* JSON {"cpu":["count","4"],"mem":["bytes","1073741824"]}: offered,
                                 that is capacity times overcommit less reserved */
    const char *devices;       /* JSON list [{"id","slot","amount",...}] */
    const char *runtime;       /* "process", "crun 1.8.1" ... */
    const char *runtime_notes; /* what is weaker on this node than it could be, a line each */
    const char *plugins; /* JSON list of accelerator plugins: agent/resources/plugins_json.c */
    const char *volumes; /* JSON list of the hosts of folders that it mounts, ["local:volume1"] */
    const char *network; /* JSON of struct cluster_network_offer; NULL = as mode "none" */
    bool has_sftp;       /* sessions of the type system can run there */
    const char *data;    /* HOST:PORT at which proxies reach it, or "-" = only from its own machine;
                           NULL = by the manager alone */
    const char *domain_url; /* of a proxy with a domain: "https://DOMAIN:PORT", of which
                               NAME--serve.DOMAIN is a service's; NULL = it has none */
    const char *link;       /* of a manager: HOST:PORT of its own link; NULL = not a manager */
    int64_t epoch;          /* the highest that was followed; 0 = none */
    int64_t commit; /* the highest that an order of that epoch followed; 0 = none since its start */
};

struct msg_welcome {
    int64_t protocol;        /* the version that both speak from here on */
    struct uuid incarnation; /* of the manager process */
    bool is_resumed;         /* false: both sides count from 1 again */
    int64_t received_seq;    /* last message of this agent incarnation that was handled */
    int64_t heartbeat_usec;  /* wanted interval; 0 = the agent's own */
    const char *version;
    int64_t at_usec; /* the manager's clock, to report skew */
    bool has_leases; /* heartbeats are answered; false: a manager that starts kernels elsewhere
                        without leases */
    int64_t epoch;   /* of the manager that leads; 0 = its store counts none, or an older version */
    struct link_manager *managers; /* all of the cluster; none: not known */
    size_t manager_count;
};

struct msg_refused {
    const char *kind; /* "protocol", "identity", "revoked", "token", "refused", "not-leader" */
    const char *text;
    int64_t retry_usec; /* > 0: try again after this; 0: give up and exit */
    const char *leader; /* "not-leader": HOST:PORT of the manager that leads; NULL = not known */
};

struct msg_fenced {
    struct uuid by; /* the incarnation that took over */
    const char *text;
};

struct msg_bye {
    const char *text;
};

#endif
