/* SPDX-License-Identifier: Apache-2.0 */
/* Triggers of pipelines: which are due, and which wait for the end of a run. */
#include "store_testing.h"

#include "store/pipeline_trigger.h"

/* What a function of the store is to do, and found. */
struct asked {
    struct uuid user_id;
    struct pipeline_trigger_row trigger;
    bool is_enabled;
    int64_t now_usec, next_usec, count;
    struct pipeline_run_row run;
    const char *started_by; /* of a run that is made */
    struct uuid ended;
    struct pipeline_trigger_list list;
    struct arena arena;
};

static int keep(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;
    const struct pipeline_switch_row is_on = { .user_id = asked->user_id,
                                               .name = asked->trigger.name,
                                               .is_enabled = asked->is_enabled,
                                               .access_key = "KEY",
                                               .options = "{}",
                                               .changed_usec = 1 };
    int r = pipeline_switch_write(tx, &is_on, err);

    asked->trigger.id = uuid_random();
    asked->trigger.user_id = asked->user_id;
    asked->trigger.overlap = "skip";
    asked->trigger.missed = "skip";
    return r < 0 ? r : pipeline_trigger_insert(tx, &asked->trigger, err);
}

static int find_due(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;

    return pipeline_trigger_find_due(tx, asked->now_usec, &asked->arena, &asked->trigger, err);
}

static int update(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;

    return pipeline_trigger_update(tx, &asked->trigger, err);
}

static int look_ahead(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;
    int r = pipeline_triggers_next(tx, &asked->next_usec, err);

    return r < 0 ? r : pipeline_triggers_count(tx, &asked->user_id, &asked->count, err);
}

static int end_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;
    struct pipeline_row pipeline = { .id = uuid_random(),
                                     .user_id = asked->user_id,
                                     .name = "prepare",
                                     .hash = "0",
                                     .text = "name: prepare",
                                     .saved_usec = 1 };
    int r = pipeline_save(tx, &pipeline, err);

    asked->run = (struct pipeline_run_row){ .id = uuid_random(),
                                            .pipeline_id = pipeline.id,
                                            .user_id = asked->user_id,
                                            .access_key = "KEY",
                                            .name = "prepare",
                                            .state = "succeeded",
                                            .parameters = "{}",
                                            .options = "{}",
                                            .created_usec = 2,
                                            .started_by = asked->started_by };
    if (r < 0 || (r = pipeline_run_insert(tx, &asked->run, err)) < 0)
        return r;
    asked->run.ended_usec = 3;
    r = pipeline_run_update(tx, &asked->run, err);
    return r < 0 ? r : pipeline_run_note_end(tx, &asked->run, err);
}

static int find_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;
    int r = pipeline_run_find_ended(tx, &asked->ended, err);

    if (r > 0) {
        int failed = pipeline_triggers_read_after(tx, &asked->user_id, "prepare", &asked->arena,
                                                  &asked->list, err);

        r = failed < 0 ? failed : r;
    }
    return r;
}

static int clear_end(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;

    return pipeline_run_clear_end(tx, &asked->run.id, err);
}

static int count_triggered(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;

    return pipeline_runs_count_triggered(tx, &asked->user_id, asked->now_usec, &asked->count, err);
}

static void add_schedule(struct bench *b, struct asked *asked, const char *name, int64_t next_usec)
{
    asked->trigger = (struct pipeline_trigger_row){
        .name = name, .cron = "@daily", .zone = "UTC", .checked_usec = 1, .next_usec = next_usec
    };
    assert_int_equal(store_call(b->store, keep, asked, NULL), 0);
}

static void the_earliest_is_due_first(void **state)
{
    struct bench *b = *state;
    struct asked asked = { .user_id = b->user_id, .is_enabled = true };

    add_schedule(b, &asked, "late", 2000);
    add_schedule(b, &asked, "early", 1000);
    add_schedule(b, &asked, "never", 0);
    assert_int_equal(store_call(b->store, look_ahead, &asked, NULL), 0);
    assert_int_equal(asked.next_usec, 1000);
    assert_int_equal(asked.count, 3);
    asked.now_usec = 999;
    assert_int_equal(store_call(b->store, find_due, &asked, NULL), 0);
    asked.now_usec = 5000;
    assert_int_equal(store_call(b->store, find_due, &asked, NULL), 1);
    assert_string_equal(asked.trigger.name, "early");
    assert_string_equal(asked.trigger.access_key, "KEY");
    asked.trigger.checked_usec = 1000;
    asked.trigger.next_usec = 9000;
    asked.trigger.last_result = "started early.1";
    assert_int_equal(store_call(b->store, update, &asked, NULL), 0);
    assert_int_equal(store_call(b->store, find_due, &asked, NULL), 1);
    assert_string_equal(asked.trigger.name, "late");
    arena_done(&asked.arena);
}

static void add_after(struct bench *b, struct asked *asked, const char *name, bool is_enabled)
{
    asked->is_enabled = is_enabled;
    asked->trigger = (struct pipeline_trigger_row){ .name = name,
                                                    .after = "prepare",
                                                    .ends = "any" };
    assert_int_equal(store_call(b->store, keep, asked, NULL), 0);
}

static void an_end_waits_for_triggers_that_are_enabled(void **state)
{
    struct bench *b = *state;
    struct asked asked = { .user_id = b->user_id };

    add_after(b, &asked, "off", false);
    assert_int_equal(store_call(b->store, end_run, &asked, NULL), 0);
    assert_int_equal(store_call(b->store, find_ended, &asked, NULL), 0);
    add_after(b, &asked, "on", true);
    assert_int_equal(store_call(b->store, find_ended, &asked, NULL), 0); /* ended before that */
    assert_int_equal(store_call(b->store, end_run, &asked, NULL), 0);
    assert_int_equal(store_call(b->store, find_ended, &asked, NULL), 1);
    assert_true(uuid_equals(&asked.ended, &asked.run.id));
    assert_int_equal(asked.list.count, 1);
    assert_string_equal(asked.list.items[0].name, "on");
    assert_int_equal(store_call(b->store, look_ahead, &asked, NULL), 0);
    assert_int_equal(asked.next_usec, 1); /* at once */
    assert_int_equal(store_call(b->store, clear_end, &asked, NULL), 0);
    assert_int_equal(store_call(b->store, find_ended, &asked, NULL), 0);
    arena_done(&asked.arena);
}

static void runs_by_triggers_are_counted_since_a_time(void **state)
{
    struct bench *b = *state;
    struct asked asked = { .user_id = b->user_id };

    assert_int_equal(store_call(b->store, end_run, &asked, NULL), 0); /* by a request */
    asked.started_by = "@daily UTC";
    assert_int_equal(store_call(b->store, end_run, &asked, NULL), 0);
    assert_int_equal(store_call(b->store, end_run, &asked, NULL), 0);
    asked.now_usec = 1;
    assert_int_equal(store_call(b->store, count_triggered, &asked, NULL), 0);
    assert_int_equal(asked.count, 2);
    asked.now_usec = 2;
    assert_int_equal(store_call(b->store, count_triggered, &asked, NULL), 0);
    assert_int_equal(asked.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_by_triggers_are_counted_since_a_time, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(the_earliest_is_due_first, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(an_end_waits_for_triggers_that_are_enabled, bench_setup,
                                        bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
