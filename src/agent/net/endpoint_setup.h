/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint_setup.h - creates and removes one endpoint; blocking, for worker threads */
#ifndef AQ_AGENT_NET_ENDPOINT_SETUP_H
#define AQ_AGENT_NET_ENDPOINT_SETUP_H

#include <net/if.h>

#include "agent/net/dns_files.h"
#include "agent/net/net.h"

struct endpoint_plan {
    char directory[NET_PATH_MAX - 16]; /* of the endpoint */
    char link[IF_NAMESIZE];            /* the node's end of the pair */
    uint32_t address, gateway, mtu;
    struct strbuf record, hosts;
    struct dns_servers servers;
    uint16_t ports[NET_PORTS_MAX]; /* inside, published */
    size_t port_count;
    bool is_closed; /* to all that the kernel begins */
};

void endpoint_plan_done(struct endpoint_plan *plan);

/* All of it, or -errno and nothing is left. Where the kernel lacks nftables'
 * "socket", a warning is logged and what listens on loopback is not published.
 */
int endpoint_setup_create(const struct endpoint_plan *plan, struct aq_error *err);

/* Remove what there is of an endpoint; 'link' NULL = it is not known. Goes on
 * after a failure and returns the first.
 */
int endpoint_setup_remove(const char *directory, const char *link, struct aq_error *err);

/* True if the directory's namespace is there. */
bool endpoint_setup_has_namespace(const char *directory);

/* Write a file that may be mounted in a container: in place. */
int endpoint_setup_rewrite(const char *path, const char *text, struct aq_error *err);

#endif
