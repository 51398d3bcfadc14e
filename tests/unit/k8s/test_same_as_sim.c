/* SPDX-License-Identifier: Apache-2.0 */
/* The extender and `aliquot sim`: pod for pod the same node, and a card as full, by every policy. */
#include "testing.h"

#include <stdlib.h>

#include "base/jsonw.h"
#include "k8s/scheduler/extender.h"
#include "sim/sim_cluster.h"

#define NODES 30
#define PODS 600
#define WHOLE 1000 /* units of a card: thousandths */

struct world {
    struct trace_node nodes[NODES];
    struct trace_task tasks[PODS];
    char names[NODES][16];
    uint32_t handles[PODS];
    int node[PODS];                       /* -1 = not placed, or left again */
    int64_t left[NODES][8], *taken[PODS]; /* of devices; by each pod: one of those */
    struct trace_nodes all_nodes;
    struct trace_tasks all_tasks;
    struct sim_cluster sim;
    struct extender extender;
    struct random random;
};

static void world_init(struct world *w, const char *policy)
{
    static const uint32_t parts[] = { 100, 125, 250, 250, 330, 500, 500, 750, 1000 };
    static const struct sched_options options = { .sequencer = &sched_fifo };
    struct aq_error err = { 0 };

    memset(w, 0, sizeof(*w));
    w->random = random_make(11);
    for (int n = 0; n < NODES; n++) {
        (void)snprintf(w->names[n], sizeof(w->names[n]), "node-%02d", n);
        w->nodes[n] = (struct trace_node){ .name = w->names[n], .gpus = 1u << n % 4 };
        for (uint32_t d = 0; d < w->nodes[n].gpus; d++)
            w->left[n][d] = WHOLE;
    }
    for (int t = 0; t < PODS; t++) {
        w->tasks[t] = (struct trace_task){
            .name = "task", .gpus = 1, .gpu_milli = parts[random_below(&w->random, AQ_COUNT(parts))]
        };
        w->node[t] = -1;
    }
    w->all_nodes = (struct trace_nodes){ w->nodes, NODES };
    w->all_tasks = (struct trace_tasks){ w->tasks, PODS };
    assert_int_equal(sim_cluster_open(&w->sim, &w->all_nodes, &w->all_tasks,
                                      sched_find_selector(policy), &options, 1, &err),
                     0);
    w->extender = (struct extender){ .names = { "v/memory", "v/compute" },
                                     .policy = (enum card_policy)card_policy_find(policy),
                                     .is_complete = true };
    w->extender.books = books_new();
}

static void world_add_nodes(struct world *w)
{
    for (int n = 0; n < NODES; n++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        struct node_cards cards;
        struct aq_error err = { 0 };

        strbuf_adds(&text, "{\"cards\":[");
        for (uint32_t d = 0; d < w->nodes[n].gpus; d++)
            strbuf_addf(&text,
                        "%s{\"id\":\"GPU-%u\",\"memory\":1000,\"compute\":100,\"healthy\":true}",
                        d ? "," : "", d);
        strbuf_adds(&text, "]}");
        assert_int_equal(node_cards_read(text.data, &cards, &err), 0);
        books_set_node(w->extender.books, w->names[n], &cards);
    }
}

static void world_done(struct world *w)
{
    sim_cluster_close(&w->sim);
    books_free(w->extender.books);
}

static int find_node(const struct world *w, const char *name)
{
    for (int n = 0; n < NODES; n++)
        if (strcmp(w->names[n], name) == 0)
            return n;
    return -1;
}

/* The node, and how much its device had before; -1 = it has no room. */
static int place_in_sim(struct world *w, int t, int64_t *ret_had)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct sched_session session = sim_cluster_session(&w->sim, (size_t)t, t);
    struct sched_result result;
    struct aq_error err = { 0 };
    int64_t *left;

    assert_int_equal(sched_add(w->sim.sched, &session, &w->handles[t], &err), 0);
    sched_pass(w->sim.sched, 0, &arena, &result);
    if (result.count != 1 || result.outcomes[0].verdict != SCHED_PLACED) {
        sched_drop(w->sim.sched, w->handles[t]);
        return -1;
    }
    assert_int_equal(result.outcomes[0].chosen[0].count, 1);
    left = &w->left[result.outcomes[0].agents[0]][result.outcomes[0].chosen[0].parts[0].device];
    *ret_had = *left;
    *left -= w->tasks[t].gpu_milli;
    w->taken[t] = left;
    return (int)result.outcomes[0].agents[0];
}

static int place_in_books(struct world *w, int t, int64_t *ret_had)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf ask = STRBUF_INIT, out = STRBUF_INIT;
    char uid[16];
    struct book_pod *pod;
    const struct node_card *card;

    (void)snprintf(uid, sizeof(uid), "uid-%d", t);
    strbuf_addf(&ask,
                "{\"Pod\":{\"metadata\":{\"namespace\":\"n\",\"name\":\"p%d\",\"uid\":\"%s\"},"
                "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":"
                "{\"v/memory\":\"%u\"}}}]}},\"NodeNames\":[",
                t, uid, w->tasks[t].gpu_milli);
    for (int n = NODES; n-- > 0;)
        strbuf_addf(&ask, "\"%s\"%s", w->names[n], n ? "," : "]}");
    extender_filter(&w->extender, ask.data, ask.len, 1, &out);
    assert_non_null(strstr(out.data, "\"Error\":\"\""));
    pod = books_find_pod(w->extender.books, uid);
    assert_non_null(pod);
    if (!pod->node) {
        books_expire(w->extender.books, 2); /* as the watch would drop it */
        return -1;
    }
    pod->is_watched = true;
    card = &pod->node->cards.cards[pod->cards[0]];
    *ret_had = WHOLE - card->used_memory + w->tasks[t].gpu_milli;
    return find_node(w, pod->node->name);
}

/* One of those placed so far ends in both. */
static void end_one(struct world *w, int before)
{
    int t = (int)random_below(&w->random, (uint64_t)before);
    char key[16];

    if (w->node[t] < 0)
        return;
    (void)snprintf(key, sizeof(key), "n/p%d", t);
    books_remove_pod(w->extender.books, key);
    sched_drop(w->sim.sched, w->handles[t]);
    *w->taken[t] += w->tasks[t].gpu_milli;
    w->node[t] = -1;
}

static void check_policy(const char *policy)
{
    struct world *w = test_malloc(sizeof(*w));
    int placed = 0, refused = 0;

    world_init(w, policy);
    world_add_nodes(w);
    for (int t = 0; t < PODS; t++) {
        int64_t had = -1, has = -1;
        int in_books = place_in_books(w, t, &has);

        w->node[t] = place_in_sim(w, t, &had);
        if (w->node[t] != in_books || had != has)
            fail_msg("%s, pod %d: node %d, a card with %lld, not node %d with %lld", policy, t,
                     in_books, (long long)has, w->node[t], (long long)had);
        placed += in_books >= 0;
        refused += in_books < 0;
        if (t > PODS / 3 && t % 3 == 0)
            end_one(w, t);
    }
    assert_true(placed > 200 && refused > 50);
    world_done(w);
    test_free(w);
}

static void test_each_policy_places_as_sim_does(void **state)
{
    (void)state;
    check_policy("bin-packing");
    check_policy("high-performance");
    check_policy("fragmentation");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_policy_places_as_sim_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
