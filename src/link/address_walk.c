/* SPDX-License-Identifier: Apache-2.0 */
/* address_walk.c - see address_walk.h */
#include "link/address_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/memory.h"
#include "link/manager_list.h"

struct address_walk {
    char **given;
    size_t given_count;
    bool is_fixed;
    struct manager_list named;
    const char **order; /* of the round; borrowed of the above and 'first' */
    size_t count, next;
    char *first; /* NULL, or an address that is not among the others */
};

struct address_walk *address_walk_new(const char *const *addresses, size_t count, bool is_fixed)
{
    struct address_walk *walk = aq_alloc(sizeof(*walk));

    walk->is_fixed = is_fixed;
    manager_list_init(&walk->named);
    walk->given = aq_alloc_array(count + 1, sizeof(*walk->given));
    walk->given_count = count;
    for (size_t i = 0; i < count; i++)
        walk->given[i] = aq_strdup(addresses[i]);
    address_walk_begin(walk, NULL);
    return walk;
}

void address_walk_free(struct address_walk *walk)
{
    if (!walk)
        return;
    for (size_t i = 0; i < walk->given_count; i++)
        free(walk->given[i]);
    free(walk->given);
    manager_list_done(&walk->named);
    free(walk->order);
    free(walk->first);
    free(walk);
}

const struct msg_managers *address_walk_name(struct address_walk *walk,
                                             const struct link_manager *list, size_t count)
{
    struct aq_error err = { 0 };
    int r = manager_list_set(&walk->named, list, count, &err);

    if (r < 0)
        log_warning("link: the list of managers stays as it was: %s", err.text);
    if (r <= 0)
        return NULL;
    walk->next = walk->count = 0; /* the order borrowed the addresses that were named before */
    return &walk->named.msg.managers;
}

static void address_walk_add(struct address_walk *walk, const char *address)
{
    for (size_t i = 0; i < walk->count; i++)
        if (strcmp(walk->order[i], address) == 0)
            return;
    walk->order[walk->count++] = address;
}

void address_walk_begin(struct address_walk *walk, const char *first)
{
    const struct msg_managers *named = &walk->named.msg.managers;
    size_t named_count = walk->is_fixed ? 0 : named->manager_count;
    char *kept = first ? aq_strdup(first) : NULL; /* 'first' may be of the round that ends */
    size_t begin = 0;

    free(walk->first);
    free(walk->order);
    walk->first = kept;
    walk->order = aq_alloc_array(walk->given_count + named_count + 1, sizeof(*walk->order));
    walk->count = walk->next = 0;
    if (kept)
        address_walk_add(walk, kept);
    begin = walk->count;
    for (size_t i = 0; i < walk->given_count; i++)
        address_walk_add(walk, walk->given[i]);
    for (size_t i = 0; i < named_count; i++)
        address_walk_add(walk, named->managers[i].link);
    for (size_t i = walk->count; i > begin + 1; i--) {
        struct uuid random = uuid_random();
        size_t other = begin + (random.bytes[0] * 256u + random.bytes[1]) % (i - begin);
        const char *address = walk->order[i - 1];

        walk->order[i - 1] = walk->order[other];
        walk->order[other] = address;
    }
}

const char *address_walk_next(struct address_walk *walk)
{
    return walk->next < walk->count ? walk->order[walk->next++] : NULL;
}

size_t address_walk_count(const struct address_walk *walk)
{
    return walk->given_count + (walk->is_fixed ? 0 : walk->named.msg.managers.manager_count);
}
