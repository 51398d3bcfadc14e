/* SPDX-License-Identifier: Apache-2.0 */
/* Where sessions go: devices one by one, selectors, constraints, placement groups; queues of twenty. */
#include "world.h"

#include "sched/fragmentation.h"

static const char *const cuda_first[] = { "cuda", "cpu", "mem" };

static void prefer_devices(void)
{
    world.snap.options.slot_priority = cuda_first;
    world.snap.options.slot_priority_count = AQ_COUNT(cuda_first);
}

/* ---- devices ---- */

static const struct {
    const char *name, *request;
    double free[4];
    bool may_split, fits;
} device_rows[] = {
    { "half on a half", "cuda.shares=0.5", { .5, 0, 0, 0 }, false, true },
    { "1.0 free, but in parts", "cuda.shares=0.5", { .4, .3, .3, 0 }, false, false },
    { "the same, divided", "cuda.shares=0.5", { .4, .3, .3, 0 }, true, true },
    { "unequal parts", "cuda.shares=0.4", { .3, .1, 0, 0 }, true, true },
    { "the same, not asked for", "cuda.shares=0.4", { .3, .1, 0, 0 }, false, false },
    { "all that there is", "cuda.shares=1", { .5, .3, .15, .05 }, true, true },
    { "a little more", "cuda.shares=1", { .5, .3, .15, .04 }, true, false },
    { "unequal parts of more than one device", "cuda.shares=1.4", { 1, .4, 0, 0 }, true, true },
    { "1.2 as 0.6 + 0.6", "cuda.shares=1.2", { .6, .6, 0, 0 }, false, true },
    { "1.2, one has 0.5", "cuda.shares=1.2", { .6, .5, .5, .5 }, false, false },
    { "1.2, divided by three", "cuda.shares=1.2", { .6, .5, .5, .5 }, true, true },
    { "two whole ones", "cuda.shares=2", { 1, 1, .9, .9 }, false, true },
    { "two of three nearly whole", "cuda.shares=2", { .9, .9, .9, .9 }, false, false },
    { "more than there are", "cuda.shares=5", { 1, 1, 1, 1 }, true, false },
    { "none asked for", "cpu=1", { 0, 0, 0, 0 }, false, true },
};

static void test_devices(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(device_rows); i++) {
        double sum = 0;
        char text[64];

        begin(&sched_fifo, &sched_concentrated);
        for (int d = 0; d < 4; d++)
            sum += device_rows[i].free[d];
        (void)snprintf(text, sizeof(text), "cpu=8 cuda.shares=%.3f", sum);
        (void)agent("i-1", text);
        devices("A100", 4, device_rows[i].free);
        session(device_rows[i].request)->may_split = device_rows[i].may_split;
        run_at(0);
        assert_row((*place_of(0) != '\0') == device_rows[i].fits, "%s", device_rows[i].name);
        end();
    }
}

/* Who may be split is where no device has room, and only there. */
static void test_split_last(void **state)
{
    static const struct selector_ops *const selectors[] = {
        &sched_concentrated, &sched_dispersed,        &sched_legacy,
        &sched_bin_packing,  &sched_high_performance, &sched_fragmentation,
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(selectors) * 2; i++) {
        begin(&sched_fifo, selectors[i / 2]);
        world.snap.options.backfill = i % 2;
        (void)agent("i-1", "cpu=8 cuda.shares=0.6");
        DEVICES("T4", .3, .3);
        (void)agent("i-2", "cpu=8 cuda.shares=1");
        DEVICES("T4", 1, 0);
        (void)agent("i-3", "cpu=8 cuda.shares=1.6");
        DEVICES("T4", .3, .3, .3, .3, .1, .1, .1, .1);
        for (int n = 0; n < 3; n++)
            session("cuda.shares=0.6")->may_split = true;
        (void)session("cuda.shares=0.4");
        run_at(0);
        assert_row(strcmp(place_of(0), "i-2") == 0, "%zu: %s", i, places());
        assert_row(place_of(1)[0] && place_of(2)[0] && strcmp(place_of(1), "i-2") != 0
                       && strcmp(place_of(2), "i-2") != 0,
                   "%zu: %s", i, places());
        assert_row(strcmp(place_of(3), "i-2") == 0, "%zu: %s", i, places());
        end();
    }
}

/* Parts are multiples of the quantum: of 0.35 and 0.25 half a device is all there is. */
static void test_split_quantum(void **state)
{
    static const struct {
        const char *request;
        bool fits;
    } rows[] = { { "cuda.shares=0.5", true },
                 { "cuda.shares=0.6", false },
                 { "cuda.shares=0.45", false } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        begin(&sched_fifo, &sched_concentrated);
        (void)agent("i-1", "cpu=8 cuda.shares=0.6");
        DEVICES("T4", .35, .25);
        world.devices[0][0].quantum = world.devices[0][1].quantum = AMOUNT_ONE / 10;
        session(rows[i].request)->may_split = true;
        run_at(0);
        assert_row((*place_of(0) != '\0') == rows[i].fits, "%s", rows[i].request);
        end();
    }
}

static void test_models(void **state)
{
    static const char *const want[] = { "A100", "H100" }, *const missing[] = { "B200" };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-1", "cpu=8 cuda.shares=1");
    DEVICES("T4", 1);
    (void)agent("i-2", "cpu=8 cuda.shares=1");
    DEVICES("H100", 1);
    session("cuda.shares=1")->models = want;
    world.sessions[0].model_count = 2;
    session("cuda.shares=1")->models = missing;
    world.sessions[1].model_count = 1;
    run_at(0);
    assert_string_equal(places(), "i-2 -");
    end();
}

static void test_bad_devices(void **state)
{
    struct aq_error err = { 0 };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-1", "cuda.shares=1");
    DEVICES("T4", 1.5);
    world.snap.types = world.types;
    assert_int_equal(sched_run(&world.snap, &world.arena, &world.result, &err), -22);
    assert_string_equal(err.field, "devices");
    end();
}

/* Devices of different quanta: the largest that divides the amount and has room
 * gives all of it. The last of each row finds no room.
 */
static void test_quanta(void **state)
{
    static const char *const rows[][8] = {
        /* of a coarse one, all of the fuller fine one, both coarse ones, the other fine one */
        { "0.25", "0.6", "1.5", "0.5", "0.3", "0.25", "0.2", "0.1" },
        { "0.25", "0.6", "1.5", "0.5", "0.75" }, /* 0.75 are left, but in three pieces */
        { "0.25", "0.6", "1.5", "0.8", "0.4" },  /* 0.45 are left, no two tenths of them together */
    };

    (void)state;
    for (size_t r = 0; r < AQ_COUNT(rows); r++) {
        uint32_t count = 0;

        begin(&sched_fifo, &sched_concentrated);
        (void)agent("i-1", "cpu=99 cuda.shares=3.6");
        DEVICES("T4", .6, 1, 1, 1);
        for (size_t d = 0; d < 4; d++)
            world.devices[0][d].quantum = d == 0 || d == 3 ? 100000 : 250000;
        for (; count < 8 && rows[r][count]; count++) {
            char text[32];

            (void)snprintf(text, sizeof(text), "cuda.shares=%s", rows[r][count]);
            (void)session(text);
        }
        run_at(0);
        for (uint32_t i = 0; i < count; i++)
            assert_row(strcmp(place_of(i), i + 1 < count ? "i-1" : "") == 0, "%zu: %s", r,
                       rows[r][i]);
        end();
    }
}

/* What no device divides waits, and it says why. */
static void test_quantum_explained(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-1", "cpu=8 cuda.shares=2");
    DEVICES("T4", 1, 1);
    world.devices[0][0].quantum = 250000;
    world.devices[0][1].quantum = 100000;
    (void)session("cuda.shares=0.15");
    world.snap.types = world.types;
    assert_int_equal(sched_explain(&world.snap, 0, &world.arena, &text, NULL, NULL), SCHED_NO_ROOM);
    assert_non_null(strstr(text.data, "cuda.shares: 0.15 is no multiple of 0.1, the smallest part "
                                      "of a device on i-1"));
    end();
}

#define ALLOW                                                                 \
    " is free on its devices together: allow splitting with --resource-opts " \
    "allow_fractional_resource_fragmentation=yes\n"

/* What is short is said of the device, not of the sum. */
static void test_devices_explained(void **state)
{
    static const struct {
        const char *request;
        double free[4];
        bool may_split;
        const char *says;
    } rows[] = {
        { "cuda.shares=0.4",
          { .3, .3 },
          false,
          "0.1 missing on i-1: needs 0.4 of one device; the most that is free on one is 0.3 (gpu-0); "
          "0.6" ALLOW },
        { "cuda.shares=0.4",
          { .1, .2 },
          false,
          "0.2 missing on i-1: needs 0.4 of one device; the most that is free on one is 0.2 "
          "(gpu-1)\n" },
        { "cuda.shares=0.4",
          { .1, .2 },
          true,
          "0.1 missing on i-1: needs 0.4, also in parts; 0.3 is free on its 2 devices together\n" },
        { "cuda.shares=0.4",
          { 0, 0 },
          false,
          "0.4 missing on i-1: needs 0.4 of one device; nothing is free on any of 2\n" },
        { "cuda.shares=1.4",
          { .7, .5, .4 },
          false,
          "0.2 missing on i-1: needs 0.7 of each of 2 devices; 1 of 3 has as much free, the next "
          "has 0.5 (gpu-1); 1.6" ALLOW },
        { "cuda.shares=2", { .9, 1, .3 }, false, "needs 2 whole devices; 1 of 3 is free\n" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        static const char *const ids[] = { "gpu-0", "gpu-1", "gpu-2", "gpu-3" };
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        double sum = 0;
        size_t count = 0;
        char free[64];

        begin(&sched_fifo, &sched_concentrated);
        for (size_t d = 0; d < 4; d++) {
            sum += rows[i].free[d];
            count += rows[i].free[d] > 0;
        }
        (void)snprintf(free, sizeof(free), "cpu=8 cuda.shares=%.3f", sum);
        (void)agent("i-1", free);
        devices("T4", AQ_MAX(count, 2), rows[i].free);
        for (size_t d = 0; d < 4; d++)
            world.devices[0][d].id = ids[d];
        (void)agent("i-2", "cpu=8");
        session(rows[i].request)->may_split = rows[i].may_split;
        world.snap.types = world.types;
        assert_true(sched_explain(&world.snap, 0, &world.arena, &text, NULL, NULL) > SCHED_PLACED);
        strbuf_addc(&text, '\n');
        assert_row(strstr(text.data, rows[i].says) != NULL, "%zu: %s", i, text.data);
        end();
    }
}

/* The agent whose devices lack least is named, not the one with the largest sum. */
static void test_nearest_by_devices(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-1", "cpu=8 cuda.shares=1.2");
    DEVICES("T4", .3, .3, .3, .3);
    (void)agent("i-2", "cpu=8 cuda.shares=0.35");
    DEVICES("T4", .35);
    (void)session("cuda.shares=0.4");
    world.snap.types = world.types;
    (void)sched_explain(&world.snap, 0, &world.arena, &text, NULL, NULL);
    assert_non_null(strstr(text.data, "cuda.shares: 0.05 missing on i-2: needs 0.4 of one device"));
    end();
}

/* What the search is limited to. */
static void test_limits_explained(void **state)
{
    static const char *const named[] = { "i-1", "i-9" };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-1", "cpu=1");
    (void)agent("i-2", "cpu=8");
    (void)session("cpu=4");
    world.sessions[0].designated = named;
    world.sessions[0].designated_count = 2;
    world.sessions[0].designated_strict = true;
    world.snap.types = world.types;
    (void)sched_explain(&world.snap, 0, &world.arena, &text, NULL, NULL);
    assert_non_null(strstr(text.data, "only agents that it names count: i-1, i-9"));
    assert_non_null(strstr(text.data, "cpu: 3 missing on i-1: needs 4, 1 is free"));
    end();

    strbuf_clear(&text);
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-1", "cpu=8 cuda.shares=1");
    DEVICES("T4", 1);
    (void)session("cuda.shares=0.6");
    kernel("cuda.shares=0.6");
    world.sessions[0].single_node = false;
    world.snap.types = world.types;
    (void)sched_explain(&world.snap, 0, &world.arena, &text, NULL, NULL);
    assert_row(strstr(text.data, "amounts are what its other containers would leave") != NULL, "%s",
               text.data);
    assert_non_null(strstr(text.data, "0.2 missing on i-1: needs 0.6 of one device; the most that "
                                      "is free on one is 0.4"));
    end();
}

/* ---- selectors, twenty sessions each ---- */

static void four_gpu_agents(void)
{
    for (int i = 1; i <= 3; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "i-%d", i);
        (void)agent(id, i == 3 ? "cpu=16 mem=4096" : "cpu=16 mem=4096 cuda.shares=4");
        if (i < 3)
            DEVICES("T4", 1, 1, 1, 1);
    }
}

/* GPU work 0.5 each, cpu work 1 core each, in turn. */
static void twenty(const struct selector_ops *selector)
{
    begin(&sched_fifo, selector);
    prefer_devices();
    four_gpu_agents();
    for (int i = 0; i < 20; i++)
        (void)session(i % 2 ? "cpu=1 mem=1" : "cpu=1 mem=1 cuda.shares=0.5");
    run_at(0);
}

static void test_selectors_twenty(void **state)
{
    static const struct {
        const struct selector_ops *selector;
        const char *places;
    } rows[] = {
        /* GPU work fills i-1 (8 halves), then i-2; the rest stays off GPUs, until those of
         * i-1 are used up: then it is the fuller one (8 cores left, i-3 has 9)
         */
        { &sched_concentrated, "i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-1 "
                               "i-2 i-1 i-2 i-1" },
        /* in turn over both GPU agents; the rest still stays off them */
        { &sched_dispersed, "i-1 i-3 i-2 i-3 i-1 i-3 i-2 i-3 i-1 i-3 i-2 i-3 i-1 i-3 i-2 i-3 "
                            "i-1 i-3 i-2 i-3" },
        { &sched_legacy, "i-1 i-3 i-2 i-3 i-1 i-3 i-2 i-3 i-1 i-3 i-2 i-3 i-1 i-3 i-2 i-3 "
                         "i-1 i-3 i-2 i-3" },
        /* the next that has room, by id; i-1's GPUs are used up after eight */
        { &sched_round_robin, "i-1 i-2 i-1 i-2 i-1 i-2 i-1 i-2 i-1 i-2 i-1 i-2 i-1 i-2 i-1 i-2 "
                              "i-2 i-3 i-2 i-3" },
        /* the fullest device; without devices off them */
        { &sched_bin_packing, "i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 "
                              "i-2 i-3 i-2 i-3" },
        /* the emptiest: every device gets a half before any gets two */
        { &sched_high_performance, "i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 i-2 i-3 i-2 i-3 i-2 i-3 "
                                   "i-2 i-3 i-1 i-3 i-1 i-3" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        twenty(rows[i].selector);
        assert_row(strcmp(places(), rows[i].places) == 0, "%zu: %s", i, places());
        end();
    }
}

/* Nothing is known of the mix yet. A half opens a device as long as whole ones are there (100 for
 * one that is in use, less than 66 lost of the whole ones), of the agent with fewest of them; then
 * it fills those in use. The rest stays off GPUs.
 */
static void test_fragmentation_twenty(void **state)
{
    (void)state;
    twenty(&sched_fragmentation);
    assert_string_equal(places(), "i-1 i-3 i-1 i-3 i-1 i-3 i-1 i-3 i-2 i-3 i-2 i-3 i-2 i-3 i-2 i-3 "
                                  "i-1 i-3 i-1 i-3");
    end();
}

/* Alnair's example: A {24,0} and B {8,8} of 32 GiB used; 8 GiB: packing takes
 * A's first device, performance its second; 30 GiB only fits A's second.
 */
/* Where sessions come and leave, work that needs much CPU goes to the agent that
 * is in use, so that the other is there for a session that wants all of it. Where nobody leaves it goes
 * to the empty one, as its CPU is what that agent has too much of.
 */
static void test_kept_together(void **state)
{
    (void)state;
    for (int leaving = 0; leaving < 2; leaving++) {
        struct sched *s;
        struct sched_result result;
        uint32_t handle, used;

        begin(&sched_fifo, &sched_fragmentation);
        (void)agent("empty", "cpu=64 cuda.shares=4");
        DEVICES("T4", 1, 1, 1, 1);
        (void)agent("used", "cpu=34 cuda.shares=4");
        DEVICES("T4", 1, 1, 1, 1);
        (void)session("cpu=8 cuda.shares=1");
        (void)session("cpu=40 cuda.shares=4");
        (void)session("cpu=16 cuda.shares=1");
        s = sched_new(world.types, &world.snap.options);
        for (int i = 0; i < 2; i++)
            assert_int_equal(sched_set_agent(s, &world.agents[i], NULL), 0);
        for (int i = 0; i < 400; i++) {
            struct sched_session one = world.sessions[i % 10 == 9];

            one.row = i + 100;
            assert_int_equal(sched_add(s, &one, &handle, NULL), 0);
            if (leaving)
                sched_pass(s, 0, &world.arena, &result);
            sched_drop(s, handle);
        }
        assert_int_equal(sched_add(s, &world.sessions[2], &used, NULL), 0);
        sched_pass(s, 0, &world.arena, &result);
        assert_int_equal(result.outcomes[0].agents[0], leaving);
        sched_free(s);
        end();
    }
}

static void test_alnair(void **state)
{
    static const struct {
        const struct selector_ops *selector;
        const char *request, *place;
        uint32_t device;
    } rows[] = {
        { &sched_bin_packing, "cuda.shares=0.25", "a", 0 },
        { &sched_high_performance, "cuda.shares=0.25", "a", 1 },
        { &sched_bin_packing, "cuda.shares=0.9375", "a", 1 },
        { &sched_high_performance, "cuda.shares=0.9375", "a", 1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct sched *s;
        struct sched_result result;
        uint32_t handle;

        begin(&sched_fifo, rows[i].selector);
        (void)agent("a", "cuda.shares=1.25");
        DEVICES("T4", .25, 1);
        (void)agent("b", "cuda.shares=1.5");
        DEVICES("T4", .75, .75);
        (void)session(rows[i].request);
        s = sched_new(world.types, &world.snap.options);
        for (int a = 0; a < 2; a++)
            assert_int_equal(sched_set_agent(s, &world.agents[a], NULL), 0);
        assert_int_equal(sched_add(s, &world.sessions[0], &handle, NULL), 0);
        sched_pass(s, 0, &world.arena, &result);
        assert_int_equal(result.outcomes[0].agents[0], rows[i].place[0] - 'a');
        assert_int_equal(result.outcomes[0].chosen[0].count, 1);
        assert_int_equal(result.outcomes[0].chosen[0].parts[0].device, rows[i].device);
        sched_free(s);
        end();
    }
}

/* "1 - 0": of each kernel that was placed, in order, the device that was chosen. */
static const char *chosen_devices(void)
{
    static char text[256];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < world.snap.session_count; i++) {
        const struct sched_outcome *o = outcome_of(i);

        for (size_t k = 0; o->verdict == SCHED_PLACED && k < world.sessions[i].kernel_count; k++)
            len += (size_t)(o->chosen[k].count == 0
                                ? snprintf(text + len, sizeof(text) - len, "%s-", len ? " " : "")
                                : snprintf(text + len, sizeof(text) - len, "%s%u", len ? " " : "",
                                           (unsigned)o->chosen[k].parts[0].device));
    }
    return text;
}

/* The device is told where a selection chose it for all of an amount; of equal ones it is the first. */
static void test_chosen_devices(void **state)
{
    static const struct {
        const char *name;
        const struct selector_ops *selector;
        double free[4];
        const char *requests[4]; /* '+' is a kernel more */
        const char *devices;
        bool backfill, may_split;
    } rows[] = {
        { "the fullest first",
          &sched_bin_packing,
          { 1, .4, .6, 1 },
          { "cuda.shares=0.4", "cuda.shares=0.5", "cuda.shares=0.7", "cuda.shares=0.3" },
          "1 2 0 0",
          false,
          false },
        { "the emptiest first",
          &sched_high_performance,
          { .5, 1, .8, 1 },
          { "cuda.shares=0.3", "cuda.shares=0.3", "cuda.shares=0.3", "cuda.shares=0.6" },
          "1 3 2 1",
          false,
          false },
        { "the same with a plan",
          &sched_high_performance,
          { .5, 1, .8, 1 },
          { "cuda.shares=0.3", "cuda.shares=0.3", "cuda.shares=0.3", "cuda.shares=0.6" },
          "1 3 2 1",
          true,
          false },
        { "as long as there are whole ones, one of these",
          &sched_fragmentation,
          { 1, .5, .3, 1 },
          { "cuda.shares=0.3", "cuda.shares=0.5" },
          "0 3",
          false,
          false },
        { "several devices, in equal parts or in unequal ones",
          &sched_bin_packing,
          { 1, 1, .3, .2 },
          { "cuda.shares=1.2", "cuda.shares=0.5", "cuda.shares=0.4" },
          "- - 1",
          false,
          true },
        { "no device is asked for",
          &sched_high_performance,
          { 1, 1, 1, 1 },
          { "cpu=1" },
          "-",
          false,
          false },
        { "kernels on one agent, all from one device",
          &sched_high_performance,
          { .4, .9, 1, .7 },
          { "cuda.shares=0.3", "+cuda.shares=0.3", "+cpu=1" },
          "2 2 2",
          false,
          false },
        { "agents are compared, not devices",
          &sched_concentrated,
          { 1, .5, .3, 1 },
          { "cuda.shares=0.3", "cuda.shares=0.5" },
          "- -",
          false,
          false },
        { "agents take turns",
          &sched_round_robin,
          { 1, .5, .3, 1 },
          { "cuda.shares=0.3" },
          "-",
          false,
          false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        double sum = 0;
        char free[64];

        begin(&sched_fifo, rows[i].selector);
        world.snap.options.backfill = rows[i].backfill;
        for (int d = 0; d < 4; d++)
            sum += rows[i].free[d];
        (void)snprintf(free, sizeof(free), "cpu=8 cuda.shares=%g", sum);
        (void)agent("a", free);
        devices("T4", 4, rows[i].free);
        for (size_t r = 0; r < 4 && rows[i].requests[r]; r++) {
            if (rows[i].requests[r][0] == '+')
                kernel(rows[i].requests[r] + 1);
            else
                session(rows[i].requests[r])->may_split = rows[i].may_split;
        }
        run_at(0);
        assert_row(strcmp(chosen_devices(), rows[i].devices) == 0, "%s: %s", rows[i].name,
                   chosen_devices());
        end();
    }
}

/* The kernels of a cluster are on different agents, each with a device of its own agent. */
static void test_chosen_devices_of_a_cluster(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_bin_packing);
    (void)agent("a", "cuda.shares=1.2");
    DEVICES("T4", .5, .7);
    (void)agent("b", "cuda.shares=1.6");
    DEVICES("T4", .8, .8);
    (void)session("cuda.shares=0.7");
    kernel("cuda.shares=0.8");
    kernel("cuda.shares=0.5");
    world.sessions[0].single_node = false;
    run_at(0);
    assert_string_equal(chosen_devices(), "1 0 0");
    assert_int_equal(outcome_of(0)->agents[0], 0);
    assert_int_equal(outcome_of(0)->agents[1], 1);
    assert_int_equal(outcome_of(0)->agents[2], 0);
    end();
}

/* What the placements of a pass were chosen from. */
static void test_choices(void **state)
{
    const char *first;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.choices_max = 2;
    (void)agent("a", "cpu=2");
    (void)agent("b", "cpu=4");
    (void)agent("c", "cpu=4");
    (void)agent("d", "cpu=8");
    (void)agent("e", "cpu=1");
    (void)session("cpu=2");
    (void)session("cpu=3");
    kernel("cpu=6"); /* no agent holds both */
    world.sessions[1].single_node = false;
    (void)session("cpu=100");
    run_at(0);
    assert_string_equal(
        outcome_of(0)->choices,
        "[{\"selection\":\"concentrated\",\"with_room\":4,\"without_room\":1,"
        "\"ranked\":true,\"best\":["
        "{\"agent\":\"a\",\"equal\":1,\"score\":null,\"free\":{\"cpu\":\"2\"},\"chosen\":true},"
        "{\"agent\":\"b\",\"equal\":2,\"score\":null,\"free\":{\"cpu\":\"4\"},\"chosen\":false}]}]");
    first = outcome_of(1)->choices; /* one of two parts each, the second after the first */
    assert_non_null(strstr(first, "\"with_room\":3,"));
    assert_non_null(strstr(first, "\"with_room\":1,"));
    assert_null(outcome_of(2)->choices);
    end();

    begin(&sched_fifo, &sched_fragmentation);
    world.snap.options.choices_max = 16;
    (void)agent("a", "cpu=2");
    (void)agent("b", "cpu=4");
    (void)session("cpu=2");
    run_at(0);
    assert_null(strstr(outcome_of(0)->choices, "\"score\":null,\"free\":{\"cpu\":\"2\"}"));
    assert_non_null(strstr(outcome_of(0)->choices, "\"chosen\":true"));
    end();
}

static void test_round_robin(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_round_robin);
    (void)agent("zebra", "cpu=8");
    (void)agent("alpha", "cpu=8");
    (void)agent("beta", "cpu=8");
    for (int i = 0; i < 6; i++)
        (void)session("cpu=1");
    run_at(0);
    assert_string_equal(places(), "alpha beta zebra alpha beta zebra");
    assert_ptr_equal(sched_find_selector("roundrobin"), &sched_round_robin);
    assert_ptr_equal(sched_find_selector("round-robin"), &sched_round_robin);
    end();

    begin(&sched_fifo, &sched_round_robin);
    for (int i = 0; i < 5; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "i-%d", i);
        (void)agent(id, "cpu=4");
    }
    for (int i = 0; i < 21; i++)
        (void)session("cpu=1");
    run_at(0);
    assert_int_equal(verdict_of(19), SCHED_PLACED); /* 20 picks of 5: 4 each fill them */
    assert_int_equal(verdict_of(20), SCHED_NO_ROOM);
    end();
}

/* ---- placement constraints ---- */

static void test_designated(void **state)
{
    static const char *const small[] = { "small" };

    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        begin(&sched_fifo, &sched_dispersed);
        (void)agent("small", "cpu=2 mem=4096");
        (void)agent("large", "cpu=16 mem=65536");
        for (int i = 0; i < 3; i++) {
            struct sched_session *s = session(i == 0 ? "cpu=1 mem=1024" : "cpu=4 mem=8192");

            s->designated = small;
            s->designated_count = 1;
            s->designated_strict = strict;
        }
        run_at(0);
        assert_string_equal(places(), strict ? "small - -" : "small large large");
        assert_int_equal(verdict_of(1), strict ? SCHED_NO_ROOM : SCHED_PLACED);
        end();
    }
    /* it is requested although it failed there */
    begin(&sched_fifo, &sched_dispersed);
    (void)agent("small", "cpu=2");
    (void)agent("large", "cpu=16");
    session("cpu=1")->designated = small;
    world.sessions[0].designated_count = 1;
    world.sessions[0].failed_agent = "small";
    run_at(0);
    assert_string_equal(places(), "small");
    end();
}

static void test_groups(void **state)
{
    static const struct {
        enum sched_grouping grouping;
        bool strict;
        const char *places;
    } rows[] = {
        { SCHED_SPREAD, false, "a b c a b" },    { SCHED_SPREAD, true, "a b c - -" },
        { SCHED_PACK, false, "a a b b c" },      { SCHED_PACK, true, "a a - - -" },
        { SCHED_UNGROUPED, false, "a a b b c" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        begin(&sched_fifo, &sched_concentrated);
        world.snap.options.retries_to_skip = 1; /* nobody holds up others */
        (void)agent("a", "cpu=2");
        (void)agent("b", "cpu=2");
        (void)agent("c", "cpu=2");
        for (int s = 0; s < 5; s++) {
            session("cpu=1")->group = "replicas";
            world.sessions[s].grouping = rows[i].grouping;
            world.sessions[s].grouping_strict = rows[i].strict;
            world.sessions[s].retries = 1;
        }
        run_at(0);
        assert_row(strcmp(places(), rows[i].places) == 0, "%zu: %s", i, places());
        end();
    }
}

static void test_closed(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    agent("a", "cpu=2")->is_closed = true;
    (void)session("cpu=1");
    run_at(0);
    assert_int_equal(verdict_of(0), SCHED_NO_AGENT);
    (void)agent("b", "cpu=2");
    run_at(0);
    assert_string_equal(places(), "b");
    end();
}

/* A gang that does not fit leaves nothing behind. */
static void test_gangs(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.retries_to_skip = 1;
    (void)agent("a", "cpu=4");
    (void)agent("b", "cpu=4");
    for (int i = 0; i < 20; i++) {
        session("cpu=3")->retries = 1;
        world.sessions[i].single_node = false;
        if (i % 2 == 0) { /* three times 3: never */
            kernel("cpu=3");
            kernel("cpu=3");
        } else if (i == 1) {
            kernel("cpu=3");
        }
    }
    run_at(0);
    assert_string_equal(placed_in_order(), "2");
    assert_int_equal(outcome_of(1)->agents[0], 0);
    assert_int_equal(outcome_of(1)->agents[1], 1);
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_split_last),
        cmocka_unit_test(test_split_quantum),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_bad_devices),
        cmocka_unit_test(test_devices_explained),
        cmocka_unit_test(test_nearest_by_devices),
        cmocka_unit_test(test_limits_explained),
        cmocka_unit_test(test_quanta),
        cmocka_unit_test(test_quantum_explained),
        cmocka_unit_test(test_selectors_twenty),
        cmocka_unit_test(test_fragmentation_twenty),
        cmocka_unit_test(test_kept_together),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_alnair),
        cmocka_unit_test(test_chosen_devices),
        cmocka_unit_test(test_chosen_devices_of_a_cluster),
        cmocka_unit_test(test_round_robin),
        cmocka_unit_test(test_designated),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_gangs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
