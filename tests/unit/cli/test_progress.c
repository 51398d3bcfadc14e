/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "cli/output/progress.h"

#define CLEARS "\r\033[K"

static int64_t now_usec;

static int64_t read_clock(void *data)
{
    (void)data;
    return now_usec;
}

static const struct clock fake = { .realtime_usec = read_clock, .monotonic_usec = read_clock };

/* What progress writes to standard error goes to a file. */
struct screen {
    int saved, file;
    struct progress progress;
};

static void screen_open(struct screen *s)
{
    char path[] = "/tmp/aliquot-test-XXXXXX";

    s->file = mkstemp(path);
    assert_true(s->file >= 0);
    (void)unlink(path);
    s->saved = dup(STDERR_FILENO);
    (void)dup2(s->file, STDERR_FILENO);
    progress_init(&s->progress, false, true);
    s->progress.is_terminal = true;
    now_usec = USEC_PER_SEC;
    clock_set(&fake);
}

#define TEXT_MAX 400

/* What was written since the last call. */
static void screen_take(struct screen *s, char text[TEXT_MAX])
{
    ssize_t got;

    (void)fflush(stderr);
    got = pread(s->file, text, TEXT_MAX - 1, 0);
    text[got < 0 ? 0 : got] = '\0';
    assert_int_equal(ftruncate(s->file, 0), 0);
    (void)lseek(s->file, 0, SEEK_SET);
}

static void screen_close(struct screen *s)
{
    (void)dup2(s->saved, STDERR_FILENO);
    (void)close(s->saved);
    (void)close(s->file);
    clock_set(NULL);
}

static void after_msec(struct screen *s, int64_t msec)
{
    now_usec += msec * USEC_PER_MSEC;
    progress_tick(&s->progress);
}

static void test_what_is_soon_over_is_not_shown(void **state)
{
    struct screen s;
    char text[TEXT_MAX];

    (void)state;
    screen_open(&s);
    progress_stage(&s.progress, "waiting");
    after_msec(&s, 100);
    progress_stage(&s.progress, "starting");
    after_msec(&s, 100);
    progress_stage(&s.progress, "");
    screen_take(&s, text);
    screen_close(&s);
    assert_string_equal(text, "");
}

static void test_stages_replace_each_other_in_place(void **state)
{
    static const char *const stages[] = { "one", "two", "three", "four" };
    struct screen s;
    char text[TEXT_MAX], end[TEXT_MAX];

    (void)state;
    screen_open(&s);
    progress_stage(&s.progress, "waiting");
    after_msec(&s, 400);
    for (size_t i = 0; i < AQ_COUNT(stages); i++) {
        progress_stage(&s.progress, stages[i]);
        after_msec(&s, 30);
    }
    screen_take(&s, text);
    progress_stage(&s.progress, "");
    screen_take(&s, end);
    screen_close(&s);
    assert_non_null(strstr(text, "waiting"));
    assert_null(strstr(text, "two")); /* it was over before the next drawing */
    assert_non_null(strstr(text, "four"));
    assert_null(strstr(text, CLEARS)); /* the line is never empty in between */
    assert_string_equal(end, CLEARS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_soon_over_is_not_shown),
        cmocka_unit_test(test_stages_replace_each_other_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
