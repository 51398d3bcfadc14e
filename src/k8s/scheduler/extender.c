/* SPDX-License-Identifier: Apache-2.0 */
/* extender.c - see extender.h */
#include "k8s/scheduler/extender_internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json_load.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "kube/object.h"

#define NODES_MAX 100000

static enum card_policy extender_policy(const struct extender *extender, const struct pod *pod)
{
    return pod->policy >= 0 ? (enum card_policy)pod->policy : extender->policy;
}

/* ---- questions ---- */

int extender_load(const char *body, size_t len, json_t **ret, struct aq_error *err)
{
    *ret = json_load_text(body, len, 0, NULL);
    return json_is_object(*ret) ? 0 : aq_fail(err, EINVAL, "the question is no JSON object");
}

int extender_find_pod(struct extender *extender, const json_t *question, struct book_pod **ret,
                      struct aq_error *err)
{
    const json_t *object = json_object_get(question, "Pod");
    const char *uid = json_string_value(
        json_object_get(json_object_get(object, "metadata"), "uid"));
    struct pod pod;
    int r = pod_read(object, &extender->names, &pod, err);

    *ret = NULL;
    if (r < 0)
        return r;
    if (!extender->is_complete) {
        r = aq_fail(err, EAGAIN, "the nodes and pods of the cluster are not all known yet");
    } else if (!(*ret = books_find_pod(extender->books, uid)) && pod.part_count) {
        books_set_pod(extender->books, &pod, false);
        *ret = books_find_pod(extender->books, uid);
    }
    pod_done(&pod);
    return r;
}

static int extender_find_nodes(const json_t *question, const json_t **ret, struct aq_error *err)
{
    *ret = json_object_get(question, "NodeNames");
    if (json_is_array(*ret) && json_array_size(*ret) <= NODES_MAX)
        return 0;
    return aq_fail(err, EINVAL,
                   "there are no names of nodes: nodeCacheCapable of the extender must be true");
}

/* Where on the node the pod would lie. */
bool extender_place(struct extender *extender, const struct book_pod *pod, struct book_node *node,
                    struct placement_choice *ret)
{
    bool is_placed;

    books_set_asking(extender->books, node, pod, true);
    is_placed = selection_place(books_selection(extender->books),
                                extender_policy(extender, &pod->pod), &pod->pod, &node->cards, ret);
    books_set_asking(extender->books, node, pod, false);
    return is_placed;
}

/* ---- filter ---- */

/* What is found while the nodes are looked at. */
struct filter {
    struct book_node *best; /* NULL = none has room */
    struct placement_choice choice;
    struct strbuf failed, unresolvable; /* members: "node":"why" */
    struct jsonw failed_writer, unresolvable_writer;
};

static void extender_refuse(struct extender *extender, struct filter *filter, const char *name,
                            struct book_node *node, const struct pod *pod)
{
    char reason[SELECTION_REASON_MAX] = "the node is not known yet";
    int kind = node ? (int)selection_explain(books_selection(extender->books), pod, &node->cards,
                                             reason)
                    : REFUSED_UNKNOWN_NODE;
    bool is_resolvable = kind != REASON_NO_CARD && kind != REASON_TOO_LARGE;

    extender->refused[kind]++;
    jsonw_member_str(is_resolvable ? &filter->failed_writer : &filter->unresolvable_writer, name,
                     reason);
}

static void extender_look(struct extender *extender, struct filter *filter, const char *name,
                          const struct book_pod *pod)
{
    struct book_node *node = books_find_node(extender->books, name);
    struct placement_choice choice;

    if (!node || !extender_place(extender, pod, node, &choice)) {
        extender_refuse(extender, filter, name, node, &pod->pod);
        return;
    }
    if (filter->best
        && (choice.score < filter->choice.score
            || (choice.score == filter->choice.score && strcmp(name, filter->best->name) > 0)))
        return;
    filter->best = node;
    filter->choice = choice;
}

/* NodeNames is what 'nodes' has, or the one that is best. */
static void extender_write_filtered(const struct filter *filter, const json_t *nodes,
                                    const char *error, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    const json_t *name;
    size_t i;

    jsonw_object_begin(&w);
    jsonw_member_null(&w, "Nodes");
    jsonw_key(&w, "NodeNames");
    jsonw_array_begin(&w);
    if (filter->best)
        jsonw_str(&w, filter->best->name);
    json_array_foreach(nodes, i, name)
        jsonw_str(&w, json_string_value(name));
    jsonw_array_end(&w);
    jsonw_key(&w, "FailedNodes");
    jsonw_raw(&w, filter->failed.data, filter->failed.len);
    jsonw_key(&w, "FailedAndUnresolvableNodes");
    jsonw_raw(&w, filter->unresolvable.data, filter->unresolvable.len);
    jsonw_member_str(&w, "Error", error);
    jsonw_object_end(&w);
}

static int extender_choose(struct extender *extender, struct filter *filter, struct book_pod *pod,
                           const json_t *nodes, int64_t now_usec, struct aq_error *err)
{
    const json_t *name;
    size_t i;

    if (pod->pod.node)
        return aq_fail(err, EEXIST, "the pod is bound to %s already", pod->pod.node);
    books_forget(extender->books, pod);
    json_array_foreach(nodes, i, name)
        if (json_is_string(name))
            extender_look(extender, filter, json_string_value(name), pod);
    if (!filter->best)
        return 0;
    extender->placed++;
    books_assume(extender->books, pod, filter->best, filter->choice.cards, now_usec + ASSUMED_USEC);
    return 0;
}

void extender_filter(struct extender *extender, const char *body, size_t len, int64_t now_usec,
                     struct strbuf *out)
{
    struct filter filter = { .failed = STRBUF_INIT, .unresolvable = STRBUF_INIT };
    struct aq_error err = { 0 };
    struct book_pod *pod = NULL;
    const json_t *nodes = NULL;
    json_t *question;
    int r = extender_load(body, len, &question, &err);

    filter.failed_writer = jsonw_make(&filter.failed);
    filter.unresolvable_writer = jsonw_make(&filter.unresolvable);
    jsonw_object_begin(&filter.failed_writer);
    jsonw_object_begin(&filter.unresolvable_writer);
    if (r == 0)
        r = extender_find_pod(extender, question, &pod, &err);
    if (r == 0)
        r = extender_find_nodes(question, &nodes, &err);
    if (r == 0 && pod)
        r = extender_choose(extender, &filter, pod, nodes, now_usec, &err);
    if (r < 0)
        filter.best = NULL;
    jsonw_object_end(&filter.failed_writer);
    jsonw_object_end(&filter.unresolvable_writer);
    extender_write_filtered(&filter, r == 0 && !pod ? nodes : NULL, r < 0 ? err.text : "", out);
    strbuf_done(&filter.failed);
    strbuf_done(&filter.unresolvable);
    json_decref(question);
}

/* ---- prioritize ---- */

#define SCORE_MAX 10

/* The scores of nodes, and which are there to compare with. */
struct scores {
    double *items; /* per node; -INFINITY = it has no room */
    double low, high;
};

static void extender_score(struct extender *extender, const struct book_pod *pod,
                           const json_t *nodes, struct scores *scores)
{
    const json_t *name;
    size_t i;

    json_array_foreach(nodes, i, name) {
        struct book_node *node = json_is_string(name)
                                     ? books_find_node(extender->books, json_string_value(name))
                                     : NULL;
        struct placement_choice choice;

        scores->items[i] = -INFINITY;
        if (!node || !extender_place(extender, pod, node, &choice))
            continue;
        scores->items[i] = choice.score;
        scores->low = fmin(scores->low, choice.score);
        scores->high = fmax(scores->high, choice.score);
    }
}

/* Those of fragmentation have no scale: the worst node gets 0 and the best SCORE_MAX. */
static int extender_scale(const struct scores *scores, bool is_share, double score)
{
    double low = is_share ? 0 : scores->low, high = is_share ? 100 : scores->high;

    if (score == -INFINITY)
        return 0;
    return high > low ? (int)lround((score - low) / (high - low) * SCORE_MAX) : SCORE_MAX;
}

static void extender_write_scores(const struct scores *scores, bool is_share, const json_t *nodes,
                                  struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    const json_t *name;
    size_t i;

    jsonw_array_begin(&w);
    json_array_foreach(nodes, i, name) {
        if (!json_is_string(name))
            continue;
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "Host", json_string_value(name));
        jsonw_member_int(&w, "Score",
                         scores->items ? extender_scale(scores, is_share, scores->items[i]) : 0);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
}

int extender_prioritize(struct extender *extender, const char *body, size_t len, struct strbuf *out,
                        struct aq_error *err)
{
    struct scores scores = { .low = INFINITY, .high = -INFINITY };
    struct book_pod *pod = NULL;
    const json_t *nodes;
    json_t *question;
    int r = extender_load(body, len, &question, err);

    if (r == 0)
        r = extender_find_pod(extender, question, &pod, err);
    if (r == 0)
        r = extender_find_nodes(question, &nodes, err);
    if (r == 0 && pod) {
        scores.items = aq_alloc_array(json_array_size(nodes) + 1, sizeof(double));
        books_set_leaving(extender->books, pod, true); /* what it has been promised is its own */
        extender_score(extender, pod, nodes, &scores);
        books_set_leaving(extender->books, pod, false);
    }
    if (r == 0)
        extender_write_scores(&scores,
                              !pod || extender_policy(extender, &pod->pod) != POLICY_FRAGMENTATION,
                              nodes, out);
    free(scores.items);
    json_decref(question);
    return r;
}

/* ---- bind ---- */

int extender_read_bind(const char *body, size_t len, struct bind_ask *ret, struct aq_error *err)
{
    int r = extender_load(body, len, &ret->json, err);

    ret->name = json_string_value(json_object_get(ret->json, "PodName"));
    ret->space = json_string_value(json_object_get(ret->json, "PodNamespace"));
    ret->uid = json_string_value(json_object_get(ret->json, "PodUID"));
    ret->node = json_string_value(json_object_get(ret->json, "Node"));
    if (r == 0 && (!ret->name || !ret->space || !ret->uid || !ret->node))
        r = aq_fail(err, EINVAL, "PodName, PodNamespace, PodUID and Node belong to a bind");
    return r;
}

void extender_write_bind(const char *error, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "Error", error);
    jsonw_object_end(&w);
}

/* Decide for this node alone. */
static int extender_place_on(struct extender *extender, struct book_pod *pod,
                             struct book_node *node, int64_t now_usec, struct aq_error *err)
{
    struct selection *selection = books_selection(extender->books);
    struct placement_choice choice;
    char reason[SELECTION_REASON_MAX];

    books_forget(extender->books, pod);
    if (!extender_place(extender, pod, node, &choice)) {
        extender->refused[selection_explain(selection, &pod->pod, &node->cards, reason)]++;
        return aq_fail(err, ENOSPC, "%s: %s", node->name, reason);
    }
    books_assume(extender->books, pod, node, choice.cards, now_usec + ASSUMED_USEC);
    return 0;
}

struct book_pod *extender_settle(struct extender *extender, const struct bind_ask *ask,
                                 int64_t now_usec, struct aq_error *err)
{
    struct book_pod *pod = books_find_pod(extender->books, ask->uid);
    struct book_node *node = books_find_node(extender->books, ask->node);
    char key[KUBE_KEY_MAX + 1];

    (void)snprintf(key, sizeof(key), "%s/%s", ask->space, ask->name);
    if (!extender->is_complete)
        (void)aq_fail(err, EAGAIN, "the nodes and pods of the cluster are not all known yet");
    else if (!pod || strcmp(pod->pod.key, key) != 0)
        (void)aq_fail(err, ENOENT, "no pod %.300s of that uid is known to wait for a GPU", key);
    else if (!node)
        (void)aq_fail(err, ENOENT, "the node %.253s is not known", ask->node);
    else if (pod->pod.node)
        (void)aq_fail(err, EEXIST, "the pod is bound to %s already", pod->pod.node);
    else if (pod->pod.is_finished)
        (void)aq_fail(err, EEXIST, "the pod has ended");
    else if (pod->node == node && pod->cards)
        pod->assumed_usec = now_usec + ASSUMED_USEC;
    else
        (void)extender_place_on(extender, pod, node, now_usec, err);
    return err->code ? NULL : pod;
}
