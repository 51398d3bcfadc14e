/* candidates.c - the agents that a session could go to, and how good each is */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/state_private.h"

struct ranked {
    uint32_t node;
    int64_t rank;
};

struct ranking {
    struct cluster *c;
    struct request *req;
    const struct selector *selector;
};

static int compare_ranked(const void *x, const void *y, void *data)
{
    const struct ranked *a = x, *b = y;
    const struct ranking *r = data;
    const struct node *m = &r->c->nodes[a->node], *n = &r->c->nodes[b->node];
    int order;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    order = select_compare(r->c, r->req, r->selector, m->state, n->state);
    return order ? order : strcmp(m->id, n->id);
}

static int find_all(const struct ranking *r, const struct wish *wish, struct ranked *all,
                    size_t *ret_count)
{
    for (uint32_t n = 0; n < r->c->node_count; n++) {
        const struct fit *fit;
        int64_t rank = 0;

        if (!r->c->nodes[n].id || (wish && !wish_allows(wish, n, &rank)))
            continue;
        if (!(fit = cluster_fit(r->c, r->req, r->c->nodes[n].state, r->selector)))
            return -ENOMEM;
        if (fit->has_room)
            all[(*ret_count)++] = (struct ranked){ n, rank };
    }
    return 0;
}

int sched_candidates(struct sched *s, uint32_t handle, size_t index, struct sched_score *ret,
                     size_t max)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct entry *e = &s->entries[handle];
    struct ranking r = { &s->cluster, e->reqs[index], &s->options.selector };
    struct ranked *all = arena_array(&arena, s->cluster.node_count + 1, sizeof(*all));
    size_t count = 0;
    int error;
    const struct wish *wish = entry_wish(s, e, &arena, &error);

    if (!all || error < 0 || find_all(&r, wish, all, &count) < 0)
        return -ENOMEM;
    qsort_r(all, count, sizeof(*all), compare_ranked, &r);
    count = AQ_MIN(count, max);
    for (size_t i = 0; i < count; i++) {
        const struct node *n = &s->cluster.nodes[all[i].node];

        ret[i].agent_id = n->id;
        ret[i].score = r.selector->ops->score ? r.req->fits[n->state].score : (double)(i + 1);
    }
    return (int)count;
}
