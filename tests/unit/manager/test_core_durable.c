/* SPDX-License-Identifier: Apache-2.0 */
/* Durable objects that are no sessions: touched, woken, committed in one batch with others, given
 * back by the store, retired.
 */
#include "world.h"

#include "manager/core/commit/proposal.h"
#include "manager/core/loop/loop_internal.h"
#include "manager/core/state/durable.h"

struct thing {
    struct durable durable;
    bool wants_change; /* until one is durable */
    int write_result;  /* of the store: what the next changes come to */
    size_t steps;
    bool joined;     /* its last change found a batch that others had begun */
    int returned[8]; /* results */
    size_t returned_count;
    bool is_freed;
};

static struct thing *thing_of(struct durable *d)
{
    return AQ_CONTAINER_OF(d, struct thing, durable);
}

static int thing_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct thing *t = data;

    (void)tx;
    return t->write_result < 0 ? aq_fail(err, -t->write_result, "as the test wants it") : 0;
}

static void thing_step(struct core *core, struct durable *d)
{
    struct thing *t = thing_of(d);
    struct event *e;

    assert_false(d->is_busy);
    t->steps++;
    if (!t->wants_change)
        return;
    t->joined = core->open != NULL;
    e = proposal_add(core, d, EVENT_ROWS_ADDED);
    assert_non_null(e);
    assert_true(d->is_busy);
    e->rows_added.write = thing_write;
    e->rows_added.data = t;
}

static void thing_returned(struct core *core, struct durable *d, int result,
                           const struct aq_error *err)
{
    struct thing *t = thing_of(d);

    (void)core;
    assert_false(d->is_busy);
    assert_true(t->returned_count < AQ_COUNT(t->returned));
    assert_true(result == 0 || err->code == -result);
    t->returned[t->returned_count++] = result;
    if (result == 0)
        t->wants_change = false;
}

static void thing_free(struct durable *d)
{
    assert_false(d->is_busy);
    assert_false(thing_of(d)->is_freed);
    thing_of(d)->is_freed = true;
}

static const struct durable_ops thing_ops = { thing_step, thing_returned, thing_free };

static void thing_begin(struct thing *t)
{
    *t = (struct thing){ .steps = 0 };
    durable_init(&t->durable, &thing_ops);
    durable_add(world.core, &t->durable);
}

/* It wants a change from now on, which the store answers like this. */
static void thing_want(struct thing *t, int write_result)
{
    t->wants_change = true;
    t->write_result = write_result;
    durable_touch(world.core, &t->durable);
}

static void assert_returned(const struct thing *t, size_t count, int last)
{
    assert_int_equal(t->returned_count, count);
    assert_int_equal(t->returned[count - 1], last);
}

/* ---- touching and waking ---- */

static void test_touched(void **state)
{
    struct thing t;

    (void)state;
    t = (struct thing){ .steps = 0 };
    durable_init(&t.durable, &thing_ops);
    durable_touch(world.core, &t.durable); /* it is not added yet */
    durable_wake_at(world.core, &t.durable, world_mono);
    settle();
    assert_int_equal(t.steps, 0);
    durable_add(world.core, &t.durable);
    settle();
    assert_int_equal(t.steps, 0);
    durable_touch(world.core, &t.durable);
    durable_touch(world.core, &t.durable);
    assert_int_equal(t.steps, 0); /* not inside the call */
    settle();
    assert_int_equal(t.steps, 1);
}

static void test_woken(void **state)
{
    struct thing t;

    (void)state;
    thing_begin(&t);
    durable_wake_at(world.core, &t.durable, world_mono + 5 * USEC_PER_SEC);
    durable_wake_at(world.core, &t.durable, world_mono + 3 * USEC_PER_SEC);
    durable_wake_at(world.core, &t.durable, world_mono + 4 * USEC_PER_SEC);
    pass(3 * USEC_PER_SEC - 1);
    assert_int_equal(t.steps, 0);
    pass(1);
    assert_int_equal(t.steps, 1);
    pass(10 * USEC_PER_SEC); /* the earliest time counts, and once */
    assert_int_equal(t.steps, 1);
    durable_wake_at(world.core, &t.durable, world_mono + USEC_PER_SEC);
    durable_cancel_wake(world.core, &t.durable);
    durable_cancel_wake(world.core, &t.durable);
    pass(2 * USEC_PER_SEC);
    assert_int_equal(t.steps, 1);
}

/* Many at mixed times, some of which are moved, given up, or whose objects end. */
static void test_woken_in_order(void **state)
{
    static struct thing things[300];
    size_t left = 0;
    int64_t begin = world_mono;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(things); i++) {
        thing_begin(&things[i]);
        durable_wake_at(world.core, &things[i].durable,
                        begin + 1 + (int64_t)(i * 7919 % 1009) * USEC_PER_MSEC);
    }
    for (size_t i = 0; i < AQ_COUNT(things); i++) {
        if (i % 7 == 0)
            durable_wake_at(world.core, &things[i].durable,
                            begin + 1 + (int64_t)(i * 31 % 101) * USEC_PER_MSEC);
        if (i % 5 == 0)
            durable_cancel_wake(world.core, &things[i].durable);
        if (i % 11 == 0)
            durable_retire(world.core, &things[i].durable);
        left += things[i].durable.wake_usec != 0;
    }
    settle();
    while (durable_next_wake(world.core)) {
        size_t due = 0, stepped = 0;

        world_mono = durable_next_wake(world.core);
        for (size_t i = 0; i < AQ_COUNT(things); i++) {
            int64_t at = things[i].durable.wake_usec;

            assert_true(at == 0 || at >= world_mono);
            due += at == world_mono;
            stepped -= things[i].steps;
        }
        assert_true(due > 0);
        core_schedule_turn(world.core);
        settle();
        for (size_t i = 0; i < AQ_COUNT(things); i++)
            stepped += things[i].steps;
        assert_int_equal(stepped, due);
        left -= due;
    }
    assert_int_equal(left, 0);
}

/* ---- the store ---- */

static void test_committed(void **state)
{
    struct thing t;

    (void)state;
    thing_begin(&t);
    thing_want(&t, 0);
    turn_on_idle(&world.core->turn);
    assert_true(t.durable.is_busy);
    durable_touch(world.core, &t.durable);
    turn_on_idle(&world.core->turn);
    assert_int_equal(t.steps, 1); /* none while it is busy */
    settle();
    assert_returned(&t, 1, 0);
    assert_int_equal(t.steps, 2); /* it is examined again then */
    assert_false(t.durable.is_busy);
}

/* Nobody can tell whose event was stale: each is tried again by itself. */
static void test_stale(void **state)
{
    struct thing good, stale, later;

    (void)state;
    thing_begin(&good);
    thing_begin(&stale);
    thing_begin(&later);
    thing_want(&good, 0);
    thing_want(&stale, -ESTALE);
    thing_want(&later, 0);
    turn_on_idle(&world.core->turn);
    assert_true(stale.joined && later.joined);
    settle();
    assert_int_equal(good.returned[0], -ESTALE);
    assert_int_equal(later.returned[0], -ESTALE);
    assert_returned(&good, 2, 0);
    assert_returned(&later, 2, 0);
    assert_returned(&stale, 2, -ESTALE);
    assert_false(stale.joined);
    assert_int_equal(world.core->counts.stale, 2);

    /* By itself as before: some seconds later, and others do not wait for it. */
    stale.write_result = 0;
    pass(4 * USEC_PER_SEC);
    assert_int_equal(stale.steps, 2);
    thing_want(&good, 0);
    thing_want(&stale, 0);
    settle();
    assert_returned(&good, 3, 0);
    assert_int_equal(stale.steps, 2);
    thing_want(&good, 0);
    pass(USEC_PER_SEC);
    assert_returned(&good, 4, 0);
    assert_returned(&stale, 3, 0);
    assert_false(stale.joined);
    assert_false(stale.durable.is_alone);
}

static void test_refused(void **state)
{
    struct thing t;

    (void)state;
    thing_begin(&t);
    thing_want(&t, -EIO);
    settle();
    assert_returned(&t, 1, -EIO);
    assert_int_equal(t.steps, 1);
    t.write_result = 0;
    pass(USEC_PER_SEC / 2);
    durable_touch(world.core, &t.durable); /* is not sooner */
    settle();
    assert_int_equal(t.steps, 1);
    pass(USEC_PER_SEC / 2);
    assert_returned(&t, 2, 0);
}

/* In one batch with the end of a session, for which somebody waits. */
static void test_with_session(void **state)
{
    struct answer first = { 0 }, second = { 0 };
    struct uuid id = submit("waits");
    struct thing t;

    (void)state;
    thing_begin(&t);
    core_terminate_session(world.core, &id, false, NULL, NULL, on_answer, &first);
    thing_want(&t, -EIO);
    settle();
    assert_true(t.joined);
    assert_returned(&t, 1, -EIO);
    assert_int_equal(first.r, -EIO);
    assert_int_equal(status_of(&id), SESSION_PENDING);

    pass(USEC_PER_SEC - 1);
    core_terminate_session(world.core, &id, false, NULL, NULL, on_answer, &second);
    t.write_result = -ESTALE;
    pass(1);
    assert_true(t.returned_count > 1 && t.returned[1] == -ESTALE);
    assert_true(second.came);
    assert_int_equal(second.r, 0);
    assert_int_equal(status_of(&id), GONE);
    t.write_result = 0;
    pass(5 * USEC_PER_SEC);
    assert_int_equal(t.returned[t.returned_count - 1], 0);
    assert_clean();
}

/* ---- the end ---- */

static void test_retired(void **state)
{
    struct thing t, busy;

    (void)state;
    thing_begin(&t);
    thing_begin(&busy);
    durable_touch(world.core, &t.durable);
    durable_wake_at(world.core, &t.durable, world_mono + 1);
    durable_retire(world.core, &t.durable);
    durable_touch(world.core, &t.durable);
    durable_wake_at(world.core, &t.durable, world_mono + 1);
    assert_false(t.is_freed);
    pass(1);
    assert_true(t.is_freed);
    assert_int_equal(t.steps, 0);

    /* Not before its proposal is back. */
    thing_want(&busy, -EIO);
    turn_on_idle(&world.core->turn);
    durable_retire(world.core, &busy.durable);
    turn_on_idle(&world.core->turn);
    assert_false(busy.is_freed);
    settle();
    assert_returned(&busy, 1, -EIO);
    pass(5 * USEC_PER_SEC);
    assert_true(busy.is_freed);
    assert_int_equal(busy.steps, 1);
    assert_int_equal(world.core->durables.count, 0);
    assert_int_equal(world.core->durables.heap_count, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    static const struct CMUnitTest tests[] = {
        TEST(test_touched), TEST(test_woken),   TEST(test_woken_in_order), TEST(test_committed),
        TEST(test_stale),   TEST(test_refused), TEST(test_with_session),   TEST(test_retired),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
