/* SPDX-License-Identifier: Apache-2.0 */
/* node_cards.c - see node_cards.h */
#include "k8s/scheduler/node_cards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"

#define TEXT_MAX (1u << 20) /* the API server takes 256 KiB of all annotations */
#define NAME_MAX_OF_GIVEN 253

uint32_t node_cards_find(const struct node_cards *cards, const char *id)
{
    for (uint32_t i = 0; i < cards->count; i++)
        if (strcmp(cards->cards[i].id, id) == 0)
            return i;
    return UINT32_MAX;
}

/* A number of units; -1 for what is none. */
static int32_t node_cards_read_units(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    json_int_t units = json_integer_value(value);

    return json_is_integer(value) && units >= 0 && units <= DEVICE_UNITS_MAX ? (int32_t)units : -1;
}

static int node_cards_read_card(const json_t *object, struct node_cards *to, struct aq_error *err)
{
    struct node_card *card = &to->cards[to->count];
    const char *id = json_string_value(json_object_get(object, "id"));

    if (!id || !id[0] || strlen(id) > DEVICE_CARD_MAX)
        return aq_fail(err, EINVAL, "a card without an id");
    if (node_cards_find(to, id) != UINT32_MAX)
        return aq_fail(err, EINVAL, "the card '%s' is there twice", id);
    (void)snprintf(card->id, sizeof(card->id), "%s", id);
    card->memory = node_cards_read_units(object, "memory");
    card->compute = node_cards_read_units(object, "compute");
    card->is_healthy = json_is_true(json_object_get(object, "healthy"));
    if (card->memory <= 0 || card->compute < 0)
        return aq_fail(err, EINVAL, "the card '%s' has no number of units", id);
    to->count++;
    return 0;
}

static int node_cards_read_given(const json_t *object, struct node_cards *to, struct aq_error *err)
{
    struct node_given *given = &to->given[to->given_count];
    const char *pod = json_string_value(json_object_get(object, "pod"));
    const char *container = json_string_value(json_object_get(object, "container"));
    const char *card = json_string_value(json_object_get(object, "card"));

    if (!pod || !container || !card || strlen(pod) > NAME_MAX_OF_GIVEN
        || strlen(container) > NAME_MAX_OF_GIVEN)
        return aq_fail(err, EINVAL, "a container without pod, name or card");
    *given = (struct node_given){ .card = node_cards_find(to, card),
                                  .memory = node_cards_read_units(object, "memory"),
                                  .compute = node_cards_read_units(object, "compute") };
    if (given->memory < 0 || given->compute < 0)
        return aq_fail(err, EINVAL, "the container '%s' has no number of units", container);
    if (given->card == UINT32_MAX)
        return 0;
    given->pod = aq_strdup(pod);
    given->container = aq_strdup(container);
    to->given_count++;
    return 0;
}

static int node_cards_read_lists(const json_t *cards, const json_t *given, struct node_cards *ret,
                                 struct aq_error *err)
{
    const json_t *item;
    size_t i;
    int r = 0;

    ret->cards = aq_alloc_array(json_array_size(cards) + 1, sizeof(*ret->cards));
    ret->given = aq_alloc_array(json_array_size(given) + 1, sizeof(*ret->given));
    json_array_foreach(cards, i, item)
        if (r == 0)
            r = node_cards_read_card(item, ret, err);
    json_array_foreach(given, i, item)
        if (r == 0)
            r = node_cards_read_given(item, ret, err);
    return r;
}

int node_cards_read(const char *text, struct node_cards *ret, struct aq_error *err)
{
    size_t len = strlen(text);
    json_t *whole = len <= TEXT_MAX ? json_load_text(text, len, 0, NULL) : NULL;
    const json_t *cards = json_object_get(whole, "cards");
    const json_t *given = json_object_get(whole, "containers");
    int r;

    *ret = (struct node_cards){ .count = 0 };
    if (!json_is_array(cards) || (given && !json_is_array(given)))
        r = aq_fail(err, EINVAL, "it is no JSON object with a list of cards");
    else if (json_array_size(cards) > NODE_CARDS_MAX || json_array_size(given) > NODE_GIVEN_MAX)
        r = aq_fail(err, E2BIG, "it has more than %d cards, or %d containers", NODE_CARDS_MAX,
                    NODE_GIVEN_MAX);
    else
        r = node_cards_read_lists(cards, given, ret, err);
    if (r < 0)
        node_cards_done(ret);
    json_decref(whole);
    return r;
}

void node_cards_done(struct node_cards *cards)
{
    for (uint32_t i = 0; i < cards->given_count; i++) {
        free(cards->given[i].pod);
        free(cards->given[i].container);
    }
    free(cards->given);
    free(cards->cards);
    *cards = (struct node_cards){ .count = 0 };
}
