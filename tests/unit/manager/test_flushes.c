/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for a turn has one, in order, and no turn has too many. */
#include "testing.h"

#include <uv.h>

#include "manager/call/flushes.h"

#define COUNT 100

static struct stream {
    struct flush flush;
    int calls;
    unsigned at; /* the how manieth of all that were called */
} streams[COUNT];
static unsigned called;

static void on_flush(struct flush *flush)
{
    struct stream *stream = AQ_CONTAINER_OF(flush, struct stream, flush);

    stream->calls++;
    stream->at = called++;
}

static void test_few_in_a_turn_and_all_in_order(void **state)
{
    AQ_CLEANUP(flushes_freep) struct flush_queue *flushes = flushes_new();
    unsigned turns = 0;
    uv_loop_t loop;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    for (int i = 0; i < COUNT; i++) {
        streams[i].flush.fn = on_flush;
        flushes_add(flushes, &loop, &streams[i].flush);
        flushes_add(flushes, &loop, &streams[i].flush); /* waits already */
    }
    flush_cancel(&streams[50].flush);
    assert_int_equal(called, 0);
    while (called < COUNT - 1) {
        unsigned before = called;

        (void)uv_run(&loop, UV_RUN_NOWAIT);
        assert_in_range(called - before, 1, 16);
        assert_true(++turns <= COUNT);
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(streams[i].calls, i != 50);
    assert_true(streams[99].at > streams[0].at && streams[99].at == COUNT - 2);
    flushes_add(flushes, &loop, &streams[50].flush); /* after a rest */
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(streams[50].calls, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_few_in_a_turn_and_all_in_order) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
