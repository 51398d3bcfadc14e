/* SPDX-License-Identifier: Apache-2.0 */
/* explain_network.c - which agents a session of several kernels cannot use together */
#include "sched/gang.h"
#include "sched/reach.h"

#define LINES_MAX 8

struct network_lines {
    struct sched *s;
    const struct sched_entry *e;
    struct strbuf *text;
    uint32_t count; /* lines that apply, those left out included */
};

static bool explain_has_room(const struct network_lines *l, uint32_t node)
{
    struct cluster *c = &l->s->cluster;

    for (uint32_t q = 0; q < l->e->req_count; q++)
        if (cluster_fit(c, l->e->reqs[q], c->nodes[node].state, &l->s->options.selector)->has_room)
            return true;
    return false;
}

static void explain_pair(struct network_lines *l, uint32_t a, uint32_t b)
{
    const struct cluster_node *x = &l->s->cluster.nodes[a], *y = &l->s->cluster.nodes[b];

    if (!x->network || !y->network || reach_is_connected(&l->s->cluster, a, b)
        || ++l->count > LINES_MAX)
        return;
    strbuf_addf(l->text, "\n- agents %s and %s ", x->id, y->id);
    if (x->network == y->network)
        strbuf_adds(l->text, "cannot reach each other over the network between nodes");
    else
        strbuf_addf(l->text, "have different networks between nodes (%s and %s)",
                    l->s->cluster.networks[x->network - 1], l->s->cluster.networks[y->network - 1]);
}

void explain_network(struct sched *s, const struct sched_entry *e, struct strbuf *text)
{
    struct network_lines l = { s, e, text, 0 };
    const struct cluster *c = &s->cluster;

    strbuf_adds(text,
                "There is room for each of its kernels, but not on agents that all reach each "
                "other over the network between nodes:");
    for (uint32_t n = 0; n < c->node_count; n++) {
        if (!explain_has_room(&l, n))
            continue;
        if (!c->nodes[n].network && ++l.count <= LINES_MAX)
            strbuf_addf(text, "\n- agent %s has no network between nodes (see agent info)",
                        c->nodes[n].id);
        for (uint32_t other = 0; other < n; other++)
            if (explain_has_room(&l, other))
                explain_pair(&l, other, n);
    }
    if (l.count > LINES_MAX)
        strbuf_addf(text, "\n- and %u more", l.count - LINES_MAX);
}
