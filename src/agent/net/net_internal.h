/* SPDX-License-Identifier: Apache-2.0 */
/* net_internal.h - what the files of net.h share */
#ifndef AQ_AGENT_NET_NET_INTERNAL_H
#define AQ_AGENT_NET_NET_INTERNAL_H

#include "agent/net/net_directory.h"
#include "agent/net/dns_files.h"
#include "agent/net/net.h"
#include "agent/net/ports.h"
#include "agent/net/endpoint_record.h"
#include "base/list.h"

enum endpoint_state {
    ENDPOINT_FOUND,   /* left by a former process, claimed by nobody */
    ENDPOINT_OPENING, /* endpoint_setup_create() is under way */
    ENDPOINT_LISTING, /* it is there; its ports and peers are not in the table yet */
    ENDPOINT_OPEN,
    ENDPOINT_FAILED,    /* the caller was told */
    ENDPOINT_UNLISTING, /* its ports and peers are on their way out of the table */
    ENDPOINT_CLOSING,   /* endpoint_setup_remove() is under way */
};

struct net_endpoint {
    struct list link;
    struct net *net;
    enum endpoint_state state;
    struct uuid kernel_id;
    struct endpoint_record record;
    struct net_info info;
    char *
        cluster_hosts; /* lines of its hosts file in place of itself and its peers here; NULL = none */
    uint64_t listed; /* the table's version that shows its present state */
    bool is_closing; /* net_close() was called */
    net_fn *fn;      /* of net_open(), then of net_close() */
    void *data;
};

struct net {
    uv_loop_t *loop;
    struct net_directory directory;
    struct range whole; /* the pool of all agents here */
    struct pool pool;
    struct ports ports;
    struct list endpoints;
    struct dns_servers servers;
    bool has_own_servers; /* from the settings */
    struct range *denied;
    size_t denied_count, denied_cap;
    struct nft_rules_target *allowed;
    size_t allowed_count;
    struct nft_rules_target *registries;
    size_t registries_count, registries_cap;
    int64_t connections_max;
    uint16_t tunnel_port;
    uint32_t mtu;
    uint64_t wanted, current; /* versions of the table: to be made, made */
    bool is_writing;          /* the table */
    struct strbuf written;    /* the commands that made it what it is; "" = not known */
    unsigned jobs;            /* in the thread pool */
    bool is_freed;
    char note[240];
};

/* Does this endpoint show in the sets of the table? */
static inline bool endpoint_is_listed(const struct net_endpoint *e)
{
    return !e->is_closing && e->state != ENDPOINT_FAILED && e->state != ENDPOINT_OPENING;
}

void net_endpoint_fill_info(struct net_endpoint *endpoint);
void net_endpoint_directory(const struct net_endpoint *endpoint, char *path, size_t size);
void net_endpoint_link(const struct net_endpoint *endpoint, char name[IF_NAMESIZE]);

/* ---- net_table.c: the sets of the table and the hosts files follow what is open ---- */

/* The commands for all sets as they ought to be now. */
void net_table_add_sets(struct net *net, struct strbuf *out);

/* Bring the table up to date in the background; what waits for a version goes
 * on by net_endpoint_listed().
 */
void net_table_update(struct net *net);
void net_endpoint_listed(struct net_endpoint *endpoint, const struct aq_error *err);

/* The end of a job; frees what net_free() left. */
void net_job_ended(struct net *net);

/* The hosts file of a kernel: itself and its peers. */
void net_hosts_add(const struct net_endpoint *endpoint, struct strbuf *out);
bool net_has_peers(const struct net_endpoint *endpoint);

/* ---- net_start.c ---- */

int net_start(struct net *net, const struct net_settings *settings, struct aq_error *err);

#endif
