/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that fail: the process ends, or goes on if it said so. */
#include "testing.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/vec.h"

static bool vec_is_short(void)
{
    int *items = NULL;
    size_t cap = 0;

    return !vec_grow(&items, &cap, SIZE_MAX / 2, sizeof(*items)) && !items && !cap;
}

static bool strbuf_is_short(void)
{
    struct strbuf sb = STRBUF_INIT;

    return !strbuf_reserve(&sb, SIZE_MAX / 2) && !strbuf_ok(&sb);
}

static bool arena_is_short(void)
{
    struct arena arena = ARENA_INIT;

    return !arena_array(&arena, SIZE_MAX / 2, 4);
}

static bool (*const containers[])(void) = { vec_is_short, strbuf_is_short, arena_is_short };

/* The exit status of a child that runs 'container', and what it wrote to standard error. */
static int run(bool (*container)(void), bool recovers, char text[64])
{
    int out[2], status;
    ssize_t len;
    pid_t pid;

    assert_int_equal(pipe(out), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(out[1], STDERR_FILENO);
        if (recovers)
            memory_recover();
        _exit(container() ? 0 : 1);
    }
    (void)close(out[1]);
    len = read(out[0], text, 63);
    text[len > 0 ? len : 0] = '\0';
    (void)close(out[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_a_program_ends(void **state)
{
    char text[64], want[64];

    (void)state;
    (void)snprintf(want, sizeof(want), "%s: out of memory\n", program_invocation_short_name);
    for (size_t i = 0; i < AQ_COUNT(containers); i++) {
        assert_int_equal(run(containers[i], false, text), MEMORY_EXIT_STATUS);
        assert_string_equal(text, want);
    }
}

static void test_a_program_recovers(void **state)
{
    char text[64];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(containers); i++) {
        assert_int_equal(run(containers[i], true, text), 0);
        assert_string_equal(text, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_ends),
        cmocka_unit_test(test_a_program_recovers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
