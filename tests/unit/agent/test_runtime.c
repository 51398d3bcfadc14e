/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/runtime.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "base/uuid.h"
#include "monitor/protocol.h"

/* One kernel of a test: its directory, what was told, what its terminal showed. */
struct fixture {
    uv_loop_t loop;
    struct runtime *rt;
    char folder[64], marker[80];
    struct runtime_kernel *kernel;
    int running, ended;
    char reason[40], text[200];
    bool has_code;
    int code;
    struct strbuf shown;
    bool closed;
    int has_drained;
};

static void on_running(void *data, int64_t started_usec)
{
    struct fixture *f = data;

    assert_true(started_usec > 0);
    f->running++;
}

static void on_ended(void *data, const struct runtime_exit *exit)
{
    struct fixture *f = data;

    f->ended++;
    (void)snprintf(f->reason, sizeof(f->reason), "%s", exit->reason);
    (void)snprintf(f->text, sizeof(f->text), "%s", exit->text);
    f->has_code = exit->has_code;
    f->code = exit->code;
}

static const struct runtime_events events = { on_running, on_ended };

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const char *monitor = getenv("ALIQUOT_MONITOR");
    struct uuid id = uuid_random();
    char text[UUID_TEXT_MAX];

    strbuf_init(&f->shown);
    (void)uv_loop_init(&f->loop);
    strcpy(f->folder, "/tmp/aliquot-runtime-XXXXXX");
    (void)snprintf(f->marker, sizeof(f->marker), "ALIQUOT_KERNEL_ID=%s", uuid_format(&id, text));
    *state = f;
    return mkdtemp(f->folder) && monitor ? runtime_new_process(&f->loop, monitor, &f->rt, NULL)
                                         : -1;
}

static void count_handle(uv_handle_t *handle, void *data)
{
    (void)handle;
    (*(int *)data)++;
}

static void on_beat(uv_timer_t *timer)
{
    (void)timer;
}

/* Run until every handle of the loop is closed, also those that do not keep it alive. */
static void drain(uv_loop_t *loop)
{
    uv_timer_t beat;
    int count = 0;

    (void)uv_timer_init(loop, &beat);
    (void)uv_timer_start(&beat, on_beat, 1, 1);
    while (count != 1) {
        (void)uv_run(loop, UV_RUN_ONCE);
        count = 0;
        uv_walk(loop, count_handle, &count);
    }
    uv_close((uv_handle_t *)&beat, NULL);
    (void)uv_run(loop, UV_RUN_DEFAULT);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    runtime_release(f->kernel);
    drain(&f->loop);
    runtime_free(f->rt);
    (void)fs_remove_tree(AT_FDCWD, f->folder, NULL);
    strbuf_done(&f->shown);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f);
    return 0;
}

static void start(struct fixture *f, const char *command, bool tty, int64_t timeout_usec)
{
    const char *const argv[] = { "/bin/sh", command ? "-c" : NULL, command, NULL };
    const char *const envp[] = { "PATH=/usr/bin:/bin", "PS1=$ ", f->marker, NULL };
    const struct runtime_spec spec = { .directory = f->folder,
                                       .argv = argv,
                                       .envp = envp,
                                       .cwd = f->folder,
                                       .tty = tty,
                                       .timeout_usec = timeout_usec,
                                       .grace_usec = 50000,
                                       .log_max = 65536 };
    struct aq_error err = { 0 };

    assert_int_equal(runtime_start(f->rt, &spec, &events, f, &f->kernel, &err), 0);
}

static void run_until(struct fixture *f, const int *flag)
{
    while (*flag == 0)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
}

static bool exists(const struct fixture *f, const char *name)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    return access(path, F_OK) == 0;
}

static void run_until_exists(struct fixture *f, const char *name)
{
    while (!exists(f, name)) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
}

static void test_runs_and_ends(void **state)
{
    struct fixture *f = *state;

    start(f, "echo hello; exit 4", false, 0);
    run_until(f, &f->ended);
    assert_int_equal(f->running, 1);
    assert_string_equal(f->reason, MONITOR_EXITED);
    assert_true(f->has_code);
    assert_int_equal(f->code, 4);
}

static void test_cannot_start(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = { "/nowhere", NULL }, *const envp[] = { f->marker, NULL };
    const struct runtime_spec spec = {
        .directory = f->folder, .argv = argv, .envp = envp, .cwd = "/", .log_max = 65536
    };

    assert_int_equal(runtime_start(f->rt, &spec, &events, f, &f->kernel, NULL), 0);
    run_until(f, &f->ended);
    assert_int_equal(f->running, 0);
    assert_string_equal(f->reason, MONITOR_NOT_STARTED);
    assert_non_null(strstr(f->text, "No such file"));
}

static void test_terminate(void **state)
{
    struct fixture *f = *state;

    start(f, "trap '' TERM; touch ready; while :; do sleep 1; done", false, 0);
    run_until_exists(f, "ready");
    runtime_terminate(f->kernel, 0, 30000);
    run_until(f, &f->ended);
    assert_string_equal(f->reason, MONITOR_TERMINATED);
    assert_int_equal(f->code, 137);
}

static void test_terminate_before_it_runs(void **state)
{
    struct fixture *f = *state;

    start(f, "sleep 1000", false, 0);
    runtime_terminate(f->kernel, 0, 0);
    run_until(f, &f->ended);
    assert_string_equal(f->reason, MONITOR_TERMINATED);
}

static void test_signal(void **state)
{
    struct fixture *f = *state;

    start(f, "trap 'exit 21' USR1; touch ready; while :; do sleep 0.01; done", false, 0);
    run_until_exists(f, "ready");
    runtime_signal(f->kernel, SIGUSR1);
    run_until(f, &f->ended);
    assert_int_equal(f->code, 21);
}

static void test_timeout(void **state)
{
    struct fixture *f = *state;

    start(f, "sleep 1000", false, 50000);
    run_until(f, &f->ended);
    assert_string_equal(f->reason, MONITOR_TIMEOUT);
}

/* The agent was restarted: what runs is found again, and so is what ended. */
static void test_adopts(void **state)
{
    struct fixture *f = *state;

    start(f, "touch ready; while [ ! -e go ]; do sleep 0.01; done; exit 6", false, 0);
    run_until(f, &f->running);
    runtime_release(f->kernel);
    f->running = 0;
    assert_int_equal(runtime_adopt(f->rt, f->folder, &events, f, &f->kernel, NULL), 0);
    run_until(f, &f->running);
    assert_int_equal(f->ended, 0);
    {
        char path[96];

        (void)snprintf(path, sizeof(path), "%s/go", f->folder);
        assert_true(mkdir(path, 0700) == 0);
    }
    run_until(f, &f->ended);
    assert_int_equal(f->code, 6);
    runtime_release(f->kernel);
    f->ended = 0;
    assert_int_equal(runtime_adopt(f->rt, f->folder, &events, f, &f->kernel, NULL), 0);
    run_until(f, &f->ended);
    assert_int_equal(f->code, 6);
}

static void test_adopts_nothing(void **state)
{
    struct fixture *f = *state;
    struct runtime_kernel *kernel = NULL;

    assert_int_equal(runtime_adopt(f->rt, f->folder, &events, f, &kernel, NULL), -ENOENT);
    assert_null(kernel);
}

/* A killed monitor: its program dies with it and is not started again. */
static void test_killed_monitor(void **state)
{
    struct fixture *f = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf count = STRBUF_INIT;
    char path[96];

    start(f, "echo x >> count; echo $PPID > parent; touch ready; sleep 1000", false, 0);
    run_until_exists(f, "ready");
    (void)snprintf(path, sizeof(path), "%s/parent", f->folder);
    assert_int_equal(fs_read(AT_FDCWD, path, 100, &count, NULL), 0);
    assert_int_equal(kill(atoi(count.data), SIGKILL), 0);
    run_until(f, &f->ended);
    assert_string_equal(f->reason, MONITOR_LOST);
    assert_false(f->has_code);
    strbuf_clear(&count);
    (void)snprintf(path, sizeof(path), "%s/count", f->folder);
    assert_int_equal(fs_read(AT_FDCWD, path, 100, &count, NULL), 0);
    assert_string_equal(count.data, "x\n");
}

static void on_output(void *data, const char *bytes, size_t len)
{
    strbuf_add(&((struct fixture *)data)->shown, bytes, len);
}

static void on_closed(void *data)
{
    ((struct fixture *)data)->closed = true;
}

static void on_drain(void *data)
{
    ((struct fixture *)data)->has_drained = true;
}

static const struct runtime_terminal_ops terminal_ops = { on_output, on_closed, on_drain };

static int type(struct runtime_terminal *terminal, const char *bytes, size_t len)
{
    return runtime_terminal_pump.put(terminal, bytes, len);
}

static void test_terminal(void **state)
{
    struct fixture *f = *state;
    struct runtime_terminal *terminal = NULL;
    struct aq_error err = { 0 };

    start(f, NULL, true, 0);
    run_until(f, &f->running);
    assert_int_equal(runtime_attach(f->kernel, &terminal_ops, f, &terminal, &err), 0);
    runtime_resize(terminal, 30, 90);
    type(terminal, "echo $((6*7)); stty size\n", 25);
    while (!strstr(f->shown.data, "42\r\n30 90\r\n"))
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    type(terminal, "exit 3\n", 7);
    run_until(f, &f->ended);
    while (!f->closed)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    runtime_detach(terminal);
    assert_int_equal(f->code, 3);
}

/* A program that does not read what is typed: whoever types waits, and nothing is lost. */
static void test_much_typing(void **state)
{
    enum { PIECE = 10000, PIECES = 100 };
    struct fixture *f = *state;
    struct runtime_terminal *terminal = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf typed = STRBUF_INIT;
    char path[96];
    size_t at = 0;

    while (typed.len < PIECE * PIECES) {
        strbuf_add_size(&typed, typed.len);
        strbuf_adds(&typed, "\n");
    }
    (void)snprintf(path, sizeof(path), "%s/typed", f->folder);
    assert_int_equal(fs_write_atomic(AT_FDCWD, path, typed.data, PIECE * PIECES, 0600, NULL), 0);
    start(f,
          "stty raw -echo; touch ready; until test -e go; do sleep 0.01; done;"
          "head -c 1000000 | cmp - typed && exit 3",
          true, 0);
    run_until(f, &f->running);
    assert_int_equal(runtime_attach(f->kernel, &terminal_ops, f, &terminal, NULL), 0);
    run_until_exists(f, "ready");
    while (type(terminal, typed.data + at, PIECE) == 0)
        assert_true((at += PIECE) < PIECE * PIECES);
    at += PIECE;
    f->has_drained = false;
    (void)snprintf(path, sizeof(path), "%s/go", f->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    while (at < PIECE * PIECES) {
        run_until(f, &f->has_drained);
        f->has_drained = type(terminal, typed.data + at, PIECE) == 0;
        at += PIECE;
    }
    run_until(f, &f->ended);
    runtime_detach(terminal);
    assert_int_equal(f->code, 3);
}

/* A terminal discards what is typed into a line that is too long, of which nobody is told. */
static void test_typing_that_a_terminal_discards(void **state)
{
    static const char line[20000] = { 0 };
    struct fixture *f = *state;
    struct runtime_terminal *terminal = NULL;

    start(f, "stty -echo; touch ready; read line; exit 3", true, 0);
    run_until(f, &f->running);
    assert_int_equal(runtime_attach(f->kernel, &terminal_ops, f, &terminal, NULL), 0);
    run_until_exists(f, "ready");
    for (int i = 0; i < 10; i++)
        assert_true(type(terminal, line, sizeof(line)) >= 0);
    assert_true(type(terminal, "\n", 1) >= 0);
    run_until(f, &f->ended);
    runtime_detach(terminal);
    assert_int_equal(f->code, 3);
}

static void test_no_terminal(void **state)
{
    struct fixture *f = *state;
    struct runtime_terminal *terminal = NULL;
    struct aq_error err = { 0 };

    start(f, "sleep 1000", false, 0);
    assert_int_equal(runtime_attach(f->kernel, &terminal_ops, f, &terminal, &err), -ENOTCONN);
    run_until(f, &f->running);
    assert_int_equal(runtime_attach(f->kernel, &terminal_ops, f, &terminal, &err), -ENOTTY);
    assert_string_equal(err.kind, "no-terminal");
    runtime_terminate(f->kernel, 0, 0);
    run_until(f, &f->ended);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_runs_and_ends),  TEST(test_cannot_start),
        TEST(test_terminate),      TEST(test_terminate_before_it_runs),
        TEST(test_signal),         TEST(test_timeout),
        TEST(test_adopts),         TEST(test_adopts_nothing),
        TEST(test_killed_monitor), TEST(test_terminal),
        TEST(test_much_typing),    TEST(test_typing_that_a_terminal_discards),
        TEST(test_no_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
