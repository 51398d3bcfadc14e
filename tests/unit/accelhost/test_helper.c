/* SPDX-License-Identifier: Apache-2.0 */
/* When the process of a plugin that keeps shutdown is restarted. Monotonic
 * time is the test's: it stands still between two steps, and what the timer is
 * set to is read, not waited for.
 */
#include "testing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include "accelhost/helper.h"
#include "base/clock.h"
#include "base/fs.h"

struct scene {
    uv_loop_t loop;
    char folder[64];
    struct helper *helper;
    int starts, failures, answers;
    int64_t due_msec; /* of the timer after the latest failure */
};

static int64_t now_usec = 1000 * USEC_PER_SEC;

static int64_t test_time(void *data)
{
    (void)data;
    return now_usec;
}

static void find_timer(uv_handle_t *handle, void *data)
{
    uv_timer_t **ret = data;

    if (handle->type == UV_TIMER)
        *ret = (uv_timer_t *)handle;
}

/* The helper's; it waits for something. */
static uv_timer_t *timer_of(struct scene *s)
{
    uv_timer_t *timer = NULL;

    uv_walk(&s->loop, find_timer, (void *)&timer);
    assert_non_null(timer);
    assert_true(uv_is_active((uv_handle_t *)timer));
    return timer;
}

static void on_failed(void *data, const char *why)
{
    struct scene *s = data;

    assert_string_equal(why, "has crashed: Aborted");
    s->failures++;
    assert_int_equal(s->failures, s->starts);
    s->due_msec = (int64_t)uv_timer_get_due_in(timer_of(s));
}

static void on_started(void *data)
{
    struct scene *s = data;

    s->starts++;
}

static int set_up(void **state)
{
    static const struct clock clock = { test_time, test_time, NULL };
    struct scene *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    clock_set(&clock);
    (void)snprintf(s->folder, sizeof(s->folder), "/tmp/aliquot-helper-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    assert_int_equal(uv_loop_init(&s->loop), 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    helper_free(s->helper);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, s->folder, NULL), 0);
    clock_set(NULL);
    free(s);
    return 0;
}

/* A process that crashes; after one answer if FOLDER/serve is there. */
static void start(struct scene *s)
{
    static const char script[] =
        "#!/bin/sh\n"
        "if [ -e \"$1/serve\" ]; then\n"
        "    rm \"$1/serve\"; read -r line <&3\n"
        "    id=${line#*:}; echo \"{\\\"id\\\":${id%%,*},\\\"result\\\":{}}\" >&3\n"
        "fi\n"
        "kill -ABRT $$\n";
    AQ_CLEANUP(aq_freep) char *program = aq_format("%s/program", s->folder);
    const struct helper_conf conf = { .loop = &s->loop,
                                      .program = program,
                                      .plugin = s->folder,
                                      .name = "bad",
                                      .limit_usec = 3600 * USEC_PER_SEC,
                                      .on_failed = on_failed,
                                      .on_started = on_started,
                                      .data = s };

    assert_int_equal(fs_write_atomic(AT_FDCWD, program, script, strlen(script), 0700, NULL), 0);
    s->helper = helper_new(&conf);
}

/* The n-th process has crashed. */
static void await_crash(struct scene *s, int n)
{
    while (s->failures < n)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    assert_int_equal(s->failures, n);
}

/* Some time has passed: the timer looks at it now, whatever it was set to. */
static void pass(struct scene *s, int64_t usec)
{
    uv_timer_t *timer = timer_of(s);

    now_usec += usec;
    uv_timer_set_repeat(timer, 1);
    assert_int_equal(uv_timer_again(timer), 0);
    uv_timer_set_repeat(timer, 0);
}

/* The n-th process has crashed, and the next one comes after that long, not before. */
static void expect_wait(struct scene *s, int n, int64_t seconds)
{
    await_crash(s, n);
    assert_int_equal(s->due_msec, seconds * 1000 + 1);
    pass(s, seconds * USEC_PER_SEC - USEC_PER_SEC / 2);
    while (uv_timer_get_due_in(timer_of(s)) <= 1) /* until it was set again, to the half second */
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    assert_int_equal(s->starts, n);
    pass(s, USEC_PER_SEC / 2);
}

/* The first time it is restarted at once, then later and later. */
static void it_waits_longer_each_time(void **state)
{
    static const int seconds[] = { 1, 2, 4, 8, 16, 32, 60, 60, 60 };
    struct scene *s = *state;

    start(s);
    await_crash(s, 1);
    assert_int_equal(s->due_msec, 0);
    for (int i = 0; i < (int)AQ_COUNT(seconds); i++)
        expect_wait(s, i + 2, seconds[i]);
    await_crash(s, 11);
}

static bool on_answer(void *data, const json_t *result, struct aq_error *err)
{
    struct scene *s = data;

    (void)err;
    s->answers += result != NULL;
    return true;
}

/* Who has served something begins again. */
static void an_answer_ends_the_waiting(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(aq_freep) char *serve = aq_format("%s/serve", s->folder);

    start(s);
    await_crash(s, 1);
    expect_wait(s, 2, 1);
    expect_wait(s, 3, 2);
    await_crash(s, 4);
    assert_int_equal(s->due_msec, 4001);

    assert_int_equal(fs_write_atomic(AT_FDCWD, serve, "", 0, 0600, NULL), 0);
    (void)helper_ask(s->helper, "\"call\":\"describe\"", on_answer, s);
    pass(s, 4 * USEC_PER_SEC);
    await_crash(s, 5);
    assert_int_equal(s->answers, 1);
    assert_int_equal(s->due_msec, 0);
    expect_wait(s, 6, 1);
    expect_wait(s, 7, 2);
}

#define CALLS 3

static struct helper_call *calls[CALLS];
static int late;

/* The first of them: the others are not wanted any more. */
static bool on_late(void *data, const json_t *result, struct aq_error *err)
{
    (void)data;
    assert_null(result);
    assert_int_equal(err->code, ETIMEDOUT);
    late++;
    for (size_t i = 1; i < CALLS; i++)
        helper_cancel(AQ_TAKE(calls[i]));
    return true;
}

/* The process is not there; the calls that wait for it are late together. */
static void a_late_call_cancels_the_others(void **state)
{
    struct scene *s = *state;

    start(s);
    await_crash(s, 1);
    expect_wait(s, 2, 1);
    await_crash(s, 3);
    for (size_t i = 0; i < CALLS; i++)
        calls[i] = helper_ask(s->helper, "\"call\":\"describe\"", on_late, s);
    pass(s, INT64_C(3600) * USEC_PER_SEC);
    while (!late)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    assert_int_equal(late, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_waits_longer_each_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_ends_the_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_call_cancels_the_others, set_up, tear_down),
    };

    (void)signal(SIGPIPE, SIG_IGN); /* as the agent does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
