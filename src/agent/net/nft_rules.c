/* SPDX-License-Identifier: Apache-2.0 */
/* nft_rules.c - the text of our nftables table */
#include "agent/net/nft_rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int nft_rules_parse_target(const char *text, struct nft_rules_target *ret, struct aq_error *err)
{
    const char *colon = strchr(text, ':');
    char range[RANGE_TEXT_MAX] = "";
    struct nft_rules_target target = { .port = 0 };
    char *end = NULL;
    int r;

    if (colon) {
        unsigned long port = strtoul(colon + 1, &end, 10);

        if (colon[1] < '0' || colon[1] > '9' || *end || port == 0 || port > UINT16_MAX)
            return aq_fail(err, EINVAL, "'%s': the port must be 1 to 65535", text);
        target.port = (uint16_t)port;
    }
    (void)snprintf(range, sizeof(range), "%.*s",
                   (int)(colon ? (size_t)(colon - text) : strlen(text)), text);
    r = range_parse(range, &target.range, err);
    if (r == 0)
        *ret = target;
    return r;
}

void nft_rules_add_removal(struct strbuf *out, const char *tag)
{
    strbuf_addf(out, "table inet aliquot_%s\ndelete table inet aliquot_%s\n", tag, tag);
}

/* A jump to where packets of other interfaces, which the node would not have
 * forwarded without us, end.
 */
static void nft_rules_add_guard(struct strbuf *out, const struct nft_rules_table *table)
{
    if (!table->guarded_count)
        return;
    strbuf_adds(out, "    iifname { ");
    for (size_t i = 0; i < table->guarded_count; i++)
        strbuf_addf(out, "%s\"%s\"", i ? ", " : "", table->guarded[i]);
    strbuf_adds(out, " } ct state { new, invalid, untracked } ct status & dnat != dnat drop\n");
}

static void nft_rules_write_sets(struct strbuf *out)
{
    strbuf_adds(out, "  set dns { type ipv4_addr; }\n"
                     "  set denied { type ipv4_addr; flags interval; auto-merge; }\n"
                     "  set allowed { type ipv4_addr; flags interval; auto-merge; }\n"
                     "  set allowed_ports { type ipv4_addr . inet_service; flags interval; }\n"
                     "  set registries { type ipv4_addr . inet_service; }\n"
                     "  set connections { type ipv4_addr; size 65535; flags dynamic; }\n"
                     "  set mates { type ipv4_addr . ipv4_addr; }\n"
                     "  map published { type inet_service : ipv4_addr . inet_service; }\n");
}

/* What the node remembers of connections is one table for all: none fills it alone. Both
 * ways count, for a kernel may have helpers outside.
 */
static void nft_rules_add_count(struct strbuf *out, const struct nft_rules_table *table,
                                const char *which, const char *otherwise)
{
    if (table->connections_max)
        strbuf_addf(out,
                    "    ct state new add @connections { ip %s ct count over %" PRId64 " } %s\n",
                    which, table->connections_max, otherwise);
}

/* The user who names an image decides where its registry's name, redirects and token servers
 * lead. Rules see the address that is connected to, whatever a name server says first.
 */
static void nft_rules_add_pulls(struct strbuf *out, const struct nft_rules_table *table)
{
    strbuf_addf(out,
                "  chain of_node {\n"
                "    type filter hook output priority filter; policy accept;\n"
                "    meta skgid %" PRIu32 " goto pulls\n"
                "  }\n"
                "  chain pulls {\n"
                "    ct state established,related accept\n"
                "    meta l4proto { tcp, udp } th dport 53 accept\n"
                "    meta l4proto tcp ip daddr . tcp dport @registries accept\n"
                "    ip daddr @allowed accept\n"
                "    meta l4proto { tcp, udp } ip daddr . th dport @allowed_ports accept\n"
                "    ip daddr @denied reject with icmpx type admin-prohibited\n"
                "    ip6 daddr fe80::/10 reject with icmpx type admin-prohibited\n"
                "    fib daddr type local reject with icmpx type admin-prohibited\n"
                "  }\n",
                table->pull_group);
}

/* Other nodes take what comes from this one's address as the agent's, and VXLAN has no other proof
 * of who sent a packet: a kernel that wrote one itself would be in the network of any session.
 */
static void nft_rules_add_tunnel(struct strbuf *out, const struct nft_rules_table *table)
{
    if (table->tunnel_min)
        strbuf_addf(
            out, "    oifname != \"aq*\" udp dport %u-%u reject with icmpx type admin-prohibited\n",
            table->tunnel_min, table->tunnel_max);
}

static void nft_rules_add_filters(struct strbuf *out, const struct nft_rules_table *table)
{
    const char *tag = table->tag;

    /* what claims to come from elsewhere, or another family, goes nowhere */
    strbuf_addf(out,
                "  chain source {\n"
                "    type filter hook prerouting priority raw; policy accept;\n"
                "    iifname \"aq%s-*\" meta nfproto ipv6 drop\n"
                "    iifname \"aq%s-*\" fib saddr . iif oif missing drop\n"
                "  }\n",
                tag, tag);
    strbuf_addf(out,
                "  chain to_node {\n"
                "    type filter hook input priority filter; policy accept;\n"
                "    iifname \"aq%s-*\" goto kernels_to_node\n"
                "  }\n"
                "  chain kernels_to_node {\n"
                "    ct state established,related accept\n",
                tag);
    nft_rules_add_count(out, table, "saddr", "drop");
    strbuf_adds(out, "    ip daddr @dns meta l4proto { tcp, udp } th dport 53 accept\n"
                     "    reject with icmpx type admin-prohibited\n"
                     "  }\n");
    strbuf_addf(out,
                "  chain through {\n"
                "    type filter hook forward priority filter; policy accept;\n"
                "    iifname \"aq%s-*\" goto out_of_kernels\n"
                "    oifname \"aq%s-*\" goto into_kernels\n",
                tag, tag);
    nft_rules_add_guard(out, table);
    strbuf_addf(out, "  }\n"
                     "  chain out_of_kernels {\n");
    nft_rules_add_tunnel(out, table);
    strbuf_adds(out, "    ct state established,related accept\n");
    nft_rules_add_count(out, table, "saddr", "reject with icmpx type admin-prohibited");
    strbuf_addf(out,
                "    oifname \"aq%s-*\" ip saddr . ip daddr @mates accept\n"
                "    oifname \"aq*\" reject with icmpx type admin-prohibited\n"
                "    ip daddr @dns meta l4proto { tcp, udp } th dport 53 accept\n"
                "    ip daddr @allowed accept\n"
                "    meta l4proto { tcp, udp } ip daddr . th dport @allowed_ports accept\n"
                "    ip daddr @denied reject with icmpx type admin-prohibited\n"
                "    accept\n"
                "  }\n",
                tag);
    strbuf_adds(out, "  chain into_kernels {\n"
                     "    ct state established,related accept\n"
                     "    iifname \"aq*\" drop\n");
    nft_rules_add_count(out, table, "daddr", "drop");
    strbuf_adds(out, "    ct status dnat accept\n"
                     "    drop\n"
                     "  }\n");
}

static void nft_rules_add_translation(struct strbuf *out, const struct nft_rules_table *table)
{
    char slice[RANGE_TEXT_MAX];

    (void)range_format(&table->subnet, slice);
    strbuf_addf(out,
                "  chain publish {\n"
                "    type nat hook prerouting priority dstnat; policy accept;\n"
                "    fib daddr type local meta l4proto tcp "
                "dnat ip to tcp dport map @published\n"
                "  }\n"
                "  chain publish_here {\n"
                "    type nat hook output priority -100; policy accept;\n"
                "    fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto tcp "
                "dnat ip to tcp dport map @published\n"
                "  }\n"
                "  chain outward {\n"
                "    type nat hook postrouting priority srcnat; policy accept;\n"
                "    ip saddr %s oifname != \"aq*\" masquerade\n"
                "  }\n",
                slice);
}

void nft_rules_add_table(struct strbuf *out, const struct nft_rules_table *table)
{
    nft_rules_add_removal(out, table->tag);
    strbuf_addf(out, "table inet aliquot_%s {\n", table->tag);
    nft_rules_write_sets(out);
    nft_rules_add_filters(out, table);
    nft_rules_add_pulls(out, table);
    nft_rules_add_translation(out, table);
    strbuf_adds(out, "}\n");
}

/* A socket at any address or at the interface's, of a listener or of a
 * connection, is what "wildcard" can be said of; without one the rule ends.
 */
void nft_rules_add_loopback(struct strbuf *out, const char *link, const uint16_t *ports,
                            size_t count)
{
    strbuf_addf(out,
                "table ip aliquot {\n"
                "  chain to_loopback {\n"
                "    socket wildcard { 0, 1 } return\n"
                "    dnat to 127.0.0.1\n"
                "  }\n"
                "  chain services {\n"
                "    type nat hook prerouting priority dstnat; policy accept;\n"
                "    iifname \"%s\" tcp dport { ",
                link);
    for (size_t i = 0; i < count; i++)
        strbuf_addf(out, "%s%u", i ? ", " : "", ports[i]);
    strbuf_adds(out, " } goto to_loopback\n"
                     "  }\n"
                     "}\n");
}

const char nft_rules_closed[] = "table inet aliquot_closed {\n"
                                "  chain out {\n"
                                "    type filter hook output priority filter; policy accept;\n"
                                "    oifname \"lo\" accept\n"
                                "    ct state established,related accept\n"
                                "    reject with icmpx type admin-prohibited\n"
                                "  }\n"
                                "}\n";

/* ---- what changes ---- */

static void nft_rules_begin(struct strbuf *out, const char *tag, const char *kind, const char *name)
{
    strbuf_addf(out, "flush %s inet aliquot_%s %s\n", kind, tag, name);
}

static void nft_rules_add_element(struct strbuf *out, const char *tag, const char *name,
                                  const char *value)
{
    strbuf_addf(out, "add element inet aliquot_%s %s { %s }\n", tag, name, value);
}

static void nft_rules_add_dns(struct strbuf *out, const char *tag,
                              const struct nft_rules_sets *sets)
{
    char address[INET_ADDRSTRLEN];

    nft_rules_begin(out, tag, "set", "dns");
    for (size_t i = 0; i < sets->dns_count; i++)
        nft_rules_add_element(out, tag, "dns", cluster_address_format(sets->dns[i], address));
}

static void nft_rules_add_targets(struct strbuf *out, const char *tag,
                                  const struct nft_rules_sets *sets)
{
    char text[RANGE_TEXT_MAX], with_port[RANGE_TEXT_MAX + 8];

    nft_rules_begin(out, tag, "set", "denied");
    for (size_t i = 0; i < sets->denied_count; i++)
        nft_rules_add_element(out, tag, "denied", range_format(&sets->denied[i], text));
    nft_rules_begin(out, tag, "set", "allowed");
    nft_rules_begin(out, tag, "set", "allowed_ports");
    for (size_t i = 0; i < sets->allowed_count; i++) {
        const struct nft_rules_target *target = &sets->allowed[i];

        (void)range_format(&target->range, text);
        (void)snprintf(with_port, sizeof(with_port), "%s . %u", text, target->port);
        if (target->port)
            nft_rules_add_element(out, tag, "allowed_ports", with_port);
        else
            nft_rules_add_element(out, tag, "allowed", text);
    }
}

static void nft_rules_add_registries(struct strbuf *out, const char *tag,
                                     const struct nft_rules_sets *sets)
{
    char address[INET_ADDRSTRLEN];

    nft_rules_begin(out, tag, "set", "registries");
    for (size_t i = 0; i < sets->registries_count; i++)
        strbuf_addf(out, "add element inet aliquot_%s registries { %s . %u }\n", tag,
                    cluster_address_format(sets->registries[i].range.first, address),
                    sets->registries[i].port);
}

static void nft_rules_add_peers(struct strbuf *out, const char *tag,
                                const struct nft_rules_sets *sets)
{
    char a[INET_ADDRSTRLEN], b[INET_ADDRSTRLEN];

    nft_rules_begin(out, tag, "set", "mates");
    for (size_t i = 0; i < sets->peers_count; i++) {
        (void)cluster_address_format(sets->peers[i].a, a);
        (void)cluster_address_format(sets->peers[i].b, b);
        strbuf_addf(out, "add element inet aliquot_%s mates { %s . %s, %s . %s }\n", tag, a, b, b,
                    a);
    }
}

static void nft_rules_add_published(struct strbuf *out, const char *tag,
                                    const struct nft_rules_sets *sets)
{
    char address[INET_ADDRSTRLEN];

    nft_rules_begin(out, tag, "map", "published");
    for (size_t i = 0; i < sets->published_count; i++) {
        const struct nft_rules_published *p = &sets->published[i];

        strbuf_addf(out, "add element inet aliquot_%s published { %u : %s . %u }\n", tag,
                    p->outside, cluster_address_format(p->address, address), p->inside);
    }
}

void nft_rules_add_sets(struct strbuf *out, const char *tag, const struct nft_rules_sets *sets)
{
    nft_rules_add_dns(out, tag, sets);
    nft_rules_add_targets(out, tag, sets);
    nft_rules_add_registries(out, tag, sets);
    nft_rules_add_peers(out, tag, sets);
    nft_rules_add_published(out, tag, sets);
}
