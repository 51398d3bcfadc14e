/* select.c - which of the agents that have room
 *
 * The best agent is the one that 'compare' of the selector prefers over a
 * list of columns: first how many slots the agent has free that the request
 * does not want (a GPU node should not be filled with work that needs none),
 * then what is left of each slot that the request names: those of the
 * configured device names first, then by name. The last word has the id.
 */
#include <errno.h>
#include <string.h>

#include "sched/pass.h"

static int compare_rows(const struct sched_candidate *a, const struct sched_candidate *b, int sign,
                        int64_t absent)
{
    if (a->unutilized != b->unutilized)
        return a->unutilized < b->unutilized ? -1 : 1;
    for (size_t i = 0; i < a->count; i++) {
        int64_t x = a->free[i] == SCHED_ABSENT ? absent : a->free[i];
        int64_t y = b->free[i] == SCHED_ABSENT ? absent : b->free[i];

        if (x != y)
            return x < y ? -sign : sign;
    }
    return 0;
}

/* The least that is left, so that large requests still find whole agents. */
static int compare_concentrated(const struct sched_candidate *a, const struct sched_candidate *b)
{
    return compare_rows(a, b, 1, INT64_MAX);
}

/* The most that is left. */
static int compare_dispersed(const struct sched_candidate *a, const struct sched_candidate *b)
{
    return compare_rows(a, b, -1, INT64_MIN);
}

const struct selector_ops sched_concentrated = { "concentrated", compare_concentrated };
const struct selector_ops sched_dispersed = { "dispersed", compare_dispersed };

const struct selector_ops *sched_find_selector(const char *name)
{
    static const struct selector_ops *const all[] = { &sched_concentrated, &sched_dispersed };

    for (size_t i = 0; i < AQ_COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

/* "cuda" has "cuda", "cuda.shares" and "cuda.device:10g-mig". */
static bool is_of_device(const char *slot_name, const char *device)
{
    size_t len = strlen(device);

    return strncmp(slot_name, device, len) == 0 && (slot_name[len] == '\0' || slot_name[len] == '.');
}

/* Columns in the order in which they are compared; returns how many. */
static size_t order_columns(const struct pass *pass, const struct requirement *req, size_t *order,
                            bool *taken)
{
    size_t count = 0;

    memset(taken, 0, pass->columns * sizeof(*taken));
    for (size_t p = 0; p < pass->snap->slot_priority_count; p++)
        for (size_t c = 0; c < pass->columns; c++)
            if (req->named[c] && !taken[c] &&
                is_of_device(pass->names[c], pass->snap->slot_priority[p])) {
                order[count++] = c;
                taken[c] = true;
            }
    for (size_t c = 0; c < pass->columns; c++)
        if (req->named[c] && !taken[c])
            order[count++] = c;
    return count;
}

static bool has_room(const struct pass *pass, uint32_t agent, const struct requirement *req)
{
    const struct sched_agent *a = &pass->snap->agents[agent];
    const int64_t *row = &pass->free[agent * pass->columns];

    if (a->kernels_max && pass->kernels[agent] + req->kernels > a->kernels_max)
        return false;
    for (size_t c = 0; c < pass->columns; c++)
        if (req->amounts[c] > 0 && row[c] < req->amounts[c])
            return false;
    return true;
}

/* Counted in the snapshot: what this pass took does not make an agent seem
 * better used.
 */
static int count_unutilized(const struct pass *pass, uint32_t agent, const struct requirement *req)
{
    const struct slots *free = pass->snap->agents[agent].free;
    int count = 0;

    for (size_t i = 0, c = 0; i < free->count; i++) {
        while (c < pass->columns && pass->names[c] != free->items[i].name)
            c++;
        count += c < pass->columns && free->items[i].amount > 0 && req->amounts[c] == 0;
    }
    return count;
}

static void fill_candidate(const struct pass *pass, uint32_t agent, const struct requirement *req,
                           const size_t *order, size_t count, int64_t *values,
                           struct sched_candidate *ret)
{
    for (size_t i = 0; i < count; i++)
        values[i] = pass->free[agent * pass->columns + order[i]];
    *ret = (struct sched_candidate){
        .agent_id = pass->snap->agents[agent].id,
        .unutilized = count_unutilized(pass, agent, req),
        .free = values,
        .count = count,
    };
}

bool agent_matches(const struct sched_agent *agent, const struct sched_session *s)
{
    return !s->architecture || !agent->architecture ||
           strcmp(agent->architecture, s->architecture) == 0;
}

/* Has 's' failed on this agent? Then any other is better. */
static bool is_avoided(const struct pass *pass, uint32_t agent, const struct sched_session *s)
{
    return s->failed_agent && strcmp(pass->snap->agents[agent].id, s->failed_agent) == 0;
}

int pass_select(const struct pass *pass, const struct sched_session *s,
                const struct requirement *req, uint32_t *ret_agent, size_t *ret_seen)
{
    size_t *order = arena_array(pass->arena, pass->columns, sizeof(*order));
    bool *taken = arena_array(pass->arena, pass->columns, sizeof(*taken));
    int64_t *values = arena_array(pass->arena, pass->columns, sizeof(*values));
    int64_t *best_values = arena_array(pass->arena, pass->columns, sizeof(*best_values));
    struct sched_candidate best = { 0 };
    uint32_t chosen = UINT32_MAX;
    size_t count;

    if (!order || !taken || !values || !best_values)
        return -ENOMEM;
    count = order_columns(pass, req, order, taken);
    *ret_seen = 0;
    for (uint32_t a = 0; a < pass->snap->agent_count; a++) {
        struct sched_candidate c;
        int order_now;

        if (!agent_matches(&pass->snap->agents[a], s))
            continue;
        (*ret_seen)++;
        if (req->unknown || !has_room(pass, a, req))
            continue;
        fill_candidate(pass, a, req, order, count, values, &c);
        order_now = chosen == UINT32_MAX ? -1 : (int)is_avoided(pass, a, s) -
                                                     (int)is_avoided(pass, chosen, s);
        if (order_now == 0)
            order_now = pass->snap->selector->compare(&c, &best);
        if (order_now < 0 || (order_now == 0 && strcmp(c.agent_id, best.agent_id) < 0)) {
            int64_t *spare = best_values;

            best = c;
            best_values = values;
            values = spare;
            chosen = a;
        }
    }
    *ret_agent = chosen;
    return 0;
}
