/* SPDX-License-Identifier: Apache-2.0 */
/* candidates.c - the candidate agents of a placement, as they were then, as JSON
 *
 * Noted right before an agent is held, while scores and amounts are those
 * that the selector saw. Agents with equal contents are one candidate. Where a
 * plug-in or whose turn it is has the last word, nobody is better than another:
 * the chosen one comes first, then the others by id.
 */
#include <math.h>
#include <string.h>

#include "base/jsonw.h"
#include "sched/scheduler_internal.h"

#define CHOICES_MAX 16
#define LEFT_MAX 8

struct candidates {
    struct sched *s;
    struct slot_request *req;
    uint32_t chosen;                /* node */
    uint32_t best[CHOICES_MAX + 1]; /* states, the best first */
    uint32_t count, max;
    size_t with_room, without; /* agents */
};

static bool candidates_are_ranked(const struct candidates *c)
{
    return !c->s->options.selector.ops->pick;
}

static bool candidates_is_better(const struct candidates *c, uint32_t a, uint32_t b)
{
    const struct cluster *cluster = &c->s->cluster;
    uint32_t chosen = cluster->nodes[c->chosen].state;
    int order = candidates_are_ranked(c)
                    ? select_compare(cluster, c->req, &c->s->options.selector, a, b)
                    : (b == chosen) - (a == chosen);

    if (order == 0)
        order = strcmp(cluster->nodes[cluster->states[a].members[0]].id,
                       cluster->nodes[cluster->states[b].members[0]].id);
    return order < 0;
}

static void candidates_insert(struct candidates *c, uint32_t state)
{
    uint32_t at = c->count;

    if (c->count == c->max) {
        if (!candidates_is_better(c, state, c->best[--at]))
            return;
    } else {
        c->count++;
    }
    for (; at > 0 && candidates_is_better(c, state, c->best[at - 1]); at--)
        c->best[at] = c->best[at - 1];
    c->best[at] = state;
}

/* A score that is only a bound belongs to nobody who could have been chosen. */
static void candidates_collect(struct candidates *c)
{
    const struct cluster *cluster = &c->s->cluster;
    uint32_t state = cluster->nodes[c->chosen].state;
    size_t lead = cluster_lead_column(cluster, c->req);
    const int64_t *free = cluster_free(cluster, lead);
    bool has_chosen = false;

    for (uint32_t i = 0; i < cluster->state_count; i++) {
        const struct node_state *s = &cluster->states[i];
        const struct fit *fit;

        if (free[i] < c->req->amounts[lead]) {
            c->without += s->member_count;
            continue;
        }
        fit = cluster_fit_bound(cluster, c->req, i, &c->s->options.selector);
        *(fit->has_room ? &c->with_room : &c->without) += s->member_count;
        if (fit->has_room && !fit->is_bound)
            candidates_insert(c, i);
    }
    for (uint32_t i = 0; i < c->count; i++)
        has_chosen |= c->best[i] == state;
    if (!has_chosen) /* another rule than the selector's preferred it */
        c->best[c->count++] = state;
}

static void candidates_write_free(const struct candidates *c, const struct node_state *s,
                                  struct jsonw *w)
{
    const struct cluster *cluster = &c->s->cluster;
    char buf[AMOUNT_TEXT_MAX];

    jsonw_key(w, "free");
    jsonw_object_begin(w);
    for (size_t i = 0; i < AQ_MIN((size_t)c->req->order_count, (size_t)LEFT_MAX); i++) {
        size_t column = c->req->order[i];
        if (column < cluster->columns && s->free[column] != SCHED_ABSENT)
            jsonw_member_str(w, cluster->names[column],
                             slot_amount_format(s->free[column], c->s->column_types[column], buf));
    }
    jsonw_object_end(w);
}

static void candidates_write_one(const struct candidates *c, uint32_t state, struct jsonw *w)
{
    const struct cluster *cluster = &c->s->cluster;
    const struct node_state *s = &cluster->states[state];
    const struct selector_ops *ops = c->s->options.selector.ops;
    bool is_chosen = cluster->nodes[c->chosen].state == state;

    jsonw_object_begin(w);
    jsonw_member_str(w, "agent", cluster->nodes[is_chosen ? c->chosen : s->members[0]].id);
    jsonw_member_int(w, "equal", s->member_count);
    jsonw_key(w, "score");
    if (ops->score && isfinite(c->req->fits[state].score) && !c->req->fits[state].is_bound)
        jsonw_double(w, c->req->fits[state].score);
    else
        jsonw_null(w);
    candidates_write_free(c, s, w);
    jsonw_member_bool(w, "chosen", is_chosen);
    jsonw_object_end(w);
}

void candidates_note(struct sched *s, const struct sched_entry *e, uint32_t q, uint32_t node)
{
    struct candidates c = { .s = s,
                            .req = e->reqs[q],
                            .chosen = node,
                            .max = AQ_MIN(s->options.choices_max, (uint32_t)CHOICES_MAX) };
    struct jsonw w = jsonw_make(&s->choices);

    if (!c.max)
        return;
    if (q == 0)
        strbuf_clear(&s->choices);
    candidates_collect(&c);
    strbuf_addc(&s->choices, q ? ',' : '[');
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "selection", s->options.selector.ops->name);
    jsonw_member_int(&w, "with_room", (int64_t)c.with_room);
    jsonw_member_int(&w, "without_room", (int64_t)c.without);
    jsonw_member_bool(&w, "ranked", candidates_are_ranked(&c));
    jsonw_key(&w, "best");
    jsonw_array_begin(&w);
    for (uint32_t i = 0; i < c.count; i++)
        candidates_write_one(&c, c.best[i], &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    if (q + 1 == e->req_count)
        strbuf_addc(&s->choices, ']');
}
