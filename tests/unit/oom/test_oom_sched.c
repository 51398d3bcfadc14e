/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short in a pass, in an explanation, and where others are preempted or migrated. */
#include "../sched/migrations.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "oom.h"
#include "sched/plugin.h"

/* One pass and one explanation of a snapshot; what it is made of does not count. */
static void pass_and_explain(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
    struct aq_error err = { 0 };

    world.snap.types = world.types;
    world.snap.now_usec = 1000 * USEC_PER_SEC;
    oom_begin();
    oom_check("pass", sched_run(&world.snap, &world.arena, &world.result, &err), &err);
    oom_check("explain", sched_explain(&world.snap, 0, &world.arena, &text, &json, &err), &err);
    oom_end();
    strbuf_done(&text);
    strbuf_done(&json);
    end();
    oom_pass();
}

static void run_migration(const char *dir)
{
    (void)dir;
    moving();
    (void)agent("a", "cpu=0");
    (void)agent("b", "cpu=1");
    (void)agent("c", "cpu=1");
    (void)movable("a", "cpu=1", 8, 0);
    (void)movable("a", "cpu=1", 9, 0);
    (void)movable("a", "cpu=1", 7, 0);
    world.agents[0].free = own("cpu=1");
    session("cpu=3")->job_priority = 5;
    (void)session("cpu=1");
    pass_and_explain();
}

static void run_backfill(const char *dir)
{
    (void)dir;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    world.snap.options.reservations_max = 2;
    (void)agent("a", "cpu=2 cuda.shares=2");
    DEVICES("A100", 1, 0.5);
    (void)agent("b", "cpu=1");
    (void)runs("a", "cpu=2", 1, 2000);
    (void)runs("b", "cpu=3", 1, 1500);
    (void)session("cpu=4");
    session("cpu=1")->lifetime_usec = 100 * USEC_PER_SEC;
    (void)session("cpu=1 cuda.shares=0.5");
    (void)session("cpu=3");
    kernel("cpu=1");
    pass_and_explain();
}

/* The owners take turns; those who ran before have less. */
static void run_drf(const char *dir)
{
    (void)dir;
    begin(&sched_drf, &sched_legacy);
    agent("a", "cpu=9 mem=75")->capacity = own("cpu=10 mem=100");
    (void)agent("b", "cpu=2 mem=10");
    world.snap.owners = world.owners;
    world.snap.owner_count = 2;
    world.owners[0].used = own("cpu=8 mem=20");
    world.owners[1].used = own("cpu=5 mem=5");
    session("cpu=1 mem=1")->owner = 0;
    session("cpu=1 mem=1")->owner = 1;
    session("cpu=1 mem=50")->owner = 1;
    kernel("cpu=1 mem=10");
    pass_and_explain();
}

/* What several sessions ask for is searched once. */
static void run_same(const char *dir)
{
    (void)dir;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    world.snap.options.reservations_max = 3;
    (void)agent("a", "cpu=1");
    (void)agent("b", "cpu=1");
    (void)runs("a", "cpu=2", 1, 2000);
    (void)runs("b", "cpu=2", 1, 1500);
    for (int i = 0; i < 4; i++)
        session("cpu=3")->lifetime_usec = 100 * USEC_PER_SEC;
    pass_and_explain();
}

/* One container leaves its agent, the other starts again where it is. */
static void run_cluster_migration(const char *dir)
{
    (void)dir;
    moving();
    (void)agent("a", "cpu=1");
    (void)agent("b", "cpu=0");
    (void)agent("c", "cpu=2");
    (void)movable("a", "cpu=2", 1, 0);
    runs_also("b", "cpu=2");
    (void)session("cpu=3");
    pass_and_explain();
}

/* Agents take turns, also among those that a session names. */
static void run_turns(const char *dir)
{
    static const char *const named[] = { "b", "c" };
    struct sched_session *s;

    (void)dir;
    begin(&sched_fifo, &sched_round_robin);
    (void)agent("a", "cpu=4");
    (void)agent("b", "cpu=4");
    (void)agent("c", "cpu=4");
    (void)session("cpu=1");
    for (int i = 0; i < 2; i++) {
        s = session("cpu=1");
        s->designated = named;
        s->designated_count = AQ_COUNT(named);
        s->designated_strict = i;
    }
    (void)session("cpu=5");
    pass_and_explain();
}

/* The plug-in itself stays loaded, and is no leak. */
static void load_plugin(const struct sequencer_ops **sequencer,
                        const struct selector_ops **selector)
{
    const char *path = getenv("ALIQUOT_SCHEDULER_PLUGIN");
    struct aq_error err = { 0 };
    int r;

    oom_keep(true);
    r = sched_plugin_load(path, sequencer, NULL, &err);
    oom_check("load", r, &err);
    if (r < 0) {
        oom_end();
        assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
        assert_int_equal(sched_plugin_load(path, sequencer, NULL, NULL), 0);
    }
    assert_int_equal(sched_plugin_load(path, NULL, selector, NULL), 0);
    oom_keep(false);
}

static void run_plugin(const char *dir)
{
    const struct sequencer_ops *sequencer;
    const struct selector_ops *selector;

    (void)dir;
    oom_begin();
    load_plugin(&sequencer, &selector);
    oom_pause(true);
    begin(sequencer, selector);
    (void)agent("a", "cpu=8 mem=1000");
    (void)agent("b", "cpu=4 mem=1000");
    session("cpu=2")->lifetime_usec = 10 * USEC_PER_SEC;
    session("cpu=1")->lifetime_usec = 100 * USEC_PER_SEC;
    (void)session("cpu=9");
    oom_pause(false);
    pass_and_explain();
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "a pass that migrates", NULL, run_migration, NULL },
        { "a pass that backfills", NULL, run_backfill, NULL },
        { "a pass in which owners take turns", NULL, run_drf, NULL },
        { "a pass over sessions that ask for the same", NULL, run_same, NULL },
        { "a pass that migrates one container of a cluster", NULL, run_cluster_migration, NULL },
        { "a pass in which agents take turns", NULL, run_turns, NULL },
        { "a pass by a plug-in", NULL, run_plugin, NULL },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
