/* SPDX-License-Identifier: Apache-2.0 */
/* placement.c - see placement.h */
#include "k8s/plugin/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char *const kind_names[RESOURCE_KINDS] = { "memory", "compute" };

void placement_done(struct placement *placement)
{
    cards_done(&placement->cards);
}

/* The card and unit of an id, or NULL: it is none of ours. */
static struct card *placement_find(const struct placement *p, enum resource_kind kind,
                                   const char *id, uint32_t *ret_unit)
{
    size_t len;
    struct card *card = device_id_read(id, &len, ret_unit) ? cards_find(&p->cards, id, len) : NULL;

    return card && *ret_unit < card->units[kind] ? card : NULL;
}

enum resource_kind placement_other(enum resource_kind kind)
{
    return kind == RESOURCE_MEMORY ? RESOURCE_COMPUTE : RESOURCE_MEMORY;
}

uint32_t placement_units(const struct node_container *container, enum resource_kind kind)
{
    return kind == RESOURCE_MEMORY ? container->memory : container->compute;
}

/* The card that has the other resource of what may be the same container, or NULL. */
static const struct card *placement_partner(const struct placement *p, enum resource_kind kind,
                                            int64_t now_usec)
{
    if (!p->card[0] || p->kind == kind || now_usec - p->usec > PLACEMENT_PAIR_USEC)
        return NULL;
    return cards_find(&p->cards, p->card, strlen(p->card));
}

/* ---- what to prefer ---- */

static int placement_count(struct placement *p, enum resource_kind kind,
                           const struct placement_wish *wish, struct aq_error *err)
{
    for (size_t i = 0; i < p->cards.count; i++)
        p->cards.items[i].free[kind] = 0;
    for (size_t i = 0; i < wish->available_count; i++) {
        uint32_t unit;
        struct card *card = placement_find(p, kind, wish->available[i], &unit);

        if (!card)
            return aq_fail(err, EINVAL, "'%.80s' is no id of ours", wish->available[i]);
        card->free[kind] = AQ_MIN(card->free[kind] + 1, card->units[kind]);
    }
    return 0;
}

/* How well a card that has this resource does for a container. Room for the other one goes before
 * what an annotation says.
 */
static int placement_fit(const struct card *card, enum resource_kind kind,
                         const struct node_container *container)
{
    enum resource_kind other = placement_other(kind);
    bool has_room = card->free[other] >= placement_units(container, other);

    return 2 * has_room + (strcmp(container->card, card->id) == 0);
}

/* Is 'a' to be taken rather than 'b'? What is as good for the likeliest container is asked about
 * the next: so a card that does for all of them is found if there is one.
 */
static bool placement_is_better(const struct card *a, const struct card *b, enum resource_kind kind,
                                const struct placement_wish *wish, const struct card *partner)
{
    enum resource_kind other = placement_other(kind);

    for (size_t i = 0; i < wish->waiting_count; i++) {
        int fit_a = placement_fit(a, kind, wish->waiting[i]);
        int fit_b = placement_fit(b, kind, wish->waiting[i]);

        if (fit_a != fit_b)
            return fit_a > fit_b;
    }
    if (a == partner || b == partner)
        return a == partner;
    if (!a->free[other] != !b->free[other])
        return a->free[other] > 0;
    if (a->free[kind] != b->free[kind])
        return a->free[kind] < b->free[kind];
    return strcmp(a->id, b->id) < 0;
}

/* The card on which a container already has ids that it is to keep; *ret stays if it has none. */
static int placement_kept(const struct placement *p, enum resource_kind kind,
                          const struct placement_wish *wish, const struct card **ret,
                          struct aq_error *err)
{
    for (size_t i = 0; i < wish->must_count; i++) {
        uint32_t unit;
        const struct card *card = placement_find(p, kind, wish->must[i], &unit);

        if (!card)
            return aq_fail(err, EINVAL, "'%.80s' is no id of ours", wish->must[i]);
        if (*ret && *ret != card)
            return aq_fail(err, ENOSPC,
                           "what containers before it leave to this one is on two cards, %s and %s",
                           (*ret)->id, card->id);
        *ret = card;
    }
    return 0;
}

static const struct card *placement_choose(const struct placement *p, enum resource_kind kind,
                                           const struct placement_wish *wish, int64_t now_usec)
{
    const struct card *partner = placement_partner(p, kind, now_usec), *best = NULL;

    if (wish->partner && (partner = cards_find(&p->cards, wish->partner, strlen(wish->partner))))
        return partner;
    for (size_t i = 0; i < p->cards.count; i++) {
        const struct card *card = &p->cards.items[i];

        if (card->is_healthy && card->free[kind] >= (uint32_t)wish->size
            && (!best || placement_is_better(card, best, kind, wish, partner)))
            best = card;
    }
    return best;
}

/* 'size' ids of the card: those to keep, then by number. False if there are not as many. */
static bool placement_take(const struct placement *p, enum resource_kind kind,
                           const struct placement_wish *wish, const struct card *card, char **units,
                           char **ret)
{
    size_t count = 0, size = (size_t)wish->size;
    uint32_t unit;

    for (size_t i = 0; i < wish->available_count; i++)
        if (placement_find(p, kind, wish->available[i], &unit) == card)
            units[unit] = wish->available[i];
    for (size_t i = 0; i < wish->must_count && count < size; i++) {
        (void)placement_find(p, kind, wish->must[i], &unit);
        units[unit] = NULL;
        ret[count++] = wish->must[i];
    }
    for (unit = 0; unit < card->units[kind] && count < size; unit++)
        if (units[unit])
            ret[count++] = units[unit];
    return count == size;
}

/* What the next Allocate is, if the container is known. */
static void placement_announce(struct placement *p, enum resource_kind kind,
                               const struct placement_wish *wish)
{
    p->next.is_known = wish->partner != NULL;
    p->next.kind = kind;
    if (!wish->partner)
        return;
    p->next.is_all = wish->partner[0]
                     || placement_units(wish->waiting[0], placement_other(kind)) == 0;
    (void)snprintf(p->next.card, sizeof(p->next.card), "%s", wish->partner);
}

int placement_prefer(struct placement *p, enum resource_kind kind,
                     const struct placement_wish *wish, int64_t now_usec, char **ret,
                     struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char **units = NULL;
    const struct card *card = NULL;
    int r = placement_count(p, kind, wish, err);

    placement_announce(p, kind, wish);
    if (r == 0)
        r = placement_kept(p, kind, wish, &card, err);
    if (r < 0)
        return r;
    if (wish->size <= 0 || (size_t)wish->size > wish->available_count
        || wish->must_count > (size_t)wish->size)
        return aq_fail(err, EINVAL, "%d of %zu ids, with %zu to keep, cannot be", (int)wish->size,
                       wish->available_count, wish->must_count);
    if (!card)
        card = placement_choose(p, kind, wish, now_usec);
    units = card ? aq_alloc_array(card->units[kind], sizeof(*units)) : NULL;
    if (card && placement_take(p, kind, wish, card, units, ret))
        return 0;
    return aq_fail(err, ENOSPC, "no card has %d of %s free%s%s", (int)wish->size, kind_names[kind],
                   card ? " besides what the container has: it is to stay on " : "",
                   card ? card->id : "");
}

/* ---- what is given ---- */

/* All ids are of one card, which is returned; NULL and 'err' if not. */
static struct card *placement_read(const struct placement *p, enum resource_kind kind,
                                   char *const *ids, size_t count, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) bool *seen = NULL;
    struct card *card = NULL;

    for (size_t i = 0; i < count; i++) {
        uint32_t unit;
        struct card *found = placement_find(p, kind, ids[i], &unit);

        if (!found || (seen && found == card && seen[unit])) {
            (void)aq_fail(err, EINVAL, "'%.80s' is %s", ids[i],
                          found ? "there twice" : "no id of ours");
            return NULL;
        }
        if (card && found != card) {
            (void)aq_fail(err, EXDEV, "no card has %zu of %s free: what is left is on %s and %s",
                          count, kind_names[kind], card->id, found->id);
            return NULL;
        }
        card = found;
        if (!seen)
            seen = aq_alloc_array(card->units[kind], sizeof(*seen));
        seen[unit] = true;
    }
    if (!card)
        (void)aq_fail(err, EINVAL, "no ids");
    return card;
}

int placement_accept(struct placement *p, enum resource_kind kind, char *const *ids, size_t count,
                     int64_t now_usec, const struct card **ret, struct aq_error *err)
{
    bool is_known = p->next.is_known && p->next.kind == kind;
    const struct card *partner = is_known
                                     ? cards_find(&p->cards, p->next.card, strlen(p->next.card))
                                     : placement_partner(p, kind, now_usec);
    bool is_other = !is_known && p->is_pair; /* what has the partner may be another container */
    struct card *card = placement_read(p, kind, ids, count, err);

    if (!card)
        return -err->code;
    if (!card->is_healthy)
        return aq_fail(err, ENODEV, "card %s is unhealthy", card->id);
    if (partner && partner != card && !is_known && !p->is_certain)
        return aq_fail(err, EAGAIN, "it is not known what else the container of '%s' has", p->id);
    if (partner && partner != card && !is_other)
        return aq_fail(err, EXDEV,
                       "%s on card %s and %s on card %s cannot be one container's: "
                       "%s has too little of %s left",
                       kind_names[placement_other(kind)], partner->id, kind_names[kind], card->id,
                       partner->id, kind_names[kind]);
    card->free[kind] -= (uint32_t)AQ_MIN(count, (size_t)card->free[kind]);
    p->is_pair = is_known ? p->next.is_all : partner == card && !p->is_pair;
    p->is_certain = is_known && p->next.is_all;
    p->next.is_known = false;
    p->kind = kind;
    p->usec = now_usec;
    memcpy(p->card, card->id, sizeof(p->card));
    (void)snprintf(p->id, sizeof(p->id), "%s", ids[0]);
    *ret = card;
    return 0;
}

void placement_settle(struct placement *p, const char *id, enum placement_last last)
{
    if (strcmp(p->id, id) != 0)
        return;
    if (last != PLACEMENT_UNKNOWN)
        p->is_pair = last == PLACEMENT_ALL;
    p->is_certain = true;
}

void placement_forget(struct placement *p)
{
    p->card[0] = '\0';
    p->next.is_known = false;
}
