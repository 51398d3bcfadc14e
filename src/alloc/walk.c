/* The order in which devices are offered: a merge of groups, each of which is
 * sorted already, made device by device for as long as a plan wants more.
 */
#include "alloc/map_private.h"

/* Stable, as groups lie in the order of their first device. */
static void sort_groups(struct group **groups, size_t count,
                        bool (*before)(const struct group *, const struct group *, int64_t),
                        int64_t units)
{
    for (size_t i = 1; i < count; i++) {
        struct group *group = groups[i];
        size_t at = i;

        for (; at > 0 && before(group, groups[at - 1], units); at--)
            groups[at] = groups[at - 1];
        groups[at] = group;
    }
}

static bool is_less_used(const struct group *a, const struct group *b, int64_t units)
{
    (void)units;
    return a->allocated != b->allocated ? a->allocated < b->allocated : a->count > b->count;
}

static bool serves_all_or_is_less_used(const struct group *a, const struct group *b,
                                       int64_t units)
{
    if ((a->free >= units) != (b->free >= units))
        return a->free >= units;
    return is_less_used(a, b, units);
}

static bool is_less_used_or_lower(const struct group *a, const struct group *b, int64_t units)
{
    (void)units;
    return a->allocated != b->allocated ? a->allocated < b->allocated
                                        : a->numa_node < b->numa_node;
}

static bool is_hinted(const struct affinity_hint *hint, int numa_node)
{
    for (size_t i = 0; i < hint->count; i++)
        if (hint->nodes[i] == numa_node)
            return true;
    return false;
}

void alloc_walk_begin(struct walk *walk, struct alloc_map *map, const struct slot_state *slot,
                      const struct affinity_hint *hint, int64_t units)
{
    bool single = map->affinity == ALLOC_SINGLE_NODE;
    size_t rest = slot->group_count;

    *walk = (struct walk){ .map = map, .groups = map->walk_groups, .heads = map->walk_heads };
    walk->count = slot->group_count;
    for (size_t i = slot->group_count; i-- > 0;)
        if (hint->count && !is_hinted(hint, slot->groups[i].numa_node))
            walk->groups[--rest] = &slot->groups[i];
    for (size_t i = 0; i < slot->group_count; i++)
        if (!hint->count || is_hinted(hint, slot->groups[i].numa_node))
            walk->groups[walk->primary++] = &slot->groups[i];
    walk->in_turns = hint->count || !single;
    sort_groups(walk->groups, walk->primary,
                hint->count ? is_less_used_or_lower
                : single    ? serves_all_or_is_less_used
                            : is_less_used,
                units);
    alloc_walk_restrict(walk, 0, walk->count);
}

void alloc_walk_restrict(struct walk *walk, size_t first, size_t count)
{
    walk->groups = walk->map->walk_groups + first;
    walk->count = count;
    for (size_t i = 0; i < count; i++)
        walk->heads[i] = 0;
}

static struct device *head(const struct walk *walk, size_t i)
{
    const struct group *group = walk->groups[i];
    struct device *d;

    if (walk->heads[i] == group->count)
        return NULL;
    d = &walk->map->devices[group->order[walk->heads[i]]];
    return d->free > 0 ? d : NULL;
}

/* Does the head 'a' of group i come before the head 'b' of a later group j? */
static bool head_precedes(const struct walk *walk, size_t i, const struct device *a, size_t j,
                          const struct device *b)
{
    bool is_rest = i >= walk->primary;
    bool differs = is_rest != (j >= walk->primary); /* then 'a' is primary, 'b' rest */

    if ((walk->by_free || is_rest) && a->free != b->free)
        return a->free > b->free;
    if (differs)
        return true;
    if (is_rest)
        return a < b;
    return !walk->in_turns || walk->heads[i] <= walk->heads[j];
}

struct device *alloc_walk_next(struct walk *walk)
{
    struct device *best = NULL;
    size_t best_group = 0;

    for (size_t i = 0; i < walk->count; i++) {
        struct device *d = head(walk, i);

        if (d && (!best || !head_precedes(walk, best_group, best, i, d))) {
            best = d;
            best_group = i;
        }
    }
    if (best)
        walk->heads[best_group]++;
    return best;
}
