/* SPDX-License-Identifier: Apache-2.0 */
/* net_directory.h - this agent's directory below RUN/net, and its subnet of the pool
 *
 * Several agents may share a machine and a pool. Under the lock of RUN/net
 * each takes a subnet that no other directory has; what agents left that are
 * neither alive nor have networks open is cleared on the way.
 */
#ifndef AQ_AGENT_NET_NET_DIRECTORY_H
#define AQ_AGENT_NET_NET_DIRECTORY_H

#include "agent/net/pool.h"
#include "agent/net/nft_rules.h"

#define NET_DIRECTORY_PATH_MAX 192
#define NET_DIRECTORY_SUBNET_BITS 22 /* 1021 kernels; a smaller pool is one subnet */

struct net_directory {
    int all, own;                      /* directories RUN/net and RUN/net/TAG */
    int lock;                          /* held for life */
    char path[NET_DIRECTORY_PATH_MAX]; /* RUN/net/TAG */
    char tag[NFT_RULES_TAG_MAX];
    struct range subnet;
};

#define NET_DIRECTORY_CLOSED             \
    {                                    \
        .all = -1, .own = -1, .lock = -1 \
    }

/* -EBUSY if an agent of this identity is alive, -ENOSPC if no subnet is free.
 * Commands that remove the tables of cleared agents are appended to 'nft'.
 */
int net_directory_open(const char *run_dir, const char *identity, const struct range *pool,
                       struct net_directory *ret, struct strbuf *nft, struct aq_error *err);

/* Remove the directory, which must have no endpoints, and say whether it was the
 * last of all agents'.
 */
bool net_directory_remove(struct net_directory *directory);
void net_directory_close(struct net_directory *directory);

/* Call 'fn' with the name of each directory in the agent's: an endpoint. */
int net_directory_each(const struct net_directory *directory,
                       void (*fn)(void *data, const char *name), void *data);

#endif
