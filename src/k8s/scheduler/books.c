/* SPDX-License-Identifier: Apache-2.0 */
/* books.c - see books.h */
#include "k8s/scheduler/books.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "k8s/scheduler/reckon.h"

struct books {
    struct map nodes;             /* name -> struct book_node */
    struct map pods, pods_by_key; /* uid, "namespace/name" -> struct book_pod */
    struct selection *selection;
    int32_t largest_memory, largest_compute; /* of cards */
};

struct selection *books_selection(struct books *books)
{
    return books->selection;
}

/* ---- nodes ---- */

static void books_free_node(struct book_node *node)
{
    node_cards_done(&node->cards);
    free(node->name);
    free(node);
}

static struct book_node *books_enter_node(struct books *books, const char *name)
{
    struct book_node *node = map_gets(&books->nodes, name);

    if (node)
        return node;
    node = aq_alloc(sizeof(*node));
    list_init(&node->pods);
    node->name = aq_strdup(name);
    map_sets(&books->nodes, name, node);
    return node;
}

/* The node's pods are others by now. One that neither the API server nor a pod names is forgotten.
 */
static void books_changed_node(struct books *books, struct book_node *node)
{
    if (node->is_known || !list_is_empty(&node->pods)) {
        reckon_node(books, node);
        return;
    }
    (void)map_removes(&books->nodes, node->name);
    books_free_node(node);
}

struct book_node *books_find_node(const struct books *books, const char *name)
{
    struct book_node *node = map_gets(&books->nodes, name);

    return node && node->is_known ? node : NULL;
}

static bool books_has_same_cards(const struct node_cards *a, const struct node_cards *b)
{
    for (uint32_t i = 0; i < a->count && a->count == b->count; i++)
        if (strcmp(a->cards[i].id, b->cards[i].id) != 0)
            return false;
    return a->count == b->count;
}

void books_set_node(struct books *books, const char *name, struct node_cards *cards)
{
    struct book_node *node = books_enter_node(books, name);
    bool is_same = books_has_same_cards(&node->cards, cards);

    node->is_known = true;
    AQ_SWAP(node->cards, *cards);
    node_cards_done(cards);
    for (uint32_t i = 0; i < node->cards.count; i++) {
        books->largest_memory = AQ_MAX(books->largest_memory, node->cards.cards[i].memory);
        books->largest_compute = AQ_MAX(books->largest_compute, node->cards.cards[i].compute);
    }
    selection_set_largest(books->selection, books->largest_memory, books->largest_compute);
    if (!is_same) /* assumptions are of places in the list */
        LIST_FOREACH(link, &node->pods)
            free(AQ_TAKE(LIST_ENTRY(link, struct book_pod, link)->cards));
    books_changed_node(books, node);
}

void books_remove_node(struct books *books, const char *name)
{
    struct book_node *node = books_find_node(books, name);

    if (!node)
        return;
    node->is_known = false;
    node_cards_done(&node->cards);
    LIST_FOREACH(link, &node->pods)
        free(AQ_TAKE(LIST_ENTRY(link, struct book_pod, link)->cards));
    books_changed_node(books, node);
}

/* ---- pods ---- */

struct book_pod *books_find_pod(const struct books *books, const char *uid)
{
    return map_gets(&books->pods, uid);
}

/* It is of this node from now on; NULL = of none. Both nodes are reckoned. */
static void books_move_pod(struct books *books, struct book_pod *pod, struct book_node *node)
{
    struct book_node *before = pod->node;

    if (node != before) {
        list_remove(&pod->link);
        pod->node = node;
        if (node)
            list_add(&node->pods, &pod->link);
        if (before)
            books_changed_node(books, before);
    }
    if (node)
        books_changed_node(books, node);
    if (node && !pod->is_counted && !book_pod_is_nominated(pod)) {
        pod->is_counted = true;
        selection_note_placement(books->selection);
    }
}

/* Where it belongs if it is not assumed anywhere: where it is bound or nominated. */
static void books_move_home(struct books *books, struct book_pod *pod)
{
    const char *name = pod->pod.node ? pod->pod.node : pod->pod.nominated;
    struct book_node *home = name && !pod->pod.is_finished ? books_enter_node(books, name) : NULL;

    books_move_pod(books, pod, home);
}

static void books_drop_assumption(struct book_pod *pod)
{
    free(AQ_TAKE(pod->cards));
    pod->assumed_usec = 0;
    pod->is_assumed_bound = false;
}

static void books_free_pod(struct book_pod *pod)
{
    books_drop_assumption(pod);
    pod_done(&pod->pod);
    free(pod);
}

static void books_drop_pod(struct books *books, struct book_pod *pod)
{
    (void)map_removes(&books->pods, pod->pod.uid);
    (void)map_removes(&books->pods_by_key, pod->pod.key);
    books_move_pod(books, pod, NULL);
    if (pod->is_counted && !pod->pod.is_finished)
        selection_note_departure(books->selection);
    books_free_pod(pod);
}

static struct book_pod *books_new_pod(struct books *books, struct pod *from)
{
    struct book_pod *pod = aq_alloc(sizeof(*pod));

    list_init(&pod->link);
    map_sets(&books->pods, from->uid, pod);
    map_sets(&books->pods_by_key, from->key, pod);
    AQ_SWAP(pod->pod, *from);
    if (!pod->pod.is_finished)
        selection_note_arrival(books->selection, &pod->pod);
    return pod;
}

/* Where it belongs by what the watch says; else it stays where it is assumed. */
static void books_settle_pod(struct books *books, struct book_pod *pod, bool has_ended)
{
    if (pod->pod.is_finished || pod->pod.node)
        books_drop_assumption(pod);
    if (has_ended && pod->is_counted)
        selection_note_departure(books->selection);
    if (!pod->assumed_usec)
        books_move_home(books, pod);
}

void books_set_pod(struct books *books, struct pod *pod, bool is_watched)
{
    struct book_pod *known = map_gets(&books->pods_by_key, pod->key);
    struct book_pod *other = map_gets(&books->pods, pod->uid);
    bool had_ended = false;

    if (other && other != known)
        books_drop_pod(books, other);
    if (known && (known != other || !pod->part_count)) {
        books_drop_pod(books, known);
        known = NULL;
    }
    if (!pod->part_count) {
        pod_done(pod);
        return;
    }
    if (known) {
        had_ended = known->pod.is_finished;
        AQ_SWAP(known->pod, *pod);
        pod_done(pod);
    } else {
        known = books_new_pod(books, pod);
    }
    known->is_watched |= is_watched;
    books_settle_pod(books, known, !had_ended && known->pod.is_finished);
}

void books_remove_pod(struct books *books, const char *key)
{
    struct book_pod *pod = map_gets(&books->pods_by_key, key);

    if (pod)
        books_drop_pod(books, pod);
}

/* ---- what was decided ---- */

void books_assume(struct books *books, struct book_pod *pod, struct book_node *node,
                  const uint32_t *cards, int64_t until_usec)
{
    uint32_t *copy = aq_alloc_array(pod->pod.part_count, sizeof(*copy));

    memcpy(copy, cards, pod->pod.part_count * sizeof(*copy));
    books_drop_assumption(pod);
    pod->cards = copy;
    pod->assumed_usec = until_usec;
    books_move_pod(books, pod, node);
}

void books_confirm(struct book_pod *pod, int64_t until_usec)
{
    if (!pod->assumed_usec)
        return; /* the watch was faster */
    pod->is_assumed_bound = true;
    pod->assumed_usec = until_usec;
}

void books_forget(struct books *books, struct book_pod *pod)
{
    if (!pod->assumed_usec)
        return;
    books_drop_assumption(pod);
    (void)books_move_home(books, pod);
}

void books_expire(struct books *books, int64_t now_usec)
{
    for (size_t i = books->pods.count; i-- > 0;) {
        struct book_pod *pod = books->pods.entries[i].value;

        if (pod->assumed_usec && pod->assumed_usec <= now_usec)
            books_forget(books, pod);
        if (!pod->assumed_usec && !pod->is_watched)
            books_drop_pod(books, pod);
    }
}

void books_set_leaving(struct books *books, struct book_pod *pod, bool is_leaving)
{
    pod->is_leaving = is_leaving;
    if (pod->node)
        reckon_node(books, pod->node);
}

void books_set_asking(struct books *books, struct book_node *node, const struct book_pod *asking,
                      bool is_asking)
{
    if (!node->nominated)
        return;
    LIST_FOREACH(link, &node->pods) {
        struct book_pod *pod = LIST_ENTRY(link, struct book_pod, link);

        if (book_pod_is_nominated(pod)
            && (pod == asking || pod->pod.priority < asking->pod.priority))
            pod->is_leaving = is_asking;
    }
    reckon_node(books, node);
}

/* ---- sums ---- */

static void books_add_node(const struct book_node *node, struct books_sums *ret)
{
    ret->nodes += node->cards.count > 0;
    for (uint32_t i = 0; i < node->cards.count; i++) {
        const struct node_card *card = &node->cards.cards[i];

        ret->cards++;
        ret->unhealthy += !card->is_healthy;
        ret->memory += card->memory;
        ret->compute += card->compute;
        ret->used_memory += card->used_memory;
        ret->used_compute += card->used_compute;
    }
}

void books_get_sums(const struct books *books, struct books_sums *ret)
{
    *ret = (struct books_sums){ .nodes = 0 };
    for (size_t i = 0; i < books->nodes.count; i++)
        books_add_node(books->nodes.entries[i].value, ret);
    for (size_t i = 0; i < books->pods.count; i++) {
        const struct book_pod *pod = books->pods.entries[i].value;

        ret->placed += pod->pod.node && pod->node;
        ret->assumed += pod->assumed_usec != 0;
        ret->waiting += !pod->pod.is_finished && !pod->pod.node && !pod->assumed_usec;
    }
}

/* ---- life ---- */

struct books *books_new(void)
{
    struct books *books = aq_alloc(sizeof(*books));

    books->selection = selection_new();
    return books;
}

void books_free(struct books *books)
{
    if (!books)
        return;
    for (size_t i = 0; i < books->pods.count; i++)
        books_free_pod(books->pods.entries[i].value);
    for (size_t i = 0; i < books->nodes.count; i++)
        books_free_node(books->nodes.entries[i].value);
    map_done(&books->pods);
    map_done(&books->pods_by_key);
    map_done(&books->nodes);
    selection_free(books->selection);
    free(books);
}
