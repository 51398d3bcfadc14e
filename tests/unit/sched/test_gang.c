/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions whose kernels may be on several agents: near to each other, and within reach. */
#include "world.h"

#include <errno.h>

#include "sched/scheduler_internal.h"

/* ---- helpers ---- */

static void place_at(const char *id, const char *free, const char *topology, const char *network)
{
    struct sched_agent *a = agent(id, free);

    a->topology = topology;
    a->network = network;
}

static struct sched_session *gang(const char *request, int kernels)
{
    struct sched_session *s = session(request);

    for (int k = 1; k < kernels; k++)
        kernel(request);
    s->single_node = false;
    return s;
}

/* "a a b" */
static const char *agents_of(size_t n)
{
    static char text[512];
    const struct sched_outcome *o = outcome_of(n);
    size_t len = 0;

    text[0] = '\0';
    for (size_t k = 0; o && o->agents && k < world.sessions[n].kernel_count; k++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "",
                                world.agents[o->agents[k]].id);
    return text;
}

/* ---- near to each other ---- */

struct spot {
    const char *id, *free, *topology;
};

static const struct {
    const char *why;
    const struct selector_ops *selector;
    struct spot agents[6];
    int kernels; /* of cpu=1 */
    const char *want;
} tree_rows[] = {
    { "one agent that holds all, though another has less free",
      &sched_concentrated,
      { { "a", "cpu=1", NULL }, { "b", "cpu=8", NULL }, { "c", "cpu=3", NULL } },
      3,
      "c c c" },
    { "few agents: the largest, then the smallest that holds the rest",
      &sched_concentrated,
      { { "a", "cpu=1", NULL },
        { "b", "cpu=3", NULL },
        { "c", "cpu=4", NULL },
        { "d", "cpu=2", NULL } },
      6,
      "c c c c d d" },
    { "one switch",
      &sched_concentrated,
      { { "a", "cpu=2", "z/r1/s1" },
        { "b", "cpu=2", "z/r1/s2" },
        { "c", "cpu=2", "z/r2/s3" },
        { "d", "cpu=2", "z/r2/s3" } },
      4,
      "c c d d" },
    { "one rack, as neither agent nor switch has room",
      &sched_concentrated,
      { { "a", "cpu=3", "y/r1/s1" },
        { "b", "cpu=1", "z/r2/s2" },
        { "c", "cpu=3", "z/r2/s3" },
        { "d", "cpu=2", "z/r3/s1" } },
      4,
      "c c c b" },
    { "one zone, as no rack has room",
      &sched_concentrated,
      { { "a", "cpu=2", "z/r1/s1" },
        { "b", "cpu=1", "z/r2/s2" },
        { "c", "cpu=2", "z/r2/s3" },
        { "d", "cpu=3", "y/r1/s1" } },
      4,
      "a a c c" },
    { "of equal switches the one with the least room",
      &sched_concentrated,
      { { "a", "cpu=2", "s1" },
        { "b", "cpu=3", "s1" },
        { "c", "cpu=2", "s2" },
        { "d", "cpu=2", "s2" } },
      4,
      "c c d d" },
    { "parts are compared as parts",
      &sched_concentrated,
      { { "a", "cpu=2", "r/s" },
        { "b", "cpu=2", "r-1/s" },
        { "c", "cpu=2", "r/t" },
        { "d", "cpu=1", "r-1/t" } },
      4,
      "a a c c" },
    { "without a label in the root alone",
      &sched_concentrated,
      { { "a", "cpu=2", NULL },
        { "b", "cpu=2", NULL },
        { "c", "cpu=2", "s1" },
        { "d", "cpu=3", "s1" } },
      4,
      "d d d c" },
    { "spread within the switch",
      &sched_dispersed,
      { { "a", "cpu=8", "s1" }, { "b", "cpu=4", "s2" }, { "c", "cpu=4", "s2" } },
      2,
      "b c" },
    { "spread in a group without labels",
      &sched_dispersed,
      { { "a", "cpu=3", NULL }, { "b", "cpu=3", NULL }, { "c", "cpu=1", NULL } },
      3,
      "a b a" },
    { "agents with more than is asked for come last",
      &sched_concentrated,
      { { "a", "cpu=8 cuda.shares=1", NULL }, { "b", "cpu=1", NULL }, { "c", "cpu=1", NULL } },
      2,
      "b c" },
    { "all or nothing",
      &sched_concentrated,
      { { "a", "cpu=2", "s1" }, { "b", "cpu=2", "s2" } },
      5,
      "" },
};

static void test_tree(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(tree_rows); i++) {
        begin(&sched_fifo, tree_rows[i].selector);
        for (int a = 0; a < 6 && tree_rows[i].agents[a].id; a++)
            place_at(tree_rows[i].agents[a].id, tree_rows[i].agents[a].free,
                     tree_rows[i].agents[a].topology, NULL);
        (void)gang("cpu=1", tree_rows[i].kernels);
        run_at(0);
        assert_row(strcmp(agents_of(0), tree_rows[i].want) == 0, "%s: %s", tree_rows[i].why,
                   agents_of(0));
        end();
    }
}

/* Kernels that ask for different amounts. */
static void test_roles(void **state)
{
    struct sched_session *s;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    place_at("a", "cpu=4", "s1", NULL);
    place_at("b", "cpu=3", "s1", NULL);
    place_at("c", "cpu=9", "s2", NULL);
    s = gang("cpu=1", 3);
    kernel("cpu=4");
    s->single_node = false;
    run_at(0);
    assert_string_equal(agents_of(0), "c c c c");
    end();

    /* the small ones must leave an agent to the large one */
    begin(&sched_fifo, &sched_concentrated);
    place_at("a", "cpu=5", "s1", NULL);
    place_at("b", "cpu=2", "s1", NULL);
    (void)gang("cpu=1", 2);
    kernel("cpu=5");
    run_at(0);
    assert_string_equal(agents_of(0), "b b a");
    end();
}

/* A preference counts more than nearness, a command more than both. */
static void test_preferences(void **state)
{
    static const char *const named[] = { "a", "b" };

    (void)state;
    for (int row = 0; row < 3; row++) {
        struct sched_session *s;

        begin(&sched_fifo, &sched_concentrated);
        place_at("a", "cpu=2", "s1", NULL);
        place_at("b", "cpu=2", "s2", NULL);
        place_at("c", "cpu=8", "s3", NULL);
        s = gang("cpu=1", row == 2 ? 5 : 3);
        s->designated = named;
        s->designated_count = 2;
        s->designated_strict = row == 0;
        run_at(0);
        assert_row(strcmp(agents_of(0), row == 2 ? "a a b b c" : "a a b") == 0
                       || strcmp(agents_of(0), "c c c c c") == 0,
                   "row %d: %s", row, agents_of(0));
        end();
    }
}

/* A session that is told a time has it in one switch, too. */
static void test_backfill(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    place_at("a", "cpu=0", "s1", NULL);
    place_at("b", "cpu=2", "s2", NULL);
    place_at("c", "cpu=0", "s2", NULL);
    place_at("d", "cpu=2", "s3", NULL);
    (void)runs("a", "cpu=2", 0, 100);
    (void)runs("c", "cpu=2", 0, 100);
    for (int i = 0; i < 2; i++)
        (void)runs(i ? "b" : "d", "cpu=1", 0, 1000);
    gang("cpu=1", 4)->lifetime_usec = 1000 * USEC_PER_SEC;
    session("cpu=2")->lifetime_usec = 10 * USEC_PER_SEC;
    run_at(10);
    assert_int_equal(outcome_of(0)->verdict, SCHED_PLACED);
    assert_string_equal(agents_of(0), "b b d d");
    end();

    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    place_at("a", "cpu=1", "s1", NULL);
    place_at("b", "cpu=2", "s2", NULL);
    place_at("c", "cpu=0", "s2", NULL);
    (void)runs("c", "cpu=2", 0, 100);
    (void)session("cpu=3"); /* without room: from here on all are planned */
    gang("cpu=1", 4)->lifetime_usec = 1000 * USEC_PER_SEC;
    /* would end after the gang's start: one agent outside the switch is left to it */
    session("cpu=1")->lifetime_usec = 1000 * USEC_PER_SEC;
    session("cpu=1")->lifetime_usec = 1000 * USEC_PER_SEC;
    run_at(10);
    assert_int_equal(outcome_of(1)->verdict, SCHED_NO_ROOM);
    assert_int_equal(outcome_of(1)->starts_usec, 100 * USEC_PER_SEC);
    assert_string_equal(place_of(2), "a");
    assert_int_equal(outcome_of(3)->verdict, SCHED_NO_ROOM);
    end();
}

/* ---- within reach ---- */

static struct sched_pair pairs[64];

static void cut(const char *a, const char *b)
{
    pairs[world.snap.unreachable_count++] = (struct sched_pair){ a, b };
    world.snap.unreachable = pairs;
}

static const char *why(uint32_t n)
{
    static char text[4096];
    struct strbuf buf = STRBUF_INIT;

    world.snap.types = world.types;
    assert_true(sched_explain(&world.snap, n, &world.arena, &buf, NULL, NULL) >= 0);
    (void)snprintf(text, sizeof(text), "%s", buf.data);
    strbuf_done(&buf);
    return text;
}

static const struct {
    const char *why;
    struct {
        const char *id, *free, *network;
    } agents[6];
    const char *cuts[6][2];
    int kernels; /* of cpu=1 */
    const char *want;
    enum sched_verdict verdict;
    const char *explanation;
} reach_rows[] = {
    { "one agent needs no network",
      { { "a", "cpu=4", NULL } },
      { { NULL } },
      4,
      "a a a a",
      SCHED_PLACED,
      "There is room" },
    { "agents without a network are not combined",
      { { "a", "cpu=2", NULL }, { "b", "cpu=2", NULL } },
      { { NULL } },
      4,
      "",
      SCHED_NO_CAPACITY,
      "agent a has no network between nodes (see agent info)" },
    { "nor are classes",
      { { "a", "cpu=2", "v" }, { "b", "cpu=2", "w" } },
      { { NULL } },
      4,
      "",
      SCHED_NO_CAPACITY,
      "agents a and b have different networks between nodes (v and w)" },
    { "the class that has room",
      { { "a", "cpu=3", "v" },
        { "b", "cpu=2", "w" },
        { "c", "cpu=2", "w" },
        { "d", "cpu=3", NULL } },
      { { NULL } },
      4,
      "b b c c",
      SCHED_PLACED,
      NULL },
    { "a broken pair is avoided",
      { { "a", "cpu=3", "v" }, { "b", "cpu=3", "v" }, { "c", "cpu=3", "v" } },
      { { "a", "b" } },
      5,
      "a a a c c",
      SCHED_PLACED,
      NULL },
    { "the largest agent reaches nobody",
      { { "a", "cpu=3", "v" }, { "b", "cpu=2", "v" }, { "c", "cpu=2", "v" } },
      { { "a", "b" }, { "a", "c" } },
      4,
      "b b c c",
      SCHED_PLACED,
      NULL },
    { "two halves, of which the one with the smaller agents has room",
      { { "a", "cpu=3", "v" },
        { "b", "cpu=1", "v" },
        { "c", "cpu=2", "v" },
        { "d", "cpu=2", "v" },
        { "e", "cpu=1", "v" } },
      { { "a", "c" }, { "a", "d" }, { "b", "c" }, { "b", "d" }, { "a", "e" }, { "b", "e" } },
      5,
      "c c d d e",
      SCHED_PLACED,
      NULL },
    { "two halves, neither with room",
      { { "a", "cpu=2", "v" },
        { "b", "cpu=2", "v" },
        { "c", "cpu=2", "v" },
        { "d", "cpu=2", "v" } },
      { { "a", "c" }, { "a", "d" }, { "b", "c" }, { "b", "d" } },
      5,
      "",
      SCHED_NO_ROOM,
      "agents a and c cannot reach each other over the network between nodes" },
};

static void test_reach(void **state)
{
    static const struct selector_ops *const selectors[] = { &sched_concentrated, &sched_dispersed };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(reach_rows); i++)
        for (int spreads = 0; spreads < 2; spreads++) {
            begin(&sched_fifo, selectors[spreads]);
            for (int a = 0; a < 6 && reach_rows[i].agents[a].id; a++)
                place_at(reach_rows[i].agents[a].id, reach_rows[i].agents[a].free, NULL,
                         reach_rows[i].agents[a].network);
            for (size_t a = 0; a < world.snap.agent_count; a++)
                world.agents[a].capacity = world.agents[a].free;
            for (int k = 0; k < 6 && reach_rows[i].cuts[k][0]; k++)
                cut(reach_rows[i].cuts[k][0], reach_rows[i].cuts[k][1]);
            gang("cpu=1", reach_rows[i].kernels)->needs_network = true;
            run_at(0);
            assert_row(outcome_of(0)->verdict == reach_rows[i].verdict, "%s: %s", reach_rows[i].why,
                       sched_verdict_name(outcome_of(0)->verdict));
            if (!spreads)
                assert_row(strcmp(agents_of(0), reach_rows[i].want) == 0, "%s: %s",
                           reach_rows[i].why, agents_of(0));
            if (reach_rows[i].explanation)
                assert_row(strstr(why(0), reach_rows[i].explanation) != NULL, "%s: %s",
                           reach_rows[i].why, why(0));
            end();
        }
}

/* A pair that reaches each other again lets in what waits; the pair outlives changes of agents. */
static void test_reach_changes(void **state)
{
    struct sched_session *s;
    struct sched_result result;
    uint32_t handle;
    struct sched *sched;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    place_at("a", "cpu=2", NULL, "v");
    place_at("b", "cpu=2", NULL, "v");
    s = gang("cpu=1", 4);
    s->needs_network = true;
    sched = sched_new(world.types, &world.snap.options);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sched_set_agent(sched, &world.agents[i], NULL), 0);
    assert_int_equal(sched_set_unreachable(sched, "a", "x", true), -ENOENT);
    assert_int_equal(sched_set_unreachable(sched, "a", "b", true), 0);
    assert_int_equal(sched_set_unreachable(sched, "b", "a", true), 0);
    assert_int_equal(sched_set_agent(sched, &world.agents[1], NULL), 0);
    assert_int_equal(sched_add(sched, s, &handle, NULL), 0);
    sched_pass(sched, 0, &world.arena, &result);
    assert_int_equal(result.outcomes[0].verdict, SCHED_NO_ROOM);
    assert_int_equal(sched_set_unreachable(sched, "b", "a", false), 0);
    sched_pass(sched, 1, &world.arena, &result);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.outcomes[0].verdict, SCHED_PLACED);
    sched_free(sched);
    end();
}

/* Whom others leave for is within reach as well: by preemption and by time. */
static void test_reach_of_others(void **state)
{
    (void)state;
    for (int row = 0; row < 2; row++) {
        begin(&sched_fifo, &sched_concentrated);
        world.snap.options.preemption.enabled = row == 0;
        world.snap.options.backfill = row == 1;
        place_at("a", "cpu=0", NULL, "v");
        place_at("b", "cpu=0", NULL, "v");
        place_at("c", "cpu=0", NULL, "v");
        cut("a", "b");
        for (int i = 0; i < 3; i++) {
            struct sched_session *r = runs((const char *[]){ "a", "b", "c" }[i], "cpu=2", 0,
                                           100 + 100 * i);

            r->is_preemptible = true;
        }
        gang("cpu=2", 2)->needs_network = true;
        world.sessions[0].job_priority = 1;
        run_at(10);
        if (row == 0) {
            assert_int_equal(outcome_of(0)->verdict, SCHED_PREEMPTING);
            assert_true(strcmp(agents_of(0), "a c") == 0 || strcmp(agents_of(0), "c a") == 0);
        } else {
            assert_int_equal(outcome_of(0)->starts_usec, 300 * USEC_PER_SEC);
        }
        end();
    }
}

/* ---- whatever the agents ---- */

/* Placements at random hold what they must: all or nothing, and only agents that reach each other;
 * the same input gives the same places; what a search over all sets of agents finds is found.
 */
static bool could_be_placed(const struct sched_snapshot *snap, int kernels)
{
    for (unsigned set = 1; set < 1u << snap->agent_count; set++) {
        int64_t room = 0;
        bool is_connected = true;

        for (size_t a = 0; a < snap->agent_count; a++) {
            if (!(set >> a & 1))
                continue;
            room += snap->agents[a].free->items[0].amount / AMOUNT_ONE;
            for (size_t b = 0; b < a; b++) {
                if (!(set >> b & 1))
                    continue;
                is_connected = is_connected && snap->agents[a].network && snap->agents[b].network
                               && strcmp(snap->agents[a].network, snap->agents[b].network) == 0;
                for (size_t p = 0; p < snap->unreachable_count; p++)
                    if ((pairs[p].a == snap->agents[a].id && pairs[p].b == snap->agents[b].id)
                        || (pairs[p].a == snap->agents[b].id && pairs[p].b == snap->agents[a].id))
                        is_connected = false;
            }
        }
        if (is_connected && room >= kernels)
            return true;
    }
    return false;
}

static void test_random(void **state)
{
    static const char *const labels[] = { NULL, "z/r1", "z/r2", "y/r1" };
    static const char *const networks[] = { NULL, "v", "v", "v", "w" };
    static const char *const amounts[] = { "cpu=1", "cpu=2", "cpu=3", "cpu=4" };

    (void)state;
    for (unsigned seed = 1; seed <= 400; seed++) {
        int kernels;
        char first[512];

        srand(seed);
        begin(&sched_fifo, seed % 2 ? &sched_concentrated : &sched_dispersed);
        for (int a = 0; a < 8; a++) {
            char id[] = { (char)('a' + a), '\0' };

            place_at(id, amounts[rand() % 4], labels[rand() % 4], networks[rand() % 5]);
        }
        for (int p = rand() % 20; p > 0; p--) {
            int a = rand() % 8, b = rand() % 8;

            if (a != b)
                cut(world.ids[a], world.ids[b]);
        }
        kernels = 2 + rand() % 10;
        gang("cpu=1", kernels)->needs_network = true;
        run_at(0);
        assert_row((outcome_of(0)->verdict == SCHED_PLACED)
                       == could_be_placed(&world.snap, kernels),
                   "seed %u: %s", seed, sched_verdict_name(outcome_of(0)->verdict));
        for (int k = 1; outcome_of(0)->agents && k < kernels; k++)
            for (int other = 0; other < k; other++) {
                const struct sched_agent *x = &world.agents[outcome_of(0)->agents[k]];
                const struct sched_agent *y = &world.agents[outcome_of(0)->agents[other]];

                if (x == y)
                    continue;
                assert_non_null(x->network);
                assert_string_equal(x->network, y->network);
                for (size_t p = 0; p < world.snap.unreachable_count; p++)
                    assert_false((pairs[p].a == x->id && pairs[p].b == y->id)
                                 || (pairs[p].a == y->id && pairs[p].b == x->id));
            }
        (void)snprintf(first, sizeof(first), "%s", agents_of(0));
        run_at(0);
        assert_string_equal(agents_of(0), first);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_preferences),
        cmocka_unit_test(test_backfill),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_reach_changes),
        cmocka_unit_test(test_reach_of_others),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
