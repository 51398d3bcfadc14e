/* SPDX-License-Identifier: Apache-2.0 */
/* preempt.c - whom to evict from which node, so that a pod has room on its cards
 *
 * kube-scheduler proposes as few pods as make room by the sums of a node. So each of them is
 * needed, if not for a card then for something else, and all of them stay. But where they lie on
 * different cards they do not help alone: then others of lower priority go, too, as few as will do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/vec.h"
#include "k8s/scheduler/extender_internal.h"

struct preempt_list {
    struct book_pod **items;
    size_t count, cap;
};

static void preempt_add(struct preempt_list *list, struct book_pod *pod)
{
    vec_grow(&list->items, &list->cap, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = pod;
}

/* Those who may stay come first: the higher priority, then the smaller, so that few must go. */
static int preempt_compare(const void *a, const void *b)
{
    const struct pod *x = &(*(struct book_pod *const *)a)->pod;
    const struct pod *y = &(*(struct book_pod *const *)b)->pod;
    int64_t of_x = 0, of_y = 0;

    for (uint32_t i = 0; i < x->part_count; i++)
        of_x += x->parts[i].memory;
    for (uint32_t i = 0; i < y->part_count; i++)
        of_y += y->parts[i].memory;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return of_x != of_y ? (of_x > of_y) - (of_x < of_y) : strcmp(x->uid, y->uid);
}

static const char *preempt_uid(const json_t *victim, bool is_meta)
{
    return json_string_value(is_meta ? json_object_get(victim, "UID")
                                     : json_object_get(json_object_get(victim, "metadata"), "uid"));
}

/* The proposed ones that hold anything of the node leave. */
static void preempt_leave(struct extender *extender, struct book_node *node, const json_t *pods,
                          bool is_meta, struct preempt_list *leaving)
{
    const json_t *victim;
    size_t i;

    json_array_foreach(pods, i, victim) {
        const char *uid = preempt_uid(victim, is_meta);
        struct book_pod *pod = uid ? books_find_pod(extender->books, uid) : NULL;

        if (!pod || pod->node != node || pod->is_leaving)
            continue;
        preempt_add(leaving, pod);
        books_set_leaving(extender->books, pod, true);
    }
}

/* Also those that run with a lower priority. */
static void preempt_leave_lower(struct extender *extender, struct book_node *node,
                                const struct book_pod *pod, struct preempt_list *leaving)
{
    size_t from = leaving->count;

    LIST_FOREACH(link, &node->pods) {
        struct book_pod *other = LIST_ENTRY(link, struct book_pod, link);

        if (other->pod.node && !other->is_leaving && other->pod.priority < pod->pod.priority)
            preempt_add(leaving, other);
    }
    for (size_t i = from; i < leaving->count; i++)
        books_set_leaving(extender->books, leaving->items[i], true);
    if (leaving->count > from)
        qsort(leaving->items + from, leaving->count - from, sizeof(*leaving->items),
              preempt_compare);
}

static bool preempt_has_place(struct extender *extender, struct book_node *node,
                              const struct book_pod *pod)
{
    struct placement_choice choice;

    return extender_place(extender, pod, node, &choice);
}

/* Those from 'from' on stay, one after the other, if the pod has room all the same. */
static void preempt_spare(struct extender *extender, struct book_node *node,
                          const struct book_pod *pod, struct preempt_list *leaving, size_t from)
{
    size_t kept = from;

    for (size_t i = from; i < leaving->count; i++) {
        books_set_leaving(extender->books, leaving->items[i], false);
        if (preempt_has_place(extender, node, pod))
            continue;
        books_set_leaving(extender->books, leaving->items[i], true);
        leaving->items[kept++] = leaving->items[i];
    }
    leaving->count = kept;
}

static void preempt_write_victim(struct jsonw *w, const char *uid)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "UID", uid);
    jsonw_object_end(w);
}

static void preempt_write_node(const struct preempt_list *leaving, size_t proposed,
                               const json_t *victims, bool is_meta, const char *name,
                               struct jsonw *w)
{
    const json_t *victim;
    size_t i;

    jsonw_key(w, name);
    jsonw_object_begin(w);
    jsonw_key(w, "Pods");
    jsonw_array_begin(w);
    json_array_foreach(json_object_get(victims, "Pods"), i, victim)
        if (preempt_uid(victim, is_meta))
            preempt_write_victim(w, preempt_uid(victim, is_meta));
    for (i = proposed; i < leaving->count; i++)
        preempt_write_victim(w, leaving->items[i]->pod.uid);
    jsonw_array_end(w);
    jsonw_member_int(w, "NumPDBViolations",
                     json_integer_value(json_object_get(victims, "NumPDBViolations")));
    jsonw_object_end(w);
}

/* One node of the question; it is left out of the answer where nothing helps. */
static void preempt_node(struct extender *extender, const struct book_pod *pod, const char *name,
                         const json_t *victims, bool is_meta, struct jsonw *w)
{
    struct book_node *node = books_find_node(extender->books, name);
    struct preempt_list leaving = { .count = 0 };
    size_t proposed;

    if (!node)
        return;
    preempt_leave(extender, node, json_object_get(victims, "Pods"), is_meta, &leaving);
    proposed = leaving.count;
    if (!preempt_has_place(extender, node, pod))
        preempt_leave_lower(extender, node, pod, &leaving);
    if (preempt_has_place(extender, node, pod)) {
        preempt_spare(extender, node, pod, &leaving, proposed);
        preempt_write_node(&leaving, proposed, victims, is_meta, name, w);
    }
    for (size_t i = 0; i < leaving.count; i++)
        books_set_leaving(extender->books, leaving.items[i], false);
    free(leaving.items);
}

/* For a pod that asks for nothing of ours all nodes are as they were proposed. */
static void preempt_nodes(struct extender *extender, const struct book_pod *pod,
                          const json_t *question, struct jsonw *w)
{
    json_t *nodes = json_object_get(question, "NodeNameToMetaVictims"), *victims;
    bool is_meta = json_is_object(nodes);
    const struct preempt_list none = { .count = 0 };
    const char *name;

    if (!is_meta)
        nodes = json_object_get(question, "NodeNameToVictims");
    json_object_foreach(nodes, name, victims) {
        if (!pod)
            preempt_write_node(&none, 0, victims, is_meta, name, w);
        else
            preempt_node(extender, pod, name, victims, is_meta, w);
    }
}

int extender_preempt(struct extender *extender, const char *body, size_t len, struct strbuf *out,
                     struct aq_error *err)
{
    struct jsonw w = jsonw_make(out);
    struct book_pod *pod = NULL;
    json_t *question;
    int r = extender_load(body, len, &question, err);

    if (r == 0)
        r = extender_find_pod(extender, question, &pod, err);
    if (r == 0) {
        jsonw_object_begin(&w);
        jsonw_key(&w, "NodeNameToMetaVictims");
        jsonw_object_begin(&w);
        preempt_nodes(extender, pod, question, &w);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
    }
    json_decref(question);
    return r;
}
