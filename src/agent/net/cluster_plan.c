/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_plan.c - the texts of a plan: rules and the configuration of WireGuard */
#include "agent/net/cluster_plan.h"

const char *cluster_plan_mode_name(enum cluster_mode mode)
{
    static const char *const names[] = { "none", "wireguard", "wireguard-go", "vxlan" };

    return names[mode];
}

static void cluster_plan_add_sessions(const struct cluster_plan *plan, struct strbuf *out)
{
    char text[RANGE_TEXT_MAX];

    strbuf_adds(out, "  set sessions { type ipv4_addr . ipv4_addr; flags interval;");
    for (size_t i = 0; i < plan->subnet_count; i++) {
        (void)range_format(&plan->subnets[i], text);
        strbuf_addf(out, "%s%s . %s", i ? ", " : " elements = { ", text, text);
    }
    strbuf_adds(out, plan->subnet_count ? " } }\n" : " }\n");
}

void cluster_plan_add_rules(const struct cluster_plan *plan, struct strbuf *out)
{
    strbuf_adds(out, "table inet aliquot_cluster\n"
                     "delete table inet aliquot_cluster\n"
                     "table inet aliquot_cluster {\n");
    cluster_plan_add_sessions(plan, out);
    /* a packet is dropped if its source address would not be routed back to where it came from */
    strbuf_adds(out,
                "  chain source {\n"
                "    type filter hook prerouting priority raw; policy accept;\n"
                "    fib saddr . iif oif missing drop\n"
                "  }\n"
                "  chain to_agent {\n"
                "    type filter hook input priority filter; policy drop;\n"
                "    iifname \"" CLUSTER_DEVICE "\" icmp type { echo-request, echo-reply } accept\n"
                "  }\n"
                "  chain from_agent {\n"
                "    type filter hook output priority filter; policy drop;\n"
                "    oifname \"" CLUSTER_DEVICE "\" icmp type { echo-request, echo-reply } accept\n"
                "    icmp type destination-unreachable accept\n"
                "  }\n"
                "  chain through {\n"
                "    type filter hook forward priority filter; policy drop;\n"
                "    iifname \"" CLUSTER_LINK_PREFIX "*\" ip saddr . ip daddr @sessions accept\n"
                "    iifname \"" CLUSTER_DEVICE "\" oifname \"" CLUSTER_LINK_PREFIX
                "*\" ip saddr . ip daddr @sessions accept\n"
                "  }\n"
                "}\n");
}

static void cluster_plan_add_peer(const struct cluster_peer *peer, struct strbuf *out)
{
    char text[INET_ADDRSTRLEN];
    const char *before = "";

    strbuf_addf(out, "\n[Peer]\nPublicKey = %s\nEndpoint = %s\nAllowedIPs = ", peer->key,
                peer->endpoint);
    if (peer->address) {
        strbuf_addf(out, "%s/32", cluster_address_format(peer->address, text));
        before = ", ";
    }
    for (size_t i = 0; i < peer->kernel_count; i++, before = ", ")
        strbuf_addf(out, "%s%s/32", before, cluster_address_format(peer->kernels[i], text));
    strbuf_addc(out, '\n');
}

void cluster_plan_add_wireguard(const struct cluster_plan *plan, struct strbuf *out)
{
    strbuf_addf(out, "[Interface]\nPrivateKey = %s\nListenPort = %u\n", plan->private_key,
                plan->port);
    for (size_t i = 0; i < plan->peer_count; i++)
        if (plan->peers[i].key)
            cluster_plan_add_peer(&plan->peers[i], out);
}

void cluster_plan_make_mac(const char *id, uint8_t ret[6])
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a: the same in every process */

    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * UINT64_C(1099511628211);
    ret[0] = 0x02; /* locally administered, one station */
    for (int i = 1; i < 6; i++, hash >>= 8)
        ret[i] = (uint8_t)hash;
}
