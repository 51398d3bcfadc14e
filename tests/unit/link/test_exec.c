/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "link/exec.h"

static int collect(void *data, enum exec_type type, const char *bytes, size_t len)
{
    strbuf_addf(data, "%c:%.*s;", type, (int)len, bytes);
    return type == 'q' ? 7 : 0;
}

/* However the bytes are cut. */
static void test_pieces(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf frames = STRBUF_INIT;

    (void)state;
    exec_frame_add(&frames, EXEC_STARTED, NULL, 0);
    exec_frame_add(&frames, EXEC_OUTPUT, "hello", 5);
    exec_frame_add(&frames, EXEC_ERRORS, "oh", 2);
    for (size_t step = 1; step <= frames.len; step++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf held = STRBUF_INIT;
        AQ_CLEANUP(strbuf_donep) struct strbuf seen = STRBUF_INIT;

        for (size_t at = 0; at < frames.len; at += step)
            assert_int_equal(exec_frames_read(&held, frames.data + at,
                                              AQ_MIN(step, frames.len - at), collect, &seen),
                             0);
        assert_string_equal(seen.data, "b:;o:hello;e:oh;");
        assert_int_equal(held.len, 0);
    }
}

static void test_limits(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf held = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf seen = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf frames = STRBUF_INIT;

    (void)state;
    assert_int_equal(exec_frames_read(&held, "o\0\1\0\1", 5, collect, &seen), -EPROTO);
    strbuf_clear(&held);
    exec_frame_add(&frames, (enum exec_type)'q', "stop", 4);
    exec_frame_add(&frames, EXEC_OUTPUT, "not read", 8);
    assert_int_equal(exec_frames_read(&held, frames.data, frames.len, collect, &seen), 7);
    assert_string_equal(seen.data, "q:stop;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
