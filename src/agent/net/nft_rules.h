/* SPDX-License-Identifier: Apache-2.0 */
/* nft_rules.h - the text of our nftables table
 *
 * Pure. What never changes is in nft_rules_table(), what does in its sets, which
 * nft_rules_sets() replaces as a whole in one transaction.
 */
#ifndef AQ_AGENT_NET_NFT_RULES_H
#define AQ_AGENT_NET_NFT_RULES_H

#include <net/if.h>

#include "agent/net/pool.h"
#include "base/strbuf.h"

#define NFT_RULES_TAG_MAX 7 /* 6 hex digits */
#define NFT_RULES_GUARDED_MAX 16

struct nft_rules_table {
    char tag[NFT_RULES_TAG_MAX];
    struct range subnet; /* of this agent's kernels */
    /* Interfaces whose forwarding was switched on for us: what the node would
     * not have passed on before, it still does not.
     */
    char guarded[NFT_RULES_GUARDED_MAX][IF_NAMESIZE];
    size_t guarded_count;
    int64_t connections_max;         /* of one kernel at a time; 0 = no limit */
    uint32_t pull_group;             /* processes of this group fetch images */
    uint16_t tunnel_min, tunnel_max; /* UDP: no kernel sends to these ports; 0 = none */
};

/* "ADDRESS[/BITS][:PORT]"; port 0 = all. */
struct nft_rules_target {
    struct range range;
    uint16_t port;
};

struct nft_rules_published {
    uint16_t outside, inside;
    uint32_t address;
};

struct nft_rules_peers {
    uint32_t a, b; /* may talk both ways */
};

struct nft_rules_sets {
    const uint32_t *dns;
    size_t dns_count;
    const struct range *denied;
    size_t denied_count;
    const struct nft_rules_target *allowed;
    size_t allowed_count;
    const struct nft_rules_target *registries; /* reached in spite of what is denied */
    size_t registries_count;
    const struct nft_rules_published *published;
    size_t published_count;
    const struct nft_rules_peers *peers;
    size_t peers_count;
};

int nft_rules_parse_target(const char *text, struct nft_rules_target *ret, struct aq_error *err);

/* Rebuild the table; with the sets following in one transaction. What is
 * published comes last: of two texts, one of which begins with the other, the
 * rest adds what is missing.
 */
void nft_rules_add_table(struct strbuf *out, const struct nft_rules_table *table);
void nft_rules_add_sets(struct strbuf *out, const char *tag, const struct nft_rules_sets *sets);
/* The table of a kernel's own namespace, whose interface is 'link': packets to
 * its ports that no socket waits for go to the same port of loopback.
 */
void nft_rules_add_loopback(struct strbuf *out, const char *link, const uint16_t *ports,
                            size_t count);

/* The table of a kernel's own namespace that answers, and begins nothing. */
extern const char nft_rules_closed[];

/* Remove it, whether it is there or not. */
void nft_rules_add_removal(struct strbuf *out, const char *tag);

#endif
