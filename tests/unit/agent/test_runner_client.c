/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's side of a real aliquot-runner, which runs as a subreaper. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/runtime/runner_client.h"
#include "agent/runtime/terminal.h"
#include "base/fs.h"
#include "runner/protocol.h"

struct scene {
    uv_loop_t loop;
    char folder[64];
    pid_t pid, keeper;
    struct runner_command *command;
    struct runtime_terminal *terminal;
    struct strbuf output, errors;
    bool tty, is_started, is_over, has_drained;
    int status, failure;
};

static int scene_new(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    s->keeper = getpid();
    strbuf_init(&s->output);
    strbuf_init(&s->errors);
    strcpy(s->folder, "/tmp/aliquot-client-XXXXXX");
    *state = s;
    return mkdtemp(s->folder) && uv_loop_init(&s->loop) == 0 ? 0 : -1;
}

static int scene_end(void **state)
{
    struct scene *s = *state;

    if (s->pid > 0) {
        (void)kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
    }
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    (void)fs_remove_tree(AT_FDCWD, s->folder, NULL);
    strbuf_done(&s->output);
    strbuf_done(&s->errors);
    free(s);
    return 0;
}

static void start_runner(struct scene *s, const char *tty, const char *line)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", s->folder, RUNNER_SOCKET);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 64), 0);
    s->pid = fork();
    if (s->pid == 0) {
        char number[16];

        (void)snprintf(number, sizeof(number), "%d", fd);
        (void)dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO); /* which is for TAP */
        if (tty)
            (void)execl(getenv("ALIQUOT_RUNNER"), "aliquot-runner", "--socket", number, "--tty",
                        tty, "--", "sh", "-c", line, (char *)NULL);
        else
            (void)execl(getenv("ALIQUOT_RUNNER"), "aliquot-runner", "--socket", number,
                        (char *)NULL);
        _exit(1);
    }
    aq_closep(&fd);
}

static void on_started(void *data)
{
    struct scene *s = data;

    s->is_started = true;
}

static void on_output(void *data, bool is_errors, const char *bytes, size_t len)
{
    struct scene *s = data;

    strbuf_add(is_errors ? &s->errors : &s->output, bytes, len);
}

static void on_drain(void *data)
{
    struct scene *s = data;

    s->has_drained = true;
}

static void on_ended(void *data, int status)
{
    struct scene *s = data;

    s->status = status;
    s->is_over = true;
}

static void on_failed(void *data, const struct aq_error *err)
{
    struct scene *s = data;

    s->failure = err->code;
    s->is_over = true;
}

static const struct runner_command_ops ops = {
    .on_started = on_started,
    .on_output = on_output,
    .on_drain = on_drain,
    .on_ended = on_ended,
    .on_failed = on_failed,
};

static int start_command(struct scene *s, bool has_input, const char *const *argv,
                         struct aq_error *err)
{
    static const char *const env[] = { "EXTRA=given", NULL };
    struct runner_command_spec spec = { .argv = argv,
                                        .envp = env,
                                        .envc = 1,
                                        .cwd = s->folder,
                                        .tty = s->tty,
                                        .has_input = has_input };

    while (argv[spec.argc])
        spec.argc++;
    s->is_over = s->is_started = s->has_drained = false;
    s->status = s->failure = 0;
    strbuf_clear(&s->output);
    strbuf_clear(&s->errors);
    return runner_command_new(&s->loop, s->folder, s->keeper, &spec, &ops, s, &s->command, err);
}

static void start_shell(struct scene *s, bool has_input, const char *line)
{
    const char *const argv[] = { "sh", "-c", line, NULL };

    assert_int_equal(start_command(s, has_input, argv, NULL), 0);
}

static void await_end(struct scene *s)
{
    while (!s->is_over)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    runner_command_free(AQ_TAKE(s->command));
}

static void test_commands(void **state)
{
    const char *const missing[] = { "no-such-program", NULL };
    struct scene *s = *state;

    start_runner(s, NULL, NULL);
    start_shell(s, false, "cat; echo $EXTRA; echo oh >&2; exit 5");
    await_end(s);
    assert_true(s->is_started && s->status == 5 << 8);
    assert_string_equal(s->output.data, "given\n");
    assert_string_equal(s->errors.data, "oh\n");

    assert_int_equal(start_command(s, false, missing, NULL), 0);
    await_end(s);
    assert_true(!s->is_started && s->failure == ENOENT);

    start_shell(s, false, "sleep 1000");
    runner_command_signal(s->command, SIGKILL);
    await_end(s);
    assert_int_equal(s->status, SIGKILL);
}

/* More than the socket holds: it is queued, and on_drain comes. Who does not wait for it is
 * refused before long.
 */
static void test_much_input(void **state)
{
    static char piece[65536];
    struct scene *s = *state;
    int r = 0;
    size_t given = 0;
    char count[24];

    memset(piece, 'x', sizeof(piece));
    start_runner(s, NULL, NULL);
    start_shell(s, true, "sleep 0.1; wc -c");
    for (; r == 0; given += sizeof(piece))
        r = runner_command_input(s->command, piece, sizeof(piece));
    assert_int_equal(r, 1);
    runner_command_end_input(s->command);
    await_end(s);
    assert_true(s->has_drained && s->status == 0);
    (void)snprintf(count, sizeof(count), "%zu\n", given);
    assert_string_equal(s->output.data, count);
}

static void test_too_much_input(void **state)
{
    static char piece[65536];
    struct scene *s = *state;
    int r = 0;

    start_runner(s, NULL, NULL);
    start_shell(s, true, "sleep 100");
    for (int i = 0; i < 1000 && r >= 0; i++)
        r = runner_command_input(s->command, piece, sizeof(piece));
    assert_int_equal(r, -ENOBUFS);
    runner_command_free(AQ_TAKE(s->command));
}

static void test_pause(void **state)
{
    struct scene *s = *state;

    start_runner(s, NULL, NULL);
    start_shell(s, false, "head -c 3000000 /dev/zero");
    while (s->output.len == 0)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    runner_command_pause(s->command, true);
    while (uv_run(&s->loop, UV_RUN_NOWAIT) && s->output.len == 0)
        ;
    assert_false(s->is_over);
    runner_command_pause(s->command, false);
    await_end(s);
    assert_int_equal(s->output.len, 3000000);
}

static void test_nobody_there(void **state)
{
    const char *const argv[] = { "true", NULL };
    struct scene *s = *state;
    struct aq_error err = { 0 };

    assert_int_equal(start_command(s, false, argv, &err), -ENOTCONN);
    start_runner(s, NULL, NULL);
    start_shell(s, false, "sleep 5");
    while (!s->is_started)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    assert_int_equal(kill(s->pid, SIGKILL), 0); /* the sleep is its orphan here */
    await_end(s);
    assert_int_equal(s->failure, ECONNRESET);
    assert_int_equal(start_command(s, false, argv, &err), -ENOTCONN);
}

static void test_long_command(void **state)
{
    static char word[RUNNER_PACKET_MAX + 1];
    const char *const argv[] = { "true", word, NULL };
    struct scene *s = *state;
    struct aq_error err = { 0 };

    memset(word, 'x', sizeof(word) - 1);
    start_runner(s, NULL, NULL);
    assert_int_equal(start_command(s, false, argv, &err), -E2BIG);
    assert_string_equal(err.field, "argv");
}

static void on_terminal_output(void *data, const char *bytes, size_t len)
{
    on_output(data, false, bytes, len);
}

static void on_terminal_closed(void *data)
{
    struct scene *s = data;

    runtime_detach(AQ_TAKE(s->terminal));
    s->is_over = true;
}

/* Who answers is a child of another process than the container's process 1 is. */
static void test_stranger(void **state)
{
    struct scene *s = *state;

    start_runner(s, NULL, NULL);
    s->keeper = getppid();
    start_shell(s, false, "echo said");
    await_end(s);
    assert_true(!s->is_started && s->failure == ECONNRESET);
    assert_string_equal(s->output.data, "");
    s->keeper = 0;
    start_shell(s, false, "echo said");
    await_end(s);
    assert_string_equal(s->output.data, "said\n");
}

static void attach(struct scene *s)
{
    static const struct runtime_terminal_ops terminal_ops = {
        .on_output = on_terminal_output,
        .on_closed = on_terminal_closed,
        .on_drain = on_drain,
    };

    assert_int_equal(terminal_open(&s->loop, s->folder, RUNNER_SOCKET, getpid(), RUNNER_OUTPUT_MAX,
                                   &terminal_ops, s, &s->terminal, NULL),
                     0);
}

#define TYPED 1000000 /* bytes */
#define PIECE 10000

/* A line for a shell whose terminal is not read from until there is a file "go". */
static void make_slow_reader(const struct scene *s, struct strbuf *typed, char line[300])
{
    char path[96];

    while (typed->len < TYPED) {
        strbuf_add_size(typed, typed->len);
        strbuf_adds(typed, "\n");
    }
    (void)snprintf(path, sizeof(path), "%s/typed", s->folder);
    assert_int_equal(fs_write_atomic(AT_FDCWD, path, typed->data, TYPED, 0600, NULL), 0);
    (void)snprintf(line, 300,
                   "cd %s; stty raw -echo; echo ready; until test -e go; do sleep 0.01; done;"
                   "head -c %d | cmp - typed && echo same",
                   s->folder, TYPED);
}

/* Until it is full; then all the rest, as it drains. */
static void type_all(struct scene *s, const char *typed, int (*put)(struct scene *, const char *))
{
    char path[96];
    int r = 0, at = 0;

    while (!strstr(s->output.data, "ready"))
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    for (; r == 0 && at < TYPED; at += PIECE)
        r = put(s, typed + at);
    assert_true(r == 1 && at < TYPED);
    (void)snprintf(path, sizeof(path), "%s/go", s->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    for (; at < TYPED; at += PIECE) {
        while (!s->has_drained)
            (void)uv_run(&s->loop, UV_RUN_ONCE);
        r = put(s, typed + at);
        assert_true(r >= 0);
        s->has_drained = r == 0;
    }
    while (!s->is_over)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    assert_non_null(strstr(s->output.data, "same"));
}

static int put_to_terminal(struct scene *s, const char *bytes)
{
    return runtime_terminal_pump.put(s->terminal, bytes, PIECE);
}

static void test_much_typing(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf typed = STRBUF_INIT;
    char line[300];

    make_slow_reader(s, &typed, line);
    start_runner(s, "20x70", line);
    attach(s);
    type_all(s, typed.data, put_to_terminal);
}

static int put_to_command(struct scene *s, const char *bytes)
{
    return runner_command_input(s->command, bytes, PIECE);
}

static void test_much_typing_for_a_command(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf typed = STRBUF_INIT;
    char line[300];

    make_slow_reader(s, &typed, line);
    start_runner(s, NULL, NULL);
    s->tty = true;
    start_shell(s, true, line);
    type_all(s, typed.data, put_to_command);
    runner_command_free(AQ_TAKE(s->command));
}

static void test_terminal(void **state)
{
    struct scene *s = *state;

    start_runner(s, "20x70", "stty -echo; read line; echo read: $line; stty size; read line");
    attach(s);
    runtime_resize(s->terminal, 12, 34);
    assert_true(runtime_terminal_pump.put(s->terminal, "words\n\n", 7) >= 0);
    while (!s->is_over)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    assert_non_null(strstr(s->output.data, "read: words\r\n"));
    assert_non_null(strstr(s->output.data, "12 34\r\n"));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, scene_new, scene_end)
    const struct CMUnitTest tests[] = {
        TEST(test_commands),     TEST(test_stranger),
        TEST(test_much_input),   TEST(test_too_much_input),
        TEST(test_pause),        TEST(test_nobody_there),
        TEST(test_long_command), TEST(test_terminal),
        TEST(test_much_typing),  TEST(test_much_typing_for_a_command),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
